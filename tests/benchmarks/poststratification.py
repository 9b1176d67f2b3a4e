"""Does multilevel regression with poststratification find the shares of states, in any order?

Populations of 51 states x 6 ages x 5 levels of education x 2 sexes, four categories; a sample that
is not representative. Compared are the posterior means of the states' shares with the truth, beside
raw shares, one share for all and the same model that knows the true standard deviations.

    python tests/benchmarks/poststratification.py [populations]        # 20 by default
    python tests/benchmarks/poststratification.py orders               # one population, four orders
"""

import sys
import time
import warnings

import numpy as np

import pgmult
from pgmult.latent.terms import from_sd
from pgmult.links import StickBreaking
from pgmult.regression import AdditiveRegression
from pgmult.regression.rows import rows_of

CATEGORIES = np.array(["a", "b", "c", "d"])
STATES, AGES, LEVELS = 51, 6, 5
SDS = {"1 | state": 0.5, "1 | age": 0.4, "1 | edu": 0.3, "1 | state:age": 0.25}
FORMULA = "c(a, b, c, d) ~ sex + x + (1 | state) + (1 | age) + (1 | edu) + (1 | state:age)"
ORDERS = ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2])


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


def posterior(table, order, effects="sticks", draws=300):
    """Draws of the states' shares, ``(draws, states, categories)``, and the run."""
    asked = np.column_stack([table[c] for c in CATEGORIES]).sum(axis=1) > 0
    data = rows_of(
        FORMULA, {name: column[asked] for name, column in table.items()},
        order=CATEGORIES[order].tolist(),
    )  # fmt: skip
    run = pgmult.sample(
        AdditiveRegression(effects=effects), data, draws=draws, tune=20, chains=1, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    shares = run.poststratify(table, by="state", weight="people")
    labels = np.asarray(shares.labels["state"]).astype(int)
    return shares.draws[:, np.argsort(labels)], run


def knowing_sds(run, table):
    """Mean shares by the approximation at the true standard deviations."""
    model, data = run.model, run.data
    latent = model.latent(data, data.design.like(table, new_levels=True))
    rng, x = np.random.default_rng(0), from_sd(np.array(list(SDS.values())))
    weights = []
    from pgmult.regression.models.approximated import approximated

    for family, _, found in approximated(data, model):
        law = family.at(x, found.absorbed)
        weights.append([law.sample(rng) for _ in range(200)])
    draws = [latent.draw(rng, np.array(w), np.tile(x, (3, 1))) for w in zip(*weights, strict=True)]
    probs = np.mean([model.link(data).probs(psi) for psi in draws], axis=0)
    return by_state(probs, table["people"], table["state"])


def rmse(found, truth):
    return float(np.sqrt(np.mean((found - truth) ** 2)))


def many(number):
    rows = []
    for seed in range(number):
        table, truth = population(seed)
        counts = np.column_stack([table[c] for c in CATEGORIES])
        respondents = np.stack([np.bincount(table["state"], c, STATES) for c in counts.T], axis=1)
        raw = (respondents + 0.25) / (respondents.sum(axis=1, keepdims=True) + 1.0)
        pooled = np.tile(counts.sum(axis=0) / counts.sum(), (STATES, 1))
        row = [rmse(raw, truth), rmse(pooled, truth)]
        for order in ORDERS[:3]:
            start = time.process_time()
            draws, run = posterior(table, order)
            seconds = time.process_time() - start
            if order == ORDERS[0]:
                row.append(rmse(knowing_sds(run, table), truth))
            low, high = np.quantile(draws, [0.05, 0.95], axis=0)
            row += [
                rmse(draws.mean(axis=0), truth),
                np.mean((low <= truth) & (truth <= high)),
                seconds,
            ]
        rows.append(row)
        print(seed, np.round(np.mean(rows, axis=0), 4).tolist(), flush=True)
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(len(rows))
    names = ["raw", "pooled", "optimum"]
    print("RMSE", {n: round(mean[i], 4) for i, n in enumerate(names)})
    for i, order in enumerate(ORDERS[:3]):
        at = [3, 6, 9][i] if i else 3
        print(
            "order", order, f"RMSE {mean[at]:.4f}, 90 % coverage {mean[at + 1]:.3f} +-"
            f" {error[at + 1]:.3f}, {mean[at + 2]:.1f} CPU seconds",
        )  # fmt: skip


def orders():
    """How far posterior means move between orders, in posterior standard deviations."""
    table, truth = population(100, respondents=1500, sticks=False)
    for effects in ("sticks", "categories"):
        start = time.process_time()
        every = [posterior(table, order, effects)[0] for order in ORDERS]
        seconds = (time.process_time() - start) / len(ORDERS)
        means, sds = (
            np.array([d.mean(axis=0) for d in every]),
            np.array([d.std(axis=0) for d in every]),
        )
        low, high = np.quantile(every, [0.05, 0.95], axis=1)
        spread = np.sqrt(np.mean(means.var(axis=0, ddof=1)) / np.mean(sds**2))
        covered = np.mean((low <= truth) & (truth <= high))
        errors = [round(rmse(mean, truth), 4) for mean in means]
        print(
            f"{effects}: between orders {spread:.3f} sd, RMSE {errors}, coverage {covered:.3f},"
            f" {seconds:.1f} CPU seconds", flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["orders"]:
        orders()
    else:
        many(int(sys.argv[1]) if sys.argv[1:] else 20)
