"""What comes next in a sequence of symbols, and how sure can one be of it?

Run it with ``python examples/sequences.py``: weather is made on the spot, with a season of 24 days
that nobody tells the model about, so that forecasts can be compared with the truth.
"""

import numpy as np

import pgmult
from pgmult.sequences import MarkovChain, one_step_ahead

WEATHER = ["fog", "rain", "snow", "sun"]
PERIOD = 24


def true_probs(days):
    """Sun and snow take turns; fog comes in between; it rains all year round."""
    angle = 2 * np.pi * np.asarray(days) / PERIOD
    scores = np.column_stack(
        [1.5 * np.cos(2 * angle), np.zeros_like(angle), -2 * np.sin(angle), 2 * np.sin(angle)]
    )
    weights = np.exp(scores)
    return weights / weights.sum(axis=1, keepdims=True)


def weather(rng, first_day, num_days):
    """A year book: None where nobody looked, one day in ten."""
    seen = [WEATHER[rng.choice(4, p=p)] for p in true_probs(first_day + np.arange(num_days))]
    return [symbol if rng.random() > 0.1 else None for symbol in seen]


rng = np.random.default_rng(0)
firsts = rng.integers(PERIOD, size=8)
books = [weather(rng, first, 120) for first in firsts]
forecaster = pgmult.sequences.SequenceForecaster(4, symbols=WEATHER, random_state=1, n_jobs=-1).fit(
    books
)

new = [weather(rng, first, 120) for first in rng.integers(PERIOD, size=10)]
score = forecaster.score(new)
train = forecaster.sequences_
test = pgmult.sequences.as_sequences(new, alphabet=WEATHER)
shares = np.bincount(train.symbols) / len(train.symbols)
chain = pgmult.sample(MarkovChain(1), train, draws=100, random_seed=0, progressbar=False)
print(f"log probability of the next day: {score:.3f} nats")
baselines = {
    "always the same probabilities": np.log(shares[test.symbols]).mean(),
    "given the day before": one_step_ahead(chain, test).mean,
}
for name, value in baselines.items():
    print(f"{name:>35}: {value:.3f}")

days = 12
ahead = forecaster.forecast(days, levels=(0.05, 0.95))
truth = np.array([true_probs(first + 120 + np.arange(days)) for first in firsts])
print(f"\nthe first book goes on: {'':14}{'':>8}".rstrip())
for day in (0, 5, 11):
    cells = [
        f"{name} {ahead.mean[0, day, k]:.2f} ({truth[0, day, k]:.2f})"
        for k, name in enumerate(WEATHER)
    ]
    print(f"{day + 1:>3} days ahead (truth): " + ", ".join(cells))

error = np.abs(ahead.mean - truth).mean()
plain = np.abs(truth.mean(axis=(0, 1)) - truth).mean()
low, high = ahead.quantiles
covered = ((low <= truth) & (truth <= high)).mean()
print(f"mean error {error:.3f}, of the average weather {plain:.3f}; {covered:.0%} in intervals")

assert score > max(baselines.values()) + 0.03
assert error < 0.6 * plain
assert covered > 0.75
