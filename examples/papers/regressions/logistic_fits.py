r"""Gaussian approximations of logistic regressions, and MAP-EM for a prior that groups share.

With a fixed prior, `examples.papers.regressions.solver` does it all. With the learned prior of
`GroupedLogisticRegression`, q(w_g) = N(m_g, S_g) for each group is the E-step, and the M-step sets
mu and Sigma to the mode of their posterior density given q, that of mu and of the *precision*
Sigma^-1 (Wang and Blei 2013, section 4.2)::

    (G Sigma^-1 + V^-1) mu  =  Sigma^-1 sum_g m_g + V^-1 m        mu ~ N(m, V) a priori
    Sigma  =  [scale + sum_g ((m_g - mu)(m_g - mu)' + S_g)] / (G + dof - n - 1)

Where covariates are nearly collinear, as indicators of categories are, EM takes thousands of
iterations for mu. So mu makes Newton's step for the evidence itself instead, with gradient
Sigma^-1 sum_g (m_g - mu) and curvature sum_g (Sigma^-1 - Sigma^-1 S_g Sigma^-1): the same fixed
point, in a few iterations, and the m_g move along by S_g Sigma^-1 times the step.

The paper leaves the S_g out, as if the weights were known. Then Sigma is too small, and groups are
pooled too much. Expectation-maximisation includes them, and so does this by default.

>>> from examples.papers.regressions.data import as_labelled_rows
>>> x = np.ones((30, 1))
>>> data = as_labelled_rows(x, [0] * 8 + [1] * 22, groups=["a"] * 10 + ["b"] * 20)
>>> model = GroupedLogisticRegression(MvNormal(np.zeros(1), np.eye(1)), 5.0, np.eye(1))
>>> fit = fit_grouped_logistic_regression(model, data)
>>> fit.converged, fit.weights.mean[:, 0].round(1)
(True, array([-1.1,  3.2]))
"""

import math
from dataclasses import dataclass

import numpy as np

from examples.papers.regressions.classes import logistic_site
from examples.papers.regressions.data import LabelledRows
from examples.papers.regressions.designs import Rows
from examples.papers.regressions.logistic import GroupedLogisticRegression, LogisticRegression
from examples.papers.regressions.solver import SiteFit, fit_sites
from pgmult.core.arguments import as_flag, as_kind, as_real
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_positive_int
from pgmult.priors.gaussian import Moments, MvNormal
from pgmult.variational.ascent import HasHistory


def fit_logistic_regression(
    model: LogisticRegression,
    data: LabelledRows,
    *,
    method: str = "delta",
    tolerance: float = 1e-6,
    max_iterations: int = 500,
) -> SiteFit:
    """A Gaussian approximation of the weights' posterior, of each group by itself.

    Parameters
    ----------
    model : LogisticRegression
    data : LabelledRows, or what ``model.as_rows`` takes
    method : {"laplace", "delta", "jaakkola_jordan", "quadrature"}
        See `pgmult.variational.sites`.
    tolerance, max_iterations : float and int
        See `fit_sites`.

    Returns
    -------
    SiteFit
    """
    data = as_kind(model, "model", LogisticRegression).as_rows(data)
    return fit_sites(
        Rows(data.covariates, data.offsets, data.known),
        logistic_site(data.successes, data.trials, method),
        model.prior_of(data), tolerance=tolerance, max_iterations=max_iterations,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class GroupedFit(HasHistory):
    """The result of MAP-EM: a `pgmult.variational.Fit`.

    Attributes
    ----------
    weights : SiteFit
        Of each group, given mu and Sigma.
    mu : array, ``(num_covariates,)``
    Sigma : array, ``(num_covariates, num_covariates)``
    history : array, ``(num_iterations,)``
        The log evidence given mu and Sigma, approximated or bounded as the site says, plus their
        log prior density up to a constant; before each M-step.
    converged : bool
    """

    weights: SiteFit
    mu: FloatArray
    Sigma: FloatArray
    history: FloatArray
    converged: bool

    @property
    def method(self) -> str:
        """The site's."""
        return self.weights.method

    @property
    def is_bound(self) -> bool:
        """Whether the log evidence is bounded from below."""
        return self.weights.is_bound


def fit_grouped_logistic_regression(
    model: GroupedLogisticRegression,
    data: LabelledRows,
    *,
    method: str = "delta",
    with_covariances: bool = True,
    tolerance: float = 1e-4,
    max_iterations: int = 200,
) -> GroupedFit:
    """MAP-EM of the groups' common prior.

    Parameters
    ----------
    model : GroupedLogisticRegression
    data : LabelledRows, or what ``model.as_rows`` takes
        Groups may be empty: their weights then have the common prior.
    method : {"laplace", "delta", "jaakkola_jordan", "quadrature"}
        Of the E-step.
    with_covariances : bool
        Whether the M-step for Sigma adds the covariances S_g; without them, as printed by Wang and
        Blei, it is not expectation-maximisation, and Sigma is smaller.
    tolerance : float
        Ends when no group's mean changes by more than this (root mean square over its weights, in
        posterior standard deviations).
    max_iterations : int

    Returns
    -------
    GroupedFit
    """
    data = as_kind(model, "model", GroupedLogisticRegression).as_rows(data)
    as_flag(with_covariances, "with_covariances")
    as_real(tolerance, "tolerance", minimum=0.0)
    as_positive_int(max_iterations, "max_iterations")
    design = Rows(data.covariates, data.offsets, data.known)
    site = logistic_site(data.successes, data.trials, method)
    precision_of_mean = model.mean_prior.precision()
    size = data.num_covariates
    strength = model.dof - size - 1.0
    if data.num_groups + strength <= 0.0:
        raise ValueError(
            f"Sigma has no mode: {data.num_groups} groups and dof {model.dof} are too few for"
            f" {size} covariates"
        )
    mu = model.mean_prior.prior_mean
    Sigma = model.scale / max(strength, 1.0)
    history: list[float] = []
    start = previous = None
    while True:
        inner = min(1e-2 * tolerance, 1e-6) if start is None else 1e-2 * tolerance
        weights = fit_sites(
            design, site, MvNormal(mu, Sigma), start=start, tolerance=inner, max_iterations=100
        )
        precision = np.linalg.inv(Sigma)
        gap = mu - model.mean_prior.prior_mean
        log_prior = -0.5 * float(gap @ precision_of_mean @ gap)
        log_prior += 0.5 * strength * float(np.linalg.slogdet(precision)[1])
        log_prior -= 0.5 * float(np.sum(precision * model.scale))
        history.append(weights.objective + log_prior)
        sds = np.sqrt(np.diagonal(weights.cov, axis1=1, axis2=2))
        change = math.inf
        if previous is not None:
            moved = (weights.mean - previous) / sds
            change = float(np.sqrt(np.mean(moved**2, axis=1)).max())
        previous = weights.mean
        if change <= tolerance or len(history) == max_iterations:
            return GroupedFit(weights, mu, Sigma, np.array(history), change <= tolerance)
        pulled = weights.cov @ precision
        curvature = precision_of_mean + precision @ (
            data.num_groups * np.eye(size) - pulled.sum(axis=0)
        )
        gradient = precision @ (weights.mean - mu).sum(axis=0) - precision_of_mean @ gap
        shift = np.linalg.solve(curvature, gradient)
        mu = mu + shift
        start = weights.mean + pulled @ shift
        dof, scale = model.Sigma_given(Moments.of(start, mu), mu)
        if with_covariances:
            scale = scale + weights.cov.sum(axis=0)
        Sigma = scale / (dof - size - 1.0)
