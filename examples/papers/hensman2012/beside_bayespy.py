"""Collapsed variational Bayes beside BayesPy's.

Run from the repository's root, with ``PGMULT_DATA`` naming the folder of data sets::

    OPENBLAS_NUM_THREADS=1 python -m examples.papers.hensman2012.beside_bayespy bayespy

Runs variational EM and Riemannian conjugate gradients of BayesPy and ours on a mixture of
Gaussians, on the reads of BitSeq (in BayesPy a dense mixture of coins that all fall heads), and on
topics of 60 articles and the 300 most frequent words (in BayesPy a dense table of tokens, topics
and words): milliseconds an iteration, iterations until the bound is within 0.01 nats of the best,
and that bound.
"""

import argparse
import os
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from scipy.special import softmax

import pgmult
from examples.papers.associated_press import associated_press
from examples.papers.hensman2012.alignments import read_alignments
from examples.papers.hensman2012.collapsed import natural_cg, random_start
from examples.papers.hensman2012.problems import ExpressionProblem, GaussianMixtureProblem
from examples.papers.hensman2012.topic_problem import TopicProblem

_COMPONENTS = 10


def _folder(name):
    return Path(os.environ.get("PGMULT_DATA", "../shared/data")) / name


def _mixture():
    rng = np.random.default_rng(0)
    corners = 2.0 * np.array([[0, 0], [1, 1], [1, -1], [-1, 1], [-1, -1]])
    return np.repeat(corners, 100, axis=0) + rng.standard_normal((500, 2))


def _articles():
    table = associated_press().to_csr()[:60]
    frequent = np.argsort(-table.sum(axis=0), kind="stable")[:300]
    return pgmult.topics.as_corpus(table[:, np.sort(frequent)])


def _reads():
    return read_alignments(_folder("bitseq") / "bitseq_c0b0.npz")


def _print_run(name, bounds, seconds, offset=0.0):
    bounds = np.array(bounds)[np.isfinite(bounds)]
    near = int(np.argmax(bounds > bounds.max() - 0.01))
    print(
        f"{name}: {1e3 * seconds / len(bounds):.3f} ms an iteration, {near} to within 0.01 of"
        f" {bounds.max() + offset:.3f}",
        flush=True,
    )


def _print_ours(problem, start=None):
    start = random_start(problem, 0) if start is None else start
    natural_cg(problem, start, max_iterations=2)  # compile
    for method in ("vbem", "fletcher_reeves", "hestenes_stiefel", "squarem"):
        fit = natural_cg(problem, start, method)
        _print_run(f"  ours, {method}", fit.history, fit.seconds[-1])


@contextmanager
def _quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _print_bayespy(build, iterations, offset=0.0):
    """`build()` gives the engine, the assignments and the other unknowns."""
    for name in ("variational EM", "conjugate gradients"):
        with _quiet():
            engine, assignments, others = build()
            engine.update(repeat=1, verbose=False)
            begin = time.perf_counter()
            if name == "variational EM":
                engine.update(repeat=iterations, tol=1e-300, verbose=False)
            else:
                engine.optimize(
                    assignments, collapsed=others, riemannian=True, maxiter=iterations, tol=1e-300,
                    verbose=False,
                )  # fmt: skip
            seconds = time.perf_counter() - begin
        _print_run(f"  BayesPy, {name}", engine.L[: engine.iter], seconds, offset)


def bayespy():
    """Both on the same data; the mixture's prior of means is independent of covariances there."""
    try:
        from bayespy.inference import VB
        from bayespy.nodes import (
            Bernoulli,
            Categorical,
            Dirichlet,
            Gate,
            Gaussian,
            Mixture,
            Wishart,
        )
    except ImportError:
        raise SystemExit("this needs BayesPy: pip install bayespy") from None

    x, K = _mixture(), _COMPONENTS
    var = x.var(axis=0)

    def mixture():
        np.random.seed(0)  # noqa: NPY002 BayesPy draws its start from it
        weights = Dirichlet(np.ones(K))
        z = Categorical(weights, plates=(len(x),))
        mean = Gaussian(x.mean(axis=0), 0.01 * np.diag(1.0 / var), plates=(K,))
        precision = Wishart(4.0, np.diag(var), plates=(K,))
        rows = Mixture(z, Gaussian, mean, precision)
        z.initialize_from_random()
        rows.observe(x)
        return VB(rows, mean, z, precision, weights), z, [mean, precision, weights]

    print("mixture of 500 points, 10 components")
    _print_ours(GaussianMixtureProblem(x, K))
    _print_bayespy(mixture, 300)

    data = _reads()
    largest = np.maximum.reduceat(data.log_likelihood, data.indptr[:-1])
    probs = np.full((data.num_reads, data.num_transcripts), 1e-200)
    probs[data.rows, data.transcripts] = np.exp(
        data.log_likelihood - largest[data.rows] - np.log(2.0)
    )

    def reads():
        shares = Dirichlet(np.ones(data.num_transcripts))
        z = Categorical(shares, plates=(data.num_reads,))
        heads = Mixture(z, Bernoulli, np.maximum(probs, 1e-200))
        heads.observe(np.ones(data.num_reads, dtype=np.int64))
        return VB(heads, z, shares), z, [shares]

    print("expression, 4,663 reads of BitSeq")
    _print_ours(ExpressionProblem(data))
    _print_bayespy(reads, 300, float(largest.sum() + data.num_reads * np.log(2.0)))

    corpus = _articles()
    problem = TopicProblem(corpus, K, word_concentration=0.1)
    start = problem.sampled_start(0)
    logits = np.repeat(start.reshape(-1, K), corpus.counts, axis=0)
    documents = np.repeat(np.arange(corpus.num_documents), corpus.totals)

    def tokens():
        theta = Dirichlet(np.full(K, 0.1), plates=(corpus.num_documents,))
        topics = Dirichlet(np.full(corpus.num_words, 0.1), plates=(K,))
        z = Categorical(Gate(documents, theta), plates=(corpus.num_tokens,))
        words = Categorical(Gate(z, topics))
        words.observe(np.repeat(corpus.words, corpus.counts))
        z.initialize_from_parameters(softmax(logits, axis=1))
        return VB(words, theta, topics, z), z, [theta, topics]

    print(f"10 topics, {corpus.num_tokens:,} tokens of 60 articles, 300 words")
    _print_ours(problem, start)
    _print_bayespy(tokens, 300)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["bayespy"])
    parser.parse_args()
    bayespy()
