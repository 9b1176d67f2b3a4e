"""Mixtures of Gaussians: collapsed variational Bayes beside scikit-learn's, on held-out rows.

    python -m examples.papers.hensman2012.beside_sklearn

Half of the rows are fitted, standardised, with ten components at most and five starts each;
`CollapsedGaussianMixture` and scikit-learn's BayesianGaussianMixture with a Dirichlet of the same
concentration and the same prior of the covariances. For each the mean log density of the other
half, how many components have more than half a row, the adjusted Rand index beside the labels,
which no fit sees, and seconds of a processor. Run with OPENBLAS_NUM_THREADS=1.
"""

import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture

from examples.papers.hensman2012.estimator import CollapsedGaussianMixture

COMPONENTS, STARTS, CONCENTRATION = 10, 5, 0.1


def digits():
    x, y = load_digits(return_X_y=True)
    return PCA(8, random_state=0).fit_transform(x), y


def clusters():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, size=1000)
    return 3.0 * rng.standard_normal((5, 4))[y] + rng.standard_normal((1000, 4)), y


DATA = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits, 8 axes": digits,
    "5 clusters": clusters,
}


def main():
    warnings.simplefilter("ignore")
    for name, load in DATA.items():
        x, y = load()
        x = (x - x.mean(axis=0)) / x.std(axis=0)
        order = np.random.default_rng(0).permutation(len(x))
        seen, unseen = order[::2], order[1::2]
        ours = CollapsedGaussianMixture(
            COMPONENTS, concentration=CONCENTRATION, n_init=STARTS, random_state=0
        )
        theirs = BayesianGaussianMixture(
            n_components=COMPONENTS, n_init=STARTS, max_iter=1000, random_state=0,
            weight_concentration_prior_type="dirichlet_distribution",
            weight_concentration_prior=CONCENTRATION, mean_precision_prior=0.01,
            degrees_of_freedom_prior=x.shape[1] + 2, covariance_prior=np.eye(x.shape[1]),
        )  # fmt: skip

        print(f"{name}: {len(seen)} rows, {x.shape[1]} columns, {len(np.unique(y))} labels")
        for model in (ours, theirs):
            start = time.process_time()
            model.fit(x[seen])
            seconds = time.process_time() - start
            used = (model.predict_proba(x[seen]).sum(axis=0) > 0.5).sum()
            rand = adjusted_rand_score(y[unseen], model.predict(x[unseen]))
            print(
                f"  {type(model).__name__:26s} {model.score(x[unseen]):8.3f} nats a row, {used:2d}"
                f" components, Rand {rand:.2f}, {seconds:6.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
