"""Does multilevel regression with poststratification find the shares of states?

Populations of 51 states x 6 ages x 5 levels of education x 2 sexes, four categories; a sample that
is not representative. Compared are the posterior means of the states' shares with the truth, beside
raw shares and one share for all, by either link where effects are those of sticks or of a softmax.

    python tests/benchmarks/poststratification.py [populations]        # 20 by default
"""

import sys
import time
import warnings

import numpy as np

import pgmult
from pgmult.links import StickBreaking
from pgmult.regression import AdditiveRegression
from pgmult.regression.rows import rows_of

CATEGORIES = np.array(["a", "b", "c", "d"])
STATES, AGES, LEVELS = 51, 6, 5
SDS = {"1 | state": 0.5, "1 | age": 0.4, "1 | edu": 0.3, "1 | state:age": 0.25}
FORMULA = "c(a, b, c, d) ~ sex + x + (1 | state) + (1 | age) + (1 | edu) + (1 | state:age)"
LINKS = "softmax", "stick_breaking"


def population(seed, respondents=5000, sticks=True):
    """Cells with counts and people, and the true shares of states."""
    rng = np.random.default_rng(seed)
    grid = np.meshgrid(
        np.arange(STATES), np.arange(AGES), np.arange(LEVELS), np.arange(2), indexing="ij"
    )
    state, age, edu, sex = (part.ravel() for part in grid)
    people = (
        np.exp(rng.normal(0, 1, STATES))[state]
        * rng.dirichlet(np.full(AGES, 8), STATES)[state, age]
    )
    people = people * rng.dirichlet(np.full(LEVELS, 8), STATES)[state, edu]
    x = rng.standard_normal(STATES)[state]
    codes = {
        "1 | state": state,
        "1 | age": age,
        "1 | edu": edu,
        "1 | state:age": state * AGES + age,
    }
    width = 3 if sticks else 4
    scores = np.zeros((len(state), width))
    if sticks:
        scores += StickBreaking().inverse(np.full(4, 0.25))
    for k in range(width):
        scores[:, k] += rng.normal(0, 0.4) * (sex - 0.5) + rng.normal(0, 0.4) * x
        for name, sd in SDS.items():
            scores[:, k] += rng.normal(0, sd, codes[name].max() + 1)[codes[name]]
    if sticks:
        probs = StickBreaking().probs(scores)
    else:
        scores += np.log([0.55, 0.25, 0.13, 0.07])
        probs = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    chance = people * np.exp(0.5 * rng.standard_normal(len(people)) + 0.3 * (edu - 2))
    sampled = rng.multinomial(respondents, chance / chance.sum())
    counts = rng.multinomial(sampled, probs)
    table = {"state": state, "age": age, "edu": edu, "sex": sex, "x": x, "people": people}
    table |= dict(zip(CATEGORIES, counts.T, strict=True))
    return table, by_state(probs, people, state)


def by_state(values, people, state):
    sums = np.stack([np.bincount(state, people * column) for column in values.T], axis=1)
    return sums / np.bincount(state, people)[:, None]


def posterior(table, link, draws=300):
    """Draws of the states' shares, ``(draws, states, categories)``."""
    asked = np.column_stack([table[c] for c in CATEGORIES]).sum(axis=1) > 0
    taken = {name: column[asked] for name, column in table.items()}
    run = pgmult.sample(
        AdditiveRegression(link=link), rows_of(FORMULA, taken, family="categories"),
        draws=draws, tune=20, chains=1, random_seed=0, progressbar=False,
    )  # fmt: skip
    shares = run.poststratify(table, by="state", weight="people")
    labels = np.asarray(shares.labels["state"]).astype(int)
    return shares.draws[:, np.argsort(labels)]


def rmse(found, truth):
    return float(np.sqrt(np.mean((found - truth) ** 2)))


def many(number, sticks):
    rows = []
    for seed in range(number):
        table, truth = population(seed, sticks=sticks)
        counts = np.column_stack([table[c] for c in CATEGORIES])
        respondents = np.stack([np.bincount(table["state"], c, STATES) for c in counts.T], axis=1)
        raw = (respondents + 0.25) / (respondents.sum(axis=1, keepdims=True) + 1.0)
        row = [
            rmse(raw, truth),
            rmse(np.tile(counts.sum(axis=0) / counts.sum(), (STATES, 1)), truth),
        ]
        for link in LINKS:
            start = time.process_time()
            draws = posterior(table, link)
            seconds = time.process_time() - start
            low, high = np.quantile(draws, [0.05, 0.95], axis=0)
            covered = np.mean((low <= truth) & (truth <= high))
            row += [rmse(draws.mean(axis=0), truth), covered, seconds]
        rows.append(row)
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(len(rows))
    print(
        f"truth by {'sticks' if sticks else 'a softmax'}: RMSE raw {mean[0]:.4f}, pooled"
        f" {mean[1]:.4f}"
    )
    for i, link in enumerate(LINKS):
        at = 2 + 3 * i
        print(
            f"  {link}: RMSE {mean[at]:.4f}, 90 % coverage {mean[at + 1]:.3f} +-"
            f" {error[at + 1]:.3f}, {mean[at + 2]:.1f} CPU seconds", flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for by_sticks in (True, False):
        many(int(sys.argv[1]) if len(sys.argv) > 1 else 20, by_sticks)
