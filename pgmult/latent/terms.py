r"""Priors of the weights of an additive predictor, a term each, and of their standard deviations.

The predictor of a row is a sum over terms, psi = sum_j A_j w_j, and the weights of a term are
Gaussian given a few hyperparameters::

    Fixed     w ~ N(0, scale^2 I)                          coefficients; no hyperparameter
    Levels    w_a ~ N(0, Sigma), one row a level           (1 | g), (1 + x | g)
    Scaled    w ~ N(0, sd^2 K^-1)                          smooths, random walks, areas of a map
    Basis     w_j ~ N(0, sd^2 s_j(length_scale))           Gaussian processes by basis functions

Standard deviations are half-t with 3 degrees of freedom, correlations LKJ(2) (Lewandowski,
Kurowicka and Joe 2009), log length scales normal.

Hyperparameters are moved in coordinates on the whole line or half line in which their posterior has
no long tails: sd = 0.1 (exp(x) - 1) for x > 0, which is linear near 0, where log sd would run off
to -inf, and log sd beyond; atanh of partial correlations; log length scales.

>>> import numpy as np
>>> term = Levels(num_levels=3)
>>> x = from_sd(np.array([0.5]))
>>> term.precision(x).round(6)
array([4., 4., 4.])
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np

from pgmult.core.parameters import Checked, Positive, whole
from pgmult.core.typing import FloatArray
from pgmult.latent.sparse import SparseMatrix

__all__ = ["Basis", "Fixed", "Levels", "Scaled", "Term", "from_sd", "log_sd"]

_BEND = 0.1  # the standard deviation from which on its coordinate is logarithmic
_DOF = 3.0
_LEAST_LOG_SD = -11.0
_LARGEST = 12.0  # coordinate of a standard deviation: 16,000
_ETA = 2.0  # of the LKJ law


def log_sd(x: FloatArray) -> FloatArray:
    """Log standard deviations at coordinates > 0."""
    return np.maximum(math.log(_BEND) + np.log(np.expm1(np.maximum(x, 1e-300))), _LEAST_LOG_SD)


def from_sd(sd: FloatArray) -> FloatArray:
    """Coordinates of standard deviations."""
    return np.log1p(np.asarray(sd) / _BEND)


def _log_half_t(x: FloatArray, scale: float) -> float:
    """Log density of coordinates whose standard deviations are half-t, up to a constant."""
    if x.min() <= 0.0 or x.max() > _LARGEST:
        return -math.inf
    squares = np.exp(2.0 * log_sd(x)) / (_DOF * scale**2)
    return float(np.sum(x - 0.5 * (_DOF + 1.0) * np.log1p(squares)))


def _sample_half_t(rng: np.random.Generator, scale: float, size: int) -> FloatArray:
    return np.minimum(from_sd(np.abs(scale * rng.standard_t(_DOF, size=size))), _LARGEST)


class Term(Protocol):
    """The prior of one term's weights.

    Attributes
    ----------
    size : int
        Number of weights.
    num_sds : int
        The first so many hyperparameters are coordinates of standard deviations; weights are
        these times something that does not depend on them.
    num_hyperparameters : int
    """

    @property
    def size(self) -> int: ...  # noqa: D102
    @property
    def num_sds(self) -> int: ...  # noqa: D102
    @property
    def num_hyperparameters(self) -> int: ...  # noqa: D102

    def start(self) -> FloatArray:
        """Hyperparameters from which a search begins."""

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Hyperparameters from their prior."""

    def log_prior(self, x: FloatArray) -> float:
        """Log density of hyperparameters, up to a constant."""

    def precision(self, x: FloatArray) -> Any:
        """Of the weights: a diagonal, blocks ``(num_levels, d, d)`` or a sparse array."""

    def log_det(self, x: FloatArray) -> float:
        """Log determinant of the precision."""

    def scaled_by(self, which: int) -> slice:
        """The weights that standard deviation number `which` multiplies, as a slice."""


@dataclass(frozen=True, slots=True, eq=False)
class Fixed(Checked):
    """Coefficients ~ N(0, scale^2), one a column.

    Attributes
    ----------
    size : int
    scale : float
    """

    size: int
    scale: Positive = 2.5

    num_sds: ClassVar[int] = 0
    num_hyperparameters: ClassVar[int] = 0

    def start(self) -> FloatArray:
        """None."""
        return np.empty(0)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """None."""
        return np.empty(0)

    def log_prior(self, x: FloatArray) -> float:
        """0."""
        return 0.0

    def precision(self, x: FloatArray) -> FloatArray:
        """A diagonal."""
        return np.full(self.size, self.scale**-2)

    def log_det(self, x: FloatArray) -> float:
        """Log determinant of the precision."""
        return -2.0 * self.size * math.log(self.scale)

    def scaled_by(self, which: int) -> slice:
        """No weights: no standard deviation is learned."""
        return slice(0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Levels(Checked):
    """Rows of effects, one a level of a grouping: N(0, Sigma), independent of each other.

    Attributes
    ----------
    num_levels : int
    width : int
        Effects of a level: 1 for an intercept, one more for each slope.
    scale : float
        Of the half-t law of standard deviations.
    """

    num_levels: int
    width: int = 1
    scale: Positive = 1.0

    @property
    def size(self) -> int:
        """Number of weights, those of a level side by side."""
        return self.num_levels * self.width

    @property
    def num_sds(self) -> int:
        """One for each effect of a level."""
        return self.width

    @property
    def num_hyperparameters(self) -> int:
        """Standard deviations, and partial correlations."""
        return self.width * (self.width + 1) // 2

    def start(self) -> FloatArray:
        """Standard deviations of 0.5 without correlation."""
        x = np.zeros(self.num_hyperparameters)
        x[: self.width] = from_sd(np.array(0.5))
        return x

    def _shapes(self) -> FloatArray:
        """Of the symmetric beta laws of partial correlations under LKJ, row by row."""
        d = self.width
        return np.array([_ETA + 0.5 * (d - 2 - j) for i in range(1, d) for j in range(i)])

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """From half-t laws and LKJ."""
        sds = _sample_half_t(rng, self.scale, self.width)
        if self.width == 1:
            return sds
        shapes = self._shapes()
        partial = np.clip(2.0 * rng.beta(shapes, shapes) - 1.0, -1.0 + 1e-12, 1.0 - 1e-12)
        return np.concatenate([sds, np.arctanh(partial)])

    def log_prior(self, x: FloatArray) -> float:
        """Half-t laws and LKJ."""
        log_density = _log_half_t(x[: self.width], self.scale)
        if self.width > 1:
            z = np.abs(x[self.width :])
            log_density += float(-2.0 * self._shapes() @ (z + np.log1p(np.exp(-2.0 * z))))
        return log_density

    def cov_root(self, x: FloatArray) -> FloatArray:
        """Lower triangular root of Sigma, ``(width, width)``."""
        root = np.eye(self.width)
        partial = iter(np.tanh(x[self.width :]))
        for i in range(1, self.width):
            left = 1.0
            for j in range(i):
                root[i, j] = next(partial) * math.sqrt(left)
                left = max(left - root[i, j] ** 2, 1e-300)
            root[i, i] = math.sqrt(left)
        return np.asarray(np.exp(log_sd(x[: self.width]))[:, None] * root)

    def precision(self, x: FloatArray) -> FloatArray:
        """A diagonal, or blocks."""
        if self.width == 1:
            return np.full(self.num_levels, np.exp(-2.0 * log_sd(x[0])))
        inverse = np.linalg.inv(self.cov_root(x))
        block = inverse.T @ inverse
        return np.broadcast_to(block, (self.num_levels, *block.shape))

    def log_det(self, x: FloatArray) -> float:
        """Log determinant of the precision."""
        if self.width == 1:
            return -2.0 * self.num_levels * float(log_sd(x[0]))
        return -2.0 * self.num_levels * float(np.log(np.diagonal(self.cov_root(x))).sum())

    def scaled_by(self, which: int) -> slice:
        """Every level's effect of that number."""
        return slice(which, None, self.width)


class _OneSd:
    """What terms with one standard deviation share."""

    __slots__ = ()
    scale: float
    num_sds: ClassVar[int] = 1

    def scaled_by(self, which: int) -> slice:
        """All weights."""
        return slice(None)


@dataclass(frozen=True, slots=True, eq=False)
class Scaled(_OneSd, Checked):
    """w ~ N(0, sd^2 K^-1): smooths, whose K is the identity, random walks, areas of a map.

    Attributes
    ----------
    structure : SparseMatrix, ``(size, size)``
        K, symmetric and positive definite.
    log_det_structure : float
    scale : float
        Of the half-t law of sd.
    """

    structure: SparseMatrix
    log_det_structure: float = 0.0
    scale: Positive = 1.0

    num_hyperparameters: ClassVar[int] = 1

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.structure.num_columns

    def start(self) -> FloatArray:
        """A standard deviation of 0.5."""
        return from_sd(np.array([0.5]))

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """From the half-t law."""
        return _sample_half_t(rng, self.scale, 1)

    def log_prior(self, x: FloatArray) -> float:
        """The half-t law."""
        return _log_half_t(x[:1], self.scale)

    def precision(self, x: FloatArray) -> Any:
        """A sparse array."""
        return math.exp(-2.0 * float(log_sd(x[0]))) * self.structure.array()

    def log_det(self, x: FloatArray) -> float:
        """Log determinant of the precision."""
        return self.log_det_structure - 2.0 * self.size * float(log_sd(x[0]))


@dataclass(frozen=True, slots=True, eq=False)
class Basis(_OneSd, Checked):
    """A Matérn 5/2 process on [-1, 1] by sine functions (Riutort-Mayol et al. 2022, eq. 8).

    Weight j has variance sd^2 times the spectral density at frequency j pi / (2 bound).

    Attributes
    ----------
    size : int
        Number of basis functions.
    bound : float
        The functions vanish at -bound and bound.
    scale : float
        Of the half-t law of sd. The log length scale is N(log 0.5, 1), in units of half the range.
    """

    size: Annotated[int, whole(minimum=2)]
    bound: Positive = 1.5
    scale: Positive = 1.0

    num_hyperparameters: ClassVar[int] = 2

    def design(self, x: FloatArray) -> FloatArray:
        """Values of the functions at x in [-1, 1], ``(num_rows, size)``."""
        angles = np.pi * np.arange(1, self.size + 1) * (x[:, None] + self.bound) / (2 * self.bound)
        return np.asarray(np.sin(angles) / math.sqrt(self.bound))

    def start(self) -> FloatArray:
        """A standard deviation of 0.5, a length scale of 0.5."""
        return np.array([float(from_sd(np.array(0.5))), math.log(0.5)])

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """From their priors."""
        length = math.log(0.5) + rng.standard_normal()
        return np.append(_sample_half_t(rng, self.scale, 1), length)

    def log_prior(self, x: FloatArray) -> float:
        """The half-t law and the normal one of the log length scale."""
        return _log_half_t(x[:1], self.scale) - 0.5 * float(x[1] - math.log(0.5)) ** 2

    def _log_vars(self, x: FloatArray) -> FloatArray:
        frequencies = np.arange(1, self.size + 1) * np.pi / (2 * self.bound)
        length = math.exp(float(x[1]))
        density = 16.0 / 3.0 * 5.0**2.5 / length**5 / (5.0 / length**2 + frequencies**2) ** 3
        return np.asarray(2.0 * log_sd(x[0]) + np.log(density + 1e-8))

    def precision(self, x: FloatArray) -> FloatArray:
        """A diagonal."""
        return np.exp(-self._log_vars(x))

    def log_det(self, x: FloatArray) -> float:
        """Log determinant of the precision."""
        return float(-self._log_vars(x).sum())
