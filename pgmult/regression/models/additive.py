r"""Additive regression of categories: fixed effects, pooled groups, smooth curves, areas.

Rows have counts y_n of K categories, and a predictor for each score that is a sum over terms
(`pgmult.latent.terms`)::

    w_k | x_k  ~ N(0, Q(x_k)^-1)                   terms' weights of score k
    x_k        ~ half-t standard deviations, LKJ(2) correlations, normal log length scales
    psi_nk     = (A w_k)_n + offset_nk
    y_n        ~ Multinomial(N_n, link(psi_n))

The link says what a score is:

* "softmax", for categories without an order: K scores, whose exponentials are proportional to the
  probabilities (multinomial logit). All have the same prior and hyperparameters.
* "cumulative", for categories in an order: score k is the log odds of category k or a higher one.
  Scores share all effects but the intercept (proportional odds).
* "stick_breaking": score k is the log odds of category k among itself and those after it, with
  effects and hyperparameters of its own. In the order of the categories this is the sequential or
  continuation-ratio model. With two categories it is a logistic regression.

Rows that are counts scatter: y_n is Dirichlet-multinomial with mean probabilities from the link,
or beta-binomial, and the concentration is learned. Given the data, `pgmult.latent` finds an
approximation of the posterior before the chain starts, and uses it in exact moves of weights and
hyperparameters.

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
((1, 1000, 1, 1), (1, 1000, 3, 12))
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_strings
from pgmult.core.family import Family
from pgmult.core.memory import once_a_data_set
from pgmult.core.parameters import Checked, axes_of, whole
from pgmult.core.sweeps import Sampled, sampler_of
from pgmult.core.typing import Array, BoolArray, FloatArray, Generator, ObservedRows
from pgmult.formulas.design import Design
from pgmult.latent.approximation import Approximation
from pgmult.latent.predictors import Latent, as_priors, check_priors, latent_of, prior_rows
from pgmult.links import StickBreaking
from pgmult.priors import Horseshoe
from pgmult.regression.data import MOST_EVENTS, AdditiveRows, scattered
from pgmult.regression.family import REGRESSION
from pgmult.regression.models.blocks import Contrasts, Ordered, ScoreBlocks, Structure
from pgmult.regression.models.sampler import AdditiveRegressionState, RegressionSampler, SizePrior
from pgmult.variational.sites import CountSite

LinkName = Literal["auto", "softmax", "cumulative", "stick_breaking"]


class ScoreLink(NamedTuple):
    """How scores of rows, ``(..., num_scores)``, become probabilities, or means of events."""

    probs: Callable[[FloatArray], FloatArray]


def _rates(psi: FloatArray) -> FloatArray:
    """Mean numbers of events, exp psi."""
    return np.asarray(np.exp(np.minimum(psi, MOST_EVENTS)))


def _softmax(scores: FloatArray) -> FloatArray:
    """Probabilities of categories with a score each (McFadden 1974)."""
    columns = np.ascontiguousarray(np.moveaxis(scores, -1, 0))  # sums of few are slow by rows
    shares = np.exp(columns - columns.max(axis=0))
    shares /= shares.sum(axis=0)
    return np.moveaxis(shares, 0, -1)


def _cumulative(scores: FloatArray) -> FloatArray:
    """Probabilities of categories in an order; 0 for one whose scores are not (McCullagh 1980).

    Score s_k is the log odds of category k or a higher one, k = 1..K - 1. With s_k > s_{k+1},
    category k has probability sigma(s_k) - sigma(s_{k+1}), which is sigma(s_k) sigma(-s_{k+1}) (1 -
    exp(s_{k+1} - s_k)).
    """
    s = np.ascontiguousarray(np.moveaxis(scores, -1, 0))  # sums of few are slow by rows
    tail = np.exp(-np.abs(s))
    small, large = tail / (1.0 + tail), 1.0 / (1.0 + tail)
    above, below = np.where(s > 0.0, large, small), np.where(s > 0.0, small, large)
    between = -np.expm1(-np.maximum(s[:-1] - s[1:], 0.0))
    probs = np.concatenate([below[:1], above[:-1] * below[1:] * between, above[-1:]])
    probs /= probs.sum(axis=0)
    return np.moveaxis(probs, 0, -1)


_LINKS = {"log": _rates, "softmax": _softmax, "cumulative": _cumulative}  # others are sticks


def _names(value: object, name: str) -> tuple[str, ...]:
    return tuple([value] if isinstance(value, str) else as_strings(value, name))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AdditiveRegression(Sampled[AdditiveRows, AdditiveRegressionState], Checked):
    """Outcomes whose predictors are sums of terms, sampled around an approximation.

    Parameters
    ----------
    link : str
        "softmax", "cumulative" or "stick_breaking". By default ("auto") "cumulative" for ordered
        categories, "softmax" for others, and the logistic link for two. Events have the log link.
    specific : sequence of str
        Columns of the design, or of the table if they are numbers, whose effects differ between
        scores of a cumulative link (partial proportional odds).
    priors : mapping from term to distribution, optional
        Terms as the formula writes them, ``"(1 + x | g)"``, names of columns of the design, or
        "fixed" for all of these but the intercept. Distributions are those of `pgmult.priors`, in
        the units of the table's columns: `Normal` for coefficients, `HalfT` for standard
        deviations, `LKJ` for correlations, `LogNormal` for the length scale of a process or, as
        "size", for that of negative binomial counts; several of them as a tuple. "fixed" may be
        `HalfT`, with one learned standard deviation of all effects of a column's standard
        deviation, or `Horseshoe`, with one for each. "scatter" is the `HalfT` prior of
        1 / sqrt(concentration) of counts that scatter.
    kicks : int
        Gradient kicks on each Hamiltonian path of the weights; more where the approximation is far
        from the posterior, one or two where it is near.
    method : {"sampling", "approximate"}
        Whether to sample the posterior, or to draw independently from its approximation: without
        tuning, and as accurate as the spread in `approximations` says.

    Notes
    -----
    A sweep costs some ten solves with the factor of a block's precision, and two factorisations:
    O(G d**3 + G d r**2 + r**3) with G levels of the largest grouping, d effects of each and r other
    weights, or that of a sparse factor where r is above 1,500. Sticks are a block each; scores of a
    softmax are one block, where d and r are multiplied by the number of categories less one.
    """

    link: LinkName = "auto"
    specific: Annotated[tuple[str, ...], _names] = ()
    priors: Annotated[Mapping[str, Any], as_priors] = field(default_factory=dict)
    kicks: Annotated[int, whole()] = 3
    method: Literal["sampling", "approximate"] = "sampling"

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(AdditiveRegressionState) | {
        "sds": ("block", "sd"),
        "probs": ("row", "category"),
    }
    default_keep: ClassVar[tuple[str, ...]] = ("weights", "hyperparameters", "sds")
    monitored: ClassVar[tuple[str, ...]] = ("weights", "sds")
    family: ClassVar[Family] = REGRESSION

    @property
    def draws_anew(self) -> bool:
        """Whether draws are independent draws from the approximation."""
        return self.method == "approximate"

    def as_data(self, data: object) -> AdditiveRows:
        """Rows, or what they are read from: ``(formula, table)``."""
        from pgmult.regression.rows import rows_of

        if isinstance(data, AdditiveRows):
            return data
        if isinstance(data, tuple) and len(data) == 2:
            return rows_of(*data)
        must = "data must be table.rows(formula), or a tuple (formula, table)"
        raise TypeError(f"{must}, got {type(data).__name__}")

    def link_name(self, data: AdditiveRows) -> str:
        """The link of these data: "log", "logistic" or one of those of `link`.

        Raises
        ------
        ValueError
            If the link and the outcome do not go together.
        """
        if data.is_events:
            if self.link != "auto":
                raise ValueError(f"link must be left out for events, got {self.link!r}")
            return "log"
        if data.num_categories == 2:
            return "logistic"
        by_default = "cumulative" if data.is_ordered else "softmax"
        name = by_default if self.link == "auto" else str(self.link)
        if data.scatters and name != "softmax":
            hint = 'family="categories" is of rows that do not'
            raise ValueError(f"rows that scatter have the softmax link, got {name!r} ({hint})")
        return name

    def coords(self, data: AdditiveRows) -> Mapping[str, Array]:
        """Labels of categories, scores, blocks, weights and standard deviations."""
        name, latent, scores = self.link_name(data), self.latent(data), data.categories
        if name == "cumulative":
            scores = scores[1:]
        elif name != "softmax":
            scores = scores[data.order[: data.num_sticks]]
        is_together = name in ("softmax", "cumulative")
        return {
            "category": data.categories, "score": scores,
            "block": np.array(["every category"]) if is_together else scores,
            "weight": latent.names, "sd": latent.sd_names,
        }  # fmt: skip

    def probability_link(self, data: AdditiveRows) -> StickBreaking | ScoreLink:
        """The link from scores to probabilities, or to mean numbers of events."""
        data = self.as_data(data)
        name = self.link_name(data)
        return ScoreLink(_LINKS[name]) if name in _LINKS else StickBreaking(data.order)

    def latent(self, data: AdditiveRows, design: Design | None = None) -> Latent:
        """The latent Gaussian at the data's rows, or at those of another design.

        ``design`` is one of ``data.design.like(table, new_levels=True)``. `Latent.draw` gives the
        scores of its rows at a draw's weights and hyperparameters.
        """
        return _latent_of_rows(data, self) if design is None else _latent(data, design, self)

    def prior_table(self, data: AdditiveRows) -> list[tuple[str, str, str]]:
        """Every prior: its term, the parameter and the distribution, in the columns' units."""
        table = prior_rows(data.design, self.priors)
        if data.is_sized:
            size = str(SizePrior.of(data, self.priors).prior)
            scatter = "scatter of rows", "1 / sqrt(concentration)", size
            table.append(scatter if data.scatters else ("outcome", "size", size))
        return table

    def approximations(self, data: AdditiveRows) -> tuple[Approximation, ...]:
        """The Gaussian approximation of each block's posterior, and how close it is."""
        sampler: Any = sampler_of(self, data)
        return tuple(block.base for block in sampler.blocks)

    def sampler(self, data: AdditiveRows) -> RegressionSampler:
        """The sampler of a data set, with approximations of its posterior."""
        return RegressionSampler(data, structure_of(data, self), self)

    def prior(self, rng: Generator, data: AdditiveRows) -> AdditiveRegressionState:
        """Hyperparameters and weights from the prior."""
        structure = structure_of(data, self)
        x, flat = map(list, zip(*structure.prior(rng), strict=True))
        if data.is_sized:
            size = SizePrior.of(data, self.priors)
            x = [np.append(block, size.sample(rng)) for block in x]
        return AdditiveRegressionState(structure.weights(flat), np.array(x))

    def simulate(
        self, rng: Generator, state: AdditiveRegressionState, data: AdditiveRows
    ) -> AdditiveRows:
        """New counts of the same totals."""
        data.refuse_weights("to be simulated")
        (size,) = self.sizes(state.hyperparameters[None], data).tolist()
        return data.simulated(rng, self.probs(state, data), size)

    def log_likelihood(self, state: AdditiveRegressionState, data: AdditiveRows) -> float:
        """Log probability of the counts, without multinomial coefficients."""
        (size,) = self.sizes(state.hyperparameters[None], data).tolist()
        if data.is_events:
            events = CountSite(data.counts[:, 0].astype(np.float64), size, data.times)
            return float(events.value(self.predictors(state, data)[:, 0]).sum())
        probs = self.probs(state, data)
        if data.scatters:
            return float(scattered(data.counts, probs, size).sum())
        return float(np.sum(data.counts * np.log(np.maximum(probs, 1e-300))))

    def sizes(self, hyperparameters: FloatArray, data: AdditiveRows) -> FloatArray:
        """Sizes of negative binomial counts, or concentrations of counts that scatter, by draw.

        They are infinite for other outcomes.
        """
        if not data.is_sized:
            return np.full(len(hyperparameters), math.inf)
        return np.exp(hyperparameters[:, 0, -1])

    def predictors(self, state: AdditiveRegressionState, data: AdditiveRows) -> FloatArray:
        """Scores of rows, ``(num_rows, num_scores)``."""
        return self.latent(data).predictors(state.weights)

    def probs(self, state: AdditiveRegressionState, data: AdditiveRows) -> FloatArray:
        """Probabilities of all rows and categories; mean numbers of events."""
        return self.probability_link(data).probs(self.predictors(state, data))

    def observed_rows(self, data: AdditiveRows) -> ObservedRows:
        """The observations, one per row; the cells, where observations are more than 100,000.

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
            raise ValueError("weights must be kept for the probabilities of rows")
        scores = self.latent(data).predictors(draw["weights"])
        return data.of_observed(self.probability_link(data).probs(scores))

    def sds(self, state: AdditiveRegressionState, data: AdditiveRows) -> FloatArray:
        """Standard deviations of all terms that have one; of slopes, in their columns' units."""
        return np.array([self.latent(data).sds(x) for x in state.hyperparameters])


def _specific(design: Design, model: AdditiveRegression) -> BoolArray:
    """Columns of the design whose effects differ between scores of a cumulative link."""
    names = design.names.tolist()
    if "Intercept" not in names:
        raise ValueError("ordered categories need an intercept: take - 1 out of the formula")
    mask: BoolArray = design.names == "Intercept"
    for name in model.specific:
        matches = np.array([n == name or n.startswith(f"{name}[") for n in names])
        if not matches.any():
            raise ValueError(f"specific must name columns of {', '.join(names)}, got {name!r}")
        mask |= matches
    if isinstance(model.priors.get("fixed"), Horseshoe) and mask.sum() > 1:
        raise ValueError("specific effects have normal priors: leave Horseshoe out of priors")
    return mask


def _latent(data: AdditiveRows, design: Design, model: AdditiveRegression) -> Latent:
    """Terms and design of rows, and offsets of their scores."""
    name = model.link_name(data)
    others = {"size": data.family == "negative_binomial", "scatter": data.scatters}
    priors = {k: v for k, v in model.priors.items() if not others.get(k, False)}
    check_priors(design, priors, learns_scales=True)
    latent, is_shared = latent_of(design, model.priors), name == "cumulative"
    return replace(latent, offset=data.offsets(design, name), is_shared=is_shared)


@once_a_data_set
def _latent_of_rows(data: AdditiveRows, model: AdditiveRegression) -> Latent:
    """Terms and design of all rows."""
    return _latent(data, data.design, model)


@once_a_data_set
def structure_of(data: AdditiveRows, model: AdditiveRegression) -> Structure:
    """How weights fall into blocks that are sampled together."""
    name, latent = model.link_name(data), model.latent(data)
    if model.specific and name != "cumulative":
        raise ValueError(f"specific is for the cumulative link, got {name!r}")
    if name == "softmax":
        return Contrasts.of(data, latent)
    if name == "cumulative":
        columns = _specific(data.design, model)
        shared = latent_of(data.design, model.priors, ~columns)
        return Ordered.of(data, replace(shared, offset=latent.offset), columns, model.priors)
    return ScoreBlocks.of(data, latent)
