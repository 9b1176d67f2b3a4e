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

Sequences are independent given B, W and omega, so log Z and the sums that its gradient is made of
are sums over blocks of them. `Augmented` is such a block, `Collapsed` the density, and
`walk_collapsed` the path, which asks all blocks once a leapfrog.
"""

import math
from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np

from pgmult.compiled.linalg import invert_positive_definite
from pgmult.core.typing import FloatArray, IntArray
from pgmult.priors.matrix_normal import MatrixNormalInverseWishart
from pgmult.sampling.blocks import Ask, Sums
from pgmult.sequences.active_sticks import ActiveSticks, loadings_of
from pgmult.sequences.compiled import collapsed
from pgmult.sequences.compiled.symbols import Loadings, lay_out
from pgmult.sequences.data.sequences import Whole
from pgmult.sequences.priors.dynamics import MAX_GROWTH

_LOG_CELL = math.log(4.0)
_LONGEST = 10  # leapfrogs
_STEP_SIZE = 0.5  # standard deviations, were the states known
_MOST_DOUBLINGS = 10
_LONG = 10_000  # numbers in the covariances of all states: from there on sums take the time
_LONG_SHARE = 0.4
_LARGEST = 40.0  # logarithm of a variance
_KAPPA = np.empty(0)


class _Work(NamedTuple):
    """Arrays that an evaluation writes to."""

    design: FloatArray
    rows: Loadings
    chain: collapsed.Chain
    covs: FloatArray


def chain_of(
    offsets: IntArray,
    num_steps: int,
    inputs: FloatArray | None,
    noise_cov: FloatArray,
    initial: tuple[FloatArray, FloatArray],
) -> collapsed.Chain:
    """Sequences of states with room for their potentials: zeros.

    Inputs of first steps play no part; `initial` are mean and covariance of first states.
    """
    D, precision = len(noise_cov), invert_positive_definite(initial[1])
    driving = np.zeros((num_steps, 0)) if inputs is None else inputs.copy()
    driving[offsets[:-1]] = 0.0
    return collapsed.Chain(
        offsets, driving, np.zeros((num_steps, D, D)), np.zeros((num_steps, D)),
        invert_positive_definite(noise_cov), precision,
        np.einsum("ij,j->i", precision, initial[0]),
    )  # fmt: skip


class _Factors(NamedTuple):
    """Factors that states are drawn from, and the bytes of the parameters they were made for."""

    place: tuple[bytes, bytes]
    roots: FloatArray
    means: FloatArray


class StatesLaw(NamedTuple):
    """The Gaussian law of all states, from what an evaluation left."""

    offsets: IntArray
    dynamics: FloatArray
    precision: FloatArray
    roots: FloatArray
    means: FloatArray

    def coloured(self, white: FloatArray) -> FloatArray:
        """The states that white noise ``(num_steps, D)`` stands for."""
        x = white.copy()
        collapsed.draw_states(*self, x)
        return x

    def whitened(self, states: FloatArray) -> FloatArray:
        """The white noise that stands for states."""
        x = states.copy()
        collapsed.whiten_states(*self, x)
        return x


class Augmented:
    """The states of a block of sequences given omega, integrated out.

    Parameters
    ----------
    rng : numpy.random.Generator
        Of the block, for its states.
    active, omega
        As `ActiveSticks.augment` gives them.
    offsets : int array, ``(num_sequences + 1,)``
    design : array, ``(num_steps, q)``
        Of psi; what stands where the states do is not looked at, the last column is 1.
    inputs : array, ``(num_steps, U)``, or None
        Those of first steps play no part.
    noise_cov : array, ``(D, D)``
    initial : mean and covariance of first states
    pull : array
        What stands in the place of kappa, laid out as omega; empty for kappa itself.
    softened : object, optional
        What noise is drawn from in the end.
    keep : bool
        Whether the factors of the first evaluation and of the last stay for `sample_states`. They
        are made again where they do not, so this is a matter of memory alone.
    only : bool
        Whether there is no other block: then work arrays stay for the next evaluation.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        active: ActiveSticks,
        omega: FloatArray,
        offsets: IntArray,
        design: FloatArray,
        inputs: FloatArray | None,
        noise_cov: FloatArray,
        initial: tuple[FloatArray, FloatArray],
        pull: FloatArray = _KAPPA,
        softened: Any = None,
        keep: bool = True,
        only: bool = True,
    ):
        self.rng, self.active, self.omega, self.offsets = rng, active, omega, offsets
        self.pull, self.softened = pull, softened
        self.design, self.inputs, self.noise_cov, self.initial = design, inputs, noise_cov, initial
        self.keep, self._only = keep, only
        self._work: _Work | None = None
        self._factors: list[_Factors] = []

    def evaluate(self, dynamics: FloatArray, weights: FloatArray) -> Sums:
        """Log Z up to a constant, and what its gradient is made of.

        Sums of E x_t z_t' and E z_t z_t', z_t = (x_t-1, u_t), of omega_tk E y_t y_t', y_t the
        design, and of kappa_tk E y_t, for each stick. Log Z is -inf where it fails.
        O(num_steps D**3 + P q**2) for P active (step, stick) pairs.
        """
        return self._evaluate(dynamics, weights)[0]

    def _evaluate(self, dynamics: FloatArray, weights: FloatArray) -> tuple[Sums, _Factors | None]:
        work = self._work or self._room(weights, dynamics)
        if self.keep or self._only:
            self._work = work
        (D, rows), chain = dynamics.shape, work.chain
        if len(self._factors) == (2 if self.keep else 1):
            _, roots, means = self._factors.pop()
        else:
            roots, means = np.empty_like(chain.J), np.empty_like(chain.h)
        lay_out(weights, tuple(work.rows))
        self.active.accumulate_potentials(
            self.omega, self.pull, work.design, work.rows, chain.J, chain.h
        )
        following, zz = np.zeros((D, rows)), np.zeros((rows, rows))
        moments = collapsed.Moments(roots, means, work.covs, following, zz)
        total, growth = collapsed.smooth(tuple(chain), dynamics, tuple(moments))
        if not growth < MAX_GROWTH:  # nor where there is none
            n, q = weights.shape
            nothing = np.zeros((n, q * (q + 1) // 2)), np.zeros((n, q))
            return Sums((), (np.array(-math.inf), following, zz, *nothing)), None
        factors = _Factors((dynamics.tobytes(), weights.tobytes()), roots, means)
        if self.keep or self._only:
            self._factors.append(factors)
        work.design[:, :D] = means
        of_weights = self.active.statistics(self.omega, work.design, self.pull, work.covs)
        return Sums((), (np.array(total), following, zz, *of_weights)), factors

    def sample_states(self, dynamics: FloatArray, weights: FloatArray) -> FloatArray | None:
        """One draw of the states; None where block elimination would lose half of all digits."""
        law = self.law(dynamics, weights)
        return None if law is None else law.coloured(self.rng.standard_normal(law.means.shape))

    def law(self, dynamics: FloatArray, weights: FloatArray) -> "StatesLaw | None":
        """The states' Gaussian law, or None, as for `sample_states`."""
        place = dynamics.tobytes(), weights.tobytes()
        found = next((factors for factors in self._factors if factors.place == place), None)
        if found is None:
            _, found = self._evaluate(dynamics, weights)
        if found is None:
            return None
        precision = invert_positive_definite(self.noise_cov)
        return StatesLaw(self.offsets, dynamics, precision, found.roots, found.means)

    def _room(self, weights: FloatArray, dynamics: FloatArray) -> _Work:
        num_steps, D = len(self.design), len(dynamics)
        return _Work(
            self.design.copy(), loadings_of(weights.shape, D),
            chain_of(self.offsets, num_steps, self.inputs, self.noise_cov, self.initial),
            np.empty((num_steps, D, D)),
        )  # fmt: skip


class Collapsed:
    """The density of (A, W_u) and W given omega, from what the blocks' evaluations add up to.

    Parameters
    ----------
    noise_cov : array, ``(D, D)``
    prior : MatrixNormalInverseWishart
        Of (A, W_u)'.
    weight_mean, weight_var : arrays, ``(num_sticks, q)``
    whole : Whole
    """

    def __init__(
        self,
        noise_cov: FloatArray,
        prior: MatrixNormalInverseWishart,
        weight_mean: FloatArray,
        weight_var: FloatArray,
        whole: Whole,
    ):
        self.noise_cov, self.precision = noise_cov, invert_positive_definite(noise_cov)
        self.prior = collapsed.Prior(prior.mean, prior.row_precision, weight_mean, 1.0 / weight_var)
        self.num_later = whole.num_steps - whole.num_sequences
        self._doublings = min(int(math.log2(max(whole.longest / 2, 1.0))), _MOST_DOUBLINGS)

    def log_density(
        self, sums: Sums, dynamics: FloatArray, weights: FloatArray, by_dynamics: FloatArray,
        by_weights: FloatArray,
    ) -> float:  # fmt: skip
        """The log density up to a constant, -inf where it fails; its gradient goes to the last two.

        `sums` are those of `Augmented.evaluate` of all blocks, there.
        """
        log_normalizer, *moments = sums.rounded
        total = float(log_normalizer) + collapsed.slopes(
            *moments, self.precision, tuple(self.prior), dynamics, weights, by_dynamics, by_weights
        )  # fmt: skip
        return total if math.isfinite(total) else -math.inf

    def log_spread(self, dynamics: FloatArray) -> float:
        """Logarithm of the states' variance, in units of the noise, under the dynamics."""
        return float(
            collapsed.log_spread(dynamics, self.noise_cov, self.precision, self._doublings)
        )


class Drawn(NamedTuple):
    """The result of a path.

    Attributes
    ----------
    dynamics : array, ``(D, D + U)``
    weights : array, ``(num_sticks, q)``
    chance : float
        With which the path was accepted.
    """

    dynamics: FloatArray
    weights: FloatArray
    chance: float


def path_share(num_steps: int, state_dim: int) -> float:
    """Which share of the sweeps has a path."""
    return 1.0 if num_steps * state_dim**2 < _LONG else _LONG_SHARE


def walk_collapsed(
    rng: np.random.Generator,
    density: Collapsed,
    sums: Sums,
    dynamics: FloatArray,
    weights: FloatArray,
    ask: str,
) -> Generator[Ask, Sums, Drawn]:
    """(A, W_u) and W after one path.

    Parameters
    ----------
    rng : numpy.random.Generator
    density : Collapsed
    sums : Sums
        Of all blocks' `Augmented.evaluate` where the path begins.
    dynamics : array, ``(D, D + U)``
        Transition and input weights, side by side.
    weights : array, ``(num_sticks, q)``
        Loadings, and what multiplies what is known, side by side.
    ask : str
        What gets such sums of all blocks.
    """
    shift, length, stretch, level = rng.random(4)
    b, w = dynamics.copy(), weights.copy()
    by_b, by_w = np.empty_like(b), np.empty_like(w)
    start = density.log_density(sums, b, w, by_b, by_w)
    if start == -math.inf:
        return Drawn(dynamics, weights, 0.0)
    cell = _cell(density, dynamics, shift)
    size = _STEP_SIZE * (0.7 + 0.6 * stretch)
    r, s = rng.standard_normal(b.shape), rng.standard_normal(w.shape)
    (n, q), rows = w.shape, b.shape[1]
    metric = density.noise_cov, np.empty((rows, rows)), np.empty((n, q, q))
    _, _, zz, squares, _ = sums.rounded
    start -= collapsed.begin(
        math.exp((cell + 0.5 + shift) * _LOG_CELL), density.num_later, zz, squares,
        density.precision, tuple(density.prior), metric, r, s,
    )  # fmt: skip
    collapsed.leap(0.5 * size, size, metric, by_b, by_w, r, s, b, w)
    chance = 0.0
    for left in range(int(length * _LONGEST), -1, -1):
        sums = yield Ask(ask, (b, w), moves=False, draws=False)
        end = density.log_density(sums, b, w, by_b, by_w)
        if end == -math.inf:
            break
        kick, drift = (size, size) if left else (0.5 * size, 0.0)
        end -= collapsed.leap(kick, drift, metric, by_b, by_w, r, s, b, w)
        if left == 0 and math.isfinite(end) and _cell(density, b, shift) == cell:
            chance = math.exp(min(0.0, end - start))
    return Drawn(b, w, chance) if level < chance else Drawn(dynamics, weights, chance)


def _cell(density: Collapsed, dynamics: FloatArray, shift: float) -> int:
    """Where the variance of the states stands among the powers of four times 4**shift."""
    return math.floor(min(density.log_spread(dynamics), _LARGEST) / _LOG_CELL - shift)
