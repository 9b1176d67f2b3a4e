"""Linear dynamics: many independent sequences of Gaussian states, a potential at every step.

Sequence s is the steps offsets[s], ..., offsets[s+1] - 1 of one long array::

    x_first ~ N(initial_mean + drive_first, initial_cov),
    x_t     ~ N(transition x_{t-1} + drive_t, noise_cov),

times exp(-x_t' J_t x_t / 2 + h_t' x_t) at every step, where J_t may have any rank: zero is a step
without observation. A link's potential on psi_t = offset + loadings x_t is one on x_t, which is
what makes sequences of counts a state-space model (Linderman, Johnson and Adams 2015, section 5).
All methods take O(num_steps D^3) time and O(num_steps D^2) memory.

>>> import numpy as np
>>> from pgmult.core.potentials import DensePotential
>>> walk = LinearDynamics(np.eye(1), np.eye(1), np.zeros(1), np.eye(1), offsets=np.array([0, 2]))
>>> seen = DensePotential(J=np.array([[[0.0]], [[1.0]]]), h=np.array([[0.0], [3.0]]))
>>> means, covs = walk.condition(seen).filter()
>>> means.ravel(), covs.ravel().round(4)
(array([0., 2.]), array([1.    , 0.6667]))
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.linalg import invert_positive_definite
from pgmult.compiled.rows import over_rows
from pgmult.compiled.simd import WIDTH
from pgmult.core.potentials import DensePotential
from pgmult.core.typing import ArrayLike, FloatArray, IntArray
from pgmult.core.validate import as_finite, as_offsets, as_spd, new_key
from pgmult.priors.gaussian import MvNormal, lower_cholesky
from pgmult.priors.matrix_normal import linear_means
from pgmult.sequences.compiled import kalman, kalman_blocks

_MIN_STRETCH, _MAX_STRETCH = 32, 4096  # steps
MAX_GROWTH = 1e8  # of rounding errors: half of the digits
_WRONG = {
    kalman.ASYMMETRIC: "J must be symmetric, it is not",
    kalman.INDEFINITE: "J must be positive semi-definite, it has a negative diagonal",
    kalman.NOT_FINITE: "J and h must be finite, they are not",
}


def _stretches(offsets: IntArray) -> kalman_blocks.Stretches:
    """Stretches of nearly equal lengths, so that all lanes are busy; by the lengths alone.

    Those of the last few offsets are remembered: every sweep asks for the same.
    """
    return _cut(np.ascontiguousarray(offsets, dtype=np.int64).tobytes())


@lru_cache(maxsize=16)
def _cut(offsets_as_bytes: bytes) -> kalman_blocks.Stretches:
    offsets = np.frombuffer(offsets_as_bytes, dtype=np.int64)
    num_steps = int(offsets[-1])
    rounds = -(-num_steps // (WIDTH * _MAX_STRETCH))
    length = max(-(-num_steps // (WIDTH * rounds)), _MIN_STRETCH)
    pieces = -(-np.diff(offsets) // length)
    parts = np.concatenate([[0], pieces.cumsum()])
    place = np.arange(parts[-1]) - np.repeat(parts[:-1], pieces)
    lengths = np.repeat(np.diff(offsets), pieces)
    counts = np.repeat(pieces, pieces)
    begins = np.repeat(offsets[:-1], pieces) + place * lengths // counts
    ends = np.repeat(offsets[:-1], pieces) + (place + 1) * lengths // counts
    lanes = np.argsort(begins - ends, kind="stable")
    lanes = np.pad(lanes, (0, -len(lanes) % WIDTH), mode="edge")
    first = np.zeros(num_steps, dtype=np.bool_)
    first[offsets[:-1]] = True
    joined = len(begins) > len(pieces)
    return kalman_blocks.Stretches(first, parts, begins, ends, lanes, joined)


@dataclass(frozen=True, slots=True, eq=False)
class LinearDynamics:
    """Sequences of states under linear Gaussian dynamics, times the potentials seen.

    Attributes
    ----------
    transition : array, ``(D, D)``
        Any matrix, stable or not.
    noise_cov : array, ``(D, D)``
        Of the innovations; symmetric positive definite.
    initial_mean : array, ``(D,)``
    initial_cov : array, ``(D, D)``
        Symmetric positive definite.
    offsets : int64 array, ``(num_sequences + 1,)``
        Sequence s is the steps ``offsets[s]:offsets[s + 1]``; every sequence has a step.
    drive : array, ``(num_steps, D)``, or None
        Known input of every step, added to the mean of its state.
    potential : DensePotential, ``(num_steps, D)``, or None
        Product of everything conditioned on.

    Raises
    ------
    ValueError
        If shapes do not agree, a covariance is not symmetric positive definite, offsets do not
        begin with 0 and increase, or a potential is not finite, symmetric and non-negative.
    """

    transition: FloatArray
    noise_cov: FloatArray
    initial_mean: FloatArray
    initial_cov: FloatArray
    offsets: IntArray
    drive: FloatArray | None = None
    potential: DensePotential | None = None

    def __post_init__(self) -> None:
        mean = as_finite(self.initial_mean, "initial_mean")
        if mean.ndim != 1 or len(mean) == 0:
            raise ValueError(f"initial_mean must have shape (D,), got {mean.shape}")
        D = len(mean)
        transition = as_finite(self.transition, "transition")
        if transition.shape != (D, D):
            raise ValueError(f"transition must have shape ({D}, {D}), got {transition.shape}")
        object.__setattr__(self, "initial_mean", mean)
        object.__setattr__(self, "transition", transition)
        object.__setattr__(self, "noise_cov", as_spd(self.noise_cov, "noise_cov", D))
        object.__setattr__(self, "initial_cov", as_spd(self.initial_cov, "initial_cov", D))
        object.__setattr__(self, "offsets", as_offsets(self.offsets))
        if self.drive is not None:
            drive = as_finite(self.drive, "drive")
            if drive.shape != self.shape:
                raise ValueError(f"drive must have shape {self.shape}, got {drive.shape}")
            object.__setattr__(self, "drive", drive)
        if self.potential is not None:
            object.__setattr__(self, "potential", self._checked(self.potential))

    @classmethod
    def unchecked(
        cls,
        transition: FloatArray,
        noise_cov: FloatArray,
        initial_mean: FloatArray,
        initial_cov: FloatArray,
        offsets: IntArray,
        drive: FloatArray | None = None,
        potential: DensePotential | None = None,
    ) -> "LinearDynamics":
        """Made without checks, of C-ordered float64 arrays that a sweep has drawn.

        Checks take longer than a draw of a short sequence.
        """
        law = object.__new__(cls)
        for name, value in (
            ("transition", transition), ("noise_cov", noise_cov), ("initial_mean", initial_mean),
            ("initial_cov", initial_cov), ("offsets", offsets), ("drive", drive),
            ("potential", potential),
        ):  # fmt: skip
            object.__setattr__(law, name, value)
        return law

    @property
    def shape(self) -> tuple[int, int]:
        """Steps of all sequences together, and size of a state."""
        return int(self.offsets[-1]), len(self.initial_mean)

    def _checked(self, potential: DensePotential) -> DensePotential:
        steps, D = self.shape
        J = np.ascontiguousarray(potential.J, dtype=np.float64)
        h = np.ascontiguousarray(potential.h, dtype=np.float64)
        if J.shape != (steps, D, D) or h.shape != (steps, D):
            raise ValueError(
                f"the potential must have J of shape {(steps, D, D)} and h of shape {(steps, D)},"
                f" got {J.shape} and {h.shape}"
            )
        wrong = [w for w in over_rows(kalman.check_potentials, steps, J, h, grain=4096) if w[0]]
        if wrong:
            raise ValueError(f"{_WRONG[wrong[0][0]]} at step {wrong[0][1]}")
        return DensePotential(J, h)

    def condition(self, potential: DensePotential) -> "LinearDynamics":
        """The posterior: this times `potential`."""
        if self.potential is not None:
            potential = self.potential + self._checked(potential)
        return replace(self, potential=potential)

    def _parts(self) -> tuple[FloatArray, DensePotential]:
        """Drive and potential, zeros where there is none."""
        steps, D = self.shape
        drive = np.zeros(self.shape) if self.drive is None else self.drive
        if self.potential is not None:
            return drive, self.potential
        return drive, DensePotential(np.zeros((steps, D, D)), np.zeros((steps, D)))

    def _law(self) -> kalman.Law:
        drive, potential = self._parts()
        return kalman.Law(
            self.offsets, self.transition, self.noise_cov, self.initial_mean, self.initial_cov,
            drive, potential.J, potential.h,
        )  # fmt: skip

    def _filtered(self, law: kalman.Law) -> kalman.Filtered:
        (steps, D), sequences = self.shape, len(self.offsets) - 1
        roots = np.empty((steps, D, D)), np.empty((steps, D, D))
        out = kalman.Filtered(np.empty((steps, D)), *roots, np.empty(sequences))
        statuses = over_rows(kalman.filter_chains, sequences, law, out, grain=1)
        failed = [status - 1 for status in statuses if status]
        if failed:
            raise ValueError(
                f"step {min(failed)} has no Gaussian law: its precision is not positive definite"
                " or not finite (is J indefinite there, or has the chain exploded?)"
            )
        return out

    def log_normalizer(self) -> FloatArray:
        """Log of the integral of the prior times the potential, ``(num_sequences,)``."""
        return self._filtered(self._law()).log_z

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw of all states, ``(num_steps, D)``: filter forwards, sample backwards.

        By block elimination, many stretches of the sequences side by side, and by the square-root
        filter where a nearly singular covariance would cost that more than half of its digits.
        """
        key = new_key(rng)
        by_blocks = self._sample_by_blocks(key)
        return self._sample_by_filter(key) if by_blocks is None else by_blocks

    def sample_around(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """A draw of all states, and their mean: the draw less that of the same noise about 0."""
        key, (drive, potential) = new_key(rng), self._parts()
        still = DensePotential(potential.J, np.zeros_like(drive))
        centred = LinearDynamics.unchecked(
            self.transition, self.noise_cov, np.zeros_like(self.initial_mean), self.initial_cov,
            self.offsets, potential=still,
        )  # fmt: skip
        draw, noise = self._sample_by_blocks(key), centred._sample_by_blocks(key)
        if draw is None or noise is None:
            draw, noise = self._sample_by_filter(key), centred._sample_by_filter(key)
        return draw, draw - noise

    def _sample_by_filter(self, key: NDArray[np.uint64]) -> FloatArray:
        law, out = self._law(), np.empty(self.shape)
        over_rows(
            kalman.sample_chains, len(self.offsets) - 1, key, law, lower_cholesky(self.noise_cov),
            self._filtered(law), out, grain=1,
        )  # fmt: skip
        return out

    def _sample_by_blocks(self, key: NDArray[np.uint64]) -> FloatArray | None:
        """A draw by blocks; None if its rounding errors would be too large."""
        steps, D = self.shape
        _, potential = self._parts()
        precision = invert_positive_definite(self.noise_cov)
        initial = invert_positive_definite(self.initial_cov)
        coupling = np.einsum("ij,jk->ik", precision, self.transition)
        push = np.einsum("ji,jk->ik", self.transition, coupling)
        blocks = np.stack([precision + push, precision, initial + push, initial])
        if not np.isfinite(blocks).all():
            return None
        cut = _stretches(self.offsets)
        drive = np.empty((0, D)) if self.drive is None else self.drive
        start = np.broadcast_to(self.initial_mean, (len(self.offsets) - 1, D))
        if self.drive is not None:
            start = start + self.drive[self.offsets[:-1]]
        linear = np.empty((steps, D))
        over_rows(
            kalman_blocks.information_linear, steps, cut.first, precision,
            np.ascontiguousarray(coupling.T), drive, linear_means(start, initial), potential.h,
            linear, grain=4096,
        )  # fmt: skip
        chain = kalman_blocks.Chain(potential.J, linear, blocks, coupling)
        groups, size = len(cut.lanes) // WIDTH, kalman_blocks.factor_size(D, cut.joined)
        longest = (cut.ends - cut.begins)[cut.lanes[::WIDTH]] - 1
        bases = size * np.concatenate([[0], longest.cumsum()])
        shape = len(cut.begins), D
        diagonals, joint_linear, behind_linear = np.zeros((3, *shape))
        joints, links, behind = np.zeros((3, *shape, D))
        left = kalman_blocks.Reduced(
            bases, np.empty(bases[-1]), diagonals, joints, links, behind, joint_linear,
            behind_linear, np.empty(shape[0]),
        )  # fmt: skip
        out = np.empty((steps, D))
        over_rows(kalman_blocks.eliminate_stretches, groups, cut, chain, left, grain=1)
        over_rows(kalman_blocks.sample_joints, len(self.offsets) - 1, key, cut, left, out, grain=1)
        if not left.growths.max() < MAX_GROWTH:
            return None
        over_rows(kalman_blocks.sample_stretches, groups, key, cut, coupling, left, out, grain=1)
        return out

    def filter(self) -> tuple[FloatArray, FloatArray]:
        """Means ``(num_steps, D)`` and covariances ``(num_steps, D, D)`` given potentials so far.

        "So far" includes the step's own potential.
        """
        filtered = self._filtered(self._law())
        covs = np.empty_like(filtered.prior_roots)
        over_rows(kalman.filtered_covs, len(covs), filtered, covs)
        return filtered.means, covs

    def log_density(self, x: ArrayLike) -> FloatArray:
        """Normalised log density of each sequence, ``(num_sequences,)``, at states x."""
        x = as_finite(x, "x")
        if x.shape != self.shape:
            raise ValueError(f"x must have shape {self.shape}, got {x.shape}")
        first = self.offsets[:-1]
        drive, potential = self._parts()
        means = drive.copy()
        means[1:] += x[:-1] @ self.transition.T
        means[first] = self.initial_mean + drive[first]
        terms = MvNormal(np.zeros(x.shape[1]), self.noise_cov).log_density(x - means)
        start = MvNormal(np.zeros(x.shape[1]), self.initial_cov)
        terms[first] = start.log_density(x[first] - means[first])
        terms += (x * (potential.h - 0.5 * np.einsum("tij,tj->ti", potential.J, x))).sum(axis=1)
        return np.asarray(np.add.reduceat(terms, first) - self.log_normalizer())


def input_drive(inputs: FloatArray, input_weights: FloatArray, offsets: IntArray) -> FloatArray:
    """The drive ``input_weights u_t`` of inputs, zero at the first step of every sequence.

    So the inputs act on the steps between states, and a first state has the initial law alone.
    """
    drive = linear_means(inputs, input_weights.T)
    drive[offsets[:-1]] = 0.0
    return drive
