r"""Paths of states moved by slices around a Gaussian, without omega.

Where many events reach a stick and few stay, omega remembers all that reach it, and the states
given omega hardly move (`pgmult.sampling.diagnostics.augmentation_rate`). Given dynamics and
weights alone, the law of a path is that of the linear dynamics times a likelihood, and near to a
Gaussian: the dynamics times sites of *expected* curvature,

    J_tk = N_tk E[sigma(psi) sigma(-psi)],    h_tk = x_tk - N_tk E sigma(psi) + J_tk E psi,

at the moments that they themselves lead to, found in two passes of the smoother from a guess that
knows no states. Each sequence is one elliptical slice update around it (Nishihara, Murray and Adams
2014; `pgmult.sampling.moves.slice_around`), whose correction, the log likelihood less
h'x - x'Jx / 2, varies by half a nat over hundreds of steps, rare symbols or not. Base and number of
passes depend on what is held fixed alone, so the move is exact, however good or bad the base.

It takes a third to a half of the time of all else in a sweep and pays where a stick's
`stick_rates` is below 0.4: where of fifty symbols a step, or of thousands, all but the most
frequent are less than 5 %.
"""

import numpy as np

from pgmult.compiled.rows import over_rows
from pgmult.core.memory import once_a_data_set
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import new_key
from pgmult.sampling.diagnostics import augmentation_rate, slow_in_words
from pgmult.sequences.active_sticks import ActiveSticks
from pgmult.sequences.compiled import collapsed
from pgmult.sequences.compiled import state_slice as compiled
from pgmult.sequences.data.sequences import Sequences, Whole
from pgmult.sequences.priors.dynamics import MAX_GROWTH
from pgmult.sequences.updates.collapsed import chain_of

_ROUNDS = 1  # of sites after the guess: more make no better base
_PAYS, _SLOW = 0.4, 0.1  # of `stick_rates`, slices, and where nobody should do without
_GUESS = np.empty((0, 0, 0))


class Around:
    """A Gaussian near the law of all states given dynamics and weights.

    Parameters
    ----------
    active : ActiveSticks
    offsets : int array, ``(num_sequences + 1,)``
    known : array, ``(num_steps, q - D)``
        What stands beside the states in psi's design.
    inputs : array, ``(num_steps, U)``, or None
        Those of first steps play no part.
    dynamics : array, ``(D, D + U)``
        Transition and input weights, side by side.
    noise_cov : array, ``(D, D)``
    initial : mean and covariance of first states
    weights : array, ``(num_sticks, q)``
    rounds : int
        Passes of the smoother.

    Attributes
    ----------
    base : Base
        Its means, and the potentials in the likelihood's place.
    found : bool
        Whether there is one: rounding may have cost half of all digits.
    """

    def __init__(
        self,
        active: ActiveSticks,
        offsets: IntArray,
        known: FloatArray,
        inputs: FloatArray | None,
        dynamics: FloatArray,
        noise_cov: FloatArray,
        initial: tuple[FloatArray, FloatArray],
        weights: FloatArray,
        rounds: int = _ROUNDS,
    ):
        num_steps, D = len(known), len(noise_cov)
        self.active, self.offsets, self.dynamics = active, offsets, dynamics
        chain = chain_of(offsets, num_steps, inputs, noise_cov, initial)
        self.precision, J, h = chain.precision, chain.J, chain.h
        means, self.roots = np.empty((num_steps, D)), np.empty((num_steps, D, D))
        design = np.concatenate([np.zeros((num_steps, D)), known], axis=1)
        self.base = compiled.Base(design, weights, J, h, means)
        rows = dynamics.shape[1]
        covs, sums = np.empty((num_steps, D, D)), (np.empty((D, rows)), np.empty((rows, rows)))
        moments = collapsed.Moments(self.roots, means, covs, *sums)
        self.found = True
        for i in range(1 + rounds):
            over_rows(
                compiled.expected_sites, num_steps, tuple(active), design, covs if i else _GUESS,
                weights, J, h, grain=256,
            )  # fmt: skip
            _, growth = collapsed.smooth(tuple(chain), dynamics, tuple(moments))
            if not growth < MAX_GROWTH:  # nor where there is none
                self.found = False
                return
            design[:, :D] = means

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """A draw of all states."""
        means = self.base.centre
        x = rng.standard_normal(means.shape)
        collapsed.draw_states(self.offsets, self.dynamics, self.precision, self.roots, means, x)
        return x


def slice_states(rng: np.random.Generator, base: Around, states: FloatArray) -> FloatArray:
    """The states after one slice update of every sequence around `base`.

    Without a base that was found they stay where they are.

    Raises
    ------
    FloatingPointError
        If a sequence's log likelihood is not finite at `states`.

    Notes
    -----
    O(P D**2) for P active (step, stick) pairs, some five times over, and O(num_steps D**3).
    """
    if not base.found:
        return states
    across, key = base.sample(rng), new_key(rng)
    moved = states.copy()
    statuses = over_rows(
        compiled.slice_paths, len(base.offsets) - 1, key, base.offsets, tuple(base.active),
        tuple(base.base), across, moved, grain=1,
    )  # fmt: skip
    failed = [status - 1 for status in statuses if status]
    if failed:
        raise FloatingPointError(
            f"the log likelihood of sequence {min(failed)} is not finite (have states exploded?)"
        )
    return moved


def stick_rates(data: Sequences) -> FloatArray:
    """How much of psi at a step a Pólya-gamma sweep renews, ``(num_symbols - 1,)``, a stick each.

    `pgmult.sampling.diagnostics.augmentation_rate` at the stick's share of all that reaches it and
    as many of these as a step has, were psi given all else to vary by 1.
    """
    return _rates(data.whole)


@once_a_data_set
def _rates(whole: Whole) -> FloatArray:
    taken, reaching = _taken(whole)
    share = (taken + 0.5) / (reaching + 1.0)
    psi = np.log(share / (1.0 - share))
    return augmentation_rate(reaching / np.maximum(whole.reached, 1), psi, 1.0)


def paths_are_slow(data: Sequences) -> bool:
    """Whether slices of the states are worth their time."""
    return bool(stick_rates(data).min() < _PAYS)


def slow_symbol(data: Sequences) -> str | None:
    """The symbol that Pólya-gamma sweeps move least, in words, where that is next to nothing."""
    rates = stick_rates(data)
    stick = int(np.argmin(rates))
    if rates[stick] >= _SLOW:
        return None
    taken, reaching = (int(count[stick]) for count in _taken(data.whole))
    symbol, what = int(data.order[stick]), ""
    if 2 * taken > reaching:  # what is rare is all that comes after it
        taken, what = reaching - taken, "all but "
    name = symbol if data.alphabet is None else data.alphabet[symbol]
    what = f"the states by {what}symbol {name}"
    return slow_in_words(what, taken, reaching, float(rates[stick]), 'update="auto"')


def _taken(whole: Whole) -> tuple[IntArray, IntArray]:
    """How many observations each stick takes, of how many, ``(num_symbols - 1,)`` each."""
    return whole.taken[:-1], np.cumsum(whole.taken[::-1])[::-1][:-1]
