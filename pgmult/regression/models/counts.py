r"""Log-linear regressions of counts, sampled exactly by swings about a Gaussian.

Rows have covariates x_n and counts y_n of events::

    w ~ N(m0, S0),    log mu_n = o_n + x_n' w
    y_n ~ Poisson(mu_n),    or    NegativeBinomial(mean mu_n, variance mu_n + mu_n^2 / size)

Where the size is learned, log size ~ N(log median, sd^2), a slice of its own moves it. The Gaussian
is `pgmult.regression.fit_count_regression`'s; it depends on data and prior alone, so paths about
it are exact.

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
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import gammaln

from pgmult.core.arguments import as_kind
from pgmult.core.memory import once_a_data_set
from pgmult.core.parameters import axes_of, real
from pgmult.core.typing import BoolArray, FloatArray
from pgmult.core.validate import as_generator
from pgmult.regression.data import EventRows, as_event_rows
from pgmult.regression.fits.counts import fit_count_regression, rough_size
from pgmult.regression.models.linear import (
    Around,
    FixedPrior,
    JointMoves,
    JointRows,
    JointWeights,
    Pair,
    WeightsState,
)
from pgmult.sampling.moves import slice_sample
from pgmult.variational.sites import CountSite

_LARGEST = 700.0  # log rate
_TOLERANCE = 1e-3  # posterior standard deviations: nearer, all bases are as good


def log_rates(weights: FloatArray, data: EventRows) -> FloatArray:
    """Log means of the rows, ``(num_rows,)``; the same bits for any BLAS."""
    return np.asarray(data.known + np.einsum("nd,d->n", data.covariates, weights[0]))


def _rows(data: EventRows, size: float) -> JointRows:
    """What rows with counts of this size say of the weights."""
    site = CountSite(data.counts.astype(np.float64), size, data.weights)

    def psi(w: FloatArray) -> FloatArray:
        return log_rates(w[None], data)

    def slope(w: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("n,nd->d", site.slope(psi(w)), data.covariates))

    return JointRows(lambda w: site.total(psi(w)), slope)


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

    distribution: ClassVar[str]

    def as_data(self, data: Any) -> EventRows:
        """Event rows, or (covariates, counts) as `as_event_rows` takes them."""
        if isinstance(data, tuple) and len(data) == 2:
            data = as_event_rows(*data)
        hint = "make them with pgmult.regression.as_event_rows"
        return as_kind(data, "data", EventRows, hint).dense()


def _refuse_weights(data: EventRows) -> None:
    if (data.weights != 1.0).any():
        raise ValueError("counts of rows with weights are no data: they cannot be simulated")


@dataclass(frozen=True, slots=True, eq=False)
class PoissonRegression(_Events, JointWeights):
    """Poisson counts whose log rates are linear in covariates.

    Parameters
    ----------
    weights_prior : MvNormal, optional
        N(0, I) on all weights if left out, the intercept's included.

    Notes
    -----
    A sweep is a path of four gradients, each O(num_rows num_covariates + num_covariates**2).
    """

    distribution: ClassVar[str] = "poisson"

    def simulate(self, rng: np.random.Generator, state: WeightsState, data: EventRows) -> EventRows:
        """New counts, given the weights."""
        _refuse_weights(data)
        rates = np.exp(np.minimum(log_rates(state.weights, data), 40.0))
        return data.with_counts(as_generator(rng).poisson(rates))

    def _num_outputs(self, data: EventRows) -> int:
        return 1

    def _near(self, data: EventRows) -> tuple[Around, JointRows]:
        return _near(data, self)[0], _rows(data, math.inf)

    def log_likelihood(self, state: WeightsState, data: EventRows) -> float:
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

    weights: Annotated[FloatArray, "output", "covariate"]
    size: float


@dataclass(frozen=True, slots=True, eq=False)
class NegativeBinomialRegression(_Events, JointMoves, FixedPrior):
    """Overdispersed counts whose log means are linear in covariates; the size may be learned.

    Parameters
    ----------
    weights_prior : MvNormal, optional
        N(0, I) on all weights if left out, the intercept's included.
    size_prior : (median, sd)
        Of the size, whose logarithm has this standard deviation.
    size : float, optional
        Fixed at this value, if given.

    Notes
    -----
    A sweep is a path of the weights, of four gradients, each O(num_rows num_covariates +
    num_covariates**2), and a slice of the size, O(num_rows).
    """

    size_prior: Pair = (3.0, 2.0)
    size: Annotated[float | None, real(minimum=1e-3, maximum=1e4)] = None

    distribution: ClassVar[str] = "negative_binomial"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(NegativeBinomialRegressionState)
    default_keep: ClassVar[tuple[str, ...]] = ("weights", "size")

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
        around, size = _near(data, self)
        size = size if self.size is None else self.size
        return self.step(rng, NegativeBinomialRegressionState(around.mean[None], size), data)

    def _near(self, data: EventRows) -> tuple[Around, JointRows]:
        around, size = _near(data, self)
        return around, _rows(data, size if self.size is None else self.size)

    def step(
        self, rng: np.random.Generator, state: NegativeBinomialRegressionState, data: EventRows
    ) -> NegativeBinomialRegressionState:
        """One sweep: the weights, then the size."""
        around, _ = _near(data, self)
        weights = self._swung(rng, state.weights, around, _rows(data, state.size))
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
def _near(data: EventRows, model: Any) -> tuple[Around, float]:
    """The Gaussian near the posterior, and the size of the negative binomial there."""
    prior = model.prior_of(data)
    size = None if model.distribution == "poisson" else rough_size(data, prior)
    fit = fit_count_regression(
        data, prior, distribution=model.distribution, size=size, tolerance=_TOLERANCE
    )
    return Around.of(fit, prior), fit.size
