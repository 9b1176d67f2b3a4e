r"""Regressions whose weights have priors of unknown width, sampled along with the weights.

Columns j that take part have weights w_kj ~ N(m_j, s^2 l_j^2 v_j) for every output k, where v_j is
the model's own prior variance. s is common to them, and the prior of l_j says what is expected:

* `HalfT`: all l_j = 1, and s is half-t. All weights have the same scale, which is learned.
* `Horseshoe`: l_j half-Cauchy too (Carvalho, Polson and Scott 2010). Most weights are nearly 0 and
  some are not; the data decide which.

Both are conjugate given auxiliary variables (Wand et al. 2011; Makalic and Schmidt 2016), which are
drawn afresh in every sweep, so that no state need keep them. With p columns and K outputs, and
squares q_j = sum_k (w_kj - m_j)^2 / v_j,

    half-t(nu, A)    a ~ IG((nu + 1) / 2, nu / s^2 + 1 / A^2)
                     s^2 ~ IG((nu + K p) / 2, nu / a + sum_j q_j / 2)
    horseshoe(A)     c_j ~ IG(1, 1 + 1 / l_j^2),    b ~ IG(1, 1 / A^2 + 1 / s^2)
                     l_j^2 ~ IG((1 + K) / 2, 1 / c_j + q_j / (2 s^2))
                     s^2 ~ IG((1 + K p) / 2, 1 / b + sum_j q_j / (2 l_j^2))

Given the weights a scale hardly moves, and weights hardly grow while their scale is small. So
scales are moved together with the weights, too: each l_j with its column, s with all of them, and s
against the l_j, where a Gaussian stands in for the rows (`pgmult.regression.compiled.scales`). What
the rows say beyond it accepts or refuses all these moves together (a surrogate transition: Liu
2001, section 9.4.3).

>>> import numpy as np, pgmult
>>> from pgmult.regression.models.logistic import LogisticRegression
>>> rng = np.random.default_rng(0)
>>> x = rng.standard_normal((300, 8))
>>> y = rng.random(300) < 1.0 / (1.0 + np.exp(-2.0 * x[:, 0]))
>>> model = ScaledRegression(LogisticRegression(), Horseshoe())
>>> posterior = pgmult.sample(
...     model, (x, y), draws=1000, tune=100, chains=2, random_seed=0, progressbar=False
... )
>>> posterior["weights"].mean(axis=(0, 1)).round(1)[0, :3]
array([ 1.5, -0.1,  0. ])
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pgmult.core.parameters import Checked, axes_of, real
from pgmult.core.typing import BoolArray, FloatArray
from pgmult.core.validate import as_generator, new_key
from pgmult.priors.gaussian import MvNormal
from pgmult.regression.compiled.scales import Law, Surrogate, stretch

_LEAST, _MOST = 1e-12, 1e12  # of variances: beyond, precisions of weights lose all digits
_STRETCHED = 0.3  # of the sweeps where one scale is all that is learned
_Scale = Annotated[float, real(minimum=1e-5, maximum=1e5)]


def _inverse_gamma(rng: np.random.Generator, shape: Any, scale: Any) -> Any:
    return np.clip(scale / rng.gamma(shape, size=np.shape(scale)), _LEAST, _MOST)


@runtime_checkable
class WeightScales(Protocol):
    """A prior of the common factor s^2 of prior variances, and of one l_j^2 for each column.

    Attributes
    ----------
    scale, dof : float
        Of the half-t law of s.
    is_local : bool
        Whether every l_j is half-Cauchy, rather than 1.
    """

    @property
    def scale(self) -> float: ...  # noqa: D102
    @property
    def dof(self) -> float: ...  # noqa: D102
    @property
    def is_local(self) -> bool: ...  # noqa: D102

    def sample(self, rng: np.random.Generator, size: int) -> tuple[float, FloatArray]:
        """s^2 and l^2, ``(size,)``."""

    def given(
        self, rng: np.random.Generator, squares: FloatArray, num_outputs: int, common: float,
        local: FloatArray,
    ) -> tuple[float, FloatArray]:  # fmt: skip
        """New s^2 and l^2 from the present ones, given the squares q_j over `num_outputs`."""


@dataclass(frozen=True, slots=True)
class HalfT(Checked):
    """One half-t standard deviation of all weights.

    Attributes
    ----------
    scale : float
        > 0.
    dof : float
        > 0.
    """

    scale: _Scale = 1.0
    dof: Annotated[float, real(above=0.0, maximum=1e5)] = 3.0

    is_local: ClassVar[bool] = False

    def sample(self, rng: np.random.Generator, size: int) -> tuple[float, FloatArray]:
        """s^2 and l^2, ``(size,)``, which are 1."""
        s = self.scale * rng.standard_t(self.dof)
        return float(np.clip(s * s, _LEAST, _MOST)), np.ones(size)

    def given(
        self, rng: np.random.Generator, squares: FloatArray, num_outputs: int, common: float,
        local: FloatArray,
    ) -> tuple[float, FloatArray]:  # fmt: skip
        """New s^2 and l^2 from the present ones, given the squares q_j over `num_outputs`."""
        a = _inverse_gamma(rng, 0.5 * (self.dof + 1.0), self.dof / common + self.scale**-2)
        shape = 0.5 * (self.dof + num_outputs * len(squares))
        return float(_inverse_gamma(rng, shape, self.dof / a + 0.5 * squares.sum())), local


@dataclass(frozen=True, slots=True)
class Horseshoe(Checked):
    """A half-Cauchy standard deviation for each column, times a common one.

    Attributes
    ----------
    scale : float
        Of the common one; > 0.
    """

    scale: _Scale = 1.0

    dof: ClassVar[float] = 1.0
    is_local: ClassVar[bool] = True

    def sample(self, rng: np.random.Generator, size: int) -> tuple[float, FloatArray]:
        """s^2 and l^2, ``(size,)``."""
        s, local = self.scale * rng.standard_cauchy(), rng.standard_cauchy(size)
        return float(np.clip(s * s, _LEAST, _MOST)), np.clip(local * local, _LEAST, _MOST)

    def given(
        self, rng: np.random.Generator, squares: FloatArray, num_outputs: int, common: float,
        local: FloatArray,
    ) -> tuple[float, FloatArray]:  # fmt: skip
        """New s^2 and l^2 from the present ones, given the squares q_j over `num_outputs`."""
        c = _inverse_gamma(rng, 1.0, 1.0 + 1.0 / local)
        b = _inverse_gamma(rng, 1.0, self.scale**-2 + 1.0 / common)
        shape = 0.5 * (1.0 + num_outputs)
        local = _inverse_gamma(rng, shape, 1.0 / c + 0.5 * squares / common)
        shape = 0.5 * (1.0 + num_outputs * len(squares))
        common = float(_inverse_gamma(rng, shape, 1.0 / b + 0.5 * (squares / local).sum()))
        return common, np.asarray(local)


@dataclass(frozen=True, slots=True, eq=False)
class ScaledRegressionState:
    """One point of the chain.

    Attributes
    ----------
    weights : array, ``(num_outputs, num_covariates)``
    common_var : float
        s^2.
    local_vars : array, ``(num_covariates,)``
        l_j^2; 1 for columns that do not take part.
    """

    weights: Annotated[FloatArray, "output", "covariate"]
    common_var: float
    local_vars: Annotated[FloatArray, "covariate"]


@dataclass(frozen=True, slots=True, eq=False)
class ScaledRegression(Checked):
    """A regression with independent weights whose prior variances are learned.

    Parameters
    ----------
    model : LogisticRegression, StickBreakingRegression, SoftmaxRegression or one of counts
        Its `weights_prior` has a diagonal covariance.
    scales : WeightScales
    scaled : bool array, ``(num_covariates,)``, optional
        Which columns take part; all if left out. An intercept should not.

    Notes
    -----
    A sweep is one of the weights, at the cost that `model` says, then the scales.
    """

    model: Any
    scales: WeightScales
    scaled: BoolArray | None = None

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(ScaledRegressionState)
    default_keep: ClassVar[tuple[str, ...]] = ("weights", "common_var", "local_vars")

    def _complete(self) -> None:
        prior = getattr(self.model, "weights_prior", None)
        if not hasattr(self.model, "move") or getattr(self.model, "scale_prior", None) is not None:
            raise TypeError(
                "model must be a regression with a fixed prior of its weights, got"
                f" {type(self.model).__name__}"
            )
        if prior is not None:
            cov = prior.prior_cov
            if (cov != np.diag(np.diagonal(cov))).any():
                raise ValueError("model must have independent weights: a diagonal weights_prior")

    def as_data(self, data: Any) -> Any:
        """Data as the model takes them."""
        return self.model.as_data(data)

    def coords(self, data: Any) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """No labels."""
        return {}

    def prior(self, rng: np.random.Generator, data: Any) -> ScaledRegressionState:
        """Scales, then weights."""
        moments = self.model.prior_of(data)
        which = self._which(moments.size)
        common, local = self.scales.sample(as_generator(rng), int(which.sum()))
        local_vars = np.ones(moments.size)
        local_vars[which] = local
        variances = self._variances(moments, common, local_vars)
        wide = MvNormal(moments.prior_mean, np.diag(variances))
        weights = replace(self.model, weights_prior=wide).prior(rng, data).weights
        return ScaledRegressionState(weights, common, local_vars)

    def simulate(self, rng: np.random.Generator, state: ScaledRegressionState, data: Any) -> Any:
        """New outcomes given the weights."""
        return self.model.simulate(rng, self.model.state_of(state.weights), data)

    def init(self, rng: np.random.Generator, data: Any) -> ScaledRegressionState:
        """One sweep from the start of the model with its own prior."""
        weights = self.model.init(rng, data).weights
        size = weights.shape[1]
        return self.step(rng, ScaledRegressionState(weights, 1.0, np.ones(size)), data)

    def step(
        self, rng: np.random.Generator, state: ScaledRegressionState, data: Any
    ) -> ScaledRegressionState:
        """One sweep: the weights, then the scales."""
        moments = self.model.prior_of(data)
        which = self._which(moments.size)
        variances = self._variances(moments, state.common_var, state.local_vars)
        weights = self.model.move(rng, state.weights, variances, data)
        if self.scales.is_local or rng.random() < _STRETCHED:
            state = self._stretched(rng, replace(state, weights=weights), data)
            weights = state.weights
        gaps = (weights - moments.prior_mean) ** 2 / np.diagonal(moments.prior_cov)
        common, local = self.scales.given(
            rng, gaps.sum(axis=0)[which], len(weights), state.common_var, state.local_vars[which]
        )
        local_vars = state.local_vars.copy()
        local_vars[which] = local
        return ScaledRegressionState(weights, common, local_vars)

    def _stretched(
        self, rng: np.random.Generator, state: ScaledRegressionState, data: Any
    ) -> ScaledRegressionState:
        """Scales and weights together, by a Gaussian in the rows' place, or the old state."""
        gram, pull = self.model.potential(data)
        mean = np.tile(self.model.prior_of(data).prior_mean, len(state.weights)).reshape(pull.shape)
        columns = np.flatnonzero(self._which(state.weights.shape[1]))
        away = state.weights.reshape(pull.shape) - mean
        log_local = 0.5 * np.log(state.local_vars[columns])
        law = Law(float(self.scales.scale), float(self.scales.dof), self.scales.is_local)
        log_common, gained = stretch(
            Surrogate(gram, pull - np.einsum("bij,bj->bi", gram, mean)), away, columns,
            len(state.local_vars), law, 0.5 * math.log(state.common_var), log_local, new_key(rng),
        )  # fmt: skip
        local_vars = state.local_vars.copy()
        local_vars[columns] = np.exp(2.0 * log_local)
        new = ScaledRegressionState(
            (away + mean).reshape(state.weights.shape), math.exp(2.0 * log_common), local_vars
        )
        gain = self.log_likelihood(new, data) - self.log_likelihood(state, data) - gained
        return new if gain > -rng.exponential() else state

    def log_likelihood(self, state: ScaledRegressionState, data: Any) -> float:
        """Log probability of the outcomes."""
        return float(self.model.log_likelihood(self.model.state_of(state.weights), data))

    def _which(self, size: int) -> BoolArray:
        if self.scaled is None:
            return np.ones(size, dtype=np.bool_)
        which = np.asarray(self.scaled)
        if which.shape != (size,) or which.dtype != np.bool_ or not which.any():
            raise ValueError(
                f"scaled must be True or False for each of {size} columns, and True for some"
            )
        return which

    def _variances(self, moments: MvNormal, common: float, local_vars: FloatArray) -> FloatArray:
        """Prior variances of the weights of an output."""
        factors = np.where(self._which(moments.size), common * local_vars, 1.0)
        return np.asarray(np.clip(factors, _LEAST, _MOST) * np.diagonal(moments.prior_cov))
