"""Figure 2 and Table 1 of Knowles and Minka (2011), with the stick-breaking regressions beside.

    python -m examples.papers.knowles2011.tables figure2 iris glass thyroid accuracy --out results

prints them, and draws ``results/figure2.png`` (which needs matplotlib; leave `--out` away if you
have none). ``accuracy`` is how far every approximation is from long chains of the same model, on
one half of each of ``--data``. The data sets of UCI are in the folder that PGMULT_DATA names
(``uci/iris.npz``, ...); what is not there is left out. Every data set is halved at random 16 times
(``--splits``); covariates are standardised on the training half, with an intercept, and weights of
all classes are N(0, 1).
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.linalg import block_diag

import pgmult
from examples.papers.knowles2011.classifier import MultinomialRegression
from examples.papers.knowles2011.long_chains import (
    hamiltonian,
    posterior,
    predictors,
    probit_probs,
    probit_rows,
    softmax_probs,
    softmax_rows,
)
from examples.papers.knowles2011.probit import MultinomialProbit
from examples.papers.regressions.bounds import LOG_SUM_EXP
from examples.papers.regressions.data import as_counted_rows
from examples.papers.regressions.multinomial import StickBreakingRegression
from examples.papers.regressions.multinomial_fits import fit_stick_breaking_regression, stick_probs
from pgmult.links import StickBreaking
from pgmult.sampling.diagnostics import ess_bulk, mcse_mean, r_hat

# of `MultinomialRegression`, and the probit; with "/full" one Gaussian of all
# classes, else one for each
METHODS = (
    "quadratic", "log", "tilted", "bohning", "adaptive", "quadrature", "tilted/full",
    "taylor/full", "laplace/full", "probit", "mean_field", "sticks", "gibbs",
)  # fmt: skip
STAND_INS = [name for name in LOG_SUM_EXP if name != "quadrature"]
Regression = MultinomialRegression | MultinomialProbit
SIZES = (3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)


def panels(repetitions: int):
    """What varies, and the means and variances at each of its values, ``(repetition, class)``.

    Means are the same standard normal numbers everywhere, so that curves differ by what varies.
    """
    rng = np.random.default_rng(0)
    many = rng.standard_normal((repetitions, max(SIZES)))
    ten = many[:, :10]
    yield "variance", [(v, ten, np.full(ten.shape, v)) for v in np.geomspace(0.01, 100.0, 17)]
    yield "classes", [(k, many[:, :k], np.ones((repetitions, k))) for k in SIZES]
    yield "sd of means", [(s, s * ten, np.ones(ten.shape)) for s in np.geomspace(0.1, 100.0, 13)]


def figure2(options: argparse.Namespace) -> None:
    """Log10 of the mean relative error of each stand-in for E log sum exp.

    Against the variance, the number of classes and the spread of the means; what does not vary is
    1, and there are ten classes.
    """
    tables = {}
    for title, points in panels(options.repetitions):
        print(f"\n{title:11}" + "".join(f"{name:>11}" for name in STAND_INS))
        for at, mean, var in points:
            exact = LOG_SUM_EXP["quadrature"].expect(mean, var)[0]
            errors = [
                np.log10(np.mean(np.abs(LOG_SUM_EXP[name].expect(mean, var)[0] / exact - 1.0)))
                for name in STAND_INS
            ]
            tables.setdefault(title, []).append((at, *errors))
            print(f"{at:<11.4g}" + "".join(f"{error:11.2f}" for error in errors))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        draw(tables, options.out / "figure2.png")


def draw(tables: dict[str, list[tuple[float, ...]]], path: Path) -> None:
    """A panel for each table, a curve for each stand-in."""
    from matplotlib.figure import Figure

    colors = ("#2a6f97", "#c8553d", "#588157", "#6d597a", "#b08900", "#111111")
    sheet = Figure(figsize=(12.0, 3.8), layout="constrained")
    for axes, (title, rows) in zip(sheet.subplots(1, len(tables)), tables.items(), strict=True):
        at, *curves = zip(*rows, strict=True)
        for name, curve, color in zip(STAND_INS, curves, colors, strict=True):
            on_top = {"linestyle": (0, (1, 2)), "linewidth": 2.5} if name == "adaptive" else {}
            axes.plot(at, curve, color=color, label=name, **on_top)
        axes.set(xscale="log", xlabel=title)
        axes.spines[["top", "right"]].set_visible(False)
    sheet.axes[0].set_ylabel("log10 of the mean relative error")
    sheet.axes[0].legend(frameon=False, fontsize=8)
    sheet.savefig(path, dpi=150)


def halves(name: str, splits: int):
    """Standardised halves of a data set, as often as asked for."""
    path = Path(os.environ.get("PGMULT_DATA", "")) / "uci" / f"{name}.npz"
    if not path.is_file():
        print(f"{name} is left out: PGMULT_DATA has none")
        return
    data = np.load(path)
    x, y = data["X"], data["y"]
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(x))
        train, test = order[: len(x) // 2], order[len(x) // 2 :]
        scale = x[train].std(axis=0)
        scaled = (x - x[train].mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
        yield scaled[train], y[train], scaled[test], y[test]


def regression(method: str, covariance: str) -> Regression:
    """The paper's model, by one of its methods or ours."""
    if method == "probit":
        return MultinomialProbit()
    return MultinomialRegression(method, covariance)


def table1(name: str, options: argparse.Namespace) -> None:
    """Bound of the log evidence, predictive log likelihood, error: means over the halves."""
    rows: dict[str, list[tuple[float, ...]]] = {}
    for x, y, new_x, new_y in halves(name, options.splits):
        for method in options.methods:
            began = time.perf_counter()
            stand_in, _, covariance = method.partition("/")
            fit = regression(stand_in, covariance or "class").fit(x, y)
            probs = fit.predict_proba(new_x)
            place = np.searchsorted(fit.classes_, new_y)
            known = (place < len(fit.classes_)) & np.isin(new_y, fit.classes_)
            of_label = np.full(len(new_y), 1e-12)  # of a class that training never saw
            of_label[known] = probs[np.flatnonzero(known), place[known]]
            rows.setdefault(method, []).append(
                (
                    fit.log_evidence_,
                    float(np.mean(np.log(of_label))),
                    float(np.mean(fit.classes_[probs.argmax(axis=1)] != new_y)),
                    time.perf_counter() - began,
                )
            )
    if rows:
        print(f"\n{name:13}{'bound':>18}{'predictive':>18}{'error':>17}{'seconds':>9}")
    for method, values in rows.items():
        mean, sd = np.mean(values, axis=0), np.std(values, axis=0)
        cells = [f"{m:.{d}f} ± {s:.{d}f}" for m, s, d in zip(mean[:3], sd, (1, 3, 3), strict=False)]
        print(f"{method:13}{cells[0]:>18}{cells[1]:>18}{cells[2]:>17}{mean[3]:9.2f}")


def accuracy(options: argparse.Namespace) -> None:
    """Weights and probabilities of one half of each data set, beside long chains of that model."""
    for name in options.data:
        for x, y, new_x, _ in halves(name, 1):
            softmax_accuracy(name, x, y, new_x, options.draws)
            stick_accuracy(name, x, y, new_x, 3 * options.draws)  # fewer chains, less mixed
            if len(x) < 1000:  # an integral a row: minutes on Thyroid
                probit_accuracy(name, x, y, new_x, options.draws // 2)


def softmax_accuracy(name, x, y, new_x, num_draws: int) -> None:
    """Every stand-in of the log sum exp, with classes independent under q or not."""
    fits = {
        (method, covariance): regression(method, covariance).fit(x, y)
        for method in ("quadratic", "log", "tilted", "bohning", "adaptive", "taylor")
        for covariance in ("class", "full")
        if covariance == "class" or method not in ("quadratic", "log")  # these see no correlations
    }
    fits["quadrature", "class"] = regression("quadrature", "class").fit(x, y)
    fits["laplace", "full"] = regression("laplace", "full").fit(x, y)
    near = fits["tilted", "full"]
    draws = chains_of(x, y, softmax_rows, near, near.joint_cov_, num_draws)
    exact = averages(draws, new_x, near, softmax_probs)
    header(f"{name}, softmax", draws, exact)
    for (method, covariance), fit in fits.items():
        compare(
            f"{method}, {covariance}", draws, weights_of(fit), joint_cov_of(fit),
            fit.predict_proba(new_x) - exact.mean(axis=0), fit.log_evidence_, len(fit.classes_),
        )  # fmt: skip


def probit_accuracy(name, x, y, new_x, num_draws: int) -> None:
    """The probit by variational Bayes."""
    fit = regression("probit", "class").fit(x, y)
    wide = regression("tilted", "full").fit(x, y).joint_cov_  # nearer than variational Bayes' own
    draws = chains_of(x, y, probit_rows, fit, wide, num_draws)
    exact = averages(draws[:, ::5], new_x, fit, probit_probs)
    header(f"{name}, probit", draws, exact)
    compare(
        "variational Bayes", draws, weights_of(fit), joint_cov_of(fit),
        fit.predict_proba(new_x) - exact.mean(axis=0), fit.log_evidence_, len(fit.classes_),
    )  # fmt: skip


def stick_accuracy(name, x, y, new_x, num_draws: int) -> None:
    """Every site of the logistic regressions of sticks, beside Gibbs sampling."""
    design, new_design = with_intercept(x), with_intercept(new_x)
    data = as_counted_rows(design, np.unique(y, return_inverse=True)[1])
    weights = pgmult.sample(
        StickBreakingRegression(), data, draws=num_draws, tune=num_draws // 5,
        chains=4, random_seed=0, progressbar=False,
    )["weights"]  # fmt: skip
    link = StickBreaking(data.order)
    exact = np.array(
        [np.mean([link.probs(new_design @ w.T) for w in chain], axis=0) for chain in weights]
    )
    draws = weights.reshape(*weights.shape[:2], -1)
    header(f"{name}, sticks", draws, exact)
    for method in ("jaakkola_jordan", "laplace", "delta", "quadrature"):
        fit = fit_stick_breaking_regression(data, method=method)
        errors = stick_probs(fit, new_design, data.order) - exact.mean(axis=0)
        compare(method, draws, fit.mean.ravel(), block_diag(*fit.cov), errors, fit.objective)


def with_intercept(x: np.ndarray) -> np.ndarray:
    """The covariates, and a column of ones after them."""
    return np.column_stack([x, np.ones(len(x))])


def weights_of(fit: Regression) -> np.ndarray:
    """Means of all classes' weights, one class after the other."""
    return np.column_stack([fit.coef_, fit.intercept_]).ravel()


def joint_cov_of(fit: Regression) -> np.ndarray:
    """Covariance of all classes' weights."""
    return block_diag(*fit.coef_cov_) if fit.joint_cov_ is None else fit.joint_cov_


def chains_of(x, y, rows, near, cov, num_draws: int) -> np.ndarray:
    """Draws of all weights, ``(chain, draw, weight)``, from `near` on."""
    labels = np.searchsorted(near.classes_, y)
    density = posterior(with_intercept(x), labels, len(near.classes_), rows)
    return hamiltonian(np.random.default_rng(0), density, weights_of(near), cov, num_draws)


def averages(draws: np.ndarray, new_x, fit, probs) -> np.ndarray:
    """Probabilities of new rows averaged over each chain, ``(chain, row, class)``."""
    design, size = with_intercept(new_x), len(fit.classes_)
    total = np.zeros((len(draws), size, len(design)))
    for draw in range(draws.shape[1]):
        total += probs(predictors(design, draws[:, draw], size))
    return total.transpose(0, 2, 1) / draws.shape[1]


def header(title: str, draws: np.ndarray, exact: np.ndarray) -> None:
    """The title of a table, and how good its reference is."""
    chains, length = draws.shape[:2]
    of_weights = np.mean(mcse_mean(draws) / draws.std(axis=(0, 1)))
    of_probs = np.mean(exact.std(axis=0, ddof=1)) / np.sqrt(chains)
    print(
        f"\n{title}: {chains} chains of {length:,} draws, R-hat at most {r_hat(draws).max():.3f},"
        f" effective draws at least {ess_bulk(draws).min():,.0f},\n"
        f"Monte Carlo errors of {of_weights:.4f} sd and of {of_probs:.5f} in probabilities"
    )
    print(
        f"{'':20}{'|error|/sd':>12}{'sd ratio':>10}{'of differences:':>17}"
        f"{'sd ratio':>10}{'|p - exact|':>13}{'objective':>11}"
    )


def compare(
    title: str,
    draws: np.ndarray,
    mean: np.ndarray,
    cov: np.ndarray,
    errors: np.ndarray,
    objective: float,
    num_classes: int = 1,
) -> None:
    """Print errors of weights in posterior standard deviations, and ratios of these.

    Softmaxes and probits see only differences of classes, so of these too.
    """
    flat = draws.reshape(-1, len(mean))
    one, other = np.triu_indices(num_classes, 1)
    pairs = np.eye(num_classes)[one] - np.eye(num_classes)[other]
    cells = []
    for contrast in (np.eye(num_classes), pairs):
        if len(contrast) == 0:
            cells += ["", ""]
            continue
        map_ = np.kron(contrast, np.eye(len(mean) // num_classes))
        seen = flat @ map_.T
        sd = seen.std(axis=0)
        own = np.sqrt(np.einsum("ij,jk,ik->i", map_, cov, map_))
        cells.append(f"{np.mean(np.abs(map_ @ mean - seen.mean(axis=0)) / sd):.3f}")
        cells.append(f"{np.mean(own / sd):.3f}")
    print(
        f"{title:20}{cells[0]:>12}{cells[1]:>10}{cells[2]:>17}{cells[3]:>10}"
        f"{np.abs(errors).mean():13.4f}{objective:11.2f}",
        flush=True,
    )


def main(options: argparse.Namespace) -> None:
    """Print the tables that were asked for."""
    warnings.simplefilter("ignore", pgmult.ConvergenceWarning)
    for table in options.tables:
        if table in ("figure2", "accuracy"):
            globals()[table](options)
        else:
            table1(table, options)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    tables = ["figure2", "iris", "glass", "thyroid", "accuracy"]
    parser.add_argument("tables", nargs="+", choices=tables)
    parser.add_argument("--out", type=Path, help="folder for figure2.png")
    parser.add_argument("--repetitions", type=int, default=1000, help="means, for figure2")
    parser.add_argument("--splits", type=int, default=16)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--data", nargs="+", default=tables[1:4], choices=tables[1:4])
    parser.add_argument("--draws", type=int, default=2000, help="of each long chain")
    main(parser.parse_args())
