"""Where chains of choices start, and the Gaussian sites of people around which they move.

Sites are the likelihood's slope and curvature at people's modes given a population, the *base*, so
that each follows from the base and the person's own choices. The base is the mean over short chains
of at most some thousand people, which start at the modes that a few rounds of Laplace's EM find.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pgmult.choice.compiled.people import (
    LANES,
    Choices,
    Population,
    Sites,
    climb_rows,
    curvatures_rows,
    slopes_rows,
)
from pgmult.choice.data import ChoiceRows
from pgmult.compiled.rows import over_rows
from pgmult.core.blas import one_blas_thread
from pgmult.core.memory import once_a_data_set
from pgmult.core.typing import FloatArray, IntArray

GRAIN = LANES  # people
_ROUNDS = 15  # of the search for the population
_STEPS = 25  # of all coefficients, at most
_CLIMBS = 8  # steps to modes
_ROUNDS_OF_SITES = 6
_KEPT = 0.5  # of the last round: without, narrow and wide sites alternate at a wall
_HALVES = 10
_PILOTS = (20, 0.5), (20, 0.5), (40, 1.0)  # sweeps, and of which part of the metric
_FIRST_SD = 0.5
_NEAR = 1e-7  # a mode
_MOST = 2000  # people of short chains
_TINY = 1e-300


class Frame(NamedTuple):
    """Coordinates of the population, (mean, b, root) of attributes in units of `data.scale`.

    The root of the covariance is its diagonal, whose entries may have either sign, and its other
    entries divided by that of their row.
    """

    factor: FloatArray  # of tastes
    shift: FloatArray
    of_fixed: FloatArray
    diagonal: bool
    where: tuple[IntArray, IntArray]  # entries of the root that move

    @classmethod
    def of(cls, data: ChoiceRows) -> "Frame":
        """Of some data, or of any part of them."""
        d, scale, known = len(data.random), data.scale[data.random], data.signs != 0.0
        return cls(
            np.where(known, 1.0, scale), np.where(known, np.log(scale), 0.0),
            data.scale[data.fixed], data.diagonal,
            (np.arange(d), np.arange(d)) if data.diagonal else np.tril_indices(d),
        )  # fmt: skip

    def inside(self, state: Any) -> Population:
        """The population of a state, of scaled attributes."""
        cov = self.factor[:, None] * state.cov * self.factor
        mean = self.factor * state.mean + self.shift
        return Population(mean, self.of_fixed * state.coefficients, self.root(cov))

    def tastes_inside(self, state: Any) -> FloatArray:
        """People's tastes in a state, of scaled attributes, ``(num_attributes, num_people)``."""
        return np.ascontiguousarray((self.factor * state.tastes + self.shift).T)

    def shared_outside(self, law: Population) -> dict[str, FloatArray]:
        """Fields of a state, in the units of the attributes."""
        return {
            "mean": (law.mean - self.shift) / self.factor,
            "cov": law.root @ law.root.T / self.factor[:, None] / self.factor,
            "coefficients": law.b / self.of_fixed,
        }

    def tastes_outside(self, tastes: FloatArray) -> FloatArray:
        """What a state has for such tastes."""
        return (tastes.T - self.shift) / self.factor

    @staticmethod
    def root(cov: FloatArray) -> FloatArray:
        """The lower triangular root of a covariance."""
        return np.asarray(np.linalg.cholesky(cov), dtype=np.float64) if len(cov) else cov

    def pack(self, law: Population) -> FloatArray:
        """Coordinates of a population."""
        own = np.diagonal(law.root)
        turned = law.root / own[:, None]
        np.fill_diagonal(turned, own)
        return np.concatenate([law.mean, law.b, turned[self.where]])

    def law(self, q: FloatArray) -> Population:
        """The population at coordinates."""
        d, f = len(self.factor), len(self.of_fixed)
        root = np.zeros((d, d))
        root[self.where] = q[d + f :]
        own = np.diagonal(root).copy()
        root *= own[:, None]
        np.fill_diagonal(root, own)
        return Population(q[:d], q[d : d + f], root)

    def jacobian(self, root: FloatArray) -> FloatArray:
        """Of the entries of the root in their coordinates."""
        rows, columns = self.where
        own, unit = np.diagonal(root), root[rows, columns] / np.diagonal(root)[rows]
        out = np.diag(np.where(rows == columns, 1.0, own[rows]))
        out[np.arange(len(rows)), np.flatnonzero(rows == columns)[rows]] = unit
        return out


@once_a_data_set
def laid_out(data: ChoiceRows) -> Choices:
    """Scaled attributes as kernels read them, people's first."""
    of_row, sizes = data.occasion_of_row, np.diff(data.occasions)
    most = np.lexsort((-data.taken, of_row))[data.occasions[:-1]]  # taken most: without a row
    person = np.repeat(np.arange(data.num_people), np.diff(data.people))
    order = np.lexsort((sizes, person))
    alike = (np.diff(person[order]) == 0) & (np.diff(sizes[order]) == 0)
    occasions = np.flatnonzero(np.concatenate([[True], ~alike, [True]]))
    starts, place = occasions[:-1], np.argsort(order)
    row = np.flatnonzero(np.arange(data.num_rows) != most[of_row])
    here = of_row[row]
    slot = row - data.occasions[here] - (row > most[here])
    block = np.searchsorted(starts, place[here], side="right")
    row = row[np.lexsort((place[here], slot, block))]
    columns = np.concatenate([data.random, data.fixed])
    x = data.x[:, columns] / data.scale[columns]
    offset = np.zeros(data.num_rows) if data.design.offset is None else data.design.offset
    other = most[of_row[row]]
    return Choices(
        np.ascontiguousarray((x[row] - x[other]).T), offset[row] - offset[other],
        np.append(data.signs, 0.0 * data.fixed), data.taken[row],
        np.add.reduceat(data.taken, data.occasions[:-1])[order],
        np.append(0, np.cumsum(np.diff(occasions) * (sizes[order[starts]] - 1))), occasions,
        np.searchsorted(person[order[starts]], np.arange(data.num_people + 1)),
    )  # fmt: skip


@once_a_data_set
def sites_of(data: ChoiceRows, base: FloatArray) -> Sites:
    """People's sites, near a population."""
    choices, law = laid_out(data), Frame.of(data).law(base)
    num, d = data.num_people, len(law.mean)
    tastes = np.tile(law.mean, (num, 1))
    if d:
        normal = law.mean, np.linalg.inv(law.root @ law.root.T)
        over_rows(
            climb_rows, num, choices.given(law.b), normal, _CLIMBS, tastes, grain=GRAIN
        )  # fmt: skip
    at, slopes, J = _curvatures(choices, law.b, tastes)
    h = slopes + np.einsum("nij,nj->ni", J, at)
    for _ in range(_ROUNDS_OF_SITES if d else 0):
        inverse = np.linalg.inv(np.linalg.cholesky(normal[1] + J[:, :d, :d]))
        pull = h[:, :d] - J[:, :d, d:] @ law.b + normal[1] @ law.mean
        centre = np.einsum("nji,njk,nk->ni", inverse, inverse, pull)
        J, h = _KEPT * J, _KEPT * h
        for k in range(2 * d):  # of degree three
            away = (-1) ** k * np.sqrt(d) * inverse[:, k // 2]
            at, slopes, one = _curvatures(choices, law.b, centre + away)
            at[:, :d] = centre
            share = (1.0 - _KEPT) / (2 * d)
            J += share * one
            h += share * (slopes + np.einsum("nij,nj->ni", one, at))
    parts = J[:, :d, :d], h[:, :d], J[:, :d, d:]
    return Sites(*(np.ascontiguousarray(np.moveaxis(part, 0, -1)) for part in parts))


def _curvatures(
    choices: Choices, b: FloatArray, tastes: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Tastes and b of each person, slopes of their log likelihoods in them, and curvatures."""
    at = np.hstack([tastes, np.tile(b, (len(tastes), 1))])
    slopes, J = np.empty_like(at), np.empty((*at.shape, at.shape[1]))
    over_rows(curvatures_rows, len(at), choices, at, slopes, J, grain=GRAIN)
    return at, slopes, J


@once_a_data_set
def piloted(data: ChoiceRows, model: Any) -> tuple[FloatArray, FloatArray]:
    """The base that a chain starts with, and the metric of its paths of the population.

    Modes make the spread of tastes too small; short chains, whose noise is the same for all data,
    do not.
    """
    times = max(1, data.num_people // _MOST)
    some = data.rows(slice(None, None, times))
    with one_blas_thread():
        base, tastes = _climbed(some, model)
        frame, rng = Frame.of(data), np.random.default_rng(0)
        law = frame.law(base)
        for length, size in _PILOTS if len(data.random) else ():
            metric = size * metric_of(some, model, base, tastes)
            state = model.state(law, tastes, frame, base, metric)
            sums = {name: np.zeros_like(each) for name, each in frame.shared_outside(law).items()}
            for t in range(length):
                state = model.step(rng, state, some)
                for name, total in sums.items():
                    total += (2 * t >= length) * getattr(state, name) / (length - length // 2)
            law, tastes = frame.inside(state), frame.tastes_inside(state).T
            base = frame.pack(frame.inside(replace(state, **sums)))
        return base, metric_of(some, model, base, tastes, times)


def _climbed(data: ChoiceRows, model: Any) -> tuple[FloatArray, FloatArray]:
    """Coordinates of the population where the density by Laplace is largest, about, and modes.

    Steps are those of Fisher's scoring, halved while they do not climb.
    """
    frame, num, d = Frame.of(data), data.num_people, len(data.random)
    both = np.zeros((num, len(data.names)))
    _climb_alike(laid_out(data), both, model.mean_scale)
    law = Population(both[0, :d], both[0, d:], _FIRST_SD * np.eye(d))
    base, white = frame.pack(law), np.zeros((d, num))
    tastes = both[:, :d]
    for _ in range(_ROUNDS if d else 0):
        metric = metric_of(data, model, base, tastes)
        state = model.state(law, tastes, frame, base, metric)
        density = partial(_density, model, frame, state, white, data)
        here, slope = density(base)
        step = metric @ (slope @ metric)
        for _ in range(_HALVES):
            if density(base + step)[0] >= here:
                break
            step *= 0.5
        base = base + step
        law = frame.law(base)
        tastes = frame.tastes_inside(model.placed(None, state, white, data, base)[0]).T
    return base, tastes


def _density(
    model: Any, frame: Frame, state: Any, white: FloatArray, data: ChoiceRows, q: FloatArray
) -> tuple[float, FloatArray]:
    """Of the population with white noise held fixed, and its slope."""
    found: tuple[float, FloatArray] = model.log_density(
        frame, q, model.carried(None, state, white, data, q)[2]
    )
    return found


def _climb_alike(choices: Choices, both: FloatArray, mean_scale: float) -> None:
    """Newton steps of coefficients that all people share."""
    num, size = both.shape

    def value(at: FloatArray) -> float:
        values, slopes = np.empty(num), np.empty_like(at)
        over_rows(slopes_rows, num, choices, at, values, slopes, grain=GRAIN)
        return float(values.sum() - 0.5 * np.sum((at[0] / mean_scale) ** 2))

    for _ in range(_STEPS):
        _, slopes, J = _curvatures(choices, np.empty(0), both)
        slope = slopes.sum(axis=0) - both[0] / mean_scale**2
        step = np.linalg.solve(J.sum(axis=0) + np.eye(size) / mean_scale**2, slope)
        here = value(both)
        while np.abs(step).max() > _NEAR:
            if value(both + step) >= here:
                both += step
                break
            step *= 0.5
        else:
            return


def metric_of(
    data: ChoiceRows, model: Any, base: FloatArray, tastes: FloatArray, times: int = 1
) -> FloatArray:
    """The upper root of the covariance of the population's coordinates, about.

    With tastes integrated out, given people's curvatures K at `tastes`, the information of mean and
    b is the sum of W, which is K less its columns of tastes times root A^-1 root' times its rows of
    tastes, with A = 1 + root' J root; that of two entries (a, b) and (c, e) of the root the sum of
    (root' W)_bc (root' W)_ea + (root' W root)_be W_ac: that of a Gaussian's covariance, expected.
    Each person stands for so many `times`. A standard deviation s near 0 has information s^2 times
    the sum of squared curvatures, 2 of these halves: it is taken where it is about the posterior's.
    """
    frame, d, D = Frame.of(data), len(data.random), len(data.names)
    rows, columns = frame.where
    law = frame.law(base)
    K = _curvatures(laid_out(data), law.b, tastes)[2]
    squares = times * np.einsum("nkk,nkk->k", K, K)[:d]
    sds = np.flatnonzero(rows == columns)
    least, base = (2.0 / np.maximum(squares, _TINY)) ** 0.25, base.copy()
    base[D + sds] = np.maximum(np.abs(base[D + sds]), np.minimum(least, model.sd_scale))
    root = frame.law(base).root
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
