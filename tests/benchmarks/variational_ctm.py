"""Speed of variational EM for correlated topics on the AP corpus, and of one document's E-step.

    python tests/benchmarks/variational_ctm.py iterations --topics 50     # an EM iteration
    python tests/benchmarks/variational_ctm.py steps --topics 50          # batch and generic core

Needs the corpus in the folder that PGMULT_DATA names. Times are of one processor; compare figures
of one run.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import pgmult
from pgmult.datasets import associated_press
from pgmult.variational.nonconjugate import fit_nonconjugate

sys.path.append(str(Path(__file__).parents[1]))
from oracle.correlated_topics import CorrelatedDocuments

KINDS = [("laplace", "full"), ("delta", "full"), ("delta", "diagonal"), ("bound", "diagonal")]


def ap(num_words):
    corpus = associated_press()
    totals = np.bincount(corpus.words, corpus.counts, minlength=corpus.num_words)
    chosen = np.argsort(-totals, kind="stable")[:num_words]
    return pgmult.topics.as_corpus(corpus.to_csr()[:, chosen])


def iterations(options):
    """Milliseconds an iteration of EM, start left out."""
    corpus = ap(4000)
    model = pgmult.topics.LogisticNormalTopics(options.topics)
    for method, covariance in KINDS:
        clock = []
        pgmult.topics.fits.fit_ctm(
            model, corpus, method=method, covariance=covariance, cores=1, random_seed=0,
            start_sweeps=10, tolerance=1e-9, max_iterations=options.iterations,
            callback=lambda fit, clock=clock: clock.append(time.process_time()),
        )  # fmt: skip
        print(
            f"K = {options.topics}, {method} ({covariance}):"
            f" {1e3 * np.median(np.diff(clock)):.0f} ms an iteration"
        )


def steps(options):
    """E-steps of some documents to convergence, beside the same by the generic core."""
    corpus = ap(1000)
    model = pgmult.topics.LogisticNormalTopics(options.topics)
    fit = pgmult.topics.fits.fit_ctm(model, corpus, cores=1, random_seed=0, max_iterations=3)
    rows = corpus.to_csr()[: options.documents]
    oracle = CorrelatedDocuments(rows.toarray(), fit.topics, fit.mu, fit.Sigma)
    begin = time.process_time()
    generic = fit_nonconjugate(oracle, *oracle.start(), tolerance=1e-6, max_iterations=3000)
    plain = time.process_time() - begin
    begin = time.process_time()
    found = fit.infer(rows, tolerance=1e-6, max_steps=3000)
    batch = time.process_time() - begin
    gap = np.abs(found.mean - generic.gaussians["eta"].mean).max()
    print(
        f"K = {options.topics}, {options.documents} documents: batch {1e3 * batch:.1f} ms,"
        f" generic core {1e3 * plain:.0f} ms, ratio {plain / batch:.0f}, means within {gap:.1e}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["iterations", "steps"])
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--documents", type=int, default=64)
    options = parser.parse_args()
    globals()[options.what](options)
