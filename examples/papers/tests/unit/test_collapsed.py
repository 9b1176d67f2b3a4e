"""Collapsed variational bounds, their gradients, and the searches that climb them."""

import itertools
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp
from scipy.stats import multivariate_t

from examples.papers.hensman2012.collapsed import CollapsedMethod, _Search, natural_cg, random_start
from examples.papers.hensman2012.expression import as_alignments
from examples.papers.hensman2012.problems import ExpressionProblem, GaussianMixtureProblem
from examples.papers.hensman2012.topic_problem import TopicProblem
from pgmult import NormalInverseWishart
from pgmult.compiled.rows import row_threads
from pgmult.testing import mutant, rejects
from pgmult.topics import as_corpus

METHODS = get_args(CollapsedMethod)
NIW = NormalInverseWishart(np.array([0.5, -1.0]), 0.7, 4.0, np.array([[2.0, 0.5], [0.5, 1.0]]))
TABLE = ([0, 0, 1, 2, 2, 2, 3, 3], [0, 1, 1, 0, 1, 2, 0, 2])
LOG_LIKELIHOOD = np.log([0.5, 0.1, 0.3, 0.2, 0.4, 0.2, 0.1, 0.6])


def clusters(seed=0, each=15, distance=4.0, depth=2):
    rng = np.random.default_rng(seed)
    centres = distance * rng.standard_normal((3, depth))
    return np.repeat(centres, each, axis=0) + rng.standard_normal((3 * each, depth))


class TwoCoins:
    """A problem of a user's own: each row of tosses is of one of two coins, biases Beta(1, 1)."""

    indptr = np.array([0, 2, 4, 6, 8])
    weights = np.array([1.0, 2.0, 1.0, 0.5])
    heads, tosses = np.array([0, 3, 1, 5]), np.array([4, 4, 4, 5])

    def marginal(self, probs):
        shares = self.weights[:, None] * probs.reshape(4, 2)
        a, b = 1.0 + self.heads @ shares, 1.0 + (self.tosses - self.heads) @ shares
        value = np.sum(gammaln(a) + gammaln(b) - gammaln(a + b)) - shares.sum() * np.log(2.0)
        logits = np.outer(self.heads, digamma(a)) + np.outer(self.tosses - self.heads, digamma(b))
        return float(value), (logits - np.outer(self.tosses, digamma(a + b)) - np.log(2.0)).ravel()


PROBLEMS = {
    "mixture": GaussianMixtureProblem(clusters(), 4),
    "mixture in one dimension": GaussianMixtureProblem(clusters(depth=1), 3, concentration=0.3),
    "mixture with a prior": GaussianMixtureProblem(clusters(1), 3, prior=NIW),
    "topics": TopicProblem(as_corpus(np.random.default_rng(2).poisson(0.6, (8, 11))), 3),
    "expression": ExpressionProblem(
        as_alignments(*TABLE, LOG_LIKELIHOOD, counts=[3, 0, 20, 7]), concentration=0.5
    ),
    "a user's own": TwoCoins(),
}
several = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


def evaluate(problem, logits):
    return _Search(problem).at(np.array(logits, dtype=float))


# ------------------------------------------------------------------ gradients


def check_gradient(problem):
    """The logits are the derivatives of the first term, and the bound rises as its norm says."""
    rng = np.random.default_rng(5)
    logits = rng.standard_normal(problem.indptr[-1])
    here, step = evaluate(problem, logits), 1e-5
    weights = np.repeat(problem.weights, np.diff(problem.indptr))
    _, found = problem.marginal(here.probs)
    for e in rng.choice(len(logits), min(12, len(logits)), replace=False):
        change = step * np.eye(1, len(logits), e)[0]
        up, down = (problem.marginal(here.probs + s * change)[0] for s in (1, -1))
        slope = (up - down) / (2.0 * step)
        assert abs(slope - weights[e] * found[e]) < 1e-5 * (1.0 + abs(slope))
    for _ in range(3):
        direction = rng.standard_normal(len(logits))
        up, down = (evaluate(problem, logits + s * step * direction).bound for s in (1, -1))
        slope = (up - down) / (2.0 * step)
        found_slope = _Search(problem).inner(here.probs, here.gradient, direction)
        assert abs(slope - found_slope) < 1e-5 * (1.0 + abs(slope))


@several
def test_gradients(problem):
    check_gradient(problem)


def with_logits(change):
    """A problem whose second result is changed."""

    def make(problem):
        def marginal(self, probs):
            value, logits = problem.marginal(probs)
            return value, change(problem, probs, logits)

        return mutant(problem, marginal=marginal)

    return make


def half_forgotten(problem, probs, logits):
    return 0.5 * logits


def logarithm_for_digamma(problem, probs, logits):
    """Plug-in weights: log of the mean for the mean of the log."""
    counts = probs.reshape(-1, problem.num_components).sum(axis=0) + problem.concentration
    return logits + np.tile(np.log(counts) - digamma(counts), len(problem.x))


def own_rows_left_out(problem, probs, logits):
    """As collapsed variational Bayes does in topic models (Teh, Newman and Welling 2007)."""
    shares = probs.reshape(-1, problem.num_components)
    counts = shares.sum(axis=0) + problem.concentration
    return logits + np.log1p(-shares / counts).ravel()


@pytest.mark.parametrize("change", [half_forgotten, logarithm_for_digamma, own_rows_left_out])
def test_broken_gradients_are_refused(change):
    rejects(check_gradient, with_logits(change)(PROBLEMS["mixture"]))


def test_a_gradient_that_forgets_counts_is_refused():
    right = PROBLEMS["expression"]
    once = ExpressionProblem(as_alignments(*TABLE, LOG_LIKELIHOOD), concentration=0.5)
    rejects(check_gradient, mutant(right, marginal=lambda self, probs: once.marginal(probs)))


# ------------------------------------------------------------------ the bound, by enumeration


def log_dirichlet_multinomial(z, size, concentration):
    counts = np.bincount(z, minlength=size)
    return (
        gammaln(size * concentration) - gammaln(size * concentration + len(z))
        + np.sum(gammaln(concentration + counts) - gammaln(concentration))
    )  # fmt: skip


def log_evidence(prior, x):
    """One row after the other: each is Student's t given those before."""
    total = 0.0
    for n in range(len(x)):
        law = prior.condition(x[:n])
        dof = law.dof - len(law.mean) + 1.0
        shape = law.scale * (law.strength + 1.0) / (law.strength * dof)
        total += multivariate_t(law.mean, shape, df=dof).logpdf(x[n])
    return total


def tiny_mixture():
    x = np.array([[0.0, 0.0], [0.3, -0.2], [3.0, 1.0], [2.5, 1.4], [9.0, -5.0]])
    problem = GaussianMixtureProblem(x, 2, prior=NIW, concentration=0.8)

    def log_joint(z):
        rows = sum(log_evidence(NIW, x[np.array(z) == k]) for k in range(2))
        return log_dirichlet_multinomial(z, 2, 0.8) + rows

    return problem, log_joint, 5


def tiny_topics():
    documents, words = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 1, 3])
    counts = np.zeros((3, 4), dtype=int)  # one document has no words
    counts[documents, words] = 1
    problem = TopicProblem(as_corpus(counts), 3, topic_concentration=0.4, word_concentration=0.3)

    def log_joint(z):
        z = np.array(z)
        total = sum(log_dirichlet_multinomial(z[documents == d], 3, 0.4) for d in range(2))
        return total + sum(log_dirichlet_multinomial(words[z == k], 4, 0.3) for k in range(3))

    return problem, log_joint, 5


def tiny_expression():
    likelihood = np.array([[0.5, 0.1, 0.3], [0.2, 0.4, 0.2], [0.1, 0.6, 0.7], [0.5, 0.1, 0.3]])
    read, transcript = np.indices(likelihood.shape).reshape(2, -1)
    data = as_alignments(read, transcript, np.log(likelihood).ravel())

    def log_joint(z):
        chosen = np.log(likelihood[np.arange(4), list(z)]).sum()
        return log_dirichlet_multinomial(z, 3, 0.6) + chosen

    return ExpressionProblem(data, concentration=0.6), log_joint, 4


@pytest.mark.parametrize("make", [tiny_mixture, tiny_topics, tiny_expression])
def test_the_bound_against_all_assignments(make):
    problem, log_joint, rows = make()
    choices = problem.indptr[1]
    every = list(itertools.product(range(choices), repeat=rows))
    joint = np.array([log_joint(z) for z in every])
    for z, expected in zip(every, joint, strict=True):  # certain assignments: no entropy
        value, _ = problem.marginal(np.eye(choices)[list(z)].ravel())
        assert value == pytest.approx(expected, abs=1e-9)
    evidence = logsumexp(joint)
    for seed in range(5):
        logits = random_start(problem, seed, scale=2.0)
        here = evaluate(problem, logits)
        fit = natural_cg(problem, logits, tolerance=1e-12)
        assert here.bound <= fit.objective < evidence
        probs = here.probs.reshape(rows, choices)  # and no higher than with the best q(X)
        law = np.prod([probs[np.arange(rows), list(z)] for z in every], axis=1)
        gap = law @ (np.log(law) - joint)
        assert here.bound <= evidence
        assert -gap <= evidence
        assert here.bound <= -gap + 1e-9


# ------------------------------------------------------------------ steepest ascent is VBEM


def vbem_step(x, r, prior, concentration):
    """Bishop (2006), 10.58-10.67: responsibilities, from those before."""
    depth, counts = x.shape[1], r.sum(axis=0)
    mean = (r.T @ x + prior.strength * prior.mean) / (prior.strength + counts)[:, None]
    rho = np.empty_like(r)
    for k, count in enumerate(counts):
        average = r[:, k] @ x / count
        scatter = (r[:, k] * (x - average).T) @ (x - average)
        shift = average - prior.mean
        weight = prior.strength * count / (prior.strength + count)
        precision = np.linalg.inv(prior.scale + scatter + weight * np.outer(shift, shift))
        dof, strength = prior.dof + count, prior.strength + count
        half = digamma(0.5 * (dof - np.arange(depth))).sum() + depth * np.log(2.0)
        away = x - mean[k]
        rho[:, k] = (
            digamma(concentration + count) - digamma(r.shape[1] * concentration + len(x))
            + 0.5 * (half + np.linalg.slogdet(precision)[1] - depth * np.log(2.0 * np.pi))
            - 0.5 * (depth / strength + dof * np.einsum("ni,ij,nj->n", away, precision, away))
        )  # fmt: skip
    return np.exp(rho - logsumexp(rho, axis=1, keepdims=True))


def test_vbem_of_a_mixture():
    x = clusters(3)
    problem = GaussianMixtureProblem(x, 3, prior=NIW, concentration=0.4)
    start = random_start(problem, 1)
    fit = natural_cg(problem, start, "vbem", max_iterations=25, tolerance=1e-300)
    r = np.exp(start.reshape(-1, 3))
    r /= r.sum(axis=1, keepdims=True)
    for _ in range(25):
        r = vbem_step(x, r, NIW, 0.4)
    assert fit.num_iterations == 25
    np.testing.assert_allclose(fit.probs.reshape(-1, 3), r, rtol=1e-9, atol=1e-11)


@several
def test_a_unit_step_along_the_gradient_is_a_vbem_step(problem):
    logits = random_start(problem, 3)
    fit = natural_cg(problem, logits, "vbem", max_iterations=1, tolerance=1e-300)
    _, best = problem.marginal(evaluate(problem, logits).probs)
    np.testing.assert_allclose(fit.probs, evaluate(problem, best).probs, rtol=1e-13, atol=1e-300)


# ------------------------------------------------------------------ searches


@several
@pytest.mark.parametrize("method", METHODS)
def test_searches_climb_to_a_fixed_point_of_vbem(problem, method):
    fit = natural_cg(problem, random_start(problem, 4), method, tolerance=1e-10)
    assert fit.converged
    assert fit.method == method
    bounds = fit.history
    assert len(bounds) == fit.num_iterations + 1
    assert np.all(np.diff(bounds) >= -1e-11 * abs(bounds[-1]))
    assert bounds[-1] == fit.objective
    assert fit.evaluations[-1] >= fit.num_iterations + 1
    assert np.all(np.diff(fit.seconds) >= 0.0)
    _, best = problem.marginal(fit.probs)
    unseen = np.repeat(problem.weights, np.diff(problem.indptr)) == 0.0
    np.testing.assert_allclose(
        evaluate(problem, best).probs[~unseen], fit.probs[~unseen], atol=1e-4
    )


def test_conjugate_directions_save_evaluations():
    """Of a long flat climb, as when two transcripts share nearly all reads."""
    likelihood = np.tile([0.5, 0.45], 200)
    likelihood[::20] = 0.05
    read, transcript = np.repeat(np.arange(200), 2), np.tile([0, 1], 200)
    problem = ExpressionProblem(as_alignments(read, transcript, np.log(likelihood)))
    fits = {m: natural_cg(problem, random_start(problem, 0), m, tolerance=1e-9) for m in METHODS}
    bounds = [fit.objective for fit in fits.values()]
    assert np.ptp(bounds) < 1e-7
    for method in ("hestenes_stiefel", "fletcher_reeves", "squarem"):
        assert fits[method].evaluations[-1] < 0.5 * fits["vbem"].evaluations[-1]


@several
@pytest.mark.parametrize("method", ["hestenes_stiefel", "squarem"])
def test_threads_do_not_matter(problem, method):
    fits = []
    for threads in (1, 2, 3):
        with row_threads(threads, grain=1):
            fits.append(natural_cg(problem, random_start(problem, 0), method, max_iterations=20))
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.probs, fits[0].probs)
        assert (fit.objective, fit.num_iterations) == (fits[0].objective, fits[0].num_iterations)


def test_equal_reads_counted_are_equal_reads_listed():
    counts = np.array([3, 0, 20, 7])
    counted = PROBLEMS["expression"]
    data = counted.data
    rows = np.repeat(np.arange(4), counts)
    entries = [range(data.indptr[n], data.indptr[n + 1]) for n in rows]
    chosen = np.concatenate(entries)
    listed = ExpressionProblem(
        as_alignments(
            np.repeat(np.arange(len(rows)), [len(e) for e in entries]),
            data.transcripts[chosen], data.log_likelihood[chosen],
        ),
        concentration=0.5,
    )  # fmt: skip
    start = random_start(counted, 2)
    one, other = natural_cg(counted, start), natural_cg(listed, start[chosen])
    assert one.objective == pytest.approx(other.objective, abs=1e-9)
    assert (one.evaluations == other.evaluations).all()
    for a, b in zip(counted.shares_posterior(one), listed.shares_posterior(other), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_the_search_ends_where_a_broken_problem_lowers_the_bound():
    downhill = with_logits(lambda problem, probs, logits: -logits)(PROBLEMS["a user's own"])
    fit = natural_cg(downhill, random_start(downhill, 0), max_iterations=50)
    assert not fit.converged
    assert np.all(np.diff(fit.history) >= -1e-10)


def test_the_search_ends_where_the_bound_is_lost():
    right, calls = PROBLEMS["a user's own"], itertools.count()

    def marginal(self, probs):
        value, logits = right.marginal(probs)
        return (value if next(calls) < 2 else np.nan), logits

    fit = natural_cg(mutant(right, marginal=marginal), random_start(right, 0))
    assert np.isfinite(fit.objective)
    assert not fit.converged


# ------------------------------------------------------------------ what fits say


def test_what_a_mixture_says():
    x = clusters(each=100, distance=10.0)
    problem = GaussianMixtureProblem(x, 6)
    fits = [natural_cg(problem, random_start(problem, seed)) for seed in range(8)]
    fit = max(fits, key=lambda fit: fit.objective)
    mean, var = problem.weights_posterior(fit)
    assert mean.sum() == pytest.approx(1.0)
    order = np.argsort(-mean)
    np.testing.assert_allclose(mean[order], [1 / 3] * 3 + [0.0] * 3, atol=0.02)
    np.testing.assert_allclose(var, mean * (1.0 - mean) / (6.0 + 300.0 + 1.0))
    components = problem.components(fit)
    centres = x.reshape(3, 100, 2).mean(axis=1)
    for k in order[:3]:
        assert np.min(np.linalg.norm(centres - components[k].mean, axis=1)) < 0.05
        spread = components[k].scale / (components[k].dof - 3.0)
        assert np.all(np.abs(spread - np.eye(2)) < 0.7)
    for k in order[3:]:  # near-empty: back to the prior
        assert components[k].dof == pytest.approx(problem.prior.dof, abs=1.0)


def test_what_topics_say():
    problem = PROBLEMS["topics"]
    fit = natural_cg(problem, random_start(problem, 0))
    theta, topics = problem.theta(fit), problem.topics(fit)
    assert theta.shape == (8, 3)
    assert topics.shape == (3, 11)
    np.testing.assert_allclose(theta.sum(axis=1), 1.0)
    np.testing.assert_allclose(topics.sum(axis=1), 1.0)
    table = problem.corpus.to_csr().toarray()
    r = np.zeros((8, 11, 3))
    r[np.nonzero(table)] = fit.probs.reshape(-1, 3)
    expected = np.einsum("dv,dvk->kv", table, r) + problem.word_concentration
    np.testing.assert_allclose(topics, expected / expected.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_scales_of_data_do_not_matter(scale, shift):
    x = clusters(8)
    plain = GaussianMixtureProblem(x, 3)
    moved = GaussianMixtureProblem(scale * (x + shift), 3)
    start = random_start(plain, 0)
    one, other = natural_cg(plain, start), natural_cg(moved, start)
    np.testing.assert_allclose(one.probs, other.probs, atol=1e-4)
    jacobian = x.size * np.log(scale)
    assert one.objective == pytest.approx(other.objective + jacobian, abs=1e-5)


def check_sampled_start(problem):
    """It leads to maxima that random starts miss."""
    one, same, other = (problem.sampled_start(seed, 20) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert np.any(one != other)
    starts = [one, other, random_start(problem, 0), random_start(problem, 1)]
    bounds = [natural_cg(problem, start, tolerance=1.0).objective for start in starts]
    assert min(bounds[:2]) > max(bounds[2:]) + 50.0


def test_sampled_starts():
    """Of eight topics of 40 short documents."""
    rng = np.random.default_rng(3)
    topics = rng.dirichlet(np.full(60, 0.05), size=8)
    theta = rng.dirichlet(np.full(8, 0.1), size=40)
    problem = TopicProblem(as_corpus(rng.multinomial(20, theta @ topics)), 8)
    check_sampled_start(problem)
    random = mutant(problem, sampled_start=lambda self, seed, sweeps: random_start(self, seed))
    rejects(check_sampled_start, random)
    few = mutant(problem, sampled_start=lambda self, seed, sweeps: problem.sampled_start(seed, 1))
    rejects(check_sampled_start, few)
    with pytest.raises(ValueError, match="sweeps must be at least 1, got 0"):
        problem.sampled_start(0, sweeps=0)


@several
def test_a_search_begins_where_its_problem_says(problem):
    """Topics where a sampler ended, the others at random: the seed decides."""
    sampled = isinstance(problem, TopicProblem)
    start = problem.sampled_start(3) if sampled else random_start(problem, 3)
    one = natural_cg(problem, random_seed=3, max_iterations=2)
    np.testing.assert_array_equal(one.probs, natural_cg(problem, start, max_iterations=2).probs)
    other = natural_cg(problem, random_seed=4, max_iterations=2)
    assert np.any(one.probs != other.probs)
    given = natural_cg(problem, start, random_seed=4, max_iterations=2)
    np.testing.assert_array_equal(one.probs, given.probs)


def test_one_component_is_exact():
    x = clusters()
    problem = GaussianMixtureProblem(x, 1, prior=NIW)
    fit = natural_cg(problem, np.zeros(len(x)))
    assert fit.num_iterations == 0
    assert fit.objective == pytest.approx(log_evidence(NIW, x), rel=1e-12)


# ------------------------------------------------------------------ bad input


def own(**changes):
    right = TwoCoins()
    parts = {"indptr": right.indptr, "weights": right.weights, "marginal": right.marginal}
    return SimpleNamespace(**(parts | changes))


X, START = clusters(), np.zeros(8)
BAD = [
    (
        lambda: GaussianMixtureProblem(np.where(X[3, 1] == X, np.nan, X), 2),
        "got nan at row 3, colu",
    ),
    (lambda: GaussianMixtureProblem(X, 46), "at most the 45 rows of x, got 46"),
    (
        lambda: GaussianMixtureProblem(np.column_stack([X[:, 0], np.full(45, 0.1)]), 2),
        "x must vary in every column, column 1 does not",
    ),
    (lambda: GaussianMixtureProblem(X[:, 0], 2), r"x must have shape \(rows, columns\), got \(45,"),
    (lambda: GaussianMixtureProblem(X[:, :1], 2, prior=NIW), "prior must have 1 dimensions, got 2"),
    (lambda: GaussianMixtureProblem(X, 2, concentration=0.0), "concentration must be above 0"),
    (lambda: TopicProblem(np.zeros((3, 4), dtype=int), 2), "must have at least one token"),
    (lambda: TopicProblem(np.eye(3, dtype=int), 1), "num_topics must be at least 2, got 1"),
    (lambda: natural_cg(TwoCoins(), np.zeros(3)), r"start must have shape \(8,\), got \(3,\)"),
    (
        lambda: natural_cg(TwoCoins(), np.where(np.arange(8) == 2, np.inf, 0.0)),
        "got inf at position 2",
    ),
    (lambda: natural_cg(TwoCoins(), START, tolerance=0.0), "tolerance must be above 0, got 0"),
    (
        lambda: natural_cg(own(indptr=np.array([0, 2, 2, 6, 8])), START),
        "every row needs a candidate",
    ),
    (
        lambda: natural_cg(own(indptr=np.array([0, 2, 4, 8])), START),
        "indptr must be 5 increasing numbers",
    ),
    (
        lambda: natural_cg(own(weights=np.array([1, -1, 1, 1])), START),
        "must be non-negative, got -1",
    ),
    (
        lambda: natural_cg(own(marginal=lambda probs: (np.nan, probs)), START),
        "the bound must be finite at the start, got nan",
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_problems_and_searches_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
