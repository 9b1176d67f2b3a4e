"""Figure 2 and Table 1 of Knowles and Minka (2011), with the stick-breaking regressions beside.

    python examples/papers/knowles2011/tables.py figure2 iris glass thyroid accuracy

prints them. The data sets of UCI are in the folder that PGMULT_DATA names (``uci/iris.npz``, ...);
what is not there is left out. Every data set is halved at random 16 times (``--splits``);
covariates are standardised on the training half, with an intercept, and weights of all classes are
N(0, 1).
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np

import pgmult
from pgmult.inference.bounds import LOG_SUM_EXP

METHODS = ("quadratic", "log", "tilted", "bohning", "adaptive", "probit", "mean_field", "gibbs")


def figure2(options: argparse.Namespace) -> None:
    """Log10 of the mean relative error of each stand-in for E log sum exp, K = 10."""
    rng = np.random.default_rng(0)
    names = [name for name in LOG_SUM_EXP if name != "quadrature"]
    print("variance  " + "".join(f"{name:>11}" for name in names))
    for var in (0.01, 0.1, 1.0, 10.0, 100.0):
        mean = rng.uniform(size=(500, 10))
        spread = np.full(mean.shape, var)
        exact = LOG_SUM_EXP["quadrature"].expect(mean, spread)[0]
        errors = [
            np.log10(np.mean(np.abs(LOG_SUM_EXP[name].expect(mean, spread)[0] / exact - 1.0)))
            for name in names
        ]
        print(f"{var:8g}  " + "".join(f"{error:11.2f}" for error in errors))


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


def regression(method: str, covariance: str) -> pgmult.MultinomialRegression:
    """The paper's model, by one of its methods or ours."""
    return pgmult.MultinomialRegression(
        method, covariance=covariance, intercept_var=1.0, draws=500, tune=100, chains=1,
        random_state=0,
    )  # fmt: skip


def table1(name: str, options: argparse.Namespace) -> None:
    """Bound of the log evidence, predictive log likelihood, error: means over the halves."""
    rows: dict[str, list[tuple[float, ...]]] = {}
    for x, y, new_x, new_y in halves(name, options.splits):
        for method in options.methods:
            began = time.perf_counter()
            fit = regression(method, "class").fit(x, y)
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
        print(f"\n{name:11}{'bound':>18}{'predictive':>18}{'error':>17}{'seconds':>9}")
    for method, values in rows.items():
        mean, sd = np.mean(values, axis=0), np.std(values, axis=0)
        cells = [f"{m:.{d}f} ± {s:.{d}f}" for m, s, d in zip(mean[:3], sd, (1, 3, 3), strict=False)]
        print(f"{method:11}{cells[0]:>18}{cells[1]:>18}{cells[2]:>17}{mean[3]:9.2f}")


def accuracy(options: argparse.Namespace) -> None:
    """Predicted probabilities of one half of Iris beside a long chain of the same softmax model.

    The chain draws all weights by elliptical slices.
    """
    from pgmult.updates.elliptical_slice import elliptical_slice

    for x, y, new_x, _ in halves("iris", 1):
        design = np.column_stack([x, np.ones(len(x))])
        labels = np.unique(y, return_inverse=True)[1]
        rng = np.random.default_rng(0)

        def log_likelihood(w, active, design=design, labels=labels):
            psi = np.einsum("nd,bkd->bnk", design, w.reshape(len(w), 3, -1))
            picked = np.take_along_axis(psi, labels[None, :, None], axis=2)[..., 0]
            return (picked - np.logaddexp.reduce(psi, axis=2)).sum(axis=1)

        chains = rng.normal(size=(20, 3 * design.shape[1]))
        kept = []
        for sweep in range(options.sweeps):
            noise = rng.normal(size=chains.shape)
            chains = elliptical_slice(rng, log_likelihood, chains, noise)
            if sweep >= options.sweeps // 5 and sweep % 10 == 0:
                kept.append(chains.copy())
        draws = np.concatenate(kept).reshape(-1, 3, design.shape[1])
        psi = np.einsum("nd,skd->snk", np.column_stack([new_x, np.ones(len(new_x))]), draws)
        exact = np.exp(psi - np.logaddexp.reduce(psi, axis=2, keepdims=True)).mean(axis=0)
        sd = draws.std(axis=0)
        print(f"\n{'iris':11}{'q':>7}{'|error|/sd':>12}{'sd ratio':>10}{'|p - exact|':>13}")
        for method in ("quadratic", "log", "tilted", "bohning", "taylor"):
            for covariance in ("class", "full"):
                fit = regression(method, covariance).fit(x, y)
                mean = np.column_stack([fit.coef_, fit.intercept_])
                own = np.sqrt(np.diagonal(fit.coef_cov_, axis1=1, axis2=2))
                print(
                    f"{method:11}{covariance:>7}"
                    f"{np.mean(np.abs(mean - draws.mean(axis=0)) / sd):12.3f}"
                    f"{np.mean(own / sd):10.3f}"
                    f"{np.abs(fit.predict_proba(new_x) - exact).mean():13.4f}"
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
    parser.add_argument("--splits", type=int, default=16)
    parser.add_argument("--sweeps", type=int, default=20_000)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    main(parser.parse_args())
