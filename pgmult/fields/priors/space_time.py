"""Gaussian fields over places that are Markov in time: exact, at a cost linear in the times.

The covariance is a product, or a sum of products, of

* a time factor: `Matern` with nu = 1/2, 3/2 or 5/2, `White` (independent at every time), or nothing
  (constant over time);
* any covariance of the other columns of the inputs, the *places*.

Such a field has a state of one to three numbers per place and term, and a Kalman filter does what a
dense Gaussian process does at the cost of one place-sized elimination a time. The answers are those
of the dense process, up to rounding. Times may be irregular, places missing at some times,
several inputs at one time and place, and new inputs at new times and places.

>>> import numpy as np
>>> from pgmult.core.potentials import DiagonalPotential
>>> from pgmult.fields.covariances import Matern, SquaredExponential
>>> covariance = 2.0 * Matern(1.5, active=[0]) * SquaredExponential(active=[1])
>>> inputs = np.array([[0.0, 0.0], [0.0, 1.0], [0.5, 1.0]])
>>> field = SpaceTimeProcess(covariance, inputs).condition(
...     DiagonalPotential(J=np.array([[1.0], [0.0], [2.0]]), h=np.array([[1.0], [0.0], [1.0]]))
... )
>>> field.mean().round(3).T
array([[0.693, 0.503, 0.458]])
>>> mean, var = field.predict([[1.0, 0.0]])
>>> float(mean[0, 0].round(3)), float(var[0, 0].round(3))
(0.376, 1.499)
"""

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, NamedTuple

import numpy as np
from scipy.special import gammainc

from pgmult.compiled.rows import over_rows
from pgmult.core.parameters import whole
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_generator, as_positive_int, new_key
from pgmult.fields.compiled import space_time as compiled
from pgmult.fields.compiled.elimination import semidefinite_root
from pgmult.fields.compiled.innovations import carry_columns, innovations
from pgmult.fields.compiled.space_time import Chain
from pgmult.fields.covariances import Covariance, Matern, White
from pgmult.fields.covariances.base import columns_of, product_terms
from pgmult.fields.inputs import find_rows
from pgmult.fields.priors.field import Asked, Solved, StructuredField, check_columns

_DIRECTIONS = 128  # variances worked out in one pass of the filter
_TINY = 1e-15  # of the largest variance of places: what is below is rounding
_ROUNDING = 1e-13  # of the prior variance: innovations below are rounding


class _Term(NamedTuple):
    """A time factor and what remains of a product."""

    time: Matern | White | None
    places: tuple[Covariance, ...]

    @property
    def num_blocks(self) -> int:
        return round(self.time.nu + 0.5) if isinstance(self.time, Matern) else 1

    def cov(self, places: FloatArray) -> FloatArray:
        """Covariance of the places, the variance of the time factor included."""
        cov = np.ones((len(places), len(places)))
        for factor in self.places:
            cov = cov * factor.cov(places)
        return cov * self.time.var if isinstance(self.time, White) else cov

    def dynamics(self, steps: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Transition, innovation covariance and its root, each ``(num_steps, p, p)``.

        An infinite step starts the chain. The states are a cascade, x_p driven by noise and x_i by
        x_{i+1}, each decaying at the rate sqrt(2 nu) / length_scale; the field is x_1. So the
        transition is triangular, and the innovation covariances are incomplete gamma functions,
        which are accurate however small the step is.
        """
        p = self.num_blocks
        first = np.isinf(steps)
        if not isinstance(self.time, Matern):
            forgets = first if self.time is None else np.ones(len(steps), dtype=np.bool_)
            innovation = np.where(forgets, 1.0, 0.0)[:, None, None]
            return 1.0 - innovation, innovation, innovation
        (scale,) = np.atleast_1d(self.time.length_scale)
        x = np.where(first, np.inf, steps) * (math.sqrt(2.0 * self.time.nu) / scale)
        decay = np.exp(-x)
        transition, innovation = np.zeros((len(x), p, p)), np.empty((len(x), p, p))
        for i in range(p):
            for j in range(i, p):
                power = np.where(first, 0.0, x) ** (j - i)
                transition[:, i, j] = decay * power / math.factorial(j - i)
            for j in range(p):
                a, b = p - 1 - i, p - 1 - j
                stationary = math.comb(a + b, a) / 2.0 ** (a + b + 1)
                innovation[:, i, j] = stationary * gammainc(a + b + 1, 2.0 * x)
        innovation *= 2.0 ** (2 * p - 1) / math.comb(2 * p - 2, p - 1)
        scales = np.sqrt(np.einsum("tii->ti", innovation))
        scales[scales == 0.0] = 1.0  # a step too small for any number: nothing happens
        correlation = innovation / (scales[:, :, None] * scales[:, None, :])
        correlation[correlation[:, 0, 0] == 0.0] = np.eye(p)
        root = scales[:, :, None] * np.linalg.cholesky(correlation)
        root[innovation[:, 0, 0] == 0.0] = 0.0
        return transition, innovation, root


class _Cells(NamedTuple):
    """Inputs by time and place."""

    times: FloatArray  # (num_times,), increasing
    places: FloatArray  # (num_places, num_columns), with time 0
    cells: IntArray  # of each input: time * num_places + place


@dataclass(frozen=True, slots=True, eq=False)
class SpaceTimeProcess(StructuredField):
    """Independent columns of a Gaussian field, Markov in time, times their potential.

    Attributes
    ----------
    covariance : Covariance
        See the module: a time factor times anything over the other columns, or a sum of those.
    inputs, prior_mean, potential
        As in every `pgmult.fields.priors.field.Field`.
    time : int, optional
        The column of the inputs that is time; by default the one with the most values among those
        in which the covariance is Markov.

    Raises
    ------
    ValueError
        If the covariance is not Markov in time, or shapes do not agree.
    """

    time: Annotated[int, whole(minimum=0)] | None = None
    _time: int = field(init=False, repr=False)
    _terms: tuple[_Term, ...] = field(init=False, repr=False)
    _known: _Cells = field(init=False, repr=False)

    def _complete(self) -> None:
        inputs = self.inputs
        if self.time is None:
            orders = _columns_by_size(inputs.tobytes(), inputs.shape)
        else:
            orders = (as_positive_int(self.time, "time", 0, inputs.shape[1] - 1),)
        time, terms = _markov_in(self.covariance, orders, inputs.shape[1])
        self._set(_time=time, _terms=terms, _known=_layout(inputs.tobytes(), inputs.shape, time))

    def whiten(self, rng: np.random.Generator, values: FloatArray) -> FloatArray:
        """The noise behind the values, by time and place: the innovations of a filter."""
        noise = as_generator(rng).standard_normal((values.shape[1], *self._shape_of_cells))
        at_cells = np.zeros_like(noise)
        at_cells.reshape(len(noise), -1)[:, self._known.cells] = (values - self._means).T
        self._carry(True, noise, at_cells)
        return np.ascontiguousarray(noise.reshape(len(noise), -1).T)

    def colour(self, noise: FloatArray) -> FloatArray:
        """The values made of standard normal noise, ``(n, num_columns)``."""
        at_cells = np.ascontiguousarray(noise.T).reshape(-1, *self._shape_of_cells)
        values = np.zeros_like(at_cells)
        self._carry(False, at_cells, values)
        return np.asarray(self._means + values.reshape(len(values), -1)[:, self._known.cells].T)

    @property
    def _shape_of_cells(self) -> tuple[int, int]:
        return len(self._known.times), len(self._known.places)

    def _carry(self, whiten: bool, noise: FloatArray, values: FloatArray) -> None:
        inputs = self.inputs
        chain = _known_chain(self._terms, inputs.tobytes(), inputs.shape, self._time)
        seen = _seen(inputs.tobytes(), inputs.shape, self._time)
        parts = innovations(chain, *seen, _ROUNDING)
        over_rows(carry_columns, len(noise), whiten, chain, parts, noise, values, grain=1)

    def _cells(self, new: FloatArray) -> _Cells:
        """Where the inputs stand, and after them the new ones."""
        known, num_places = self._known, len(self._known.places)
        times = np.union1d(known.times, new[:, self._time])
        places, place_of = find_rows(known.places, _without(new, self._time))
        place_of = np.concatenate([known.cells % num_places, place_of])
        at = np.concatenate([known.times[known.cells // num_places], new[:, self._time]])
        return _Cells(times, places, np.searchsorted(times, at) * len(places) + place_of)

    def _chain_of(self, new: FloatArray) -> tuple[_Cells, Chain]:
        """The cells of the inputs and of new ones, and the dynamics there."""
        if len(new):
            cells = self._cells(new)
            return cells, _chain(self._terms, cells, len(self._known.places))
        inputs = self.inputs
        return self._known, _known_chain(self._terms, inputs.tobytes(), inputs.shape, self._time)

    def _draw_prior(self, rng: np.random.Generator, new: FloatArray) -> FloatArray:
        cells, chain = self._chain_of(new)
        draws = np.empty((self.shape[1], len(cells.times), len(cells.places)))
        over_rows(compiled.draw_columns, len(draws), new_key(rng), chain, draws, grain=1)
        return np.ascontiguousarray(draws.reshape(len(draws), -1)[:, cells.cells].T)

    def _solve(self, asked: Asked) -> Solved:
        new, tilts, variances = asked.new, asked.tilts, asked.variances
        cells, chain = self._chain_of(new)
        num_times, num_places, num_known = (
            len(cells.times), len(cells.places), len(self._known.places)
        )  # fmt: skip
        time_of, place_of = np.divmod(cells.cells, num_places)
        where = (time_of * num_known + place_of)[: len(self.inputs)]  # among known places only

        def at_cells(values: FloatArray) -> FloatArray:
            size = num_times * num_known
            sums = [np.bincount(where, column, size) for column in values.T]
            return np.array(sums, dtype=np.float64).reshape(-1, num_times, num_known)

        J = at_cells(self._precisions())
        h = np.stack([at_cells(tilt) for tilt in tilts], axis=1)
        num_columns = len(J)
        log_z, means = np.empty(num_columns), np.empty((*h.shape[:3], num_places))
        new_vars = np.repeat(self.covariance.diagonal(new)[:, None], num_columns, axis=1)
        # beyond the last observation the filter's own variances are the answer; before it, and at
        # other places, what the observations explain is taken from the prior variance
        time_of, place_of = time_of[len(self.inputs) :], place_of[len(self.inputs) :]
        seen = np.flatnonzero(J.any(axis=(0, 2)))
        last = seen[-1] if len(seen) else -1
        is_ahead = (time_of > last) & (place_of < num_known) & variances
        ahead = np.empty((num_columns, num_times if is_ahead.any() else 0, num_known))
        others = np.flatnonzero(~is_ahead if variances else is_ahead)
        for first in range(0, max(len(others), 1), _DIRECTIONS):
            part = others[first : first + _DIRECTIONS]
            directions = np.empty((0, num_times, num_known))
            if len(part):
                at = np.tile(self._known.places, (num_times, 1))
                at[:, self._time] = np.repeat(cells.times, num_known)
                directions = self.covariance.cov(new[part], at).reshape(-1, num_times, num_known)
            explained = np.empty((num_columns, len(directions)))
            answers = compiled.Answers(log_z, means, explained, ahead)
            statuses = over_rows(
                compiled.solve_columns, num_columns, J, h if first == 0 else h[:, :0], chain,
                directions, answers, grain=1,
            )  # fmt: skip
            check_columns(statuses)
            new_vars[part] -= explained.T
        new_vars[is_ahead] = ahead[:, time_of[is_ahead], place_of[is_ahead]].T
        means = means.reshape(num_columns, len(tilts), -1)[..., cells.cells]
        means = np.ascontiguousarray(means.transpose(1, 2, 0))
        return Solved(means, log_z, np.maximum(new_vars, 0.0))


@lru_cache(maxsize=8)  # every value of hyperparameters asks for it
def _layout(inputs: bytes, shape: tuple[int, int], time: int) -> _Cells:
    """Times, places and where the inputs stand."""
    x = np.frombuffer(inputs).reshape(shape)
    times, time_of = np.unique(x[:, time], return_inverse=True)
    places, place_of = find_rows(x[:0], _without(x, time))
    return _Cells(times, places, time_of * len(places) + place_of)


@lru_cache(maxsize=8)
def _seen(inputs: bytes, shape: tuple[int, int], time: int) -> tuple[IntArray, IntArray]:
    """The places of the inputs at each time, first in each row, and how many there are."""
    times, places, cells = _layout(inputs, shape, time)
    present = np.zeros((len(times), len(places)), dtype=np.bool_)
    present.reshape(-1)[cells] = True
    return np.argsort(~present, axis=1, kind="stable"), present.sum(axis=1)


@lru_cache(maxsize=16)  # at one value of hyperparameters a sweep asks several times
def _known_chain(
    terms: tuple[_Term, ...], inputs: bytes, shape: tuple[int, int], time: int
) -> Chain:
    """The dynamics at the times and places of the inputs."""
    cells = _layout(inputs, shape, time)
    return _chain(terms, cells, len(cells.places))


@lru_cache(maxsize=8)
def _steps(times: bytes) -> tuple[FloatArray, IntArray]:
    """Different lengths of the steps between times, and which each step has; infinite before."""
    return np.unique(np.diff(np.frombuffer(times), prepend=-np.inf), return_inverse=True)


def _chain(terms: tuple[_Term, ...], cells: _Cells, observed: int) -> Chain:
    """The dynamics at the times and places of `cells`, whose first `observed` places are known."""
    starts = np.cumsum([0, *(term.num_blocks for term in terms)])
    steps, step_of = _steps(cells.times.tobytes())
    A, Q, root_Q = np.zeros((3, len(steps), starts[-1], starts[-1]))
    covs = np.stack([term.cov(cells.places) for term in terms])
    roots = np.zeros_like(covs)
    ranks = np.empty(len(covs), dtype=np.int64)
    for i, term in enumerate(terms):
        block = slice(starts[i], starts[i + 1])
        A[:, block, block], Q[:, block, block], root_Q[:, block, block] = term.dynamics(steps)
        root = semidefinite_root(covs[i], _TINY)
        ranks[i] = len(root)
        roots[i, : len(root)] = root
    cross = np.ascontiguousarray(covs[:, :observed])
    return Chain(
        A[step_of], Q[step_of], root_Q[step_of], np.ascontiguousarray(cross[:, :, :observed]),
        cross, roots, ranks, starts,
    )  # fmt: skip


@lru_cache(maxsize=8)
def _columns_by_size(inputs: bytes, shape: tuple[int, int]) -> tuple[int, ...]:
    """Columns of the inputs, the one with the most values first."""
    x = np.frombuffer(inputs).reshape(shape)
    return tuple(sorted(range(shape[1]), key=lambda c: -len(np.unique(x[:, c]))))


def _without(inputs: FloatArray, column: int) -> FloatArray:
    """The inputs with a column of zeros instead."""
    rest = inputs.copy()
    rest[:, column] = 0.0
    return rest


@lru_cache(maxsize=64)
def _markov_in(
    covariance: Covariance, columns: tuple[int, ...], num_columns: int
) -> tuple[int, tuple[_Term, ...]]:
    """The column of time and the terms; the first reason where no column will do."""
    refusals = []
    for column in columns:
        try:
            terms = product_terms(covariance, column, num_columns)
            return column, tuple(_as_term(term, column, num_columns) for term in terms)
        except ValueError as refusal:
            refusals.append(str(refusal))
    raise ValueError(
        "the covariance is not Markov in a column of the inputs: "
        + "; ".join(refusals)
        + " (a time factor is Matern(..., active=[time]), White or nothing; try structure='dense')"
    )


def _as_term(factors: tuple[Covariance, ...], time: int, num_columns: int) -> _Term:
    """A product of factors as a time factor and factors of places."""
    places: list[Covariance] = []
    times: list[Matern | White] = []
    for factor in factors:
        columns = columns_of(factor, num_columns)
        if time not in columns:
            places.append(factor)
        elif isinstance(factor, White) and not times:
            times.append(factor)
            if len(columns) > 1:
                places.append(replace(factor, var=1.0, active=sorted(columns - {time})))
        elif isinstance(factor, Matern) and columns == {time} and not times:
            times.append(factor)
        elif times:
            raise ValueError(f"column {time} has two factors in one product")
        else:
            name = type(factor).__name__
            also = ", with others," if len(columns) > 1 else ""
            raise ValueError(f"{name} looks{also} at column {time}")
    return _Term(times[0] if times else None, tuple(places))
