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

The likelihood may be your own: see `Site`, and `RowLikelihood`, which makes a site of a log
likelihood and its first two derivatives. `pgmult.testing.check_site` compares the derivatives of a
site with differences of its values.

References: Wang and Blei (2013), Variational inference in nonconjugate models, sections 3 and 4.2;
Jaakkola and Jordan (2000), Bayesian parameter estimation via variational methods; Polson, Scott
and Windle (2013).

>>> import numpy as np
>>> from pgmult.priors import MvNormal
>>> from pgmult.variational.logistic_sites import Delta
>>> x = np.column_stack([np.ones(6), np.arange(6.0)])
>>> site = Delta(np.array([0.0, 0.0, 1.0, 0.0, 1.0, 1.0]), np.ones(6))
>>> fit = fit_sites(Rows(x), site, MvNormal(np.zeros(2), np.eye(2)))
>>> fit.mean.round(2), fit.is_bound
(array([[-0.62,  0.53]]), False)
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy import sparse

from pgmult.core.arguments import as_kind, as_real
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_counts, as_finite, as_positive_int
from pgmult.priors.gaussian import MvNormal
from pgmult.variational.ascent import Climb, slack
from pgmult.variational.fixed_points import Mixing, invert, unpack_prior

__all__ = [
    "Design",
    "RowLikelihood",
    "Rows",
    "Site",
    "SiteFit",
    "as_matrix",
    "fit_sites",
    "row_squares",
]

_ROWS = 4096  # of a sparse table that are dense at a time
Expectation = tuple[FloatArray, FloatArray, FloatArray]  # F, dF/dm, dF/dv


@runtime_checkable
class Site(Protocol):
    """A stand-in F(m, v) of E f(psi), psi ~ N(m, v), a row each.

    Everything that makes a likelihood yours is in `expect`, which returns three numbers a row: F,
    dF/dm and dF/dv. Where F is the expectation itself, of an f whose derivatives are known,

        dF/dm = E f'(psi),    dF/dv = E f''(psi) / 2,

    so a site is three functions. f must be log concave (f'' <= 0), or curvatures could cancel the
    prior's. `expect` must take any means, and variances from 0 up: the search begins at 0, and
    samplers take F(psi, 0) for f(psi).

    Attributes
    ----------
    method : str
        Its name, which its fits have too.
    is_bound : bool
        Whether F(m, v) <= E f(psi) everywhere, so that L is a lower bound of the log evidence.
    at_mode : bool
        Whether F looks at v = 0 only (Laplace): L then has the expansion at the mode added.
    """

    at_mode: ClassVar[bool]

    @property
    def method(self) -> str:
        """Its name."""

    @property
    def is_bound(self) -> bool:
        """Whether L is a lower bound."""

    def expect(self, mean: Any, var: Any) -> tuple[Any, Any, Any]:
        """F, dF/dm and dF/dv (not above 0), a row each, at means and variances of the predictor."""


@runtime_checkable
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
    covariates : array or sparse array, ``(num_rows, num_weights)``
        Of a sparse one no dense copy is ever made, but for a few thousand rows at a time.
    offsets : int64 array, ``(num_groups + 1,)``, optional
        Group g is the rows ``offsets[g]:offsets[g + 1]``; one group of all rows if left out.
    known : array, ``(num_rows,)``, optional
        Added to the predictors.
    """

    covariates: Any
    offsets: IntArray | None = None
    known: FloatArray | None = None
    _blocks: list[Any] = field(init=False)
    _slices: list[slice] = field(init=False)

    def __post_init__(self) -> None:
        x = as_matrix(self.covariates, "covariates")
        num_rows = x.shape[0]
        bounds = [0, num_rows] if self.offsets is None else _as_bounds(self.offsets, num_rows)
        slices = [slice(a, b) for a, b in pairwise(bounds)]
        known = np.zeros(num_rows) if self.known is None else as_finite(self.known, "known")
        if known.shape != (num_rows,):
            raise ValueError(f"known must have shape ({num_rows},), got {known.shape}")
        object.__setattr__(self, "known", known)
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
        return np.asarray(np.concatenate([x @ w for x, w in pairs]) + self.known)

    def project_cov(self, cov: FloatArray) -> FloatArray:
        """Variances of the predictors, ``(num_rows,)``."""
        pairs = zip(self._blocks, cov, strict=True)
        return np.concatenate([row_squares(x, s) for x, s in pairs])

    def pull(self, d_mean: FloatArray) -> FloatArray:
        """X' d_mean of each group, ``(num_groups, num_weights)``."""
        pairs = zip(self._blocks, self._slices, strict=True)
        return np.array([x.T @ d_mean[rows] for x, rows in pairs])

    def gram(self, d_var: FloatArray) -> FloatArray:
        """X' diag(-2 d_var) X of each group, O(num_rows num_weights**2)."""
        roots = np.sqrt(-2.0 * d_var)
        pairs = zip(self._blocks, self._slices, strict=True)
        return np.array([_gram(x, roots[rows]) for x, rows in pairs])

    def total(self, values: FloatArray) -> FloatArray:
        """Sum over the rows of each group, ``(num_groups,)``."""
        return np.array([values[rows].sum() for rows in self._slices])


def _as_bounds(offsets: Any, num_rows: int) -> list[int]:
    bounds = np.asarray(as_counts(offsets, "offsets"))
    if bounds.ndim != 1 or len(bounds) < 2 or (np.diff(bounds) < 0).any():
        raise ValueError(f"offsets must be a row of places that do not fall, got {bounds.shape}")
    if bounds[0] != 0 or bounds[-1] != num_rows:
        raise ValueError(f"offsets must go from 0 to {num_rows}, got {bounds[0]} to {bounds[-1]}")
    return [int(place) for place in bounds]


def as_matrix(value: Any, name: str) -> Any:
    """Finite numbers ``(rows, columns)``: a float64 array, or a sparse one in rows."""
    if not sparse.issparse(value):
        x = as_finite(value, name)
        if x.ndim != 2:
            raise ValueError(f"{name} must have shape (rows, covariates), got {x.shape}")
        return x
    if value.ndim != 2 or value.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be a sparse table of numbers, got dtype {value.dtype}")
    rows = sparse.csr_array(value, dtype=np.float64)
    as_finite(rows.data, name)
    return rows


def row_squares(x: Any, cov: FloatArray) -> FloatArray:
    """x_n' cov x_n of every row, dense or sparse."""
    if not sparse.issparse(x):
        return np.asarray(np.einsum("nd,nd->n", x @ cov, x))
    parts = [np.zeros(0)]
    for first in range(0, x.shape[0], _ROWS):
        some = x[first : first + _ROWS]
        parts.append(np.asarray(some.multiply(some @ cov).sum(axis=1)).ravel())
    return np.concatenate(parts)


def _gram(x: Any, roots: FloatArray) -> FloatArray:
    if not sparse.issparse(x):
        scaled = roots[:, None] * x
        return np.asarray(scaled.T @ scaled)
    scaled = sparse.diags_array(roots) @ x
    return np.asarray((scaled.T @ scaled).toarray())


# --------------------------------------------------------------------------- your own likelihood


@dataclass(frozen=True, slots=True, eq=False)
class RowLikelihood:
    """A site from a log likelihood of rows and its first two derivatives, by quadrature.

    With Gauss-Hermite nodes for psi ~ N(m, v) it is F = E f, dF/dm = E f' and dF/dv = E f'' / 2:
    the best Gaussian, where f is smooth over a standard deviation of psi.

    Attributes
    ----------
    value, slope, curvature : callables
        f, f' and f'' of every row, from predictors ``(num_rows,)``. f'' must not be above 0.
    num_nodes : int

    Examples
    --------
    Counts of rare events, log rates linear in covariates:

    >>> import numpy as np
    >>> from pgmult.priors import MvNormal
    >>> x, y = np.column_stack([np.ones(4), [0.0, 1.0, 2.0, 3.0]]), np.array([1.0, 2.0, 8.0, 20.0])
    >>> site = RowLikelihood(
    ...     lambda f: y * f - np.exp(f), lambda f: y - np.exp(f), lambda f: -np.exp(f)
    ... )
    >>> fit_sites(Rows(x), site, MvNormal(np.zeros(2), np.eye(2))).mean.round(2)
    array([[-0.03,  1.  ]])
    """

    value: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    curvature: Callable[[FloatArray], FloatArray]
    num_nodes: int = 32

    method: ClassVar[str] = "quadrature"
    is_bound: ClassVar[bool] = True
    at_mode: ClassVar[bool] = False

    def __post_init__(self) -> None:
        as_positive_int(self.num_nodes, "num_nodes", maximum=200)

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv."""
        nodes, weights = hermegauss(self.num_nodes)
        sums = np.zeros((3, len(mean)))
        scale = np.sqrt(var)
        for node, weight in zip(nodes, weights / weights.sum(), strict=True):
            psi = mean + node * scale
            sums += weight * np.array([self.value(psi), self.slope(psi), self.curvature(psi)])
        return sums[0], sums[1], 0.5 * sums[2]


# --------------------------------------------------------------------------- the solver


@dataclass(frozen=True, slots=True, eq=False)
class SiteFit:
    """A Gaussian approximation q(w_g) = N(mean_g, cov_g) for each group: a `Fit`.

    Attributes
    ----------
    method : str
        The site's.
    mean : array, ``(num_groups, num_weights)``
    cov : array, ``(num_groups, num_weights, num_weights)``
    level : array, ``(num_groups,)``
        L: the log evidence of each group's rows, bounded or approximated.
    is_bound : bool
        Whether `level` is a lower bound of the log evidence.
    converged : bool
        Whether the last iteration moved no mean by more than the tolerance.
    num_iterations : int
    """

    method: str
    mean: FloatArray
    cov: FloatArray
    level: FloatArray
    is_bound: bool
    converged: bool
    num_iterations: int

    @property
    def objective(self) -> float:
        """The sum of all groups' L."""
        return float(self.level.sum())


_Spread = tuple[FloatArray, FloatArray, FloatArray]  # covariances, and what goes with them

_PLAIN = 10  # iterations before mixing: enough for what is near Newton's method


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
    as_kind(design, "design", Design)
    as_kind(site, "site", Site)
    as_real(tolerance, "tolerance", minimum=0.0)
    as_positive_int(max_iterations, "max_iterations")
    num_groups, size = design.shape
    mean0, precision0 = unpack_prior(prior, num_groups, size, "group")
    ascent = _Ascent(design, site, mean0, precision0, float(np.linalg.slogdet(precision0)[1]))
    here = ascent.start(mean0 if start is None else _as_start(start, design.shape))
    mixing, share, converged = Mixing(), np.ones(num_groups), False
    for iteration in range(1, max_iterations + 1):
        if iteration > _PLAIN and not site.at_mode:
            ways = ascent.ways(here)
            proposed = mixing.propose(*ways, tolerance=tolerance)
            if proposed is None:
                converged = True
                break
            mean, precision = (part[:, 0] for part in proposed)
            there = ascent.at(mean, precision)
            good = there.level >= here.level - slack(here.level)
            if good.all():
                here = there
                continue
            if good.any():
                here = ascent.at(
                    np.where(good[:, None], mean, here.mean),
                    np.where(good[:, None, None], precision, here.precision),
                )
        turned, share = ascent.turn(here, share)
        moved, length = ascent.move(turned)
        gain = np.abs(moved.level - here.level)
        still = gain <= np.maximum(tolerance * tolerance * size, slack(moved.level))
        here = moved
        if (length <= tolerance).all() and (site.at_mode or still.all()):
            converged = True
            break
    level = ascent.evidence_at_mode(here) if site.at_mode else here.level
    return SiteFit(site.method, here.mean, here.cov, level, site.is_bound, converged, iteration)


def _as_start(start: Any, shape: tuple[int, int]) -> FloatArray:
    mean = as_finite(start, "start")
    if mean.shape != shape:
        raise ValueError(f"start must have shape {shape}, got {mean.shape}")
    return mean


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """L of each group at one q, and what it takes to leave."""

    mean: FloatArray
    precision: FloatArray
    cov: FloatArray
    log_det: FloatArray  # of the precision
    entropy: FloatArray  # less that under the prior, and what the prior says of the spread
    psi: Any  # means of the predictors
    var: Any  # and their variances
    d_mean: Any
    d_var: Any
    fit: FloatArray  # sum of F over rows
    level: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Ascent:
    """What of L does not change on the way, and the steps that raise it."""

    design: Design
    site: Site
    mean0: FloatArray
    precision0: FloatArray
    log_det0: float

    def start(self, mean: FloatArray) -> _Point:
        """No covariance is known yet, and any is better."""
        groups, size = self.design.shape
        m = np.array(np.broadcast_to(mean, (groups, size)))
        cov = np.zeros((groups, size, size))
        precision = np.array(np.broadcast_to(self.precision0, cov.shape))
        psi = self.design.project(m)
        var = 0.0 * psi if self.site.at_mode else self.design.project_cov(cov)
        here = self._point(m, precision, (cov, *np.zeros((2, groups))), psi, var)
        return replace(here, level=np.full(groups, -np.inf))

    def at(self, mean: FloatArray, precision: FloatArray) -> _Point:
        """L and its derivatives."""
        spread = self._spread(precision)
        psi, var = self.design.project(mean), self.design.project_cov(spread[0])
        return self._point(mean, precision, spread, psi, var)

    def ways(self, here: _Point) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Means and precisions, and where both fixed-point equations would have them.

        As `Mixing` takes them: one block a group.
        """
        target = self._target(here)
        mean = here.mean + np.linalg.solve(target, self._gradient(here)[..., None])[..., 0]
        return here.mean[:, None], here.precision[:, None], mean[:, None], target[:, None]

    def turn(self, here: _Point, share: FloatArray) -> tuple[_Point, FloatArray]:
        """The covariances given the means, and the share of the way that each group went.

        Where half of the way was too far last time, so may all of it be now.
        """
        way = self._target(here) - here.precision
        climb = Climb(here.level, share=np.minimum(1.0, 2.0 * share))
        for waiting in climb:
            precision = here.precision + climb.share[:, None, None] * way
            spread = self._spread(precision)
            var = here.var if self.site.at_mode else self.design.project_cov(spread[0])
            there = self._point(here.mean, precision, spread, here.psi, var)
            if self.site.at_mode:  # which does not see them
                break
            climb.accept(there.level[waiting])
        return there, climb.share

    def move(self, here: _Point) -> tuple[_Point, FloatArray]:
        """The means given the covariances, and the length of a whole step of each group."""
        gradient = self._gradient(here)
        step = np.einsum("gij,gj->gi", here.cov, gradient)
        climb = Climb(here.level)
        for waiting in climb:
            there = self._moved(here, here.mean + climb.share[:, None] * step)
            climb.accept(there.level[waiting])
        if climb.stuck.any():
            there = self._moved(here, np.where(climb.stuck[:, None], here.mean, there.mean))
        return there, np.sqrt(np.maximum(np.einsum("gi,gi->g", step, gradient), 0.0))

    def evidence_at_mode(self, here: _Point) -> FloatArray:
        """Laplace's: the penalty and the rows have no variance in them."""
        return here.fit - self._penalty(here.mean) + 0.5 * (self.log_det0 - here.log_det)

    def _target(self, here: _Point) -> FloatArray:
        return self.precision0 + self.design.gram(here.d_var)

    def _gradient(self, here: _Point) -> FloatArray:
        return self.design.pull(here.d_mean) - (here.mean - self.mean0) @ self.precision0

    def _moved(self, here: _Point, mean: FloatArray) -> _Point:
        spread = here.cov, here.log_det, here.entropy
        return self._point(mean, here.precision, spread, self.design.project(mean), here.var)

    def _penalty(self, mean: FloatArray) -> FloatArray:
        gap = mean - self.mean0
        return np.asarray(0.5 * np.einsum("gi,gi->g", gap @ self.precision0, gap))

    def _spread(self, precision: FloatArray) -> _Spread:
        cov, log_det = invert(precision)
        trace = np.einsum("ij,gji->g", self.precision0, cov)
        return cov, log_det, 0.5 * (self.log_det0 - log_det + len(self.precision0) - trace)

    def _point(
        self, mean: FloatArray, precision: FloatArray, spread: _Spread, psi: Any, var: Any
    ) -> _Point:
        value, d_mean, d_var = self.site.expect(psi, var)
        fit = self.design.total(value)
        level = fit - self._penalty(mean) + spread[2]
        return _Point(mean, precision, *spread, psi, var, d_mean, d_var, fit, level)
