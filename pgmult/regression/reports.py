"""What a run of an additive regression found: shares by group, how sure, and whether they help."""

from collections.abc import Mapping
from os import PathLike

import numpy as np

from pgmult.core.arguments import as_kind, as_mapping, as_path
from pgmult.core.estimands import Estimand
from pgmult.core.labels import value_texts
from pgmult.core.reports import Cell, Interval, Report, Section
from pgmult.core.validate import as_positive_int
from pgmult.formulas.terms import GroupTerm
from pgmult.regression.answers import data_of_run, effects, group_shares, log_scores
from pgmult.sampling.convergence import chains_in_words
from pgmult.sampling.posterior import Posterior

__all__ = ["report"]

_DRAWS = 400
_MOST_ROWS = 60


def report(
    run: Posterior,
    page: str | PathLike[str] | None = None,
    *,
    title: str | None = None,
    facts: Mapping[str, str] | None = None,
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
    max_draws : int
    """
    data, used = data_of_run(run), as_positive_int(max_draws, "max_draws")
    place = None if page is None else as_path(page, "page")
    name = str(data.design.formula) if title is None else as_kind(title, "title", str)
    design, number = data.design, int(data.counts.sum())
    shares = data.counts.sum(axis=0) / number
    told = ", ".join(
        f"{data.categories[k]} {shares[k]:.3f}" for k in np.argsort(-shares, kind="stable")
    )
    verdict = [
        f"{number:,} respondents in {data.num_rows:,} cells of equal covariates. Shares: {told}."
    ]
    gains = log_scores(run, used) - np.log(np.maximum(shares, 1e-300))
    gain = float(np.sum(data.counts * gains) / number)
    error = float(np.sqrt(np.sum(data.counts * (gains - gain) ** 2)) / number)
    word = "better than" if gain > 2 * error else "worse than" if gain < -2 * error else "like"
    verdict.append(
        f"The model predicts a new respondent {word} the overall shares do: {gain:+.4f} ±"
        f" {error:.4f} nats each, estimated from the same respondents less what fitting gains."
    )
    sections = []
    for term in design.terms:
        if isinstance(term, GroupTerm):
            found = group_shares(run, term, max_draws=used)
            verdict.append(_extremes(found, term.name))
            sections.append(_by_level(found, f"Shares by {' and '.join(term.variables)}"))
    for column in design.columns.names.tolist():
        found = effects(run, column, max_draws=min(used, 200))
        sections.append(_by_level(found, f"If all had the same {column}"))
    if design.terms:
        sds = run.stack("sds")
        ends = np.quantile(sds, [0.05, 0.95], axis=0)
        rows = [
            (str(category), term.name, Interval(sds[:, k, t].mean(), *ends[:, k, t]))
            for k, category in enumerate(data.categories[data.order[:-1]])
            for t, term in enumerate(design.terms)
        ]
        sections.append(
            Section(
                "Standard deviations of groups and curves",
                "On the scale of log odds of each category among those after it in the order [90 %"
                " interval].",
                head=("category", "term", "sd"),
                rows=rows,
            )
        )
    names = {"weights": "weights"} | ({"standard deviations": "sds"} if design.terms else {})
    chains, *details = chains_in_words(run, names)
    sections.append(Section("Diagnostics", sentences=[chains, *details]))
    order = ", ".join(data.categories[data.order].tolist())
    known = {"formula": str(design.formula), "order of categories": order}
    found_report = Report(
        name, [*verdict, chains], sections,
        known | dict(as_mapping(facts, "facts")),
    )  # fmt: skip
    if place is not None:
        found_report.save(place)
    return found_report


def _extremes(found: Estimand, name: str) -> str:
    """Where the category that varies most is most and least frequent."""
    mean = found.mean
    k = int(np.argmax(mean.max(axis=0) - mean.min(axis=0)))
    top, low = int(mean[:, k].argmax()), int(mean[:, k].argmin())
    axis, labels = found.axes[0], found.labels
    categories = np.asarray(labels["category"])
    levels = np.asarray(labels[axis])
    ends = [
        f"{levels[i]} ({Interval(mean[i, k], found.lower[i, k], found.upper[i, k])})"
        for i in (low, top)
    ]
    above = float(np.mean(found.draws[:, top, k] > found.draws[:, low, k]))
    return (
        f"By {name.removeprefix('1 | ')}, {categories[k]} differs most: from {ends[0]} to"
        f" {ends[1]}; the second is the larger with probability {above:.2f}."
    )


def _by_level(found: Estimand, title: str) -> Section:
    """A row a level, a column a category."""
    axis, categories = found.axes[0], np.asarray(found.labels["category"]).tolist()
    labels = value_texts(np.asarray(found.labels[axis]).tolist())
    mean, lower, upper = found.mean, found.lower, found.upper
    rows: list[list[Cell]] = []
    for i, label in enumerate(labels[:_MOST_ROWS]):
        ends = zip(mean[i], lower[i], upper[i], strict=True)
        rows.append([label, *(Interval(*end) for end in ends)])
    return Section(
        title, "Means over the respondents [90 % interval].", head=(axis, *map(str, categories)),
        rows=rows, shown=8,
    )  # fmt: skip
