r"""Dynamics and weights given omega alone: Hamiltonian paths with the states integrated out.

What the observations know about C Q C' and C A Q C' is hard to see through thousands of states.
Given the states, these move by the error of a regression on all of them; what the observations know
is less, by the signal in one step's noise. With the states integrated out they move as far as the
observations allow, along

    p(B, W | omega)  ~  p(B | Q) p(W) Z(B, W) exp(sum_t kappa_t' e_t - e_t' diag(omega_t) e_t / 2),

in which B = (A, W_u) are the coefficients of the dynamics, W the weights of psi, Z the states'
normaliser (`pgmult.sequences.compiled.collapsed`) and e_t = W (0, v_t) what is known of psi_t. The
noise covariance Q stays where it is: with C it would say the same thing twice.

*The metric* of a path (Neal 2011, "MCMC using Hamiltonian dynamics", section 4.1) is the complete
data's information, were the states' covariance `spread` times Q. With the states integrated out
less is known in every direction (Louis 1982), so that leapfrogs of unit length are stable if
`spread` is about right. It is a power of four times a random first number, the one next below what
the dynamics at the start say, and a path that ends where another power belongs is refused: a path
is a move within one cell of a partition that does not depend on where it starts, so exact.

A path of five or six leapfrogs takes as long as all else in a sweep of 80 steps, and five times as
long where there is much to sum: then two sweeps of five have one (`path_share`), which leaves
quick functionals as quick as they were.
"""

import math
from typing import NamedTuple

import numpy as np

from pgmult.compiled.linalg import invert_positive_definite
from pgmult.compiled.rows import num_workers, over_rows
from pgmult.core.typing import FloatArray, IntArray
from pgmult.priors.matrix_normal import MatrixNormalInverseWishart
from pgmult.sequences.active_sticks import ActiveSticks
from pgmult.sequences.compiled import collapsed, symbols
from pgmult.sequences.priors.dynamics import MAX_GROWTH

__all__ = ["Collapsed", "Drawn", "path_share", "sample_collapsed"]

_LOG_CELL = math.log(4.0)
_LONGEST = 10  # leapfrogs
_STEP_SIZE = 0.5  # standard deviations, were the states known
_MOST_DOUBLINGS = 10
_LONG = 10_000  # numbers in the covariances of all states: from there on sums take the time
_LONG_SHARE = 0.4
_LARGEST = 40.0  # logarithm of a variance


class Collapsed:
    """The density of (A, W_u) and W given omega, and what its last evaluation left.

    Parameters
    ----------
    active, omega
        As `ActiveSticks.augment` gives them.
    offsets : int array, ``(num_sequences + 1,)``
    known : array, ``(num_steps, q - D)``
        What stands beside the states in psi's design; the last column is 1.
    inputs : array, ``(num_steps, U)``, or None
        Those of first steps play no part.
    noise_cov : array, ``(D, D)``
    initial : mean and covariance of first states
    prior : MatrixNormalInverseWishart
        Of (A, W_u)'.
    weight_mean, weight_var : arrays, ``(num_sticks, q)``
    """

    def __init__(
        self,
        active: ActiveSticks,
        omega: FloatArray,
        offsets: IntArray,
        known: FloatArray,
        inputs: FloatArray | None,
        noise_cov: FloatArray,
        initial: tuple[FloatArray, FloatArray],
        prior: MatrixNormalInverseWishart,
        weight_mean: FloatArray,
        weight_var: FloatArray,
    ):
        num_steps, extra = known.shape
        (n, q), D = weight_mean.shape, len(noise_cov)
        self.active, self.omega, self.offsets = active, omega, offsets
        self.inputs = np.zeros((num_steps, 0)) if inputs is None else inputs.copy()
        self.inputs[offsets[:-1]] = 0.0
        self.noise_cov, self.precision = noise_cov, invert_positive_definite(noise_cov)
        self.prior, self.weight_mean, self.weight_precision = prior, weight_mean, 1.0 / weight_var
        self.initial_precision = invert_positive_definite(initial[1])
        self.initial_linear = np.einsum("ij,j->i", self.initial_precision, initial[0])
        U = self.inputs.shape[1]
        tiles = -(-(D * (D + 1) // 2 + D * extra) // symbols.COLUMNS)
        self.design = np.concatenate([np.zeros((num_steps, D)), known], axis=1)
        self.products = np.zeros((tiles, n, symbols.COLUMNS))
        self.loadings, self.running = np.empty((n, D)), np.zeros((n + 1, D))
        self.h, self.means = np.empty((2, num_steps, D))
        self.J, self.roots, self.covs = np.empty((3, num_steps, D, D))
        self.following, self.zz = np.empty((D, D + U)), np.empty((D + U, D + U))
        self.growth = 0.0  # of rounding errors
        self.squares, self.linear = np.empty((n, q * (q + 1) // 2)), np.empty((n + 1, q))

    def log_density(
        self, dynamics: FloatArray, weights: FloatArray, by_dynamics: FloatArray,
        by_weights: FloatArray,
    ) -> float:  # fmt: skip
        """The log density up to a constant, -inf where it fails; its gradient goes to the last two.

        O(num_steps D**3 + P q**2) for P active (step, stick) pairs.
        """
        active, D = self.active, len(self.noise_cov)
        collapsed.lay_out(weights, self.loadings, self.running, self.products)
        over_rows(
            symbols.accumulate_potentials, len(active.starts) - 1, active.order, active.depths,
            active.starts, active.indptr, active.sticks, active.counts, self.omega, self.design,
            self.loadings, self.running, self.products, self.J, self.h, grain=8,
        )  # fmt: skip
        total, self.growth = collapsed.smooth(
            self.offsets, self.J, self.h, self.inputs, self.precision, self.initial_precision,
            self.initial_linear, dynamics, self.roots, self.means, self.covs, self.following,
            self.zz,
        )  # fmt: skip
        if not self.growth < MAX_GROWTH:  # nor where there is none
            return -math.inf
        self.design[:, :D] = self.means
        self.squares[:] = 0.0
        self.linear[:] = 0.0
        rows = -(-len(weights) // symbols.STICKS)
        over_rows(
            symbols.accumulate_statistics, rows, num_workers(rows), active.order, active.depths,
            active.starts, self.omega, self.design, self.covs, self.squares,
        )  # fmt: skip
        symbols.sum_by_symbol(active.indptr, active.sticks, active.counts, self.design, self.linear)
        total += collapsed.slopes(
            self.following, self.zz, self.squares, self.linear, self.precision, self.prior.mean,
            self.prior.row_precision, self.weight_mean, self.weight_precision, dynamics, weights,
            by_dynamics, by_weights,
        )  # fmt: skip
        return total if math.isfinite(total) else -math.inf

    def swap(self) -> tuple[FloatArray, FloatArray]:
        """The factors and means of the last evaluation, out of the way of the next."""
        before = self.roots, self.means
        self.roots, self.means = np.empty_like(self.roots), np.empty_like(self.means)
        return before

    def sample_states(self, rng: np.random.Generator, dynamics: FloatArray) -> FloatArray:
        """The states given omega, (A, W_u), and the W of the evaluation: one draw."""
        x = rng.standard_normal(self.means.shape)
        collapsed.draw_states(self.offsets, dynamics, self.precision, self.roots, self.means, x)
        return x

    def log_spread(self, dynamics: FloatArray) -> float:
        """Logarithm of the states' variance, in units of the noise, under the dynamics."""
        longest = int(np.diff(self.offsets).max())
        doublings = min(int(math.log2(max(longest / 2, 1.0))), _MOST_DOUBLINGS)
        return float(collapsed.log_spread(dynamics, self.noise_cov, self.precision, doublings))


class Drawn(NamedTuple):
    """What a path ends with.

    Attributes
    ----------
    dynamics : array, ``(D, D + U)``
    weights : array, ``(num_sticks, q)``
    states : array, ``(num_steps, D)``, or None
        A draw given the two; None where block elimination would lose half of all digits.
    chance : float
        With which the path was accepted.
    """

    dynamics: FloatArray
    weights: FloatArray
    states: FloatArray | None
    chance: float


def path_share(num_steps: int, state_dim: int) -> float:
    """Which share of the sweeps has a path."""
    return 1.0 if num_steps * state_dim**2 < _LONG else _LONG_SHARE


def sample_collapsed(
    rng: np.random.Generator, density: Collapsed, dynamics: FloatArray, weights: FloatArray
) -> Drawn:
    """(A, W_u) and W after one path, and the states given them.

    Parameters
    ----------
    rng : numpy.random.Generator
    density : Collapsed
    dynamics : array, ``(D, D + U)``
        Transition and input weights, side by side.
    weights : array, ``(num_sticks, q)``
        Loadings, and what multiplies what is known, side by side.
    """
    shift, length, stretch, level = rng.random(4)
    b, w = dynamics.copy(), weights.copy()
    by_b, by_w = np.empty_like(b), np.empty_like(w)
    start = density.log_density(b, w, by_b, by_w)
    if start == -math.inf:
        return Drawn(dynamics, weights, None, 0.0)
    cell = _cell(density, dynamics, shift)
    size = _STEP_SIZE * (0.7 + 0.6 * stretch)
    r, s = rng.standard_normal(b.shape), rng.standard_normal(w.shape)
    (n, q), rows = w.shape, b.shape[1]
    row_root, roots = np.empty((rows, rows)), np.empty((n, q, q))
    num_later = int(density.offsets[-1]) - len(density.offsets) + 1
    start -= collapsed.begin(
        math.exp((cell + 0.5 + shift) * _LOG_CELL), density.inputs, num_later, density.noise_cov,
        density.precision, density.prior.row_precision, density.weight_precision, density.squares,
        row_root, roots, r, s,
    )  # fmt: skip
    before = density.swap()
    metric = density.noise_cov, row_root, roots
    collapsed.leap(0.5 * size, size, *metric, by_b, by_w, r, s, b, w)
    chance = 0.0
    for left in range(int(length * _LONGEST), -1, -1):
        end = density.log_density(b, w, by_b, by_w)
        if end == -math.inf:
            break
        kick, drift = (size, size) if left else (0.5 * size, 0.0)
        end -= collapsed.leap(kick, drift, *metric, by_b, by_w, r, s, b, w)
        if left == 0 and math.isfinite(end) and _cell(density, b, shift) == cell:
            chance = math.exp(min(0.0, end - start))
    if level < chance:
        return Drawn(b, w, density.sample_states(rng, b), chance)
    density.roots, density.means = before
    return Drawn(dynamics, weights, density.sample_states(rng, dynamics), chance)


def _cell(density: Collapsed, dynamics: FloatArray, shift: float) -> int:
    """Where the variance of the states stands among the powers of four times 4**shift."""
    return math.floor(min(density.log_spread(dynamics), _LARGEST) / _LOG_CELL - shift)
