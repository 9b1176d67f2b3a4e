"""What a report says: everything is computed here, once.

The topics are those of the chain with the best log likelihood. Each is listed with its number in
that chain's draws (the number that every function and command uses), named by three words that tell
it from the others, and compared with its counterparts in the other chains. The largest topic comes
first.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pgmult.core.arguments import as_choice, as_flag, as_kind
from pgmult.core.comparison import Comparison
from pgmult.core.estimands import Estimand
from pgmult.core.markup import Leading
from pgmult.core.reports import run_in_words
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling import diagnostics
from pgmult.sampling.convergence import ESS_PER_CHAIN_LIMIT
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.draws import as_draws, telling
from pgmult.topics.reports.structure import Structure, structure_of
from pgmult.topics.summaries.coherence import exclusivity, npmi
from pgmult.topics.summaries.correlations import (
    TopicCorrelations,
    strongest_pairs,
    topic_correlations,
)
from pgmult.topics.summaries.quotes import Quote, quotes
from pgmult.topics.summaries.stability import TopicStability, topic_stability
from pgmult.topics.summaries.words import (
    SCORES,
    TopWord,
    WordScores,
    keywords,
    topic_labels,
    word_scores,
)

COHERENCE_WORDS = 10  # of a topic, in its coherence and exclusivity
NAME_WORDS = 3
_NAMED = 3  # topics in the first sentence
SLOW_R_HAT = 1.05  # of a chain's halves: below it they agree
DRIFT_R_HAT = 1.2  # above it the chain's halves differ
_STILL = 0.01  # nats a word that log likelihoods move, below which topics stay what they are


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """What is known about the topics of one run, the largest topic first.

    Attributes
    ----------
    verdict : list of str
        What to know before anything else, in sentences.
    chain : int
        The chain with the best log likelihood, whose topics these are; intervals are within it.
    topics : int array, ``(topic,)``
        The number that each topic has in the draws of that chain.
    names : list of str
        Number and telling words of each topic.
    by : str
        The score that `words` are ranked by.
    words : lists of TopWord, one per topic
    rankings : mapping from str to WordScores
        Scores of all words, for the page: probability, frex, and relevance with all its weight on
        the probability ("log probability") and on the lift ("log lift").
    shares, share_errors : arrays, ``(topic,)``, or None
        Share of all tokens, posterior mean and standard deviation.
    stability : TopicStability
        Which chains found each topic.
    coherence : array, ``(topic,)``, or None
        NPMI of the ten most probable words, where a reference corpus was given.
    exclusivity : array, ``(topic,)``
        Of the same words, stm's measure.
    documents : lists of Quote, one per topic
        Empty where proportions were not kept, or not asked for.
    correlations : TopicCorrelations, or None for a model without Sigma
        Over what shares of one whole show anyway: `TopicCorrelations.excess`.
    log_likelihood : array, ``(chain, draw)``
    findings : list of str
        Diagnostics in words.
    structure : Structure or None
        What covariates do, where the model has any and the posterior finds its data.
    comparisons : mapping from str to Comparison
        With LDA and word frequencies, by how much was seen of a text.
    keywords : Estimand or None
        How strongly keywords were taken up, where topics were given some.
    """

    verdict: list[str]
    chain: int
    topics: IntArray
    names: list[str]
    by: str
    words: list[list[TopWord]]
    rankings: Mapping[str, WordScores]
    shares: FloatArray | None
    share_errors: FloatArray | None
    stability: TopicStability
    coherence: FloatArray | None
    exclusivity: FloatArray
    documents: list[list[Quote]]
    correlations: TopicCorrelations | None
    log_likelihood: FloatArray
    findings: list[str]
    structure: Structure | None
    comparisons: Mapping[str, Comparison]
    keywords: Estimand | None


def contents_of(
    posterior: Posterior,
    reference: Corpus | None,
    by: str,
    num_words: int,
    num_documents: int,
    rank_for_page: bool,
    covariates: bool,
    random_seed: int,
    comparisons: Mapping[str, Comparison],
) -> Contents:
    """Compute what `pgmult.topics.report` tells, which describes the arguments."""
    as_draws(as_kind(posterior, "posterior", Posterior), "topics")
    if "log_likelihood" not in posterior.sample_stats:
        raise ValueError("posterior must hold the log likelihood in its sample_stats")
    as_choice(by, "by", SCORES)
    num_documents = as_positive_int(num_documents, "num_documents", minimum=0)
    rank_for_page = as_flag(rank_for_page, "rank_for_page")
    covariates = as_flag(covariates, "covariates")

    stability = topic_stability(posterior)
    chain = stability.matches.reference
    shares = share_errors = None
    order = np.arange(len(stability.names))
    if "topic_shares" in posterior:
        draws = np.asarray(posterior["topic_shares"][chain], dtype=np.float64)
        order = np.argsort(-draws.mean(axis=0), kind="stable")
        shares, share_errors = draws.mean(axis=0)[order], draws.std(axis=0)[order]

    def ranked(by: str, weight: float | None = None) -> WordScores:
        scores = word_scores(posterior, by, weight=weight, chain=chain)
        return WordScores(scores.mean[order], scores.sd[order], scores.names, scores.scope)

    probability = ranked("probability")
    scores = probability if by == "probability" else ranked(by)
    rankings = {}
    if rank_for_page:
        rankings = {
            "probability": probability,
            "frex": scores if by == "frex" else ranked("frex"),
            "log probability": ranked("relevance", 1.0),
            "log lift": ranked("relevance", 0.0),
        }
    documents: list[list[Quote]] = []
    if num_documents > 0 and ("theta" in posterior or "psi" in posterior):
        documents = quotes(posterior, order.tolist(), num_documents, chain=chain).quotes
    correlations = None
    if "mu" in posterior and "Sigma" in posterior:
        correlations = (
            topic_correlations(posterior, chain=chain, random_seed=random_seed).take(order).excess()
        )
    most_probable = probability.top(COHERENCE_WORDS)
    told = telling(probability.mean, NAME_WORDS)
    labels = topic_labels([[probability.names[j] for j in row] for row in told], NAME_WORDS)
    seeded = None
    if "keyword_shares" in posterior and "topic_shares" in posterior:
        seeded = keywords(posterior)
        given = {k: f"{name}: " for k, name in enumerate(seeded.labels["topic"])}
        labels = [given.get(k, "") + label for k, label in zip(order.tolist(), labels, strict=True)]
    names = [f"{k} {label}" for k, label in zip(order.tolist(), labels, strict=True)]
    stability = stability.take(order)
    structure = structure_of(posterior, order, names, random_seed) if covariates else None
    return Contents(
        verdict=[
            Leading(_largest_in_words(names, shares), "topics-told"),
            Leading(_agreement_in_words(stability), "stability"),
            *([] if structure is None else structure.verdict),
            *_predictions_in_words(comparisons),
            *_verdict(posterior, correlations, names),
        ],
        chain=int(posterior.coords["chain"][chain]),
        topics=order,
        names=names,
        by=by,
        words=scores.top(num_words),
        rankings=rankings,
        shares=shares,
        share_errors=share_errors,
        stability=stability,
        coherence=None if reference is None else npmi(most_probable, reference),
        exclusivity=exclusivity(probability.mean, COHERENCE_WORDS),
        documents=documents,
        correlations=correlations,
        log_likelihood=np.asarray(posterior.sample_stats["log_likelihood"], dtype=np.float64),
        findings=_findings(posterior, stability),
        structure=structure,
        comparisons=comparisons,
        keywords=seeded,
    )


def run_facts(posterior: Posterior) -> dict[str, str]:
    """What a posterior knows of the run behind it, in words."""
    as_draws(as_kind(posterior, "posterior", Posterior), "topics")
    return {"topics": str(posterior["topics"].shape[2]), "run": run_in_words(posterior)}


def _largest_in_words(names: Sequence[str], shares: FloatArray | None) -> str:
    """The largest topics, which stand first."""
    sizes = (
        [""] * len(names)
        if shares is None
        else [f" ({100.0 * s:.0f} % of all words)" for s in shares]
    )
    few = [f'"{name}"{size}' for name, size in zip(names, sizes, strict=True)][:_NAMED]
    return f"The largest of {len(names)} topics: {', '.join(few)}."


def _predictions_in_words(comparisons: Mapping[str, Comparison]) -> list[str]:
    """How well the model tells words, beside its rivals."""
    if not comparisons:
        return [
            "How well the model tells words was not asked: .report(comparison=True) tells, beside"
            " LDA and word frequencies."
        ]
    return [
        Leading(_comparison_in_words(seen, found), found.section().title + seen_in_words(seen))
        for seen, found in comparisons.items()
    ]


def seen_in_words(seen: str) -> str:
    """What a comparison's title says of how much of a text was seen."""
    return f" {seen[:1].upper()}{seen[1:]} of a text seen" if seen else ""


def _comparison_in_words(seen: str, found: Comparison) -> str:
    """Of how many equally likely words a held-out one would be, to the model and its rivals."""
    each = list(zip(found.names, found.levels, found.gains, strict=True))[1:]
    told = [
        f"one of {math.exp(-level):,.0f} to {name}" for name, level, gain in each if gain.sign > 0
    ]
    first = f"one of {math.exp(-found.levels[0]):,.0f} to the model"
    start = f"With {seen} of a text seen, a" if seen else "A"
    text = f"{start} word that was held out is {', '.join([first, *told])}"
    text += "".join(
        f"; {name} tells it as well ({gain} nats, too close to call)"
        for name, _, gain in each
        if gain.sign == 0
    )
    text += "".join(
        f"; {name} tells it better ({gain} nats): take it if words are to be told"
        for name, _, gain in each
        if gain.sign < 0
    )
    return f"{text}."


def _verdict(
    posterior: Posterior, correlations: TopicCorrelations | None, names: Sequence[str]
) -> list[str]:
    """Which topics go together, and whether chains have settled."""
    sentences = list[str]()
    if correlations is not None:
        together = [p for p in strongest_pairs(correlations, 2)[0] if p.lower > 0.0]
        if together:
            pairs = ", ".join(f'"{names[p.first]}" with "{names[p.second]}"' for p in together)
            sentences.append(Leading(f"Topics that go together most: {pairs}.", "together"))
    slow = _mixing(posterior)
    if slow:
        sentences.append(slow)
    return sentences


def _agreement_in_words(stability: TopicStability) -> str:
    text = f"{stability.headline[0].upper()}{stability.headline[1:]}"
    if len(stability.matches.order) == 1:
        return f"{text}: sample several chains to see which topics are found again."
    if stability.given_one_mode:
        return f"{text}."
    if stability.matches.by_all.all():
        return f"{text}; {stability.breakdown}."
    return (
        f"{text}; {stability.breakdown}. The others belong to modes that chains do not leave: more"
        ' chains tell how often each is found, and starts="shared" reads one mode.'
    )


def _within(posterior: Posterior) -> dict[str, tuple[float, float]]:
    """Worst R-hat and fewest effective draws of a chain by itself, of some quantities."""
    values = {"log likelihood": posterior.sample_stats["log_likelihood"]}
    for name in ("effective_topics", "topic_shares"):
        if name in posterior:
            values[name.replace("_", " ")] = posterior[name]
    found = {}
    for name, draws in values.items():
        alone = [np.asarray(draws)[c : c + 1] for c in range(posterior.num_chains)]
        r_hat = max(float(np.nanmax(_or_nan(diagnostics.r_hat(one)))) for one in alone)
        ess = min(float(np.nanmin(_or_nan(diagnostics.ess_bulk(one)))) for one in alone)
        found[name] = r_hat, ess
    return found


def _or_nan(values: FloatArray) -> FloatArray:
    """The values, with 1 appended if all are nan: a variable that never changes has mixed."""
    flat = np.atleast_1d(values)
    return np.append(flat, 1.0) if np.isnan(flat).all() else flat


def _mixing(posterior: Posterior) -> str:
    """Whether chains have settled, and what helps if not, in a sentence; empty if all is well."""
    if posterior.num_draws < diagnostics.MIN_DRAWS:
        return f"{posterior.num_draws} draws a chain are too few to rely on: draw more."
    worst, fewest = _within(posterior)["log likelihood"]
    moved = _drift(posterior)
    if worst > DRIFT_R_HAT and moved is not None and moved > _STILL:
        return (
            f"A chain's log likelihood is still rising, by {moved:.3f} nats a word from half to"
            " half: its topics are still forming. Once it is level, more sweeps find no others."
        )
    if worst > SLOW_R_HAT or fewest < 10:
        settled = ""
        if moved is not None:
            settled = (
                f" It has settled (its log likelihood rises by {max(moved, 0.0):.3f} nats a word"
                " from half to half): longer chains would find the same topics."
            )
        return (
            f"Intervals are rough: the slowest chain is worth {fewest:.0f} independent draws of"
            f" {posterior.num_draws}.{settled}"
        )
    return ""


def _drift(posterior: Posterior) -> float | None:
    """How far a chain's log likelihood rises between its halves, nats per word, at most."""
    try:
        number = posterior.data.num_tokens
    except (AttributeError, ValueError):
        return None  # draws that do not know their data
    values = np.asarray(posterior.sample_stats["log_likelihood"])
    half = values.shape[1] // 2
    moved = values[:, half:].mean(axis=1) - values[:, :half].mean(axis=1)
    return float(moved.max() / max(number, 1))


def _findings(posterior: Posterior, stability: TopicStability) -> list[str]:
    """How each chain mixes, and which topics the chains share."""
    chains, draws = posterior.num_chains, posterior.num_draws
    chain_words = f"{chains} chain{'s' if chains > 1 else ''} of {draws} draws"
    if draws < diagnostics.MIN_DRAWS:
        return [f"{chain_words}: too few for diagnostics."]
    findings = [f"{chain_words}."]
    for name, (r_hat, ess) in _within(posterior).items():
        findings.append(
            f"{name}, each chain by itself: split R-hat at most {r_hat:.3f}"
            f" ({_r_hat_in_words(r_hat)}), worth at least {ess:.0f} independent"
            f" draw{'s' * (ess >= 1.5)} of {draws} ({_ess_in_words(ess)})."
        )
    if chains > 1:
        matched = stability.matches
        distance = np.delete(matched.distance, matched.reference, axis=0)
        findings.append(
            f"topics of chain {matched.reference} matched to the others': median total variation"
            f" distance {np.median(distance):.2f} (0 is the same topic, 1 has no word in common);"
            f" {int((~matched.by_all).sum())} of {distance.shape[1]} topics have no counterpart"
            f" within {matched.limit:g} in some other chain."
        )
        if stability.given_one_mode:
            findings.append(
                "the chains were started from one state: that they agree says nothing of what"
                " another start would find."
            )
        elif not matched.by_all.all():
            findings.append(
                "chains that start apart rest in modes that they do not leave: more draws do not"
                " bring them together, more chains tell better which topics are found again."
            )
    return findings


def _r_hat_in_words(r_hat: float) -> str:
    if r_hat <= SLOW_R_HAT:
        return "its halves agree"
    if r_hat <= DRIFT_R_HAT:
        return "its halves agree nearly"
    return "its halves differ"


def _ess_in_words(ess: float) -> str:
    if math.isnan(ess):
        return "undefined"
    if ess >= ESS_PER_CHAIN_LIMIT:
        return "enough for means and intervals"
    if ess >= 10:
        return "enough for rough means"
    return "too few for intervals"
