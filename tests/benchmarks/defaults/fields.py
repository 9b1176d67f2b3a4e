"""Fields: shares of three categories over years and states.

python -m tests.benchmarks.defaults fields --tables 20
"""

import numpy as np

from pgmult.datasets.states import us_states
from pgmult.fields.covariances import GreatCircle, Matern
from pgmult.links import StickBreaking
from tests.benchmarks.defaults.frame import Design, Truth
from tests.invariances.frame import Question

STATES, ELSEWHERE, NAMES = ("Ohio", "Texas", "Iowa", "Utah", "Maine"), "Georgia", ("a", "b", "c")
YEARS, AHEAD = tuple(range(2000, 2012)), (2012, 2016)


def shares(rng):
    """100 counts a year and state; a smooth field with effects of cells, and its shares."""
    at = us_states()
    cells = [(y, s) for y in (*YEARS, *AHEAD) for s in (*STATES, ELSEWHERE)]
    x = np.array([(year, *at[state]) for year, state in cells])
    reach = np.exp(rng.normal(0.0, 0.5, 2)) * (5.0, 1000.0)
    smooth = Matern(1.5, reach[0], active=[0]) * GreatCircle(reach[1], 1, 2)
    root = np.linalg.cholesky(smooth.cov(x) + 1e-9 * np.eye(len(x)))
    psi = rng.normal(0.0, 0.7, 2) + root @ rng.standard_normal((len(x), 2))
    psi += np.sqrt(0.05) * rng.standard_normal(psi.shape)
    pi = StickBreaking().probs(psi)
    table = {"year": [], "state": [], "name": [], "n": []}
    new = {"year": [], "state": []}
    predicted, exported = Question("predict", ("new.csv",)), Question("export")
    truths = []
    for (year, state), probs in zip(cells, pi, strict=True):
        if year in YEARS and state != ELSEWHERE:
            kind, question = "cells", exported
            for name, n in zip(NAMES, rng.multinomial(100, probs), strict=True):
                for column, value in zip(table.values(), (year, state, name, int(n)), strict=True):
                    column.append(value)
        elif (state == ELSEWHERE) == (year in YEARS):
            kind = "a new place" if year in YEARS else f"{year - YEARS[-1]} years ahead"
            question = predicted
            new["year"].append(year)
            new["state"].append(state)
        else:
            continue
        truths += [
            Truth(kind, question, (str(year), state, name), float(p))
            for name, p in zip(NAMES, probs, strict=True)
        ]
    return {"shares.csv": table, "new.csv": new}, truths


DESIGNS = [
    Design(
        "Gaussian process", "fields",
        ("--inputs", "year", "state", "--places", "us-states", "--category", "name",
         "--count", "n"),
        shares,
    ),
]  # fmt: skip
