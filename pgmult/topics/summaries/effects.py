"""Effects of covariates on the prevalence of topics: expected shares and their differences.

What a coefficient does to the share of a topic depends on the coefficients of other topics. So an
effect is read from the expected shares of topics, E[theta | x], at settings of one covariate, and
from their differences. For a draw of (B, u, Sigma, rho) and rows x of the other covariates,

    E[theta | setting] = mean over rows x of  E[link(B' x(setting) + u + eps)],  eps ~ N(0, Sigma),

all other columns as in the documents. With random effects u of authors, ``scope`` says whose: those
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
>>> found.mean.shape, found.labels["party"]
((2, 3), ['D', 'R'])
>>> bool(np.isclose(found.difference("party", "R", "D").mean.sum(), 0.0))
True
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal, Self

import numpy as np

from pgmult.core.arguments import as_choice, as_probability, as_repeats, as_seed, brief
from pgmult.core.estimands import Estimand, are_numbers
from pgmult.core.figures.base import Figure
from pgmult.core.figures.forest import GREY, Forest
from pgmult.core.labels import report_new_labels, value_texts
from pgmult.core.tabled import Column, Table, number
from pgmult.core.tables import chosen_columns
from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.core.validate import as_nonnegative
from pgmult.formulas.columns import listed
from pgmult.formulas.design import Design, table_of
from pgmult.formulas.terms import GroupTerm, Term
from pgmult.sampling.posterior import Posterior
from pgmult.topics import runs
from pgmult.topics.data.corpus import Corpus, StructuredCorpus
from pgmult.topics.data.timed import TimedCorpus
from pgmult.topics.summaries.matching import aligned_chains, best_chain, mean_topics, scope_of

_FEW = 6  # different values that are taken one by one
_GRID = 25  # values of a number along which a curve goes


def lay_out(
    data: StructuredCorpus, variable: str, *, at: Any, by: str | None, scope: str, num_rows: int,
    rng: Generator, weights: FloatArray | None = None,
) -> tuple[dict[str, list[Any]], Design, FloatArray, str]:  # fmt: skip
    """Settings as `effects` takes them, and at most about `num_rows` rows averaged at each.

    Documents count by `weights`, ``(num_documents,)``, all alike by default.

    Returns
    -------
    values : mapping from a column's name to the values that it takes, one or two columns
    design : Design
        Of one row for each setting and averaged row, settings first.
    weights : array, ``(num_rows,)``
        Of the averaged rows.
    about : str
        What is averaged over what, in a sentence.
    """
    as_choice(scope, "scope", ("population", "documents"))
    values, held = _settings(data, variable, at, by)
    columns = data.design.columns
    left = {str(n): j for j, n in enumerate(columns.names) if str(n) not in {*values, *held}}
    codes = [_levels_in(term, {*values, *held}, scope) for term in data.design.terms]
    known = [levels for levels in codes if levels is not None]
    averaged = columns.values[:, [*left.values()]]
    rows = np.column_stack([np.zeros(data.num_documents), averaged, *known])
    _, documents, places = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    sizes = np.bincount(places.ravel(), weights).astype(np.float64)
    if len(sizes) > num_rows:  # as many of equal weight
        ends = np.cumsum(sizes)
        spread = (np.arange(num_rows) + rng.random()) * (ends[-1] / num_rows)
        documents = documents[np.searchsorted(ends, spread, side="right")]
        sizes = np.ones(num_rows)
    settings = list(product(*values.values()))
    size = len(settings) * len(documents)
    table: dict[str, Any] = {
        name: [value for value in column for _ in documents]
        for name, column in zip(values, zip(*settings, strict=True), strict=True)
    }
    table |= {name: [value] * size for name, value in held.items()}
    for name, j in left.items():
        cells = columns.cells(j, columns.values[documents, j]).tolist()
        table[name] = cells * len(settings)
    for name in column_names(data):  # of terms whose levels are known
        table.setdefault(name, [""] * size)
    design, terms = data.design.like(table, new_levels=True, num_rows=size), list[Term]()
    for term, levels in zip(design.terms, codes, strict=True):
        if isinstance(term, GroupTerm) and levels is not None:
            term = replace(term, codes=np.tile(levels[documents], len(settings)))
        elif isinstance(term, GroupTerm):
            term.known.find([table[name] for name in term.variables])
            for name, labels in zip(term.variables, term.known.labels.T, strict=True):
                report_new_labels(labels, table[name], name, "the settings", asked=True)
        terms.append(term)
    about = _sentence(data, held, list(left), codes, scope)
    return values, replace(design, terms=tuple(terms)), sizes, about


def _settings(
    data: StructuredCorpus, variable: str, at: Any, by: str | None
) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Values of the columns that vary between settings, and columns that are held."""
    columns = column_names(data)
    if at is not None and not isinstance(at, Mapping):
        raise TypeError(f"at must be a mapping from columns to values, got {brief(at)}")
    held = {} if at is None else {str(name): value for name, value in at.items()}
    asked = [*((name, "at") for name in held), (variable, "variable")]
    asked += [] if by is None else [(by, "by")]
    for name, argument in asked:
        if not isinstance(name, str) or name not in columns:
            wanted = f"a column that prevalence depends on, one of {', '.join(columns) or 'none'}"
            raise ValueError(f"{argument} must be {wanted}, got {brief(name)}")
    if by == variable:
        raise ValueError(f"by must be another column than variable, got {by!r} for both")
    values = {variable: _values(data, variable, held.pop(variable, None))}
    if by is not None:
        values = {by: _values(data, by, held.pop(by, None), few=True), **values}
    for name, value in held.items():
        if np.ndim(value):
            hint = "name it in variable or by to compare several"
            raise ValueError(f"at must hold one value of {name!r}, got {brief(value)} ({hint})")
    return values, held


def _values(data: StructuredCorpus, name: str, asked: Any, few: bool = False) -> list[Any]:
    """The values of a column to compare: those given, its labels, or numbers over its range."""
    if asked is not None:
        values = [asked] if isinstance(asked, str) else list(np.atleast_1d(asked))
        if not values:
            raise ValueError(f"at must hold at least one value of {name!r}, got none")
        return [value.item() if isinstance(value, np.generic) else value for value in values]
    columns = data.design.columns
    if name not in columns.names:
        for term in data.design.terms:
            if term.variables == (name,):
                return [str(level) for level in term.levels]
        raise ValueError(f"at must hold the values of {name!r} to compare, as a list")
    j = columns.names.tolist().index(name)
    if columns.num_levels[j]:
        return columns.levels_of(j)
    cells = columns.values[:, j]
    taken = np.unique(cells)
    if few and len(taken) > 3:
        taken = np.quantile(cells, [0.1, 0.5, 0.9], method="lower")
    elif len(taken) > _FEW:
        taken = np.linspace(taken[0], taken[-1], _GRID)
    if columns.origin_of(j) is not None:  # dates that are there
        near = np.abs(cells - taken[:, None]).argmin(axis=1)
        return listed(columns.cells(j, np.unique(cells[near])))
    return [int(x) if float(x).is_integer() else float(x) for x in taken]


def _levels_in(term: Term, taken: set[str], scope: str) -> IntArray | None:
    """Each document's level of a random term; -1 for a new one; None if settings name it."""
    if not isinstance(term, GroupTerm) or taken.issuperset(term.variables):
        return None
    if scope == "population" or not taken.isdisjoint(term.variables):
        return np.full(len(term.codes), -1)
    return np.asarray(term.codes)


def column_names(data: StructuredCorpus) -> list[str]:
    """Every column that prevalence depends on, those of random terms among them."""
    grouping = [name for term in data.design.terms for name in term.variables]
    return list(dict.fromkeys([*map(str, data.design.columns.names), *grouping]))


def _joined(names: Sequence[str]) -> str:
    names = list(dict.fromkeys(names))
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _sentence(
    data: StructuredCorpus, held: Mapping[str, Any], left: Sequence[str],
    codes: Sequence[IntArray | None], scope: str,
) -> str:  # fmt: skip
    """Say what was averaged, and the population that it describes."""
    names = [":".join(term.variables) for term in data.design.terms]
    pairs = zip(names, codes, strict=True)
    named = [(name, bool((of < 0).all())) for name, of in pairs if of is not None]
    new, known = ([name for name, is_new in named if is_new is of] for of in (True, False))
    at = ", ".join(f"{name} {value_texts([value])[0]}" for name, value in held.items())
    text = f"; at {at}" if held else ""
    if left or known:
        text += f"; {_joined([*left, *known])} as in the {data.num_documents:,} documents"
    of = "the population" if scope == "population" else "documents such as these"
    who = f" by a new {_joined(new)}" if new else ""
    return f"Expected shares of topics in {of}: in a new document{who}{text}."


def nesting(data: StructuredCorpus, variable: str) -> str:
    """Say which groups have one value of a column each, and which formula leaves them out.

    At fixed groups such a column cannot change, so that its effect compares groups.
    """
    columns, formula = data.design.columns, data.design.formula
    names = [str(name) for name in columns.names]
    if variable not in names or formula is None:
        return ""
    values = columns.values[:, names.index(variable)]
    groups = [term for term in data.design.terms if isinstance(term, GroupTerm)]
    for term in groups:
        pairs = np.unique(np.column_stack([term.codes, values]), axis=0)
        is_nested = len(pairs) == len(np.unique(term.codes)) < len(values)
        if is_nested and variable not in term.variables:
            group = ":".join(term.variables)
            plain = re.sub(r"\s*\+\s*" + re.escape(term.title), "", formula)
            return (
                f" Each {group} has one {variable}, so that its effect compares groups of {group},"
                f" not documents at a fixed {group}: for these documents without regard to {group},"
                f' fit "{plain}".'
            )
    return ""


_NAME_WORDS = 3
_ROUGH = f"with fewer than {runs.FEW_DRAWS:.0f} it is not reliable (in parentheses or grey)"
_WORTH = f"draws: effective draws behind an interval; {_ROUGH}."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TopicShares(Estimand):
    """Posterior of shares of topics, or of their differences, topics along the last axis.

    An entry is nan for a topic that the draw's chain did not find. Printed topic by topic, with
    how many independent draws each interval rests on.

    Attributes
    ----------
    draws, axes, labels, caption, probability, is_difference, is_ratio, term, contrast
        As in `pgmult.core.estimands.Estimand`; draws chain after chain.
    num_chains : int
        Whose draws these are, as many of each.
    """

    num_chains: int = field(default=1, kw_only=True)

    @property
    def worth(self) -> FloatArray:
        """Effective draws of each entry; nan where draws never change or are too few."""
        return runs.independent_draws(self.draws, self.num_chains)

    @property
    def names(self) -> list[str]:
        """Number and telling words of each topic."""
        return list(self.columns_of("topic")["words"])

    def take(self, topics: Sequence[int] | IntArray) -> Self:
        """The same of some topics, given by their numbers, in this order."""
        rows = runs.topic_places(topics, len(self.names))
        words = [self.names[k] for k in rows]
        numbers = [self.columns_of("topic")["topic"][k] for k in rows]
        labels = {**self.labels, "topic": {"topic": numbers, "words": words}}
        return replace(self, draws=self.draws[..., rows], labels=labels)

    def _with(
        self, draws: FloatArray, axes: tuple[str, ...], labels: Any, caption: str
    ) -> Estimand:
        if axes[-1:] != ("topic",):
            return Estimand._with(self, draws, axes, labels, caption)
        return replace(self, draws=draws, axes=axes, labels=labels, caption=caption)

    def table(self) -> Table:
        """Mean, sd, interval and independent draws of every entry, topic by topic."""
        made = Estimand.table(_by_topic(self, self.labels["topic"]))
        heads = {"topic": "", "words": "topic"}  # words begin with the number
        parts = [replace(column, head=heads.get(column.name, column.head)) for column in made.parts]
        return with_draws_column(replace(made, parts=parts), np.moveaxis(self.worth, -1, 0))

    def points(self) -> Forest:
        """A row for each topic, rough intervals in grey; numbers beside the rows of one point."""
        points, table = _by_topic(self, self.names).points(), self.table()
        worth = np.moveaxis(self.worth, -1, 0).reshape(len(points.labels), -1).T
        colours = np.where(worth < runs.FEW_DRAWS, GREY, np.arange(len(worth))[:, None])
        shown = [column for column in table.parts if column.head and column.head != "topic"]
        cells = [Column(column.name, column.cells, column.head) for column in shown]
        return replace(points, colours=colours, cells=cells if len(worth) == 1 else ())

    def figure(self, *arguments: Any, **options: Any) -> Figure:
        """Curves where there are numbers or dates, or points, a row for each topic.

        In groups, curves are those of the largest topic; those of another: ``.at(topic=3)``.
        """
        along = [v for axis in self.axes[:-1] for v in self.columns_of(axis).values()]
        if not (arguments or options or any(map(are_numbers, along))):
            return self.points()
        if len(along) == 1:
            named = replace(self, labels={**self.labels, "topic": self.names})
            return named.curves(*arguments, **options)
        sizes = np.nanmean(self.mean.reshape(-1, len(self.names)), axis=0)
        number = self.columns_of("topic")["topic"][int(sizes.argmax())]
        return self.at(topic=number).curves(*arguments, **options)


def with_draws_column(table: Table, worth: FloatArray) -> Table:
    """A table of intervals with how many independent draws each rests on, rough rows faint."""
    if np.isnan(worth).all():
        return table
    draws = Column("independent_draws", worth.ravel(), "draws", number(0))
    caption, is_rough = f"{table.caption} {_WORTH}".strip(), worth.ravel() < runs.FEW_DRAWS
    return Table(caption, [*table.parts, draws], is_rough.tolist())


def _by_topic(shares: TopicShares, topics: Any) -> Estimand:
    """Move topics to the first axis."""
    axes, labels = ("topic", *shares.axes[:-1]), {**shares.labels, "topic": topics}
    return Estimand._with(shares, np.moveaxis(shares.draws, -1, 1), axes, labels, shares.caption)


def effects(
    run: Posterior, variable: str, *, at: Mapping[str, Any] | None = None, by: str | None = None,
    scope: Literal["population", "documents"] = "population", weight: str | None = None,
    data: StructuredCorpus | None = None, chain: int | None = None, num_simulated: int = 1000,
    max_draws: int = 1000, probability: float = 0.9, random_seed: int = 0,
) -> TopicShares:  # fmt: skip
    """Expected shares of topics at settings of a covariate, over all draws of all chains.

    For each draw, theta = link(psi) is averaged over rows of the other covariates and over psi,
    simulated around the mean of each. All draws and all settings share the same rows and the same
    standard normals, in pairs of opposite sign, so that Monte Carlo error hardly touches intervals
    and differences.

    Parameters
    ----------
    run : Posterior
        Of `pgmult.topics.StructuralTopics`, with ``coefficients`` and ``Sigma``, and with
        ``effects`` and ``effect_variances`` where there are any.
    variable : str
        A column that prevalence depends on: its labels are the settings, or 25 values between the
        smallest and largest number. Columns that neither it nor `by` nor `at` sets are averaged
        over, as they are in the documents.
    at : mapping from column to value, optional
        Values at which to hold other columns; for `variable` and `by`, a list of the values to
        take.
    by : str, optional
        Column that splits the answer: by its labels, or by the 10, 50 and 90 % quantiles of a
        number.
    scope : {"population", "documents"}
        Whether authors (and other groups of random terms) that are not set are new ones, or those
        of the documents; the same where the formula has no such term.
    weight : str, optional
        Column of the documents that says how much each counts where other columns are averaged
        over: how many documents, or readers, it stands for. Likelihoods are not weighted.
    data : StructuredCorpus, optional
        What the model was fitted to; needed only where `run` was saved without it.
    chain : int, optional
        One chain alone, by its number from 1. If left out, chains are aligned topic by topic
        with the best one, and each topic's draws are those of the chains that found it.
    num_simulated : int
        Documents that are simulated for each setting and draw, about.
    max_draws : int
        Draws to use at most, evenly spread over chains.
    probability : float in (0, 1)
    random_seed : int

    Returns
    -------
    TopicShares
        Axes `by`, if given, `variable` and topic. Costs O(draws settings
        num_simulated num_topics).

    Raises
    ------
    ValueError
        If there is no such column or value, `data` are not the posterior's, or the posterior does
        not know its model.
    """
    probability = as_probability(probability, "probability")
    num_simulated = as_repeats(num_simulated, "num_simulated", minimum=2)
    data = structured_data(run, data)
    link = run.link
    names = runs.regression_variables(run, data)
    runs.as_draws(run, *names)
    rng = np.random.default_rng(as_seed(random_seed))
    values, design, weights, about = lay_out(
        data, variable, at=at, by=by, scope=scope, num_rows=num_simulated // 2, rng=rng,
        weights=document_weights(data, weight),
    )  # fmt: skip
    sizes, num_rows = [len(of) for of in values.values()], len(weights)
    chains = aligned_chains(run, chain, "coefficients")
    pairs = math.ceil(0.5 * num_simulated / num_rows)
    half = rng.standard_normal((num_rows, pairs, run["coefficients"].shape[-1]))
    noise = np.concatenate([half, -half], axis=1)
    share = weights / (weights.sum() * noise.shape[1])
    rows, expected = np.arange(num_rows), []
    for one in chains:
        draws = runs.of_chain(run, one.chain, *names)
        for i in runs.spread(len(draws["Sigma"]), runs.share_of_draws(max_draws, len(chains))):
            means, which, covariances = runs.prior_at(draws, int(i), design)
            scattered = np.stack([noise @ root.T for root in np.linalg.cholesky(covariances)])
            of_settings = (np.split(x, math.prod(sizes)) for x in (means, which))
            psi = (m[:, None] + scattered[c, rows] for m, c in zip(*of_settings, strict=True))
            shares = [np.einsum("r,rmk->k", share, link.probs(of)) for of in psi]
            expected.append(one.place(runs.united(run, np.stack(shares))))
    labels: dict[str, Any] = {**values, "topic": topic_labels(run, chain)}
    return TopicShares(
        np.stack(expected).reshape(len(expected), *sizes, -1), (*labels,), labels,
        caption=f"{about} Intervals: {scope_of(chains)}.{nesting(data, variable)}",
        probability=probability, num_chains=len(chains),
    )  # fmt: skip


def variance_shares(
    run: Posterior, *, data: StructuredCorpus | None = None, probability: float = 0.9
) -> Estimand:
    """The share of documents' variance, given the covariates, that goes with each random term.

    The share of a term is rho_j / (1 + sum of all rho), of the variance of every coordinate of psi
    alike: for ``(1 | author)`` the correlation of two documents of one author that share nothing
    else, for a curve what its bends add at the average document. All draws of all chains are taken:
    how topics are numbered makes no difference.

    Parameters
    ----------
    run : Posterior
        Of `pgmult.topics.StructuralTopics` and a formula with random terms.
    data : StructuredCorpus, optional
        What the model was fitted to; needed only where `run` was saved without it.
    probability : float in (0, 1)
        Of the interval.
    """
    probability = as_probability(probability, "probability")
    design = structured_data(run, data).design
    if not design.terms:
        wanted, got = "random terms, such as (1 | author)", ", ".join(design.names)
        raise ValueError(f"run must be of a formula with {wanted}, got {got}")
    runs.as_draws(run, "effect_variances")
    sizes = np.asarray(run.stack("effect_variances"), dtype=np.float64)
    shares = sizes / (1.0 + sizes.sum(axis=1, keepdims=True))
    titles = [f"({t.name})" if t.kind == "group" else t.name for t in design.terms]
    levels = [f"{t.size:,}" if t.kind == "group" else "" for t in design.terms]
    return Estimand(
        shares, ("term",), {"term": {"term": titles, "levels": levels}},
        caption="How much of what documents differ in goes with each author (or other group) and"
        " with the bends of curves, the straight-line effects of covariates aside, over all"
        " chains.",
        probability=probability,
    )  # fmt: skip


def columns_of(data: Corpus) -> dict[str, Any]:
    """Return the columns of documents by name: of their formula or their times, and their table."""
    columns = table_of(data.design) if isinstance(data, StructuredCorpus) else {}
    if isinstance(data, TimedCorpus):
        columns = {"time": data.time_labels[data.times]}
    return {**columns, **({} if data.table is None else data.table.columns)}


def document_weights(data: Corpus, weight: str | None) -> FloatArray | None:
    """Return how much each document counts, ``(num_documents,)``: a column of theirs, if named.

    Raises
    ------
    ValueError
        If there is no such column, or a weight is negative, or none positive.
    """
    if weight is None:
        return None
    column = chosen_columns(columns_of(data), [weight], "the corpus", "weight")[weight]
    try:
        weights = as_nonnegative(column, f"column {weight!r}")
    except TypeError as error:
        raise ValueError(str(error)) from None
    if not weights.any():
        raise ValueError(f"column {weight!r} must have a positive weight, got only zeros")
    return weights


def structured_data(run: Posterior, data: object = None) -> StructuredCorpus:
    """The covariates that a posterior was sampled with: its own data, or those given."""
    corpus: object = runs.as_draws(run).data if data is None else data
    if data is None and not isinstance(corpus, StructuredCorpus):
        got = f"one of {type(run.model).__name__} given a {type(corpus).__name__}"
        hint = "make the data with pgmult.topics.with_covariates"
        raise ValueError(f"run must be of data with covariates, got {got} ({hint})")
    return runs.data_of_run(run, data, StructuredCorpus, "make one with with_covariates")


def topic_names(run: Posterior, chain: int | None) -> list[str]:
    """Number and telling words of the topics of one chain, the best if none is given.

    Before the words of a topic with keywords stands what these were called.
    """
    if "topics" not in run:
        labels = run.coords.get("topic")
        count = run.model.num_topics if labels is None else len(labels)
        return [f"topic {k}" for k in range(1, count + 1)]
    means = mean_topics(run, best_chain(run) + 1 if chain is None else chain, max_draws=100)
    words, best = runs.names_along(run, "word", means.shape[-1]), runs.telling(means, _NAME_WORDS)
    called = [f"{name}: " for name in run.coords.get("keyword_topic", [])]
    called += [""] * (len(best) - len(called))
    numbered = enumerate(zip(called, best, strict=True), 1)
    return [f"{k} {name}{' '.join(words[j] for j in row)}" for k, (name, row) in numbered]


def topic_labels(run: Posterior, chain: int | None) -> dict[str, Sequence[Any]]:
    """Labels of an axis of topics: their numbers, and their names."""
    names = topic_names(run, chain)
    return {"topic": range(1, len(names) + 1), "words": names}
