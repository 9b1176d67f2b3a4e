"""Report on a run of a choice model, for a terminal and a page."""

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from scipy.special import ndtr

from pgmult.choice.answers import check, compare, correlations, predict, tastes
from pgmult.choice.data import ChoiceRows
from pgmult.choice.economics import elasticities, worth
from pgmult.choice.people import attributes_of, codes_in_words, data_of_run, numeric_attributes
from pgmult.choice.prices import price_among
from pgmult.core.arguments import as_choice, as_kind, as_mapping, as_path
from pgmult.core.comparison import Comparison, as_comparison
from pgmult.core.estimands import Estimand
from pgmult.core.markup import Leading
from pgmult.core.reports import Interval, Report, Section
from pgmult.core.tabled import Column, Table, number, probability_text
from pgmult.sampling.convergence import chains_in_words
from pgmult.sampling.posterior import Posterior

_MOST_ROWS = 60
_MOST_ALTERNATIVES = 8  # of elasticities


def report(
    run: Posterior, page: str | PathLike[str] | None = None, *, title: str | None = None,
    facts: Mapping[str, str] | None = None, comparison: Comparison | bool = True,
    price: str | None = None,
) -> Report:  # fmt: skip
    """Summarise a run of `MixedLogit`.

    Parameters
    ----------
    run : Posterior
    page : path, optional
        Where to write the report as a page, too.
    title : str, optional
        The formula if left out.
    facts : mapping from str to str, optional
        More facts about the run.
    comparison : Comparison or bool
        Comparison with simple models: the result of `compare`, or True to compute it.
    price : str, optional
        Attribute in whose units others are worth, and by which shares change; if left out, the
        first whose name contains price, cost, fare, toll, fee or rent.
    """
    data, place = data_of_run(run), None if page is None else as_path(page, "page")
    name = str(data.design.formula) if title is None else as_kind(title, "title", str)
    comparison, facts = as_comparison(comparison), as_mapping(facts, "facts")
    if comparison is True:
        comparison = compare(run)
    people = "" if data.person is None else f" by {data.num_people:,} people"
    coefficients, checks = tastes(run), check(run)
    compared = [] if isinstance(comparison, bool) else [comparison]
    parts = {"mean tastes": "mean", "spreads of tastes": "sds"} if len(data.random) else {}
    chains = chains_in_words(run, parts | {"coefficients": "coefficients"})
    verdict = [
        *(sentence for one in compared for sentence in one.sentences),
        f"{data.taken.sum():,.6g} choices in {data.num_occasions:,} occasions{people}.",
        Leading(_strongest(data, coefficients), "Tastes"), *codes_in_words(data),
        Leading(checks.verdict, checks.section().title), chains[0],
    ]  # fmt: skip
    sections = [_tastes(data, coefficients), *_economics(run, price)]
    if len(data.random) > 1 and not data.diagonal:
        sections.append(_together(run))
    if data.named is not None:
        sections.append(_shares(run, data.named))
    sections += [checks.section(), *(one.section() for one in compared)]
    sections.append(Section("Diagnostics", sentences=chains))
    facts = {"formula": str(data.design.formula), **facts}
    return Report(name, verdict, sections, facts).save(place)


def _tastes(data: ChoiceRows, coefficients: Estimand) -> Section:
    """Mean tastes and how people differ; drawn for attributes of one standard deviation each."""
    ends = np.stack([coefficients.mean, *coefficients.interval()], axis=2)
    both = [Interval(m, low, high, ".3g") for m, low, high in ends.reshape(-1, 3).tolist()]
    sds = [sd if j in data.random else "the same for all" for j, sd in enumerate(both[1::2])]
    cells: tuple[list[Any], list[Any]] = (both[::2], sds)
    head = ("mean", "sd over people")
    at_one_sd = coefficients.draws[:, :, 0] * data.scale
    points = Estimand(at_one_sd, ("attribute",), {"attribute": data.names}).points()
    figure = replace(
        points, line=0.0, x_label="",
        cells=[Column("", list(map(str, x)), name) for x, name in zip(cells, head, strict=True)],
        texts=[f"mean {m}, sd over people {sd}" for m, sd in zip(*cells, strict=True)],
        note="Drawn: what one standard deviation of an attribute, among the alternatives of an"
        " occasion, adds to the log odds of being chosen, on average over people.",
    )  # fmt: skip
    how = "Coefficients per unit of each attribute: mean and sd over people [90 % intervals]."
    rows = list(zip(data.names.tolist(), *cells, strict=True))
    return Section(
        "Tastes", how, head=("attribute", *head), figures=[figure], is_drawn=True, rows=rows
    )


def _economics(run: Posterior, price: str | None) -> list[Section]:
    """What attributes are worth, and elasticities, in the price if there is one."""
    data, sections = data_of_run(run).of_best, list[Section]()
    numbers = numeric_attributes(data)
    price = price_among(numbers) if price is None else as_choice(price, "price", numbers)
    if price is None:
        how = (
            f"No attribute is named a price ({', '.join(numbers)}): `fit --price COLUMN` shows them"
            " here, `pgmult choice worth RUN COLUMN` and `elasticities RUN COLUMN` in any of these."
        )
        return [Section("Worth and elasticities", how)] if numbers else []
    if len(attributes_of(data)) > 1:
        note = f"How much {price} makes up for one unit of an attribute, or for another label."
        sections.append(_beside(worth(run, price), "Worth", note))
    if data.alternatives is not None and len(data.alternatives) <= _MOST_ALTERNATIVES:
        note = (
            "Percent change of the share of the first alternative where"
            f" {price} of the second rises by 1 %."
        )
        changes = elasticities(run, price, by=data.named)
        sections.append(_beside(changes, "Elasticities", note, line=0.0))
    return sections


def _shares(run: Posterior, name: str) -> Section:
    """Shares of alternatives by the model, and those taken."""
    data, answer = data_of_run(run).of_best, predict(run, by=name)
    _, of_row = data.labels(name)
    taken = np.bincount(of_row, data.taken, len(answer.draws[0])) / data.taken.sum()
    column = Column("taken", taken.tolist(), "taken", number(3))
    note = "In the occasions of the data."
    return _beside(answer, "Shares of alternatives", note, column, shown=10)


def _beside(
    answer: Estimand, title: str, note: str, *more: Column, shown: int | None = None, **options: Any
) -> Section:  # fmt: skip
    """Draw each row of a table beside its numbers, all axes of the answer one below the other."""
    axis, labels = ", ".join(answer.axes), answer.cells()
    flat = answer.draws.reshape(len(answer.draws), -1)
    rows = replace(answer, draws=flat, axes=(axis,), labels={axis: labels})
    table = rows.table()
    parts = [*table.parts, *more]
    cells = [part for part in parts[len(labels) :] if part.head]
    figures = [replace(rows.points(), cells=cells, **options)]
    table = Table(table.caption, parts)
    return Section(title, note, table=table, is_drawn=True, shown=shown, figures=figures)


def _strongest(data: ChoiceRows, coefficients: Estimand) -> str:
    """The attribute that moves choices most per standard deviation within occasions, in words."""
    constant = [data.named is not None and name.startswith(f"{data.named}[") for name in data.names]
    weight = np.abs(coefficients.mean[:, 0]) * data.scale
    j = int(np.argmax(weight if all(constant) else np.where(constant, 0.0, weight)))
    name, mean = str(data.names[j]), coefficients.draws[:, j, 0]
    less = bool(mean.mean() < 0.0)
    sure = float(np.mean(mean < 0.0 if less else mean > 0.0))
    what = f"more of it makes an alternative {'less' if less else 'more'} likely to be chosen"
    if name not in numeric_attributes(data):  # a label, a product or a bend
        what = f"its coefficient is {'negative' if less else 'positive'}"
    sentence, probability = f"Choices depend most on {name}: {what}", probability_text(sure)
    if data.signs[data.random == j].any():
        return f"{sentence}, by assumption of the model (its sign is fixed)."
    if sure < 0.9:
        return "No attribute clearly makes an alternative more or less likely to be chosen."
    if j not in data.random:
        return f"{sentence} (with probability {probability})."
    mean_of, sd_of = coefficients.draws[:, j].T
    share = ndtr(-mean_of / sd_of) if less else ndtr(mean_of / sd_of)
    return (
        f"{sentence} on average over people (with probability {probability}) and for a share of"
        f" {Interval(share.mean(), *np.quantile(share, [0.05, 0.95]))} of them."
    )


def _together(run: Posterior) -> Section:
    """Pairs of tastes, the most correlated first."""
    pairwise = correlations(run)
    names = list(pairwise.labels["attribute"])
    first, second = np.triu_indices(len(names), 1)
    order = np.argsort(-np.abs(pairwise.mean[first, second]), kind="stable")[:_MOST_ROWS]
    first, second = first[order], second[order]
    labels = [f"{names[a]} and {names[b]}" for a, b in zip(first, second, strict=True)]
    draws, axes = pairwise.draws[:, first, second], {"tastes for": labels}
    pairs = replace(pairwise, draws=draws, axes=tuple(axes), labels=axes, is_difference=True)
    note = "Who wants more of the one also wants more of the other where it is above 0."
    return _beside(pairs, "Tastes that go together", note, shown=8, span=(-1.0, 1.0))
