r"""Softmax regression, sampled exactly by slices around a Gaussian.

Rows have covariates x_n and counts y_n of K categories, and all K categories have weights::

    w_k ~ N(m0, S0)                                    k = 1..K
    y_n ~ Multinomial(N_n, softmax(x_n' w_1, ..., x_n' w_K))

A softmax has no augmentation that makes all the weights Gaussian at once. But one Gaussian of all
of them, correlations between categories included, comes near the posterior (the tilted bound's,
`pgmult.regression.fit_softmax_regression`), and slices around it leave the posterior as it is
(`pgmult.sampling.moves.slice_around`). The search for it sees data and prior alone.

Unlike sticks, a softmax treats all categories alike. It sees only differences of weights: what is
common to all is as the prior has it.

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> x = np.column_stack([np.ones(100), rng.standard_normal(100)])
>>> labels = (x @ [[0.0, 0.5, -1.0], [0.0, 2.0, -2.0]] + rng.gumbel(size=(100, 3))).argmax(axis=1)
>>> posterior = pgmult.sample(
...     SoftmaxRegression(), (x, labels), draws=200, tune=20, chains=2, random_seed=0,
...     progressbar=False,
... )
>>> posterior["weights"].shape
(2, 200, 3, 2)
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from weakref import ref

import numpy as np

from pgmult.compiled.linalg import invert_lower
from pgmult.core.memory import once_a_data_set
from pgmult.core.typing import BoolArray, FloatArray
from pgmult.core.validate import as_generator
from pgmult.links import LogisticNormal
from pgmult.priors.gaussian import MvNormal, lower_cholesky
from pgmult.regression.data import CountedRows
from pgmult.regression.fits.multinomial import fit_softmax_regression
from pgmult.regression.models.counted import CountedModel
from pgmult.regression.priors import as_weights_prior, weights_prior
from pgmult.sampling.moves import slice_around

__all__ = ["SoftmaxRegression", "SoftmaxRegressionState"]

_SLICES = 2
_TOLERANCE = 1e-3  # posterior standard deviations: nearer, all bases are as good


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxRegressionState:
    """One point of the chain.

    Attributes
    ----------
    weights : array, ``(num_categories, num_covariates)``
    """

    weights: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Around:
    """The Gaussian near the posterior of all the weights, as one vector, and what it leaves out."""

    data: Any  # a weak reference
    centre: FloatArray
    root: FloatArray  # lower, of the precision
    inverse: FloatArray  # of the root
    pull: FloatArray
    totals: FloatArray
    prior: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, data: CountedRows, prior: MvNormal) -> "_Around":
        fit = fit_softmax_regression(data, prior, covariance="full", tolerance=_TOLERANCE)
        assert fit.joint_cov is not None
        # rounded, so that the last digits, which are BLAS's, say nothing
        root = (
            lower_cholesky(np.asarray(np.linalg.inv(fit.joint_cov)))
            .astype(np.float32)
            .astype(np.float64)
        )
        centre = fit.mean.ravel().astype(np.float32).astype(np.float64)
        pull = np.einsum("nk,nd->kd", data.counts, data.covariates)
        moments = prior.prior_mean, prior.precision()
        return cls(ref(data), centre, root, invert_lower(root), pull, data.totals, moments)

    def with_prior(self, variances: FloatArray) -> "_Around":
        """The same potential of the rows under another prior, with independent weights."""
        mean, P0 = self.prior
        num_categories = len(self.pull)
        here = self.root @ self.root.T
        before = np.kron(np.eye(num_categories), P0)
        after = np.kron(np.eye(num_categories), np.diag(1.0 / variances))
        target = here - before + after
        change = (before - after) @ np.tile(mean, num_categories)
        centre = np.linalg.solve(target, here @ self.centre - change)
        root = lower_cholesky(target)
        moments = mean, np.diag(1.0 / variances)
        return replace(self, centre=centre, root=root, inverse=invert_lower(root), prior=moments)

    def mean(self) -> FloatArray:
        return self.centre[None]

    def sample(self, rng: np.random.Generator) -> FloatArray:
        noise = rng.standard_normal((1, len(self.centre)))
        return np.asarray(self.centre + np.einsum("bj,ji->bi", noise, self.inverse))

    def inner(self, a: FloatArray, b: FloatArray) -> FloatArray:
        left, right = np.einsum("bi,ij->bj", a, self.root), np.einsum("bi,ij->bj", b, self.root)
        return np.asarray(np.einsum("bj,bj->b", left, right))

    def correction(self, x: FloatArray, active: BoolArray) -> FloatArray:
        """Log posterior less the Gaussian's log density."""
        weights, deviation = x.reshape(self.pull.shape), x - self.centre
        psi = _predictors(weights, self.data())
        top = psi.max(axis=1)
        rest = top + np.log(np.exp(psi - top[:, None]).sum(axis=1))
        gap = weights - self.prior[0]
        value = np.vdot(self.pull, weights) - np.vdot(self.totals, rest)
        value -= 0.5 * np.einsum("ki,ij,kj->", gap, self.prior[1], gap)
        return np.asarray(value + 0.5 * self.inner(deviation, deviation))


def _predictors(weights: FloatArray, data: CountedRows) -> FloatArray:
    return np.asarray(np.einsum("nd,kd->nk", data.covariates, weights))


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxRegression(CountedModel):
    """Multinomial regression through a softmax, with a fixed Gaussian prior of the weights.

    Parameters
    ----------
    weights_prior : MvNormal, optional
        Of each category's weights, N(m0, S0); N(0, I) if left out, on the intercept's too.

    Notes
    -----
    A sweep is two slices, each O(K (num_rows num_covariates + K num_covariates**2)); before the
    first, the Gaussian takes O((K num_covariates)**3) an iteration.
    """

    weights_prior: MvNormal | None = None

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "weights": ("category", "covariate"),
        "probs": ("row", "category"),
    }
    default_keep: ClassVar[tuple[str, ...]] = ("weights",)
    label_dims: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        as_weights_prior(self.weights_prior, "weights_prior")

    def prior_of(self, data: CountedRows) -> MvNormal:
        """The prior of a category's weights."""
        return weights_prior(self.weights_prior, data.num_covariates, "weights_prior")

    def prior(self, rng: np.random.Generator, data: CountedRows) -> SoftmaxRegressionState:
        """A state from the prior."""
        return SoftmaxRegressionState(self.prior_of(data).sample(rng, data.num_categories))

    def simulate(
        self, rng: np.random.Generator, state: SoftmaxRegressionState, data: CountedRows
    ) -> CountedRows:
        """New counts of the same totals."""
        psi = _predictors(state.weights, data)
        return data.with_counts(
            self.link(data).simulate(as_generator(rng), psi, data.whole_totals())
        )

    def init(self, rng: np.random.Generator, data: CountedRows) -> SoftmaxRegressionState:
        """One sweep from the middle of the Gaussian."""
        centre = self._around(data).centre.reshape(data.num_categories, -1)
        return self.step(rng, SoftmaxRegressionState(centre), data)

    def step(
        self, rng: np.random.Generator, state: SoftmaxRegressionState, data: CountedRows
    ) -> SoftmaxRegressionState:
        """One sweep: slices of all the weights."""
        around, x = self._around(data), state.weights.reshape(1, -1)
        for _ in range(_SLICES):
            x = slice_around(rng, x, around, around.correction)
        return SoftmaxRegressionState(x.reshape(state.weights.shape))

    def state_of(self, weights: FloatArray) -> SoftmaxRegressionState:
        """The state with these weights."""
        return SoftmaxRegressionState(weights)

    def move(
        self,
        rng: np.random.Generator,
        weights: FloatArray,
        prior_vars: FloatArray,
        data: CountedRows,
    ) -> FloatArray:
        """One sweep of weights that are independent a priori, with these variances.

        The Gaussian keeps what stands in for the rows, and takes this prior: O((K D)^3).
        """
        around = self._around(data).with_prior(prior_vars)
        x = weights.reshape(1, -1)
        for _ in range(_SLICES):
            x = slice_around(rng, x, around, around.correction)
        return x.reshape(weights.shape)

    def log_likelihood(self, state: SoftmaxRegressionState, data: CountedRows) -> float:
        """Log probability of the counts, without multinomial coefficients."""
        psi = _predictors(state.weights, data)
        return float(self.link(data).log_likelihood(psi, data.counts).sum())

    def link(self, data: CountedRows) -> LogisticNormal:
        """The link from predictors to probabilities."""
        return LogisticNormal()

    def predictors(self, weights: FloatArray, data: CountedRows) -> FloatArray:
        """Of all rows and categories, ``(num_rows, num_categories)``."""
        return _predictors(weights, data)

    def _around(self, data: CountedRows) -> _Around:
        """The Gaussian, found once for these data."""
        return _around(data, self)


@once_a_data_set
def _around(data: CountedRows, model: SoftmaxRegression) -> _Around:
    return _Around.of(data, model.prior_of(data))
