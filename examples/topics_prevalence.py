"""How does the prevalence of topics depend on what is known about the documents?

Run it with ``python examples/prevalence.py``: speeches are made on the spot, and what year and
party do to their topics is known, so that what comes out can be checked.
"""

import numpy as np

import pgmult
from pgmult.topics import top_words

TOPICS = {
    "climate": ["carbon", "warming", "solar", "emission", "forest", "ocean"],
    "taxes": ["income", "budget", "deficit", "revenue", "dividend", "rebate"],
    "schools": ["teacher", "pupil", "classroom", "exam", "campus", "lesson"],
}


def mean_scores(years, green):
    """Greens speak of climate more and more; nobody else does. Both leave taxes alone over time."""
    decades = (years - 2000) / 10
    return np.column_stack([0.2 * green + 0.9 * green * decades, 0.5 - 0.8 * green, 0 * years])


def shares(scores):
    """Proportions of topics: here by the softmax, which the model does not know."""
    return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)


def expected_shares(rng, year, green):
    """What is to be found."""
    noise = 0.8 * rng.standard_normal((100_000, 3))
    return shares(mean_scores(np.array([year]), green) + noise).mean(axis=0)


rng = np.random.default_rng(3)
years = rng.uniform(1990, 2020, size=600)
party = rng.choice(["green", "liberal"], size=600)
theta = shares(mean_scores(years, party == "green") + 0.8 * rng.standard_normal((600, 3)))
words = np.kron(np.eye(3), np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])[None])
counts = np.array([rng.multinomial(50, p) for p in theta @ words])
corpus = pgmult.topics.as_corpus(counts, [word for topic in TOPICS.values() for word in topic])

columns = {"year": years, "party": party}
data = pgmult.topics.with_covariates(corpus, columns, "~ year * party")
posterior = pgmult.sample(
    pgmult.topics.StructuralTopics(num_topics=3), data, draws=800, tune=400, chains=2, random_seed=1
)

owner = {topic[0].word: k for k, topic in enumerate(top_words(posterior, num_words=1))}
order = [owner[topic[0]] for topic in TOPICS.values()]
settings = {"year": [1995, 2015, 1995, 2015], "party": ["green", "green", "liberal", "liberal"]}
found = pgmult.topics.effects(posterior, settings, probability=0.9)

print(f"{'expected share of':28}{''.join(f'{name:>24}' for name in TOPICS)}")
for i, (year, who) in enumerate(zip(*settings.values(), strict=True)):
    intervals = [
        f"{found.mean[i, k]:.2f} [{found.lower[i, k]:.2f}, {found.upper[i, k]:.2f}]" for k in order
    ]
    print(f"{who:20}{year:8}" + "".join(f"{text:>24}" for text in intervals))

difference = pgmult.topics.difference
rise = {"green": difference(found, 1, 0), "liberal": difference(found, 3, 2)}
for who, change in rise.items():
    low, mean, high = (x[0, order[0]] for x in (change.lower, change.mean, change.upper))
    print(f"climate, {who}, from 1995 to 2015: {mean:+.2f} [{low:+.2f}, {high:+.2f}]")

climate = order[0]
assert rise["green"].lower[0, climate] > 0.2
assert rise["liberal"].lower[0, climate] < 0.0 < rise["liberal"].upper[0, climate]
truth = [expected_shares(rng, y, p == "green") for y, p in zip(*settings.values(), strict=True)]
assert np.abs(found.mean[:, order] - truth).max() < 0.06
