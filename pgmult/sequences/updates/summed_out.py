r"""Hidden Markov chains with the states summed out: Hamiltonian paths of all their probabilities.

Given its states, a chain's probabilities move by what complete data leave open, which is less than
what the observations leave open: draws crawl. With the states summed out, the log likelihood of the
forward algorithm has slopes in the predictor of each stick,

    d log p(y) / d psi_k  =  E n_k - E N_k sigma(psi_k),

where the forward-backward algorithm tells how often the stick was taken (n_k) and reached (N_k), in
expectation given all observations (Fisher's identity). So all probabilities move together:

* weights w ~ N(0, Q(x)^-1) of the sticks that inputs act on, psi = A w + c, and the coordinates x
  of their standard deviations;
* Dirichlet rows as sticks, whose distribution is that of observations made before.

Standard deviations move along. A weight is w_j = rho_j s_j v_j, where rho_j = sd_j(x) / sd_j(x_0),

    s_j(x)^2 = (1 + k_j) / (1 + k_j rho_j^2),      k_j = (A' J A)_jj / Q(x_0)_jj / 5,

so that v_j varies about as much whatever x: where the data tell little of a weight it is a standard
normal number times sd_j(x_0), where they tell much it is the weight (partially non-centred:
Papaspiliopoulos, Roberts and Skold 2007). With t = w / rho the density of v and x is

    p(y | w) exp(-t' Q(x_0) t / 2) prod_j s_j(x) p(x).

Coordinates x go on below 0 as their mirror image.

*The metric* of a leapfrog path (Neal 2011, "MCMC using Hamiltonian dynamics", section 4.1) is
Q(x_0) + A' J A for v, J the information of complete data, an amount per stick. J and x_0 are what
a chain starts with and keeps. Any leave the posterior as it is. A path that visits a probability
next to 0 is refused, as its reverse would be.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pgmult.compiled.rows import over_rows
from pgmult.compiled.sticks import probs_rows
from pgmult.core.memory import once_a_data_set
from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.latent.compiled.coordinates import BEND
from pgmult.latent.compiled.stacked import Stacked
from pgmult.latent.factors import ArrowFactor, stacked
from pgmult.latent.layout import compressed_rows, joined
from pgmult.latent.predictors import Latent
from pgmult.latent.terms import log_sd
from pgmult.sequences.compiled import hmm as compiled
from pgmult.sequences.compiled.hmm_paths import MovedPaths, Scales

_LONGEST, _LONGEST_OF_MANY = 24, 8  # leapfrogs; the shortest path has two thirds
_MANY = 10_000  # steps of all sequences: from there on passes take the time
_SEEN = 0.2  # of the information of complete data: what observations tell, roughly
_SIZES = 0.35, 0.75  # of a leapfrog, in standard deviations under the metric


class OrderedSticks(NamedTuple):
    """Rows of probabilities that break as sticks, each in an order of its own.

    Attributes
    ----------
    order : int array, ``(num_rows, num_categories)``
        The categories of each row as they break.
    """

    order: IntArray

    @property
    def size(self) -> int:
        """Number of sticks of all rows."""
        return self.order[:, 1:].size

    def probs(self, psi: FloatArray) -> FloatArray:
        """Probabilities of the categories, from ``(num_cells, num_rows, num_sticks)``."""
        num_rows, size = self.order.shape
        broken = np.empty((len(psi) * num_rows, size))
        over_rows(probs_rows, len(broken), psi.reshape(-1, size - 1), np.arange(size), broken)
        places = np.argsort(self.order, axis=1)[None]
        return np.take_along_axis(broken.reshape(-1, num_rows, size), places, axis=2)

    def tried(self, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How often each stick was taken and reached."""
        taken = np.take_along_axis(counts, self.order[None], axis=2)
        reached = taken[..., ::-1].cumsum(axis=2)[..., ::-1]
        return taken[..., :-1], reached[..., :-1]

    def information(self, counts: FloatArray) -> FloatArray:
        """The information of counts on each stick, were their shares the probabilities."""
        taken, reached = self.tried(counts)
        return np.asarray(taken * (reached - taken) / reached)

    def psi(self, probs: FloatArray) -> FloatArray:
        """Sticks of probabilities ``(num_rows, num_categories)``; infinite where one is 0."""
        ordered = np.take_along_axis(probs, self.order, axis=1)
        remaining = ordered[:, :0:-1].cumsum(axis=1)[:, ::-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            psi = np.log(ordered[:, :-1]) - np.log(remaining)
        return np.where(np.isnan(psi), 0.0, psi)  # of sticks that nothing can reach


class Metric(NamedTuple):
    """What moves weights of sticks and their standard deviations: see `MovedPaths`."""

    precision: compiled.ByRows
    metric: Stacked
    masses: FloatArray
    scales: Scales


Chosen = tuple[Latent, IntArray, IntArray]
"""Terms at the cells, and places of their weights and hyperparameters among those of all."""


class Acting:
    """Terms that act on transitions or on emissions: an additive predictor of sticks.

    Parameters
    ----------
    terms : Chosen
    share : array, ``(num_cells,)``
        Of what is known of psi.
    sticks : OrderedSticks
    shifts : array, ``(num_sticks,)``
        The constants of the sticks.
    at : int
        The place of the first stick among all on which inputs act.

    Attributes
    ----------
    family : Additive
    is_sd : bool array, ``(num_hyperparameters,)``
        Which hyperparameters are coordinates of standard deviations.
    rows, columns : ByRows
        The design A, and A'.
    """

    def __init__(
        self, terms: Chosen, share: FloatArray, sticks: OrderedSticks, shifts: FloatArray, at: int
    ):
        (self.latent, self.w, self.x), self.sticks, self.shifts = terms, sticks, shifts
        self.place = slice(at, at + sticks.size)
        self.family = family = self.latent.family
        self.is_sd, design = family.is_sd(), family.design
        self.rows, self.columns = _by_rows(design), _by_rows(design.T)
        self._absorbed, _ = family.absorb(share, np.zeros(len(share)))
        self._squares = design.power(2).T @ share
        self._of, sd_priors = np.full(family.num_weights, -1), np.empty((2, 0))
        parts: Any = zip(family.terms, family.weights, strict=True)
        for term, place in parts:
            for i in range(term.num_sds):
                self._of[place][term.scaled_by(i)] = sd_priors.shape[1] + i
            if term.num_sds:
                more = np.broadcast_arrays(term.scale, term.dof, np.empty(term.num_sds))[:2]
                sd_priors = np.hstack([sd_priors, more])
        self._scale, self._dof = sd_priors

    @once_a_data_set
    def metric(self, information: FloatArray, near: FloatArray) -> Metric:
        """The metric of sticks of so much information, near hyperparameters of each."""
        family, factors, precisions = self.family, [], []
        for j, x in zip(information, near, strict=True):
            both = zip(family.terms, family.hyperparameters, strict=True)
            of_terms = [term.precision(x[at]) for term, at in both]
            factors.append(family.layout.factor(_times(self._absorbed, float(j)), of_terms))
            precisions.append(joined(of_terms))
        diagonals = np.array([precision.diagonal() for precision in precisions])
        added = _SEEN * information[:, None] * self._squares / diagonals
        shares, scaled = added / (1.0 + added), self._of[:, None] == np.arange(len(self._dof))
        sds = np.exp(log_sd(np.ascontiguousarray(near[:, self.is_sd])))
        slopes = 4.0 * (shares * (1.0 + shares)) @ scaled * (1.0 + BEND / sds) ** 2
        return Metric(
            _by_rows(joined(precisions)), stacked(factors, family.layout.order), 1.0 + slopes,
            Scales(self._of, sds, added, self._scale, self._dof),
        )  # fmt: skip

    def psi(self, rng: Generator, weights: FloatArray, x: FloatArray) -> FloatArray:
        """Predictors of all cells, ``(num_cells, num_rows, num_sticks)``."""
        w, x = weights[self.place][:, self.w], x[self.place][:, self.x]
        psi = self.latent.draw(rng, w, x) + self.shifts
        return psi.reshape(len(psi), *self.sticks.order[:, 1:].shape)

    def moved(
        self, weights: FloatArray, x: FloatArray, information: FloatArray, near: FloatArray
    ) -> MovedPaths:
        """The sticks at all weights and hyperparameters as paths move them.

        The metric is of so much information, near other hyperparameters.
        """
        w, x, near = weights[self.place][:, self.w], *(y[self.place][:, self.x] for y in (x, near))
        metric = self.metric(information, np.where(self.is_sd, near, x))
        x, constants = np.ascontiguousarray(x[:, self.is_sd]), self.family.offset[:, None]
        velocity = np.empty((len(x), w.shape[1] + x.shape[1]))
        return MovedPaths(
            np.ascontiguousarray(w), x, velocity, self.rows, self.columns, constants + self.shifts,
            *metric,
        )  # fmt: skip


def _by_rows(matrix: object) -> compiled.ByRows:
    return compiled.ByRows(*compressed_rows(matrix))


def _times(packed: Any, by: float) -> Any:
    """What cells say of the weights' precision, so many times."""
    if isinstance(packed, tuple):
        blocks, between, others = packed
        return by * blocks, between._replace(values=by * between.values), by * others
    return by * packed


def of_rows(psi: FloatArray, information: FloatArray) -> MovedPaths:
    """Sticks of Dirichlet rows, each a weight of its own, as paths move them.

    Parameters
    ----------
    psi, information : arrays, ``(num_rows, num_sticks)``
        Where they are, and the precision that the metric has.
    """
    root = np.sqrt(information).reshape(-1, 1)
    nothing, one = ArrowFactor.dense(np.eye(1)), np.zeros(1, dtype=np.int64)
    metric, none = stacked([nothing] * len(root), one), np.empty((len(root), 0))
    design = compiled.ByRows(np.arange(2), one, np.ones(1))
    flat = compiled.ByRows(np.zeros(len(root) + 1, dtype=np.int64), one[:0], none[0])
    return MovedPaths(
        psi.reshape(root.shape), none, np.empty(root.shape), design, design,
        np.zeros((1, len(root))), flat, metric._replace(inner=root[:, :, None]), none,
        Scales(one - 1, none, np.zeros(root.shape), none[0], none[0]),
    )  # fmt: skip


Parts = tuple[MovedPaths, ...]
"""Of first states, transitions and emissions."""


def started(rng: Generator, part: MovedPaths) -> MovedPaths:
    """A part of its own to be moved, with velocities that are standard normal numbers."""
    velocity = rng.standard_normal(part.velocity.shape)
    return part._replace(weights=part.weights.copy(), x=part.x.copy(), velocity=velocity)


def walk_summed_out(
    rng: Generator, parts: Parts, leap: Callable[[Parts, float, int], float], num_steps: int
) -> Parts:
    """All parts after one path of leapfrogs, or as they were."""
    longest = _LONGEST if num_steps < _MANY else _LONGEST_OF_MANY
    size = math.exp(rng.uniform(*np.log(_SIZES)))
    count = int(rng.integers(longest - longest // 3, longest, endpoint=True))
    moved = tuple(started(rng, part) for part in parts)
    return moved if leap(moved, size, count) > -rng.standard_exponential() else parts
