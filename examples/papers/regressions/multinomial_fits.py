r"""Gaussian approximations of multinomial regression, and probabilities averaged over them.

Rows of counts y_n have covariates x_n, and categories have probabilities by one of two links.

*Softmax*: y_n ~ Multinomial(softmax(W x_n)), weights for all K classes. `fit_softmax_regression`
has one Gaussian a class, independent under q, or one Gaussian of all classes' weights. Classes are
not independent in the posterior, since a softmax sees only differences: "full" is far better
calibrated, and O((K D)^3).

*Stick-breaking*: K - 1 binomial regressions, one per stick, independent in the posterior too.
`fit_stick_breaking_regression` takes any site of binary regressions; Jaakkola and Jordan's is mean
field with Pólya-gamma variables.

Averages of probabilities over q need no Monte Carlo: sticks are one-dimensional integrals each, and
so is a softmax of independent predictors (`bounds.py`). Only for correlated
predictors of three classes or more a fixed set of quasi-random points serves: its errors are below
1e-4 for standard deviations up to one, and below 3e-3 for any. Fewer of the same points also
approximate the expected log normaliser and its derivatives, which the other methods bound.

>>> import numpy as np
>>> from examples.papers.regressions.data import as_counted_rows
>>> rng = np.random.default_rng(0)
>>> x = np.column_stack([np.ones(60), rng.standard_normal(60)])
>>> labels = (x @ [[0.0, 0.5, -1.0], [0.0, 2.0, -2.0]] + rng.gumbel(size=(60, 3))).argmax(axis=1)
>>> data = as_counted_rows(x, labels)
>>> for covariance in ("class", "full"):
...     fit = fit_softmax_regression(data, covariance=covariance)
...     print(round(fit.objective, 2), softmax_probs(fit, [[1.0, 1.0]]).round(2))
-48.33 [[0.12 0.87 0.01]]
-47.0 [[0.11 0.87 0.01]]
>>> fit = fit_stick_breaking_regression(data)
>>> stick_probs(fit, [[1.0, 1.0]], data.order).round(2)
array([[0.11, 0.88, 0.02]])
"""

from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from examples.papers.regressions.bounds import DENSE_LOG_SUM_EXP, LOG_SUM_EXP, Approximation
from examples.papers.regressions.classes import (
    ClassRows,
    SoftmaxRows,
    SoftmaxSite,
    logistic_site,
    predictor_vars,
)
from examples.papers.regressions.compiled.softmax_averages import average_rows, integrate_rows
from examples.papers.regressions.data import CountedRows, require_counted_rows
from examples.papers.regressions.designs import Rows
from examples.papers.regressions.linear import weights_prior
from examples.papers.regressions.sites import AtMode, Site
from examples.papers.regressions.solver import SiteFit, fit_sites
from pgmult.compiled.rows import over_rows
from pgmult.core.arguments import as_choice
from pgmult.core.machine import available_memory, refuse_unaffordable
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_finite
from pgmult.links.logistic import logistic_expectations
from pgmult.priors.gaussian import MvNormal
from pgmult.variational.sites import Expectation

_SEE_VARIANCES_ONLY = ("log", "quadratic")
_MATRICES = 40  # of all classes' weights, that a search holds at a time
_LOG2_POINTS = 13  # and as many mirrors
_LOG2_FEW = 8  # in a search
_POINTS_A_BLOCK = 256


class JointClassRows(ClassRows):
    """Rows with a predictor for each class, whose weights are one vector with one covariance.

    Predictors have means ``(num_rows, num_classes)`` and covariances
    ``(num_rows, num_classes, num_classes)``.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """One vector, of the weights of all classes."""
        return 1, self.num_classes * self.covariates.shape[1]

    def project(self, mean: FloatArray) -> FloatArray:
        """Means of the predictors."""
        return np.asarray(self.covariates @ mean.reshape(self.num_classes, -1).T)

    def project_cov(self, cov: FloatArray) -> FloatArray:
        """Covariances of the predictors."""
        x = self.covariates
        blocks = cov.reshape(self.num_classes, x.shape[1], self.num_classes, x.shape[1])
        out = np.empty((len(x), self.num_classes, self.num_classes))
        for k in range(self.num_classes):
            for j in range(k + 1):
                out[:, k, j] = out[:, j, k] = np.einsum("nd,nd->n", x @ blocks[k, :, j], x)
        return out

    def pull(self, d_mean: FloatArray) -> FloatArray:
        """Gradient with respect to the weights."""
        return (d_mean.T @ self.covariates).reshape(1, -1)

    def gram(self, d_var: FloatArray) -> FloatArray:
        """Minus twice the derivative with respect to the covariance of the weights."""
        x = self.covariates
        out = np.empty((self.num_classes, x.shape[1], self.num_classes, x.shape[1]))
        for k in range(self.num_classes):
            for j in range(k + 1):
                out[k, :, j] = (-2.0 * d_var[:, k, j, None] * x).T @ x
                out[j, :, k] = out[k, :, j]
        return out.reshape(1, *(self.shape[1],) * 2)


def fit_softmax_regression(
    data: CountedRows,
    prior: MvNormal | None = None,
    *,
    method: str = "tilted",
    covariance: Literal["class", "full"] = "class",
    tolerance: float = 1e-5,
    max_iterations: int = 1000,
) -> SiteFit:
    """A Gaussian approximation of softmax regression: counts ~ Multinomial(softmax(W x_n)).

    All K classes have weights. The data inform only their differences; the prior makes the
    posterior proper.

    Parameters
    ----------
    data : CountedRows
    prior : MvNormal, optional
        Of each class's weights; N(0, I) if left out.
    method : str
        A name in `bounds.LOG_SUM_EXP`; or with ``covariance="full"``, one in
        `DENSE_LOG_SUM_EXP`, "quadrature" or "laplace". Quadrature is over 512 points of a
        quasi-random sequence in the differences of classes, and over 16,384 for the objective.
    covariance : {"class", "full"}
        Whether classes are independent under q, or one Gaussian has all their weights. ("log" and
        "quadratic" bounds cannot use correlations: with them classes are independent.)
    tolerance, max_iterations : float and int
        See `pgmult.variational.fit_sites`.

    Returns
    -------
    SiteFit

    Raises
    ------
    ValueError
        If method, covariance and prior do not fit each other or the data.
    MemoryError
        If one Gaussian of all classes' weights is too large.
    """
    size, num_classes = require_counted_rows(data).num_covariates, data.num_categories
    prior = weights_prior(prior, size, "prior")
    as_choice(covariance, "covariance", ("class", "full"))
    if covariance == "full":
        as_choice(method, "method with covariance='full'", (*_FULL, "laplace"))
    else:
        as_choice(method, "method with covariance='class'", LOG_SUM_EXP)
    limits: dict[str, Any] = {"tolerance": tolerance, "max_iterations": max_iterations}
    if covariance == "class" or method in _SEE_VARIANCES_ONLY:
        refuse_unaffordable(40.0 * num_classes * size**2, "covariance", covariance)
        own_site = SoftmaxSite(data.counts, LOG_SUM_EXP[method])
        return fit_sites(SoftmaxRows(data.covariates, num_classes), own_site, prior, **limits)
    needed = 8 * (_MATRICES * (num_classes * size) ** 2 + 6 * len(data.counts) * num_classes**2)
    if needed > available_memory():
        raise MemoryError(
            f"one Gaussian of {num_classes} classes with {size} weights each takes some"
            f" {needed / 1e9:.3g} GB, and {available_memory() / 1e9:.3g} GB of memory are available"
            " (let each class have its own: covariance='class')"
        )
    joint_prior = MvNormal(
        np.broadcast_to(prior.prior_mean, (num_classes, size)).ravel(),
        np.asarray(np.kron(np.eye(num_classes), prior.prior_cov), dtype=np.float64),
    )
    site: Site = SoftmaxSite(data.counts, _FULL["taylor" if method == "laplace" else method])
    site = AtMode(site) if method == "laplace" else site
    design = JointClassRows(data.covariates, num_classes)
    fit = fit_sites(design, site, joint_prior, **limits)
    level = fit.level
    if method == "quadrature" and num_classes > 2:  # the value, of all, needs more points
        psi, spread = design.project(fit.mean[0]), design.project_cov(fit.cov[0])
        rough, fine = (
            _dense_quadrature(psi, spread, log2)[0] for log2 in (_LOG2_FEW, _LOG2_POINTS)
        )
        level = level + float(data.totals @ (rough - fine))
    blocks = fit.cov.reshape(num_classes, size, num_classes, size)
    own = np.array([blocks[k, :, k] for k in range(num_classes)])
    mean = fit.mean.reshape(num_classes, size)
    return replace(fit, mean=mean, cov=own, level=level, joint_cov=fit.cov[0])


def fit_stick_breaking_regression(
    data: CountedRows,
    prior: MvNormal | None = None,
    *,
    method: str = "jaakkola_jordan",
    tolerance: float = 1e-5,
    max_iterations: int = 1000,
) -> SiteFit:
    """A Gaussian approximation of stick-breaking regression, independent over sticks.

    Parameters
    ----------
    data : CountedRows
    prior : MvNormal, optional
        Of each stick's weights; N(0, I) if left out.
    method : {"jaakkola_jordan", "laplace", "delta", "quadrature"}
        See `pgmult.variational.sites`; the first is mean field with Pólya-gamma variables.
    tolerance, max_iterations : float and int
        See `pgmult.variational.fit_sites`.

    Returns
    -------
    SiteFit
        Its classes are the sticks, in their order.
    """
    prior = weights_prior(prior, require_counted_rows(data).num_covariates, "prior")
    sticks = data.sticks
    return fit_sites(
        Rows(sticks.covariates, sticks.offsets),
        logistic_site(sticks.successes, sticks.trials, method),
        prior, tolerance=tolerance, max_iterations=max_iterations,
    )  # fmt: skip


# --------------------------------------------------------------------------- averages over q


def softmax_probs(fit: SiteFit, covariates: Any) -> FloatArray:
    """Probabilities of the classes averaged over q, ``(num_rows, num_classes)``.

    Parameters
    ----------
    fit : SiteFit
        Of a softmax regression.
    covariates : array, ``(num_rows, num_weights)``
    """
    x = as_finite(covariates, "covariates")
    mean = x @ fit.mean.T
    if fit.joint_cov is None:
        probs = LOG_SUM_EXP["quadrature"].expect(mean, predictor_vars(x, fit.cov))[1]
    else:
        probs = _dense_average(mean, JointClassRows(x, len(fit.mean)).project_cov(fit.joint_cov))
    return np.asarray(probs / probs.sum(axis=1, keepdims=True))


def stick_probs(fit: SiteFit, covariates: Any, order: IntArray) -> FloatArray:
    """Probabilities of the categories averaged over q, ``(num_rows, num_categories)``.

    Parameters
    ----------
    fit : SiteFit
        Of a stick-breaking regression.
    covariates : array, ``(num_rows, num_weights)``
    order : integer array, ``(num_categories,)``
        Of the sticks, as `CountedRows` has it.
    """
    x = as_finite(covariates, "covariates")
    mean, var = x @ fit.mean.T, predictor_vars(x, fit.cov)
    taken, left = logistic_expectations(mean, var)[1], logistic_expectations(-mean, var)[1]
    ones = np.ones((len(x), 1))
    probs = np.empty((len(x), len(order)))
    reaching = np.hstack([ones, np.cumprod(left, axis=1)])
    probs[:, order] = np.hstack([taken, ones]) * reaching
    return probs


@cache
def _points(size: int, log2_points: int) -> FloatArray:
    """Standard normal points of Sobol's, ``(num_blocks, size, num_points)``.

    With their mirrors they have mean 0, and are turned a little to have covariance I.
    """
    uniform = qmc.Sobol(size, scramble=False).random_base2(log2_points)
    points = ndtri(uniform + 0.5 / len(uniform))
    root = np.linalg.cholesky(points.T @ points / len(points))
    points = np.linalg.solve(root, points.T).T.reshape(-1, _POINTS_A_BLOCK, size)
    return np.ascontiguousarray(points.swapaxes(1, 2))


def _differences(mean: FloatArray, cov: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and covariances of all classes less the first: one dimension less."""
    contrast = np.eye(mean.shape[1])[1:] - np.eye(mean.shape[1])[0]
    return mean @ contrast.T, contrast @ cov @ contrast.T


def _roots(spread: FloatArray) -> FloatArray:
    """The widest directions go on the best of the quasi-random coordinates."""
    values, vectors = np.linalg.eigh(spread)
    values, vectors = values[:, ::-1], vectors[:, :, ::-1]
    return np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])


def _dense_average(mean: FloatArray, cov: FloatArray) -> FloatArray:
    """E softmax(x), x ~ N(mean, cov), a row each."""
    differences, spread = _differences(mean, cov)
    if mean.shape[1] == 2:
        share = logistic_expectations(differences[:, 0], np.maximum(spread[:, 0, 0], 0.0))[1]
        return np.column_stack([1.0 - share, share])
    out = np.empty_like(mean)
    points = _points(differences.shape[1], _LOG2_POINTS)
    over_rows(average_rows, len(mean), differences, _roots(spread), points, out, grain=16)
    return out


def _dense_quadrature(
    mean: FloatArray, cov: FloatArray, log2_points: int = _LOG2_FEW
) -> Expectation:
    """E log sum exp x, x ~ N(mean, cov), a row each, and its derivatives."""
    differences, spread = _differences(mean, cov)
    if mean.shape[1] == 2:
        rest, share, both = logistic_expectations(
            differences[:, 0], np.maximum(spread[:, 0, 0], 0.0)
        )
        curvature = 0.5 * both[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
        return mean[:, 0] + rest, np.column_stack([1.0 - share, share]), curvature
    value, probs, curvature = np.empty(len(mean)), np.empty_like(mean), np.empty(cov.shape)
    points = _points(differences.shape[1], log2_points)
    over_rows(
        integrate_rows, len(mean), np.ascontiguousarray(differences), _roots(spread), points,
        value, probs, curvature, grain=16,
    )  # fmt: skip
    return mean[:, 0] + value, probs, curvature


_FULL = {
    **DENSE_LOG_SUM_EXP,
    "quadrature": Approximation("quadrature", _dense_quadrature, is_bound=True),
}
