"""Choices: a conditional logit whose price matters less to the rich, and tastes that differ."""

import numpy as np

from tests.benchmarks.defaults.frame import Design, Truth
from tests.invariances.frame import Question

MODES = ("bus", "car", "train")
ELASTICITIES = Question("elasticities", ("price", "--by", "mode"))
DIVERSION, WORTH = Question("diversion"), Question("worth", ("price",))
SURPLUS = Question("surplus", ("dearer.csv", "--per", "price"))


def _trips(rng, people, each, spread, of_income):
    """Trips of people: tables of today and of fares a tenth higher, and what follows from truth."""
    n = people * each
    price, time = rng.uniform(1, 10, (n, 3)).round(2), rng.uniform(0.5, 3, (n, 3)).round(2)
    income = np.repeat(rng.integers(20, 81, people), each)
    who = np.repeat(np.arange(people), each)
    b, c, t = rng.normal(-0.25, 0.05), of_income * rng.normal(0.002, 0.0005), rng.normal(-1.0, 0.2)
    constants, sd = np.append(0.0, rng.normal(0, 0.5, 2)), spread * abs(rng.normal(0.6, 0.1))
    tastes = t + sd * rng.standard_normal(people)[who]
    of_price = b + c * income

    def utility(factor=1.0):
        return constants + of_price[:, None] * factor * price + tastes[:, None] * time

    taken = (utility() + rng.gumbel(size=(n, 3))).argmax(axis=1)
    p = np.exp(utility()) / np.exp(utility()).sum(axis=1, keepdims=True)
    table = {
        "person": [f"p{i}" for i in np.repeat(who, 3)], "trip": np.repeat(np.arange(n), 3).tolist(),
        "mode": list(MODES) * n, "price": price.ravel().tolist(), "time": time.ravel().tolist(),
        "income": np.repeat(income, 3).tolist(),
        "taken": (np.arange(3) == taken[:, None]).astype(int).ravel().tolist(),
    }  # fmt: skip
    truths = [Truth("worth", WORTH, ("time",), float(-np.median(t / of_price)))]
    pull, shares = of_price[:, None] * price, p.mean(axis=0)
    for j, mode in enumerate(MODES):
        for k, changed in enumerate(MODES):
            change = (pull[:, k] * p[:, j] * ((j == k) - p[:, k])).mean() / shares[j]
            truths.append(Truth("elasticities", ELASTICITIES, (mode, changed), float(change)))
            if j != k:
                flow = (p[:, j] * p[:, k] / (1.0 - p[:, j])).mean() / shares[j]
                truths.append(Truth("diversion", DIVERSION, (mode, changed), float(flow)))
    sums = [np.log(np.exp(utility(factor)).sum(axis=1)) / -of_price for factor in (1.1, 1.0)]
    truths.append(Truth("surplus", SURPLUS, ("all",), float((sums[0] - sums[1]).mean())))
    dearer = table | {"price": [1.1 * x for x in table["price"]]}
    return {"trips.csv": table, "dearer.csv": dearer}, truths


def alike(rng):
    """400 trips by as many people with the same tastes; price matters by income."""
    return _trips(rng, 400, 1, 0.0, 1.0)


def differ(rng):
    """60 people with eight trips each, whose tastes for time differ."""
    return _trips(rng, 60, 8, 1.0, 0.0)


OF_TRIPS = ("--occasion", "trip", "--alternative", "mode")
DESIGNS = [
    Design(
        "conditional logit", "choice", ("taken ~ mode + price + time + price:income", *OF_TRIPS),
        alike,
    ),
    Design(
        "mixed logit", "choice", ("taken ~ mode + price + time + (time | person)", *OF_TRIPS),
        differ,
    ),
]  # fmt: skip
