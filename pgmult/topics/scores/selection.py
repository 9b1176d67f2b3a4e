"""Choice of the number of topics: held-out scores of one split, paired by document.

Every candidate is fitted to the same training tokens and predicts the same held-out tokens, so what
hard documents have in common cancels in the differences. The best of many candidates looks a little
better than it is: report the score of the chosen one on documents kept apart. Also given are two
measures of stm's ``searchK``: semantic coherence and exclusivity of the topics' words. How far
words scatter around what the chosen model expects of them is what `pgmult.topics.check` shows.

>>> import numpy as np, pgmult
>>> corpus = pgmult.topics.as_corpus(np.random.default_rng(0).poisson(0.5, size=(30, 20)))
>>> choice = search_num_topics(
...     corpus, [2, 4], make_model=pgmult.topics.LDA,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> [candidate.num_topics for candidate in choice.candidates]
[2, 4]
>>> choice.best.difference
0.0
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pgmult.core.answers import Answer
from pgmult.core.arguments import as_list, as_real, as_seed, made
from pgmult.core.figures.lines import Line, Lines
from pgmult.core.scores import Gain
from pgmult.core.tabled import Column, Table, number
from pgmult.core.typing import FloatArray, Model, variable
from pgmult.sampling.driver import sample
from pgmult.topics.data.corpus import (
    Corpus,
    StructuredCorpus,
    as_num_topics,
    corpus_from,
    split_tokens,
)
from pgmult.topics.models.correlated import CorrelatedTopics
from pgmult.topics.models.structural import StructuralTopics
from pgmult.topics.runs import most_probable
from pgmult.topics.scores.completion import DocumentCompletion
from pgmult.topics.summaries.words import exclusivity, npmi

if TYPE_CHECKING:
    from pgmult.sampling.chains import Sweep

_WORDS = 10  # of a topic, for coherence and exclusivity


class Candidate(NamedTuple):
    """One number of topics.

    Attributes
    ----------
    num_topics : int
    log_predictive : float
        Held-out score, nats per token, over the draws of all chains.
    difference, difference_error : float
        From the best candidate, and its standard error over documents, paired, and over chains.
    coherence : float
        Mean NPMI of the topics' ten most probable words in the training documents: see `npmi`.
    exclusivity : float
        Mean exclusivity of these words, from 0 to 10: see `exclusivity`.
    seconds : float
        Of fitting and scoring.
    """

    num_topics: int
    log_predictive: float
    difference: float
    difference_error: float
    coherence: float
    exclusivity: float
    seconds: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TopicChoice(Answer):
    """Candidates by number of topics; printed as a table with a summary in words.

    Attributes
    ----------
    candidates : tuple of Candidate
        In ascending order of the number of topics.
    draws : array, ``(document, candidate)``
        Nats a token of every document with held-out words, which standard errors are made of.
    """

    candidates: tuple[Candidate, ...]
    draws: FloatArray

    @property
    def best(self) -> Candidate:
        """The candidate with the highest score."""
        return max(self.candidates, key=lambda candidate: candidate.log_predictive)

    def smallest_within(self, errors: float = 1.0) -> Candidate:
        """The fewest topics within so many standard errors of the best."""
        errors = as_real(errors, "errors", minimum=0.0)
        near = [c for c in self.candidates if c.difference >= -errors * c.difference_error]
        return near[0]

    def table(self) -> Table:
        """One row per candidate."""
        gains = [f"{c.difference:+.4f} ± {c.difference_error:.4f}" for c in self.candidates]
        shown: dict[str, tuple[str, Any]] = {
            "num_topics": ("topics", str), "log_predictive": ("nats a token", number(4)),
            "difference": ("from the best", gains), "coherence": ("coherence", number(3)),
            "exclusivity": ("exclusivity", number(2)), "seconds": ("seconds", number(1)),
        }  # fmt: skip
        columns = [
            Column(name, [getattr(c, name) for c in self.candidates], *shown.get(name, ()))
            for name in Candidate._fields
        ]
        return Table(self._in_words(), columns)

    def figure(self) -> Lines:
        """The scores, with one standard error, paired by document, of the way to the best."""
        rows = [[c.num_topics, c.log_predictive, c.difference_error] for c in self.candidates]
        numbers, scores, errors = np.transpose(rows)
        ends = [(scores - errors, scores + errors)]
        return Lines(
            [Line("", 0, numbers, scores, ends)], self._in_words(), "number of topics",
            y_label="held-out log p per token", from_zero=False,
        )  # fmt: skip

    def _in_words(self) -> str:
        best, fewest = self.best, self.smallest_within()
        more = f", and {fewest.num_topics} do so within one standard error" * (fewest is not best)
        return f"{best.num_topics} topics predict held-out words best{more}."


def search_num_topics(
    data: object, candidates: Sequence[int], *,
    make_model: Callable[[int], Model[Any, Any]] | None = None, documents: int | None = None,
    observed: float = 0.5, every: int = 5, random_seed: int = 0, **options: Any,
) -> TopicChoice:  # fmt: skip
    """Fit models of several numbers of topics and score them on the same held-out tokens.

    Parameters
    ----------
    data : Corpus, sparse matrix or array, ``(num_documents, num_words)``
        With covariates, of prevalence and of content, or without.
    candidates : sequence of int
        Numbers of topics, >= 2, each of them once.
    make_model : callable, optional
        From a number of topics to a model, such as ``pgmult.topics.LDA`` or
        ``lambda k: StructuralTopics(k, word_concentration=0.1)``. If left out,
        `pgmult.topics.StructuralTopics` where the documents have covariates, and
        `pgmult.topics.CorrelatedTopics` where not.
    documents : int, optional
        How many documents lose tokens; a tenth of them, but no fewer than two, if left out.
    observed : float
        Share of their tokens that stay in training; with a small one, correlations between topics
        matter more.
    every : int
        Sweeps from one score to the next, after tuning.
    random_seed : int
        Of the split and of all chains.
    **options
        Passed on to `pgmult.sample`: ``draws``, ``tune``, ``chains``, ``cores``, ``progressbar``.
        Draws are scored and not kept.

    Raises
    ------
    ValueError
        If `candidates` is empty or names a number twice, or the split leaves nothing to score.

    Examples
    --------
    ``print(search_num_topics(...))`` is a table, and
    ``search_num_topics(...).plot()`` draws it.
    """
    asked = as_list(candidates, "candidates", "numbers of topics")
    numbers = sorted(as_num_topics(k, "candidates") for k in asked)
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"candidates must be different numbers of topics, got {asked}")
    seed = as_seed(random_seed)
    corpus = corpus_from(data, "data")
    if not (corpus.totals > 1).any():
        raise ValueError(f"data must have documents of two tokens or more, got {corpus!r}")
    if documents is None:
        documents = min(corpus.num_documents, max(2, corpus.num_documents // 10))
    if make_model is None:
        structured = isinstance(corpus, StructuredCorpus)
        make_model = StructuralTopics if structured else CorrelatedTopics
    models = [made(make_model, number, "a number of topics") for number in numbers]
    training, held_out = split_tokens(corpus, documents, observed, random_seed=seed)
    found = []
    for model in models:
        completion = DocumentCompletion(held_out, every=every)
        look, begin = _Look(completion), time.perf_counter()
        sample(model, training, keep=(), callback=look, random_seed=seed, **options)
        found.append((completion.score(), *look.found(training), time.perf_counter() - begin))
    scores, table = [score for score, *_ in found], list[Candidate]()
    best = max(scores, key=lambda score: score.log_predictive)
    for size, (score, *others) in zip(numbers, found, strict=True):
        gain = Gain(0.0, 0.0) if score is best else score.gain_over(best)
        table.append(Candidate(size, score.log_predictive, gain.mean, gain.error, *others))
    by_token = [score.by_unit / np.maximum(score.totals, 1) for score in scores]
    return TopicChoice(tuple(table), np.column_stack(by_token))


class _Look:
    """Scores held-out tokens and averages topics while chains run."""

    def __init__(self, completion: DocumentCompletion):
        self._completion = completion
        self._topics: dict[int, FloatArray] = {}

    def __call__(self, sweep: "Sweep") -> None:
        """Look at one state of a chain."""
        self._completion(sweep)
        if sweep.tuning or sweep.index % self._completion.every:
            return
        topics = variable(sweep.model, sweep.state, sweep.data, "topics")
        self._topics[sweep.chain] = self._topics.get(sweep.chain, 0.0) + topics

    def found(self, training: Corpus) -> tuple[float, float]:
        """Mean coherence and exclusivity of chains' topics."""
        scores = []
        names = range(training.num_words) if training.vocabulary is None else training.vocabulary
        for total in self._topics.values():
            topics = total / total.sum(axis=1, keepdims=True)
            words = [[str(names[j]) for j in topic] for topic in most_probable(topics, _WORDS)]
            scores.append((npmi(words, training).mean(), exclusivity(topics, _WORDS).mean()))
        coherence, exclusive = np.mean(scores, axis=0).tolist()
        return coherence, exclusive
