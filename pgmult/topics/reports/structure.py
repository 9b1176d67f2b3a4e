"""What a report says of covariates: effects, words by group, quotes, checks.

Of each column that prevalence depends on the first view: labels are compared with the first of
them, numbers make curves, by the groups of the first column of few labels. All else is a call of
`pgmult.topics.effects` away.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from pgmult.core.estimands import Estimand
from pgmult.core.markup import Leading
from pgmult.core.typing import IntArray
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import StructuredCorpus
from pgmult.topics.summaries.checks import PredictiveChecks, check
from pgmult.topics.summaries.content import Content, GroupWords, content
from pgmult.topics.summaries.effects import TopicShares, effects, variance_shares
from pgmult.topics.summaries.quotes import Quotes, quotes

_FEW_LABELS = 5  # of a column whose labels are compared on the page
_FEW_GROUPS = 3  # of curves in one panel
_MOST_CELLS = 2e7  # documents times words, for checks that a report does unasked
_CHECKED_DRAWS = 20
_DRAWS = 200  # of effects: enough for a first view


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """What is known of covariates, topics in the report's order and under its names.

    Attributes
    ----------
    variances : Estimand or None
        What goes with random terms, where there are any.
    differences : list of TopicShares
        Of columns of labels: the second and further labels over the first.
    curves : list of TopicShares
        Of columns of numbers.
    content : Content or None
        Words by group, topics in the posterior's order.
    words : lists of GroupWords, one per topic, or None
        The first two groups compared.
    quotes : Quotes or None
        Where proportions of documents were kept.
    checks : PredictiveChecks or None
        Where proportions of documents were kept, and documents times words are not too many.
    """

    variances: Estimand | None
    differences: list[TopicShares]
    curves: list[TopicShares]
    content: Content | None
    words: list[GroupWords] | None
    quotes: Quotes | None
    checks: PredictiveChecks | None

    @property
    def verdict(self) -> list[str]:
        """What to know first, in sentences."""
        sentences: list[str] = [
            Leading(_largest(found), compared(found)) for found in self.differences
        ]
        if self.checks is not None:
            sentences += [Leading(sentence, "checks") for sentence in self.checks.verdict]
        return sentences


def structure_of(
    posterior: Posterior, order: IntArray, names: Sequence[str], random_seed: int = 0
) -> Structure | None:
    """What there is to say of a posterior's covariates; None if it has none, or lost its data."""
    try:
        data: object = posterior.data
    except ValueError:
        return None
    if not isinstance(data, StructuredCorpus) or "coefficients" not in posterior:
        return None
    names = list(names)
    columns = data.design.columns
    levels = {str(name): columns.levels_of(j) for j, name in enumerate(columns.names)}
    few = {name: of for name, of in levels.items() if 0 < len(of) <= _FEW_LABELS}
    differences = []
    for name, labels in few.items():
        found = effects(posterior, name, max_draws=_DRAWS, random_seed=random_seed).take(
            order, names
        )
        gaps = [found.difference(name, label, labels[0]) for label in labels[1:]]
        differences += [cast(TopicShares, gap) for gap in gaps]
    by = next((name for name, of in few.items() if len(of) <= _FEW_GROUPS), None)
    curves = [
        effects(posterior, name, by=by, max_draws=_DRAWS, random_seed=random_seed).take(
            order, names
        )
        for name, of in levels.items()
        if not of
    ]
    words = in_groups = None
    if data.content is not None and "group_topics" in posterior:
        in_groups = content(posterior)
        pair = in_groups.groups[1], in_groups.groups[0]
        compared = in_groups.compare(*pair, order)
        words = [replace(w, name=name) for w, name in zip(compared, names, strict=True)]
    quoted = checks = None
    if "theta" in posterior or "psi" in posterior:
        found_quotes = quotes(posterior, order.tolist(), 2)
        quoted = replace(found_quotes, names=names)
        if data.num_documents * data.num_words <= _MOST_CELLS:
            groups: list[str] = [name for name in few if "group_topics" not in posterior]
            if data.content is not None:
                groups = [*groups, *data.content.names]
            checks = check(
                posterior, groups=groups or None, max_draws=_CHECKED_DRAWS, random_seed=random_seed
            ).take(order, names)
    variances = variance_shares(posterior) if data.design.terms else None
    return Structure(variances, differences, curves, in_groups, words, quoted, checks)


def compared(found: TopicShares) -> str:
    """What is compared, such as "Party R - D"."""
    return f"{found.term[:1].upper()}{found.term[1:]} {found.contrast}"


def _largest(found: TopicShares) -> str:
    """Which topics differ most, and whether any does beyond its interval."""
    mean, (lower, upper) = found.mean, found.interval()
    sure = np.flatnonzero((lower > 0.0) | (upper < 0.0))
    interval = f"{100 * found.probability:g} % interval"
    if not len(sure):
        return f"{compared(found)}: no topic's share differs beyond its {interval}."
    best = sure[np.argsort(-np.abs(mean[sure]))][:3]
    parts = ", ".join(
        f'"{found.names[k]}" {100 * mean[k]:+.1f} [{100 * lower[k]:+.1f}, {100 * upper[k]:+.1f}]'
        for k in best
    )
    return (
        f"{compared(found)}: {len(sure)} of {len(mean)} topics differ beyond their"
        f" {interval}; in percentage points most, {parts}."
    )
