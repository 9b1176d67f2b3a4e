"""Approximations of softmax regression by their errors of probabilities, against long exact chains.

    python tests/benchmarks/softmax_methods.py                      # every data set, ten minutes
    python tests/benchmarks/softmax_methods.py --only iris wine     # some

Half of the rows are fitted, and probabilities of the other half are compared with averages over
draws of the posterior itself (`SoftmaxRegression`: slices around a Gaussian), four chains. For each
method the mean absolute error of a probability, times 1,000, and seconds of a processor; the last
line of a data set is what half of the chains say beside the other half, halved: how well the truth
is known. Columns are standardised, and the prior is the estimator's: N(0, 1), intercepts N(0, 100).

Glass and thyroid are read from the folder that PGMULT_DATA names. Run with OPENBLAS_NUM_THREADS=1.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA

from pgmult.regression import MultinomialClassifier

METHODS = {
    "laplace": {"method": "laplace"},
    "taylor": {"method": "taylor"},
    "bohning": {"method": "bohning"},
    "tilted, classes": {"method": "tilted", "covariance": "class"},
    "quadrature, classes": {"method": "quadrature", "covariance": "class"},
    "tilted": {"method": "tilted"},
    "quadrature": {"method": "quadrature"},
}


def bundled(load):
    return lambda: load(return_X_y=True)


def digits():
    x, y = load_digits(return_X_y=True)
    return PCA(12, random_state=0).fit_transform(x)[:600], y[:600]


def thirds_of_diabetes():
    x, y = load_diabetes(return_X_y=True)
    return x, np.searchsorted(np.quantile(y, [1 / 3, 2 / 3]), y)


def uci(name):
    def load():
        file = np.load(Path(os.environ.get("PGMULT_DATA", "shared/data")) / "uci" / f"{name}.npz")
        some = np.random.default_rng(0).permutation(len(file["X"]))[:600]
        return file["X"][some], file["y"][some]

    return load


def made(num_rows, num_columns, num_classes, spread, *, intercepts=0.0, totals=1, seed=0):
    def make():
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((num_rows, num_columns))
        psi = x @ (spread * rng.standard_normal((num_columns, num_classes)))
        psi += intercepts * np.arange(num_classes)
        probs = np.exp(psi - psi.max(axis=1, keepdims=True))
        counts = rng.multinomial(totals, probs / probs.sum(axis=1, keepdims=True))
        return x, counts if totals > 1 else counts.argmax(axis=1)

    return make


DATA = {
    "iris": bundled(load_iris),
    "wine": bundled(load_wine),
    "breast cancer": bundled(load_breast_cancer),
    "digits": digits,
    "diabetes": thirds_of_diabetes,
    "glass": uci("glass"),
    "thyroid": uci("thyroid"),
    "balanced": made(300, 4, 3, 1.0),
    "3 % positive": made(600, 4, 2, 0.7, intercepts=-4.0),
    "rare classes": made(400, 3, 5, 0.7, intercepts=-1.3),
    "separable": made(60, 8, 3, 4.0),
    "ten classes": made(200, 4, 10, 1.0),
    "counts": made(40, 3, 5, 0.7, totals=30),
}


def main(options):
    warnings.simplefilter("ignore")
    totals = {name: [] for name in METHODS}
    for name in options.only or DATA:
        x, y = DATA[name]()
        x = (x - x.mean(axis=0)) / x.std(axis=0)
        order = np.random.default_rng(1).permutation(len(x))
        seen, unseen = order[::2], order[1::2]
        if np.ndim(y) == 1:
            seen = np.union1d(seen, np.unique(y, return_index=True)[1])  # every class is seen
        start = time.process_time()
        plain = {"scale_inputs": False}  # standardised above
        settings = plain | {"draws": options.draws, "tune": 300, "chains": 4, "random_state": 0}
        chain = MultinomialClassifier("sampling", **settings).fit(x[seen], y[seen])
        seconds = time.process_time() - start
        halves = []
        for half in (slice(0, 2), slice(2, 4)):
            weights = chain.posterior_["weights"][half]
            weights = weights.reshape(-1, *weights.shape[2:])
            design = np.column_stack([x[unseen], np.ones(len(unseen))])
            halves.append(chain._average_draws(weights, design))
        truth = 0.5 * (halves[0] + halves[1])
        print(
            f"{name}: {len(seen)} rows, {x.shape[1]} columns, {truth.shape[1]} classes", flush=True
        )
        for method, parameters in METHODS.items():
            start = time.process_time()
            fitted = MultinomialClassifier(max_iter=options.iterations, **plain, **parameters)
            probs = fitted.fit(x[seen], y[seen]).predict_proba(x[unseen])
            error = 1e3 * np.abs(probs - truth).mean()
            totals[method].append(error)
            note = "" if fitted.n_iter_ < options.iterations else ", not converged"
            spent = time.process_time() - start
            print(f"  {method:20s} {error:7.2f} {spent:8.2f} s{note}", flush=True)
        error = 0.5e3 * np.abs(halves[0] - halves[1]).mean()
        print(f"  {'chains':20s} {error:7.2f} {seconds:8.2f} s", flush=True)
    print("all: the mean of the logarithm of errors, over data sets, back as an error; wins")
    errors = np.array(list(totals.values()))
    for method, row, wins in zip(
        totals, errors, (errors == errors.min(axis=0)).sum(axis=1), strict=True
    ):
        print(f"  {method:20s} {np.exp(np.log(row).mean()):7.2f} {wins:4d}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=DATA)
    parser.add_argument("--draws", type=int, default=1500)
    parser.add_argument("--iterations", type=int, default=300)
    main(parser.parse_args())
