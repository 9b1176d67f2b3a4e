"""Linear dynamics: many independent sequences of Gaussian states, a potential at every step.

Sequence s is the steps offsets[s], ..., offsets[s+1] - 1 of one long array::

    x_first ~ N(initial_mean + drive_first, initial_cov),
    x_t     ~ N(transition x_{t-1} + drive_t, noise_cov),

times exp(-x_t' J_t x_t / 2 + h_t' x_t) at every step, where J_t may have any rank: zero is a step
without observation. A link's potential on psi_t = offset + loadings x_t is one on x_t, which is
what makes sequences of counts a state-space model (Linderman, Johnson and Adams 2015, section 5).
A draw takes O(num_steps D^3) time and O(num_steps D^2) memory.

>>> import numpy as np
>>> from pgmult.core.potentials import DensePotential
>>> seen = DensePotential(J=np.array([[[0.0]], [[1.0]]]), h=np.array([[0.0], [3.0]]))
>>> start, steps = (np.zeros(1), np.eye(1)), np.array([0, 2])
>>> walk = LinearDynamics(np.eye(1), np.eye(1), *start, steps, potential=seen)
>>> draw, mean = walk.sample_around(np.random.default_rng(0))
>>> mean.ravel().round(4)
array([1., 2.])
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular

from pgmult.compiled.linalg import invert_positive_definite
from pgmult.compiled.rows import over_rows
from pgmult.core.blas import one_blas_thread
from pgmult.core.potentials import DensePotential
from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.core.validate import keyed_generator, new_key
from pgmult.priors.gaussian import lower_cholesky
from pgmult.priors.matrix_normal import linear_means
from pgmult.sequences.compiled.gaussian_chains import GaussianChains, sample_chains

MAX_GROWTH = 1e8  # of rounding errors: half of the digits


@dataclass(frozen=True, slots=True, eq=False)
class LinearDynamics:
    """Sequences of states under linear Gaussian dynamics, times the potentials seen.

    Nothing is checked: sweeps make one of C-ordered float64 arrays that they have drawn, and checks
    would take longer than a draw of a short sequence.

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
        Product of everything conditioned on; J symmetric and positive semi-definite.
    """

    transition: FloatArray
    noise_cov: FloatArray
    initial_mean: FloatArray
    initial_cov: FloatArray
    offsets: IntArray
    drive: FloatArray | None = None
    potential: DensePotential | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Steps of all sequences together, and size of a state."""
        return int(self.offsets[-1]), len(self.initial_mean)

    def driven(self, inputs: FloatArray, input_weights: FloatArray) -> "LinearDynamics":
        """The same with the drive ``input_weights u_t``, zero at the first step of every sequence.

        So the inputs act on the steps between states, and a first state has the initial
        distribution alone.
        """
        drive = linear_means(inputs, input_weights.T)
        drive[self.offsets[:-1]] = 0.0
        return replace(self, drive=drive)

    def parts(self) -> tuple[FloatArray, DensePotential]:
        """Drive and potential, zeros where there is none."""
        steps, D = self.shape
        drive = np.zeros(self.shape) if self.drive is None else self.drive
        if self.potential is not None:
            return drive, self.potential
        return drive, DensePotential(np.zeros((steps, D, D)), np.zeros((steps, D)))

    def sample(self, rng: Generator) -> FloatArray:
        """One draw of all states, ``(num_steps, D)``: filter forwards, sample backwards.

        By block elimination, and by a square-root filter where a nearly singular covariance would
        cost that more than half of its digits.

        Raises
        ------
        FloatingPointError
            If a step has no Gaussian distribution: states have exploded, or J is indefinite.
        """
        return self._sampled(new_key(rng), 0)[0]

    def sample_around(self, rng: Generator) -> tuple[FloatArray, FloatArray]:
        """A draw of all states, and their mean."""
        return self._sampled(new_key(rng), self.shape[0])

    @one_blas_thread()
    def _sample_by_filter(self, key: NDArray[np.uint64]) -> tuple[FloatArray, FloatArray]:
        """A draw and the mean by a filter in which nothing is subtracted (Bierman 1977).

        A step's distribution before its potential is N(mean, P), P = L L', and after it has the
        covariance F = S S', S = L R^-T with R R' = I + L' J L. A draw goes backwards by Matheron's
        rule: x_t is a draw given all up to t, moved by F A' P_{t+1}^-1 times what the next state is
        off. Beside it goes the mean, a draw without noise.
        """
        rng = keyed_generator(key)
        (drive, potential), A, Q = self.parts(), self.transition, self.noise_cov
        noise_root, out, D = lower_cholesky(Q), np.empty((*self.shape, 2)), len(Q)
        for first, end in pairwise(self.offsets.tolist()):
            steps_back, mean, cov = [], self.initial_mean, self.initial_cov
            for t in range(first, end):
                mean, root = mean + drive[t], _root(cov, t)
                gain = _root(np.eye(D) + root.T @ potential.J[t] @ root, t)
                spread = solve_triangular(gain, root.T, lower=True, check_finite=False).T
                mean = mean + spread @ (spread.T @ (potential.h[t] - potential.J[t] @ mean))
                steps_back.append((mean, root, spread))
                with np.errstate(over="ignore", invalid="ignore"):  # told at the next step
                    ahead = A @ spread
                    mean, cov = A @ mean, ahead @ ahead.T + Q
            for t in reversed(range(first, end)):
                mean, _, spread = steps_back[t - first]
                white = np.outer(rng.standard_normal((2, D) if t + 1 < end else D), (1.0, 0.0))
                out[t] = mean[:, None] + spread @ white[:D]
                if t + 1 < end:
                    gap = out[t + 1] - drive[t + 1, :, None] - A @ out[t] - noise_root @ white[D:]
                    pull = cho_solve((steps_back[t + 1 - first][1], True), gap, check_finite=False)
                    out[t] += spread @ (spread.T @ (A.T @ pull))
        return out[:, :, 0].copy(), out[:, :, 1].copy()

    def _sampled(self, key: NDArray[np.uint64], num_means: int) -> tuple[FloatArray, FloatArray]:
        """A draw by blocks, and means if wanted; by the filter if errors would be too large."""
        (steps, D), (_, potential) = self.shape, self.parts()
        precision = invert_positive_definite(self.noise_cov)
        initial = invert_positive_definite(self.initial_cov)
        coupling = np.einsum("ij,jk->ik", precision, self.transition)
        push = np.einsum("ji,jk->ik", self.transition, coupling)
        if not np.isfinite(push).all() or not np.isfinite(initial).all():
            return self._sample_by_filter(key)
        drive = np.empty((0, D)) if self.drive is None else self.drive
        chains = GaussianChains(
            self.offsets, potential.J, potential.h, self.initial_mean, drive, initial, precision,
            coupling, push,
        )  # fmt: skip
        draws, means = np.empty((steps, D)), np.empty((num_means, D))
        growths = np.empty(len(self.offsets) - 1)
        over_rows(sample_chains, len(growths), key, chains, draws, means, growths, grain=1)
        return (draws, means) if growths.max() < MAX_GROWTH else self._sample_by_filter(key)


def _root(cov: FloatArray, step: int) -> FloatArray:
    """The lower Cholesky factor."""
    if np.isfinite(cov).all():
        with suppress(np.linalg.LinAlgError):
            return np.asarray(np.linalg.cholesky(cov), dtype=np.float64)
    raise FloatingPointError(
        f"step {step} has no Gaussian distribution: its precision is not positive definite or not"
        " finite (is J indefinite there, or has the chain exploded?)"
    )
