"""What covariates do to the prevalence of topics: expected shares and their differences.

A coefficient lives on a stick, and what it does to a topic depends on the sticks before it. So an
effect is read from the expected shares of topics, E[theta | x], at settings of one covariate, and
from their differences. For a draw of (B, u, Sigma, rho) and rows x of the other covariates,

    E[theta | setting] = mean over rows x of  E[link(B' x(setting) + u + eps)],  eps ~ N(0, Sigma),

all other columns as in the documents (``average="observed"``), at typical values, or as in other
documents, which are given as a table. What is known of an author's own level u depends on what is
asked (``scope``): of a *new* author, whose u is drawn from its prior N(0, rho Sigma) along with
eps, the answer is about the population; of the authors of *these documents*, whose u the texts tell
of, it is about them. Intervals are over all draws of all chains, their topics matched.

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> counts = rng.poisson(0.5, size=(20, 30))
>>> data = pgmult.topics.with_covariates(counts, {"year": np.arange(20), "party": ["D", "R"] * 10})
>>> posterior = pgmult.sample(
...     pgmult.topics.StructuralTopics(num_topics=3), data,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> found = effects(posterior, "party")
>>> found.mean.shape, found.labels
((2, 3), ['D', 'R'])
>>> bool(np.isclose(difference(found, "R", "D").mean.sum(), 0.0))
True
"""

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from pgmult.core.arguments import as_choice, as_kind, as_probability, as_repeats, as_seed, brief
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.structured import StructuredCorpus
from pgmult.topics.data.terms import Term, are_free
from pgmult.topics.draws import (
    as_draws,
    as_topic_numbers,
    names_along,
    of_chain,
    quantile,
    regression_at,
    regression_variables,
    share_of_draws,
    spread,
    with_model,
)
from pgmult.topics.summaries.matching import (
    aligned_chains,
    best_chain,
    each_aligned,
    mean_topics,
    scope_of,
)
from pgmult.topics.summaries.settings import FEW, as_column, lay_out, value_text
from pgmult.topics.summaries.tables import (
    SummaryTable,
    Tabled,
    interval,
    percent,
    points,
    probability_text,
)

__all__ = [
    "Difference",
    "Effects",
    "difference",
    "difference_at",
    "effects",
    "shares_over_time",
    "structured_data",
    "topic_names",
    "variance_shares",
]

_NAME_WORDS = 3


class _OverDraws(Tabled):
    """Means and intervals of draws, nan where a draw's chain did not find the topic."""

    __slots__ = ()
    draws: FloatArray
    probability: float

    @property
    def mean(self) -> FloatArray:
        """Posterior mean, ``(setting or group, topic)``."""
        return np.asarray(np.nanmean(self.draws, axis=0))

    @property
    def lower(self) -> FloatArray:
        """Lower end of the interval, ``(setting or group, topic)``."""
        return np.asarray(quantile(self.draws, 0.5 - 0.5 * self.probability, axis=0))

    @property
    def upper(self) -> FloatArray:
        """Upper end of the interval, ``(setting or group, topic)``."""
        return np.asarray(quantile(self.draws, 0.5 + 0.5 * self.probability, axis=0))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Effects(_OverDraws):
    """Posterior of expected shares of topics at settings of a covariate; printed, a table.

    Attributes
    ----------
    draws : array, ``(draw, setting, topic)``
        nan for a topic that the draw's chain did not find.
    settings : mapping from a column's name to its value in each setting
    variable : str or None
        The column whose effect it is; None where settings were given as a table.
    by : str or None
        The column whose values divide the settings into groups.
    names : list of str
        Number and most probable words of each topic.
    probability : float
        Of the central interval from `lower` to `upper`.
    about : str
        What was averaged over what, in a sentence.
    scope : str
        What intervals are over: draws within one chain, or over the chains that found a topic.
    """

    draws: FloatArray
    settings: Mapping[str, list[Any]]
    variable: str | None
    by: str | None
    names: list[str]
    probability: float
    about: str
    scope: str

    @property
    def labels(self) -> list[str]:
        """Each setting in words."""
        if self.variable is not None and self.by is None:
            return [value_text(value) for value in self.settings[self.variable]]
        columns = list(self.settings)
        rows = zip(*self.settings.values(), strict=True)
        return [
            ", ".join(f"{c} {value_text(v)}" for c, v in zip(columns, row, strict=True))
            for row in rows
        ]

    @property
    def groups(self) -> dict[str, IntArray]:
        """The settings of each value of `by`, in order; one group without a name if there is none.

        A group's first setting is what its others are compared with in `table`.
        """
        size = self.draws.shape[1]
        if self.by is None:
            return {"": np.arange(size)}
        values = [value_text(value) for value in self.settings[self.by]]
        return {
            value: np.array([i for i in range(size) if values[i] == value])
            for value in dict.fromkeys(values)
        }

    @property
    def ends(self) -> IntArray:
        """The settings to list, ``(listed,)``: of a curve's numbers each group's first and last."""
        if not self.is_curve or self.draws.shape[1] <= FEW:
            return np.arange(self.draws.shape[1])
        listed = [rows[[0, -1]] for rows in self.groups.values()]
        return np.concatenate(listed)

    @property
    def is_curve(self) -> bool:
        """Whether the variable's values are numbers."""
        return self.variable is not None and all(
            isinstance(value, numbers.Real) for value in self.settings[self.variable]
        )

    @property
    def numbers(self) -> FloatArray:
        """The variable's value in each setting, ``(setting,)``.

        Raises
        ------
        ValueError
            If they are labels, or several columns.
        """
        if not self.is_curve:
            raise ValueError(
                "effects must be of a column of numbers to make a curve, got settings"
                f" {', '.join(self.labels[:3])} (their figure is pgmult.topics.plots.forest)"
            )
        return np.array(self.settings[str(self.variable)], dtype=np.float64)

    @property
    def caption(self) -> str:
        """What the numbers are, over which draws."""
        return f"{self.about} Posterior mean and {_percent(self)} interval, {self.scope}."

    def take(self, topics: Sequence[int] | IntArray) -> "Effects":
        """The same of some topics, in another order."""
        rows = as_topic_numbers(topics, len(self.names))
        return replace(self, draws=self.draws[..., rows], names=[self.names[int(k)] for k in rows])

    def table(self) -> SummaryTable:
        """Every topic's expected share at every setting, and how it differs from the first.

        Of numbers that a curve goes along, the lowest and the highest. P(>0) is the share of draws
        in which the share is larger than at the group's first setting.
        """
        mean, lower, upper = self.mean, self.lower, self.upper
        listed = self.ends
        columns: dict[str, list[Any]] = {}
        shown: dict[str, list[str]] = {}

        def put(name: str, value: Any, head: str = "", text: str = "") -> None:
            columns.setdefault(name, []).append(value)
            if head:
                shown.setdefault(head, []).append(text)

        for k, name in enumerate(self.names):
            fresh = name
            for group, rows in self.groups.items():
                ends = rows[np.isin(rows, listed)]
                compared = difference_at(self, ends, int(ends[0]))
                for place, i in enumerate(ends):
                    put("topic", k)
                    put("words", name, "topic", fresh)
                    fresh = ""
                    if self.by is not None:
                        put(self.by, self.settings[self.by][i], self.by, group if not place else "")
                    if self.variable is None:
                        put("setting", self.labels[i], "setting", self.labels[i])
                    else:
                        value = self.settings[self.variable][i]
                        put(self.variable, value, self.variable, value_text(value))
                    put("share", mean[i, k], "share, %", percent(mean[i, k]))
                    put("share_lower", lower[i, k])
                    put(
                        "share_upper", upper[i, k],
                        _percent(self), interval(lower[i, k], upper[i, k]),
                    )  # fmt: skip
                    gap, low, high, positive = (
                        (x[place, k] for x in compared) if place else (np.nan,) * 4
                    )
                    put("difference", gap, "difference", points(gap))
                    put("lower", low)
                    put("upper", high, f"{_percent(self)} ", interval(low, high, points))
                    put("p_positive", positive, "P(>0)", probability_text(positive))
        first = next(iter(self.groups.values()))[0]
        against = (
            f"{self.variable} {value_text(self.settings[self.variable][first])}"
            if self.variable is not None
            else self.labels[first]
        )
        caption = f"{self.caption} Differences, in percentage points, are from {against}."
        return SummaryTable(caption, columns, shown)

    @property
    def figure(self) -> Any:
        """The matplotlib figure of `pgmult.topics.plots.forest`."""
        from pgmult.topics.plots import forest

        return forest(self).figure


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Difference(_OverDraws):
    """Posterior of how much more of each topic is expected in one setting than in another.

    Attributes
    ----------
    draws : array, ``(draw, group, topic)``
        In shares, from -1 to 1; nan for a topic that the draw's chain did not find.
    label : str
        The two settings in words.
    by : str or None
        The column whose values are the groups.
    groups : list of str
        One without a name if there is no `by`.
    names, probability, about, scope
        As of `Effects`.
    """

    draws: FloatArray
    label: str
    by: str | None
    groups: list[str]
    names: list[str]
    probability: float
    about: str
    scope: str

    @property
    def p_positive(self) -> FloatArray:
        """Posterior probability that the difference is above 0, ``(group, topic)``."""
        return _share_positive(self.draws)

    @property
    def caption(self) -> str:
        """What the numbers are, over which draws."""
        return (
            f"{_sentence_case(self.label)}, in percentage points. {self.about} Posterior mean and"
            f" {_percent(self)} interval, {self.scope}."
        )

    def take(self, topics: Sequence[int] | IntArray) -> "Difference":
        """The same of some topics, in another order."""
        rows = as_topic_numbers(topics, len(self.names))
        return replace(self, draws=self.draws[..., rows], names=[self.names[int(k)] for k in rows])

    def between(self, group: str, other: str) -> "Difference":
        """How much larger the difference is in one group than in another: an interaction."""
        g, h = (
            self.groups.index(as_choice(value_text(one), name, self.groups))
            for one, name in ((group, "group"), (other, "other"))
        )
        label = f"{self.label}, {self.by} {group} over {other}"
        return replace(
            self, draws=(self.draws[:, g] - self.draws[:, h])[:, None], label=label, by=None,
            groups=[""],
        )  # fmt: skip

    def table(self) -> SummaryTable:
        """Mean, interval and P(>0) of every topic, in every group."""
        mean, lower, upper, positive = self.mean, self.lower, self.upper, self.p_positive
        places = [(k, g) for k in range(len(self.names)) for g in range(len(self.groups))]
        columns: dict[str, list[Any]] = {
            "topic": [k for k, _ in places],
            "words": [self.names[k] for k, _ in places],
        }
        shown = {"topic": [self.names[k] if g == 0 else "" for k, g in places]}
        if self.by is not None:
            columns[self.by] = [self.groups[g] for _, g in places]
            shown[self.by] = [self.groups[g] for _, g in places]
        for name, values in (
            ("difference", mean), ("lower", lower), ("upper", upper), ("p_positive", positive),
        ):  # fmt: skip
            columns[name] = [float(values[g, k]) for k, g in places]
        shown["difference"] = [points(x) for x in columns["difference"]]
        shown[_percent(self)] = [
            interval(a, b, points) for a, b in zip(columns["lower"], columns["upper"], strict=True)
        ]
        shown["P(>0)"] = [probability_text(x) for x in columns["p_positive"]]
        return SummaryTable(self.caption, columns, shown)

    @property
    def figure(self) -> Any:
        """The matplotlib figure of `pgmult.topics.plots.forest`."""
        from pgmult.topics.plots import forest

        return forest(self).figure


def effects(
    posterior: Posterior,
    variable: Any,
    *,
    at: Mapping[str, Any] | None = None,
    by: str | None = None,
    average: Any = "observed",
    scope: Literal["population", "documents"] = "population",
    data: StructuredCorpus | None = None,
    chain: int | None = None,
    num_simulated: int = 1000,
    max_draws: int = 1000,
    probability: float = 0.9,
    random_seed: int = 0,
) -> Effects:
    """Expected shares of topics at settings of a covariate, over all draws of all chains.

    For each draw, theta = link(psi) is averaged over rows of the other covariates and over psi,
    simulated around the mean of each. All draws and all settings share the same rows and the same
    standard normals, in pairs of opposite sign, so that Monte Carlo error hardly touches intervals
    and differences.

    Parameters
    ----------
    posterior : Posterior
        Of `pgmult.topics.StructuralTopics`, with ``coefficients`` and ``Sigma``, and with
        ``effects``, ``effect_variances`` and ``effect_covariances`` where there are any.
    variable : str, or a table of settings
        A column that prevalence depends on: its labels are the settings, or 25 values between the
        smallest and largest number. Or a mapping, data frame or matrix, one setting a row: columns
        that it does not have are averaged over.
    at : mapping from column to value, optional
        What else to hold where; of `variable` and `by` the values to take, in a list.
    by : str, optional
        Another column: `variable`'s settings for each of its labels, or for the 10, 50 and 90 %
        quantiles of a number.
    average : {"observed", "typical"}, or a table
        What the columns are that neither `variable` nor `by` nor `at` sets: as in each of the
        documents, averaged over them; at the mean of numbers and the most frequent label; or as in
        the rows of a table, of new documents say.
    scope : {"population", "documents"}
        Whether authors (and other groups of random terms) that are not set are new ones, or those
        of the documents; the same where the formula has no such term.
    data : StructuredCorpus, optional
        What the model was fitted to; needed only where `posterior` was saved without it.
    chain : int, optional
        One chain alone. If left out, chains are aligned topic by topic with the best one, and each
        topic's draws are those of the chains that found it.
    num_simulated : int
        Documents that are simulated for each setting and draw, about.
    max_draws : int
        At most so many draws are used, evenly spread over chains.
    probability : float in (0, 1)
    random_seed : int

    Returns
    -------
    Effects
        Costs O(draws settings num_simulated num_topics).

    Raises
    ------
    ValueError
        If there is no such column or value, `data` are not the posterior's, or the posterior does
        not know its model.
    """
    probability = as_probability(probability, "probability")
    num_simulated = as_repeats(num_simulated, "num_simulated", minimum=2)
    data = structured_data(posterior, data)
    link = posterior.link
    names = regression_variables(posterior, data)
    as_draws(posterior, *names)
    rng = np.random.default_rng(as_seed(random_seed))
    layout = lay_out(
        data, variable, at=at, by=by, average=average, scope=scope, num_rows=num_simulated // 2,
        rng=rng,
    )  # fmt: skip
    design, weights = layout.design, layout.weights
    size, num_rows = len(next(iter(layout.settings.values()))), len(weights)
    chains = aligned_chains(posterior, chain, "coefficients")
    sticks = posterior["coefficients"].shape[-1]
    pairs = math.ceil(0.5 * num_simulated / num_rows)
    half = rng.standard_normal((num_rows, pairs, sticks))
    noise = np.concatenate([half, -half], axis=1)
    share = weights / (weights.sum() * noise.shape[1])
    rows, expected = np.arange(num_rows), []
    for one in chains:
        draws = dict(zip(names, of_chain(posterior, one.chain, *names), strict=True))
        for i in spread(len(draws["Sigma"]), share_of_draws(max_draws, len(chains))):
            means, which, covariances = regression_at(draws, int(i), design)
            roots = np.linalg.cholesky(covariances)
            scattered = np.stack([noise @ root.T for root in roots])
            shares = np.stack(
                [
                    np.einsum("r,rmk->k", share, link.probs(m[:, None] + scattered[c, rows]))
                    for m, c in zip(
                        means.reshape(size, num_rows, sticks),
                        which.reshape(size, num_rows),
                        strict=True,
                    )
                ]
            )
            expected.append(np.where(one.found, shares[:, one.order], np.nan))
    return Effects(
        np.stack(expected), layout.settings, layout.variable, by, topic_names(posterior, chain),
        probability, layout.about, scope_of(chains),
    )  # fmt: skip


def variance_shares(
    posterior: Posterior, *, data: StructuredCorpus | None = None, probability: float = 0.9
) -> SummaryTable:
    """How much of what documents differ in, given the covariates, goes with each random term.

    The share of a term is rho_j / (1 + sum of all rho), of the variance of every stick alike: for
    ``(1 | author)`` the correlation of two documents of one author that share nothing else, for a
    curve what its bends add at the average document. Groupings with a covariance of their own have
    another share of every stick, and this is that of all sticks' variance: the trace of Omega in
    that of all covariances. All draws of all chains are taken; the share does not depend on how
    topics are numbered, but for these groupings, where it depends on it a little.

    Parameters
    ----------
    posterior : Posterior
        Of `pgmult.topics.StructuralTopics` and a formula with random terms.
    data : StructuredCorpus, optional
        What the model was fitted to; needed only where `posterior` was saved without it.
    probability : float in (0, 1)
        Of the interval.
    """
    probability = as_probability(probability, "probability")
    terms = structured_data(posterior, data).design.terms
    if not terms:
        raise ValueError(
            "posterior must be of a formula with random terms, such as (1 | author), got"
            f" {', '.join(structured_data(posterior, data).design.names)}"
        )
    sizes = _term_variances(posterior, terms)
    shares = sizes / (1.0 + sizes.sum(axis=1, keepdims=True))
    tail = 0.5 * (1.0 - probability)
    lower, upper = np.quantile(shares, [tail, 1.0 - tail], axis=0)
    mean = shares.mean(axis=0)
    columns = {
        "term": [term.name for term in terms], "share": mean, "lower": lower, "upper": upper,
    }  # fmt: skip
    shown = {
        "term": [f"({term.name})" if term.kind == "group" else term.name for term in terms],
        "share of variance, %": [percent(x) for x in mean],
        f"{100.0 * probability:g} %": [interval(*ends) for ends in zip(lower, upper, strict=True)],
        "levels": [f"{term.size:,}" if term.kind == "group" else "" for term in terms],
    }
    caption = (
        "How much of what documents differ in goes with each author (or other group) and with the"
        " bends of curves, the straight-line effects of covariates aside:"
        f" posterior mean and {100.0 * probability:g} % interval, over all chains."
    )
    return SummaryTable(caption, columns, shown)


def _term_variances(posterior: Posterior, terms: Sequence[Term]) -> FloatArray:
    """Variance of each term in units of that of documents, in every draw, ``(draws, terms)``."""
    known = [name for name in ("effect_variances", "effect_covariances") if name in posterior]
    stacked = {name: np.asarray(posterior.stack(name), np.float64) for name in known}
    free = stacked.get("effect_covariances")
    if free is None:
        as_draws(posterior, "effect_variances")
        return stacked["effect_variances"]
    as_draws(posterior, "Sigma")
    unit = np.trace(np.asarray(posterior.stack("Sigma"), np.float64), axis1=1, axis2=2)
    own = iter((np.trace(free, axis1=2, axis2=3) / unit[:, None]).T)
    shared = iter(stacked.get("effect_variances", np.empty((0, 0))).T)
    return np.stack([next(own) if it else next(shared) for it in are_free(terms, free)], axis=1)


def shares_over_time(
    posterior: Posterior,
    *,
    chain: int | None = None,
    max_draws: int = 400,
    probability: float = 0.9,
) -> Effects:
    """Each topic's share of the words of every time step, for `pgmult.topics.curve`.

    Steps without words are left out.

    Parameters
    ----------
    posterior : Posterior
        Of `pgmult.topics.DynamicTopics`, with ``prevalence``, and ``topics`` where chains are
        several: they are aligned topic by topic with the best one.
    chain : int, optional
        One chain alone.
    max_draws : int
        At most so many draws are used, evenly spread over chains.
    probability : float in (0, 1)
    """
    probability = as_probability(probability, "probability")
    as_draws(as_kind(posterior, "posterior", Posterior), "prevalence")
    chains = aligned_chains(posterior, chain, "prevalence")
    draws = [
        np.where(one.found, draw[:, one.order], np.nan)
        for one, draw in each_aligned(posterior, "prevalence", chains, max_draws)
    ]
    axis = posterior.dims["prevalence"][2]
    used = np.nansum(draws, axis=(0, 2)) > 0.0  # a time without words has no shares
    times = np.asarray(posterior.coords[axis])[used].tolist()
    return Effects(
        np.stack(draws)[:, used], {axis: times}, axis, None, topic_names(posterior, chain),
        probability, f"Shares of topics in the words of each {axis}, in these documents.",
        scope_of(chains),
    )  # fmt: skip


def difference(effects: Effects, setting: Any, baseline: Any) -> Difference:
    """How much more of each topic is expected in one setting than in another.

    Parameters
    ----------
    effects : Effects
    setting, baseline : value of the variable, mapping, or number of a setting
        Two of the settings: by the variable's values, for each group where there is `by`; by the
        values of several columns, ``{"party": "R", "year": 2000}``; or, of settings given as a
        table, by their row.
    """
    as_kind(effects, "effects", Effects, "see pgmult.topics.effects")
    first, of_groups = _places(effects, setting, "setting")
    second, _ = _places(effects, baseline, "baseline")
    if len(first) != len(second):
        raise ValueError(
            f"setting and baseline must both be one value or both one setting, got"
            f" {brief(setting)} and {brief(baseline)}"
        )
    by = effects.by if of_groups else None
    groups = list(effects.groups) if of_groups else [""]
    return Difference(
        effects.draws[:, first] - effects.draws[:, second],
        _compared(setting, baseline, effects),
        by, groups, effects.names, effects.probability, effects.about, effects.scope,
    )  # fmt: skip


def difference_at(effects: Effects, rows: IntArray, baseline: int) -> tuple[FloatArray, ...]:
    """Mean, lower and upper end and P(>0) of settings over one of them, ``(len(rows), topic)``."""
    draws = effects.draws[:, rows] - effects.draws[:, [baseline]]
    tail = 0.5 * (1.0 - effects.probability)
    lower, upper = quantile(draws, [tail, 1.0 - tail], axis=0)
    return np.asarray(np.nanmean(draws, axis=0)), lower, upper, _share_positive(draws)


def structured_data(posterior: Posterior, data: Any = None) -> StructuredCorpus:
    """The covariates that a posterior was sampled with: its own data, or those given."""
    with_model(posterior)
    if data is None:
        own: object = posterior.data
        if not isinstance(own, StructuredCorpus):
            raise ValueError(
                "posterior must be of data with covariates, got one of"
                f" {type(posterior.model).__name__} given a {type(own).__name__} (make the data"
                " with pgmult.topics.with_covariates)"
            )
        return own
    given = as_kind(data, "data", StructuredCorpus, "make one with with_covariates")
    if not posterior.is_of(given):
        raise ValueError(
            f"data must be what the posterior was sampled with, got other data"
            f" ({given.num_documents} documents, covariates {', '.join(given.design.names)})"
        )
    return given


def topic_names(posterior: Posterior, chain: int | None) -> list[str]:
    """Number and most probable words of the topics of one chain, the best if none is given."""
    if "topics" not in posterior:
        count = len(posterior.coords["topic"]) if "topic" in posterior.coords else None
        if count is None:
            count = with_model(posterior).model.num_topics
        return [f"topic {k}" for k in range(count)]
    means = mean_topics(posterior, best_chain(posterior) if chain is None else chain, max_draws=100)
    by_word = means.reshape(len(means), -1, means.shape[-1]).mean(axis=1)
    words = names_along(posterior, "word", by_word.shape[-1])
    best = np.argsort(-by_word, axis=1, kind="stable")[:, :_NAME_WORDS]
    return [f"{k} {' '.join(words[j] for j in row)}" for k, row in enumerate(best)]


def _sentence_case(text: str) -> str:
    return text[:1].upper() + text[1:]


def _compared(setting: Any, baseline: Any, effects: Effects) -> str:
    """Two settings in words, such as "party R minus D"."""
    texts = [_text_of(one, effects) for one in (setting, baseline)]
    is_value = effects.variable is not None and not isinstance(setting, Mapping)
    return f"{f'{effects.variable} ' if is_value else ''}{texts[0]} minus {texts[1]}"


def _text_of(setting: Any, effects: Effects) -> str:
    if isinstance(setting, Mapping):
        return ", ".join(f"{name} {value_text(value)}" for name, value in setting.items())
    return effects.labels[setting] if effects.variable is None else value_text(setting)


def _percent(one: Effects | Difference) -> str:
    return f"{100.0 * one.probability:g} %"


def _share_positive(draws: FloatArray) -> FloatArray:
    known = ~np.isnan(draws)
    return np.asarray((draws > 0.0).sum(axis=0) / known.sum(axis=0))


def _places(effects: Effects, setting: Any, argument: str) -> tuple[IntArray, bool]:
    """Numbers of the settings meant, and whether they are one for each group."""
    if isinstance(setting, Mapping):
        wanted = {str(name): value_text(value) for name, value in setting.items()}
        for name in wanted:
            as_column(name, argument, list(effects.settings))
        places = [
            i
            for i in range(effects.draws.shape[1])
            if all(value_text(effects.settings[name][i]) == text for name, text in wanted.items())
        ]
        if len(places) != 1:
            raise ValueError(f"{argument} must be one of the settings, got {brief(setting)}")
        return np.array(places), False
    if effects.variable is None:
        last = effects.draws.shape[1] - 1
        return np.array([as_positive_int(setting, argument, minimum=0, maximum=last)]), False
    values = effects.settings[effects.variable]
    known = list(dict.fromkeys(value_text(value) for value in values))
    text = value_text(setting)
    if text not in known:
        few = known if len(known) <= 2 * FEW else [*known[:2], "...", known[-1]]
        raise ValueError(
            f"{argument} must be a value of {effects.variable}, one of {', '.join(few)}, got"
            f" {brief(setting)} (choose values with at=)"
        )
    return np.array([i for i, value in enumerate(values) if value_text(value) == text]), True
