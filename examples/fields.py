"""How do shares of categories move over time and space, and what will they be in years to come?

Run it with ``python examples/fields.py``: names of newborns are made up on the spot, in nine
regions and thirty years, and what their probabilities are is known, so that what comes out can be
checked. The last three years are hidden and predicted.
"""

import numpy as np

from pgmult.fields.covariances import Matern, SquaredExponential, White
from pgmult.fields.estimator import MultinomialGPClassifier

NAMES = ["Ada", "Ben", "Cleo", "Dan", "Eve"]
PEAKS = np.array([1988.0, 1997.0, 2006.0, 2015.0, 2024.0])


def true_probs(year, east):
    """Names have their peaks one after the other, in the east eight years before the west.

    By the softmax, which the model does not know.
    """
    scores = -0.5 * ((year + 4.0 * (east - 2.0))[:, None] - PEAKS) ** 2 / 9.0**2
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


rng = np.random.default_rng(1)
axes = np.meshgrid(np.arange(1990.0, 2020.0), [0.0, 1.0, 2.0], [0.0, 1.0, 2.0])
year, east, north = (axis.ravel() for axis in axes)
inputs, truth = np.column_stack([year, east, north]), true_probs(year, east)
births = rng.poisson(60, len(truth))
counts = rng.multinomial(births, truth)
counts[rng.random(len(counts)) < 0.1] = 0  # files that were lost
seen, hidden = year < 2017, year >= 2017

# White is what every region and year has to itself: smooth laws alone are too sure of themselves
# (these truths are smooth; of real names a Matern(1.5) of time and a Matern(0.5) of places hold)
covariance = 1.0 * Matern(2.5, length_scale=10.0, active=[0]) * SquaredExponential(
    2.0, active=[1, 2]
) + White(0.01)
estimator = MultinomialGPClassifier(
    covariance,
    scale_inputs=False, draws=250, tune=300, thin=4, random_state=1,
).fit(inputs[seen], counts[seen])  # fmt: skip
for name, draws in estimator.hyperparameters_.items():
    print(f"{name:40} {np.mean(draws):6.2f} ± {np.std(draws):.2f}")

found = estimator.predictions(inputs[hidden])
mean, (lower, upper) = found.mean, found.interval(0.9)
is_first = found.rank_probabilities(1)
print(f"\n{'2019':8}" + "".join(f"{name:>19}" for name in NAMES))
for place, where in enumerate(["west", "middle", "east"]):
    row = np.flatnonzero((year == 2019) & (east == place) & (north == 1) & hidden)
    i = np.flatnonzero(np.flatnonzero(hidden) == row[0])[0]
    cells = zip(mean[i], lower[i], upper[i], strict=True)
    best = is_first[i].argmax()
    print(
        f"{where:8}" + "".join(f"  {m:.2f} [{low:.2f}, {high:.2f}]" for m, low, high in cells),
        f" P[{NAMES[best]} is first] = {is_first[i, best]:.2f}",
    )


def per_birth(probs):
    """Mean log probability of a hidden birth."""
    return float((counts[hidden] * np.log(probs)).sum() / counts[hidden].sum())


score, best = estimator.score(inputs[hidden], counts[hidden]), per_birth(truth[hidden])
recent = per_birth(counts[seen & (year > 2011)].sum(axis=0) / counts[seen & (year > 2011)].sum())
inside = ((lower < truth[hidden]) & (truth[hidden] < upper)).mean()
print(f"\nnats a hidden birth: {score:.3f}; the truth {best:.3f}; recent shares {recent:.3f}")
print(f"90 % intervals that hold the true probability: {inside:.0%}")
held = found.calibration(counts[hidden], random_seed=1)
print(f"hidden counts: {held}")

assert best - score < 0.3 * (best - recent)
assert inside > 0.8
assert held.covered[-1] > 0.88
assert np.abs(mean - truth[hidden]).max() < 0.15
