"""Fields: shares of three names over years and two places."""

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
    rows_of,
    shuffled_columns,
    with_column,
)

NAMES = {"Ada": "z", "Ben": "y", "Cy": "x"}
PLACES = ("New York", "Texas")


def counts():
    """40 children a year and place; Ada rises."""
    rng = np.random.default_rng(5)
    rows = []
    for year in range(2000, 2012):
        for place in PLACES:
            rise = 0.03 * (year - 2000) * (1.0 if place == "New York" else 0.5)
            n = rng.multinomial(40, [0.2 + rise, 0.5 - rise, 0.3])
            rows += [(year, place, name, int(k)) for name, k in zip(NAMES, n, strict=True)]
    return dict(
        zip(("year", "place", "name", "n"), map(list, zip(*rows, strict=True)), strict=True)
    )


def later():
    """A year between, and one after the last."""
    return {"year": [2005, 2012], "place": ["New York", "Texas"]}


def shift(years, scale=1):
    """Years from another origin, or in other units, in every table and in the answers."""

    def back(question, key, centre, sd):
        first = (
            f"{float(key[0]) / scale - years:g}" if key[0].replace(".", "").isdigit() else key[0]
        )
        return (first, *key[1:]), centre, sd

    return {
        "tables": lambda name, t: changed(t, year=[(year + years) * scale for year in t["year"]]),
        "back": back,
    }  # fmt: skip


QUESTIONS = (
    Question("predict", ("later.csv",)),
    Question("effects", ("year",)),
    Question("export"),
)

SHARES = Job(
    "fields",
    {"names.csv": counts, "later.csv": later},
    ("--inputs", "year", "place", "--places", "us-states", "--category", "name", "--count", "n"),
    QUESTIONS,
    (
        longer(verbs=("predict", "effects")),
        other_seed(),
        reversed_rows(verbs=("predict", "effects")),
        shuffled_columns(tolerance=0.0),
        renamed("name", NAMES, verbs=("predict", "effects")),
        Variation("units", "years from 0 on", **shift(-2000), verbs=("effects",)),
        Variation("units", "years as months", **shift(0, 12), verbs=("effects",)),
        Variation(
            "aggregation", "two rows for each count",
            tables=lambda name, t: (
                t if name != "names.csv" else
                changed(rows_of(t, [i for i in range(len(t["n"])) for _ in range(2)]),
                        n=[k for n in t["n"] for k in (n // 2, n - n // 2)])
            ),
            tolerance=0.0,
        ),
        with_column("note", lambda n: ["x"] * n, tolerance=0.0),
    ),
    reasons={("files", "*"): "a file becomes one table for all jobs: tests of the readers"},
)  # fmt: skip

JOBS = [SHARES]
