r"""Figures 1 and 3 of Knowles and Minka (2011): one logistic factor, and synthetic regressions.

    python -m examples.papers.knowles2011.figures figure1 figure3 --out results

prints tables and draws ``figure1.png`` and ``figure3.png`` into the folder given as ``--out``, in
five seconds and three minutes. Figure 1 is about log(1 + e^x) of a Gaussian x, and about
sigma(x) pi(x), the posterior of x ~ pi, a Gaussian, after one success. Figure 3 regresses labels,
of two classes or of four,

    y_n ~ softmax(x_n' w_k + noise * e_nk),    x_n, w_k ~ N(0, I),    e_nk ~ N(0, 1),

on eight covariates: how far means of weights are from the truth, how likely q finds the truth, and
how many iterations that took. The exact posterior's means are those of long Gibbs sampling.
"""

import argparse
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from scipy.linalg import block_diag
from scipy.special import log_expit, softmax

import pgmult
from examples.papers.regressions.bounds import LOG_SUM_EXP, SOFTPLUS
from examples.papers.regressions.classes import SoftmaxRows, SoftmaxSite, SoftplusSite
from examples.papers.regressions.data import as_counted_rows, as_labelled_rows
from examples.papers.regressions.designs import Rows
from examples.papers.regressions.logistic import LogisticRegression
from examples.papers.regressions.multinomial import SoftmaxRegression
from examples.papers.regressions.solver import fit_sites
from pgmult.priors import MvNormal

METHODS = ("quadratic", "log", "tilted", "bohning", "taylor", "quadrature")
COLORS = ("#588157", "#2a6f97", "#c8553d", "#6d597a", "#b08900", "#7a7a7a")
STYLES = {name: {"color": color} for name, color in zip(METHODS, COLORS, strict=True)}
STYLES["taylor"] |= {"linestyle": (0, (1, 1.5)), "linewidth": 2.2}  # often upon the tilted bound
EXACT = {"color": "#111111", "linewidth": 1.2, "label": "exact"}
NUM_WEIGHTS = 8
SIZES = (10, 20, 30, 50, 100, 200, 500, 1000)
NOISES = (0.0, 0.5, 1.0, 2.0, 4.0)


# ---------------------------------------------------------------- Figure 1: one factor


def toy(method: str, mean: float, var: float) -> tuple[float, float]:
    """Mean and variance of the Gaussian that is best for sigma(x) N(x | mean, var) by a bound."""
    one = np.ones((1, 1))
    site = SoftplusSite(np.ones(1), np.ones(1), SOFTPLUS[method])
    fit = fit_sites(Rows(one), site, MvNormal(np.array([mean]), var * one), tolerance=1e-5)
    return float(fit.mean[0, 0]), float(fit.cov[0, 0, 0])


def exact_toy(mean: float, var: float) -> tuple[float, float, np.ndarray, np.ndarray]:
    """Mean and variance of it, and its density on a grid."""
    x = mean + np.sqrt(var) * np.linspace(-9.0, 9.0, 4001)
    density = np.exp(log_expit(x) - 0.5 * (x - mean) ** 2 / var)
    density /= density.sum() * (x[1] - x[0])
    share = density / density.sum()
    centre = share @ x
    return float(centre), float(share @ (x - centre) ** 2), x, density


def figure1(options: argparse.Namespace) -> None:
    """Excesses of bounds of E log(1 + e^x), and Gaussians of sigma(x) pi(x)."""
    sheet, panels = panels_of(2, 3)
    for axes, (name, means, variances) in zip(
        panels[0],
        (("mean, variance 10", np.linspace(-15.0, 15.0, 121), 10.0),
         ("variance, mean 0", 0.0, np.geomspace(0.01, 100.0, 81))),
        strict=False,
    ):  # fmt: skip
        mean, var = np.broadcast_arrays(means, variances)
        exact = SOFTPLUS["quadrature"].expect(mean, var)[0]
        for method in METHODS[:-1]:
            excess = np.abs(SOFTPLUS[method].expect(mean, var)[0] - exact)
            axes.plot(means if np.ndim(means) else variances, excess, **STYLES[method])
        axes.set(yscale="log", ylim=(1e-6, 1e2), xlabel=name)
        axes.set_ylabel("|bound - E log(1 + e^x)|, nats")
    panels[0][1].set(xscale="log")

    prior = 0.0, 10.0
    x, density = exact_toy(*prior)[2:]
    panels[0][2].plot(x, density, **EXACT)
    for method in METHODS:
        mean, var = toy(method, *prior)
        curve = np.exp(-0.5 * (x - mean) ** 2 / var) / np.sqrt(2.0 * np.pi * var)
        panels[0][2].plot(x, curve, **STYLES[method], label=method)
    panels[0][2].set(xlim=(-5.0, 12.0), ylabel="density", xlabel="x, prior N(0, 10)")
    panels[0][2].legend(frameon=False, fontsize=8)

    ways = {
        "prior mean, variance 10": [(m, 10.0) for m in np.linspace(-15.0, 15.0, 31)],
        "prior variance, mean 0": [(0.0, v) for v in np.geomspace(0.1, 100.0, 31)],
    }
    drawn = (
        (0, 0, "posterior mean - exact"),
        (0, 1, "posterior sd / exact"),
        (1, 1, "posterior sd / exact"),
    )
    for axes, (way, of_sd, label) in zip(panels[1], drawn, strict=True):
        name, priors = list(ways.items())[way]
        at = [prior[way] for prior in priors]
        exact = np.array([exact_toy(*prior)[:2] for prior in priors])
        for method in METHODS:
            found = np.array([toy(method, *prior) for prior in priors])
            gap = np.sqrt(found[:, 1] / exact[:, 1]) if of_sd else found[:, 0] - exact[:, 0]
            axes.plot(at, gap, **STYLES[method])
        axes.axhline(float(of_sd), **EXACT)
        axes.set(xlabel=name, ylabel=label, xscale="log" if way else "linear")
    save(sheet, options.out / "figure1.png")

    print("posterior of x ~ N(m, v) after one success: mean, standard deviation")
    for prior in ((0.0, 1.0), (0.0, 10.0), (-5.0, 10.0), (0.0, 100.0)):
        mean, var = exact_toy(*prior)[:2]
        cells = [f"exact {mean:.3f} {var**0.5:.3f}"]
        for method in METHODS:
            mean, var = toy(method, *prior)
            cells.append(f"{method} {mean:.3f} {var**0.5:.3f}")
        print(f"m = {prior[0]:g}, v = {prior[1]:g}: " + ", ".join(cells))


# ---------------------------------------------------------------- Figure 3: synthetic regressions


def synthetic(seed: int, num_classes: int, num_rows: int, noise: float):
    """Covariates, labels and true weights ``(class, weight)``; all sets of a seed share numbers."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((num_classes, NUM_WEIGHTS))
    x = rng.standard_normal((max(SIZES), NUM_WEIGHTS))[:num_rows]
    stray = rng.standard_normal((max(SIZES), num_classes))[:num_rows]
    u = rng.random(max(SIZES))[:num_rows]
    if num_classes == 2:  # the first class's weights are 0, and so is its noise
        truth[0], stray[:, 0] = 0.0, 0.0
    above = np.cumsum(softmax(x @ truth.T + noise * stray, axis=1), axis=1)
    labels = np.minimum((u[:, None] > above).sum(axis=1), num_classes - 1)
    return x, labels, truth


def fit(method: str, x: np.ndarray, labels: np.ndarray, num_classes: int):
    """The Gaussians of all weights, or of the second class's where there are two."""
    prior = MvNormal(np.zeros(NUM_WEIGHTS), np.eye(NUM_WEIGHTS))
    if num_classes == 2:
        return fit_sites(Rows(x), SoftplusSite(labels, np.ones(len(x)), SOFTPLUS[method]), prior)
    site = SoftmaxSite(np.eye(num_classes)[labels], LOG_SUM_EXP[method])
    return fit_sites(SoftmaxRows(x, num_classes), site, prior, max_iterations=1000)


def plain_iterations(method: str, x: np.ndarray, labels: np.ndarray, most: int = 1000) -> float:
    """Rounds of messages as the paper has them, all at once and in full; inf if they never end."""
    site = SoftplusSite(labels, np.ones(len(x)), SOFTPLUS[method])
    mean, precision = np.zeros(NUM_WEIGHTS), np.eye(NUM_WEIGHTS)
    for round_ in range(most):
        cov = np.linalg.inv(precision)
        psi, var = x @ mean, np.einsum("ni,ij,nj->n", x, cov, x)
        _, d_mean, d_var = site.expect(psi, var)
        J = -2.0 * d_var  # the Gaussian message of a row: its J and h
        precision = np.eye(NUM_WEIGHTS) + x.T @ (J[:, None] * x)
        step = np.linalg.solve(precision, x.T @ (d_mean + J * psi)) - mean
        mean = mean + step
        if step @ precision @ step < 1e-10:
            return round_ + 1
    return np.inf


def centred(weights: np.ndarray) -> np.ndarray:
    """A softmax sees no more of several classes' weights than how they differ."""
    return weights - weights.mean(axis=0) if len(weights) > 2 else weights[-1:]


def log_density_a_weight(fit, truth: np.ndarray) -> float:
    """Of the truth under q, which punishes wrong variances: of several classes, how they differ."""
    classes = len(fit.mean)
    seen = np.eye(classes)[:-1] - np.eye(classes)[-1] if classes > 1 else np.eye(1)
    seen = np.kron(seen, np.eye(NUM_WEIGHTS))
    root = np.linalg.cholesky(seen @ block_diag(*fit.cov) @ seen.T)
    gap = np.linalg.solve(root, seen @ (truth[-classes:] - fit.mean).ravel())
    return float(np.mean(-0.5 * gap * gap - np.log(np.diag(root))) - 0.5 * np.log(2.0 * np.pi))


def exact_mean(x: np.ndarray, labels: np.ndarray, num_classes: int, draws: int) -> np.ndarray:
    """Posterior means by Gibbs sampling, ``(class, weight)``."""
    if num_classes == 2:
        model, rows = LogisticRegression(), as_labelled_rows(x, labels)
    else:
        model = SoftmaxRegression()
        rows = as_counted_rows(x, np.eye(num_classes, dtype=int)[labels])
    posterior = pgmult.sample(
        model, rows, draws=draws, tune=draws // 4, chains=1, random_seed=0, progressbar=False
    )
    mean = posterior["weights"].mean(axis=(0, 1))
    return np.atleast_2d(mean)


def figure3(options: argparse.Namespace) -> None:
    """Medians and quartiles over synthetic sets, against their rows and against the noise."""
    ways = {
        "rows": [(size, 0.0) for size in SIZES],
        "noise": [(options.rows, noise) for noise in NOISES],
    }
    measures = ("error of weights", "log density of the truth, a weight", "iterations")
    sheet, panels = panels_of(2 * len(options.classes), 3)
    for (num_classes, (way, points)), row in zip(
        product(options.classes, ways.items()), panels, strict=True
    ):
        found = {method: [] for method in METHODS}
        exact, plain = [], {method: [] for method in METHODS}
        for size, noise in points:
            sets = [synthetic(seed, num_classes, size, noise) for seed in range(options.sets)]
            at = {method: [] for method in METHODS}
            for x, labels, truth in sets:
                for method in METHODS:
                    q = fit(method, x, labels, num_classes)
                    error = rms(centred(q.mean) - centred(truth))
                    at[method].append((error, log_density_a_weight(q, truth), q.num_iterations))
            for method in METHODS:
                found[method].append(np.percentile(at[method], (25, 50, 75), axis=0))
                if num_classes == 2:
                    rounds = [plain_iterations(method, x, labels) for x, labels, _ in sets]
                    plain[method].append(np.median(rounds))
            if options.draws:
                errors = [
                    rms(centred(exact_mean(x, labels, num_classes, options.draws)) - centred(truth))
                    for x, labels, truth in sets
                ]
                exact.append(np.median(errors))
        at = [size if way == "rows" else noise for size, noise in points]
        report(num_classes, way, at, found, plain, exact)
        for place, (axes, label) in enumerate(zip(row, measures, strict=True)):
            for method in METHODS:
                low, middle, high = np.array(found[method])[:, :, place].T
                axes.plot(at, middle, **STYLES[method], label=method)
                color = STYLES[method]["color"]
                axes.fill_between(at, low, high, color=color, alpha=0.12, linewidth=0)
                if place == 2 and num_classes == 2:
                    axes.plot(at, plain[method], color=color, linestyle="--", linewidth=1.0)
            if place == 0 and exact:
                axes.plot(at, exact, **(EXACT | {"linestyle": "--"}))
            axes.set(xlabel=way, ylabel=label, xscale="log" if way == "rows" else "linear")
            axes.set_yscale("log" if place != 1 else "linear")
            axes.set_title(f"{num_classes} classes" + (f", {points[0][0]} rows" * (way == "noise")))
    panels[0][0].legend(frameon=False, fontsize=8)
    save(sheet, options.out / "figure3.png")


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values * values)))


def report(num_classes: int, way: str, at, found, plain, exact) -> None:
    """Medians, a line for each method and measure."""
    print(f"\n{num_classes} classes, {way}: " + "  ".join(f"{value:g}" for value in at))
    lines = {"error, exact": exact} if exact else {}
    for place, measure in enumerate(("error", "log density", "iterations")):
        for method in METHODS:
            lines[f"{measure}, {method}"] = np.array(found[method])[:, 1, place]
    if num_classes == 2:
        lines |= {f"iterations as in the paper, {method}": plain[method] for method in METHODS}
    for name, values in lines.items():
        print(f"{name:40}" + "".join(f"{value:9.3f}" for value in values), flush=True)


# ---------------------------------------------------------------- drawing


def panels_of(rows: int, columns: int):
    from matplotlib.figure import Figure

    sheet = Figure(figsize=(4.0 * columns, 3.2 * rows), layout="constrained")
    panels = sheet.subplots(rows, columns, squeeze=False)
    for axes in panels.ravel():
        axes.spines[["top", "right"]].set_visible(False)
    return sheet, panels


def save(sheet, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.savefig(path, dpi=150)


def main(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore", pgmult.ConvergenceWarning)  # one chain a data set
    for name in options.figures:
        {"figure1": figure1, "figure3": figure3}[name](options)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figures", nargs="+", choices=["figure1", "figure3"])
    parser.add_argument("--out", type=Path, required=True, help="folder for the figures")
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--sets", type=int, default=10, help="synthetic data sets at each point")
    parser.add_argument("--rows", type=int, default=100, help="where the noise varies")
    parser.add_argument("--draws", type=int, default=2000, help="from the exact one; 0 for none")
    main(parser.parse_args())
