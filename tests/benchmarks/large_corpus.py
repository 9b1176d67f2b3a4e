"""How a sweep of the correlated topic model grows with the corpus: seconds and peak memory.

    python tests/benchmarks/large_corpus.py --documents 10000 100000 --topics 100 --threads 2

Corpora are simulated from a model with that many topics; each size runs in a process of its own,
so that the peak is its own. Peak memory includes the interpreter and the compiled code.
"""

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

import pgmult
from pgmult.compiled.rows import row_threads
from pgmult.topics.data.corpus import simulate_words
from pgmult.topics.models.gaussian import ExchangeableTopicsState


def simulated_corpus(rng, num_documents, num_words, num_topics, length):
    """Documents of about `length` tokens on a few correlated topics each."""
    return simulated(rng, num_documents, num_words, num_topics, length)[0]


def simulated(rng, num_documents, num_words, num_topics, length):
    """Such documents, and the state that they were made from."""
    model = pgmult.topics.CorrelatedTopics(num_topics, word_concentration=0.02)
    root = rng.normal(size=(num_topics - 1, 10)) / np.sqrt(10.0)
    cov = 4.0 * root @ root.T + 2.0 * np.eye(num_topics - 1)
    psi = pgmult.MvNormal(model.gaussian.mean, cov).sample(rng, num_documents)
    totals = rng.poisson(length, size=num_documents)
    topic_counts = model.link().simulate(rng, psi, totals)
    topics = pgmult.Dirichlet(0.02).sample(rng, (num_topics, num_words))
    assignments = np.repeat(np.tile(np.arange(num_topics), num_documents), topic_counts.ravel())
    shape = pgmult.topics.Corpus(
        indptr=np.arange(num_documents + 1), words=np.zeros(num_documents, dtype=np.int32),
        counts=totals.astype(np.int32), num_words=num_words,
    )  # fmt: skip
    corpus = pgmult.topics.as_corpus(simulate_words(rng, assignments, topics, shape).to_csr())
    mean = model.gaussian.mean
    return corpus, ExchangeableTopicsState(psi, mean, cov, topics, topic_counts)


def measure(options, num_documents):
    rng = np.random.default_rng(0)
    corpus = simulated_corpus(rng, num_documents, options.words, options.topics, options.length)
    model = pgmult.topics.CorrelatedTopics(options.topics)
    made = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    begin = time.perf_counter()
    with row_threads(options.threads):
        state = model.init(rng, corpus)
        started = time.perf_counter() - begin
        seconds = []
        for _ in range(options.sweeps + 1):
            begin = time.perf_counter()
            state = model.step(rng, state, corpus)
            seconds.append(time.perf_counter() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(
        f"{corpus}, {len(corpus.words):,} entries, K = {options.topics},"
        f" {options.threads} thread(s): start {started:.1f} s, sweep"
        f" {min(seconds[1:]):.2f} s, peak {peak:.2f} GiB (corpus made: {made:.2f} GiB)",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--length", type=int, default=150)
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    if len(chosen.documents) == 1:
        measure(chosen, chosen.documents[0])
    else:
        for size in chosen.documents:
            own = {k: v for k, v in vars(chosen).items() if k != "documents"}
            arguments = [x for k, v in own.items() for x in (f"--{k}", str(v))]
            command = [sys.executable, __file__, "--documents", str(size), *arguments]
            subprocess.run(command, check=True)
