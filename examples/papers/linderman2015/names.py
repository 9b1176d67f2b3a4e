"""Names of newborn boys in 48 states, 1960-2011, predicted for 2012 and 2013: Figure 3's table.

    python -m examples.papers.linderman2015.names --seconds 120 --out results

Writes ``names.csv``, a row for each method and year, ``names_time.csv``, the gain of the sampled
methods against time, and a drawing of it, ``names.png`` (if matplotlib is there). Needs the counts
(in the folder that PGMULT_DATA names, or a download).
"""

import argparse
import csv
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.special import digamma

import pgmult
from examples.papers.linderman2015.field_baselines import RawGP, Static
from examples.papers.linderman2015.field_scores import log_predictive, mean_over_rows, overlap
from examples.papers.linderman2015.newborns import thin, us_names
from examples.papers.linderman2015.softmax_gp import LogisticNormalGP
from pgmult.fields.covariances import Matern, SquaredExponential, White
from pgmult.fields.elsewhere import predict_at
from pgmult.fields.scores import calibration

OUTSIDE = ("AK", "HI", "DC")
TEST_YEARS = (2012, 2013)
WARM_UP = 60  # sweeps of few states that find a start of hyperparameters


@dataclass(frozen=True)
class Problem:
    """Thinned counts of the training years, full counts of the test years."""

    field: pgmult.fields.CountField
    test_counts: np.ndarray
    test_years: np.ndarray


@dataclass(frozen=True)
class Prediction:
    """Of the test rows: probabilities, draws of them, and the points of a curve against time.

    `probs` is as in the paper, of means of psi at the new inputs (given each draw, and averaged);
    `draws` are of the whole posterior and may be None.
    """

    probs: np.ndarray
    draws: np.ndarray | None
    seconds: float
    sweeps: int
    curve: list[tuple[float, np.ndarray]]


def load(options: argparse.Namespace) -> Problem:
    first = TEST_YEARS[0] - options.years
    years = range(first, TEST_YEARS[-1] + 1)
    boys = us_names("M", options.names, years=years)
    states = options.states or [state for state in boys.states if state not in OUTSIDE]
    boys = boys.take(states=states)
    training, test = boys.take(range(first, TEST_YEARS[0])), boys.take(TEST_YEARS)
    counts = thin(training.counts, options.births, options.seed)
    field = pgmult.fields.as_field(
        training.inputs(), counts.reshape(-1, options.names), test.inputs(),
        order="given", categories=boys.names,
    )  # fmt: skip
    return Problem(
        field, test.counts.reshape(-1, options.names), np.repeat(test.years, len(test.states))
    )


# ---------------------------------------------------------------- the methods, a function each


def static(problem: Problem, regression: RawGP, options: argparse.Namespace) -> Prediction:
    """The shares of 2011."""
    return Prediction(Static().predict_probs(problem.field), None, 0.0, 0, [])


def raw_gp(problem: Problem, regression: RawGP, options: argparse.Namespace) -> Prediction:
    """Regression on the sticks of the shares, at its own estimate of the hyperparameters."""
    start = time.process_time()
    draws = regression.sample_probs(problem.field, 200, options.seed)
    probs = regression.predict_probs(problem.field)
    return Prediction(probs, draws, time.process_time() - start, 0, [])


def lnm_gp(problem: Problem, regression: RawGP, options: argparse.Namespace) -> Prediction:
    """Softmax, mean 0, elliptical slice sampling, at the covariance of the Raw GP."""
    model = LogisticNormalGP(regression.covariance)
    return sample(model, problem, options)


def dirichlet_mean(order, concentration) -> np.ndarray:
    """Means of psi when the probabilities are Dirichlet: sticks are independent betas."""
    alpha = concentration[list(order)]
    rest = np.cumsum(alpha[::-1])[-2::-1]
    return digamma(alpha[:-1]) - digamma(rest)


def sbm_gp(problem: Problem, regression: RawGP, options: argparse.Namespace) -> Prediction:
    """Stick breaking, the mean of a uniform Dirichlet, at the covariance of the Raw GP."""
    mean = dirichlet_mean(problem.field.order, np.full(options.names, 2.0))
    model = pgmult.fields.MultinomialGP(
        with_scatter(regression.covariance), structure=options.structure, mean=mean,
        hyperparameters="fixed",
    )  # fmt: skip
    return sample(model, problem, options)


def with_scatter(covariance):
    """With next to no effects of cells, which the separable structure cannot do without."""
    return covariance + White(1e-4, fixed=["var"])


def sbm_gp_learned(problem: Problem, regression: RawGP, options: argparse.Namespace) -> Prediction:
    """As `sbm_gp`, the hyperparameters sampled along."""
    return learned(problem, with_scatter(regression.covariance), options)


def sbm_gp_rough(problem: Problem, regression: RawGP, options: argparse.Namespace) -> Prediction:
    """As `sbm_gp_learned`, by a covariance whose intervals hold: the paper's is too smooth."""
    rough = Matern(1.5, 20.0, active=[0]) * Matern(0.5, 20.0, active=[1, 2])
    return learned(problem, 2.0 * rough + White(0.05), options)


def learned(problem: Problem, covariance, options: argparse.Namespace) -> Prediction:
    """Hyperparameters start where they are for every fourth state, which is found in no time."""
    mean = dirichlet_mean(problem.field.order, np.full(options.names, 2.0))
    model = pgmult.fields.MultinomialGP(covariance, structure=options.structure, mean=mean)
    begin = time.process_time()
    part = every_fourth_place(problem.field)
    eager = replace(model, hyperparameter_rate=1.0)
    rng = np.random.default_rng(options.seed)
    state = eager.init(rng, part)
    for _ in range(WARM_UP):
        state = eager.step(rng, state, part)
    start = model.covariance.with_log_params(np.log(state.hyperparameters[0]))
    passed = time.process_time() - begin
    print(f"start at {state.hyperparameters[0].round(3)}, {passed:.1f} s", flush=True)
    return sample(replace(model, covariance=start), problem, options, passed)


def every_fourth_place(field: pgmult.fields.CountField) -> pgmult.fields.CountField:
    _, place = np.unique(field.inputs[:, 1:], axis=0, return_inverse=True)
    some = place.reshape(-1) % 4 == 0
    return pgmult.fields.as_field(field.inputs[some], field.counts[some], order=field.order)


METHODS = {
    "static": static,
    "raw_gp": raw_gp,
    "lnm_gp": lnm_gp,
    "sbm_gp": sbm_gp,
    "sbm_gp_learned": sbm_gp_learned,
    "sbm_gp_rough": sbm_gp_rough,
}


def learned_raw_gp(problem: Problem) -> RawGP:
    """The regression whose covariance, but not its noise, the other methods take over."""
    covariance = 1.0 * Matern(2.5, 30.0, active=[0]) * SquaredExponential(5.0, active=[1, 2])
    return RawGP(covariance).learned(problem.field)


def sample(model, problem: Problem, options: argparse.Namespace, before: float = 0.0) -> Prediction:
    """Sweeps for some seconds of one processor; predictions average over the second half."""
    rng, omegas = (np.random.default_rng(options.seed + i) for i in range(2))
    link = model.link(problem.field)
    clock = time.process_time
    model.step(rng, model.init(rng, problem.field), problem.field)  # compile
    begin = clock()
    state = model.init(rng, problem.field)
    passed, times, plugged, draws = before + clock() - begin, [], [], []
    while passed < options.seconds or len(times) < 4:
        begin = clock()
        state = model.step(rng, state, problem.field)
        draws.append(model.pi_new(state, problem.field).astype(np.float32))
        mean = mean_at_new_inputs(omegas, model, state, problem)
        plugged.append(link.probs(mean).astype(np.float32))
        passed += clock() - begin
        times.append(passed)
    half = len(times) // 2
    curve = [
        (times[end - 1], normalised(np.mean(plugged[end // 2 : end], axis=0)))
        for end in np.unique(np.geomspace(1, len(times), 25).astype(int))
    ]
    print(f"ends at {state.hyperparameters.round(3).tolist()}", flush=True)
    probs = normalised(np.mean(plugged[half:], axis=0))
    return Prediction(probs, normalised(np.array(draws[half:])), passed, len(times), curve)


def mean_at_new_inputs(rng, model, state, problem: Problem) -> np.ndarray:
    """Means of psi at the new inputs given what the state has at the others."""
    if isinstance(model, pgmult.fields.MultinomialGP):
        return predict_at(rng, model, state, problem.field, problem.field.new_inputs).mean
    return model.psi_new_mean(state, problem.field)


def normalised(probs: np.ndarray) -> np.ndarray:
    probs = probs.astype(np.float64)
    return probs / probs.sum(axis=-1, keepdims=True)


# ---------------------------------------------------------------- the table


def by_sort_order(probs: np.ndarray, counts: np.ndarray, size: int, *, lowest: bool) -> np.ndarray:
    """The overlap as the paper counted it: the sort decides among equal counts."""
    chosen = slice(-size, None) if lowest else slice(size)
    return np.array(
        [
            len(np.intersect1d(np.argsort(-p)[chosen], np.argsort(-x)[chosen]))
            for p, x in zip(probs, counts, strict=True)
        ],
        dtype=np.float64,
    )


def score(name: str, found: Prediction, reference: np.ndarray, problem: Problem) -> Iterable[dict]:
    """A row for each test year; errors are standard errors over states."""
    size = min(10, found.probs.shape[1])
    for year in TEST_YEARS:
        rows = problem.test_years == year
        probs, counts = found.probs[rows], problem.test_counts[rows]
        plain = log_predictive(reference[rows], counts)
        totals = counts.sum(axis=1)
        row = {
            "method": name,
            "year": year,
            "seconds": round(found.seconds, 1),
            "sweeps": found.sweeps,
        }
        for end, lowest in (("top", False), ("bottom", True)):
            row[end], row[f"{end}_error"] = mean_over_rows(
                overlap(probs, counts, size, lowest=lowest)
            )
            row[f"{end}_by_sort"] = by_sort_order(probs, counts, size, lowest=lowest).mean()
        row["gain"], row["gain_error"] = mean_over_rows(
            log_predictive(probs, counts) - plain, totals
        )
        row["log_predictive"], row["log_predictive_error"] = "", ""
        row["gain_of_mean"], row["coverage"] = "", ""
        if found.draws is not None:
            draws = found.draws[:, rows]
            row["log_predictive"], row["log_predictive_error"] = mean_over_rows(
                log_predictive(draws, counts)
            )
            row["coverage"] = calibration(draws, counts, random_seed=0).covered[-1]
            row["gain_of_mean"], _ = mean_over_rows(
                log_predictive(normalised(draws.mean(axis=0)), counts) - plain, totals
            )
        yield row


def gains(found: Prediction, reference: np.ndarray, problem: Problem) -> list[tuple[float, float]]:
    """Nats a name over `reference`, both test years together, against seconds."""
    totals = problem.test_counts.sum(axis=1)
    plain = log_predictive(reference, problem.test_counts)
    return [
        (seconds, mean_over_rows(log_predictive(p, problem.test_counts) - plain, totals)[0])
        for seconds, p in found.curve
    ]


def show(rows: list[dict]) -> None:
    for row in rows:
        text = (
            f"{row['method']:>15} {row['year']}: top-10 {row['top']:.2f} ± {row['top_error']:.2f}"
            f" (by sort {row['top_by_sort']:.1f}), bottom-10 {row['bottom']:.2f} ±"
            f" {row['bottom_error']:.2f} (by sort {row['bottom_by_sort']:.1f}),"
            f" {row['gain']:+.3f} ± {row['gain_error']:.3f} nats a name"
        )
        if row["log_predictive"] != "":
            text += (
                f"; mean of draws {row['gain_of_mean']:+.3f}, log predictive density"
                f" {row['log_predictive']:.0f} ± {row['log_predictive_error']:.0f} a state; 95 %"
                f" intervals hold {row['coverage']:.0%} of the counts"
            )
        print(text, flush=True)


def figure(curves: dict[str, list[tuple[float, float]]], path: Path) -> None:
    from matplotlib.figure import Figure

    sheet = Figure(figsize=(5.2, 3.8), layout="constrained")
    axes = sheet.subplots()
    for name, curve in curves.items():
        axes.plot(*zip(*curve, strict=True), label=name)
    axes.set(xscale="log", xlabel="seconds", ylabel="nats a name over Static")
    axes.legend(frameon=False)
    sheet.savefig(path, dpi=150)


def write(rows: list[dict], path: Path) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def main(options: argparse.Namespace) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    problem = load(options)
    print(problem.field, flush=True)
    begin = time.process_time()
    regression = learned_raw_gp(problem)
    values = np.exp(regression.covariance.log_params).round(3).tolist()
    print(
        f"{dict(zip(regression.covariance.param_names, values, strict=True))}, noise_var"
        f" {regression.noise_var:.3f}, learned in {time.process_time() - begin:.1f} s",
        flush=True,
    )
    reference = static(problem, regression, options).probs
    rows, curves = [], {}
    for name in options.methods:
        found = METHODS[name](problem, regression, options)
        new = list(score(name, found, reference, problem))
        rows += new
        show(new)
        if found.curve:
            curves[name] = gains(found, reference, problem)
            last = curves[name][-1][1]
            near = next(seconds for seconds, gain in curves[name] if abs(gain - last) < 0.01)
            print(
                f"{name:>15}: {found.sweeps} sweeps in {found.seconds:.0f} s, within 0.01 nats of"
                f" {last:.3f} after {near:.1f} s",
                flush=True,
            )
        write(rows, options.out / "names.csv")
    if curves:
        points = [
            {"method": name, "seconds": seconds, "gain": gain}
            for name, curve in curves.items()
            for seconds, gain in curve
        ]
        write(points, options.out / "names_time.csv")
        try:
            figure(curves, options.out / "names.png")
        except ImportError:
            print("no drawing without matplotlib")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the tables")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS)[:4])
    parser.add_argument("--seconds", type=float, default=60.0, help="for each sampled method")
    parser.add_argument("--names", type=int, default=100)
    parser.add_argument("--states", nargs="+", help="postal codes; by default 48")
    parser.add_argument("--years", type=int, default=52, help="of training, the last one 2011")
    parser.add_argument("--births", type=int, default=50, help="kept of each state and year")
    parser.add_argument("--structure", default="auto", help="of the stick-breaking fields")
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
