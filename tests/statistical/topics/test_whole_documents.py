"""Estimates of p(document) are unbiased, against exact values, and broken estimators are refused.

Each estimator scores many copies of one tiny document; rows have streams of their own, so these
are independent estimates, and their mean must be p(document) by a z-test.
"""

import inspect
import math
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from scipy import stats

from pgmult import Dirichlet, MvNormal
from pgmult.topics import as_corpus
from pgmult.topics.compiled import document_probability
from pgmult.topics.scores import whole_documents
from pgmult.topics.scores.whole_documents import TopicDraw, annealed, left_to_right
from tests.oracle import document_probability as exact

pytestmark = pytest.mark.slow

COPIES = 20_000
TOKENS = np.array([0, 1, 1, 3, 0, 2])
TOPICS = np.array([[0.6, 0.05, 0.3, 0.05], [0.05, 0.8, 0.1, 0.05], [0.1, 0.1, 0.02, 0.78]])
ALPHA = np.array([0.3, 0.8, 0.5])
MEAN = np.array([0.3, -0.6])
COV = np.array([[1.5, -0.9], [-0.9, 2.0]])

PRIORS = {
    "dirichlet": (Dirichlet(ALPHA), exact.under_dirichlet(TOKENS, TOPICS, ALPHA)),
    "sticks": (MvNormal(MEAN, COV), exact.under_two_sticks(TOKENS, TOPICS, MEAN, COV)),
}
METHODS = {
    "left to right, one particle": (left_to_right, {"particles": 1}),
    "left to right, few particles": (left_to_right, {"particles": 3}),
    "left to right, nine particles twice": (left_to_right, {"particles": 9, "runs": 2}),
    "importance sampling from the prior": (annealed, {"steps": 1, "runs": 1}),
    "annealed, few steps": (annealed, {"steps": 4, "runs": 1}),
    "annealed, nine runs": (annealed, {"steps": 12, "runs": 9}),
}


def p_value(method, options, prior, seed, copies=COPIES):
    """Of the hypothesis that the mean of p^ is p, exactly known."""
    distribution, truth = PRIORS[prior]
    corpus = as_corpus(np.tile(np.bincount(TOKENS, minlength=4), (copies, 1)))
    score = method([TopicDraw(TOPICS, distribution)], corpus, random_seed=seed, cores=1, **options)
    ratio = np.exp(score.by_document) / truth
    z = (ratio.mean() - 1.0) / ratio.std(ddof=1) * math.sqrt(copies)
    return 2.0 * stats.norm.sf(abs(z))


def is_unbiased(method, options, prior):
    """A p-value below 0.001 is looked at again, with four times the copies."""
    return (
        p_value(method, options, prior, seed=0) > 1e-3
        or p_value(method, options, prior, seed=1, copies=4 * COPIES) > 1e-3
    )


def test_the_exact_values_are_probabilities():
    """Summed over all documents of two tokens they make one; quadrature has converged."""
    pairs = [np.array([v, w]) for v in range(4) for w in range(4)]
    assert sum(exact.under_dirichlet(pair, TOPICS, ALPHA) for pair in pairs) == pytest.approx(1.0)
    total = sum(exact.under_two_sticks(pair, TOPICS, MEAN, COV) for pair in pairs)
    assert total == pytest.approx(1.0)
    finer = exact.under_two_sticks(TOKENS, TOPICS, MEAN, COV, nodes=100)
    assert finer == pytest.approx(PRIORS["sticks"][1], rel=1e-7)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", METHODS)
def test_estimates_are_unbiased(name, prior):
    assert is_unbiased(*METHODS[name], prior)


# Faults by kernel and what is broken: the right text, and the wrong one in its place.
FORGET = "share forgotten in the steps"
ALL_FROM_TOPICS = (
    "relative, d, theta{row}, dots, shares[s],",
    "relative, d, theta{row}, dots, 1.0,",
)
FUTURE = "steps see the tokens to come"
ALL_TOKENS = ("tokens[: i + 1], relative", "tokens, relative")
KEEP_ALL = ("state = _resample(weights, parents, state)", "parents[:] = np.arange(particles)")
MUTANTS = {
    ("anneal_sticks", FORGET): [part.format(row="[r]") for part in ALL_FROM_TOPICS],
    ("anneal_dirichlet", FORGET): [part.format(row="") for part in ALL_FROM_TOPICS],
    ("anneal_sticks", "share of the step before in the weights"): (
        "dots, shares[s - 1], shares[s])", "dots, 0.0, shares[s])",
    ),
    ("filter_sticks", FUTURE): ALL_TOKENS,
    ("filter_dirichlet", FUTURE): ALL_TOKENS,
    ("filter_sticks", "particles not resampled"): KEEP_ALL,
    ("filter_sticks", "first theta plugged in"): (
        "_sticks_of_prior(prior, psi, state)",
        "_sticks_of_prior(Sticks(prior.precision, 0.0 * prior.root, prior.centre), psi, state)",
    ),
    ("filter_dirichlet", "mean theta plugged in"): (
        "dot(alpha + topic_counts[r], there) / (alpha.sum() + i)",
        "dot(alpha, there) / alpha.sum()",
    ),
    ("filter_dirichlet", "a token too many"): ("alpha.sum() + i)", "alpha.sum() + i + 1)"),
}  # fmt: skip


@pytest.mark.parametrize(("kernel", "fault"), MUTANTS, ids=lambda part: part)
def test_broken_estimators_are_refused(monkeypatch, kernel, fault):
    right, wrong = MUTANTS[kernel, fault]
    source = inspect.getsource(getattr(document_probability, kernel)).removeprefix("@jit\n")
    assert source.count(right) == 1
    names = dict(vars(document_probability))
    exec(source.replace(right, wrong), names)  # compiled in memory: no cache holds a mutant
    broken = numba.njit(error_model="numpy")(names[kernel])
    kernels = SimpleNamespace(**{**vars(document_probability), kernel: broken})
    monkeypatch.setattr(whole_documents, "kernels", kernels)
    prior = kernel.partition("_")[2]
    method, options = (
        (annealed, {"steps": 12, "runs": 9})
        if kernel.startswith("anneal")
        else (left_to_right, {"particles": 9, "runs": 2})
    )
    assert not is_unbiased(method, options, prior)
