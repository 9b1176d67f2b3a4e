"""What a run of a choice model found, for a terminal and a page."""

from collections.abc import Mapping
from os import PathLike

import numpy as np
from scipy.special import ndtr

from pgmult.choice.answers import compare, correlations, data_of_run, predict, tastes
from pgmult.choice.data import ChoiceRows
from pgmult.core.arguments import as_kind, as_mapping, as_path
from pgmult.core.comparison import Comparison, as_comparison
from pgmult.core.estimands import Estimand
from pgmult.core.reports import Interval, Report, Section
from pgmult.sampling.convergence import chains_in_words
from pgmult.sampling.posterior import Posterior

_MOST_ROWS = 60


def report(
    run: Posterior,
    page: str | PathLike[str] | None = None,
    *,
    title: str | None = None,
    facts: Mapping[str, str] | None = None,
    comparison: Comparison | bool = True,
) -> Report:
    """Summarise a run of `MixedLogit`.

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
        With simple rivals, which `compare` finds if True.
    """
    data = data_of_run(run)
    place = None if page is None else as_path(page, "page")
    name = str(data.design.formula) if title is None else as_kind(title, "title", str)
    comparison = as_comparison(comparison)
    if comparison is True:
        comparison = compare(run)
    people = "" if data.person is None else f" by {data.num_people:,} people"
    verdict = [] if comparison is False else [*comparison.sentences]
    verdict.append(f"{data.taken.sum():,.6g} choices in {data.num_occasions:,} occasions{people}.")
    found = tastes(run)
    verdict.append(_strongest(data, found))
    rows = [
        (
            attribute,
            *(Interval(found.mean[j, k], found.lower[j, k], found.upper[j, k], ".3g")
              for k in range(2 if j in data.random else 1)),
            *([] if j in data.random else ["the same for all"]),
        )
        for j, attribute in enumerate(data.names.tolist())
    ]  # fmt: skip
    sections = [
        Section(
            "Tastes",
            "Coefficients of the attributes in their own units: the mean over people, and how much"
            " people differ [90 % interval].",
            head=("attribute", "mean", "sd over people"), rows=rows,
        )
    ]  # fmt: skip
    if len(data.random) > 1 and not data.diagonal:
        sections.append(_together(run))
    if data.alternatives is not None:
        shares = predict(run, by=data.alternatives.columns[0])
        observed = np.bincount(data.alternative, data.taken) / data.taken.sum()
        ends = zip(shares.mean, shares.lower, shares.upper, strict=True)
        sections.append(
            Section(
                "Shares of alternatives",
                "In the occasions of the data [90 % interval].",
                head=("alternative", "model", "taken"),
                rows=[
                    (label, Interval(*end, ".3f"), f"{seen:.3f}")
                    for label, end, seen in zip(
                        data.alternatives.names.tolist(), ends, observed, strict=True
                    )
                ][:_MOST_ROWS],
                shown=10,
            )
        )
    if comparison is not False:
        sections.append(comparison.section())
    parts = {"mean tastes": "mean", "spreads of tastes": "sds"} if len(data.random) else {}
    chains, *details = chains_in_words(run, parts | {"coefficients": "coefficients"})
    sections.append(Section("Diagnostics", sentences=[chains, *details]))
    whole = Report(
        name, [*verdict, chains], sections,
        {"formula": str(data.design.formula)} | dict(as_mapping(facts, "facts")),
    )  # fmt: skip
    if place is not None:
        whole.save(place)
    return whole


def _strongest(data: ChoiceRows, found: Estimand) -> str:
    """Which attribute moves choices most, a standard deviation within occasions each."""
    j = int(np.argmax(np.abs(found.mean[:, 0]) * data.scale))
    mean = found.draws[:, j, 0]
    way = "against" if mean.mean() < 0.0 else "for"
    sure = float(np.mean(mean < 0.0 if way == "against" else mean > 0.0))
    said = f"Nothing speaks {way} an alternative as much as its {data.names[j]} (probability that"
    said += f" it does on average: {sure:.2f})"
    if j in data.random:
        mean_of, sd_of = found.draws[:, j].T
        if data.signs[data.random == j][0] == 0.0:
            share = ndtr(-mean_of / sd_of) if way == "against" else ndtr(mean_of / sd_of)
            low, high = np.quantile(share, [0.05, 0.95])
            said += f"; it does for a share of {Interval(share.mean(), low, high)} of people"
    return said + "."


def _together(run: Posterior) -> Section:
    """Pairs of tastes, the most correlated first."""
    found = correlations(run)
    names = list(found.labels["attribute"])
    first, second = np.triu_indices(len(names), 1)
    order = np.argsort(-np.abs(found.mean[first, second]), kind="stable")
    rows = [
        (
            f"{names[a]} and {names[b]}",
            Interval(found.mean[a, b], found.lower[a, b], found.upper[a, b]),
            f"{float(np.mean(found.draws[:, a, b] > 0.0)):.2f}",
        )
        for a, b in zip(first[order].tolist(), second[order].tolist(), strict=True)
    ]
    return Section(
        "Tastes that go together",
        "Correlations over people [90 % interval]; who wants more of the one also wants more of the"
        " other where it is above 0.",
        head=("tastes for", "correlation", "P(> 0)"), rows=rows[:_MOST_ROWS], shown=8,
    )  # fmt: skip
