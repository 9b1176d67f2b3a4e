"""Both links: exact identities, the augmentations against quadrature, and what they refuse."""

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import gammaln

from pgmult import DiagonalPotential, LogisticNormal, StickBreaking
from pgmult.compiled import sticks
from pgmult.compiled.rows import row_threads

LINKS = {
    "sticks": StickBreaking(),
    "ordered sticks": StickBreaking(order=(2, 0, 3, 1)),
    "softmax": LogisticNormal(),
}
COUNTS = np.array([3, 0, 5, 2])


@pytest.fixture(params=LINKS, name="link")
def every_link(request):
    return LINKS[request.param]


@pytest.fixture(params=["sticks", "ordered sticks"], name="stick_link")
def every_stick_link(request):
    return LINKS[request.param]


def size_of_psi(link, num_categories=4):
    return num_categories - isinstance(link, StickBreaking)


def psi_for(link, *leading, scale=1.5, seed=1):
    shape = (*leading, size_of_psi(link))
    return np.random.default_rng(seed).normal(scale=scale, size=shape)


def matrix(potential):
    return potential.dense().J if isinstance(potential, DiagonalPotential) else potential.J


def derivative(function: Callable, x: np.ndarray, step=1e-5) -> np.ndarray:
    """Central differences; the last axis of the answer runs over the coordinates of x."""
    unit = step * np.eye(len(x))
    return np.stack([(function(x + e) - function(x - e)) / (2 * step) for e in unit], axis=-1)


# --- probabilities ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "psi",
    [
        [0.0, 0.0, 0.0],
        [700.0, -700.0, 3.0],
        [-700.0, 700.0, -1e-9],
        [-40.0, 36.7, -37.0],
        [1e-300, -745.0, 745.0],
    ],
)
def test_sticks_agree_with_arbitrary_precision(psi):
    with mpmath.workdps(700):
        rest, expected = mpmath.mpf(1), []
        for x in psi:
            share = 1 / (1 + mpmath.exp(-mpmath.mpf(x)))
            expected.append(rest * share)
            rest *= 1 - share
        expected.append(rest)
        logs = [float(mpmath.log(p)) for p in expected]
        expected = [float(p) for p in expected]
    link = StickBreaking()
    np.testing.assert_allclose(link.log_probs(psi), logs, rtol=1e-14, atol=1e-16)
    np.testing.assert_allclose(link.probs(psi), expected, rtol=1e-14, atol=1e-320)


def test_a_hundred_thousand_categories_stay_finite_and_sum_to_one():
    rng = np.random.default_rng(2)
    num_categories = 100_000
    even = StickBreaking().inverse(np.full(num_categories, 1.0 / num_categories))
    np.testing.assert_allclose(
        StickBreaking().probs(even), np.full(num_categories, 1.0 / num_categories), rtol=1e-10
    )
    for scale in (0.1, 700.0):
        psi = rng.uniform(-scale, scale, size=num_categories - 1)
        log_probs = StickBreaking().log_probs(psi)
        assert np.isfinite(log_probs).all()
        assert StickBreaking().probs(psi).sum() == pytest.approx(1.0, abs=1e-11)
        counts = StickBreaking().simulate(rng, psi, 1000)
        assert counts.sum() == 1000
        assert np.isfinite(StickBreaking().log_likelihood(psi, counts))
        potential = StickBreaking().augment(rng, psi, counts)
        assert np.isfinite(potential.J).all()
        assert np.isfinite(potential.h).all()


def test_probs_sum_to_one_and_agree_with_their_logarithms(link):
    psi = psi_for(link, 3, 5)
    np.testing.assert_allclose(link.probs(psi).sum(axis=-1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(np.exp(link.log_probs(psi)), link.probs(psi), rtol=1e-13)


def test_inverse_of_probs_is_the_identity(link):
    psi = psi_for(link, 200, scale=8.0)
    if isinstance(link, LogisticNormal):
        psi -= psi.mean(axis=-1, keepdims=True)
    np.testing.assert_allclose(link.inverse(link.probs(psi)), psi, rtol=1e-11, atol=1e-11)
    pi = np.random.default_rng(3).dirichlet(np.full(4, 0.3), size=200)
    np.testing.assert_allclose(link.probs(link.inverse(pi)), pi, rtol=1e-11)


@pytest.mark.parametrize("psi", [[700.0], [-700.0], [-700.0, 700.0], [300.0, 300.0, -90.0]])
def test_inverse_of_probs_at_the_extremes(psi):
    link = StickBreaking()
    np.testing.assert_allclose(link.inverse(link.probs(psi)), psi, rtol=1e-13)


def test_softmax_at_the_extremes():
    link = LogisticNormal()
    psi = np.array([700.0, -700.0, 0.0])
    np.testing.assert_array_equal(link.log_probs(psi), [0.0, -1400.0, -700.0])
    assert link.probs(psi)[0] == 1.0
    assert np.isfinite(link.log_likelihood(np.linspace(-700, 700, 100_000), np.ones(100_000)))


# --- derivatives --------------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [COUNTS, np.array([0.4, 1.3, 0.0, 2.2]), np.zeros(4)])
def test_quadratic_is_the_taylor_expansion(link, counts):
    def gradient(psi):
        potential = link.quadratic(psi, counts)
        return potential.h - matrix(potential) @ psi

    psi = psi_for(link)
    slope = derivative(lambda x: link.log_likelihood(x, counts), psi)
    np.testing.assert_allclose(gradient(psi), slope, atol=1e-8)
    J = matrix(link.quadratic(psi, counts))
    np.testing.assert_allclose(-J, derivative(gradient, psi), atol=1e-8)


def test_quadratic_is_finite_at_the_extremes(link):
    potential = link.quadratic(700.0 * np.sign(psi_for(link)), COUNTS)
    assert np.isfinite(potential.h).all()
    assert np.linalg.eigvalsh(matrix(potential)).min() > -1e-12


# --- likelihood and augmentation ----------------------------------------------------------------


def test_log_likelihood_is_the_multinomial(link):
    rng = np.random.default_rng(4)
    psi = psi_for(link, 20)
    counts = link.simulate(rng, psi, rng.poisson(30, size=20))
    coefficient = gammaln(counts.sum(axis=-1) + 1) - gammaln(counts + 1).sum(axis=-1)
    expected = stats.multinomial.logpmf(counts, counts.sum(axis=-1), link.probs(psi))
    np.testing.assert_allclose(link.log_likelihood(psi, counts) + coefficient, expected)


def polya_gamma_density(omega, b):
    """PG(b, 0): the alternating series of Polson, Scott and Windle (2013), section 2.3."""
    n = np.arange(200)
    logs = gammaln(n + b) - gammaln(n + 1) - gammaln(b) + np.log(2 * n + b)
    logs -= (2 * n + b) ** 2 / (8 * omega)
    return 2 ** (b - 1) * np.sum((-1.0) ** n * np.exp(logs)) / math.sqrt(2 * math.pi * omega**3)


@pytest.mark.parametrize("psi", [-3.0, 0.0, 0.7, 2.5])
@pytest.mark.parametrize("counts", [(1, 0), (2, 1), (0, 4)])
def test_polya_gamma_identity(psi, counts):
    link = StickBreaking()
    total = sum(counts)
    kappa = link.augment(np.random.default_rng(0), [psi], counts).h[0]

    def integrand(omega):
        return math.exp(-0.5 * omega * psi**2) * polya_gamma_density(omega, total)

    expectation = quad(integrand, 1e-3, 20.0, limit=200, points=[0.05, 0.2, 1.0])[0]
    augmented = -total * math.log(2.0) + kappa * psi + math.log(expectation)
    assert augmented == pytest.approx(link.log_likelihood([psi], counts), abs=1e-8)


PRIOR_MEAN, PRIOR_VAR = 0.3, 1.5


def scores_against(exact_mean, exact_square, draws):
    """Largest |z| of the means of psi and psi^2 over independent rows."""
    errors = [draws - exact_mean, draws**2 - exact_square]
    return max(np.abs(e.mean(0) / (e.std(0) / math.sqrt(len(e)))).max() for e in errors)


def gibbs_score_of_sticks(augment, counts, num_rows=2_000, sweeps=12):
    """Gibbs sampling from N(0.3, 1.5) priors, many rows at once, against quadrature."""
    taken, reaching = counts[:-1], np.cumsum(counts[::-1])[::-1][:-1]
    grid = np.arange(-15.0, 15.0, 1e-2)[:, None]
    log_posterior = stats.norm.logpdf(grid, PRIOR_MEAN, math.sqrt(PRIOR_VAR))
    log_posterior = log_posterior + taken * grid - reaching * np.logaddexp(0.0, grid)
    weights = np.exp(log_posterior - log_posterior.max(axis=0))
    weights /= weights.sum(axis=0)

    rng = np.random.default_rng(5)
    psi = rng.normal(PRIOR_MEAN, math.sqrt(PRIOR_VAR), size=(num_rows, len(taken)))
    for _ in range(sweeps):
        potential = augment(rng, psi, counts)
        precision = potential.J + 1.0 / PRIOR_VAR
        mean = (potential.h + PRIOR_MEAN / PRIOR_VAR) / precision
        psi = mean + rng.normal(size=psi.shape) / np.sqrt(precision)
    return scores_against((weights * grid).sum(axis=0), (weights * grid**2).sum(axis=0), psi)


def with_the_wrong_sign_of_kappa(rng, psi, counts):
    potential = StickBreaking().augment(rng, psi, counts)
    return DiagonalPotential(potential.J, -potential.h)


def with_all_counts_reaching_every_stick(rng, psi, counts):
    taken = np.broadcast_to(counts[:-1], psi.shape)
    pairs = np.stack([taken, counts.sum() - taken], axis=-1)
    potential = StickBreaking().augment(rng, psi[..., None], pairs)
    return DiagonalPotential(potential.J[..., 0], potential.h[..., 0])


def test_augment_leaves_the_posterior_invariant():
    assert gibbs_score_of_sticks(StickBreaking().augment, COUNTS) < 4.5


@pytest.mark.parametrize(
    "mutant", [with_the_wrong_sign_of_kappa, with_all_counts_reaching_every_stick]
)
def test_a_broken_augmentation_is_noticed(mutant):
    assert gibbs_score_of_sticks(mutant, COUNTS) > 10.0


def test_omega_has_the_moments_of_its_conditional(stick_link):
    psi, num_rows = np.array([0.8, -2.0, 0.1]), 20_000
    rows = np.broadcast_to(psi, (num_rows, 3))
    potential = stick_link.augment(np.random.default_rng(7), rows, COUNTS)
    b = stick_link.totals(COUNTS)
    mean = b / (2 * psi) * np.tanh(psi / 2)
    var = b / (4 * psi**3) * (np.sinh(psi) - psi) / np.cosh(psi / 2) ** 2
    draws = potential.J
    assert (np.abs(draws.mean(axis=0) - mean) < 4.5 * np.sqrt(var / num_rows)).all()
    kurtosis = ((draws - mean) ** 4).mean(axis=0) - var**2
    assert (
        np.abs(((draws - mean) ** 2).mean(axis=0) - var) < 4.5 * np.sqrt(kurtosis / num_rows)
    ).all()
    kappa = COUNTS[list(stick_link.order or range(4))][:-1] - b / 2
    np.testing.assert_array_equal(potential.h, np.broadcast_to(kappa, (num_rows, 3)))


# --- bounds and empty rows ----------------------------------------------------------------------


@pytest.mark.parametrize("counts", [(3.0, 2.0), (0.0, 0.7), (12.5, 0.25)])
def test_expected_of_sticks_is_the_best_tangent(counts):
    """The bound touches the log likelihood at +-xi and lies below it everywhere else."""
    mean, var = 0.6, 2.0
    potential = StickBreaking().expected([mean], [var], counts)
    psi = np.linspace(-8.0, 8.0, 401)[:, None]

    def gap(psi):
        bound = potential.h * psi - 0.5 * potential.J * psi**2
        return StickBreaking().log_likelihood(psi, counts) - bound[:, 0]

    at_xi = gap(math.sqrt(mean**2 + var) * np.array([[1.0], [-1.0]]))
    assert at_xi[0] == pytest.approx(at_xi[1], abs=1e-12)
    assert (gap(psi) >= at_xi[0] - 1e-12).all()


def test_expected_of_softmax_is_a_bound_that_touches_at_the_mean():
    link = LogisticNormal()
    mean = psi_for(link)
    potential = link.expected(mean, np.ones(4), COUNTS)

    def gap(psi):
        bound = psi @ potential.h - 0.5 * np.einsum("...i,ij,...j", psi, potential.J, psi)
        return link.log_likelihood(psi, COUNTS) - bound

    psi = mean + np.random.default_rng(8).normal(scale=3.0, size=(2000, 4))
    assert (gap(psi) >= gap(mean) - 1e-10).all()
    np.testing.assert_allclose(derivative(gap, mean), 0.0, atol=1e-7)


def test_expected_is_linear_in_the_counts(link):
    mean = psi_for(link)
    one, other = COUNTS, np.array([1, 4, 0, 0])
    average = link.expected(mean, np.ones(1), 0.5 * (one + other))
    total = link.expected(mean, np.ones(1), one) + link.expected(mean, np.ones(1), other)
    np.testing.assert_allclose(average.J, 0.5 * total.J)
    np.testing.assert_allclose(average.h, 0.5 * total.h, atol=1e-14)


def test_sticks_that_nothing_reaches_carry_no_information(stick_link):
    rng = np.random.default_rng(9)
    psi = psi_for(stick_link, 3)
    counts = np.zeros((3, 4), dtype=int)
    counts[1, (stick_link.order or range(4))[0]] = 5
    for potential in (
        stick_link.augment(rng, psi, counts),
        stick_link.expected(psi, np.ones_like(psi), counts),
        stick_link.quadratic(psi, counts),
    ):
        informed = np.zeros((3, 3), dtype=bool)
        informed[1, 0] = True
        np.testing.assert_array_equal(potential.J != 0.0, informed)
        np.testing.assert_array_equal(potential.h != 0.0, informed)


def test_an_empty_row_of_the_softmax_carries_no_information():
    link, empty = LogisticNormal(), np.zeros(4, dtype=int)
    psi = psi_for(link)
    for potential in (link.expected(psi, np.ones(4), empty), link.quadratic(psi, empty)):
        assert not potential.J.any()
        assert not potential.h.any()


# --- the order of the sticks --------------------------------------------------------------------


def test_order_is_a_permutation_of_the_data():
    order = (2, 0, 3, 1)
    link, plain = StickBreaking(order), StickBreaking()
    psi = psi_for(plain, 6)
    counts = plain.simulate(np.random.default_rng(10), psi, 12)
    permuted = counts[:, order]
    for name in ("probs", "log_probs"):
        np.testing.assert_array_equal(getattr(link, name)(psi)[:, order], getattr(plain, name)(psi))
    pi = link.probs(psi)
    np.testing.assert_array_equal(link.inverse(pi), plain.inverse(pi[:, order]))
    np.testing.assert_array_equal(link.totals(counts), plain.totals(permuted))
    np.testing.assert_allclose(
        link.log_likelihood(psi, counts), plain.log_likelihood(psi, permuted), rtol=1e-14
    )
    pairs = [
        (
            link.augment(np.random.default_rng(1), psi, counts),
            plain.augment(np.random.default_rng(1), psi, permuted),
        ),
        (link.expected(psi, psi**2, counts), plain.expected(psi, psi**2, permuted)),
        (link.quadratic(psi, counts), plain.quadratic(psi, permuted)),
    ]
    for ordered, by_hand in pairs:
        np.testing.assert_array_equal(ordered.J, by_hand.J)
        np.testing.assert_array_equal(ordered.h, by_hand.h)


def test_an_order_is_a_value():
    assert StickBreaking(np.array([1, 0, 2])) == StickBreaking(order=[1, 0, 2])
    assert hash(StickBreaking([1, 0])) == hash(StickBreaking((1, 0)))
    assert StickBreaking([1, 0]) != StickBreaking()


# --- simulation, shapes and threads -------------------------------------------------------------


def test_simulate_follows_the_probabilities(link):
    psi, totals = psi_for(link), np.full(2000, 20)
    counts = link.simulate(np.random.default_rng(11), psi, totals)
    assert counts.shape == (2000, 4)
    np.testing.assert_array_equal(counts.sum(axis=-1), totals)
    expected = link.probs(psi) * totals.sum()
    assert stats.chisquare(counts.sum(axis=0), expected).pvalue > 1e-4
    covariance = 20 * (np.diag(link.probs(psi)) - np.outer(link.probs(psi), link.probs(psi)))
    np.testing.assert_allclose(np.cov(counts.T), covariance, atol=0.6)


def test_leading_axes_broadcast(link):
    rng = np.random.default_rng(12)
    psi = psi_for(link, 5, 1)
    counts = rng.integers(0, 4, size=(3, 4))
    log_likelihood = link.log_likelihood(psi, counts)
    assert log_likelihood.shape == (5, 3)
    assert log_likelihood[2, 1] == pytest.approx(link.log_likelihood(psi[2, 0], counts[1]))
    assert link.simulate(rng, psi, [3, 0, 7]).shape == (5, 3, 4)
    for potential in (link.quadratic(psi, counts), link.expected(psi, 1.0, counts)):
        assert potential.h.shape == (5, 3, size_of_psi(link))
        assert potential.J.shape[:3] == potential.h.shape
    assert link.probs(np.empty((0, size_of_psi(link)))).shape == (0, 4)


def test_augment_broadcasts_and_works_without_rows():
    link, rng = StickBreaking(), np.random.default_rng(13)
    potential = link.augment(rng, psi_for(link, 5, 1), rng.integers(0, 4, size=(3, 4)))
    assert potential.J.shape == potential.h.shape == (5, 3, 3)
    assert link.augment(rng, np.empty((0, 3)), np.empty((0, 4), dtype=int)).J.shape == (0, 3)


def test_threads_do_not_change_a_bit():
    link = StickBreaking()
    psi = psi_for(link, 1000)
    counts = link.simulate(np.random.default_rng(14), psi, np.arange(1000))
    answers = []
    for threads in (1, 2):
        with row_threads(threads):
            potential = link.augment(np.random.default_rng(15), psi, counts)
            answers.append([potential.J, potential.h, link.probs(psi), link.log_probs(psi)])
    for one, two in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, two)


def test_one_compiled_version_serves_every_layout():
    link, rng = StickBreaking(), np.random.default_rng(16)
    psi, counts = psi_for(link, 8), rng.integers(0, 5, size=(8, 4))
    frozen = psi.copy()
    frozen.setflags(write=False)
    link.augment(rng, psi, counts)
    link.probs(psi)
    kernels = (sticks.augment_rows, sticks.probs_rows)  # other kernels may call them otherwise
    compiled = [len(getattr(kernel, "signatures", [])) for kernel in kernels]
    for array in (psi, frozen, np.asfortranarray(psi), psi.astype(np.float32), psi[::2].tolist()):
        for integers in (counts, np.asfortranarray(counts), counts.astype(np.uint8)):
            link.augment(rng, array, integers[: len(array)])
        link.probs(array)
    assert [len(getattr(kernel, "signatures", [])) for kernel in kernels] == compiled


# --- what is refused ----------------------------------------------------------------------------


def test_softmax_refuses_a_block_augmentation():
    with pytest.raises(TypeError, match=r"no block augmentation.*StickBreaking link"):
        LogisticNormal().augment(np.random.default_rng(0), np.zeros(4), COUNTS)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1, -1, 0], "got -1 at position 1"),
        ([0.5, 0.2, 0.3], "did you pass proportions"),
        ([1, np.nan, 0], "got nan at position 1"),
        ([1, np.inf, 0], "got inf at position 1"),
        ([1, 2], r"must have 3 categories.*got \(2,\)"),
        ([[1, 2, 0], [1, 0, 0], [0, 0, 0]], r"\(2,\) of psi and \(3,\) of counts"),
        ([["a", "b", "c"]], "must be an array of numbers"),
    ],
)
def test_bad_counts(counts, message):
    rng = np.random.default_rng(0)
    with pytest.raises((ValueError, TypeError), match=message):
        StickBreaking().augment(rng, np.zeros((2, 2)), counts)


def test_bad_expected_counts(link):
    psi = psi_for(link)
    for method in (link.log_likelihood, link.quadratic):
        with pytest.raises(ValueError, match=r"counts must be non-negative, got -0.5"):
            method(psi, [1.0, 2.0, -0.5, 0.0])
        with pytest.raises(ValueError, match="must have 4 categories"):
            method(psi, [1.0, 2.0])
    with pytest.raises(ValueError, match="var must be non-negative"):
        link.expected(psi, -np.ones_like(psi), COUNTS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: StickBreaking().probs(0.0), "at least 1 on its last axis"),
        (lambda: StickBreaking().probs(np.empty((3, 0))), "2 categories or more"),
        (lambda: StickBreaking().probs([0.0, np.nan]), "psi must be finite, got nan at position 1"),
        (lambda: LogisticNormal().probs([0.0]), "at least 2 on its last axis"),
        (lambda: StickBreaking().inverse([1.0]), "at least 2 categories"),
        (lambda: StickBreaking().inverse([0.3, 0.3]), "must sum to 1"),
        (lambda: StickBreaking().inverse([0.5, 0.0, 0.5]), "got 0.0 at position 1.*infinite psi"),
        (lambda: StickBreaking([0, 2]), "permutation of 0, ..., 1"),
        (lambda: StickBreaking([0, 1, 1]), "permutation of 0, ..., 2"),
        (lambda: StickBreaking([0.5, 1]), "order must be non-negative integers"),
        (lambda: StickBreaking([0]), "order must list 2 categories or more"),
        (lambda: StickBreaking([0, 1]).probs([0.0, 0.0]), "must list 3 categories, got 2"),
        (lambda: StickBreaking().totals([3]), "counts must have at least 2 categories"),
        (
            lambda: StickBreaking().simulate(np.random.default_rng(0), [0.0], -1),
            "totals must be non-negative integers, got -1",
        ),
        (
            lambda: StickBreaking().simulate(np.random.RandomState(0), [0.0], 1),
            "rng must be a numpy.random.Generator",
        ),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
