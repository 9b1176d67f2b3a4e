"""Sequences: careers of sixty people, by a Markov chain."""

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

STATES = {"school": "z", "work": "y", "retired": "x"}
MATRIX = np.array([[0.7, 0.3, 0.0], [0.0, 0.85, 0.15], [0.0, 0.0, 1.0]])


def careers():
    """Nobody leaves retirement."""
    rng = np.random.default_rng(7)
    rows = []
    for person in range(60):
        state = 0
        for year in range(2000, 2012):
            rows.append((f"p{person:02}", year, list(STATES)[state]))
            state = int(rng.choice(3, p=MATRIX[state]))
    return dict(zip(("person", "year", "state"), map(list, zip(*rows, strict=True)), strict=True))


QUESTIONS = (
    Question("forecast", ("--steps", "3")),
    Question("effects", ("sequence",)),
)

MARKOV = Job(
    "sequences",
    {"careers.csv": careers},
    ("--symbol", "state", "--sequence", "person", "--time", "year", "--every", "1",
     "--model", "markov"),
    QUESTIONS,
    (
        longer(default=400, verbs=("forecast",)),
        other_seed(verbs=("forecast",)),
        reversed_rows(verbs=("forecast",)),
        shuffled_columns(tolerance=0.0, verbs=("forecast",)),
        renamed("state", STATES, verbs=("forecast",)),
        Variation(
            "units", "years from 0 on",
            tables=lambda name, t: changed(t, year=[year - 2000 for year in t["year"]]),
            verbs=("forecast",),
            back=lambda question, key, centre, sd: (
                tuple(f"{int(k) + 2000}" if k in ("12", "13", "14") else k for k in key), centre, sd
            ),
        ),
        with_column("note", lambda n: ["x"] * n, tolerance=0.0),
    ),
    reasons={("files", "*"): "a file becomes one table for all jobs: tests of the readers"},
)  # fmt: skip

JOBS = [MARKOV]
