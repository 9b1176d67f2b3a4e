r"""Multinomial regressions: stick-breaking by Pólya-gamma Gibbs or slices, the softmax by swings.

Rows have covariates x_n and counts y_n of K categories. In `StickBreakingRegression` sticks break
in the order of the data, frequent categories first unless told otherwise (Linderman, Johnson and
Adams 2015)::

    beta_k ~ N(m0, tau S0)                        k = 1..K - 1
    psi_nk = x_n' beta_k
    y_n    ~ Multinomial(N_n, stick-breaking(psi_n))

Given how many counts reach a stick, what it takes of them is binomial in sigma(psi_nk). So the
likelihood splits into K - 1 logistic regressions, independent in the posterior too, and one
Pólya-gamma variable for each row and stick makes all the weights Gaussian at once, which no softmax
allows. This mixes slowly for rare categories, whose sticks move by slices around Gaussians instead,
or in addition: see `updates`. tau is 1, or learned: with an inverse gamma prior
it is conjugate.

Any order of the sticks can express any probabilities at one x, but each order is a different model.
Its curves differ from those of a softmax, and the prior is not symmetric in the categories: at beta
= 0 half of the mass goes to the first stick, a quarter to the second. With many data the order
matters little; with few, choose it.

`SoftmaxRegression` treats all categories alike, and all K have weights::

    w_k ~ N(m0, S0)                                    k = 1..K
    y_n ~ Multinomial(N_n, softmax(x_n' w_1, ..., x_n' w_K))

A softmax has no augmentation that makes all the weights Gaussian at once. But one Gaussian of all
of them, correlations between categories included, comes near the posterior (the tilted bound's,
`fit_softmax_regression`), and paths about it are exact. The data inform only
differences of weights: what is common to all keeps its prior.

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> x = np.column_stack([np.ones(100), rng.standard_normal(100)])
>>> labels = (x @ [[0.0, 0.5, -1.0], [0.0, 2.0, -2.0]] + rng.gumbel(size=(100, 3))).argmax(axis=1)
>>> for model in (StickBreakingRegression(), SoftmaxRegression()):
...     posterior = pgmult.sample(
...         model, (x, labels), draws=200, tune=20, chains=2, random_seed=0, progressbar=False
...     )
...     print(posterior["weights"].shape)
(2, 200, 2, 2)
(2, 200, 3, 2)
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from examples.papers.regressions.data import (
    CountedRows,
    LabelledRows,
    as_counted_rows,
    require_counted_rows,
)
from examples.papers.regressions.linear import Around, FixedGroups, JointRows, JointWeights, Pair
from examples.papers.regressions.multinomial_fits import fit_softmax_regression
from examples.papers.regressions.updates import find_potentials
from pgmult.core.memory import once_a_data_set
from pgmult.core.parameters import axes_of
from pgmult.core.typing import FloatArray, ObservedRows
from pgmult.core.validate import as_generator
from pgmult.links import LogisticNormal, StickBreaking
from pgmult.priors.gaussian import MvNormal
from pgmult.priors.matrix_normal import linear_means

_EM_STEPS = 4
_TOLERANCE = 1e-3  # posterior standard deviations: nearer, all bases are as good


class _CountedModel(ABC):
    """A link of predictors that are linear in the covariates."""

    __slots__ = ()

    @abstractmethod
    def link(self, data: CountedRows) -> Any:
        """The link from predictors to probabilities."""

    @abstractmethod
    def predictors(self, weights: FloatArray, data: CountedRows) -> FloatArray:
        """Of all rows, ``(num_rows, num_outputs)``."""

    def as_data(self, data: Any) -> CountedRows:
        """Counted rows, or (covariates, outcomes) as `as_counted_rows` takes them."""
        if isinstance(data, tuple) and len(data) == 2:
            return as_counted_rows(*data)
        return require_counted_rows(data)

    def simulate(self, rng: np.random.Generator, state: Any, data: CountedRows) -> CountedRows:
        """New counts of the same totals, and the same order of sticks."""
        psi, totals = self.predictors(state.weights, data), data.whole_totals()
        return data.with_counts(self.link(data).simulate(as_generator(rng), psi, totals))

    def log_likelihood(self, state: Any, data: CountedRows) -> float:
        """Log probability of the counts, without multinomial coefficients."""
        psi = self.predictors(state.weights, data)
        return float(self.link(data).log_likelihood(psi, data.counts).sum())

    def probs(self, state: Any, data: CountedRows) -> FloatArray:
        """Probabilities of the categories in each row, ``(num_rows, num_categories)``."""
        probs: FloatArray = self.link(data).probs(self.predictors(state.weights, data))
        return probs

    def observed_rows(self, data: CountedRows) -> ObservedRows:
        """The counts.

        Raises
        ------
        ValueError
            If rows have weights that are not whole.
        """
        return data.observed()

    def row_probs(self, draw: Mapping[str, Any], data: CountedRows) -> FloatArray:
        """Of ``weights``."""
        if "weights" not in draw:
            raise ValueError("the posterior must have kept weights (keep=)")
        probs: FloatArray = self.link(data).probs(self.predictors(draw["weights"], data))
        return probs


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

    weights: Annotated[FloatArray, "stick", "covariate"]
    scale_var: float


@dataclass(frozen=True, slots=True, eq=False)
class StickBreakingRegression(_CountedModel, FixedGroups):
    """Multinomial regression through sticks, sampled in exact blocks.

    Parameters
    ----------
    weights_prior : MvNormal, optional
        Of each stick's weights, N(m0, S0); N(0, I) if left out, on the intercept's too.
    scale_prior : (shape, scale), optional
        Of the inverse gamma distribution of tau, which multiplies S0 for all sticks; tau is 1 if
        left out.

    Notes
    -----
    How the weights of each stick move says the table in `updates`; with tau
    learned, the potentials used in place of rows are found at the tau of a few steps of EM. With m
    the sticks that rows reach, a Gibbs step costs O(m num_covariates**2 + (K - 1)
    num_covariates**3), a slice O(m num_covariates + (K - 1) num_covariates**2); sticks run on all
    the threads of the enclosing chain.
    """

    scale_prior: Pair | None = None

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(StickBreakingRegressionState) | {
        "probs": ("row", "category")
    }
    default_keep: ClassVar[tuple[str, ...]] = ("weights", "scale_var")

    def coords(self, data: CountedRows) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """The category that each stick breaks for."""
        return {"stick": data.order[:-1]}

    def prior(self, rng: np.random.Generator, data: CountedRows) -> StickBreakingRegressionState:
        """A state from the prior."""
        prior = self.prior_of(data)
        scale_var = 1.0
        if self.scale_prior is not None:
            shape, scale = self.scale_prior
            scale_var = scale / as_generator(rng).gamma(shape)
        wide = MvNormal(prior.prior_mean, scale_var * prior.prior_cov)
        return StickBreakingRegressionState(wide.sample(rng, data.num_categories - 1), scale_var)

    def step(
        self, rng: np.random.Generator, state: StickBreakingRegressionState, data: CountedRows
    ) -> StickBreakingRegressionState:
        """One sweep: the weights, then tau."""
        mean, precision = self._moments(data)
        weights = self._move_groups(
            rng, state.weights, mean, precision / state.scale_var, data,
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

    def scale_given(self, weights: FloatArray, data: CountedRows) -> tuple[float, float]:
        """Shape and scale of tau's inverse gamma distribution given the weights."""
        if self.scale_prior is None:
            raise ValueError("scale_prior must be given: without it tau is fixed at 1")
        mean, precision = self._moments(data)
        gaps = weights - mean
        squares = float(np.einsum("ki,ij,kj->", gaps, precision, gaps))
        return self.scale_prior[0] + 0.5 * weights.size, self.scale_prior[1] + 0.5 * squares

    def link(self, data: CountedRows) -> StickBreaking:
        """The link from psi to probabilities, its sticks in the order of the data."""
        return StickBreaking(data.order)

    def predictors(self, weights: FloatArray, data: CountedRows) -> FloatArray:
        """Predictors of all rows and sticks, ``(num_rows, num_categories - 1)``."""
        return linear_means(data.covariates, weights.T)

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

    def _groups(self, data: CountedRows) -> LabelledRows:
        return data.sticks


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxRegression(_CountedModel, JointWeights):
    """Multinomial regression through a softmax, with a fixed Gaussian prior of the weights.

    Parameters
    ----------
    weights_prior : MvNormal, optional
        Of each category's weights, N(m0, S0); N(0, I) if left out, on the intercept's too.

    Notes
    -----
    A sweep is a path of four gradients, each O(K (num_rows num_covariates + K num_covariates**2));
    before the first, the Gaussian takes O((K num_covariates)**3) per iteration.
    """

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "weights": ("category", "covariate"), "probs": ("row", "category")
    }  # fmt: skip

    def _num_outputs(self, data: CountedRows) -> int:
        return data.num_categories

    def _near(self, data: CountedRows) -> tuple[Around, JointRows]:
        around, pull, totals = _near(data, self)
        shape = pull.shape

        def shares(w: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            """Of exp psi less the largest: each, their sums and the largest."""
            psi = self.predictors(w.reshape(shape), data)
            top = psi.max(axis=1)
            each = np.exp(psi - top[:, None])
            return each, each.sum(axis=1), top

        def total(w: FloatArray) -> float:
            _, sums, top = shares(w)
            return float(np.vdot(pull, w) - np.vdot(totals, top + np.log(sums)))

        def slope(w: FloatArray) -> FloatArray:
            each, sums, _ = shares(w)
            expected = np.einsum("nk,nd->kd", (totals / sums)[:, None] * each, data.covariates)
            return np.ravel(pull - expected)

        return around, JointRows(total, slope)

    def link(self, data: CountedRows) -> LogisticNormal:
        """The link from predictors to probabilities."""
        return LogisticNormal()

    def predictors(self, weights: FloatArray, data: CountedRows) -> FloatArray:
        """Predictors of all rows and categories, ``(num_rows, num_categories)``."""
        return np.asarray(np.einsum("nd,kd->nk", data.covariates, weights))


@once_a_data_set
def _near(data: CountedRows, model: SoftmaxRegression) -> tuple[Around, FloatArray, FloatArray]:
    """The Gaussian near the posterior, and sums over rows that the likelihood needs."""
    prior = model.prior_of(data)
    fit = fit_softmax_regression(data, prior, covariance="full", tolerance=_TOLERANCE)
    pull = np.einsum("nk,nd->kd", data.counts, data.covariates)
    return Around.of(fit, prior), pull, data.totals
