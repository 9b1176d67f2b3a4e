"""How many topics: by the held-out score of one split, paired by document.

Every candidate is fitted to the same training tokens and predicts the same held-out tokens, so
what hard documents have in common cancels in the differences. The best of many candidates looks a
little better than it is: report the score of the chosen one on documents kept apart.

>>> import numpy as np, pgmult
>>> corpus = pgmult.topics.as_corpus(np.random.default_rng(0).poisson(0.5, size=(30, 20)))
>>> choice = compare_num_topics(
...     pgmult.topics.LDA, corpus, [2, 4],
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
from typing import Any, NamedTuple

import numpy as np

from pgmult.core.arguments import as_list, as_real, brief
from pgmult.core.typing import FloatArray, IntArray, Model
from pgmult.sampling.driver import sample
from pgmult.topics.data.corpus import as_num_topics, corpus_from, split_tokens
from pgmult.topics.scores.completion import DocumentCompletion, gain_over

__all__ = ["Candidate", "TopicChoice", "compare_num_topics"]


class Candidate(NamedTuple):
    """One number of topics.

    Attributes
    ----------
    num_topics : int
    log_predictive : float
        Held-out score, nats a token, over the draws of all chains.
    difference, difference_error : float
        From the best candidate, and its standard error over documents, paired, and over chains.
    seconds : float
        Of fitting and scoring.
    """

    num_topics: int
    log_predictive: float
    difference: float
    difference_error: float
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class TopicChoice:
    """Candidates by number of topics; printed, a table.

    Attributes
    ----------
    candidates : tuple of Candidate
        In ascending order of the number of topics.
    by_document : array, ``(num_candidates, num_documents)``
        Summed log probability of each document's held-out tokens.
    totals : int array, ``(num_documents,)``
        Held-out tokens.
    """

    candidates: tuple[Candidate, ...]
    by_document: FloatArray
    totals: IntArray

    @property
    def best(self) -> Candidate:
        """The candidate with the highest score."""
        return max(self.candidates, key=lambda candidate: candidate.log_predictive)

    def smallest_within(self, errors: float = 1.0) -> Candidate:
        """The fewest topics that are worse than the best by at most so many standard errors."""
        errors = as_real(errors, "errors", minimum=0.0)
        return next(
            candidate
            for candidate in self.candidates
            if candidate.difference >= -errors * candidate.difference_error
        )

    def __str__(self) -> str:
        lines = ["topics  nats a token    from the best  seconds"]
        for row in self.candidates:
            difference = f"{row.difference:+.4f} ± {row.difference_error:.4f}"
            lines.append(
                f"{row.num_topics:6d}  {row.log_predictive:12.4f} {difference:>16s}"
                f" {row.seconds:8.1f}"
            )
        return "\n".join(lines)


def compare_num_topics(
    make_model: Callable[[int], Model[Any, Any]],
    data: Any,
    candidates: Sequence[int],
    *,
    documents: int | None = None,
    observed: float = 0.5,
    every: int = 5,
    random_seed: int = 0,
    **options: Any,
) -> TopicChoice:
    """Fit models of several numbers of topics and score them on the same held-out tokens.

    Parameters
    ----------
    make_model : callable
        From a number of topics to a model: ``pgmult.topics.CorrelatedTopics``, say, or
        ``lambda k: pgmult.topics.LDA(k, word_concentration=0.1)``.
    data : Corpus, sparse matrix or array, ``(num_documents, num_words)``
    candidates : sequence of int
        Numbers of topics, >= 2, each of them once.
    documents : int, optional
        How many documents lose tokens; a tenth of them, but no fewer than two, if left out.
    observed : float
        Share of their tokens that stay in training; a small one asks for what a model knows of
        topics that go together.
    every : int
        Score every so many sweeps after tuning.
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
    ``pgmult.topics.plots.score_by_num_topics(compare_num_topics(...))`` draws the table.
    """
    given = as_list(candidates, "candidates", "numbers of topics")
    numbers = sorted(as_num_topics(k, "candidates") for k in given)
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"candidates must be different numbers of topics, got {given}")
    corpus = corpus_from(data, "data")
    if not (corpus.totals > 1).any():
        raise ValueError(f"data must have documents of two tokens or more, got {corpus!r}")
    if documents is None:
        documents = min(corpus.num_documents, max(2, corpus.num_documents // 10))
    models = [_made(make_model, number) for number in numbers]
    training, held_out = split_tokens(corpus, documents, observed, random_seed=random_seed)
    scores, seconds = [], []
    for model in models:
        completion = DocumentCompletion(held_out, every=every)
        begin = time.perf_counter()
        sample(
            model, training, keep=(), callback=completion, random_seed=random_seed,
            **options,
        )  # fmt: skip
        scores.append(completion.score())
        seconds.append(time.perf_counter() - begin)
    best = max(scores, key=lambda score: score.log_predictive)
    table = tuple(
        Candidate(
            number,
            score.log_predictive,
            *gain_over(score, best, held_out),
            elapsed,
        )
        for number, score, elapsed in zip(numbers, scores, seconds, strict=True)
    )
    return TopicChoice(table, np.stack([score.by_document for score in scores]), held_out.totals)


def _made(make_model: Any, number: int) -> Model[Any, Any]:
    """A model of so many topics."""
    if not callable(make_model):
        raise TypeError(
            f"make_model must be a function of a number of topics, got {brief(make_model)}"
        )
    try:
        model: Model[Any, Any] = make_model(number)
    except TypeError as error:
        raise TypeError(f"make_model must take a number of topics: {error}") from error
    if not hasattr(model, "step"):
        raise TypeError(f"make_model must make a model, got {brief(model)}")
    return model
