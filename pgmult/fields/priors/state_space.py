"""Gaussian fields of one input, Markov in it: exact, at a cost linear in the inputs.

The covariance is a sum of terms, each a variance times `Matern` with nu = 1/2, 3/2 or 5/2, `White`,
or nothing (constant). Such a field has a state of one to three numbers a term, and a Kalman filter
does what a dense Gaussian process does (Hartikainen and Särkkä 2010), up to rounding. Steps may be
of any size; inputs that are the same have the same value.

>>> import numpy as np
>>> from pgmult.core.potentials import DiagonalPotential
>>> from pgmult.fields.covariances import Matern, White
>>> field = StateSpaceProcess(2.0 * Matern(1.5) + White(0.1), [0.0, 0.5, 0.7])
>>> seen = DiagonalPotential(J=np.array([[1.0], [0.0], [2.0]]), h=np.array([[1.0], [0.0], [1.0]]))
>>> field.condition(seen, Trend.known(np.zeros((3, 1)))).mean.round(3).T
array([[0.693, 0.552, 0.482]])
>>> later = field.draw(np.random.default_rng(0), seen, np.array([[1.0]]), mean=np.zeros((4, 1)))
>>> float(later.mean[0, 0].round(3)), float(later.var[0, 0].round(3))
(0.363, 0.842)
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import gammainc

from pgmult.compiled.rows import over_rows
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.fields.compiled import state_space
from pgmult.fields.compiled.state_space import StateSpaceChain
from pgmult.fields.covariances import Constant, Covariance, Matern, Product, Sum, White
from pgmult.fields.covariances.base import CovarianceFamily, columns_of
from pgmult.fields.priors.field import Field, FieldGaussian, Trend

_ROUNDING = 1e-13  # of the prior variance: innovations below are rounding


class _Term(NamedTuple):
    """A variance and what it stands in front of."""

    var: float
    time: Matern | White | None

    @property
    def size(self) -> int:
        return round(self.time.nu + 0.5) if isinstance(self.time, Matern) else 1

    def dynamics(self, steps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Transition and innovation covariance, each ``(num_steps, size, size)``.

        An infinite step starts the chain. The states are a cascade, x_p driven by noise and x_i by
        x_{i+1}, each decaying at the rate sqrt(2 nu) / length_scale; the field is x_1. So the
        transition is triangular, and the innovation covariances are incomplete gamma functions,
        which are accurate however small the step is.
        """
        p = self.size
        first = np.isinf(steps)
        if not isinstance(self.time, Matern):
            forgets = first if self.time is None else steps > 0.0
            innovation = np.where(forgets, 1.0, 0.0)[:, None, None]
            return 1.0 - innovation, self.var * innovation
        x = steps * (math.sqrt(2.0 * self.time.nu) / self.time.length_scale)
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
        return transition, self.var * innovation


class _Series(NamedTuple):
    """The inputs in the order of time, and the dynamics there."""

    order: IntArray
    chain: StateSpaceChain

    def by_step(self, values: FloatArray) -> FloatArray:
        """Values of inputs ``(n, num_columns)`` as ``(num_columns, n)``, in the order of time."""
        return np.ascontiguousarray(values[self.order].T)

    def at_inputs(self, values: FloatArray) -> FloatArray:
        """The inverse of `by_step`."""
        out = np.empty(values.shape[::-1])
        out[self.order] = values.T
        return out

    def with_trend(self, trend: Trend) -> StateSpaceChain:
        """Coefficients are numbers of the state that stay what they are."""
        (A, Q, H), more = self.chain, trend.features.shape[1]
        size = H.shape[1]
        wide_A, wide_Q = wide = np.zeros((2, len(H), size + more, size + more))
        wide[:, :, :size, :size] = A, Q
        places = np.arange(size, size + more)
        wide_A[1:, places, places], wide_Q[0, places, places] = 1.0, trend.var
        wide_H = np.concatenate([H, trend.features[self.order]], axis=1)
        return StateSpaceChain(wide_A, wide_Q, wide_H)


@dataclass(frozen=True, slots=True, eq=False)
class StateSpaceProcess(Field):
    """Independent columns of a Gaussian field, Markov in one input.

    Attributes
    ----------
    covariance : Covariance
        See the module.
    inputs : array
        As in every `pgmult.fields.priors.field.Field`.

    Raises
    ------
    ValueError
        If the covariance is not Markov in one column of the inputs.
    """

    def _complete(self) -> None:
        _terms(self.covariance, self.inputs.shape[1])  # refuses what does not fit

    def condition(self, potential: DiagonalPotential, trend: Trend) -> "StateSpaceGaussian":
        """The posterior of the columns, around a trend, and of its coefficients."""
        return StateSpaceGaussian(self, potential, trend)

    def whiten(self, rng: Generator, values: FloatArray) -> FloatArray:
        """The noise behind the values: the innovations of a filter."""
        return self._carried(True, rng.standard_normal(values.shape), values)

    def colour(self, noise: FloatArray) -> FloatArray:
        """The values made of standard normal noise, ``(n, num_columns)``."""
        return self._carried(False, noise, np.zeros_like(noise))

    def _carried(self, whiten: bool, noise: FloatArray, values: FloatArray) -> FloatArray:
        series = _series(*self._key)
        made_by = series.chain, *_innovations(*self._key)
        both = series.by_step(noise), series.by_step(values)
        over_rows(state_space.carry_columns, len(both[0]), whiten, *made_by, *both, grain=1)
        return series.at_inputs(both[0] if whiten else both[1])


class StateSpaceGaussian(FieldGaussian):
    """`FieldGaussian` by a filter whose state includes the coefficients."""

    def solve(self, g: FloatArray) -> FloatArray:
        """The posterior covariance times g."""
        return self._smoothed(g[: len(self.J)])[1]

    @property
    def log_normalizers(self) -> FloatArray:
        """Log of the integral of the prior times the potential, ``(num_columns,)``."""
        level = self._centre
        return np.asarray(np.sum(level * (self.h - 0.5 * self.J * level), axis=0) + self._found[0])

    @cached_property
    def mean(self) -> FloatArray:
        """Means of w."""
        return np.concatenate([self._centre, self.trend.centre]) + self._found[1]

    @property
    def variances(self) -> FloatArray:
        """Variances of the columns, ``(n, num_columns)``."""
        return self._found[2]

    @cached_property
    def _found(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self._smoothed(self.h - self.J * self._centre)

    @cached_property
    def _chain(self) -> StateSpaceChain:
        return _series(*self.field._key).with_trend(self.trend)

    def _smoothed(self, h: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log normalizers, means of w and variances, all of them of columns around 0."""
        series, chain = _series(*self.field._key), self._chain
        J, tilts = series.by_step(self.J), series.by_step(h)
        means, variances = np.empty((2, *J.shape))
        log_z, lasts = np.empty(len(J)), np.empty((len(J), chain.H.shape[1]))
        out = log_z, means, variances, lasts
        over_rows(state_space.smooth_columns, len(J), J, tilts, chain, out, grain=1)
        coefficients = lasts[:, lasts.shape[1] - len(self.trend.centre) :].T
        w = np.concatenate([series.at_inputs(means), coefficients])
        return log_z, w, series.at_inputs(variances)


@lru_cache(maxsize=16)  # at one value of hyperparameters a sweep asks several times
def _series(covariance: Covariance, inputs: bytes, shape: tuple[int, int]) -> _Series:
    column, terms = _terms(covariance, shape[1])
    times = np.frombuffer(inputs).reshape(shape)[:, column]
    order = np.argsort(times, kind="stable")
    steps, step_of = np.unique(np.diff(times[order], prepend=-np.inf), return_inverse=True)
    starts = np.cumsum([0, *(term.size for term in terms)])
    A, Q = np.zeros((2, len(steps), starts[-1], starts[-1]))
    for i, term in enumerate(terms):
        block = slice(starts[i], starts[i + 1])
        A[:, block, block], Q[:, block, block] = term.dynamics(steps)
    H = np.zeros((len(times), starts[-1]))
    H[:, starts[:-1]] = 1.0
    return _Series(order, StateSpaceChain(A[step_of], Q[step_of], H))


@lru_cache(maxsize=16)
def _innovations(
    covariance: Covariance, inputs: bytes, shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray]:
    roots, gains = state_space.innovations(_series(covariance, inputs, shape).chain, _ROUNDING)
    return roots, gains


@lru_cache(maxsize=64)
def _terms(covariance: Covariance, num_columns: int) -> tuple[int, list[_Term]]:
    """The column of time and the terms."""
    columns = columns_of(covariance, num_columns)
    if len(columns) != 1:
        got = ", ".join(map(str, sorted(columns))) or "none"
        raise ValueError(f"the covariance must look at one column of the inputs, got columns {got}")
    return min(columns), [_as_term(factors) for factors in _products(covariance)]


def _products(covariance: Covariance) -> list[tuple[CovarianceFamily, ...]]:
    """The covariance as a sum of products of families, multiplied out."""
    if isinstance(covariance, Sum):
        return [factors for term in covariance.parts for factors in _products(term)]
    if isinstance(covariance, Product):
        return [sum(factors, ()) for factors in product(*map(_products, covariance.parts))]
    return [tuple(covariance.leaves())]


def _as_term(factors: tuple[CovarianceFamily, ...]) -> _Term:
    """A product of families."""
    moving = [factor for factor in factors if not isinstance(factor, Constant)]
    markov = [factor for factor in moving if isinstance(factor, Matern | White)]
    if len(moving) > 1 or moving != markov:
        names = " times ".join(type(factor).__name__ for factor in moving)
        raise ValueError(f"the covariance must be Matern and White of one input, got {names}")
    var = float(np.prod([f.var for f in factors if isinstance(f, Constant | White)]))
    return _Term(var, markov[0] if markov else None)
