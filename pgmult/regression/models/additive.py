r"""Additive regression of categories: fixed effects, pooled groups, smooth curves, areas.

Rows have counts y_n of K categories and a predictor for each stick that is a sum over terms
(`pgmult.latent.terms`)::

    w_k | x_k  ~ N(0, Q(x_k)^-1)                   terms' weights, k = 1..K - 1 sticks
    x_k        ~ half-t standard deviations, LKJ(2) correlations, normal log length scales
    psi_nk     = (A w_k)_n + offset_n
    y_n        ~ Multinomial(N_n, stick-breaking(psi_n))

Given the data the sticks are independent, and each is a binomial regression with a latent Gaussian.
`pgmult.latent` finds an approximation of its posterior before the chain starts, and uses it in
exact moves of weights and hyperparameters. What a stick's coefficient means depends on the sticks
before it, so interpret probabilities instead.

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> table = {
...     "vote": rng.choice(["left", "right", "none"], p=[0.5, 0.3, 0.2], size=90),
...     "age": rng.integers(18, 80, size=90),
...     "region": [f"region {i % 10}" for i in range(90)],
... }
>>> data = pgmult.read(table).rows("vote ~ age + (1 | region)")
>>> posterior = pgmult.sample(
...     AdditiveRegression(), data, draws=1000, chains=1, random_seed=0, progressbar=False
... )
>>> posterior["sds"].shape, posterior["weights"].shape
((1, 1000, 2, 1), (1, 1000, 2, 12))
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from pgmult.core.blas import one_blas_thread
from pgmult.core.family import Family
from pgmult.core.parameters import Checked, axes_of, whole
from pgmult.core.typing import FloatArray, ObservedRows
from pgmult.formulas.design import Design
from pgmult.latent.approximation import Approximation
from pgmult.latent.predictors import Latent, as_priors, latent_of, prior_rows
from pgmult.priors import LogNormal
from pgmult.regression.data import AdditiveRows
from pgmult.regression.family import REGRESSION
from pgmult.regression.models.approximated import approximated, dense_parts, joint_of, whole_latent
from pgmult.regression.models.links import Link, link_of
from pgmult.regression.models.moves import SIZES, swept

_SIZE = LogNormal(3.0, 2.0)  # of a negative binomial
_SHIFT_DRAWS = 100


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveRegressionState:
    """One point of the chain.

    Attributes
    ----------
    weights : array
        Of the sticks, in their order.
    hyperparameters : array
        Coordinates of all terms' hyperparameters: see `pgmult.latent.terms`.
    """

    weights: Annotated[FloatArray, "stick", "weight"]
    hyperparameters: Annotated[FloatArray, "stick", "hyperparameter"]


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveRegression(Checked):
    """Outcomes whose predictors are sums of terms, sampled around an approximation.

    Parameters
    ----------
    effects : str
        What terms act on. "sticks": each stick has effects of its own, the fastest. "categories":
        each category has, with the same prior, so that the order of sticks hardly matters.
        "softmax": categories, with the softmax as the link, which has no order.
    priors : mapping from term to law, optional
        Terms as the formula writes them, ``"(1 + x | g)"``, names of columns of the design, or
        "fixed" for all of these but the intercept. Laws are those of `pgmult.priors`, in the units
        of the table's columns: `Normal` of coefficients, `HalfT` of standard deviations, `LKJ` of
        correlations, `LogNormal` of the length scale of a process or, as "size", of that of
        negative binomial counts; several of them as a tuple. "fixed" may be `HalfT`, with one
        learned standard deviation of all effects of a column's standard deviation, or `Horseshoe`,
        with one for each.
    kicks : int
        Gradient kicks on each Hamiltonian path of the weights; more where the approximation is far
        from the posterior, one or two where it is near.
    method : {"sampling", "approximate"}
        Whether to sample the posterior, or to draw independently from its approximation: without
        tuning, and as accurate as the spread in `approximations` says.

    Notes
    -----
    A sweep costs some ten solves with the factor of a stick's precision, and two factorisations,
    for each stick: O(G d**3 + G d r**2 + r**3) with G levels of the largest grouping, d effects of
    each and r other weights, or that of a sparse factor where r is above 1,500. If sticks share
    effects they are one problem: d and r are multiplied by the number of categories.
    """

    effects: Literal["sticks", "categories", "softmax"] = "sticks"
    priors: Annotated[Mapping[str, Any], as_priors] = field(default_factory=dict)
    kicks: Annotated[int, whole()] = 3
    method: Literal["sampling", "approximate"] = "sampling"

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(AdditiveRegressionState) | {
        "sds": ("stick", "sd"),
        "probs": ("row", "category"),
    }
    default_keep: ClassVar[tuple[str, ...]] = ("weights", "hyperparameters", "sds")
    family: ClassVar[Family] = REGRESSION

    @property
    def draws_anew(self) -> bool:
        """Whether draws are independent draws from the approximation."""
        return self.method == "approximate"

    def as_data(self, data: Any) -> AdditiveRows:
        """Rows, or what they are read from: ``(formula, table)``."""
        from pgmult.regression.rows import rows_of

        if isinstance(data, AdditiveRows):
            return data
        if isinstance(data, tuple) and len(data) == 2:
            return rows_of(*data)
        raise TypeError(
            "data must be table.rows(formula), or a tuple (formula, table), got"
            f" {type(data).__name__}"
        )

    def coords(self, data: AdditiveRows) -> Mapping[str, NDArray[Any]]:
        """Labels of categories, sticks, weights and standard deviations."""
        latent = whole_latent(data, self)
        sticks = data.categories[data.order[: data.num_sticks]]
        return {
            "category": data.categories,
            "stick": sticks if latent.num_sticks == 1 else np.array(["every stick"]),
            "weight": latent.names,
            "sd": latent.sd_names,
        }

    def link(self, data: AdditiveRows) -> Link:
        """The link from psi to probabilities, its sticks in the order of the data."""
        return link_of(self.as_data(data), self.effects)

    def latent(self, data: AdditiveRows, design: Design | None = None) -> Latent:
        """The latent Gaussian at the data's rows, or at those of another design.

        ``design`` is one of ``data.design.like(table, new_levels=True)``. `Latent.draw` gives the
        predictors of its rows at a draw's weights and hyperparameters.
        """
        if design is None:
            return whole_latent(data, self)
        return latent_of(design, self.priors, joint_of(data, self.effects))

    def prior_table(self, data: AdditiveRows) -> list[tuple[str, str, str]]:
        """Every prior: its term, the parameter and the law, in the units of the columns."""
        told = prior_rows(data.design, self.priors)
        if data.family == "negative_binomial":
            told.append(("outcome", "size", str(self.priors.get("size", _SIZE))))
        return told

    def order_shift(self, data: AdditiveRows) -> float:
        """How far probabilities move if sticks break in reverse order, in posterior sds.

        The root of the mean square over cells and categories, by the approximations of both orders;
        0 for a softmax, which has no order.
        """
        if self.effects == "softmax":
            return 0.0
        found = []
        for each in (data, replace(data, order=data.order[::-1].copy())):
            rng = np.random.default_rng(0)
            draws = [self.probs(self.init(rng, each), each) for _ in range(_SHIFT_DRAWS)]
            found.append((np.mean(draws, axis=0), np.var(draws, axis=0)))
        (mean, var), (other_mean, other_var) = found
        squares = (mean - other_mean) ** 2 / (0.5 * (var + other_var) + 1e-12)
        return math.sqrt(max(float(np.mean(squares)) - 2.0 / _SHIFT_DRAWS, 0.0))

    def approximations(self, data: AdditiveRows) -> tuple[Approximation, ...]:
        """The Gaussian approximation of each stick's posterior, and how close it is."""
        return tuple(found for _, _, found in approximated(data, self))

    def prior(self, rng: np.random.Generator, data: AdditiveRows) -> AdditiveRegressionState:
        """Hyperparameters and weights from the prior."""
        latent = whole_latent(data, self)
        num = data.num_sticks if self.effects == "sticks" else 1
        drawn = [latent.family.sample(rng) for _ in range(num)]
        if data.family == "negative_binomial":
            law = self.priors.get("size", _SIZE)
            size = law.median * math.exp(law.sd * rng.standard_normal())
            drawn = [(np.append(x, math.log(np.clip(size, *SIZES))), w) for x, w in drawn]
        x, w = (np.array(parts) for parts in zip(*drawn, strict=True))
        return AdditiveRegressionState(w, x)

    def simulate(
        self, rng: np.random.Generator, state: AdditiveRegressionState, data: AdditiveRows
    ) -> AdditiveRows:
        """New counts of the same totals, with the sticks in the same order."""
        data.refuse_weights("to be simulated")
        (size,) = self.sizes(state.hyperparameters[None], data).tolist()
        return data.simulated(rng, self.probs(state, data), size)

    def init(self, rng: np.random.Generator, data: AdditiveRows) -> AdditiveRegressionState:
        """A draw from the approximation."""
        return _state_of([block.sample(rng) for block in approximated(data, self)])

    def step(
        self, rng: np.random.Generator, state: AdditiveRegressionState, data: AdditiveRows
    ) -> AdditiveRegressionState:
        """One sweep over all sticks, or a draw from the approximation."""
        if self.method == "approximate":
            return self.init(rng, data)
        points = list(zip(state.hyperparameters, state.weights, strict=True))
        law = self.priors.get("size", _SIZE)
        with one_blas_thread():
            parts, dense = approximated(data, self), dense_parts(data, self)
            return _state_of(swept(rng, points, parts, dense, self.kicks, law))

    def state_of(self, weights: FloatArray, hyperparameters: FloatArray) -> AdditiveRegressionState:
        """The state with these numbers, as a draw keeps them."""
        return AdditiveRegressionState(weights, hyperparameters)

    def log_likelihood(self, state: AdditiveRegressionState, data: AdditiveRows) -> float:
        """Log probability of the counts, without multinomial coefficients."""
        (size,) = self.sizes(state.hyperparameters[None], data).tolist()
        link = link_of(data, self.effects, size)
        return float(link.log_likelihood(self.predictors(state, data), data.counts).sum())

    def sizes(self, hyperparameters: FloatArray, data: AdditiveRows) -> FloatArray:
        """Sizes of negative binomial counts in several draws; infinite for other outcomes."""
        if data.family != "negative_binomial":
            return np.full(len(hyperparameters), math.inf)
        return np.exp(hyperparameters[:, 0, -1])

    def predictors(self, state: AdditiveRegressionState, data: AdditiveRows) -> FloatArray:
        """Predictors of rows and sticks, ``(num_rows, num_sticks)``; or categories, "softmax"."""
        latent = whole_latent(data, self)
        psi = np.concatenate([latent.family.predictor(w) for w in state.weights])
        return psi.reshape(len(state.weights) * latent.num_sticks, -1).T.copy()

    def probs(self, state: AdditiveRegressionState, data: AdditiveRows) -> FloatArray:
        """Probabilities of all rows and categories; mean numbers of events."""
        return self.link(data).probs(self.predictors(state, data))

    def observed_rows(self, data: AdditiveRows) -> ObservedRows:
        """The respondents, one per row; the cells, where respondents are more than 100,000.

        Raises
        ------
        ValueError
            If the rows are events, or have fractional weights.
        """
        return data.observed()

    def row_probs(self, draw: Mapping[str, NDArray[Any]], data: AdditiveRows) -> FloatArray:
        """Probabilities of the observed rows, given a draw of weights.

        Raises
        ------
        ValueError
            If the weights were not kept.
        """
        if "weights" not in draw:
            raise ValueError("weights must be kept to tell the probabilities of rows")
        state = self.state_of(draw["weights"], draw["weights"][:, :0])
        return data.of_observed(self.probs(state, data))

    def sds(self, state: AdditiveRegressionState, data: AdditiveRows) -> FloatArray:
        """Standard deviations of all terms that have one; of slopes, in their columns' units."""
        latent = whole_latent(data, self)
        return np.array([latent.sds(x) for x in state.hyperparameters])


def _state_of(points: Sequence[tuple[FloatArray, FloatArray]]) -> AdditiveRegressionState:
    x, w = (np.array(parts) for parts in zip(*points, strict=True))
    return AdditiveRegressionState(w, x)
