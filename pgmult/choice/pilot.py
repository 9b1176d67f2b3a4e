"""Where chains of choices start, and the Gaussian sites of people around which they move.

Sites are the likelihood's slope and curvature at people's modes given a population, the *base*, so
that each follows from the base and the person's own choices. The base is the mean over short chains
of at most some thousand people, which start at the modes that a few rounds of Laplace's EM find.

The spread of their draws, mixed with the approximate covariance of `metric_of`, is the metric of
paths of the population. These chains also set the number of parts of the population's paths. An
error of energy with standard deviation s is accepted with probability 2 Phi(-s / 2), and s falls
with the square of the number (Neal 2011, "MCMC using Hamiltonian dynamics", 5.4.4): from the share
accepted follows the number with which four fifths are.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtri

from pgmult.choice.compiled.people import LANES, Choices, PersonSites, Population, slopes_rows
from pgmult.choice.data import ChoiceRows
from pgmult.compiled.rows import over_rows
from pgmult.core.blas import one_blas_thread
from pgmult.core.memory import once_a_data_set
from pgmult.core.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from pgmult.choice.mixed_logit import MixedLogit, MixedLogitState

PARTS = 4  # of a path of the population, or more
_MOST_PARTS = 64
_ACCEPTED = 0.8
_ROUNDS, _STEPS = 6, 20  # of the search for the population
_SHARES = 1.0, *[0.5] * 8  # of rounds: alone, narrow and wide sites alternate at a wall
_PILOTS = 20, 40, 120  # sweeps
_FEW = 2.0  # draws a coordinate that count as much as the approximate covariance
_FIRST_SD = 0.5
_TINY = 1e-300
_NOBODY = -1e5  # utility of what nobody can take: its exponential is the least number
_MOST = 2000  # people of short chains


@dataclass(frozen=True, slots=True, eq=False)
class PilotTuning:
    """What short chains learned of the posterior.

    Attributes
    ----------
    base, metric : array
        The population near which people's sites are found, in coordinates of scaled attributes, and
        a root of its approximate covariance.
    parts : int
        Steps of a path of the population.
    """

    base: FloatArray
    metric: FloatArray
    parts: int = PARTS


class Frame(NamedTuple):
    """Coordinates of the population, (mean, b, root) of attributes in units of `data.scale`.

    The root of the covariance is its diagonal, whose entries may have either sign, and its other
    entries divided by that of their row.
    """

    factor: FloatArray  # of tastes
    shift: FloatArray
    of_fixed: FloatArray
    diagonal: bool
    where: tuple[IntArray, ...]  # entries of the root that move
    order: IntArray  # people by their number of occasions, as kernels have them
    num_groups: int  # of `LANES` people, the last filled up with nobody

    @staticmethod
    @once_a_data_set
    def of(data: ChoiceRows) -> "Frame":
        """The frame of a data set."""
        d, scale, signed = len(data.random), data.scale[data.random], data.signs != 0.0
        order = np.argsort(np.diff(data.people), kind="stable")
        return Frame(
            np.where(signed, 1.0, scale), np.where(signed, np.log(scale), 0.0),
            data.scale[data.fixed], data.diagonal,
            np.nonzero(np.eye(d) if data.diagonal else np.tri(d)), order, -(-len(order) // LANES),
        )  # fmt: skip

    def empty(self, *shape: int) -> FloatArray:
        """An array for all lanes, ``(*shape, num_lanes)``."""
        return np.empty((*shape, LANES * self.num_groups))

    def over(self, kernel: Any, *arguments: Any) -> None:
        """Run a kernel for all people."""
        over_rows(kernel, self.num_groups, *arguments, grain=1)

    def inside(self, mean: FloatArray, cov: FloatArray, coefficients: FloatArray) -> Population:
        """The population of a state, of scaled attributes."""
        root = np.linalg.cholesky(self.factor[:, None] * cov * self.factor)
        return Population(self.factor * mean + self.shift, self.of_fixed * coefficients, root)

    def tastes_inside(self, state: "MixedLogitState") -> FloatArray:
        """People's tastes in a state, of scaled attributes, ``(num_attributes, num_lanes)``."""
        out, num = self.empty(len(self.factor)), len(self.order)
        out[:, :num] = (self.factor * state.tastes + self.shift)[self.order].T
        out[:, num:] = 0.0
        return out

    def shared_outside(self, population: Population) -> dict[str, Any]:
        """Fields of a state, in the units of the attributes."""
        return {
            "mean": (population.mean - self.shift) / self.factor,
            "cov": population.root @ population.root.T / self.factor[:, None] / self.factor,
            "coefficients": population.b / self.of_fixed,
        }

    def tastes_outside(self, tastes: FloatArray) -> FloatArray:
        """Tastes in the units of the attributes, ``(num_people, num_attributes)``."""
        out = np.empty((len(self.order), len(tastes)))
        out[self.order] = (tastes[:, : len(out)].T - self.shift) / self.factor
        return out

    def pack(self, population: Population) -> FloatArray:
        """Coordinates of a population."""
        scales = population.root.diagonal()
        turned = population.root / scales[:, None]
        np.fill_diagonal(turned, scales)
        return np.concatenate([population.mean, population.b, turned[self.where]])

    def population(self, q: FloatArray) -> Population:
        """The population at coordinates."""
        d, f = len(self.factor), len(self.of_fixed)
        root = np.zeros((d, d))
        root[self.where] = q[d + f :]
        scales = root.diagonal().copy()
        root *= scales[:, None]
        np.fill_diagonal(root, scales)
        return Population(q[:d], q[d : d + f], root)

    def jacobian(self, root: FloatArray) -> FloatArray:
        """Derivatives of the entries of the root in their coordinates."""
        rows, columns = self.where
        scales, unit = root.diagonal(), root[rows, columns] / root.diagonal()[rows]
        out = np.diag(np.where(rows == columns, 1.0, scales[rows]))
        out[np.arange(len(rows)), np.flatnonzero(rows == columns)[rows]] = unit
        return out


@once_a_data_set
def laid_out(data: ChoiceRows) -> Choices:
    """Scaled attributes as kernels read them, people's first.

    Without people's tastes, occasions are dealt to the lanes of one group.
    """
    of_row, sizes = data.occasion_of_row, np.diff(data.occasions)
    rank = np.argsort(Frame.of(data).order)
    lane = rank[np.repeat(np.arange(data.num_people), np.diff(data.people))]
    if not len(data.random):
        lane = np.arange(len(sizes)) % LANES
    by_lane = np.lexsort((-sizes, lane))
    number = np.bincount(lane, minlength=LANES * Frame.of(data).num_groups)
    of_lane = np.empty_like(lane)  # the place of an occasion among those of its lane
    of_lane[by_lane] = np.arange(len(lane)) - np.repeat(np.cumsum(number) - number, number)
    slots = np.append(0, np.cumsum(number.reshape(-1, LANES).max(axis=1)))
    slot = slots[lane // LANES] + of_lane
    height = np.zeros(slots[-1], dtype=np.int64)
    np.maximum.at(height, slot, sizes - 1)
    rows = np.append(0, np.cumsum(height))
    most = np.lexsort((-data.taken, of_row))[data.occasions[:-1]]  # taken most: without a row
    row = np.flatnonzero(np.arange(data.num_rows) != most[of_row])
    occasion = of_row[row]
    place = row - data.occasions[occasion] - (row > most[occasion])
    cell = LANES * (rows[slot[occasion]] + place) + lane[occasion] % LANES
    columns, other = np.concatenate([data.random, data.fixed]), most[occasion]
    x, base = np.zeros((len(columns), LANES * rows[-1])), np.full(LANES * rows[-1], _NOBODY)
    x[:, cell] = ((data.x[row] - data.x[other])[:, columns] / data.scale[columns]).T
    base[cell], taken = data.offset[row] - data.offset[other], np.zeros(len(base))
    taken[cell], counts = data.taken[row], np.zeros(LANES * len(height))
    counts[LANES * slot + lane % LANES] = data.totals
    return Choices(x, base, np.append(data.signs, 0.0 * data.fixed), taken, counts, rows, slots)


@once_a_data_set
def sites_of(data: ChoiceRows, base: FloatArray) -> PersonSites:
    """People's sites, near a population."""
    (J, h), d = _quadratic(data, base), len(data.random)
    parts = J[:, :d, :d], h[:, :d], J[:, :d, d:]
    return PersonSites(*(np.ascontiguousarray(np.moveaxis(array, 0, -1)) for array in parts))


@once_a_data_set
def _quadratic(data: ChoiceRows, base: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Precision and linear term of people's likelihoods, by cubature of degree three."""
    choices, frame = laid_out(data), Frame.of(data)
    mean, b, root = frame.population(base)
    d, size, precision = len(mean), len(mean) + len(b), np.linalg.inv(root @ root.T)
    at, slopes, K = frame.empty(size), frame.empty(size), frame.empty(size, size)
    at[:] = np.append(mean, b)[:, None]
    h, J = np.zeros_like(at.T), np.zeros((at.shape[1], size, size))
    points = math.sqrt(d) * np.vstack([np.eye(d), -np.eye(d)]) if d else np.empty((1, 0))
    for share in _SHARES:
        inverse = np.linalg.inv(np.linalg.cholesky(precision + J[:, :d, :d]))
        pull = h[:, :d] - J[:, :d, d:] @ b + precision @ mean
        centre = np.einsum("nji,njk,nk->in", inverse, inverse, pull)
        J, h = (1.0 - share) * J, (1.0 - share) * h
        for point in points:
            at[:d] = centre + (point @ inverse).T
            frame.over(slopes_rows, choices, at, frame.empty(), slopes, K)
            at[:d] = centre
            J += share / len(points) * np.moveaxis(K, -1, 0)
            h += share / len(points) * (slopes + np.einsum("ijn,jn->in", K, at)).T
    return J, h


@once_a_data_set
def piloted(data: ChoiceRows, model: "MixedLogit") -> PilotTuning:
    """The base that a chain starts with, and the metric and parts of its paths of the population.

    Modes make the spread of tastes too small; short chains, whose noise is the same for all data,
    do not. Their draws also correct the approximate covariance, which is too narrow where tastes
    are far from what choices alone say.
    """
    times = max(1, data.num_people // _MOST)
    sample, rng, parts = data.rows(slice(None, None, times)), np.random.default_rng(0), PARTS
    with one_blas_thread():
        frame, base = Frame.of(data), _climbed(sample, model)
        stretch: FloatArray = np.eye(len(base))  # of the approximate root, to the spread of draws
        for length in _PILOTS if len(data.random) else ():
            metric, draws, accepted = metric_of(sample, model, base), [], 0.5
            state = model.near(rng, sample, PilotTuning(base, metric @ stretch, parts))
            for t in range(length):
                old, state = state, model.step(rng, state, sample)
                accepted += float((state.mean != old.mean).any())
                if 2 * t >= length:
                    draws.append((state.mean, state.cov, state.coefficients))
            q = np.array([frame.pack(frame.inside(*draw)) for draw in draws])
            z, prior = np.linalg.solve(metric, (q - q.mean(axis=0)).T), _FEW * len(base)
            cov = (z @ z.T + prior * np.eye(len(base))) / (len(draws) + prior)
            stretch = np.asarray(np.linalg.cholesky(cov))
            means = [np.mean(of_draws, axis=0) for of_draws in zip(*draws, strict=True)]
            base = frame.pack(frame.inside(*means))
            parts = enough(parts, accepted / (length + 1.0))
        return PilotTuning(base, metric_of(sample, model, base, times) @ stretch, parts)


def enough(parts: int, accepted: float) -> int:
    """The number of parts with which four fifths of paths are accepted, given a share of others."""
    ratio = ndtri(0.5 * accepted) / ndtri(0.5 * _ACCEPTED)
    return int(np.clip(round(parts * math.sqrt(ratio)), PARTS, _MOST_PARTS))


def _climbed(data: ChoiceRows, model: "MixedLogit") -> FloatArray:
    """Coordinates of the population near the mode of Laplace's approximation."""
    frame, rng = Frame.of(data), np.random.default_rng(0)
    white = np.zeros_like(frame.empty(len(data.random)))
    d, f = len(data.random), len(data.fixed)
    base = frame.pack(Population(np.zeros(d), np.zeros(f), _FIRST_SD * np.eye(d)))
    for _ in range(_ROUNDS):
        state = model.near(rng, data, PilotTuning(base, np.zeros((len(base),) * 2)))

        def loss(q: FloatArray, state: "MixedLogitState" = state) -> tuple[float, FloatArray]:
            population = frame.population(q)
            sums = model.carried(None, state, white, data, *population)[2]
            value, slope = model.log_density(frame, population, sums)
            return -value, -slope

        base = minimize(loss, base, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x
    return base


def metric_of(
    data: ChoiceRows, model: "MixedLogit", base: FloatArray, times: int = 1
) -> FloatArray:
    """Approximate the upper root of the covariance of the population's coordinates.

    With tastes integrated out, given people's curvatures K near the base, the information of mean
    and b is the sum of W, which is K less its columns of tastes times root A^-1 root' times its
    rows of tastes, with A = 1 + root' J root; that of two entries (a, b) and (c, e) of the root the
    sum of (root' W)_bc (root' W)_ea + (root' W root)_be W_ac: that of a Gaussian's covariance,
    expected. Each person stands for so many `times`. A standard deviation s near 0 has information
    s^2 times the sum of squared curvatures, 2 of these halves: it is taken where it is about the
    posterior's.
    """
    frame, d, D = Frame.of(data), len(data.random), len(data.names)
    rows, columns = frame.where
    K = _quadratic(data, base)[0]
    squares = times * np.einsum("nkk,nkk->k", K, K)[:d]
    sds = np.flatnonzero(rows == columns)
    least, base = (2.0 / np.maximum(squares, _TINY)) ** 0.25, base.copy()
    base[D + sds] = np.maximum(np.abs(base[D + sds]), np.minimum(least, model.sd_scale))
    root = frame.population(base).root
    by_root = K[:, :, :d] @ root
    A = np.eye(d) + root.T @ by_root[:, :d]
    W = K - by_root @ np.linalg.inv(A) @ np.swapaxes(by_root, 1, 2)
    size = D + len(rows)
    out = np.zeros((size, size))
    out[:D, :D] = W.sum(axis=0)
    W = W[:, :d, :d]
    once = root.T @ W
    crossed = once[:, columns[:, None], rows]  # (root' W)_bc
    of_root = np.einsum("nij,nji->ij", crossed, crossed)
    twice = (once @ root)[:, columns[:, None], columns]
    of_root += np.einsum("nij,nij->ij", twice, W[:, rows[:, None], rows])
    T = frame.jacobian(root)
    out[D:, D:] = T.T @ of_root @ T
    prior = np.full(size, model.mean_scale**-2)
    prior[D:] = np.where(rows == columns, model.sd_scale**-2, 1.0)
    return np.asarray(np.linalg.inv(np.linalg.cholesky(times * out + np.diag(prior))).T)
