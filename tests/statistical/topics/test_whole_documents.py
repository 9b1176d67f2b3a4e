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
from pgmult.topics.scores.whole_documents import TopicDraw, annealed
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
OPTIONS = {
    "importance sampling from the prior": {"steps": 1, "runs": 1},
    "annealed, few steps": {"steps": 4, "runs": 1},
    "annealed, nine runs": {"steps": 12, "runs": 9},
}


def p_value(options, prior, seed, copies=COPIES):
    """Of the hypothesis that the mean of p^ is p, exactly known."""
    distribution, truth = PRIORS[prior]
    corpus = as_corpus(np.tile(np.bincount(TOKENS, minlength=4), (copies, 1)))
    score = annealed(
        [TopicDraw(TOPICS, distribution)], corpus, random_seed=seed, cores=1, **options
    )
    ratio = np.exp(score.by_unit) / truth
    z = (ratio.mean() - 1.0) / ratio.std(ddof=1) * math.sqrt(copies)
    return 2.0 * stats.norm.sf(abs(z))


def is_unbiased(options, prior):
    """A p-value below 0.001 is looked at again, with four times the copies."""
    return (
        p_value(options, prior, seed=0) > 1e-3
        or p_value(options, prior, seed=1, copies=4 * COPIES) > 1e-3
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
@pytest.mark.parametrize("name", OPTIONS)
def test_estimates_are_unbiased(name, prior):
    assert is_unbiased(OPTIONS[name], prior)


# Faults by kernel and what is broken: the right text, and the wrong one in its place.
FORGET = "share forgotten in the steps"
ALL_FROM_TOPICS = (
    "relative, d, theta{row}, dots, shares[s],",
    "relative, d, theta{row}, dots, 1.0,",
)
MUTANTS = {
    ("anneal_sticks", FORGET): [part.format(row="[r]") for part in ALL_FROM_TOPICS],
    ("anneal_dirichlet", FORGET): [part.format(row="") for part in ALL_FROM_TOPICS],
    ("anneal_sticks", "share of the step before in the weights"): (
        "dots, shares[s - 1], shares[s])", "dots, 0.0, shares[s])",
    ),
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
    assert not is_unbiased({"steps": 12, "runs": 9}, prior)
