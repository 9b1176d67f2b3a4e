"""Coverage and scores of Gaussian fields where cells, states or the future are hidden.

Run from the repository's root, on as few threads as the comparison should use; names of newborns
are read from ``$PGMULT_DATA/names`` or downloaded once::

    OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.gaussian_fields coverage

Hides cells (a tenth of the states and years), states (three of twelve) or the future (the last
three of fifty years) of twelve girls' names at full counts, predicts them by a few covariances, and
prints the verdict of `pgmult.fields.calibration`.
"""

import argparse
import time

import numpy as np

import pgmult
from pgmult.datasets.names import us_names
from pgmult.fields.covariances import Constant, Matern, SquaredExponential, White

COVARIANCES = {
    "smooth": Matern(2.5, 15.0, active=[0]) * SquaredExponential(5.0, active=[1, 2]),
    "rough": Matern(1.5, 15.0, active=[0]) * Matern(0.5, 20.0, active=[1, 2]),
}
LAWS = {
    "Matern 5/2 x SE": 2.0 * COVARIANCES["smooth"],
    "Matern 3/2 x 1/2": 2.0 * COVARIANCES["rough"],
    "Matern 3/2 x 1/2 + White": 2.0 * COVARIANCES["rough"] + White(0.05),
    "... + a path of a state": 2.0 * COVARIANCES["rough"]
    + Constant(0.1) * Matern(1.5, 10.0, active=[0]) * White(active=[1, 2], fixed=["var"])
    + White(0.05),
}


def coverage(options):
    """The verdicts; see the module."""
    states = ["CA", "CO", "FL", "GA", "IL", "MA", "MN", "NY", "OH", "PA", "TX", "WA"]
    names = us_names("F", 12, years=range(1964, 2014), states=states)
    inputs, counts = names.inputs(), names.counts.reshape(-1, 12)
    state = np.arange(len(inputs)) % len(states)
    kinds = {
        "cells": np.random.default_rng(0).random(len(inputs)) < 0.1,
        "states": np.isin(state, [1, 5, 8]),
        "future": inputs[:, 0] > 2010,
    }
    for kind in options.hidden:
        hidden = kinds[kind]
        data = pgmult.fields.as_field(inputs[~hidden], counts[~hidden], inputs[hidden])
        for name, law in LAWS.items():
            model = pgmult.fields.MultinomialGP(law, structure="state_space")
            start = time.process_time()
            posterior = pgmult.sample(
                model, data, draws=options.draws, tune=options.draws // 3, chains=1, cores=1,
                random_seed=0, progressbar=False, keep=["pi_new", "hyperparameters"],
            )  # fmt: skip
            found = pgmult.fields.predict(posterior, data=data, inputs="new", max_draws=None)
            said = found.calibration(counts[hidden], random_seed=0)
            score = found.log_predictive_density(counts[hidden]).mean()
            print(
                f"{kind}, {name} ({time.process_time() - start:.0f} s): {said.coverage} of"
                f" {said.num_cells}; {score:.1f} nats a row\n    {said.verdict}",
                flush=True,
            )


def main():
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    of_coverage = commands.add_parser("coverage")
    of_coverage.add_argument("--draws", type=int, default=300)
    of_coverage.add_argument("--hidden", nargs="+", default=["cells", "states", "future"])
    options = parser.parse_args()
    coverage(options)


if __name__ == "__main__":
    main()
