"""Multinomial Gaussian processes: the samplers are right, calibrated, and refused when broken."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult import DiagonalPotential, StickBreaking
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Constant, LogNormal, Matern, SquaredExponential
from pgmult.fields.models import multinomial_gp as gp_model
from pgmult.fields.models.approximation import Approximation
from pgmult.fields.predictions import FieldPredictions
from pgmult.fields.priors import dense as gp_prior
from pgmult.fields.priors.dense import GaussianProcess
from pgmult.latent.hyperparameters import Guess
from pgmult.testing import check_geweke, check_model, mutant, rejects

pytestmark = pytest.mark.slow

# A repeated input, a missing row, unequal totals, a new input and one that was seen already.
DATA = as_field(
    [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [2.5, 0.5], [4.0, 1.0]],
    [[2, 1, 1], [9, 1, 7], [0, 2, 1], [0, 0, 0], [6, 2, 1]],
    new_inputs=[[5.0, 0.5], [0.0, 1.0]],
)
COVARIANCE = Constant(0.8, priors={"var": LogNormal(0.8, 0.4)}) * Matern(
    1.5, 2.0, priors={"length_scale": LogNormal(2.0, 0.4)}, active=[0]
)
MODEL = MultinomialGP(COVARIANCE, mean_var=1.0, hyperparameter_rate=1.0, method="polya_gamma")
SLICED = replace(MODEL, method="slice")
FIXED = replace(MODEL, hyperparameters="fixed")
STATISTICS = {
    "psi": lambda state, data: state.psi,
    "beta": lambda state, data: state.beta,
    "hyperparameters": lambda state, data: state.hyperparameters,
    "log_likelihood": MODEL.log_likelihood,
    "residuals": lambda state, data: (state.psi - state.beta)[:2],
    "standardised": lambda state, data: (
        (state.psi - state.beta) ** 2 / state.hyperparameters[0, 0]
    ).sum(axis=0),
    "step to the new input": lambda state, data: (state.psi[-1] - state.psi[-2]) ** 2,
}


@pytest.mark.parametrize(
    "model",
    [
        MODEL,
        replace(MODEL, shared=False, mean="linear"),
        replace(FIXED, mean=np.array([0.5, -0.5])),
    ],
    ids=["shared, constant mean", "a covariance a stick, linear mean", "all fixed"],
)
def test_multinomial_gp(model, any_approximation):
    check_model(model, DATA, replicates=100)


@pytest.mark.parametrize(
    "model",
    [
        MODEL,
        SLICED,
        replace(SLICED, shared=False),
        replace(SLICED, structure="inducing_points"),
    ],
    ids=["by omega", "slices", "a covariance a stick", "inducing points"],
)
def test_any_approximation_will_do(model, any_approximation):
    check_geweke(model, DATA, statistics=STATISTICS, replicates=300)


@pytest.fixture
def crooked_approximation(monkeypatch):
    """Of a field that goes up and down from site to site: other hyperparameters altogether."""

    def found(model, data):
        start, (taken, _) = model.start(data), model.binomials(data)
        guess = Guess(start, np.tile(0.4 * np.eye(start.shape[1]), (len(start), 1, 1)))
        signs = (-1.0) ** np.arange(data.num_sites)[:, None]
        potential = DiagonalPotential(1.0 + 0.0 * taken, 2.0 * signs + 0.0 * taken)
        return Approximation(potential, guess, taken[0], 0.0 * taken, 1.0 + 0.0 * taken)

    monkeypatch.setattr(gp_model, "approximation", found)


def test_hyperparameters_are_carried_by_a_crooked_approximation(crooked_approximation):
    check_geweke(SLICED, DATA, statistics=STATISTICS, replicates=300)


# ------------------------------------------------------------------ broken samplers


def stepping(broken, model=MODEL):
    """The model whose `step` is that of another."""
    return mutant(model, step=lambda self, rng, state, data: broken.step(rng, state, data))


def broken_link(change):
    right = StickBreaking(DATA.order)

    def augment(self, rng, psi, counts):
        return change(right.augment(rng, psi, counts), rng, psi, counts)

    link = mutant(right, augment=augment)
    return stepping(mutant(MODEL, link=lambda self, data: link))


def total_for_reaching(potential, rng, psi, counts):
    """N instead of N_k for every stick."""
    totals = counts.sum(axis=1)
    columns = []
    for k, category in enumerate(DATA.order[:-1]):
        pair = np.stack([counts[:, category], totals - counts[:, category]], axis=1)
        columns.append(StickBreaking().augment(rng, psi[:, [k]], pair))
    return DiagonalPotential(
        np.concatenate([c.J for c in columns], axis=1),
        np.concatenate([c.h for c in columns], axis=1),
    )


def inverted(self, theta, beta, data):
    covariance = self.covariance.with_log_params(theta[0])
    sites = data.sites
    inverse = np.linalg.inv(covariance.cov(sites) + 1e-6 * np.eye(len(sites)))
    broken = mutant(covariance, cov=lambda self, X, Y=None: inverse)
    return GaussianProcess(broken, sites, self.mean_at_sites(beta, data))


def uncentred(self, data):
    return MODEL.trend(data)._replace(centre=np.zeros((1, 2)))


def unpredicted(self, rng, state, data):
    """Psi at new inputs from the prior, as if nothing had been seen."""
    right = MODEL.step(rng, state, data)
    psi = right.psi.copy()
    fresh = MODEL.field(np.log(right.hyperparameters), right.beta, data).sample(rng)
    psi[len(psi) - 1 :] = fresh[len(psi) - 1 :]
    return replace(right, psi=psi)


def last_row_only(self, rng, state, data):
    def site_counts(self):
        counts = np.zeros((data.num_sites, data.num_categories), dtype=np.int64)
        counts[data.row_sites] = data.counts
        return counts

    return MODEL.step(rng, state, mutant(data, site_counts=site_counts))


def levels_without_sticks(self, rng, psi, beta, counts, data):
    return psi, MODEL._shift_levels(rng, psi, beta, counts, data)[1]


def collapsed_without_prior(self, potential, data):
    right = MODEL.collapsed(potential, data)

    def log_density(thetas, active):
        priors = [MODEL.covariance.with_log_params(row).log_prior() for row in thetas]
        return right(thetas, active) - np.array(priors) - 0.05 * np.sum(thetas**2, axis=1)

    return log_density


def collapsed_without_jacobian(self, potential, data):
    """The density of the hyperparameters, taken for that of their logarithms."""
    right = MODEL.collapsed(potential, data)
    return lambda thetas, active: right(thetas, active) - thetas.sum(axis=1)


def stretched_at_one_variance(self, rng, psi, beta, theta, counts, data):
    return MODEL._scale_sticks(rng, psi, beta, theta, counts, data)[0], theta


class Flat(Approximation):
    """As if the approximation were the posterior."""

    def correction(self, psi, taken, reaching):
        return np.zeros(psi.shape[1])


def uncorrected(self, data):
    return Flat(*gp_model.approximation(self, data))


def carried_whatever(self, rng, state, data):
    """Accepted whatever the corrections are."""
    return mutant(SLICED, approximation=uncorrected)._carry(rng, state, data)


def stretched_by_nothing(self, theta, noise, data):
    """The same field, not the same noise, at other hyperparameters."""
    of_field, beta, errors = noise
    old, new = (SLICED.field(at, np.zeros_like(beta), data) for at in (SLICED.start(data), theta))
    return SLICED._posterior_mean(new, old.colour(of_field), beta, errors, data)


BROKEN = {
    "slices without a correction": stepping(
        mutant(replace(SLICED, hyperparameters="fixed"), approximation=uncorrected),
        replace(SLICED, hyperparameters="fixed"),
    ),
    "kappa with the wrong sign": broken_link(
        lambda potential, rng, psi, counts: DiagonalPotential(potential.J, -potential.h)
    ),
    "N instead of N_k": broken_link(total_for_reaching),
    "the mean forgotten": stepping(mutant(MODEL, trend=uncentred)),
    "covariance for precision": stepping(mutant(MODEL, field=inverted)),
    "another prior of hyperparameters": stepping(
        replace(MODEL, covariance=Constant(0.8) * Matern(1.5, 2.0, active=[0]))
    ),
    "coefficients without their prior": stepping(replace(MODEL, mean_var=50.0)),
    "levels that leave psi behind": stepping(mutant(MODEL, _shift_levels=levels_without_sticks)),
    "hyperparameters without their prior": stepping(
        mutant(MODEL, collapsed=collapsed_without_prior)
    ),
    "hyperparameters without the Jacobian of their logarithms": stepping(
        mutant(MODEL, collapsed=collapsed_without_jacobian)
    ),
    "sticks stretched at the same variance": stepping(
        mutant(MODEL, _scale_sticks=stretched_at_one_variance)
    ),
    "nothing predicted": mutant(MODEL, step=unpredicted),
    "one row of those at an input": mutant(MODEL, step=last_row_only),
}


CARRIED = {
    "always accepted": mutant(SLICED, _carry=carried_whatever),
    "without the field's noise": mutant(SLICED, _rebuilt=stretched_by_nothing),
}


@pytest.mark.parametrize("kind", CARRIED)
def test_geweke_refuses_hyperparameters_carried_wrongly(kind, crooked_approximation):
    broken = stepping(CARRIED[kind], SLICED)
    rejects(check_geweke, broken, DATA, statistics=STATISTICS, replicates=200)


SUBTLE = {
    "hyperparameters without the Jacobian of their logarithms": 600,
    "sticks stretched at the same variance": 1200,
    "levels that leave psi behind": 400,
}


@pytest.mark.parametrize("kind", BROKEN)
def test_geweke_refuses_broken_samplers(kind, any_approximation):
    replicates = SUBTLE.get(kind, 200)
    rejects(check_geweke, BROKEN[kind], DATA, statistics=STATISTICS, replicates=replicates)


def test_geweke_refuses_a_stale_omega():
    """Of psi = 0 whatever psi is; seen where psi ranges widely and counts are large."""
    wide = replace(FIXED, covariance=6.0 * Matern(1.5, 2.0, active=[0]), mean=0.0)
    more = replace(DATA, counts=4 * DATA.counts)

    def augment(self, rng, psi, counts):
        return right.augment(rng, np.zeros_like(psi), counts)

    right = StickBreaking(DATA.order)
    link = mutant(right, augment=augment)
    broken = stepping(mutant(wide, link=lambda self, data: link), wide)
    check_geweke(wide, more, statistics=["psi"], replicates=300)
    rejects(check_geweke, broken, more, statistics=["psi"], replicates=300)


def test_geweke_refuses_a_jitter_of_the_prior_alone():
    """Drawn with more variance than the correction knows of."""

    def step(self, rng, state, data):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                gp_prior,
                "lower_root",
                lambda cov: (np.linalg.cholesky(cov + 0.3 * np.eye(len(cov))), -1),
            )
            gp_prior._root_of.cache_clear()
            try:
                return FIXED.step(rng, state, data)
            finally:
                gp_prior._root_of.cache_clear()

    rejects(check_geweke, mutant(FIXED, step=step), DATA, replicates=200)


# ------------------------------------------------------------------ calibration


def test_intervals_at_new_inputs_cover_at_their_rates():
    """Of probabilities drawn from the prior, new inputs 1.5 length scales away and in a gap."""
    rng = np.random.default_rng(0)
    times = np.array([0.0, 1.0, 2.0, 3.0, 6.0, 7.0])
    design = as_field(
        times, np.zeros((6, 4), dtype=np.int64), new_inputs=[4.5, 10.0], order="given"
    )
    model = MultinomialGP(
        Constant(1.0, priors={"var": LogNormal(1.0, 0.5)})
        * SquaredExponential(2.0, priors={"length_scale": LogNormal(2.0, 0.3)}),
        mean_var=1.0,
        hyperparameter_rate=0.5,
    )
    data = replace(design, counts=rng.multinomial([15, 0, 4, 30, 15, 8], [0.25] * 4))
    covered = {0.5: [], 0.8: [], 0.95: []}
    for _ in range(30):
        truth = model.prior(rng, data)
        seen = model.simulate(rng, truth, data)
        state = model.init(rng, seen)
        draws = []
        for sweep in range(140):
            state = model.step(rng, state, seen)
            if sweep >= 20:
                draws.append(model.pi_new(state, seen))
        found = FieldPredictions(np.array(draws))
        for rate, hits in covered.items():
            low, high = found.interval(rate)
            pi = model.pi_new(truth, data)
            hits.append(((low < pi) & (pi < high)).mean())
    for rate, hits in covered.items():
        error = np.std(hits) / np.sqrt(len(hits))
        assert abs(np.mean(hits) - rate) < 3.5 * error + 0.01, (rate, np.mean(hits), error)
