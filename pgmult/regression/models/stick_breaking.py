r"""Stick-breaking multinomial regression by Pólya-gamma Gibbs sampling.

Rows have covariates x_n and counts y_n of K categories; sticks break in the order of the data,
frequent categories first unless told otherwise (Linderman, Johnson and Adams 2015)::

    beta_k ~ N(m0, tau S0)                        k = 1..K - 1
    psi_nk = x_n' beta_k
    y_n    ~ Multinomial(N_n, stick-breaking(psi_n))

Given how many counts reach a stick, what it takes of them is binomial in sigma(psi_nk). So the
likelihood falls apart into K - 1 logistic regressions, independent in the posterior too, and one
Pólya-gamma variable for each row and stick makes all the weights Gaussian at once: no softmax
allows that. Sticks that mix slowly so, of rare categories, move by slices around Gaussians instead,
or besides: see `pgmult.regression.updates`. tau is 1, or learned: with an inverse gamma prior it is
conjugate.

Any order of the sticks can express any probabilities at one x, but they are different models. A
logistic curve of what is left of the others is another curve than a softmax's, and the prior is not
symmetric in the categories: at beta = 0 half of the mass goes to the first stick, a quarter to the
second. Order matters little where data are many; where it does, give it.

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> x = np.column_stack([np.ones(100), rng.standard_normal(100)])
>>> labels = (x @ [[0.0, 0.5, -1.0], [0.0, 2.0, -2.0]] + rng.gumbel(size=(100, 3))).argmax(axis=1)
>>> posterior = pgmult.sample(
...     StickBreakingRegression(), (x, labels), draws=200, tune=20, chains=2, random_seed=0,
...     progressbar=False,
... )
>>> posterior["weights"].shape
(2, 200, 2, 2)
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmult.core.memory import once_a_data_set
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_generator, as_positive
from pgmult.links import StickBreaking
from pgmult.priors.gaussian import MvNormal
from pgmult.priors.matrix_normal import linear_means
from pgmult.regression.data import CountedRows
from pgmult.regression.models.counted import CountedModel
from pgmult.regression.priors import as_weights_prior, weights_prior
from pgmult.regression.updates import (
    Bases,
    as_update,
    augmentation_rates,
    find_bases_of,
    find_potentials,
    move_weights,
    slow_group,
    start_of,
)
from pgmult.sampling.diagnostics import ConvergenceWarning

__all__ = ["StickBreakingRegression", "StickBreakingRegressionState"]

_EM_STEPS = 4


@dataclass(frozen=True, slots=True, eq=False)
class StickBreakingRegressionState:
    """One point of the chain.

    Attributes
    ----------
    weights : array, ``(num_categories - 1, num_covariates)``
        Of the sticks, in their order.
    scale_var : float
        tau; 1 where it is not learned.
    """

    weights: FloatArray
    scale_var: float


@dataclass(frozen=True, slots=True, eq=False)
class StickBreakingRegression(CountedModel):
    """Multinomial regression through sticks, sampled in exact blocks.

    Parameters
    ----------
    weights_prior : MvNormal, optional
        Of each stick's weights, N(m0, S0); N(0, I) if left out, on the intercept's too.
    scale_prior : (shape, scale), optional
        Of the inverse gamma distribution of tau, which multiplies S0 for all sticks; tau is 1 if
        left out.
    update : {"auto", "gibbs", "slice", "both"}
        How a sweep moves the weights of each stick: see `LogisticRegression`. With tau learned, the
        potentials that stand in for rows are found with that of a few steps of EM.

    Notes
    -----
    With m the sticks that rows reach, a Gibbs step costs O(m num_covariates**2 + (K - 1)
    num_covariates**3), a slice O(m num_covariates + (K - 1) num_covariates**2); sticks run on all
    the threads of the enclosing chain.
    """

    weights_prior: MvNormal | None = None
    scale_prior: tuple[float, float] | None = None
    update: str = "auto"

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "weights": ("stick", "covariate"),
        "scale_var": (),
        "probs": ("row", "category"),
    }
    default_keep: ClassVar[tuple[str, ...]] = ("weights", "scale_var")
    label_dims: ClassVar[frozenset[str]] = frozenset()

    _precision: FloatArray | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        as_update(self.update)
        prior = as_weights_prior(self.weights_prior, "weights_prior")
        if prior is not None:
            object.__setattr__(self, "_precision", prior.precision())
        if self.scale_prior is not None:
            pair = as_positive(self.scale_prior, "scale_prior")
            if pair.shape != (2,):
                raise ValueError(f"scale_prior must be (shape, scale), got shape {pair.shape}")
            object.__setattr__(self, "scale_prior", (float(pair[0]), float(pair[1])))

    def coords(self, data: CountedRows) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """The category that each stick breaks for."""
        return {"stick": data.order[:-1]}

    def prior_of(self, data: CountedRows) -> MvNormal:
        """The prior of a stick's weights, with tau at 1."""
        return weights_prior(self.weights_prior, data.num_covariates, "weights_prior")

    def prior(self, rng: np.random.Generator, data: CountedRows) -> StickBreakingRegressionState:
        """A state from the prior."""
        prior = self.prior_of(data)
        scale_var = 1.0
        if self.scale_prior is not None:
            shape, scale = self.scale_prior
            scale_var = scale / as_generator(rng).gamma(shape)
        wide = MvNormal(prior.prior_mean, scale_var * prior.prior_cov)
        return StickBreakingRegressionState(wide.sample(rng, data.num_categories - 1), scale_var)

    def simulate(
        self, rng: np.random.Generator, state: StickBreakingRegressionState, data: CountedRows
    ) -> CountedRows:
        """New counts of the same totals, with the sticks in the same order."""
        counts = self.link(data).simulate(
            rng, self.predictors(state.weights, data), data.whole_totals()
        )
        return data.with_counts(counts)

    def init(self, rng: np.random.Generator, data: CountedRows) -> StickBreakingRegressionState:
        """One sweep from the middle of the Gaussians nearest to the posterior.

        Warns
        -----
        ConvergenceWarning
            If sweeps are to be of ``update="gibbs"`` and leave a stick's weights where they are.
        """
        if self.update == "gibbs":
            slow = slow_group(
                self.augmentation_rates(data), data.sticks,
                lambda k: f" of the stick of category {data.order[k]}",
            )  # fmt: skip
            if slow is not None:
                warnings.warn(slow, ConvergenceWarning, stacklevel=2)
        weights = np.tile(self.prior_of(data).prior_mean, (data.num_categories - 1, 1))
        weights = start_of(weights, self._bases(data))
        return self.step(rng, StickBreakingRegressionState(weights, 1.0), data)

    def step(
        self, rng: np.random.Generator, state: StickBreakingRegressionState, data: CountedRows
    ) -> StickBreakingRegressionState:
        """One sweep: the weights, then tau."""
        mean, precision = self._moments(data)
        weights = move_weights(
            rng, state.weights, mean, precision / state.scale_var, data.sticks, self._bases(data),
            learned=self.scale_prior is not None,
        )  # fmt: skip
        scale_var = state.scale_var
        if self.scale_prior is not None:
            shape, scale = self.scale_given(weights, data)
            scale_var = scale / rng.gamma(shape)
        return StickBreakingRegressionState(weights, scale_var)

    def state_of(self, weights: FloatArray) -> StickBreakingRegressionState:
        """The state with these weights."""
        return StickBreakingRegressionState(weights, 1.0)

    def move(
        self,
        rng: np.random.Generator,
        weights: FloatArray,
        prior_vars: FloatArray,
        data: CountedRows,
    ) -> FloatArray:
        """One sweep of weights that are independent a priori, with these variances."""
        return move_weights(
            rng, weights, self.prior_of(data).prior_mean, np.diag(1.0 / prior_vars), data.sticks,
            self._bases(data), learned=True,
        )  # fmt: skip

    def scale_given(self, weights: FloatArray, data: CountedRows) -> tuple[float, float]:
        """Shape and scale of tau's inverse gamma distribution given the weights."""
        if self.scale_prior is None:
            raise ValueError("scale_prior must be given: without it tau is fixed at 1")
        mean, precision = self._moments(data)
        gaps = weights - mean
        squares = float(np.einsum("ki,ij,kj->", gaps, precision, gaps))
        return self.scale_prior[0] + 0.5 * weights.size, self.scale_prior[1] + 0.5 * squares

    def log_likelihood(self, state: StickBreakingRegressionState, data: CountedRows) -> float:
        """Log probability of the counts, without multinomial coefficients."""
        psi = self.predictors(state.weights, data)
        return float(self.link(data).log_likelihood(psi, data.counts).sum())

    def link(self, data: CountedRows) -> StickBreaking:
        """The link from psi to probabilities, its sticks in the order of the data."""
        return StickBreaking(data.order)

    def predictors(self, weights: FloatArray, data: CountedRows) -> FloatArray:
        """Of all rows and sticks, ``(num_rows, num_categories - 1)``."""
        return linear_means(data.covariates, weights.T)

    def augmentation_rates(self, data: CountedRows) -> FloatArray:
        """How much a Gibbs step renews of each stick's slowest weights, ``(num_categories - 1,)``.

        As of `LogisticRegression`.
        """
        return augmentation_rates(data.sticks, *self._reference(data))

    def _bases(self, data: CountedRows) -> Bases | None:
        return None if self.update == "gibbs" else _bases_of(data, self)

    def _reference(self, data: CountedRows) -> tuple[FloatArray, FloatArray]:
        """Mean and precision of a stick's weights with tau by a few steps of EM."""
        mean, precision = self._moments(data)
        scale_var = 1.0
        for _ in range(0 if self.scale_prior is None else _EM_STEPS):
            gram, pull = find_potentials(data.sticks, mean, precision / scale_var)
            covs = np.linalg.inv(precision / scale_var + gram)
            weights = np.einsum("gij,gj->gi", covs, pull + precision @ mean / scale_var)
            shape, scale = self.scale_given(weights, data)
            scale_var = (scale + 0.5 * float(np.einsum("ij,gij->", precision, covs))) / shape
        return mean, precision / scale_var

    def _moments(self, data: CountedRows) -> tuple[FloatArray, FloatArray]:
        """Mean and precision of a stick's weights under the prior, with tau at 1."""
        if self._precision is None:
            return np.zeros(data.num_covariates), np.eye(data.num_covariates)
        return self.prior_of(data).prior_mean, self._precision


@once_a_data_set
def _bases_of(data: CountedRows, model: StickBreakingRegression) -> Bases:
    return find_bases_of(data.sticks, *model._reference(data), model.update)
