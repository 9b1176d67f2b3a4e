r"""One solver for Gaussian approximations of regressions: Laplace, delta, Jaakkola-Jordan, ...

Weights w have a Gaussian prior and rows of data see them through a linear predictor psi = X w::

    p(w, y) = N(w | m0, S0)  prod_n exp f_n(psi_n),        q(w) = N(w | m, S)

Under q, psi_n is Gaussian with mean m_n = x_n' m and variance v_n = x_n' S x_n, and all methods
here maximise

    L(m, S) = sum_n F_n(m_n, v_n) - KL(q || prior)

for some stand-in F_n(m, v) of E_q f_n: that is all in which they differ. A *site* knows F and its
derivatives. At a maximum

    S^-1 = S0^-1 + X' diag(-2 dF/dv) X,        X' dF/dm = S0^-1 (m - m0),

so an iteration sets S by the first equation and moves m by S times the gradient, which for log
concave f is a direction of ascent; a step that would lower L is halved. For the delta method S is
exact at every m, so this is ascent in the profile max_S L(m, S); for Jaakkola and Jordan's bound
the same iteration is theirs, and also mean field with Pólya-gamma variables. A search that is not
soon over goes on by Anderson's mixing (1965), which foretells from a few steps where they lead.

===============  =================================================  =====================
site             F(m, v)                                            L is
===============  =================================================  =====================
Laplace          f(m): S is that at the mode                        Laplace's evidence
Delta            f(m) + f''(m) v / 2                                a Taylor approximation
JaakkolaJordan   min over xi of a quadratic bound: xi^2 = m^2 + v   a lower bound
Quadrature       E f itself, to 12 digits                           a lower bound, the best
===============  =================================================  =====================

References: Wang and Blei (2013), Variational inference in nonconjugate models, sections 3 and 4.2;
Jaakkola and Jordan (2000), Bayesian parameter estimation via variational methods; Polson, Scott
and Windle (2013).

>>> import numpy as np
>>> from pgmult.priors import MvNormal
>>> x = np.column_stack([np.ones(6), np.arange(6.0)])
>>> site = Delta(np.array([0.0, 0.0, 1.0, 0.0, 1.0, 1.0]), np.ones(6))
>>> fit = fit_sites(Rows(x), site, MvNormal(np.zeros(2), np.eye(2)))
>>> fit.mean.round(2), fit.is_bound
(array([[-0.62,  0.53]]), False)
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np

from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_finite, as_positive_int
from pgmult.priors.gaussian import MvNormal
from pgmult.variational.fixed_points import Mixing, distance, invert, unpack_prior

__all__ = ["Design", "Rows", "Site", "SiteFit", "fit_sites"]

Expectation = tuple[FloatArray, FloatArray, FloatArray]  # F, dF/dm, dF/dv


class Site(Protocol):
    """A stand-in F(m, v) of E f(psi), psi ~ N(m, v), a row each.

    Attributes
    ----------
    is_bound : bool
        Whether F(m, v) <= E f(psi) everywhere, so that L is a lower bound of the log evidence.
    at_mode : bool
        Whether F looks at v = 0 only (Laplace): L then has the expansion at the mode added.
    """

    at_mode: ClassVar[bool]

    @property
    def is_bound(self) -> bool:
        """Whether L is a lower bound."""

    def expect(self, mean: Any, var: Any) -> tuple[Any, Any, Any]:
        """F, dF/dm and dF/dv (not above 0), a row each, at means and variances of the predictor."""


class Design(Protocol):
    """How predictors depend on weights, for groups of rows that have weights of their own.

    `Rows` is the one for scalar predictors. Predictors of several dimensions have another, whose
    means, variances and derivatives have the shapes that it and its sites agree on.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Number of groups, and of weights in each."""

    def project(self, mean: FloatArray) -> Any:
        """Means of the predictors for means of the weights, ``(num_groups, num_weights)``."""

    def project_cov(self, cov: FloatArray) -> Any:
        """Variances of the predictors, for ``(num_groups, num_weights, num_weights)``."""

    def pull(self, d_mean: Any) -> FloatArray:
        """X' d_mean, the gradient with respect to the weights, ``(num_groups, num_weights)``."""

    def gram(self, d_var: Any) -> FloatArray:
        """X' diag(-2 d_var) X of each group."""

    def total(self, values: Any) -> FloatArray:
        """Sum over the rows of each group, ``(num_groups,)``."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The design of scalar predictors psi_n = x_n' w_g, rows n of group g.

    Attributes
    ----------
    covariates : array, ``(num_rows, num_weights)``
    offsets : int64 array, ``(num_groups + 1,)``, optional
        Group g is the rows ``offsets[g]:offsets[g + 1]``; one group of all rows if left out.
    """

    covariates: FloatArray
    offsets: IntArray | None = None
    _blocks: list[FloatArray] = field(init=False)
    _slices: list[slice] = field(init=False)

    def __post_init__(self) -> None:
        x = as_finite(self.covariates, "covariates")
        if x.ndim != 2:
            raise ValueError(f"covariates must have shape (rows, weights), got {x.shape}")
        bounds = [0, len(x)] if self.offsets is None else self.offsets.tolist()
        slices = [slice(a, b) for a, b in pairwise(bounds)]
        object.__setattr__(self, "covariates", x)
        object.__setattr__(self, "_slices", slices)
        object.__setattr__(self, "_blocks", [x[rows] for rows in slices])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of groups, and of weights in each."""
        return len(self._blocks), self.covariates.shape[1]

    def project(self, mean: FloatArray) -> FloatArray:
        """Means of the predictors, ``(num_rows,)``."""
        pairs = zip(self._blocks, mean, strict=True)
        return np.concatenate([x @ w for x, w in pairs])

    def project_cov(self, cov: FloatArray) -> FloatArray:
        """Variances of the predictors, ``(num_rows,)``."""
        pairs = zip(self._blocks, cov, strict=True)
        return np.concatenate([np.einsum("nd,nd->n", x @ s, x) for x, s in pairs])

    def pull(self, d_mean: FloatArray) -> FloatArray:
        """X' d_mean of each group, ``(num_groups, num_weights)``."""
        pairs = zip(self._blocks, self._slices, strict=True)
        return np.array([d_mean[rows] @ x for x, rows in pairs])

    def gram(self, d_var: FloatArray) -> FloatArray:
        """X' diag(-2 d_var) X of each group, O(num_rows num_weights**2)."""
        scaled = np.sqrt(-2.0 * d_var)[:, None] * self.covariates
        return np.array([scaled[rows].T @ scaled[rows] for rows in self._slices])

    def total(self, values: FloatArray) -> FloatArray:
        """Sum over the rows of each group, ``(num_groups,)``."""
        return np.array([values[rows].sum() for rows in self._slices])


# --------------------------------------------------------------------------- the solver


@dataclass(frozen=True, slots=True, eq=False)
class SiteFit:
    """A Gaussian approximation q(w_g) = N(mean_g, cov_g) for each group.

    Attributes
    ----------
    mean : array, ``(num_groups, num_weights)``
    cov : array, ``(num_groups, num_weights, num_weights)``
    objective : array, ``(num_groups,)``
        L: the log evidence of each group's rows, bounded or approximated.
    is_bound : bool
        Whether `objective` is a lower bound of the log evidence.
    converged : bool
        Whether the last iteration moved no mean by more than the tolerance.
    num_iterations : int
    """

    mean: FloatArray
    cov: FloatArray
    objective: FloatArray
    is_bound: bool
    converged: bool
    num_iterations: int


_PLAIN = 10  # iterations before mixing: enough for what is near Newton's method
_MOST_HALVINGS = 40
_SLACK = 1e-12  # of a sum over rows: what rounding may take from L


def _slack(level: FloatArray) -> FloatArray:
    return _SLACK * (1.0 + np.abs(level))


def fit_sites(
    design: Design,
    site: Site,
    prior: MvNormal,
    *,
    start: FloatArray | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 500,
) -> SiteFit:
    """Maximise L over means and covariances of the weights of all groups.

    Parameters
    ----------
    design : Design
    site : Site
    prior : MvNormal
        Of the weights, common to all groups, or with one mean a group; proper, so that separable
        labels, constant columns and groups without rows have a posterior.
    start : array, ``(num_groups, num_weights)``, optional
        Means to start from; the prior's if left out.
    tolerance : float
        Ends when an iteration moves no group's mean by more than this, in posterior standard
        deviations (Mahalanobis), and L by no more than its square for each weight.
    max_iterations : int

    Returns
    -------
    SiteFit

    Notes
    -----
    An iteration costs O(num_rows num_weights**2 + num_groups num_weights**3). Laplace is Newton's
    method; the delta method takes a few iterations more; Jaakkola and Jordan's bound converges
    linearly.
    """
    max_iterations = as_positive_int(max_iterations, "max_iterations")
    num_groups, size = design.shape
    mean0, precision0 = unpack_prior(prior, num_groups, size, "group")
    log_det0 = np.linalg.slogdet(precision0)[1]
    m = np.array(np.broadcast_to(mean0 if start is None else start, (num_groups, size)))

    def penalty(m: FloatArray) -> FloatArray:
        deviation = m - mean0
        return np.asarray(0.5 * np.einsum("gi,gi->g", deviation @ precision0, deviation))

    def entropy(cov: FloatArray, log_det: FloatArray) -> FloatArray:
        spread = np.einsum("ij,gji->g", precision0, cov)
        return np.asarray(0.5 * (log_det0 - log_det + size - spread))

    psi = design.project(m)
    cov = np.zeros((num_groups, size, size))
    var = 0.0 * psi if site.at_mode else design.project_cov(cov)
    value, d_mean, d_var = site.expect(psi, var)
    precision = np.array(np.broadcast_to(precision0, (num_groups, size, size)))
    level = np.full(num_groups, -np.inf)
    blend = np.ones((num_groups, 1, 1))
    mixing, converged = Mixing(), False
    for iteration in range(1, max_iterations + 1):
        target = precision0 + design.gram(d_var)
        if iteration > _PLAIN and not site.at_mode:
            gradient = design.pull(d_mean) - (m - mean0) @ precision0
            target_m = m + np.linalg.solve(target, gradient[..., None])[..., 0]
            ways = m[:, None], precision[:, None], target_m[:, None], target[:, None]
            if (distance(*ways) <= tolerance).all():
                converged = True
                break
            new_m, new_precision = (proposed[:, 0] for proposed in mixing.propose(*ways))
            new_cov, log_det = invert(new_precision)
            new_psi, new_var = design.project(new_m), design.project_cov(new_cov)
            value, d_mean, d_var = site.expect(new_psi, new_var)
            new_level = design.total(value) - penalty(new_m) + entropy(new_cov, log_det)
            good = new_level >= level - _slack(level)
            m = np.where(good[:, None], new_m, m)
            precision = np.where(good[:, None, None], new_precision, precision)
            cov = np.where(good[:, None, None], new_cov, cov)
            level = np.where(good, new_level, level)
            if good.all():
                psi, var = new_psi, new_var
                continue
            if good.any():
                psi, var = design.project(m), design.project_cov(cov)
                target = precision0 + design.gram(site.expect(psi, var)[2])
        # the covariance, given the mean
        blend = np.minimum(1.0, 2.0 * blend)
        for _ in range(_MOST_HALVINGS):
            new_precision = precision + blend * (target - precision)
            cov, log_det = invert(new_precision)
            new_var = var if site.at_mode else design.project_cov(cov)
            value, d_mean, d_var = site.expect(psi, new_var)
            rest = entropy(cov, log_det)
            new_level = design.total(value) - penalty(m) + rest
            worse = ~(new_level >= level - _slack(level))
            if site.at_mode or not worse.any():
                break
            blend[worse] *= 0.5
        before, level = level, new_level
        precision, var = new_precision, new_var
        # the mean, given the covariance
        gradient = design.pull(d_mean) - (m - mean0) @ precision0
        step = np.einsum("gij,gj->gi", cov, gradient)
        length = np.sqrt(np.maximum(np.einsum("gi,gi->g", step, gradient), 0.0))
        scale = np.ones((num_groups, 1))
        for _ in range(_MOST_HALVINGS):
            new_m = m + scale * step
            psi = design.project(new_m)
            value, d_mean, d_var = site.expect(psi, var)
            new_level = design.total(value) - penalty(new_m) + rest
            worse = ~(new_level >= level - _slack(level))
            if not worse.any():
                break
            scale[worse] *= 0.5
        else:
            new_m = np.where(worse[:, None], m, new_m)
            psi = design.project(new_m)
            value, d_mean, d_var = site.expect(psi, var)
            new_level = np.where(worse, level, new_level)
        m, level = new_m, new_level
        gain = np.abs(level - before)
        still = gain <= np.maximum(tolerance**2 * size, _slack(level))
        if (length <= tolerance).all() and (site.at_mode or still.all()):
            converged = True
            break
    if site.at_mode:  # the penalty and the rows have no variance in them
        level = design.total(value) - penalty(m) + 0.5 * (log_det0 - log_det)
    return SiteFit(m, cov, level, site.is_bound, converged, iteration)
