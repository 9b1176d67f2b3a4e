"""The first job to run: a correlated topic model of the documentation on this machine.

Nothing is downloaded. The model is scored on words that it did not see, beside latent Dirichlet
allocation with the same number of topics and the same seconds of a processor, and beside one word
distribution for all documents.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from pgmult.cli.shared import running
from pgmult.core.comparison import Comparison
from pgmult.core.reports import Report
from pgmult.datasets.docstrings import demo_corpus
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import Corpus, as_corpus, split_tokens
from pgmult.topics.models.correlated import CorrelatedTopics
from pgmult.topics.models.lda import LDA
from pgmult.topics.reports.contents import run_facts
from pgmult.topics.scores.completion import (
    CompletionScore,
    DocumentCompletion,
    compare_scores,
    unigram_log_predictive,
)
from pgmult.topics.scores.timed import completion_by_seconds

_THIN = 4
_SEEN = {"half": 0.5, "a tenth": 0.1}  # of a test document


def run_demo(options: argparse.Namespace, say: Callable[[str], Any]) -> tuple[Posterior, Report]:
    """Sample the demonstration model and summarise it; every fourth draw is kept.

    Of a twentieth of the documents half of the words are held out of training and scored, and of
    another twentieth nine tenths. After Ctrl-C the report is of the draws made so far, without the
    comparison with LDA.
    """
    num_topics, chains, random_seed = options.topics, options.chains, options.seed
    corpus = demo_corpus()
    training, parts = _hold_out(corpus, random_seed)
    held_out = as_corpus(sum(part.to_csr() for part in parts.values()))
    versions = f"numpy {np.__version__} and scipy {scipy.__version__}"
    say(
        f"The documentation of {versions}: {corpus.num_documents:,} docstrings,"
        f" {corpus.num_tokens:,} words, {corpus.num_words:,} different ones"
    )
    model, lda = CorrelatedTopics(num_topics), LDA(num_topics)
    began = time.perf_counter()
    few = as_corpus(training.to_csr()[:40])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of a run that only compiles
        sample(
            model, few, draws=1, tune=1, chains=1, cores=options.cores, random_seed=0,
            progressbar=not options.quiet, callback=DocumentCompletion(few, every=1),
        )  # fmt: skip
    completion_by_seconds(lda, few, few, [0.01, 0.2], cores=1)
    say(f"Ready after {time.perf_counter() - began:.0f} s")
    say(f"Sampling a correlated topic model of {num_topics} topics, {chains} chains")
    score = DocumentCompletion(held_out, every=_THIN)
    clock = _Clock(score)
    posterior = sample(
        model, training, callback=clock, keep=(*model.default_keep, "theta"), thin=_THIN,
        **running(options),
    )  # fmt: skip
    scores = {"correlated topics": score.score()}
    facts = {
        "corpus": f"{corpus.num_documents:,} docstrings of {versions}: {corpus.num_words:,}"
        f" different words, {corpus.num_tokens:,} in all",
        **run_facts(posterior),
    }
    if posterior.num_draws == options.draws:
        seconds = clock.seconds / chains
        say(f"Sampling latent Dirichlet allocation for the same {clock.seconds:.0f} s, to compare")
        *_, rival = completion_by_seconds(
            lda, training, held_out, [seconds], chains=chains, cores=options.cores,
            random_seed=random_seed,
        )  # fmt: skip
        scores["LDA in the same seconds"] = rival.score
        facts["LDA"] = (
            f"{chains} chains, {clock.seconds:.0f} s of a processor as the model above; it learns"
            " how much of each topic a document has, and takes 0.05 for words, as here"
        )
    scores["word frequencies"] = unigram_log_predictive(training, held_out)
    report = posterior.report(
        title="Topics in the documentation of numpy and scipy",
        facts=facts,
        held_out={seen: _compared(scores, part) for seen, part in parts.items()},
        comparison=_against_rivals(scores, parts["half"]),
        reference=training,
        num_documents=2,
        random_seed=random_seed,
    )
    return posterior, report


def _hold_out(corpus: Corpus, random_seed: int) -> tuple[Corpus, dict[str, Corpus]]:
    """Training tokens, and what is held out by how much of a document is seen."""
    rows = np.random.default_rng(random_seed).permutation(corpus.num_documents)
    training, parts, size = corpus, {}, corpus.num_documents // 20
    for seen, share in _SEEN.items():
        chosen, rows = rows[:size], rows[size:]
        training, parts[seen] = split_tokens(
            training, chosen.tolist(), share, random_seed=random_seed
        )
    return training, parts


def _against_rivals(scores: dict[str, CompletionScore], part: Corpus) -> Comparison:
    """Words of texts of which half was seen, told by the model and by its rivals."""
    parts = {name: score.on(part) for name, score in scores.items()}
    first, *others = parts
    told = {"the model": parts[first], **{name: parts[name] for name in reversed(others)}}
    return Comparison.of(
        told,
        "a word", "Half of each of some texts was held out, and told from the other half.",
        {"LDA in the same seconds": "take pgmult.topics.LDA, which is simpler"},
    )  # fmt: skip


def _compared(scores: dict[str, CompletionScore], part: Corpus) -> list[Any]:
    return compare_scores({name: score.on(part) for name, score in scores.items()}, part)


class _Clock:
    """Calls back and counts the process's seconds of processors, but for those of the call."""

    def __init__(self, callback: Callable[[Any], Any]):
        self._callback = callback
        self._began = time.process_time()
        self._calls = 0.0
        self.seconds = 0.0

    def __call__(self, sweep: Any) -> None:
        """After a sweep."""
        began = time.thread_time()
        self._callback(sweep)
        self._calls += time.thread_time() - began
        self.seconds = time.process_time() - self._began - self._calls
