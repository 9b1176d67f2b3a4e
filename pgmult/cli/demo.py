"""The first job to run: a correlated topic model of the documentation on this machine.

Nothing is downloaded. The model is scored on words that it did not see, beside latent Dirichlet
allocation with the same number of topics and one word distribution for all documents.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from pgmult.datasets import demo_corpus
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import split_tokens
from pgmult.topics.models.correlated import CorrelatedTopics
from pgmult.topics.models.lda import LDA
from pgmult.topics.report import TopicReport, run_facts, topic_report
from pgmult.topics.scores.completion import (
    DocumentCompletion,
    compare_scores,
    unigram_log_predictive,
)

__all__ = ["run_demo"]


def run_demo(
    store: str | os.PathLike[str],
    *,
    num_topics: int = 20,
    draws: int = 400,
    tune: int = 800,
    chains: int = 2,
    cores: int | None = None,
    random_seed: int = 0,
    progressbar: bool = True,
    say: Callable[[str], Any] = print,
) -> tuple[Posterior, TopicReport]:
    """Sample the demonstration model into a run directory and summarise it.

    Half of the words of a tenth of the documents are held out of training and scored.

    Parameters
    ----------
    store : path
        The run directory to create.
    num_topics, draws, tune, chains, cores, random_seed, progressbar
        As in `pgmult.sample`.
    say : function of str
        Told what is being done.

    Returns
    -------
    Posterior, TopicReport
        With Ctrl-C, of the draws made so far, and without the comparison with LDA.
    """
    corpus = demo_corpus()
    training, held_out = split_tokens(corpus, corpus.num_documents // 10, random_seed=random_seed)
    versions = f"numpy {np.__version__} and scipy {scipy.__version__}"
    say(f"The documentation of {versions}: {corpus}")
    settings: dict[str, Any] = {
        "draws": draws, "tune": tune, "chains": chains, "cores": cores,
        "random_seed": random_seed, "progressbar": progressbar,
    }  # fmt: skip
    say(f"Sampling a correlated topic model of {num_topics} topics")
    model = CorrelatedTopics(num_topics)
    correlated = DocumentCompletion(held_out, every=1)
    posterior = sample(
        model, training, store=store, callback=correlated,
        keep=(*model.default_keep, "theta"), **settings,
    )  # fmt: skip
    scores = {"correlated topics": correlated.score()}
    if posterior.num_draws == draws:
        say(f"Sampling latent Dirichlet allocation of {num_topics} topics, for comparison")
        independent = DocumentCompletion(held_out, every=1)
        sample(LDA(num_topics), training, callback=independent, **settings)
        scores["LDA, prior learned"] = independent.score()
    scores["unigram"] = unigram_log_predictive(training, held_out)
    report = topic_report(
        posterior,
        title="Topics in the documentation of numpy and scipy",
        facts={
            "corpus": f"{corpus.num_documents:,} docstrings of {versions}:"
            f" {corpus.num_words:,} different words, {corpus.num_tokens:,} in all",
            **run_facts(posterior),
        },
        held_out=compare_scores(scores, held_out),
        reference=training,
        random_seed=random_seed,
    )
    return posterior, report
