"""The report on a run of topics, for a terminal and for a page."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmult.core.arguments import as_flag, as_kind, as_path, brief
from pgmult.core.comparison import Comparison
from pgmult.core.reports import Report
from pgmult.core.validate import as_positive_int
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.reports.contents import Contents, contents_of, run_facts
from pgmult.topics.reports.looks import STYLE
from pgmult.topics.reports.sections import one_topic, script_of, sections_of
from pgmult.topics.scores.rivals import compare_with_rivals


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReport(Report):
    """What is known of the topics of a run; print it for a text.

    Attributes
    ----------
    title, verdict, sections, facts, style, script
        As in `pgmult.core.reports.Report`.
    found : Contents
        The numbers behind it.
    """

    found: Contents

    def topic(self, topic: int) -> Report:
        """What is known of one topic, by its number in the draws."""
        last = len(self.found.names) - 1
        topic = as_positive_int(topic, "topic", minimum=0, maximum=last)
        title, sections = one_topic(self.found, int(np.argmax(self.found.topics == topic)))
        return Report(title, [], sections)


def report(
    posterior: Posterior,
    page: str | os.PathLike[str] | None = None,
    *,
    title: str = "Topics",
    facts: Mapping[str, str] | None = None,
    comparison: Comparison | Mapping[str, Comparison] | bool = False,
    reference: Corpus | None = None,
    by: str = "probability",
    num_words: int = 8,
    num_documents: int = 3,
    rank_for_page: bool = True,
    covariates: bool = True,
    random_seed: int = 0,
) -> TopicReport:
    """Summarise a run: topics, their stability, effects of covariates, and the run itself.

    Parameters
    ----------
    posterior : Posterior
        With ``topics``; ``mu`` and ``Sigma`` for correlations, ``topic_shares`` for sizes, and
        ``theta`` or ``psi`` for documents.
    page : path, optional
        Where to write the report as an HTML page.
    title : str
    facts : mapping from str to str, optional
        Of the corpus and the run; those that the posterior knows if left out.
    comparison : Comparison, mapping from str to Comparison, or bool
        How well the model tells words beside LDA and word frequencies: the result of `compare`, or
        True to compute it by short runs; or several, whose keys say how much was seen of a text
        ("half").
    reference : Corpus, optional
        For the coherence of topics.
    by : {"probability", "frex", "lift", "relevance"}
        What words are ranked by, at first.
    num_words, num_documents : int
        Top words and representative documents of a topic.
    rank_for_page : bool
        Whether to rank words by all scores, for a page on which the reader chooses one.
    covariates : bool
        Whether to say what covariates do, where the model has any: it takes the longest.
    random_seed : int
        Of the simulated documents behind the correlations.

    Raises
    ------
    ValueError
        If correlations or documents need the posterior's model, and it does not know it.
    """
    as_kind(title, "title", str)
    page = None if page is None else as_path(page, "page")
    facts = run_facts(posterior) if facts is None else facts
    if not isinstance(facts, Mapping) or not all(
        isinstance(text, str) for pair in facts.items() for text in pair
    ):
        raise TypeError(f"facts must be a mapping from strings to strings, got {brief(facts)}")
    found = contents_of(
        posterior, reference, by, num_words, num_documents, rank_for_page, covariates,
        random_seed, _compared(posterior, comparison, random_seed),
    )  # fmt: skip
    made = TopicReport(
        title, found.verdict, sections_of(found), dict(facts), STYLE, script_of(found), found=found
    )
    made.save(page)
    return made


def _compared(posterior: Posterior, comparison: Any, random_seed: int) -> dict[str, Comparison]:
    """Comparisons by how much was seen of a text."""
    if isinstance(comparison, Comparison):
        return {"": comparison}
    if isinstance(comparison, Mapping):
        return {
            str(seen): as_kind(one, "comparison", Comparison) for seen, one in comparison.items()
        }
    if not as_flag(comparison, "comparison"):
        return {}
    return {"": compare_with_rivals(posterior, random_seed=random_seed)}
