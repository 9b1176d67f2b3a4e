r"""Log-linear regressions of counts, sampled exactly by slices around a Gaussian.

Rows have covariates x_n and counts y_n of events::

    w ~ N(m0, S0),    log mu_n = o_n + x_n' w
    y_n ~ Poisson(mu_n),    or    NegativeBinomial(mean mu_n, variance mu_n + mu_n^2 / size)

Where the size is learned, log size ~ N(log median, sd^2), a slice of its own moves it. The Gaussian
is `pgmult.regression.fit_count_regression`'s; it sees data and prior alone, so slices around it
leave the posterior as it is.

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> x = np.column_stack([np.ones(100), rng.standard_normal(100)])
>>> data = x, rng.poisson(np.exp(1.0 + 0.5 * x[:, 1]))
>>> posterior = pgmult.sample(
...     PoissonRegression(), data, draws=200, tune=20, chains=2, random_seed=0, progressbar=False
... )
>>> posterior["weights"].shape
(2, 200, 1, 2)
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from weakref import ref

import numpy as np
from scipy.special import gammaln

from pgmult.compiled.linalg import invert_lower
from pgmult.core.arguments import as_kind, as_real
from pgmult.core.memory import once_a_data_set
from pgmult.core.typing import BoolArray, FloatArray
from pgmult.core.validate import as_generator, as_positive
from pgmult.priors.gaussian import MvNormal, lower_cholesky
from pgmult.regression.data import EventRows, as_event_rows
from pgmult.regression.fits.counts import fit_count_regression, rough_size
from pgmult.regression.priors import as_weights_prior, weights_prior
from pgmult.sampling.moves import slice_around, slice_sample

__all__ = [
    "NegativeBinomialRegression",
    "NegativeBinomialRegressionState",
    "PoissonRegression",
    "PoissonRegressionState",
]

_SLICES = 2
_LARGEST = 700.0  # log rate
_TOLERANCE = 1e-3  # posterior standard deviations: nearer, all bases are as good


@dataclass(frozen=True, slots=True, eq=False)
class _Around:
    """The Gaussian near the posterior, and the log posterior less its log density."""

    data: Any  # a weak reference
    centre: FloatArray
    root: FloatArray  # lower, of the precision
    size: float
    prior: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, data: EventRows, prior: MvNormal, distribution: str) -> "_Around":
        size = None if distribution == "poisson" else rough_size(data, prior)
        fit = fit_count_regression(
            data, prior, distribution=distribution, size=size, tolerance=_TOLERANCE
        )
        # rounded, so that the last digits, which are BLAS's, say nothing
        precision = np.asarray(np.linalg.inv(fit.cov[0]))
        root = lower_cholesky(precision).astype(np.float32).astype(np.float64)
        centre = fit.mean[0].astype(np.float32).astype(np.float64)
        return cls(ref(data), centre, root, fit.size, (prior.prior_mean, prior.precision()))

    def with_prior(self, variances: FloatArray) -> "_Around":
        """The same potential of the rows under another prior, with independent weights."""
        mean, P0 = self.prior
        P1, here = np.diag(1.0 / variances), self.root @ self.root.T
        target = here - P0 + P1
        pull = here @ self.centre + (P1 - P0) @ mean
        centre = np.asarray(np.linalg.solve(target, pull), dtype=np.float64)
        return replace(self, centre=centre, root=lower_cholesky(target), prior=(mean, P1))

    def at(self, size: float) -> "_Around":
        """The same Gaussian, for the posterior with another size."""
        return replace(self, size=size)

    def mean(self) -> FloatArray:
        return self.centre[None]

    def sample(self, rng: np.random.Generator) -> FloatArray:
        noise = rng.standard_normal((1, len(self.centre)))
        return np.asarray(self.centre + np.einsum("bj,ji->bi", noise, invert_lower(self.root)))

    def inner(self, a: FloatArray, b: FloatArray) -> FloatArray:
        left, right = np.einsum("bi,ij->bj", a, self.root), np.einsum("bi,ij->bj", b, self.root)
        return np.asarray(np.einsum("bj,bj->b", left, right))

    def correction(self, x: FloatArray, active: BoolArray) -> FloatArray:
        """Log posterior less the Gaussian's log density."""
        gap, deviation = x[0] - self.prior[0], x - self.centre
        value = log_likelihood(x, self.data(), self.size)
        value -= 0.5 * float(np.einsum("i,ij,j->", gap, self.prior[1], gap))
        return np.asarray(value + 0.5 * self.inner(deviation, deviation))


def log_rates(weights: FloatArray, data: EventRows) -> FloatArray:
    """Log means of the rows, ``(num_rows,)``; the same bits for any BLAS."""
    return np.asarray(data.known + np.einsum("nd,d->n", data.covariates, weights[0]))


def log_likelihood(weights: FloatArray, data: EventRows, size: float) -> float:
    """Log probability of the counts."""
    psi, y = log_rates(weights, data), data.counts
    if math.isinf(size):
        value = y * psi - np.exp(np.minimum(psi, _LARGEST))
    else:
        odds = psi - math.log(size)
        value = y * odds - (y + size) * np.logaddexp(0.0, odds) + gammaln(y + size) - gammaln(size)
    return float(data.weights @ (value - gammaln(y + 1.0)))


class _Events:
    """What the two models share."""

    __slots__ = ()

    weights_prior: MvNormal | None
    distribution: ClassVar[str]

    def as_data(self, data: Any) -> EventRows:
        """Event rows, or (covariates, counts) as `as_event_rows` takes them."""
        if isinstance(data, tuple) and len(data) == 2:
            data = as_event_rows(*data)
        hint = "make them with pgmult.regression.as_event_rows"
        return as_kind(data, "data", EventRows, hint).dense()

    def prior_of(self, data: EventRows) -> MvNormal:
        """The prior of the weights."""
        return weights_prior(self.weights_prior, data.num_covariates, "weights_prior")

    def _move(self, rng: np.random.Generator, weights: FloatArray, around: _Around) -> FloatArray:
        for _ in range(_SLICES):
            weights = slice_around(rng, weights, around, around.correction)
        return weights

    def _around(self, data: EventRows) -> _Around:
        return _around(data, self)


def _refuse_weights(data: EventRows) -> None:
    if (data.weights != 1.0).any():
        raise ValueError("counts of rows with weights are no data: they cannot be simulated")


@dataclass(frozen=True, slots=True, eq=False)
class PoissonRegressionState:
    """One point of the chain.

    Attributes
    ----------
    weights : array, ``(1, num_covariates)``
    """

    weights: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class PoissonRegression(_Events):
    """Poisson counts whose log rates are linear in covariates.

    Parameters
    ----------
    weights_prior : MvNormal, optional
        N(0, I) on all weights if left out, the intercept's included.

    Notes
    -----
    A sweep is two slices, each O(num_rows num_covariates + num_covariates**2).
    """

    weights_prior: MvNormal | None = None

    distribution: ClassVar[str] = "poisson"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"weights": ("output", "covariate")}
    default_keep: ClassVar[tuple[str, ...]] = ("weights",)
    label_dims: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        as_weights_prior(self.weights_prior, "weights_prior")

    def prior(self, rng: np.random.Generator, data: EventRows) -> PoissonRegressionState:
        """Weights from the prior."""
        return PoissonRegressionState(self.prior_of(data).sample(rng, 1))

    def simulate(
        self, rng: np.random.Generator, state: PoissonRegressionState, data: EventRows
    ) -> EventRows:
        """New counts, given the weights."""
        _refuse_weights(data)
        rates = np.exp(np.minimum(log_rates(state.weights, data), 40.0))
        return data.with_counts(as_generator(rng).poisson(rates))

    def init(self, rng: np.random.Generator, data: EventRows) -> PoissonRegressionState:
        """One sweep from the middle of the Gaussian."""
        return self.step(rng, PoissonRegressionState(self._around(data).mean()), data)

    def step(
        self, rng: np.random.Generator, state: PoissonRegressionState, data: EventRows
    ) -> PoissonRegressionState:
        """One sweep of the weights."""
        return PoissonRegressionState(self._move(rng, state.weights, self._around(data)))

    def state_of(self, weights: FloatArray) -> PoissonRegressionState:
        """The state with these weights."""
        return PoissonRegressionState(weights)

    def move(
        self, rng: np.random.Generator, weights: FloatArray, prior_vars: FloatArray, data: EventRows
    ) -> FloatArray:
        """One sweep of weights that are independent a priori, with these variances."""
        return self._move(rng, weights, self._around(data).with_prior(prior_vars))

    def log_likelihood(self, state: PoissonRegressionState, data: EventRows) -> float:
        """Log probability of the counts."""
        return log_likelihood(state.weights, data, math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class NegativeBinomialRegressionState:
    """One point of the chain.

    Attributes
    ----------
    weights : array, ``(1, num_covariates)``
    size : float
    """

    weights: FloatArray
    size: float


@dataclass(frozen=True, slots=True, eq=False)
class NegativeBinomialRegression(_Events):
    """Overdispersed counts whose log means are linear in covariates, and the size.

    Parameters
    ----------
    weights_prior : MvNormal, optional
        N(0, I) on all weights if left out, the intercept's included.
    size_prior : (median, sd)
        Of the size, whose logarithm has this standard deviation.
    size : float, optional
        Known, if given.

    Notes
    -----
    A sweep is two slices of the weights, each O(num_rows num_covariates + num_covariates**2), and
    one of the size, O(num_rows).
    """

    weights_prior: MvNormal | None = None
    size_prior: tuple[float, float] = (3.0, 2.0)
    size: float | None = None

    distribution: ClassVar[str] = "negative_binomial"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "weights": ("output", "covariate"),
        "size": (),
    }
    default_keep: ClassVar[tuple[str, ...]] = ("weights", "size")
    label_dims: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        as_weights_prior(self.weights_prior, "weights_prior")
        pair = as_positive(self.size_prior, "size_prior")
        if pair.shape != (2,):
            raise ValueError(f"size_prior must be (median, sd), got shape {pair.shape}")
        object.__setattr__(self, "size_prior", (float(pair[0]), float(pair[1])))
        if self.size is not None:
            as_real(self.size, "size", minimum=1e-3, maximum=1e4)

    def prior(self, rng: np.random.Generator, data: EventRows) -> NegativeBinomialRegressionState:
        """A state from the prior."""
        median, sd = self.size_prior
        size = median * math.exp(sd * as_generator(rng).standard_normal())
        size = size if self.size is None else self.size
        return NegativeBinomialRegressionState(self.prior_of(data).sample(rng, 1), size)

    def simulate(
        self, rng: np.random.Generator, state: NegativeBinomialRegressionState, data: EventRows
    ) -> EventRows:
        """New counts, given weights and size."""
        _refuse_weights(data)
        rates = np.exp(np.minimum(log_rates(state.weights, data), 40.0))
        mixed = as_generator(rng).gamma(state.size, rates / state.size)
        return data.with_counts(rng.poisson(np.minimum(mixed, 1e18)))

    def init(self, rng: np.random.Generator, data: EventRows) -> NegativeBinomialRegressionState:
        """One sweep from the middle of the Gaussian."""
        around = self._around(data)
        size = around.size if self.size is None else self.size
        return self.step(rng, NegativeBinomialRegressionState(around.mean(), size), data)

    def step(
        self, rng: np.random.Generator, state: NegativeBinomialRegressionState, data: EventRows
    ) -> NegativeBinomialRegressionState:
        """One sweep: the weights, then the size."""
        weights = self._move(rng, state.weights, self._around(data).at(state.size))
        if self.size is not None:
            return NegativeBinomialRegressionState(weights, self.size)
        median, sd = self.size_prior

        def log_density(log_size: FloatArray, active: BoolArray) -> FloatArray:
            value = log_likelihood(weights, data, float(np.exp(log_size[0])))
            return np.asarray(value - 0.5 * ((log_size - math.log(median)) / sd) ** 2)

        log_size = slice_sample(rng, log_density, np.array([math.log(state.size)]))
        return NegativeBinomialRegressionState(weights, float(np.exp(log_size[0])))

    def log_likelihood(self, state: NegativeBinomialRegressionState, data: EventRows) -> float:
        """Log probability of the counts."""
        return log_likelihood(state.weights, data, state.size)


@once_a_data_set
def _around(data: EventRows, model: Any) -> _Around:
    return _Around.of(data, model.prior_of(data), model.distribution)
