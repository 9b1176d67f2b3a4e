"""Structured Gaussian fields at the size of every state, year and name.

Run from the repository's root, on as few threads as the comparison should use; names of newborns
are read from ``$PGMULT_DATA/names`` or downloaded once::

    OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.gaussian_fields scale [--repeats 3]
    python -m tests.benchmarks.gaussian_fields series [--times 100000]
    OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.gaussian_fields coverage

`scale` takes 51 states x 54 years x 200 names (1960 to 2013), cut to 50 births a cell and in full,
and prints for each structure and covariance the seconds that a draw of all 199 sticks takes (best
of the repeats), of a draw with means, variances and draws at all states in the next two years, of
the log normaliser, a draw on two threads, and the process' peak memory. The dense structure is
timed on a few sticks (``--dense 2``) and scaled.

`series` times one long series.

`coverage` hides cells (a tenth of the states and years), states (three of twelve) or the future
(the last three of fifty years) of twelve girls' names at full counts, predicts them by a few
covariances, and prints the verdict of `pgmult.fields.calibration`.
"""

import argparse
import resource
import time

import numpy as np

import pgmult
from pgmult import DiagonalPotential, StickBreaking
from pgmult.compiled.rows import row_threads
from pgmult.datasets.names import thin, us_names
from pgmult.fields.covariances import Constant, Matern, SquaredExponential, White
from pgmult.fields.priors.structures import make_field

YEARS = range(1960, 2014)


def names_potential(counts):
    """A potential as in a chain: Pólya-gamma variables at smoothed shares, sticks by frequency."""
    flat = counts.reshape(-1, counts.shape[-1])
    link = StickBreaking(order=np.argsort(-flat.sum(axis=0), kind="stable"))
    shares = flat.sum(axis=0) + 0.5
    smoothed = flat + 20.0 * shares / shares.sum()
    psi = link.inverse(smoothed / smoothed.sum(axis=1, keepdims=True))
    return link.augment(np.random.default_rng(0), psi, flat), psi.mean(axis=0)


def best_time(action, repeats):
    """Seconds of the best of some runs after one that compiles."""
    action()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def scale(repeats, num_dense):
    """The table of seconds; see the module."""
    data = us_names("M", 200, years=YEARS)
    inputs = data.inputs()
    new = us_names("M", 200, years=[2013, 2014]).inputs() + np.array([1.0, 0.0, 0.0])
    rng = np.random.default_rng(0)
    places = SquaredExponential(8.0, active=[1, 2])
    cases = [
        *(("state_space", f"Matern {nu}", Matern(nu, 15.0, active=[0]) * places)
          for nu in (0.5, 1.5, 2.5)),
        ("grid", "Matern 1.5", Matern(1.5, 15.0, active=[0]) * places),
        ("grid", "smooth", SquaredExponential(15.0, active=[0]) * places),
        ("inducing_points", "smooth", SquaredExponential(15.0, active=[0]) * places),
        ("dense", "Matern 1.5", Matern(1.5, 15.0, active=[0]) * places),
    ]  # fmt: skip
    for size, counts in (
        ("50 a cell", thin(data.counts, 50, 1)),
        ("full counts", data.counts),
    ):
        potential, mean = names_potential(counts)
        print(
            f"{size}: {len(inputs)} inputs, {len(mean)} sticks, largest J {potential.J.max():.3g}"
        )
        for structure, name, covariance in cases:
            sticks = num_dense if structure == "dense" else len(mean)
            if not sticks:
                continue
            some = DiagonalPotential(potential.J[:, :sticks], potential.h[:, :sticks])
            prior_mean = np.tile(mean[:sticks], (len(inputs), 1))
            field = make_field(structure, 2.0 * covariance, inputs, prior_mean).condition(some)
            actions = {"draw": lambda field=field: field.sample(rng)}
            if structure in ("state_space", "inducing_points"):
                actions["with prediction"] = lambda field=field: field.draw(rng, new)
                actions["log normalizer"] = field.log_normalizer
            seconds = {
                what: best_time(action, repeats) * len(mean) / sticks
                for what, action in actions.items()
            }
            with row_threads(2):
                seconds["draw, two threads"] = best_time(actions["draw"], repeats) * (
                    len(mean) / sticks
                )
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            row = "  ".join(f"{what} {value:.3f} s" for what, value in seconds.items())
            print(f"  {structure:16}{name:12}{row}  peak so far {peak:.0f} MB", flush=True)


def series(times):
    """One series of binomial counts with irregular times."""
    rng = np.random.default_rng(0)
    at = np.cumsum(rng.exponential(size=times))
    J = rng.gamma(2.0, size=(times, 1))
    potential = DiagonalPotential(J, rng.standard_normal(J.shape))
    for nu in (0.5, 1.5, 2.5):
        field = make_field("state_space", Matern(nu, 30.0), at).condition(potential)
        draw = best_time(lambda field=field: field.sample(rng), 2)
        evidence = best_time(field.log_normalizer, 2)
        print(f"{times} times, Matern {nu}: draw {draw:.3f} s, log normalizer {evidence:.3f} s")


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
    of_scale = commands.add_parser("scale")
    of_scale.add_argument("--repeats", type=int, default=3)
    of_scale.add_argument("--dense", type=int, default=0, help="sticks of the dense structure")
    of_series = commands.add_parser("series")
    of_series.add_argument("--times", type=int, default=100_000)
    of_coverage = commands.add_parser("coverage")
    of_coverage.add_argument("--draws", type=int, default=300)
    of_coverage.add_argument("--hidden", nargs="+", default=["cells", "states", "future"])
    options = parser.parse_args()
    if options.command == "scale":
        scale(options.repeats, options.dense)
    elif options.command == "coverage":
        coverage(options)
    else:
        series(options.times)


if __name__ == "__main__":
    main()
