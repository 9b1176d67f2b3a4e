"""Fields: shares of three categories over years and states, and what their checks see.

python -m tests.benchmarks.defaults fields --tables 20
python -m tests.benchmarks.defaults.fields 20        # power of the checks
"""

import sys
import warnings

import numpy as np

import pgmult
from pgmult.datasets.states import us_states
from pgmult.fields import MultinomialGP, as_field
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


def defects(rng, kind):
    """Counts of 20 years and 4 places, drawn as the model has them but for one defect."""
    years, places = np.arange(20.0), np.arange(4.0)
    inputs = np.array([(t, s) for t in years for s in places])
    t, s = inputs.T
    psi = np.stack([0.3 * np.sin(t / 5.0) + 0.2 * s, -0.5 + 0.03 * t], axis=1)
    if kind == "scatter between rows, variance .3":
        psi = psi + np.sqrt(0.3) * rng.standard_normal(psi.shape)
    if kind == "a step of 1 in log odds":
        psi[:, 0] += 1.0 * (t >= 10)
    if kind == "one place turns at half time, slope .1":
        psi[:, 0] += 0.1 * (t - 10.0) * (s == 3)
    return inputs, np.array([rng.multinomial(100, p) for p in StickBreaking().probs(psi)])


def power(num_tables):
    """Print how often a check sees each defect, by a model with and without effects of cells."""
    law = 1.0 * Matern(1.5, 7.0, active=[0]) * Matern(0.5, 1.0, active=[1])
    kinds = ("none", "scatter between rows, variance .3", "a step of 1 in log odds",
             "one place turns at half time, slope .1")  # fmt: skip
    print("| defect | effects of cells in the model | seen |\n|---|---|---|")
    for kind in kinds:
        for var in (0.0, 0.05):
            seen = 0
            for seed in range(num_tables):
                data = as_field(*defects(np.random.default_rng(seed), kind))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    run = pgmult.sample(
                        MultinomialGP(law, overdispersion=var), data, draws=100, tune=30, chains=2,
                        cores=1, random_seed=seed, progressbar=False,
                    )  # fmt: skip
                p = run.check(max_draws=100).p_values
                seen += bool(((p < 0.025) | (p > 0.975)).any())
            print(f"| {kind} | {'yes' if var else 'no'} | {seen} of {num_tables} |", flush=True)


if __name__ == "__main__":
    power(int(sys.argv[1]))
