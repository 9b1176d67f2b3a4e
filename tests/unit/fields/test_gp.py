"""Multinomial Gaussian processes: conditionals, data, options, labels, threads."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from scipy.special import digamma, polygamma

import pgmult
from pgmult import DiagonalPotential
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Matern, SquaredExponential, White
from pgmult.fields.models.multinomial_gp import MultinomialGPState
from pgmult.latent.hyperparameters import Guess, laplace, matched, sample_hyperparameters
from pgmult.sampling.diagnostics import ess_bulk
from pgmult.testing import conditional_ratio, mutant, rejects

RNG = np.random.default_rng(0)
INPUTS = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [2.5, 0.5], [4.0, 1.0]])
COUNTS = np.array([[2, 1, 1], [3, 0, 2], [0, 2, 1], [0, 0, 0], [60, 2, 11]])
DATA = as_field(INPUTS, COUNTS, new_inputs=[[5.0, 0.5], [0.0, 1.0]])
COVARIANCE = 0.8 * Matern(1.5, 2.0, active=[0]) + White(0.2)
MODEL = MultinomialGP(COVARIANCE, mean_var=1.5)
MODELS = {
    "constant": MODEL,
    "linear": replace(MODEL, mean="linear"),
    "a covariance a stick": replace(MODEL, shared=False),
    "given mean": replace(MODEL, mean=[0.5, -0.5]),
    "empirical mean, fixed": replace(MODEL, mean="empirical", hyperparameters="fixed"),
}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def potential_of(model, state):
    return model.link(DATA).augment(np.random.default_rng(1), state.psi, DATA.site_counts())


def log_omega_given_psi(potential, psi):
    """Of psi alone, with the likelihood: the potential."""
    return float(np.sum(psi * (potential.h - 0.5 * potential.J * psi)))


def log_gaussian(psi, mean, cov):
    return sum(
        scipy.stats.multivariate_normal(mean[:, k], cov[k]).logpdf(psi[:, k])
        for k in range(psi.shape[1])
    )


def psi_block(model, *, drawn_from=None):
    """Log joint of psi with omega and x, by the assembled Gaussians, and what `step` draws from."""
    state = model.prior(np.random.default_rng(2), DATA)
    potential = potential_of(model, state)
    theta = np.log(state.hyperparameters)
    covs = [
        model.covariance.with_log_params(row).cov(DATA.sites)
        for row in np.broadcast_to(theta, (2, theta.shape[1]))
    ]
    mean = model.mean_at_sites(state.beta, DATA)
    field = (drawn_from or model).field(theta, state.beta, DATA).condition(potential)
    centre, covariances = field.mean(), []
    for k in range(2):
        K = covs[k]
        system = np.eye(len(K)) + K * potential.J[:, k]
        covariances.append(np.linalg.solve(system, K))

    def log_joint(psi):
        return log_gaussian(psi, mean, covs) + log_omega_given_psi(potential, psi)

    points = [RNG.normal(size=state.psi.shape) for _ in range(5)]
    return log_joint, lambda psi: log_gaussian(psi, centre, covariances), points


@models
def test_psi_given_omega(model):
    conditional_ratio(*psi_block(model), tol=1e-7)


def test_psi_with_its_mean_forgotten_is_refused():
    broken = mutant(
        MODEL, field=lambda self, theta, beta, data: MODEL.field(theta, 0.0 * beta, data)
    )
    rejects(conditional_ratio, *psi_block(MODEL, drawn_from=broken))


@pytest.mark.parametrize("kind", ["linear", "a covariance a stick", "given mean"])
def test_hyperparameters_have_the_collapsed_density(kind):
    """Log p(omega, x, theta) over all of (theta, beta, psi) is what the rest is drawn from."""
    model = MODELS[kind]
    state = model.prior(np.random.default_rng(4), DATA)
    potential = potential_of(model, state)
    log_density = model.collapsed(potential, DATA)
    features, centre, _ = model.trend(DATA)
    level = model.mean_at_sites(centre, DATA)
    rng = np.random.default_rng(5)
    for _ in range(3):
        theta = np.log(state.hyperparameters) + 0.5 * rng.standard_normal((1, 3))
        got = log_density(theta, np.ones(len(theta), dtype=np.bool_)).sum()
        expected = sum(model.covariance.with_log_params(row).log_prior() for row in theta)
        for k, row in enumerate(np.broadcast_to(theta, (2, 3))):
            cov = model.covariance.with_log_params(row).cov(DATA.sites)
            cov += model.mean_var * features @ features.T
            J, h, mean = potential.J[:, k], potential.h[:, k], level[:, k]
            system, left = np.eye(len(cov)) + cov * J, h - J * mean
            expected += mean @ (h - 0.5 * J * mean) - 0.5 * np.linalg.slogdet(system)[1]
            expected += 0.5 * left @ np.linalg.solve(system, cov @ left)
        np.testing.assert_allclose(got, expected, atol=1e-8)


SCALES = np.array([[0.3, 1.0], [2.0, 0.5]])
PRECISIONS = np.array([np.diag(row**-2.0) + 0.5 * np.eye(2)[::-1] for row in SCALES])
CENTRES = np.array([[1.0, -2.0], [0.0, 3.0]])


def log_gaussian_rows(x, active):
    away = x - CENTRES
    out = -0.5 * np.einsum("...ri,rij,...rj->...r", away, PRECISIONS, away)
    out[~active] = np.nan
    return out


def test_laplace_finds_a_gaussian():
    mean, root = laplace(log_gaussian_rows, np.zeros((2, 2)))
    np.testing.assert_allclose(mean, CENTRES, atol=1e-2)
    np.testing.assert_allclose(root @ root.transpose(0, 2, 1), np.linalg.inv(PRECISIONS), rtol=1e-4)
    flat = laplace(lambda x, active: np.zeros(len(x)), np.ones((1, 3)))
    assert np.isfinite(flat.root).all()


def test_matched_guesses_have_the_moments_of_a_skewed_density():
    """Of logarithms of gamma variables, rows of two shapes, mixed so that they correlate."""
    shapes = np.array([[1.5, 4.0], [30.0, 0.8]])
    mixing = np.array([[1.0, 0.0], [0.7, 1.0]])

    def log_density(x, active):
        z = np.linalg.solve(mixing, x[..., None])[..., 0]
        return np.sum(shapes * z - np.exp(z), axis=1)

    found = matched(log_density, laplace(log_density, np.zeros((2, 2))))
    mean = digamma(shapes) @ mixing.T
    sd = np.sqrt([np.diag(mixing @ np.diag(row) @ mixing.T) for row in polygamma(1, shapes)])
    got = np.sqrt(np.einsum("rij,rij->ri", found.root, found.root))
    assert np.abs((found.mean - mean) / sd).max() < 0.25
    assert (got / sd).min() > 0.75
    assert (got / sd).max() < 1.5
    again = matched(log_density, laplace(log_density, np.zeros((2, 2))))
    np.testing.assert_array_equal(found.root, again.root)


def check_law_stays(density, guess):
    """Joint updates of 400 copies that have the law already, side by side."""
    rng, copies = np.random.default_rng(6), 400
    noise = rng.standard_normal((copies, 2, 2, 1))
    x = CENTRES + (np.linalg.cholesky(np.linalg.inv(PRECISIONS)) @ noise)[..., 0]
    many = Guess(np.tile(guess.mean, (copies, 1)), np.tile(guess.root, (copies, 1, 1)))

    def log_density(rows, active):
        return density(rows.reshape(copies, 2, 2), active.reshape(copies, 2)).ravel()

    draws = []
    for _ in range(40):
        x = sample_hyperparameters(rng, log_density, x.reshape(-1, 2), many).reshape(copies, 2, 2)
        draws.append(x - CENTRES)
    for row, cov in enumerate(np.linalg.inv(PRECISIONS)):
        of_row, sd = np.array(draws)[:, :, row], np.sqrt(np.diagonal(cov))
        assert np.abs(of_row.mean(axis=(0, 1)) / sd).max() < 0.1
        got = np.cov(of_row.reshape(-1, 2).T) / np.outer(sd, sd)
        np.testing.assert_allclose(got, cov / np.outer(sd, sd), atol=0.1)


GUESSES = {
    "right": laplace(log_gaussian_rows, np.zeros((2, 2))),
    "beside": Guess(CENTRES + 0.4 * SCALES, 0.7 * SCALES[:, :, None] * np.eye(2)),
    "wide": Guess(CENTRES, 2.0 * SCALES[:, :, None] * np.eye(2)),
}


@pytest.mark.parametrize("kind", GUESSES)
def test_joint_updates_keep_the_law_whatever_the_guess(kind):
    check_law_stays(log_gaussian_rows, GUESSES[kind])


@pytest.mark.parametrize("kind", GUESSES)
def test_joint_updates_that_take_the_guess_for_a_prior_are_refused(kind):
    guess = GUESSES[kind]

    def doubled(x, active):
        z = np.linalg.solve(guess.root, (x - guess.mean)[..., None])[..., 0]
        return log_gaussian_rows(x, active) - 5.0 * np.log1p(np.sum(z**2, axis=-1) / 8.0)

    rejects(check_law_stays, doubled, guess)


def test_joint_updates_need_a_density_that_is_finite():
    with pytest.raises(FloatingPointError, match="finite at the start"):
        sample_hyperparameters(
            np.random.default_rng(0), lambda x, active: np.full(2, -np.inf), CENTRES,
            GUESSES["right"],
        )  # fmt: skip


def test_levels_move_with_the_counts_alone():
    """The move leaves psi minus its mean where it was, and only that."""
    model = MODELS["linear"]
    state = model.prior(np.random.default_rng(7), DATA)
    psi, beta = model._shift_levels(
        np.random.default_rng(8), state.psi, state.beta, DATA.site_counts(), DATA
    )
    assert (beta != state.beta).all()
    np.testing.assert_allclose(
        psi - model.mean_at_sites(beta, DATA),
        state.psi - model.mean_at_sites(state.beta, DATA),
        atol=1e-12,
    )


@pytest.mark.parametrize("kind", ["linear", "a covariance a stick"])
def test_the_law_at_new_inputs_is_of_the_assembled_gaussian(kind):
    model = MODELS[kind]
    state = model.prior(np.random.default_rng(9), DATA)
    potential = potential_of(model, state)
    link = mutant(model.link(DATA), augment=lambda self, rng, psi, counts: potential)
    known = mutant(model, link=lambda self, data: link)
    mean, var = known.psi_new_mean(state, DATA), known.psi_new_var(state, DATA)
    centre = model.mean_at_sites(state.beta, DATA)
    for k, row in enumerate(np.broadcast_to(np.log(state.hyperparameters), (2, 3))):
        K = model.covariance.with_log_params(row).cov(DATA.sites)
        cov = np.linalg.solve(np.eye(len(K)) + K * potential.J[:, k], K)
        expected = centre[:, k] + cov @ (potential.h[:, k] - potential.J[:, k] * centre[:, k])
        np.testing.assert_allclose(mean[:, k], expected[DATA.new_sites], atol=1e-9)
        np.testing.assert_allclose(var[:, k], np.diagonal(cov)[DATA.new_sites], atol=1e-9)


def test_one_state_has_one_law_at_new_inputs():
    state = MODEL.prior(np.random.default_rng(9), DATA)
    again = MultinomialGPState(state.psi.copy(), state.beta, state.hyperparameters)
    np.testing.assert_array_equal(MODEL.psi_new_mean(again, DATA), MODEL.psi_new_mean(state, DATA))
    other = MODEL.step(np.random.default_rng(10), state, DATA)
    assert (MODEL.psi_new_mean(other, DATA) != MODEL.psi_new_mean(state, DATA)).all()


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_sample_keeps_labelled_variables():
    data = as_field(INPUTS, COUNTS, [[6.0, 0.0]], categories=["a", "b", "c"], new_names=["next"])
    posterior = pgmult.sample(
        MODEL, data, keep=[*MODEL.dims], draws=4, tune=2, chains=1, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    assert list(posterior.coords["stick"]) == ["a", "c"]
    assert list(posterior.coords["new_row"]) == ["next"]
    assert list(posterior.coords["feature"]) == ["constant"]
    assert list(posterior.coords["hyperparameter"]) == [
        "Constant.var", "Matern.length_scale", "White.var",
    ]  # fmt: skip
    assert posterior["hyperparameters"].shape == (1, 4, 1, 3)
    np.testing.assert_allclose(posterior["pi"].sum(axis=-1), 1.0)
    np.testing.assert_allclose(posterior["pi_new"].sum(axis=-1), 1.0)


def test_empirical_bayes_says_so_and_finds_the_scale(caplog):
    rng = np.random.default_rng(10)
    times = np.arange(60.0)
    truth = MultinomialGP(1.5 * SquaredExponential(6.0), mean=0.0, hyperparameters="fixed")
    design = as_field(times, np.zeros((60, 3), dtype=np.int64), order="given")
    design = replace(design, counts=rng.multinomial(np.full(60, 80), [0.4, 0.3, 0.3]))
    data = truth.simulate(rng, truth.prior(rng, design), design)
    model = MultinomialGP(
        1.0 * SquaredExponential(2.0), mean=0.0, hyperparameters="empirical_bayes"
    )
    with caplog.at_level(logging.WARNING, logger="pgmult"):
        state = model.init(rng, data)
    assert "intervals do not know" in caplog.text
    assert 0.4 < state.hyperparameters[0, 0] < 5.0
    assert 4.0 < state.hyperparameters[0, 1] < 9.0
    moved = model.step(rng, state, data)
    np.testing.assert_array_equal(moved.hyperparameters, state.hyperparameters)
    np.testing.assert_array_equal(
        model.init(np.random.default_rng(1), data).hyperparameters, state.hyperparameters
    )


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_rare_categories_do_not_creep():
    """Without the moves of levels they do."""
    counts = np.array([[3000, 1, 0], [2900, 0, 1], [3100, 1, 1]])
    data = as_field(np.arange(3.0), counts)
    model = MultinomialGP(0.01 * Matern(0.5, 1.0), hyperparameters="fixed", method="polya_gamma")
    still = mutant(model, _shift_levels=lambda self, rng, psi, beta, counts, data: (psi, beta))

    def effective_draws(model):
        rng = np.random.default_rng(11)
        state, levels = model.init(rng, data), []
        for _ in range(300):
            state = model.step(rng, state, data)
            levels.append(state.beta[0, 0])
        return np.asarray(ess_bulk(np.array(levels)[None])).item()

    assert effective_draws(model) > 60
    assert effective_draws(replace(model, method="slice")) > 120
    assert effective_draws(still) < 15


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: MultinomialGP(3.0), TypeError, "covariance must be a Covariance, got float"),
        (lambda: replace(MODEL, hyperparameters="learned"), ValueError, "must be one of"),
        (lambda: replace(MODEL, mean="flat"), ValueError, 'mean must be "constant"'),
        (lambda: replace(MODEL, mean=[[0.0]]), ValueError, "one number or one a stick"),
        (lambda: replace(MODEL, mean_var=0.0), ValueError, "mean_var must be positive"),
        (
            lambda: replace(MODEL, hyperparameter_rate=0.0),
            ValueError,
            "rate must be above 0, got 0.0",
        ),
        (lambda: replace(MODEL, mean=np.zeros(5)).as_data(DATA), ValueError, "each of 2 sticks"),
        (lambda: MODEL.as_data(COUNTS), TypeError, "make the data with as_field"),
        (
            lambda: replace(MODEL, structure="sparse").init(np.random.default_rng(0), DATA),
            ValueError,
            "structure must be one of",
        ),
    ],
)
def test_bad_input(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_a_potential_is_plain():
    state = MODEL.prior(np.random.default_rng(12), DATA)
    potential = potential_of(MODEL, state)
    assert isinstance(potential, DiagonalPotential)
    assert (potential.J[DATA.num_sites - 1] == 0.0).all()  # a new input is a missing row
