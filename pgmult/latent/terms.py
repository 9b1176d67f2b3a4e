r"""Priors of the weights of an additive predictor, a term each, and of their standard deviations.

The predictor of a row is a sum over terms, psi = sum_j A_j w_j, and the weights of a term are
Gaussian given a few hyperparameters::

    Fixed         w ~ N(0, scale^2 I)                          coefficients; no hyperparameter
    Shrunk        w_j ~ N(0, sd^2 l_j^2)                       coefficients, learned how large
    LevelEffects  w_a ~ N(0, Sigma), one row a level           (1 | g), (1 + x | g)
    Scaled        w ~ N(0, sd^2 K^-1)                          smooths, random walks
    Areas         w ~ N(0, sd^2 (share K + (1 - share) I)^-1)  areas of a map
    Basis         w_j ~ N(0, sd^2 s_j(length_scale))           Gaussian processes by basis functions
    Copies        several of one of these                      an effect of each category

Standard deviations are half-t, with 3 degrees of freedom by default, correlations
LKJ(2) (Lewandowski, Kurowicka and Joe 2009), log length scales normal.

Hyperparameters are moved in coordinates on the whole line or half line in which their posterior has
no long tails: sd = 0.1 (exp(x) - 1) for x > 0, which is linear near 0, where log sd would run off
to -inf, and log sd beyond; atanh of partial correlations; log length scales.

>>> import numpy as np
>>> term = LevelEffects(num_levels=3)
>>> x = from_sd(np.array([0.5]))
>>> term.precision(x).round(6)
array([4., 4., 4.])
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, repeat
from operator import attrgetter
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.latent.compiled.coordinates import BEND, LARGEST, LEAST_LOG_SD

_DOF = 3.0
_ETA = 2.0  # of the LKJ prior
_LEAST_VARIANCE = 1e-8  # of a basis function, beside sd^2
_MOST_LOG_ODDS = 9.0  # of the share of a map: .9999


def log_sd(x: FloatArray) -> FloatArray:
    """Log standard deviations at coordinates > 0."""
    return np.maximum(math.log(BEND) + np.log(np.expm1(np.maximum(x, 1e-300))), LEAST_LOG_SD)


def sd_at(x: float) -> float:
    """The standard deviation at one coordinate > 0."""
    return max(BEND * math.expm1(x), math.exp(LEAST_LOG_SD))


def from_sd(sd: FloatArray) -> FloatArray:
    """Coordinates of standard deviations."""
    return np.log1p(np.asarray(sd) / BEND)


def _log_half_t(x: FloatArray, scale: FloatArray | float, dof: float) -> float:
    """Log density of coordinates whose standard deviations are half-t, up to a constant."""
    total, scales = 0.0, scale.tolist() if isinstance(scale, np.ndarray) else [scale] * len(x)
    # a few, some fifty times a sweep: numpy would take ten times as long
    for coordinate, width in zip(x.tolist(), scales, strict=True):
        if not 0.0 < coordinate <= LARGEST:
            return -math.inf
        square = sd_at(coordinate) ** 2 / (dof * width**2)
        total += coordinate - 0.5 * (dof + 1.0) * math.log1p(square)
    return total


def _sample_half_t(rng: Generator, scale: FloatArray | float, dof: float, size: int) -> FloatArray:
    return np.minimum(from_sd(np.abs(scale * rng.standard_t(dof, size=size))), LARGEST)


class Term(ABC):
    """The prior of one term's weights, with the one standard deviation of most terms.

    Attributes
    ----------
    size : int
        Number of weights.
    num_sds : int
        The first so many hyperparameters are coordinates of standard deviations; weights are
        these times something that does not depend on them.
    num_hyperparameters : int
    num_blocks : int
        Into how many independent parts of equal size, side by side, the weights fall; 0 for those
        that are not worth treating so.
    scale, dof : float
        Of the half-t prior of a standard deviation.
    """

    __slots__ = ()
    size: Any
    num_sds: Any = 1
    num_hyperparameters: Any = 1
    num_blocks: Any = 0
    scale: Any
    dof: Any

    def start(self) -> FloatArray:
        """Hyperparameters from which a search begins: standard deviations of 0.5, others of 0."""
        x = np.zeros(self.num_hyperparameters)
        x[: self.num_sds] = from_sd(np.array(0.5))
        return x

    def sample(self, rng: Generator) -> FloatArray:
        """Hyperparameters from their prior."""
        return _sample_half_t(rng, self.scale, self.dof, 1)

    def log_prior(self, x: FloatArray) -> float:
        """Log density of hyperparameters, up to a constant."""
        return _log_half_t(x[:1], self.scale, self.dof)

    @abstractmethod
    def precision(self, x: FloatArray) -> Any:
        """The weights' precision: a diagonal, blocks ``(num_levels, d, d)`` or a sparse array."""

    @abstractmethod
    def log_det(self, x: FloatArray) -> float:
        """Log determinant of the precision."""

    def scaled_by(self, which: int) -> Any:
        """The weights that standard deviation number `which` multiplies, as an index."""
        return slice(None)

    def spread(self, x: FloatArray, noise: FloatArray) -> FloatArray:
        """Weights of more levels that do not depend on the others, of standard normal numbers."""
        return np.asarray(np.exp(log_sd(x[0])) * noise)


@dataclass(frozen=True, slots=True, eq=False)
class Fixed(Term):
    """Coefficients ~ N(0, scale^2), one per column.

    Attributes
    ----------
    size : int
    scale : float or array, ``(size,)``
    """

    size: int
    scale: FloatArray | float = 2.5

    num_sds, num_hyperparameters = 0, 0

    def sample(self, rng: Generator) -> FloatArray:
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
        return -2.0 * self.size * float(np.mean(np.log(self.scale))) if self.size else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Shrunk(Term):
    """Coefficients, some of which have a learned scale: w_j ~ N(0, sd^2 l_j^2), others N(0, c_j^2).

    sd is half-t. The l_j are 1; or half-Cauchy, which is the horseshoe if sd is, too.

    Attributes
    ----------
    scales : array, ``(size,)``
        c_j; those of coefficients whose scale is learned are ignored.
    learned : int array
        Of which coefficients.
    scale, dof : float
        Of the half-t prior of sd.
    is_local : bool
        Whether the l_j are learned.
    """

    scales: FloatArray
    learned: IntArray
    scale: float = 1.0
    dof: float = _DOF
    is_local: bool = False

    @property
    def size(self) -> int:
        """Number of weights."""
        return len(self.scales)

    @property
    def num_sds(self) -> int:
        """Sd, and the l_j where they are learned."""
        return 1 + self.is_local * len(self.learned)

    num_hyperparameters = property(attrgetter("num_sds"))

    def sample(self, rng: Generator) -> FloatArray:
        """Draw from their priors."""
        common = _sample_half_t(rng, self.scale, self.dof, 1)
        return np.append(common, _sample_half_t(rng, 1.0, 1.0, self.num_sds - 1))

    def log_prior(self, x: FloatArray) -> float:
        """The half-t densities."""
        return _log_half_t(x[:1], self.scale, self.dof) + _log_half_t(x[1:], 1.0, 1.0)

    def _log_sds(self, x: FloatArray) -> FloatArray:
        out = np.log(self.scales)
        out[self.learned] = log_sd(x[0]) + (log_sd(x[1:]) if self.is_local else 0.0)
        return out

    def precision(self, x: FloatArray) -> FloatArray:
        """A diagonal."""
        return np.exp(-2.0 * self._log_sds(x))

    def log_det(self, x: FloatArray) -> float:
        """Log determinant of the precision."""
        return -2.0 * float(self._log_sds(x).sum())

    def scaled_by(self, which: int) -> IntArray:
        """All coefficients that are learned, or one of them."""
        return self.learned if which == 0 else self.learned[which - 1 : which]


@dataclass(frozen=True, slots=True, eq=False)
class LevelEffects(Term):
    """Rows of effects, one per level of a grouping: N(0, Sigma), independent of each other.

    Attributes
    ----------
    num_levels : int
    width : int
        Effects of a level: 1 for an intercept, one more for each slope.
    scale : float or array, ``(width,)``
        Of the half-t prior of standard deviations.
    dof : float
    eta : float
        Of the LKJ prior of correlations.
    """

    num_levels: int
    width: int = 1
    scale: FloatArray | float = 1.0
    dof: float = _DOF
    eta: float = _ETA

    @property
    def size(self) -> int:
        """Number of weights, those of a level side by side."""
        return self.num_levels * self.width

    num_sds = property(attrgetter("width"))  # one for each effect of a level
    num_blocks = property(attrgetter("num_levels"))

    @property
    def num_hyperparameters(self) -> int:
        """Standard deviations, and partial correlations."""
        return self.width * (self.width + 1) // 2

    def _shapes(self) -> FloatArray:
        """Shapes of the symmetric beta priors of partial correlations under LKJ, row by row."""
        d = self.width
        return np.array([self.eta + 0.5 * (d - 2 - j) for i in range(1, d) for j in range(i)])

    def sample(self, rng: Generator) -> FloatArray:
        """Draw from half-t distributions and LKJ."""
        sds = _sample_half_t(rng, self.scale, self.dof, self.width)
        if self.num_hyperparameters == self.width:
            return sds
        shapes = self._shapes()
        partial = np.clip(2.0 * rng.beta(shapes, shapes) - 1.0, -1.0 + 1e-12, 1.0 - 1e-12)
        return np.concatenate([sds, np.arctanh(partial)])

    def log_prior(self, x: FloatArray) -> float:
        """Half-t densities and LKJ."""
        log_density = _log_half_t(x[: self.width], self.scale, self.dof)
        if len(x) > self.width:
            z = np.abs(x[self.width :])
            log_density += float(-2.0 * self._shapes() @ (z + np.log1p(np.exp(-2.0 * z))))
        return log_density

    def cov_root(self, x: FloatArray) -> FloatArray:
        """Lower triangular root of Sigma, ``(width, width)``."""
        root = np.eye(self.width)
        partial = chain(np.tanh(x[self.width :]), repeat(0.0))
        for i in range(1, self.width):
            left = 1.0
            for j in range(i):
                root[i, j] = next(partial) * math.sqrt(left)
                left = max(left - root[i, j] ** 2, 1e-300)
            root[i, i] = math.sqrt(left)
        return np.asarray(np.exp(log_sd(x[: self.width]))[:, None] * root)

    def precision(self, x: FloatArray) -> FloatArray:
        """A diagonal, or blocks."""
        if len(x) == self.width:
            return np.ravel(np.zeros((self.num_levels, self.width)) + np.exp(-2.0 * log_sd(x)))
        inverse = np.linalg.inv(self.cov_root(x))
        block = inverse.T @ inverse
        return np.broadcast_to(block, (self.num_levels, *block.shape))

    def log_det(self, x: FloatArray) -> float:
        """Log determinant of the precision."""
        if len(x) == self.width:
            return -2.0 * self.num_levels * float(log_sd(x).sum())
        return -2.0 * self.num_levels * float(np.log(np.diagonal(self.cov_root(x))).sum())

    def scaled_by(self, which: int) -> slice:
        """Every level's effect of that number."""
        return slice(which, None, self.width)

    def spread(self, x: FloatArray, noise: FloatArray) -> FloatArray:
        """Effects of more levels."""
        return np.ravel(noise.reshape(-1, self.width) @ self.cov_root(x).T)


@dataclass(frozen=True, slots=True, eq=False)
class Apart(LevelEffects):
    """Rows of effects, one per level of a grouping, that are independent: no correlations."""

    num_hyperparameters = property(attrgetter("width"))


@dataclass(frozen=True, slots=True, eq=False)
class Scaled(Term):
    """w ~ N(0, sd^2 K^-1): smooths, whose K is the identity, and random walks.

    Attributes
    ----------
    structure : sparse array, ``(size, size)``
        K, symmetric and positive definite.
    log_det_structure : float
    scale, dof : float
        Of the half-t prior of sd.
    """

    structure: sparse.csr_array
    log_det_structure: float = 0.0
    scale: float = 1.0
    dof: float = _DOF

    @classmethod
    def walk(cls, times: FloatArray, **prior: float) -> "Scaled":
        """A random walk at times in order, 0 at the middle one, which has no weight.

        sd^2 is the mean square by which the times' values differ from their average.
        """
        gaps, num, unit = np.diff(times), len(times), cls.unit_of(times)
        ahead, behind = np.append(unit / gaps, 0.0), np.append(0.0, unit / gaps)
        bands = [ahead + behind, -ahead[:-1], -ahead[:-1]]
        full = sparse.diags_array(bands, offsets=[0, 1, -1]).tocsr()
        free = np.delete(np.arange(num), num // 2)
        log_det = float(np.sum(np.log(unit / gaps)))
        return cls(full[free][:, free], log_det, **prior)

    @staticmethod
    def unit_of(times: FloatArray) -> float:
        """The mean square about their average of a walk's values, of variance 1 a unit of time."""
        num = len(times)
        ranks = 2.0 * np.arange(num) - num + 1.0  # half the mean of all |t_i - t_j|
        return float(ranks @ (times - times[num // 2])) / num**2

    @property
    def size(self) -> int:
        """Number of weights."""
        return int(self.structure.shape[1])

    def precision(self, x: FloatArray) -> Any:
        """A diagonal where K is one, as of smooths, or a sparse array."""
        scale = math.exp(-2.0 * float(log_sd(x[0])))
        return scale * (self.structure.data if self.structure.nnz == self.size else self.structure)

    def log_det(self, x: FloatArray) -> float:
        """Log determinant of the precision."""
        return self.log_det_structure - 2.0 * self.size * float(log_sd(x[0]))


@dataclass(frozen=True, slots=True, eq=False)
class Basis(Term):
    """A Matérn 5/2 process by sine functions on a box (Riutort-Mayol et al. 2022, eq. 8).

    A weight has variance sd^2 times the spectral density at its function's frequency.

    Attributes
    ----------
    frequencies : array, ``(size,)``
        In radians per unit of the inputs, half their range.
    num_inputs : int
    scale, dof : float
        Of the half-t prior of sd.
    length : float
        The log length scale is N(log length, length_sd^2), in the same units.
    length_sd : float
    """

    frequencies: FloatArray
    num_inputs: int = 1
    scale: float = 1.0
    dof: float = _DOF
    length: float = 0.5
    length_sd: float = 1.0

    num_hyperparameters = 2

    @property
    def size(self) -> int:
        """Number of weights."""
        return len(self.frequencies)

    def start(self) -> FloatArray:
        """A standard deviation of 0.5, the median length scale."""
        return np.array([float(from_sd(np.array(0.5))), math.log(self.length)])

    def sample(self, rng: Generator) -> FloatArray:
        """Draw from their priors."""
        length = math.log(self.length) + self.length_sd * rng.standard_normal()
        return np.append(_sample_half_t(rng, self.scale, self.dof, 1), length)

    def log_prior(self, x: FloatArray) -> float:
        """The half-t density and the normal one of the log length scale."""
        z = float(x[1] - math.log(self.length)) / self.length_sd
        return _log_half_t(x[:1], self.scale, self.dof) - 0.5 * z**2

    def _log_vars(self, x: FloatArray) -> FloatArray:
        d, length = self.num_inputs, math.exp(float(x[1]))
        log_unit = d * math.log(2.0) + 0.5 * d * math.log(math.pi) + 2.5 * math.log(5.0)
        log_unit += math.lgamma(2.5 + 0.5 * d) - math.lgamma(2.5) - 5.0 * float(x[1])
        density = math.exp(log_unit) * (5.0 / length**2 + self.frequencies**2) ** -(2.5 + 0.5 * d)
        return np.asarray(2.0 * log_sd(x[0]) + np.log(density + _LEAST_VARIANCE))

    def precision(self, x: FloatArray) -> FloatArray:
        """A diagonal."""
        return np.exp(-self._log_vars(x))

    def log_det(self, x: FloatArray) -> float:
        """Log determinant of the precision."""
        return float(-self._log_vars(x).sum())


@dataclass(frozen=True, slots=True, eq=False)
class Areas(Term):
    """Areas of a map: w ~ N(0, sd^2 (share K + (1 - share) I)^-1) (Leroux, Lei and Breslow 2000).

    K is the Laplacian of the map, scaled so that its areas have variance 1 on average where share
    is 1; where it is 0 areas are independent. The share is uniform between .0001 and .9999, its
    coordinate the log odds.

    Attributes
    ----------
    structure : sparse array, ``(size, size)``
        K; the diagonal of areas without neighbours is 1.
    eigenvalues : array, ``(size,)``
    scale, dof : float
        Of the half-t prior of sd.
    """

    structure: sparse.csr_array
    eigenvalues: FloatArray
    scale: float = 1.0
    dof: float = _DOF

    num_hyperparameters = 2

    @classmethod
    def of(cls, pairs: IntArray, num_areas: int, **prior: float) -> "Areas":
        """Make the term of a map with these pairs of neighbours, ``(num_pairs, 2)``."""
        structure, eigenvalues = _scaled_laplacian(pairs.tobytes(), num_areas)
        return cls(structure, eigenvalues, **prior)

    @property
    def size(self) -> int:
        """Number of weights."""
        return int(self.structure.shape[1])

    def start(self) -> FloatArray:
        """A standard deviation of 0.5, a share of .95: between none and nearly all."""
        return np.append(from_sd(np.array([0.5])), 3.0)

    def sample(self, rng: Generator) -> FloatArray:
        """Draw from their priors."""
        least = 1.0 / (1.0 + math.exp(_MOST_LOG_ODDS))
        share = rng.uniform(least, 1.0 - least)
        return np.append(Term.sample(self, rng), math.log(share / (1.0 - share)))

    def log_prior(self, x: FloatArray) -> float:
        """The half-t density, and the logistic one of log odds."""
        if abs(x[1]) > _MOST_LOG_ODDS:
            return -math.inf
        odds = abs(float(x[1]))
        return _log_half_t(x[:1], self.scale, self.dof) - odds - 2.0 * math.log1p(math.exp(-odds))

    def precision(self, x: FloatArray) -> sparse.csr_array:
        """A sparse array."""
        share = 1.0 / (1.0 + math.exp(-float(x[1])))
        alone = sparse.diags_array(np.full(self.size, 1.0 - share))
        return math.exp(-2.0 * float(log_sd(x[0]))) * (share * self.structure + alone)

    def log_det(self, x: FloatArray) -> float:
        """Log determinant of the precision."""
        share = 1.0 / (1.0 + math.exp(-float(x[1])))
        log_eigenvalues = np.log(share * self.eigenvalues + (1.0 - share)).sum()
        return float(log_eigenvalues) - 2.0 * self.size * float(log_sd(x[0]))


@lru_cache(maxsize=4)
def _scaled_laplacian(buffer: bytes, num_areas: int) -> tuple[sparse.csr_array, FloatArray]:
    """K of a map, and its eigenvalues; the last few maps are remembered."""
    pairs = np.frombuffer(buffer, dtype=np.int64).reshape(-1, 2)
    one = np.ones(len(pairs))
    beside = sparse.csr_array((one, (pairs[:, 0], pairs[:, 1])), shape=(num_areas, num_areas))
    beside = beside + beside.T
    laplacian = (sparse.diags_array(beside.sum(axis=1)) - beside).tocsr()
    eigenvalues, unit = np.ones(num_areas), np.ones(num_areas)
    alone = np.zeros(num_areas)
    count, component = csgraph.connected_components(beside, directed=False)
    for i in range(count):
        areas = np.flatnonzero(component == i)
        if len(areas) == 1:
            alone[areas] = 1.0
            continue
        values = np.linalg.eigvalsh(laplacian[areas][:, areas].toarray())
        values[0] = 0.0
        unit[areas] = np.sum(1.0 / values[1:]) / len(areas)
        eigenvalues[areas] = unit[areas] * values
    structure = (sparse.diags_array(unit) @ laplacian + sparse.diags_array(alone)).tocsr()
    structure.sum_duplicates()
    return structure, eigenvalues


@dataclass(frozen=True, slots=True, eq=False)
class Copies(Term):
    """Independent copies of a term's weights that share its hyperparameters, as categories do.

    The copies of one weight stand side by side.

    Attributes
    ----------
    term : Term
    num : int
    """

    term: Term
    num: int

    num_blocks = property(attrgetter("term.num_blocks"))
    num_sds = property(attrgetter("term.num_sds"))
    num_hyperparameters = property(attrgetter("term.num_hyperparameters"))

    @property
    def size(self) -> int:
        """Number of weights."""
        return int(self.term.size * self.num)

    def start(self) -> FloatArray:
        """Where the term starts."""
        return self.term.start()

    def sample(self, rng: Generator) -> FloatArray:
        """Hyperparameters from their prior."""
        return self.term.sample(rng)

    def log_prior(self, x: FloatArray) -> float:
        """Log density of hyperparameters, up to a constant."""
        return self.term.log_prior(x)

    def precision(self, x: FloatArray) -> Any:
        """A precision of the same kind as the term's."""
        one = self.term.precision(x)
        if sparse.issparse(one):
            return sparse.kron(one, sparse.eye_array(self.num), format="csr")
        if one.ndim == 1:
            return np.repeat(one, self.num)
        return np.kron(one, np.eye(self.num))

    def log_det(self, x: FloatArray) -> float:
        """Log determinant of the precision."""
        return self.num * self.term.log_det(x)

    def scaled_by(self, which: int) -> Any:
        """All copies of the weights that it multiplies."""
        scaled = np.arange(self.term.size)[self.term.scaled_by(which)]
        return (scaled[:, None] * self.num + np.arange(self.num)).ravel()
