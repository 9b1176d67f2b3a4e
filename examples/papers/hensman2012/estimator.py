"""A scikit-learn estimator of mixtures of Gaussians by collapsed variational Bayes.

>>> import numpy as np
>>> from examples.papers.hensman2012.estimator import CollapsedGaussianMixture
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((90, 2)) + np.repeat([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]], 30, axis=0)
>>> fitted = CollapsedGaussianMixture(6, random_state=0).fit(X)
>>> fitted.n_components_used_, fitted.predict_proba(X[:2]).shape
(3, (2, 6))
"""

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from examples.papers.hensman2012.collapsed import natural_cg
from examples.papers.hensman2012.problems import GaussianMixtureProblem
from pgmult.core.arguments import as_real, as_repeats
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.priors.gaussian import NormalInverseWishart
from pgmult.sampling.diagnostics import ConvergenceWarning

_LEAD = 3.0  # of the logit of a row's cluster at the start, before noise


@dataclass(eq=False, repr=False, kw_only=True)
class CollapsedGaussianMixture(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """A mixture of Gaussians whose weights, means and covariances are integrated out.

    Components have independent normal-inverse-Wishart priors, centred on the data with their
    variances, and weights a symmetric Dirichlet prior. What remains, which row is of which
    component, is optimised by conjugate natural gradients (Hensman et al. 2012): a tighter bound
    than where means and covariances have a q of their own. Give more components than you expect:
    those that the data do not need become empty, the more so the smaller `concentration`.

    Parameters
    ----------
    n_components : int
        At most.
    concentration : float
        Of the Dirichlet prior of weights.
    mean_strength : float
        How many observations the prior of a component's mean is worth.
    n_init : int
        Starts, each from a run of k-means; the one with the highest bound is kept.
    tol : float
        Ends where the squared norm of the natural gradient is smaller.
    max_iter : int
    random_state : int, numpy.random.RandomState or None
        Of the starts.

    Attributes
    ----------
    weights_ : array, ``(n_components,)``
        Posterior means, as the others are; components are in the order of decreasing weights.
    means_ : array, ``(n_components, n_features)``
    covariances_ : array, ``(n_components, n_features, n_features)``
    components_ : list of NormalInverseWishart
        The law of each mean and covariance.
    n_components_used_ : int
        Components with half an expected row or more.
    log_evidence_ : float
        The bound: compare numbers of components and priors by it.
    converged_ : bool
    n_iter_ : int
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn
    """

    n_components: int = field(default=2, kw_only=False)
    concentration: float = 0.1
    mean_strength: float = 0.01
    n_init: int = 5
    tol: float = 1e-6
    max_iter: int = 1000
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> "CollapsedGaussianMixture":
        """Find which rows are of which component.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        y : ignored
        """
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        count = as_positive_int(self.n_components, "n_components")
        strength = as_real(self.mean_strength, "mean_strength", minimum=1e-6, maximum=1e6)
        as_real(self.concentration, "concentration", minimum=1e-6, maximum=1e6)
        if count > len(X):
            raise ValueError(f"n_components must be at most the {len(X)} rows of X, got {count}")
        size = X.shape[1]
        spread = X.var(axis=0)
        scale = np.diag(np.where(spread > 0.0, spread, max(float(spread.max()), 1.0) * 1e-6))
        prior = NormalInverseWishart(X.mean(axis=0), strength, size + 2.0, scale)
        problem = GaussianMixtureProblem(X, count, prior, float(self.concentration))
        rng = check_random_state(self.random_state)
        unit = X / np.sqrt(np.diagonal(scale))
        fits = []
        for _ in range(as_repeats(self.n_init, "n_init")):
            start = 0.1 * rng.standard_normal((len(X), count))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # fewer different rows than clusters
                means = KMeans(count, n_init=1, random_state=rng.randint(2**31 - 1))
                start[np.arange(len(X)), means.fit(unit).labels_] += _LEAD
            fits.append(
                natural_cg(
                    problem, start.ravel(), tolerance=self.tol,
                    max_iterations=as_positive_int(self.max_iter, "max_iter"),
                )
            )  # fmt: skip
        best = max(fits, key=lambda fit: fit.objective)
        weights = problem.weights_posterior(best)[0]
        order = np.argsort(-weights, kind="stable")
        laws = problem.components(best)
        self.weights_ = weights[order]
        self.components_ = [laws[k] for k in order]
        self.means_ = np.array([law.mean for law in self.components_])
        self.covariances_ = np.array(
            [law.scale / (law.dof - size - 1.0) for law in self.components_]
        )
        rows = np.array([law.strength - strength for law in self.components_])
        self.n_components_used_ = int((rows >= 0.5).sum())
        self.log_evidence_, self.n_iter_ = best.objective, best.num_iterations
        self.converged_ = bool(best.converged)
        if not self.converged_:
            warnings.warn(
                f"not converged after {self.n_iter_} iterations: raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: Any) -> IntArray:
        """The most probable component of each row, ``(n_samples,)``.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        """
        return np.asarray(self._joint(X).argmax(axis=1))

    def fit_predict(self, X: Any, y: Any = None) -> IntArray:
        """`fit`, then `predict` of the same rows.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        y : ignored
        """
        return self.fit(X).predict(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the components, ``(n_samples, n_components)``.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        """
        joint = self._joint(X)
        return np.asarray(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))

    def score_samples(self, X: Any) -> FloatArray:
        """Log predictive density of each row, ``(n_samples,)``.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        """
        return np.asarray(logsumexp(self._joint(X), axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`.

        Parameters
        ----------
        X : array, ``(n_samples, n_features)``
        y : ignored
        """
        return float(self.score_samples(X).mean())

    def _joint(self, X: Any) -> FloatArray:
        """Log weights plus log densities: Student-t's, parameters integrated out."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        size = X.shape[1]
        joint = np.empty((len(X), len(self.components_)))
        for k, law in enumerate(self.components_):
            dof = law.dof - size + 1.0
            root = np.linalg.cholesky(law.scale * (law.strength + 1.0) / (law.strength * dof))
            white = np.linalg.solve(root, (X - law.mean).T)
            distance = np.log1p((white * white).sum(axis=0) / dof)
            joint[:, k] = (
                gammaln(0.5 * (dof + size)) - gammaln(0.5 * dof) - 0.5 * size * np.log(dof * np.pi)
                - np.log(np.diagonal(root)).sum() - 0.5 * (dof + size) * distance
            )  # fmt: skip
        return np.asarray(joint + np.log(self.weights_))
