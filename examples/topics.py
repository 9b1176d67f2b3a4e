"""Sample a correlated topic model and ask which topics go together.

Run it with ``python examples/correlated_topics.py``: the corpus is made on the spot, from a model
with a known answer, so that what comes out can be checked.
"""

import numpy as np

import pgmult
from pgmult.topics import top_words, topic_correlations
from pgmult.topics.summaries import strongest_pairs

TOPICS = {
    "cooking": ["oven", "butter", "salt", "pan", "recipe", "flour"],
    "wine": ["grape", "cellar", "vintage", "bottle", "cork", "oak"],
    "football": ["goal", "league", "penalty", "coach", "stadium", "keeper"],
}


def make_corpus(rng, num_documents=600, length=60):
    """Cooking and wine go together as far as shares of one whole can; football avoids both."""
    covariance = np.array([[3.0, 1.5, -1.5], [1.5, 3.0, -1.5], [-1.5, -1.5, 3.0]])
    scores = rng.multivariate_normal(np.zeros(3), covariance, size=num_documents)
    theta = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    topics = np.kron(np.eye(3), np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])[None])
    counts = np.array([rng.multinomial(length, p) for p in theta @ topics])
    return pgmult.topics.as_corpus(counts, [word for words in TOPICS.values() for word in words])


corpus = make_corpus(np.random.default_rng(1))
training, held_out = pgmult.topics.split_tokens(corpus, documents=60)

completion = pgmult.topics.scores.DocumentCompletion(held_out)
posterior = pgmult.sample(
    pgmult.topics.CorrelatedTopics(num_topics=3),
    training,
    draws=1000,
    tune=500,
    chains=2,
    random_seed=1,
    callback=completion,
)
print(posterior.summary(["topic_shares", "effective_topics"]))

topics = top_words(posterior, num_words=6)
for number, words in enumerate(topics):
    print(number, ", ".join(f"{w.word} {w.mean:.3f} ± {w.sd:.3f}" for w in words))

correlations = topic_correlations(posterior)
for pairs in strongest_pairs(correlations):
    for pair in pairs:
        names = " and ".join(topics[k][0].word for k in (pair.first, pair.second))
        print(f"{names}: {pair}")
print("held out:", completion.score())

owner = {words[0].word: k for k, words in enumerate(topics)}
cooking, wine, football = (owner[words[0]] for words in TOPICS.values())
assert correlations.upper[cooking, football] < correlations.lower[cooking, wine]
