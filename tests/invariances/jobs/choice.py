"""Choices: forty people choose among three ways to travel, five times each."""

import numpy as np
from invariances.frame import (
    Job,
    Question,
    Variation,
    changed,
    longer,
    other_seed,
    renamed,
    reversed_rows,
    shuffled_columns,
    with_column,
)

MODES = {"bus": "z", "car": "y", "train": "x"}


def trips():
    """Prices, hours, and incomes that make prices matter less."""
    rng = np.random.default_rng(9)
    rows = []
    for person in range(40):
        income = int(rng.choice([20, 40, 60, 80]))
        for trip in range(5):
            price, time = rng.uniform(2, 20, 3).round(1), rng.uniform(0.5, 5, 3).round(1)
            utility = -(0.25 - 0.002 * income) * price - 0.5 * time + [0.0, 0.6, 0.3]
            taken = int(np.argmax(utility + rng.gumbel(size=3)))
            rows += [
                (f"p{person:02}", f"t{person:02}{trip}", mode, float(price[k]), float(time[k]),
                 income, int(k == taken))
                for k, mode in enumerate(MODES)
            ]  # fmt: skip
    names = ("person", "trip", "mode", "price", "time", "income", "taken")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def dearer():
    """The same trips with fares a tenth higher."""
    table = trips()
    return table | {"price": [1.1 * price for price in table["price"]]}


QUESTIONS = (
    Question("worth", ("price",)),
    Question("elasticities", ("price", "--by", "mode")),
    Question("worth", ("price", "--at", "income=20,80"), id="worth at incomes"),
    Question("predict", ("trips.csv",)),
    Question("surplus", ("dearer.csv", "--by", "income")),
    Question("diversion"),
    Question("importances"),
    Question("scores", ("mode",)),
    Question("marginal-means"),
    Question("amce"),
)
DERIVED = (
    "worth", "elasticities", "surplus", "diversion", "importances", "scores", "marginal-means",
    "amce",
)  # fmt: skip
OF_NO_BASE = ("elasticities", "surplus", "diversion", "importances", "scores")
BY_BRUTE_FORCE = "tests/unit/choice changes the table a little, draw by draw, or writes it out"
FIT = ("taken ~ mode + price + time + price:income", "--occasion", "trip", "--alternative", "mode")

PLAIN = Job(
    "choice",
    {"trips.csv": trips, "dearer.csv": dearer},
    FIT,
    QUESTIONS,
    (
        longer(default=300),
        other_seed(),
        reversed_rows(verbs=DERIVED),
        shuffled_columns(verbs=DERIVED),
        renamed("mode", MODES, verbs=OF_NO_BASE),
        Variation(
            "units", "hours as minutes",
            tables=lambda name, t: changed(t, time=[60.0 * hours for hours in t["time"]]),
            verbs=("elasticities", "surplus", "diversion", "importances", "scores"),
        ),
        with_column("note", lambda n: ["x"] * n, tolerance=0.0),
    ),
    reasons={
        ("files", "*"): "a file becomes one table for all jobs: tests of the readers",
        ("horizons", "*"): "nothing is asked over a horizon",
        **{
            ("aggregation", verb): "counts and weights: tests/unit/choice"
            for verb in DERIVED
        },
        **{("missing", verb): "occasions with gaps are left out whole, as the command says"
           for verb in DERIVED},
        **{("power", verb): "no check" for verb in DERIVED},
        **{("outside", verb): "tests.benchmarks.defaults simulates choices" for verb in DERIVED},
        **{("brute_force", verb): BY_BRUTE_FORCE for verb in DERIVED},
    },
)  # fmt: skip

JOBS = [PLAIN]
