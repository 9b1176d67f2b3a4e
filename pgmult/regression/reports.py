"""Report on a run of an additive regression: effects, their certainty, and predictive value."""

import math
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.arguments import as_kind, as_mapping, as_path
from pgmult.core.averages import Rows, average, differences
from pgmult.core.comparison import Comparison, as_comparison
from pgmult.core.estimands import Estimand
from pgmult.core.figures.base import Figure
from pgmult.core.figures.forest import Forest
from pgmult.core.labels import value_texts
from pgmult.core.markup import Leading
from pgmult.core.reports import Cell, Interval, Report, Section
from pgmult.core.tabled import Column, probability_text
from pgmult.core.tables import truth_of
from pgmult.core.validate import as_positive_int
from pgmult.formulas.columns import label_or_quantile_values, listed, quantiles
from pgmult.formulas.design import table_of
from pgmult.regression import answers
from pgmult.regression.answers import data_of_run, pairs_of, predicted_rows
from pgmult.regression.data import AdditiveRows
from pgmult.regression.scores import check, compare
from pgmult.sampling.convergence import chains_in_words
from pgmult.sampling.posterior import Posterior

_DRAWS = 400
_CELLS = 1.5e7  # probabilities of all draws together
_MOST_ROWS = 60
_MOST_BESIDE = 4  # categories whose numbers stand beside a figure
_RESPONDENTS = 500  # over whom effects are averaged, evenly spread
_CURVE = np.linspace(0.02, 0.98, 13)  # quantiles of a number at which its effects are drawn
_WEIGHTED = (
    "Each observation contributes to the likelihood in proportion to its weight, so intervals are"
    " those of as many independent observations as the weights add up to. Rows held out show"
    " whether the model fits."
)
_SCALES = {
    "log": "log means", "logistic": "log odds", "softmax": "scores of categories",
    "cumulative": "log odds of a category or a higher one",
    "stick_breaking": "log odds of each category among itself and those after it",
}  # fmt: skip
_FAR = (0.2, 2.0)  # spreads of approximations that are near the posterior, and not too far


def report(
    run: Posterior,
    page: str | PathLike[str] | None = None,
    *,
    title: str | None = None,
    facts: Mapping[str, str] | None = None,
    comparison: Comparison | bool = True,
    max_draws: int = _DRAWS,
) -> Report:
    """Summarise a run of an `AdditiveRegression`.

    Parameters
    ----------
    run : Posterior
    page : path, optional
        Where to write the report as a page, too.
    title : str, optional
        The formula if left out.
    facts : mapping from str to str, optional
        What else is known of the run.
    comparison : Comparison or bool
        Comparison with simple models: the result of `compare`, or whether to compute it.
    max_draws : int
    """
    place = None if page is None else as_path(page, "page")
    facts, asked = as_mapping(facts, "facts"), as_comparison(comparison)
    data = data_of_run(run)
    design, unweighted = data.design, not data.is_weighted
    count = min(as_positive_int(max_draws, "max_draws"), most_draws(data))
    grouping = [name for term in design.groupings for name in term.variables]
    rows = predicted_rows(run, by=grouping, max_draws=count)
    name = str(design.formula) if title is None else as_kind(title, "title", str)
    beside = compare(run, max_draws=count) if asked is True and unweighted else asked
    beats = [beside] if isinstance(beside, Comparison) else []
    sample = rows.spread(_RESPONDENTS)
    kind, form = ("Means", ".3g") if data.is_events else ("Shares", ".2f")
    verdict, sections = [_in_short(data)], [answer.section() for answer in beats]
    verdict += [sentence for answer in beats for sentence in answer.sentences]
    if design.columns.names.size:
        caption = f"{data.quantity}: differences, everything else unchanged."
        apart = differences(pairs_of(data), over=sample, caption=caption)
        over = "Differences with everything else unchanged"
        sections.append(_shown(apart, "What each column does", over, f"+{form}"))
    groups = [average(over=rows, by=term.variables) for term in design.groupings]
    by_group = {f"{kind} by {answer.axes[0]}": answer for answer in groups}
    effects = [_effect(data, sample, column) for column in design.columns.names.tolist()]
    along = {f"By {answer.axes[0]}, everything else unchanged": answer for answer in effects}
    for title, answer in (by_group | along).items():
        sections.append(_shown(answer, title, "Averages over the observations", form))
    verdict += _what_matters(effects, data.is_events)
    verdict += [Leading(_extremes(answer), title) for title, answer in by_group.items()]
    if not data.is_events and (design.columns.names.size or design.terms):
        shares = answers.variance_shares(run, max_draws=max(count // 2, 20))
        sections.append(_variances(shares))
        verdict.append(Leading(_explained(shares), "What each term explains"))
    sections += _sds(run, data)
    if unweighted:
        checked = check(run, max_draws=min(count, 200))
        sections.append(checked.section())
    verdict.append(checked.verdict if unweighted else _WEIGHTED)
    names = {"weights": "weights"} | ({"standard deviations": "sds"} if design.terms else {})
    chains, *details = chains_in_words(run, names)
    nearness = [_nearness(run, data)] if run.model.method == "approximate" else []
    note = "In the units of the columns; priors={...} of AdditiveRegression sets others."
    head = ("term", "parameter", "prior")
    priors = Section("Priors", note, head=head, rows=run.model.prior_table(data), shown=6)
    sections += [priors, Section("Diagnostics", sentences=[chains, *details, *nearness])]
    what, kind = "link", run.model.link_name(data)
    if data.is_events:
        what, kind = "outcome", data.family
    of_run = {"formula": str(design.formula), what: kind.replace("_", " ")}
    if data.is_ordered:
        of_run["order of categories"] = ", ".join(data.categories.tolist())
    if data.scatters:
        kind = "beta-binomial" if data.num_categories == 2 else "Dirichlet-multinomial"
        of_run["rows"] = f"scatter: {kind}"
    whole = Report(name, [*verdict, *(nearness or [chains])], sections, of_run | dict(facts))
    return whole.save(place)


def most_draws(data: AdditiveRows) -> int:
    """Draws for a page that does not take longer than the chains, at most 1,000."""
    return min(max(20, int(_CELLS / data.counts.size)), 1000)


def _in_short(data: AdditiveRows) -> str:
    if data.is_events:
        y, times = data.counts[:, 0], data.respondents
        mean = np.average(y, weights=times)
        ratio = np.average((y - mean) ** 2, weights=times) / mean if mean else np.nan
        rows, zeros = f"{times.sum():,.0f} rows", np.average(y == 0, weights=times)
        total = f"{data.categories[0]} {times @ y:,.0f} in all: {mean:.4g} a row"
        return f"{rows}, {total}, the variance {ratio:.3g} times the mean, {zeros:.0%} zeros."
    shares = data.counts.sum(axis=0) / data.counts.sum()
    order = np.argsort(-shares, kind="stable")
    listed = ", ".join(f"{data.categories[k]} {shares[k]:.3f}" for k in order)
    people = f"{data.counts.sum():,} {data.unit}s"
    if data.is_weighted:
        people = f"{data.unit.capitalize()}s of a weight of {data.counts.sum():,.6g} together"
    cells = "1 cell" if data.num_rows == 1 else f"{data.num_rows:,} cells"
    return f"{people} in {cells} of equal covariates. Shares: {listed}."


def _effect(data: AdditiveRows, rows: Rows, column: str) -> Estimand:
    """Probabilities at each label of a column, or along a number."""
    cells = np.asarray(table_of(data.design)[column])
    values, levels = np.unique(cells), data.design.levels_of(column)
    if cells.dtype.kind in "fM" and len(values) > len(_CURVE):
        between = "nearest" if column in answers.known_there(data.design) else "linear"
        values = np.unique(quantiles(data.each_of(cells), _CURVE, between))
    asked = label_or_quantile_values(cells, levels) if levels else listed(values)
    return average(over=rows, set={column: asked})


def _what_matters(effects: list[Estimand], is_events: bool) -> list[str]:
    """The largest difference between values of a column, of those whose interval excludes 0."""
    sure = []
    for effect in effects:
        k = _most_varying(effect)
        most, least = int(effect.mean[:, k].argmax()), int(effect.mean[:, k].argmin())
        draws = effect.draws[:, most, k] - effect.draws[:, least, k]
        low, high = np.quantile(draws, [0.05, 0.95])
        if low > 0.0:
            sure.append((float(draws.mean()), float(low), float(high), effect, k, most, least))
    if not sure:
        none = "No column makes a difference whose 90 % interval excludes 0."
        return [none] if effects else []
    mean, low, high, effect, k, most, least = max(sure, key=lambda one: one[0])
    unit, form = (1.0, ".3g") if is_events else (100.0, ".0f")
    texts, column = _texts(effect), effect.axes[0]
    gap = Interval(unit * mean, unit * low, unit * high, form)
    more = "more" if is_events else "percentage points more frequent"
    at = f"at {texts[most]} rather than {texts[least]}, {_categories(effect)[k]} is {gap} {more}"
    sentence = f"With everything else unchanged, {column} makes the largest difference: {at}."
    return [Leading(sentence, f"By {column}, everything else unchanged")]


def _categories(shares: Estimand) -> list[str]:
    return list(map(str, np.asarray(shares.labels["category"]).tolist()))


def _most_varying(shares: Estimand) -> int:
    """The category with the largest range; of two, the one that says yes, or else the last."""
    categories = np.asarray(shares.labels["category"])
    if len(categories) != 2:
        return int(np.argmax(np.ptp(shares.mean, axis=0)))
    truth = truth_of(categories)
    return 1 if truth is None else int(truth.argmax())


def _extremes(shares: Estimand) -> str:
    """Where the category that varies most is most and least frequent."""
    mean, k, texts = shares.mean, _most_varying(shares), _texts(shares)
    top, low = int(mean[:, k].argmax()), int(mean[:, k].argmin())
    at = [Interval(mean[i, k], shares.lower[i, k], shares.upper[i, k]) for i in (low, top)]
    from_to = f"from {texts[low]} ({at[0]}) to {texts[top]} ({at[1]})"
    above = float(np.mean(shares.draws[:, top, k] > shares.draws[:, low, k]))
    differs = f"By {shares.axes[0]}, {_categories(shares)[k]} differs most: {from_to}"
    return f"{differs}; the second is larger with probability {probability_text(above)}."


def _explained(shares: Estimand) -> str:
    """Say how much of the variance each term explains."""
    terms, mean = np.asarray(shares.labels["term"]), shares.mean
    order = np.argsort(-mean[:-1], kind="stable")
    listed = ", ".join(f"{terms[i]} {100.0 * mean[i]:.1f} %" for i in order)
    explained = 100.0 * (1.0 - mean[-1])
    return f"The terms explain {explained:.0f} % of the variance of single outcomes: {listed}."


def _texts(estimand: Estimand) -> list[str]:
    """What the entries along the first axis are."""
    columns = map(np.asarray, estimand.columns_of(estimand.axes[0]).values())
    return [", ".join(texts) for texts in zip(*map(_rounded, columns), strict=True)]


def _rounded(values: NDArray[Any]) -> list[str]:
    """Labels and dates as texts, numbers to a hundredth of their range; whole ones as they are."""
    if values.dtype.kind != "f":
        return value_texts(list(values))
    spread, largest = float(np.ptp(values)), float(np.abs(values).max())
    if not 0.0 < spread <= 2.0 * largest < 1e9 or (values == np.round(values)).all():
        return value_texts(list(values))
    return [f"{x:.{max(0, 2 - math.floor(math.log10(spread)))}f}" for x in values]


def _shown(estimand: Estimand, title: str, over: str, form: str = ".2f") -> Section:
    """One row per label, a column a category, and a figure of them."""
    categories, texts, axis = _categories(estimand), _texts(estimand)[:_MOST_ROWS], estimand.axes[0]
    ends = [x[:_MOST_ROWS] for x in (estimand.mean, *estimand.interval())]
    notes = []
    for row in zip(*ends, strict=True):
        notes.append([Interval(m, low, high, form) for m, low, high in zip(*row, strict=True)])
    rows: list[list[Cell]] = [[text, *row] for text, row in zip(texts, notes, strict=True)]
    beside = False
    if np.asarray(next(iter(estimand.columns_of(axis).values()))).dtype.kind in "ifM":
        figure: Figure = estimand.curves()
        rows = [rows[i] for i in np.unique(np.linspace(0, len(rows) - 1, 5).astype(int))]
    else:
        beside = len(categories) <= _MOST_BESIDE
        mean, lower, upper = (x.T for x in ends)
        names = categories if beside else []
        cells = [Column("", [str(row[k]) for row in notes], name) for k, name in enumerate(names)]
        figure = Forest(
            labels=texts, mean=mean, lower=lower, upper=upper, legend=dict(enumerate(categories)),
            line=0.0 if estimand.is_difference else None, name=axis, cells=cells,
            texts=[", ".join(map(str, row)) for row in notes],
        )  # fmt: skip
    return Section(
        title, f"{over}, with 90 % intervals.", head=(axis, *categories), rows=rows,
        figures=[figure], is_drawn=beside, shown=8,
    )  # fmt: skip


def _variances(shares: Estimand) -> Section:
    """Show how much of the variance each term explains."""
    ends = zip(shares.mean, *shares.interval(), strict=True)
    intervals = [Interval(100 * m, 100 * low, 100 * high, ".1f") for m, low, high in ends]
    return Section(
        "What each term explains",
        "Percent of the variance of single outcomes [90 % interval]. Most of it is chance in any"
        " survey: a single answer is hard to predict even where shares are certain.",
        head=("term", "%"), rows=list(zip(shares.labels["term"], intervals, strict=True)),
    )  # fmt: skip


def _sds(run: Posterior, data: AdditiveRows) -> list[Section]:
    """Standard deviations of groups and curves, if there are any."""
    if not data.design.terms:
        return []
    sds = run.stack("sds")
    ends = np.quantile(sds, [0.05, 0.95], axis=0)
    rows = [
        (str(category), name, Interval(sds[:, k, t].mean(), *ends[:, k, t]))
        for k, category in enumerate(run.coords["block"].tolist())
        for t, name in enumerate(run.coords["sd"].tolist())
    ]
    if data.family == "negative_binomial":
        sizes = run.model.sizes(run.stack("hyperparameters"), data)
        lower, middle, upper = np.quantile(sizes, [0.05, 0.5, 0.95]).tolist()
        what = "size: the variance is mean + mean^2 / size"
        rows.append((str(data.categories[0]), what, Interval(middle, lower, upper, ".3g")))
    note = f"On the scale of {_SCALES[run.model.link_name(data)]} [90 % interval]."
    head = ("category", "term", "sd")
    return [Section("Standard deviations of groups and curves", note, head=head, rows=rows)]


def _nearness(run: Posterior, data: AdditiveRows) -> str:
    """How near the approximation is that the draws are from."""
    spread = max(approximation.spread for approximation in run.model.approximations(data))
    place = sum(spread >= far for far in _FAR)
    near = ("almost the posterior", "near the posterior", "far from the posterior")[place]
    hint = " (method='sampling' is exact)" if place else ""
    differ = f"log densities differ by a variance of {spread:.2g}{hint}"
    return f"The draws are from an approximation, which is {near}: {differ}."
