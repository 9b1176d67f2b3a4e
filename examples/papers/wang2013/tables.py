"""Tables 1 and 2 of Wang and Blei (2013), and how near each method is to the posterior.

    python -m examples.papers.wang2013.tables logistic       # Table 1: Yeast and Scene
    python -m examples.papers.wang2013.tables hierarchical   # Table 2: School, ten splits
    python -m examples.papers.wang2013.tables accuracy       # against long Gibbs sampling

Needs the data sets, in the folder that PGMULT_DATA names: ``yeast/yeast.npz`` and
``scene/scene.npz`` (covariates and labels of Mulan's splits) and ``school/school.npz`` (the splits
of Argyriou, Evgeniou and Pontil 2008).
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np

import pgmult
from examples.papers.regressions.classes import LOGISTIC_METHODS
from examples.papers.regressions.data import as_labelled_rows
from examples.papers.regressions.logistic import GroupedLogisticRegression, LogisticRegression
from examples.papers.regressions.logistic_fits import (
    fit_grouped_logistic_regression,
    fit_logistic_regression,
)

# (accuracy in percent, mean log predictive probability) as printed
PRINTED = {
    ("yeast", "laplace"): (80.1, -0.449),
    ("yeast", "jaakkola_jordan"): (79.7, -0.678),
    ("scene", "laplace"): (89.4, -0.259),
}
NUM_SCHOOLS = 139


def load(name):
    folder = Path(os.environ.get("PGMULT_DATA", "shared/data"))
    return np.load(folder / name / f"{name}.npz")


def scores(labels, psi):
    """Accuracy in percent and mean log probability of labels given log odds."""
    right = np.mean((psi > 0.0) == (labels == 1))
    log_probs = -np.logaddexp(0.0, np.where(labels == 1, -psi, psi))
    return 100.0 * right, log_probs.mean()


def multilabel(name, methods=LOGISTIC_METHODS, num_labels=None):
    """Scores of each method averaged over labels: raw covariates and ones, N(0, I), plug-in."""
    file = load(name)
    x, x_test = (
        np.column_stack([file[key], np.ones(len(file[key]))]) for key in ("X_train", "X_test")
    )
    labels = range(file["Y_train"].shape[1])[:num_labels]
    model = LogisticRegression()
    results = {}
    for method in methods:
        fits = [
            fit_logistic_regression(
                model, as_labelled_rows(x, file["Y_train"][:, j]), method=method
            )
            for j in labels
        ]
        by_label = [
            scores(file["Y_test"][:, j], x_test @ fit.mean[0])
            for j, fit in zip(labels, fits, strict=True)
        ]
        results[method] = np.mean(by_label, axis=0)
    return results


def logistic(options):
    for name in ("yeast", "scene"):
        for method, (accuracy, log_predictive) in multilabel(name).items():
            printed = PRINTED.get((name, method))
            beside = f"   printed {printed[0]:.1f} {printed[1]:.3f}" if printed else ""
            print(f"{name:6s} {method:16s} {accuracy:6.2f} {log_predictive:8.4f}{beside}")


def school():
    """Covariates with percentages as shares, labels, schools, and the masks of ten splits."""
    file = load("school")
    x = file["X"].astype(float)
    x[:, 3:5] /= 100.0
    training = np.unpackbits(file["train"], axis=1)[:, : int(file["n"])].astype(bool)
    return x, (file["y"] > 19).astype(int), file["school"], training


def ways_to_pool(x, labels, schools, method):
    """Posterior means of the weights of every school, by name of the way to pool them."""
    apart = as_labelled_rows(x, labels, schools, group_names=range(NUM_SCHOOLS))
    together = as_labelled_rows(x, labels)
    fixed = LogisticRegression()
    size = x.shape[1]

    def grouped(mean_var, with_covariances):
        model = GroupedLogisticRegression.like_wang_blei(size, mean_var=mean_var)
        fit = fit_grouped_logistic_regression(
            model, apart, method=method, with_covariances=with_covariances
        )
        return fit.weights.mean

    pooled = fit_logistic_regression(fixed, together, method=method)
    return {
        "separate": fit_logistic_regression(fixed, apart, method=method).mean,
        "pooled": np.tile(pooled.mean, (NUM_SCHOOLS, 1)),
        "hierarchical, Sigma as printed": grouped(100.0, False),
        "hierarchical": grouped(100.0, True),
        "hierarchical, Phi_1 = 0.01 I a covariance, Sigma as printed": grouped(0.01, False),
    }


def hierarchical(options):
    x, labels, schools, training = school()
    for method in options.methods:
        by_split = []
        for train in training[: options.splits]:
            weights = ways_to_pool(x[train], labels[train], schools[train], method)
            test = ~train
            by_split.append(
                [
                    scores(labels[test], np.einsum("nd,nd->n", x[test], w[schools[test]]))
                    for w in weights.values()
                ]
            )
        for way, (accuracy, log_predictive) in zip(weights, np.mean(by_split, axis=0), strict=True):
            print(f"{method:16s} {accuracy:6.2f} {log_predictive:8.4f}  {way}", flush=True)


def accuracy(options):
    """Marginal means and standard deviations of each method against Gibbs sampling."""
    cases = {}
    for name in ("yeast", "scene"):
        file = load(name)
        x = np.column_stack([file["X_train"], np.ones(len(file["X_train"]))])
        cases[f"{name}, label 1"] = as_labelled_rows(x, file["Y_train"][:, 0])
    x, labels, schools, training = school()
    few = training[0] & (schools == schools[np.argmax(training[0])])
    cases["one school"] = as_labelled_rows(x[few], labels[few])
    model = LogisticRegression()
    for name, data in cases.items():
        begin = time.perf_counter()
        posterior = pgmult.sample(
            model, data, draws=options.draws, tune=200, chains=2, random_seed=0, progressbar=False
        )
        seconds = time.perf_counter() - begin
        draws = posterior["weights"].reshape(-1, data.num_covariates)
        mean, sd = draws.mean(axis=0), draws.std(axis=0)
        print(f"{name}: {data}; Gibbs, {len(draws)} draws: {seconds:.1f} s")
        print(f"  {'method':16s} mean error/sd  sd ratio  KL(posterior || q), a weight     ms")
        for method in LOGISTIC_METHODS:
            times = []
            for _ in range(5):
                begin = time.perf_counter()
                fit = fit_logistic_regression(model, data, method=method)
                times.append(time.perf_counter() - begin)
            gap, ratio = (fit.mean[0] - mean) / sd, np.sqrt(np.diag(fit.cov[0])) / sd
            divergence = np.log(ratio) + 0.5 * (1.0 + gap**2) / ratio**2 - 0.5
            print(
                f"  {method:16s} {np.abs(gap).mean():13.3f} {ratio.mean():9.3f}"
                f" {divergence.mean():29.5f} {1e3 * min(times):6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    commands.add_parser("logistic").set_defaults(run=logistic)
    command = commands.add_parser("hierarchical")
    command.add_argument("--splits", type=int, default=10)
    command.add_argument("--methods", nargs="+", default=["laplace", "delta"])
    command.set_defaults(run=hierarchical)
    command = commands.add_parser("accuracy")
    command.add_argument("--draws", type=int, default=5000)
    command.set_defaults(run=accuracy)
    arguments = parser.parse_args()
    arguments.run(arguments)
