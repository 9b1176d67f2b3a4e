r"""One solver for Gaussian approximations of regressions: Laplace, delta, bounds and quadrature.

Weights w have a Gaussian prior and rows of data see them through linear predictors psi = X w::

    p(w, y) = N(w | m0, S0)  prod_n exp f_n(psi_n),        q(w) = N(w | m, S)

Under q, psi_n is Gaussian with mean m_n = x_n' m and variance v_n = x_n' S x_n, and all methods
here maximise

    L(m, S) = sum_n F_n(m_n, v_n) - KL(q || prior)

for some stand-in F_n(m, v) of E_q f_n, the *site* (`examples.papers.regressions.sites`). At a
maximum

    S^-1 = S0^-1 + X' diag(-2 dF/dv) X,        X' dF/dm = S0^-1 (m - m0),

so an iteration sets S by the first equation and moves m by S times the gradient, which for log
concave f is a direction of ascent; a step that would lower L is halved. For the delta method S is
exact at every m, so this is ascent in the profile max_S L(m, S); for Jaakkola and Jordan's bound
the same iteration is theirs, and also mean field with Pólya-gamma variables. Longer searches are
accelerated by Anderson's mixing (1965), which extrapolates from the last few steps.

Several vectors of weights, one per group, are fitted side by side, each from its own rows. Where
rows see all vectors, as those of a softmax see the weights of all classes, and the vectors are
independent under q, the equations are those of non-conjugate variational message passing (Knowles
and Minka 2011, algorithm 1): a row sends each of its predictors the Gaussian with J = -2 dF/dv and
h = dF/dm + J m. Following all messages at once oscillates, and taking the classes in turn diverges
on some data. Three things help: what the classes have in common, which a softmax ignores, is set to
its prior's value at once; mixing starts at the first iteration; and L may not fall.

References: Wang and Blei (2013), Variational inference in nonconjugate models, sections 3 and 4.2;
Jaakkola and Jordan (2000), Bayesian parameter estimation via variational methods; Knowles and Minka
(2011), Non-conjugate variational message passing for multinomial and binary regression; Anderson
(1965), Iterative procedures for nonlinear integral equations.

>>> import numpy as np
>>> from pgmult.priors import MvNormal
>>> from examples.papers.regressions.designs import Rows
>>> from examples.papers.regressions.sites import LogisticSite
>>> x = np.column_stack([np.ones(6), np.arange(6.0)])
>>> site = LogisticSite(np.array([0.0, 0.0, 1.0, 0.0, 1.0, 1.0]), np.ones(6), "delta")
>>> fit = fit_sites(Rows(x), site, MvNormal(np.zeros(2), np.eye(2)))
>>> fit.mean.round(2), fit.is_bound
(array([[-0.62,  0.53]]), False)
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from examples.papers.climb import Climb
from examples.papers.regressions.designs import Centred, Design
from examples.papers.regressions.mixing import Mixing
from examples.papers.regressions.sites import Site
from pgmult.core.arguments import as_kind, as_real
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_finite, as_positive_int
from pgmult.priors.gaussian import MvNormal
from pgmult.variational.ascent import invert, slack

_PLAIN = 10  # iterations of separate groups before mixing: enough for what is near Newton's method
_ROUNDING = 1e-8  # of a message's precision


@dataclass(frozen=True, slots=True, eq=False)
class SiteFit:
    """Gaussian approximations q(w_g) = N(mean_g, cov_g) of vectors of weights: a `Fit`.

    Attributes
    ----------
    method : str
        The site's.
    mean : array, ``(num_vectors, num_weights)``
        A vector for each group, class or stick.
    cov : array, ``(num_vectors, num_weights, num_weights)``
    level : array, ``(num_vectors,)``, or ``(1,)`` where rows see all vectors
        L: the log evidence of each group's rows, bounded or approximated.
    is_bound : bool
        Whether `level` is a lower bound of the log evidence.
    converged : bool
        Whether the last iteration moved no mean by more than the tolerance.
    num_iterations : int
    joint_cov : array, ``(num_vectors * num_weights, num_vectors * num_weights)``, or None
        Of all vectors' weights, one after the other, where they are not independent under q.
    """

    method: str
    mean: FloatArray
    cov: FloatArray
    level: FloatArray
    is_bound: bool
    converged: bool
    num_iterations: int
    joint_cov: FloatArray | None = None

    @property
    def objective(self) -> float:
        """The sum of all levels."""
        return float(self.level.sum())


def fit_sites(
    design: Design,
    site: Site,
    prior: MvNormal,
    *,
    start: FloatArray | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 500,
) -> SiteFit:
    """Maximise L over means and covariances of all vectors of weights.

    Parameters
    ----------
    design : Design
    site : Site
    prior : MvNormal
        Of the weights, common to all vectors, or with one mean each; proper, so that separable
        labels, constant columns and groups without rows have a posterior.
    start : array, ``(num_vectors, num_weights)``, optional
        Means to start from; the prior's if left out.
    tolerance : float
        Ends when an iteration moves no mean by more than this, in posterior standard deviations
        (Mahalanobis), and L by no more than its square for each weight.
    max_iterations : int

    Returns
    -------
    SiteFit

    Raises
    ------
    ValueError
        If design, site and prior do not go together, or the site is not finite under the prior or
        rises with a variance.

    Notes
    -----
    An iteration costs O(num_rows num_weights**2 + num_vectors num_weights**3). Laplace is Newton's
    method; the delta method takes a few iterations more; Jaakkola and Jordan's bound converges
    linearly.
    """
    as_kind(design, "design", Design)
    as_kind(site, "site", Site)
    as_real(tolerance, "tolerance", minimum=0.0)
    as_positive_int(max_iterations, "max_iterations")
    ascent, here = _Ascent.begin(design, site, prior, start)
    plain = _PLAIN if ascent.each == 1 else 0
    mixing, share, converged = Mixing(), np.ones(len(here.level)), False
    for iteration in range(1, max_iterations + 1):
        if iteration > plain and not site.at_mode:
            proposed = mixing.propose(*ascent.ways(here), tolerance=tolerance)
            if proposed is None:
                converged = True
                break
            mean = proposed[0].reshape(here.mean.shape)
            precision = proposed[1].reshape(here.precision.shape)
            there = ascent.at(mean, precision)
            good = there.level >= here.level - slack(here.level)
            if good.all():
                here = there
                continue
            if good.any():
                taken = np.repeat(good, ascent.each)[:, None]
                here = ascent.at(
                    np.where(taken, mean, here.mean),
                    np.where(taken[..., None], precision, here.precision),
                )
        turned, share = ascent.turn(here, share)
        moved, length = ascent.move(turned)
        gain = np.abs(moved.level - here.level)
        numbers = here.mean.size / len(gain)
        still = gain <= np.maximum(tolerance * tolerance * numbers, slack(moved.level))
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


_Spread = tuple[FloatArray, FloatArray, FloatArray]  # covariances, and what goes with them


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """L at one q and its derivatives: arrays over vectors, and sums over them in `level`."""

    mean: FloatArray
    precision: FloatArray
    cov: FloatArray
    log_det: FloatArray  # of the precision
    entropy: FloatArray  # less that under the prior, and what the prior says of the spread
    psi: Any  # means of the predictors
    var: Any  # and their variances
    d_mean: Any
    d_var: Any
    fit: FloatArray  # sums of F over rows
    level: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Ascent:
    """What of L does not change on the way, and the steps that raise it."""

    design: Design
    site: Site
    mean0: FloatArray
    precision0: FloatArray
    log_det0: float
    each: int  # vectors that rise together: 1, or all

    @classmethod
    def begin(
        cls, design: Design, site: Site, prior: MvNormal, start: FloatArray | None
    ) -> "tuple[_Ascent, _Point]":
        """The search and its first point, of level -inf: no covariance is known yet."""
        count, size = design.shape
        mean0, precision0 = _unpack(prior, count, size)
        mean = np.array(mean0) if start is None else _as_start(start, design.shape)
        if isinstance(design, Centred):
            mean = design.centre(mean, mean0)
        cov = np.zeros((count, size, size))
        precision = np.array(np.broadcast_to(precision0, cov.shape))
        try:
            psi, var = design.project(mean), design.project_cov(cov)
            value, d_mean, d_var = site.expect(psi, var)
            fit = design.total(value)
        except (ValueError, IndexError) as error:
            raise ValueError(
                f"site must go with a design of shape {design.shape}, got {error}"
            ) from error
        if np.shape(d_mean) != np.shape(psi) or np.shape(d_var) != np.shape(var):
            raise ValueError(
                f"site must have derivatives of shapes {np.shape(psi)} and {np.shape(var)}, as the"
                f" predictors have, got {np.shape(d_mean)} and {np.shape(d_var)}"
            )
        if not np.isfinite(fit).all():
            raise ValueError(
                f"site must have finite values at the start, got {np.sum(fit)} in all (bring"
                " covariates to smaller scales)"
            )
        log_det0 = float(np.linalg.slogdet(precision0)[1])
        ascent = cls(design, site, mean0, precision0, log_det0, count // len(fit))
        zeros, level = np.zeros(count), np.full(len(fit), -np.inf)
        return ascent, _Point(
            mean, precision, cov, zeros, zeros, psi, var, d_mean, d_var, fit, level
        )

    def at(self, mean: FloatArray, precision: FloatArray) -> _Point:
        """L and its derivatives."""
        spread, mean = self._spread(precision), self._centred(mean)
        var = self.design.project_cov(spread[0])
        return self._point(mean, precision, spread, self.design.project(mean), var)

    def ways(self, here: _Point) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Means and precisions, and where both fixed-point equations would have them.

        As `Mixing` takes them: vectors that rise together are the blocks of one group.
        """
        target = self._target(here)
        mean = here.mean + np.linalg.solve(target, self._gradient(here)[..., None])[..., 0]
        parts = here.mean, here.precision, mean, target
        mean0, precision0, mean1, precision1 = (
            part.reshape(-1, self.each, *part.shape[1:]) for part in parts
        )
        return mean0, precision0, mean1, precision1

    def turn(self, here: _Point, share: FloatArray) -> tuple[_Point, FloatArray]:
        """The covariances given the means, and the share of the way that each group went.

        Where half of the way was too far last time, so may all of it be now.
        """
        way = self._target(here) - here.precision
        climb = Climb(here.level, share=np.minimum(1.0, 2.0 * share))
        for waiting in climb:
            part = np.repeat(climb.share, self.each)[:, None, None]
            precision = here.precision + part * way
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
            part = np.repeat(climb.share, self.each)[:, None]
            there = self._moved(here, here.mean + part * step)
            climb.accept(there.level[waiting])
        if climb.stuck.any():
            stuck = np.repeat(climb.stuck, self.each)[:, None]
            there = self._moved(here, np.where(stuck, here.mean, there.mean))
        squares = self._by_part(np.einsum("gi,gi->g", step, gradient))
        return there, np.sqrt(np.maximum(squares, 0.0))

    def evidence_at_mode(self, here: _Point) -> FloatArray:
        """Laplace's approximation of the evidence: rows and penalty at the mean alone."""
        spread = 0.5 * (self.log_det0 - here.log_det)
        return here.fit - self._by_part(self._penalty(here.mean)) + self._by_part(spread)

    def _target(self, here: _Point) -> FloatArray:
        if np.ndim(here.d_var) < 3 and np.max(here.d_var, initial=0.0) > 0.5 * _ROUNDING:
            raise ValueError(
                f"site must not rise with a variance, got a derivative of {np.max(here.d_var):.3g}"
            )
        return self.precision0 + self.design.gram(here.d_var)

    def _gradient(self, here: _Point) -> FloatArray:
        return self.design.pull(here.d_mean) - (here.mean - self.mean0) @ self.precision0

    def _moved(self, here: _Point, mean: FloatArray) -> _Point:
        mean, spread = self._centred(mean), (here.cov, here.log_det, here.entropy)
        return self._point(mean, here.precision, spread, self.design.project(mean), here.var)

    def _centred(self, mean: FloatArray) -> FloatArray:
        design = self.design
        return design.centre(mean, self.mean0) if isinstance(design, Centred) else mean

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
        level = fit - self._by_part(self._penalty(mean)) + self._by_part(spread[2])
        return _Point(mean, precision, *spread, psi, var, d_mean, d_var, fit, level)

    def _by_part(self, values: FloatArray) -> FloatArray:
        """Sums over vectors that rise together."""
        return np.asarray(values.reshape(-1, self.each).sum(axis=1))


def _unpack(prior: MvNormal, count: int, size: int) -> tuple[FloatArray, FloatArray]:
    """Means ``(count, size)`` and the precision that all have."""
    if as_kind(prior, "prior", MvNormal).potential is not None:
        raise ValueError("prior must not be conditioned on a potential")
    mean = np.atleast_2d(prior.prior_mean)
    if mean.shape[1] != size or len(mean) not in (1, count):
        raise ValueError(
            f"prior must be of {size} weights like the design, with one mean or {count}, got"
            f" {mean.shape}"
        )
    return np.broadcast_to(mean, (count, size)), prior.precision()
