"""Gaussian approximations of log-linear regressions of counts: Poisson and negative binomial.

>>> import numpy as np
>>> from pgmult.regression.data import as_event_rows
>>> rng = np.random.default_rng(0)
>>> x = np.column_stack([np.ones(200), rng.standard_normal(200)])
>>> data = as_event_rows(x, rng.negative_binomial(2.0, 1.0 / (1.0 + np.exp(1.0 + x[:, 1]) / 2.0)))
>>> poisson, wide = (fit_count_regression(data, distribution=name) for name in DISTRIBUTIONS)
>>> wide.mean.round(1), bool(1.0 < wide.size < 4.0), bool(wide.objective > poisson.objective + 50)
(array([[1. , 0.9]]), True, True)
"""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from pgmult.core.arguments import as_choice, as_kind, as_real
from pgmult.core.typing import FloatArray
from pgmult.priors.gaussian import MvNormal
from pgmult.regression.data import EventRows
from pgmult.regression.models.linear import weights_prior
from pgmult.variational.designs import Rows
from pgmult.variational.fits import SiteFit, fit_sites
from pgmult.variational.sites import AtMode, CountSite, Site

DISTRIBUTIONS = ("poisson", "negative_binomial")
_METHODS = ("quadrature", "laplace")
_SIZES = 1e-3, 1e4  # from there on a negative binomial is a Poisson, but for rounding


@dataclass(frozen=True, slots=True, eq=False)
class CountFit(SiteFit):
    """A Gaussian approximation of the weights of a regression of counts: a `SiteFit` of one vector.

    Attributes
    ----------
    size : float
        Of the negative binomial, as given or where L is largest; inf for the Poisson. The level is
        L at this size.
    """

    size: float = math.inf


def count_site(data: EventRows, size: float, method: str = "quadrature") -> Site:
    """The site of these counts; a Poisson's where the size is infinite."""
    as_choice(method, "method", _METHODS)
    site = CountSite(data.counts, size, data.weights)
    return AtMode(site) if method == "laplace" else site


def fit_count_regression(
    data: EventRows,
    prior: MvNormal | None = None,
    *,
    distribution: str = "poisson",
    method: str = "quadrature",
    size: float | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 500,
) -> CountFit:
    """A Gaussian approximation of the weights' posterior, of log rates linear in covariates.

    Parameters
    ----------
    data : EventRows
    prior : MvNormal, optional
        Of the weights; N(0, I) if left out.
    distribution : {"poisson", "negative_binomial"}
    method : {"quadrature", "laplace"}
        See `pgmult.variational.sites`.
    size : float, optional
        r of the negative binomial, of variance mean + mean^2 / r; where L is largest if left out.
    tolerance, max_iterations : float and int
        See `fit_sites`.

    Returns
    -------
    CountFit
    """
    as_kind(data, "data", EventRows, "make them with pgmult.regression.as_event_rows")
    as_choice(distribution, "distribution", DISTRIBUTIONS)
    prior = weights_prior(prior, data.num_covariates, "prior")
    design = Rows(data.covariates, known=data.known)
    limits: dict[str, Any] = {"tolerance": tolerance, "max_iterations": max_iterations}
    start = _start(design, data, prior)

    def fit(size: float) -> SiteFit:
        nonlocal start
        found = fit_sites(design, count_site(data, size, method), prior, start=start, **limits)
        start = found.mean
        return found

    def with_size(size: float) -> CountFit:
        found = fit(size)
        return CountFit(
            **{each.name: getattr(found, each.name) for each in fields(found)}, size=size
        )

    if distribution == "poisson":
        if size is not None:
            raise ValueError("size is of the negative binomial: a Poisson has none")
        return with_size(math.inf)
    if size is not None:
        size = as_real(size, "size", minimum=_SIZES[0], maximum=_SIZES[1])
        return with_size(size)
    best = minimize_scalar(
        lambda log_size: -fit(math.exp(log_size)).objective,
        bounds=(math.log(_SIZES[0]), math.log(_SIZES[1])),
        method="bounded",
        options={"xatol": 1e-2},
    )
    size = float(math.exp(best.x))
    return with_size(size)


def rough_size(data: EventRows, prior: MvNormal) -> float:
    """A moment estimate of the size, from the variance of counts around rough rates."""
    design = Rows(data.covariates, known=data.known)
    rate = np.exp(np.minimum(design.project(_start(design, data, prior)), 40.0))
    excess = float(data.weights @ ((data.counts - rate) ** 2 - rate))
    square = float(data.weights @ rate**2)
    return float(np.clip(square / max(excess, 1e-300), 0.1, 100.0))


def _start(design: Rows, data: EventRows, prior: MvNormal) -> FloatArray:
    """Weighted least squares of log counts, as a start."""
    known = data.weights * (data.counts + 0.5)
    P0 = prior.precision()
    pull = design.pull(known * (np.log(data.counts + 0.5) - data.known))[0]
    return np.linalg.solve(P0 + design.gram(-0.5 * known)[0], P0 @ prior.prior_mean + pull)[None]
