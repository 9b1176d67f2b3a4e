"""Sequences: panels by Markov chains, a fifth of whose cells are missing."""

import numpy as np

from tests.benchmarks.defaults.frame import Design, Truth
from tests.invariances.frame import Question

STATES, STEPS, AHEAD = ("well", "ill", "worse"), 10, 5
COLUMNS = ("--symbol", "state", "--sequence", "person", "--time", "year", "--every", "1")


def panel(rng):
    """100 people, yearly, by a matrix whose states last two to twenty years."""
    stays = 1.0 - 1.0 / rng.uniform(2.0, 20.0, 3)
    matrix = np.diag(stays)
    for i in range(3):
        matrix[i, np.arange(3) != i] = (1.0 - stays[i]) * rng.dirichlet([2.0, 2.0])
    rows = []
    for person in range(100):
        state = rng.integers(3)
        for year in range(2000, 2000 + STEPS):
            observed = STATES[state] if rng.random() > 0.2 else None
            rows.append((f"p{person:02}", year, observed))
            state = rng.choice(3, p=matrix[state])
    table = dict(zip(("person", "year", "state"), map(list, zip(*rows, strict=True)), strict=True))
    moves, lasts = Question("transitions"), Question("transitions", ("--durations",))
    shares = Question("transitions", ("--occupancy", str(AHEAD)))
    truths = []
    for i, before in enumerate(STATES):
        truths.append(Truth("mean durations", lasts, (before,), float(1.0 / (1.0 - stays[i]))))
        for j, after in enumerate(STATES):
            truths.append(Truth("transitions", moves, (before, after), float(matrix[i, j])))
            for step in (2, AHEAD):
                share = np.linalg.matrix_power(matrix, step)[i, j]
                key = (before, str(step), after)
                truths.append(Truth("shares up to five steps ahead", shares, key, float(share)))
    return {"panel.csv": table}, truths


FIT = (*COLUMNS, "--model", "markov", "--drop-incomplete")
DESIGNS = [Design("panels with a fifth of the cells missing", "sequences", FIT, panel)]
