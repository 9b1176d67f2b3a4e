r"""Stick-breaking with symbols as observations: only the sticks that a step reaches.

Row psi_t = W z_t holds the sticks of step t, a linear function of what is known or sampled there,
``z_t``, ``(n,)``. A step whose last symbol (in the sticks' order) stands at stick r has
N_tk = 0 for all k > r: no Pólya-gamma variable, J = h = 0. With symbols in order of frequency most
steps end early, and one pass over the *active* pairs

    {(t, k): N_tk > 0}

gives everything a Gibbs sweep needs of the likelihood,

    p(x_t | psi_t) ∝ prod_k exp(kappa_tk psi_tk) E[exp(-omega_tk psi_tk^2 / 2)],

with kappa_tk = x_tk - N_tk / 2 and omega_tk ~ PG(N_tk, psi_tk), as in `StickBreaking` (Linderman,
Johnson and Adams 2015, equations 8 and 9). Draws are those of `StickBreaking.augment`, number for
number; sums are the same to rounding.

>>> import numpy as np
>>> from pgmult.sequences.data.sequences import as_sequences
>>> active = ActiveSticks.of(as_sequences([[0, 0, 2, -1, 1, 0, 3]]))
>>> active.depths
array([1, 1, 3, 0, 2, 1, 3])
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit

from pgmult.compiled.rows import num_workers, over_rows
from pgmult.compiled.simd import WIDTH
from pgmult.core.memory import once_a_data_set
from pgmult.core.potentials import DensePotential
from pgmult.core.typing import BoolArray, FloatArray, Generator, IntArray
from pgmult.core.validate import new_key
from pgmult.sequences.compiled import symbols
from pgmult.sequences.data.sequences import Sequences

KAPPA = np.empty(0)  # in the place of a pull, for kappa itself
_LAGS = 4  # of steps around one
_FROM_ALL, _FROM_AROUND = 1.0, 8.0  # successes that a guess adds to counts


class ActiveSticks(NamedTuple):
    """The active (step, stick) pairs of some sequences, sorted so that they form a staircase.

    Compiled code takes all but `steps` as a plain tuple: a named one doubles the cost of a call.

    Attributes
    ----------
    num_sticks : int
        K - 1.
    depths : int64 array, ``(num_steps,)``
        How many sticks each step reaches.
    order : int64 array, ``(num_steps,)``
        Steps, deepest first.
    starts : int64 array, ``(num_groups + 1,)``
        Where each group of eight steps begins in a vector of omega, in sticks of eight lanes.
    indptr : int64 array, ``(num_steps + 1,)``
        Step t's entries are ``indptr[t]:indptr[t + 1]``.
    sticks, counts : int64 arrays, ``(num_entries,)``
        The place of each entry's symbol in the sticks' order, increasing within a step, and its
        count; place ``num_sticks`` is the symbol that takes the rest.
    steps : int64 array, ``(num_entries,)``
        The step of each entry.
    """

    num_sticks: int
    depths: IntArray
    order: IntArray
    starts: IntArray
    indptr: IntArray
    sticks: IntArray
    counts: IntArray
    steps: IntArray

    @staticmethod
    @once_a_data_set
    def of(data: Sequences) -> "ActiveSticks":
        """Sort the steps of `data` by how deep they reach: O(steps + entries), up to a logarithm.

        The sticks are in the order of ``data.order``. Remembered for as long as the data live.
        """
        num_sticks = data.num_symbols - 1
        sticks, counts = data.stick_of_symbol[data.symbols], data.counts.astype(np.int64)
        per_step, steps = np.diff(data.indptr), data.step_of_entry
        if per_step.max(initial=0) > 1:
            entries = np.lexsort((sticks, steps))
            sticks, counts = sticks[entries], counts[entries]
        depths = np.zeros(data.num_steps, dtype=np.int64)
        observed = per_step > 0
        depths[observed] = np.minimum(sticks[data.indptr[1:][observed] - 1] + 1, num_sticks)
        small = depths.astype(np.int16) if num_sticks < 2**15 else depths  # sorted digit by digit
        order = np.argsort(-small, kind="stable")
        deepest = depths[order[::WIDTH]]
        padded = -(-deepest // symbols.STICKS) * symbols.STICKS
        starts = np.concatenate([[0], np.cumsum(padded)])
        return ActiveSticks(num_sticks, depths, order, starts, data.indptr, sticks, counts, steps)

    def lanes(self) -> tuple[IntArray, IntArray, BoolArray]:
        """The step and the stick of each place of omega, and whether it is of an active pair."""
        place = np.arange(int(self.starts[-1]) * WIDTH)
        group = np.searchsorted(self.starts, place // WIDTH, side="right") - 1
        row, stick = group * WIDTH + place % WIDTH, place // WIDTH - self.starts[group]
        inside = row < len(self.order)
        step = self.order[np.where(inside, row, 0)]
        return step, np.minimum(stick, self.num_sticks - 1), inside & (stick < self.depths[step])

    def augment(self, rng: Generator, design: FloatArray, weights: FloatArray) -> FloatArray:
        """Draw omega_tk ~ PG(N_tk, psi_tk) of the active pairs.

        Parameters
        ----------
        rng : numpy.random.Generator
        design : array, ``(num_steps, n)``
            The z_t.
        weights : array, ``(num_sticks, n)``
            W.

        Returns
        -------
        array
            The active omega as the other methods take them.
        """
        omega = np.empty(int(self.starts[-1]) * WIDTH)
        self._over(symbols.draw_active, new_key(rng), self[:-1], design, weights, omega)
        return omega

    def _over(self, kernel: Any, *arguments: Any) -> None:
        """Run a kernel for all groups of steps."""
        over_rows(kernel, len(self.starts) - 1, *arguments, grain=8)

    def log_likelihood(self, design: FloatArray, weights: FloatArray) -> FloatArray:
        """Log probability of each step's observations given psi, ``(num_steps,)``.

        Without the multinomial coefficient; 0 where a step is missing.
        """
        out = np.empty(len(self.depths))
        self._over(symbols.log_likelihood_active, self[:-1], design, weights, out)
        return out

    def potential(
        self, omega: FloatArray, design: FloatArray, weights: FloatArray, size: int,
        pull: FloatArray = KAPPA,
    ) -> DensePotential:  # fmt: skip
        """The potential of the first `size` coordinates of every z_t, given omega.

        Parameters
        ----------
        omega : array
            As `augment` returns them.
        design : array, ``(num_steps, n)``
            Its first `size` columns are not looked at.
        weights : array, ``(num_sticks, n)``
        size : int
        pull : array
            What stands in the place of kappa, laid out as omega; empty for kappa itself.

        Returns
        -------
        DensePotential, ``(num_steps, size)``
            That of psi, as one of the first `size` columns.
        """
        J, h = np.empty((len(self.depths), size, size)), np.empty((len(self.depths), size))
        loadings = _loadings(weights, size)
        self._over(symbols.accumulate_potentials, self[:-1], omega, pull, design, loadings, J, h)
        return DensePotential(J, h)

    def statistics(
        self, omega: FloatArray, design: FloatArray, pull: FloatArray = KAPPA
    ) -> tuple[FloatArray, FloatArray]:
        """The potential of every row of W, given omega and the z_t.

        `pull` is as in `potential`.

        Returns
        -------
        squares : array, ``(num_sticks, n (n + 1) / 2)``
            Row k is the lower triangle of sum_t omega_tk z_t z_t', row by row.
        linear : array, ``(num_sticks, n)``
            sum_t kappa_tk z_t.
        """
        n = design.shape[1]
        squares = np.zeros((self.num_sticks, n * (n + 1) // 2))
        kernel, pairs = symbols.accumulate_statistics, -(-self.num_sticks // symbols.STICKS)
        over_rows(kernel, pairs, num_workers(pairs), self[:-1], omega, design, squares)
        if pull.size:
            step, stick, _ = self.lanes()
            columns = [np.bincount(stick, pull * z[step], self.num_sticks) for z in design.T]
            return squares, np.stack(columns, axis=1)
        by_symbol = np.empty((self.num_sticks + 1, n))
        for column, z in zip(by_symbol.T, design.T, strict=True):
            column[:] = np.bincount(self.sticks, self.counts * z[self.steps], len(column))
        reaching = np.cumsum(by_symbol[::-1], axis=0)[::-1]
        return squares, by_symbol[:-1] - 0.5 * reaching[:-1]


def _loadings(weights: FloatArray, size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The rows of W, ``(num_sticks, n)``, whose first `size` columns multiply states.

    As `pgmult.sequences.compiled.symbols.accumulate_potentials` takes them.
    """
    num_sticks, n = weights.shape
    left, right = _products(size, n)
    tiles = -(-len(left) // symbols.COLUMNS)
    products = np.zeros((tiles * symbols.COLUMNS, num_sticks))
    products[: len(left)] = (weights[:, left] * weights[:, right]).T
    tiled = products.reshape(tiles, symbols.COLUMNS, num_sticks).swapaxes(1, 2)
    running = np.zeros((num_sticks + 1, size))
    np.cumsum(weights[:, :size], axis=0, out=running[1:])
    loadings = np.ascontiguousarray(weights[:, :size])
    return loadings, running, np.ascontiguousarray(tiled)


@lru_cache(maxsize=8)
def _products(size: int, n: int) -> tuple[IntArray, IntArray]:
    """Columns of W whose products `_loadings` holds."""
    rows, columns = np.tril_indices(size)
    left = np.concatenate([rows, np.repeat(np.arange(size), n - size)])
    return left, np.concatenate([columns, np.tile(np.arange(size, n), size)])


class Pairs(NamedTuple):
    """What each (step, stick) pair has seen, laid out as omega; nothing beyond a step's depth.

    Attributes
    ----------
    step, stick : int64 arrays
    taken, reaching : float64 arrays
        How many observations the stick takes, of how many.
    J, h : float64 arrays
        A Gaussian site near the likelihood of psi, found from the data alone: the expansion at the
        pair's own share, to which that of the steps around it adds some trials, and to theirs that
        of the stick over all steps.
    """

    step: IntArray
    stick: IntArray
    taken: FloatArray
    reaching: FloatArray
    J: FloatArray
    h: FloatArray

    def log_likelihoods(self, psi: FloatArray) -> FloatArray:
        """The log likelihood of each pair at psi."""
        return np.asarray(self.taken * psi - self.reaching * np.logaddexp(0.0, psi))

    @staticmethod
    @once_a_data_set
    def of(data: Sequences) -> "Pairs":
        """The pairs of `ActiveSticks.of`. Remembered for as long as the data live."""
        step, stick, inside = ActiveSticks.of(data).lanes()
        counts = data.to_csr().toarray()[:, data.order]
        reached = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1][:, :-1]
        shares = _shares(data, counts[:, :-1].astype(np.float64), reached.astype(np.float64))
        taken = np.where(inside, counts[step, stick], 0).astype(np.float64)
        reaching = np.where(inside, reached[step, stick], 0).astype(np.float64)
        share = shares[step, stick]
        J = reaching * share * (1.0 - share)
        return Pairs(step, stick, taken, reaching, J, taken - reaching * share + J * logit(share))

    def correction(self, psi: FloatArray) -> FloatArray:
        """Log likelihood of each pair less its site."""
        return np.asarray(self.log_likelihoods(psi) - psi * (self.h - 0.5 * self.J * psi))


def _shares(data: Sequences, taken: FloatArray, reached: FloatArray) -> FloatArray:
    """A guess at each step's sticks, ``(num_steps, num_sticks)``, from the steps around it."""
    taken_of_all = data.whole.taken
    usual = (taken_of_all[:-1] + 0.5) / (np.cumsum(taken_of_all[::-1])[::-1][:-1] + 1.0)
    sequence = data.sequence_of_step
    around = np.zeros((2, *taken.shape))
    for lag in range(1, _LAGS + 1):
        together = (sequence[lag:] == sequence[:-lag])[:, None] * 0.5**lag
        for total, values in zip(around, (taken, reached), strict=True):
            total[lag:] += together * values[:-lag]
            total[:-lag] += together * values[lag:]
    share = _added(around[0], around[1], usual, _FROM_ALL)
    return _added(taken, reached, share, _FROM_AROUND)


def _added(taken: FloatArray, reached: FloatArray, share: FloatArray, times: float) -> FloatArray:
    """Shares, to which others add as many trials as would have a success so many times."""
    trials = times / np.minimum(share, 1.0 - share)
    return np.asarray((taken + trials * share) / (reached + trials))
