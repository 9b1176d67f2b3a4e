"""Gaussian rows and the normal-inverse-Wishart prior of their mean and covariance.

`MvNormal` is a batch of Gaussian vectors that share one covariance, multiplied by whatever Gaussian
potentials they have been conditioned on:

    x_r  ~  N(x_r | mean, cov) exp(-x_r' J_r x_r / 2 + h_r' x_r),

which is Gaussian again, with precision cov^-1 + J_r. Conditioning only adds potentials, so a
posterior has the same type as a prior, and nothing of size rows x n x n is ever held for diagonal
potentials.

>>> import numpy as np
>>> from pgmult import DiagonalPotential, MvNormal
>>> prior = MvNormal(np.zeros(2), np.eye(2))
>>> seen = DiagonalPotential(J=np.array([[3.0, 0.0]]), h=np.array([[3.0, 0.0]]))
>>> prior.condition(seen).mean()
array([[0.75, 0.  ]])
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, multigammaln

from pgmult.compiled import linalg
from pgmult.compiled.rows import num_workers, over_rows
from pgmult.compiled.simd import WIDTH
from pgmult.core.arguments import as_real
from pgmult.core.machine import refuse_unaffordable
from pgmult.core.parameters import Checked, real
from pgmult.core.potentials import DensePotential, DiagonalPotential, as_potential
from pgmult.core.typing import FloatArray, Generator
from pgmult.core.validate import as_finite, as_generator, as_positive_int, as_spd, made, new_key

_LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MvNormal(Checked):
    """Gaussian rows sharing a covariance, times the potentials they were conditioned on.

    Attributes
    ----------
    prior_mean : array, ``(n,)`` or ``(num_rows, n)``
        Mean before conditioning, common to all rows or one per row.
    prior_cov : array, ``(n, n)``
        Covariance before conditioning, symmetric positive definite.
    potential : DiagonalPotential or DensePotential or None
        Product of everything conditioned on, with leading shape ``(num_rows,)`` or ``()``.

    Raises
    ------
    ValueError
        If the covariance is not symmetric positive definite or shapes do not agree.
    """

    prior_mean: Annotated[FloatArray, as_finite]
    prior_cov: FloatArray
    potential: DiagonalPotential | DensePotential | None = None

    def _complete(self) -> None:
        shape = self.prior_mean.shape
        if len(shape) not in (1, 2):
            raise ValueError(f"prior_mean must have shape (n,) or (rows, n), got {shape}")
        self._set(prior_cov=as_spd(self.prior_cov, "prior_cov", shape[-1], "prior_mean"))

    @property
    def size(self) -> int:
        """Number of coordinates, n."""
        return int(self.prior_cov.shape[0])

    def condition(self, potential: DiagonalPotential | DensePotential) -> "MvNormal":
        """The posterior: this times `potential`."""
        shape, n, old = as_potential(potential).h.shape, self.size, self.potential
        rows = None if self.prior_mean.ndim == 1 else len(self.prior_mean)
        if len(shape) not in (1, 2) or shape[-1] != n or rows not in (None, shape[0]):
            expected = f"({rows}, {n})" if rows else f"({n},) or (rows, {n})"
            raise ValueError(f"the potential must have shape {expected}, got {shape}")
        if isinstance(old, DiagonalPotential) and isinstance(potential, DiagonalPotential):
            potential = old + potential
        elif old is not None:
            potential = _dense(old) + _dense(potential)
        given = {"prior_mean": self.prior_mean, "prior_cov": self.prior_cov}
        return made(MvNormal, **given, potential=potential)

    def precision(self) -> FloatArray:
        """Precision matrices, ``(n, n)`` or ``(num_rows, n, n)``."""
        prior = np.linalg.inv(self.prior_cov)
        prior = 0.5 * (prior + prior.T)
        return prior if self.potential is None else prior + _dense(self.potential).J

    def cov(self) -> FloatArray:
        """Covariance matrices, ``(n, n)`` or ``(num_rows, n, n)``."""
        if self.potential is None:
            return self.prior_cov
        return np.asarray(np.linalg.inv(self.precision()))

    def mean(self) -> FloatArray:
        """Means, ``(n,)`` or ``(num_rows, n)``."""
        if self.potential is None:
            return self.prior_mean
        pull = self.potential.h - _apply(self.potential, self.prior_mean)
        return self.prior_mean + np.linalg.solve(self.precision(), pull[..., None])[..., 0]

    def inner(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """A' precision b of deviations ``(..., n)``; one value per row."""
        return np.asarray(np.einsum("...i,...ij,...j->...", a, self.precision(), b))

    def log_density(self, x: ArrayLike) -> FloatArray:
        """Normalised log density at x, ``(..., n)``; one value per row."""
        precision, mean, x = self.precision(), self.mean(), as_finite(x, "x")
        fits = mean.ndim == 1 or len(mean) == 1 or x.shape[-2:-1] in ((), (1,), (len(mean),))
        if x.shape[-1:] != (self.size,) or not fits:
            raise ValueError(f"x must have shape {mean.shape}, got {x.shape}")
        away = x - mean
        quadratic = np.einsum("...i,...ij,...j->...", away, precision, away)
        log_det = np.linalg.slogdet(precision)[1]
        return np.asarray(0.5 * (log_det - quadratic - self.size * _LOG_2PI))

    def log_normalizer(self) -> FloatArray:
        """Log of the integral of N(x | prior) times the potential, one value per row.

        The log evidence of the potentials, up to the constants the link left out.
        """
        if self.potential is None:
            return np.zeros(self.prior_mean.shape[:-1])
        mean = self.mean()
        away = mean - self.prior_mean
        quadratic = np.einsum("...i,ij,...j->...", away, np.linalg.inv(self.prior_cov), away)
        value = np.sum(mean * (self.potential.h - 0.5 * _apply(self.potential, mean)), axis=-1)
        log_dets = np.linalg.slogdet(self.precision())[1] + np.linalg.slogdet(self.prior_cov)[1]
        return np.asarray(value - 0.5 * (quadratic + log_dets))

    def sample(self, rng: Generator, num_rows: int | None = None) -> FloatArray:
        """One draw of every row, ``(n,)`` or ``(num_rows, n)``.

        Parameters
        ----------
        rng : numpy.random.Generator
        num_rows : int, optional
            How many rows to draw where neither the mean nor a potential says so.

        Raises
        ------
        ValueError
            If a row's posterior precision is not positive definite (a potential with negative J).

        Notes
        -----
        With diagonal potentials, a row costs O(m**3) where m is the last coordinate that any
        observation reached; rows run on all the threads of the enclosing chain.
        """
        as_generator(rng)
        if self.potential is None:
            shape = self.prior_mean.shape
            if num_rows is not None:
                shape = as_positive_int(num_rows, "num_rows"), self.size
                refuse_unaffordable(16.0 * num_rows * self.size, "num_rows", num_rows)
            noise, root = rng.standard_normal(shape), lower_cholesky(self.prior_cov)
            return np.asarray(self.prior_mean + np.einsum("...j,ij->...i", noise, root))
        if num_rows is not None:
            raise ValueError("num_rows is set by the potential here; leave it out")
        if isinstance(self.potential, DensePotential):
            factor = np.linalg.cholesky(self.precision())
            noise = rng.standard_normal(self.potential.h.shape)[..., None]
            scaled = np.linalg.solve(np.swapaxes(factor, -1, -2), noise)[..., 0]
            return np.asarray(self.mean() + scaled)
        return self._sample_diagonal(rng, self.potential)

    def _sample_diagonal(self, rng: Generator, potential: DiagonalPotential) -> FloatArray:
        J, h = (np.ascontiguousarray(np.atleast_2d(x)) for x in (potential.J, potential.h))
        observed = (J != 0.0) | (h != 0.0)
        depths = self.size - np.argmax(observed[:, ::-1], axis=1)
        depths[~observed.any(axis=1)] = 0
        root = lower_cholesky(self.prior_cov)
        out = np.empty_like(h)
        groups = -(-len(h) // WIDTH)
        statuses = over_rows(
            linalg.sample_diagonal_posteriors, groups, num_workers(groups, 1),
            np.argsort(depths, kind="stable"), depths, root, np.atleast_2d(self.prior_mean),
            J, h, new_key(rng), out, grain=1,
        )  # fmt: skip
        if failed := [status - 1 for status in statuses if status]:
            why = "its precision is not positive definite or finite (is J negative or nan there?)"
            raise ValueError(f"row {min(failed)} has no Gaussian posterior: {why}")
        return out.reshape(potential.h.shape)


def lower_cholesky(matrix: FloatArray) -> FloatArray:
    """The lower Cholesky factor, by the same operations in the same order on every machine."""
    root = matrix.copy()
    if linalg.cholesky(root):
        raise ValueError("the covariance is singular to working precision")
    return root


def _dense(potential: DiagonalPotential | DensePotential) -> DensePotential:
    return potential.dense() if isinstance(potential, DiagonalPotential) else potential


def _apply(potential: DiagonalPotential | DensePotential, x: FloatArray) -> FloatArray:
    """J x, row by row."""
    if isinstance(potential, DiagonalPotential):
        return np.asarray(potential.J * x)
    return np.asarray(np.einsum("...ij,...j->...i", potential.J, x))


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Sums over Gaussian observations, which add up where observations do.

    Attributes
    ----------
    count : int
    about : array, ``(n,)``
        A point near them: digits are lost where it is many standard deviations away.
    total : array, ``(n,)``
        Sum of x - about.
    squares : array, ``(n, n)``
        Sum of (x - about)(x - about)'.
    """

    count: int
    about: FloatArray
    total: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, about: FloatArray) -> "Moments":
        """The moments of these rows, ``(num_rows, n)``."""
        return cls(len(rows), about, (rows - about).sum(axis=0), linalg.scatter(rows, about))

    def around(self, point: FloatArray) -> FloatArray:
        """The sum of squares around another point."""
        shift = point - self.about
        cross = np.outer(self.total, shift)
        return self.squares - (cross + cross.T) + self.count * np.outer(shift, shift)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NormalInverseWishart(Checked):
    """The conjugate prior of a Gaussian's mean and covariance.

    Sigma ~ IW(scale, dof), with E[Sigma] = scale / (dof - n - 1), and mu | Sigma ~ N(mean, Sigma /
    strength) (Gelman et al. 2013, Bayesian Data Analysis, section 3.6).

    Attributes
    ----------
    mean : array, ``(n,)``
    strength : float
        How many observations the prior mean is worth, > 0.
    dof : float
        Degrees of freedom, > n - 1: below that there is no such distribution.
    scale : array, ``(n, n)``
        Symmetric positive definite.
    """

    mean: Annotated[FloatArray, as_finite, "dim"]
    strength: Annotated[float, real(above=0.0)]
    dof: float
    scale: Annotated[FloatArray, as_spd, "dim", "dim"]

    def _complete(self) -> None:
        as_real(self.dof, "dof", above=len(self.mean) - 1)  # else the prior is improper

    @classmethod
    def weak(cls, mean: ArrayLike, var: float = 1.0, rows: float = 2.0) -> "NormalInverseWishart":
        """A proper prior worth little data: E[Sigma] = var I with n + `rows` degrees of freedom.

        More `rows` than 2 hold Sigma more firmly; they must be above 1.
        """
        centre = as_finite(mean, "mean")
        n = centre.size  # a mean that is no vector is refused below
        if n == 0:
            raise ValueError("mean must have one entry at least, got none")
        rows = as_real(rows, "rows", above=1.0)
        scale = (rows - 1.0) * as_real(var, "var", minimum=1e-300)
        return cls(centre, 1.0, n + rows, scale * np.eye(n))

    def condition(self, rows: ArrayLike) -> "NormalInverseWishart":
        """The posterior given Gaussian observations, ``(num_rows, n)``."""
        x = as_finite(rows, "rows")
        if x.ndim != 2 or x.shape[1] != len(self.mean):
            raise ValueError(f"rows must have shape (rows, {len(self.mean)}), got {x.shape}")
        if len(x) == 0:
            return self
        average = x.mean(axis=0)
        posterior = self.condition_average(len(x), average, linalg.scatter(x, average))
        return replace(posterior)  # checked: x is anybody's

    def condition_moments(self, moments: "Moments") -> "NormalInverseWishart":
        """The posterior given observations by their moments."""
        if moments.count == 0:
            return self
        average = moments.about + moments.total / moments.count
        return self.condition_average(moments.count, average, moments.around(average))

    def condition_average(self, count: float, average: FloatArray, within: FloatArray) -> Self:
        """The posterior given rows by their average and their scatter around it."""
        strength, shift = self.strength + count, average - self.mean
        mean = (self.strength * self.mean + count * average) / strength
        scale = self.scale + within + (self.strength * count / strength) * np.outer(shift, shift)
        return made(type(self), mean=mean, strength=strength, dof=self.dof + count, scale=scale)

    def sample(self, rng: Generator) -> tuple[FloatArray, FloatArray]:
        """One draw: mu, ``(n,)``, and Sigma, ``(n, n)``."""
        cov = sample_inverse_wishart(rng, self.scale, self.dof)
        noise = rng.standard_normal(len(self.mean))
        return self.mean + (lower_cholesky(cov) * noise).sum(axis=1) / math.sqrt(self.strength), cov

    def log_density(self, mu: ArrayLike, Sigma: ArrayLike) -> float:
        """Normalised log density."""
        cov = as_spd(Sigma, "Sigma", len(self.mean))
        mean = as_finite(mu, "mu")
        if mean.shape != self.mean.shape:
            raise ValueError(f"mu must have shape {self.mean.shape}, got {mean.shape}")
        normal = MvNormal(self.mean, cov / self.strength).log_density(mean)
        return log_inverse_wishart(cov, self.dof, self.scale) + float(normal)


def sample_inverse_wishart(rng: Generator, scale: FloatArray, dof: float) -> FloatArray:
    """A draw of IW(scale, dof)."""
    cov = np.empty_like(scale)
    linalg.sample_inverse_wishart(new_key(rng), lower_cholesky(scale), float(dof), cov)
    return cov


def log_inverse_wishart(cov: FloatArray, dof: float, scale: FloatArray) -> float:
    """Normalised log density of IW(scale, dof) at a symmetric positive definite `cov`."""
    n = len(cov)
    normaliser = 0.5 * dof * (_log_det(scale) - n * math.log(2.0)) - multigammaln(0.5 * dof, n)
    trace = np.trace(np.linalg.solve(cov, scale))
    return float(normaliser - 0.5 * (dof + n + 1) * _log_det(cov) - 0.5 * trace)


def _log_det(matrix: FloatArray) -> float:
    return float(np.linalg.slogdet(matrix)[1])


def expected_log_det(q: NormalInverseWishart) -> float:
    """E log det Sigma."""
    n = len(q.mean)
    digammas = digamma(0.5 * (q.dof - np.arange(n))).sum()
    return float(_log_det(q.scale) - n * math.log(2.0) - digammas)


def niw_divergence(q: NormalInverseWishart, prior: NormalInverseWishart) -> float:
    """KL of one normal-inverse-Wishart from another."""
    n, ratio = len(q.mean), prior.strength / q.strength
    precision, shift = q.dof * np.linalg.inv(q.scale), q.mean - prior.mean
    squares = float(np.einsum("i,ij,j->", shift, precision, shift))
    gaussian = 0.5 * (n * (ratio - 1.0 - math.log(ratio)) + prior.strength * squares)
    wishart = q.dof * _log_det(q.scale) - prior.dof * _log_det(prior.scale)
    wishart -= (q.dof - prior.dof) * (n * math.log(2.0) + expected_log_det(q))
    wishart = wishart - q.dof * n + float(np.einsum("ij,ji->", precision, prior.scale))
    constants = multigammaln(0.5 * prior.dof, n) - multigammaln(0.5 * q.dof, n)
    return float(gaussian + 0.5 * wishart + constants)
