"""Effects of covariates on the prevalence of topics: expected shares and their differences.

What a coefficient does to the share of a topic depends on the coefficients of other topics. So an
effect is read from the expected shares of topics, E[theta | x], at settings of one covariate, and
from their differences. For a draw of (B, u, Sigma, rho) and rows x of the other covariates,

    E[theta | setting] = mean over rows x of  E[link(B' x(setting) + u + eps)],  eps ~ N(0, Sigma),

all other columns as in the documents (``average="observed"``), at typical values, or as in other
documents, which are given as a table. With random effects u of authors, ``scope`` says whose: those
of *new* authors, drawn from the prior N(0, rho Sigma) along with eps, which describes the
population; or those of the authors of *these documents*, as estimated from their texts. Intervals
are over all draws of all chains, their topics matched.

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> counts = rng.poisson(0.5, size=(20, 30))
>>> data = pgmult.topics.with_covariates(counts, {"year": np.arange(20), "party": ["D", "R"] * 10})
>>> posterior = pgmult.sample(
...     pgmult.topics.StructuralTopics(num_topics=3), data,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> found = effects(posterior, "party")
>>> found.mean.shape, found.setting_texts
((2, 3), ['D', 'R'])
>>> bool(np.isclose(difference(found, "R", "D").mean.sum(), 0.0))
True
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from pgmult.core.arguments import (
    as_kind,
    as_probability,
    as_repeats,
    as_seed,
    as_strings,
    brief,
)
from pgmult.core.estimands import Estimand
from pgmult.core.figures.base import captioned, new_figure
from pgmult.core.figures.forest import Forest
from pgmult.core.figures.lines import Line, Lines
from pgmult.core.labels import value_texts
from pgmult.core.tabled import (
    Column,
    Table,
    interval,
    once,
    percent,
    points,
    probability_text,
    with_interval,
    wrapped,
)
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.formulas.terms import Term, are_free
from pgmult.links import LogisticNormal
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.structured import StructuredCorpus
from pgmult.topics.draws import (
    as_draws,
    as_topic_numbers,
    data_of_run,
    names_along,
    of_chain,
    prior_at,
    regression_variables,
    share_of_draws,
    spread,
    telling,
    with_model,
)
from pgmult.topics.summaries.matching import (
    AlignedChain,
    aligned_chains,
    best_chain,
    mean_topics,
    placed_draws,
    scope_of,
)
from pgmult.topics.summaries.settings import (
    FEW,
    as_column,
    is_number,
    lay_out,
    places_of,
)

_NAME_WORDS = 3


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class OfTopics(Estimand):
    """Draws of something of every topic, which is the last axis.

    Attributes
    ----------
    scope : str
        What intervals are over: draws within one chain, or over the chains that found a topic.
    """

    scope: str

    @property
    def names(self) -> list[str]:
        """Number and telling words of each topic."""
        return list(self._topics["words"])

    @property
    def topics(self) -> list[int]:
        """The number of each topic in the reference chain."""
        return list(self._topics["topic"])

    @property
    def _topics(self) -> Any:
        return self.labels["topic"]

    @property
    def p_positive(self) -> FloatArray:
        """Posterior probability to be above 0, ``(setting or group, topic)``."""
        return self.p_above(0.0)

    def take(self, topics: Sequence[int] | IntArray, names: Sequence[str] | None = None) -> Self:
        """The same of some topics, in another order, and under other names if these are given."""
        rows = as_topic_numbers(topics, len(self.names))
        if names is None:
            words = [self.names[k] for k in rows]
        else:
            words = as_strings(names, "names")
            if len(words) != len(rows):
                raise ValueError(
                    f"names must be {len(rows)}, one for each of the topics, got {len(words)}"
                )
        numbers = [self.topics[k] for k in rows]
        labels = {**self.labels, "topic": {"topic": numbers, "words": words}}
        return replace(self, draws=self.draws[..., rows], labels=labels)

    @property
    def _order(self) -> IntArray:
        """Topics in decreasing order of their mean in the last row."""
        return np.argsort(-self.mean[-1], kind="stable")

    def _forest(self, rows: IntArray, **options: Any) -> Forest:
        """A forest plot of some rows, in percent, topics in order of the last."""
        order = self._order
        mean, lower, upper = (100.0 * x[rows][:, order] for x in (self.mean, *self.interval()))
        return Forest(
            labels=[self.names[k] for k in order], mean=mean, lower=lower, upper=upper,
            name="topic", caption=self.caption, keys=order.tolist(), **options,
        )  # fmt: skip

    def _by_topic(self, rows: int) -> list[Column]:
        """The first columns of a table of so many rows a topic."""
        words = np.repeat(self.names, rows).tolist()
        numbers = np.repeat(self.topics, rows)
        return [Column("topic", numbers), Column("words", words, "topic", once(words))]


def topic_labels_of(names: Sequence[str]) -> dict[str, Sequence[Any]]:
    """Labels of an axis of all topics."""
    return {"topic": range(len(names)), "words": names}


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Effects(OfTopics):
    """Posterior of expected shares of topics at settings of a covariate; print it for a table.

    Its axes are the settings, each of which has a value in some columns, and the topics. An entry
    is nan for a topic that the draw's chain did not find.

    Attributes
    ----------
    draws, axes, labels, caption, probability
        As in `pgmult.core.estimands.Estimand`.
    scope : str
        What intervals are over: draws within one chain, or over the chains that found a topic.
    variable : str or None
        The column whose effect it is; None where settings were given as a table.
    by : str or None
        The column whose values divide the settings into groups.
    """

    variable: str | None
    by: str | None

    @property
    def settings(self) -> Mapping[str, list[Any]]:
        """Each column's value in every setting."""
        settings: Any = self.labels["setting"]
        return dict(settings)

    @property
    def setting_texts(self) -> list[str]:
        """Each setting in words."""
        texts = {name: value_texts(values) for name, values in self.settings.items()}
        if self.variable is not None and self.by is None:
            return texts[self.variable]
        rows = zip(*texts.values(), strict=True)
        return [", ".join(map(" ".join, zip(texts, row, strict=True))) for row in rows]

    @property
    def groups(self) -> dict[str, IntArray]:
        """The settings of each value of `by`, in order; one group without a name if there is none.

        A group's first setting is what its others are compared with in `table`.
        """
        if self.by is None:
            return {"": np.arange(self.draws.shape[1])}
        texts = np.array(value_texts(self.settings[self.by]))
        return {text: np.flatnonzero(texts == text) for text in dict.fromkeys(texts.tolist())}

    @property
    def ends(self) -> IntArray:
        """The settings to list, ``(listed,)``: of a curve's numbers each group's first and last."""
        if not self.is_curve or self.draws.shape[1] <= FEW:
            return np.arange(self.draws.shape[1])
        return np.concatenate([rows[[0, -1]] for rows in self.groups.values()])

    @property
    def is_curve(self) -> bool:
        """Whether the variable's values are numbers."""
        return self.variable is not None and all(map(is_number, self.settings[self.variable]))

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
                f" {', '.join(self.setting_texts[:3])} (draw their .forest())"
            )
        return np.array(self.settings[str(self.variable)], dtype=np.float64)

    def table(self, probability: float | None = None) -> Table:
        """Every topic's expected share at every setting, and how it differs from the first.

        Of numbers that a curve goes along, the lowest and the highest. P(>0) is the share of draws
        in which the share is larger than at the group's first setting.
        """
        listed = self.ends
        kept = [rows[np.isin(rows, listed)] for rows in self.groups.values()]
        at, first = np.concatenate(kept), np.concatenate([np.full(len(r), r[0]) for r in kept])
        is_first = at == first
        level = self.probability if probability is None else probability
        gap = Estimand(self.draws[:, at] - self.draws[:, first], self.axes, {}, probability=level)
        count = len(self.names)

        def down(values: FloatArray, *, compared: bool = True) -> FloatArray:
            """Values topic by topic; nan in rows that others are compared with."""
            hidden = is_first[:, None] & compared
            return np.where(hidden, np.nan, values).T.ravel()

        def tiled(values: Sequence[Any]) -> list[Any]:
            return [values[i] for i in at] * count

        columns = self._by_topic(len(at))
        if self.by is not None:
            texts = value_texts(self.settings[self.by])
            shown = [texts[i] if new else "" for i, new in zip(at, is_first, strict=True)]
            columns.append(Column(self.by, tiled(self.settings[self.by]), self.by, shown * count))
        name = self.variable or "setting"
        values = self.settings[self.variable] if self.variable else self.setting_texts
        columns.append(Column(name, tiled(values), name, tiled(value_texts(values))))
        share = (down(x[at], compared=False) for x in (self.mean, *self.interval(level)))
        columns += with_interval("share", share, "share, %", level, percent)
        change = (down(x) for x in (gap.mean, *gap.interval()))
        columns += with_interval(
            "difference", change, "difference", level, points, ("lower", "upper")
        )
        columns.append(Column("p_positive", down(gap.p_above()), "P(>0)", probability_text))
        against = f"{self.variable} " if self.variable is not None else ""
        against += value_texts(values)[first[0]]
        caption = f"{self.caption} Differences, in percentage points, are from {against}."
        return Table(caption, columns)

    def figure(self, topic: int, **options: Any) -> Lines:
        """The share of a topic along a number, with a band, a line for each group.

        Parameters
        ----------
        topic : int
            Its place among these topics.
        **options
            Of `pgmult.core.figures.lines.Lines`.

        Raises
        ------
        ValueError
            If the variable's values are labels, or there is no such topic.
        """
        topic = as_positive_int(topic, "topic", minimum=0, maximum=len(self.names) - 1)
        x = self.numbers
        mean, lower, upper = (100.0 * v[:, topic] for v in (self.mean, *self.interval()))
        lines, told = [], []
        for g, (label, rows) in enumerate(self.groups.items()):
            lines.append(Line(label, g, x[rows], mean[rows], [(lower[rows], upper[rows])]))
            ends = (f"{mean[i]:.1f} % at {x[i]:g}" for i in rows[[0, -1]])
            told.append(f"{f'{label}: ' if label else ''}{', '.join(ends)}")
        name = self.names[topic]
        return Lines(
            lines, "; ".join(told), str(self.variable), y_label="share, %",
            **({"caption": f"topic {name}"} | options),
        )  # fmt: skip

    def forest(self) -> Forest:
        """Expected shares with their intervals; of a curve's numbers the lowest and the highest."""
        rows = self.ends
        labels = [self.setting_texts[i] for i in rows]
        return self._forest(
            rows, legend=dict(enumerate(labels)), line=None, x_label="expected share, %",
            legend_title="" if self.by else self.variable or "",
        )  # fmt: skip

    def plot(self, topic: int | None = None, axes: Any = None, *, num_columns: int = 4) -> Any:
        """Draw the shares with matplotlib.

        Parameters
        ----------
        topic : int, optional
            Draw this topic's share along a number. If left out, a small panel for each topic, or
            the shares of all topics with their intervals where the variable has labels.
        axes : matplotlib Axes, optional
            Not for panels, which are a figure of their own.
        num_columns : int
            Of the panels.

        Returns
        -------
        Axes, or Figure of panels
        """
        if topic is not None:
            drawn = self.figure(topic)
            axes = drawn.plot(axes)
            captioned(axes, self.caption, drawn.caption)
            return axes
        return self._panels(num_columns) if self.is_curve else self.forest().plot(axes)

    def _panels(self, num_columns: int) -> Any:
        count = len(self.names)
        num_columns = min(as_positive_int(num_columns, "num_columns"), count)
        num_rows = -(-count // num_columns)
        lines = wrapped(self.caption, int(32 * num_columns))
        canvas = new_figure(2.5 * num_columns, 1.8 * num_rows + 0.3 + 0.15 * len(lines))
        panels = canvas.subplots(num_rows, num_columns, squeeze=False, sharex=True).ravel()
        for i, axes in enumerate(panels):
            if i >= count:
                axes.set_visible(False)
                continue
            self.figure(i, has_legend=i + 1 == num_columns).plot(axes)
            axes.set_title(self.names[i], fontsize=8, loc="left")
            axes.tick_params(labelsize=7)
            axes.set_ylabel(axes.get_ylabel() if i % num_columns == 0 else "", fontsize=8)
            axes.set_xlabel(axes.get_xlabel() if i + num_columns >= count else "", fontsize=8)
        canvas.suptitle("\n".join(lines), fontsize=7, x=0.01, ha="left")
        return canvas


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Difference(OfTopics):
    """Posterior of how much more of each topic is expected in one setting than in another.

    Its axes are the groups, one without a name if there are none, and the topics; in shares, from
    -1 to 1. An entry is nan for a topic that the draw's chain did not find.

    Attributes
    ----------
    draws, axes, labels, caption, probability
        As in `pgmult.core.estimands.Estimand`.
    scope : str
        As in `Effects`.
    label : str
        The two settings in words.
    by : str or None
        The column whose values are the groups.
    """

    label: str
    by: str | None

    @property
    def groups(self) -> list[Any]:
        """The values of `by`."""
        return list(self.labels["group"])

    def _cells(self) -> dict[str, list[Any]]:
        cells = Estimand._cells(self)
        groups = cells.pop("group")
        return cells if self.by is None else {self.by: groups, **cells}

    def between(self, group: Any, other: Any) -> "Difference":
        """How much larger the difference is in one group than in another: an interaction."""
        texts, places = value_texts(self.groups), []
        for one, name in ((group, "group"), (other, "other")):
            places += places_of(one, self.groups, name)[:1]
            if len(places) < 1 + (name == "other"):
                raise ValueError(f"{name} must be one of {', '.join(texts)}, got {brief(one)}")
        g, h = places
        label = f"{self.label}, {self.by} {texts[g]} over {texts[h]}"
        return replace(
            self,
            draws=(self.draws[:, g] - self.draws[:, h])[:, None],
            labels={**self.labels, "group": [""]},
            caption=self.caption.replace(sentence_case(self.label), sentence_case(label), 1),
            label=label,
            by=None,
        )

    def table(self, probability: float | None = None) -> Table:
        """Mean, interval and P(>0) of every topic, in every group."""
        size, count = len(self.groups), len(self.names)
        columns = self._by_topic(size)
        if self.by is not None:
            texts = value_texts(self.groups) * count
            columns.append(Column(self.by, self.groups * count, self.by, texts))
        level = self.probability if probability is None else probability
        values = (x.T.ravel() for x in (self.mean, *self.interval(level)))
        columns += with_interval(
            "difference", values, "difference", level, points, ("lower", "upper")
        )
        p = self.p_positive.T.ravel()
        return Table(self.caption, [*columns, Column("p_positive", p, "P(>0)", probability_text)])

    def figure(self) -> Forest:
        """Differences with their intervals; filled where the interval excludes zero."""
        found = self._forest(
            np.arange(len(self.groups)), legend=dict(enumerate(value_texts(self.groups))),
            legend_title=self.by or "", x_label="difference, percentage points",
            note="Filled: the interval excludes 0.",
        )  # fmt: skip
        filled = (found.lower > 0.0) | (found.upper < 0.0)
        if self.by is not None:
            return replace(found, filled=filled)
        ends = zip(found.mean[0], found.lower[0], found.upper[0], strict=True)
        told = [f"{points(m / 100)} {interval(a / 100, b / 100, points)}" for m, a, b in ends]
        p = self.p_positive[0][self._order]
        cells = [Column("", told, "points [interval]"), Column("", p, "P(>0)", probability_text)]
        return replace(found, filled=filled, cells=cells, told=told, legend={})

    def plot(self, axes: Any = None) -> Any:
        """Draw `figure` with matplotlib: the Axes."""
        return self.figure().plot(axes)


def effects(
    posterior: Posterior,
    variable: Any,
    *,
    at: Mapping[str, Any] | None = None,
    by: str | None = None,
    average: Any = "observed",
    scope: Literal["population", "documents"] = "population",
    new_levels: bool = False,
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
        smallest and largest number. Or a mapping, data frame or matrix, one setting per row:
        columns that it does not have are averaged over.
    at : mapping from column to value, optional
        Values at which to hold other columns; for `variable` and `by`, a list of the values to
        take.
    by : str, optional
        Another column: `variable`'s settings for each of its labels, or for the 10, 50 and 90 %
        quantiles of a number.
    average : {"observed", "typical"}, or a table
        Values of the columns that neither `variable` nor `by` nor `at` sets: those of the
        documents, averaged over; the mean of numbers and the most frequent label; or those in the
        rows of a table, of new documents say.
    scope : {"population", "documents"}
        Whether authors (and other groups of random terms) that are not set are new ones, or those
        of the documents; the same where the formula has no such term.
    new_levels : bool
        Whether settings, and rows of a table to average over, may name authors (and other groups)
        that the documents do not have; their effects come from the prior.
    data : StructuredCorpus, optional
        What the model was fitted to; needed only where `posterior` was saved without it.
    chain : int, optional
        One chain alone. If left out, chains are aligned topic by topic with the best one, and each
        topic's draws are those of the chains that found it.
    num_simulated : int
        Documents that are simulated for each setting and draw, about.
    max_draws : int
        Draws to use at most, evenly spread over chains.
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
        data, variable, at=at, by=by, average=average, scope=scope, new_levels=new_levels,
        num_rows=num_simulated // 2, rng=rng,
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
            means, which, covariances = prior_at(draws, int(i), design)
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
            expected.append(one.place(shares))
    return _effects(
        expected, layout.settings, layout.about, topic_names(posterior, chain), chains, probability,
        layout.variable, by,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class VarianceShares(Estimand):
    """Posterior of the share of variance that goes with each random term; print it for a table.

    Attributes
    ----------
    draws, axes, labels, caption, probability
        As in `pgmult.core.estimands.Estimand`.
    terms : tuple of GroupTerm and SplineTerm
    """

    terms: tuple[Term, ...]

    def table(self, probability: float | None = None) -> Table:
        """One row per term."""
        level = self.probability if probability is None else probability
        groups = [term.kind == "group" for term in self.terms]
        each = list(zip(self.terms, groups, strict=True))
        titles = [f"({term.name})" if it else term.name for term, it in each]
        columns = [
            Column("term", self.labels["term"], "term", titles),  # type: ignore[arg-type]
            *with_interval(
                "share", (self.mean, *self.interval(level)), "share of variance, %", level, percent,
                ("lower", "upper"),
            ),
            Column("", [f"{term.size:,}" if it else "" for term, it in each], "levels"),
        ]  # fmt: skip
        return Table(self.caption, columns)


def variance_shares(
    posterior: Posterior, *, data: StructuredCorpus | None = None, probability: float = 0.9
) -> VarianceShares:
    """The share of documents' variance, given the covariates, that goes with each random term.

    The share of a term is rho_j / (1 + sum of all rho), of the variance of every coordinate of psi
    alike: for ``(1 | author)`` the correlation of two documents of one author that share nothing
    else, for a curve what its bends add at the average document. Groupings with a covariance of
    their own have another share of every coordinate, and this is that of all: the trace of Omega in
    that of all covariances, under the softmax of differences between topics. All draws of all
    chains are taken: how topics are numbered makes no difference, but for such groupings a little
    under sticks.

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
    return VarianceShares(
        shares, ("term",), {"term": [term.name for term in terms]},
        caption="How much of what documents differ in goes with each author (or other group) and"
        " with the bends of curves, the straight-line effects of covariates aside: posterior mean"
        f" and {100.0 * probability:g} % interval, over all chains.",
        probability=probability, terms=terms,
    )  # fmt: skip


def _term_variances(posterior: Posterior, terms: Sequence[Term]) -> FloatArray:
    """Variance of each term in units of that of documents, in every draw, ``(draws, terms)``."""
    known = [name for name in ("effect_variances", "effect_covariances") if name in posterior]
    stacked = {name: np.asarray(posterior.stack(name), np.float64) for name in known}
    free = stacked.get("effect_covariances")
    if free is None:
        as_draws(posterior, "effect_variances")
        return stacked["effect_variances"]
    as_draws(posterior, "Sigma")
    unit = _total_variance(np.asarray(posterior.stack("Sigma"), np.float64), posterior)
    own = iter((_total_variance(free, posterior) / unit[:, None]).T)
    shared = iter(stacked.get("effect_variances", np.empty((0, 0))).T)
    return np.stack([next(own) if it else next(shared) for it in are_free(terms, free)], axis=1)


def _total_variance(covariances: FloatArray, posterior: Posterior) -> FloatArray:
    """Traces of covariances ``(..., n, n)``; under the softmax, of differences between topics."""
    trace = np.trace(covariances, axis1=-2, axis2=-1)
    if isinstance(posterior.link, LogisticNormal):
        trace = trace - covariances.mean(axis=-1).sum(axis=-1)
    return np.asarray(trace)


def shares_over_time(
    posterior: Posterior,
    *,
    chain: int | None = None,
    max_draws: int = 400,
    probability: float = 0.9,
) -> Effects:
    """Each topic's share of the words of every time step.

    Steps without words are left out.

    Parameters
    ----------
    posterior : Posterior
        Of `pgmult.topics.DynamicTopics`, with ``prevalence``, and ``topics`` where chains are
        several: they are aligned topic by topic with the best one.
    chain : int, optional
        One chain alone.
    max_draws : int
        Draws to use at most, evenly spread over chains.
    probability : float in (0, 1)
    """
    probability = as_probability(probability, "probability")
    as_draws(as_kind(posterior, "posterior", Posterior), "prevalence")
    chains = aligned_chains(posterior, chain, "prevalence")
    draws = list(placed_draws(posterior, "prevalence", chains, max_draws))
    axis = posterior.dims["prevalence"][2]
    used = np.nansum(draws, axis=(0, 2)) > 0.0  # a time without words has no shares
    times = np.asarray(posterior.coords[axis])[used].tolist()
    about = f"Shares of topics in the words of each {axis}, in these documents."
    names = topic_names(posterior, chain)
    return _effects(
        np.stack(draws)[:, used], {axis: times}, about, names, chains, probability, axis
    )


def _effects(
    draws: Any,
    settings: Mapping[str, list[Any]],
    about: str,
    names: list[str],
    chains: list[AlignedChain],
    probability: float,
    variable: str | None,
    by: str | None = None,
) -> Effects:
    """`Effects` from draws pooled over these chains."""
    scope = scope_of(chains)
    return Effects(
        np.stack(draws), ("setting", "topic"),
        {"setting": settings, "topic": topic_labels_of(names)},
        caption=f"{about} Posterior mean and {100 * probability:g} % interval, {scope}.",
        probability=probability, scope=scope, variable=variable, by=by,
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
    groups = [""] if by is None else [effects.settings[by][i] for i in first]
    label = _compared(effects, setting, first[0], second[0])
    return Difference(
        effects.draws[:, first] - effects.draws[:, second], ("group", "topic"),
        {"group": groups, "topic": effects.labels["topic"]},
        caption=f"{sentence_case(label)}, in percentage points. {effects.caption}",
        probability=effects.probability, scope=effects.scope, label=label, by=by,
        is_difference=True, term=effects.variable or "setting",
        contrast=label.removeprefix(f"{effects.variable} ").replace(" minus ", " - "),
    )  # fmt: skip


def structured_data(posterior: Posterior, data: Any = None) -> StructuredCorpus:
    """The covariates that a posterior was sampled with: its own data, or those given."""
    own: object = with_model(posterior).data if data is None else data
    if data is None and not isinstance(own, StructuredCorpus):
        raise ValueError(
            "posterior must be of data with covariates, got one of"
            f" {type(posterior.model).__name__} given a {type(own).__name__} (make the data"
            " with pgmult.topics.with_covariates)"
        )
    return data_of_run(posterior, data, StructuredCorpus, "make one with with_covariates")


def topic_names(posterior: Posterior, chain: int | None) -> list[str]:
    """Number and telling words of the topics of one chain, the best if none is given."""
    if "topics" not in posterior:
        count = len(posterior.coords["topic"]) if "topic" in posterior.coords else None
        if count is None:
            count = with_model(posterior).model.num_topics
        return [f"topic {k}" for k in range(count)]
    means = mean_topics(posterior, best_chain(posterior) if chain is None else chain, max_draws=100)
    words, best = names_along(posterior, "word", means.shape[-1]), telling(means, _NAME_WORDS)
    return [f"{k} {' '.join(words[j] for j in row)}" for k, row in enumerate(best)]


def sentence_case(text: str) -> str:
    """The text with a capital letter."""
    return text[:1].upper() + text[1:]


def _compared(effects: Effects, setting: Any, first: int, second: int) -> str:
    """Two settings in words, such as "party R minus D"."""
    texts = {name: value_texts(values) for name, values in effects.settings.items()}
    if isinstance(setting, Mapping):
        one, two = (
            ", ".join(f"{name} {texts[str(name)][i]}" for name in setting) for i in (first, second)
        )
        return f"{one} minus {two}"
    if effects.variable is None:
        return f"{effects.setting_texts[first]} minus {effects.setting_texts[second]}"
    of = texts[effects.variable]
    return f"{effects.variable} {of[first]} minus {of[second]}"


def _places(effects: Effects, setting: Any, argument: str) -> tuple[IntArray, bool]:
    """Numbers of the settings meant, and whether they are one for each group."""
    if isinstance(setting, Mapping):
        for name in setting:
            as_column(name, argument, list(effects.settings))
        places = [
            i
            for i in range(effects.draws.shape[1])
            if all(
                i in places_of(x, effects.settings[name], argument) for name, x in setting.items()
            )
        ]
        if len(places) != 1:
            raise ValueError(f"{argument} must be one of the settings, got {brief(setting)}")
        return np.array(places), False
    if effects.variable is None:
        last = effects.draws.shape[1] - 1
        return np.array([as_positive_int(setting, argument, minimum=0, maximum=last)]), False
    values = effects.settings[effects.variable]
    places = places_of(setting, values, argument)
    if not places:
        known = list(dict.fromkeys(value_texts(values)))
        few = known if len(known) <= 2 * FEW else [*known[:2], "...", known[-1]]
        raise ValueError(
            f"{argument} must be a value of {effects.variable}, one of {', '.join(few)}, got"
            f" {brief(setting)} (choose values with at=)"
        )
    return np.array(places), True
