"""What a report says: everything is computed here, once."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pgmult.core.arguments import as_choice, as_flag, as_kind, as_list, brief
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling import diagnostics
from pgmult.sampling.posterior import ESS_PER_CHAIN_LIMIT, R_HAT_LIMIT, Posterior
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.draws import as_draws
from pgmult.topics.scores.completion import HeldOutScore
from pgmult.topics.summaries.coherence import exclusivity, npmi, topic_diversity
from pgmult.topics.summaries.correlations import TopicCorrelations, topic_correlations
from pgmult.topics.summaries.documents import TopDocument, representative_documents
from pgmult.topics.summaries.matching import TopicMatches, match_topics
from pgmult.topics.summaries.words import SCORES, TopWord, WordScores, word_scores

__all__ = [
    "COHERENCE_WORDS",
    "DIVERSITY_WORDS",
    "TopicReport",
    "run_facts",
    "topic_report",
]

COHERENCE_WORDS = 10  # of a topic, in its coherence and exclusivity
DIVERSITY_WORDS = 25


@dataclass(frozen=True, slots=True, eq=False)
class TopicReport:
    """What is known about the topics of one run.

    Attributes
    ----------
    title : str
    facts : mapping from str to str
        The corpus, the model, the run: in the order in which they are shown.
    by : str
        The score that `words` are ranked by.
    words : lists of TopWord, one a topic
        Of chain 0, as everything about single topics.
    rankings : mapping from str to WordScores
        Scores of all words, for the page: probability, frex, and relevance with all its weight on
        the probability ("log probability") and on the lift ("log lift").
    shares : array, ``(topic,)``, or None
        Posterior mean share of all tokens.
    coherence : array, ``(topic,)``, or None
        NPMI of the ten most probable words, where a reference corpus was given.
    exclusivity : array, ``(topic,)``
        Of the same words, stm's measure.
    diversity : float
        Of the 25 most probable words.
    documents : lists of TopDocument, one a topic
        Empty where proportions were not kept, or not asked for.
    correlations : TopicCorrelations, or None for a model without Sigma
    held_out : sequence of HeldOutScore
    log_likelihood : array, ``(chain, draw)``
    findings : list of str
        Diagnostics in words.
    """

    title: str
    facts: Mapping[str, str]
    by: str
    words: list[list[TopWord]]
    rankings: Mapping[str, WordScores]
    shares: FloatArray | None
    coherence: FloatArray | None
    exclusivity: FloatArray
    diversity: float
    documents: list[list[TopDocument]]
    correlations: TopicCorrelations | None
    held_out: Sequence[HeldOutScore]
    log_likelihood: FloatArray
    findings: list[str]

    @property
    def by_size(self) -> list[int]:
        """Topics, the largest first; in their own order if shares were not kept."""
        if self.shares is None:
            return list(range(len(self.words)))
        return [int(k) for k in np.argsort(-self.shares, kind="stable")]


def topic_report(
    posterior: Posterior,
    *,
    title: str,
    facts: Mapping[str, str] | None = None,
    held_out: Sequence[HeldOutScore] = (),
    reference: Corpus | None = None,
    by: str = "probability",
    num_words: int = 8,
    num_documents: int = 3,
    rank_for_page: bool = True,
    random_seed: int = 0,
) -> TopicReport:
    """Summarise a posterior of topics.

    Parameters
    ----------
    posterior : Posterior
        With ``topics``; ``mu`` and ``Sigma`` for correlations, ``topic_shares`` for sizes, and
        ``theta`` or ``psi`` for documents.
    title : str
    facts : mapping from str to str, optional
    held_out : sequence of HeldOutScore
    reference : Corpus, optional
        For the coherence of topics.
    by : {"probability", "frex", "lift", "relevance"}
        What words are ranked by, at first.
    num_words, num_documents : int
        Top words and representative documents of a topic.
    rank_for_page : bool
        Whether to rank words by all scores, which `as_html` needs and `as_text` does not.
    random_seed : int
        Of the simulated documents behind the correlations.

    Raises
    ------
    ValueError
        If correlations or documents need the posterior's model, and it does not know it.
    """
    as_draws(as_kind(posterior, "posterior", Posterior), "topics")
    if "log_likelihood" not in posterior.sample_stats:
        raise ValueError("posterior must hold the log likelihood in its sample_stats")
    as_kind(title, "title", str)
    facts = {} if facts is None else facts
    if not isinstance(facts, Mapping) or not all(
        isinstance(text, str) for pair in facts.items() for text in pair
    ):
        raise TypeError(f"facts must be a mapping from strings to strings, got {brief(facts)}")
    held_out = as_list(held_out, "held_out", "HeldOutScores")
    for score in held_out:
        as_kind(score, "held_out", HeldOutScore, "see compare_scores")
    as_choice(by, "by", SCORES)
    num_documents = as_positive_int(num_documents, "num_documents", minimum=0)
    rank_for_page = as_flag(rank_for_page, "rank_for_page")
    probability = word_scores(posterior)
    scores = probability if by == "probability" else word_scores(posterior, by)
    rankings = {}
    if rank_for_page:
        rankings = {
            "probability": probability,
            "frex": scores if by == "frex" else word_scores(posterior, "frex"),
            "log probability": word_scores(posterior, "relevance", weight=1.0),
            "log lift": word_scores(posterior, "relevance", weight=0.0),
        }
    has_correlations = "mu" in posterior and "Sigma" in posterior
    has_documents = num_documents > 0 and ("theta" in posterior or "psi" in posterior)
    most_probable = probability.top(COHERENCE_WORDS)
    return TopicReport(
        title=title,
        facts=dict(facts),
        by=by,
        words=scores.top(num_words),
        rankings=rankings,
        shares=posterior["topic_shares"][0].mean(axis=0) if "topic_shares" in posterior else None,
        coherence=None if reference is None else npmi(most_probable, reference),
        exclusivity=exclusivity(probability.mean, COHERENCE_WORDS),
        diversity=topic_diversity(probability.top(DIVERSITY_WORDS)),
        documents=representative_documents(posterior, num_documents) if has_documents else [],
        correlations=(
            topic_correlations(posterior, random_seed=random_seed) if has_correlations else None
        ),
        held_out=tuple(held_out),
        log_likelihood=np.asarray(posterior.sample_stats["log_likelihood"], dtype=np.float64),
        findings=_findings(posterior, match_topics(posterior)),
    )


def run_facts(posterior: Posterior) -> dict[str, str]:
    """What a posterior knows of the run behind it, in words."""
    as_draws(as_kind(posterior, "posterior", Posterior), "topics")
    attrs = posterior.attrs
    run = f"{posterior.num_chains} x {posterior.num_draws} draws"
    if posterior.num_draws < attrs.get("draws", 0):
        run += f" (of {attrs['draws']} planned)"
    if "tune" in attrs:
        run += f" after {attrs['tune']} sweeps of tuning"
    if "seconds" in attrs:
        run += f", {max(attrs['seconds']):.0f} s"
    if "random_seed" in attrs:
        run += f", seed {attrs['random_seed']}"
    return {"topics": str(posterior["topics"].shape[2]), "run": run}


def _findings(posterior: Posterior, matches: TopicMatches) -> list[str]:
    """R-hat and effective sample sizes of what does not depend on labels, and topics matched."""
    chains, draws = posterior.num_chains, posterior.num_draws
    chain_words = f"{chains} chain{'s' if chains > 1 else ''} of {draws} draws"
    if draws < diagnostics.MIN_DRAWS:
        return [f"{chain_words}: too few for diagnostics."]
    findings = [f"{chain_words}."]
    scalars = {"log likelihood": posterior.sample_stats["log_likelihood"]} | {
        name.replace("_", " "): posterior[name]
        for name, dims in posterior.dims.items()
        if len(dims) == 2
    }
    for name, values in scalars.items():
        r_hat = float(diagnostics.r_hat(values))
        ess = float(diagnostics.ess_bulk(values))
        findings.append(
            f"{name}: R-hat {r_hat:.3f}, {_r_hat_in_words(r_hat, chains)};"
            f" worth {ess:.0f} independent draws of {chains * draws},"
            f" {_ess_in_words(ess, chains)}."
        )
    if chains > 1:
        distance = matches.distance[1:]
        apart = int(np.sum(distance.max(axis=0) > 0.5))
        findings.append(
            f"topics matched between chains: median total variation distance"
            f" {np.median(distance):.2f} (0 is the same topic, 1 has no word in common);"
            f" {apart} of {distance.shape[1]} topics have no counterpart within 0.5"
            " in some other chain."
        )
    return findings


def _r_hat_in_words(r_hat: float, chains: int) -> str:
    if math.isnan(r_hat):
        return "undefined (it never changed)"
    who = "the chains agree" if chains > 1 else "the two halves of the chain agree"
    if r_hat <= R_HAT_LIMIT:
        return who
    if r_hat <= 1.1:
        return f"{who} nearly (draw more for R-hat at most {R_HAT_LIMIT})"
    return f"{who.replace('agree', 'do not agree yet')} (tune and draw more)"


def _ess_in_words(ess: float, chains: int) -> str:
    if math.isnan(ess):
        return "undefined"
    if ess >= ESS_PER_CHAIN_LIMIT * chains:
        return "enough for means and intervals"
    if ess >= 10 * chains:
        return "enough for rough means"
    return "too few to rely on"
