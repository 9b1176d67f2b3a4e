"""Multinomial Gaussian processes: the samplers are right, calibrated, and refused when broken."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Constant, LogNormal, Matern, SquaredExponential
from pgmult.fields.predictions import FieldPredictions
from pgmult.fields.priors import dense as gp_prior
from pgmult.fields.priors import sticks
from pgmult.fields.priors.sticks import Sticks
from pgmult.fields.updates import samplers
from pgmult.latent import moves as gp_moves
from pgmult.latent.approximation import Approximation
from pgmult.latent.hyperparameters import Leaning
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
MODEL = MultinomialGP(COVARIANCE, mean_var=1.0, hyperparameter_rate=0.7)
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
    "model", [MODEL, replace(MODEL, shared=False)], ids=["shared", "a covariance a stick"]
)
def test_any_approximation_will_do(model, any_approximation):
    check_geweke(model, DATA, statistics=STATISTICS, replicates=300)


def crooked(family, rows):
    """Of a field that goes up and down from site to site: other hyperparameters altogether."""
    start = family.start()
    signs = (-1.0) ** np.arange(family.shape[0])[:, None] + np.zeros(family.shape)
    guess = Leaning(start, 0.4 * np.eye(len(start)), np.zeros(len(start)))
    J = np.ones(family.shape)
    return Approximation(J, 2.0 * signs, family.absorb(J, 2.0 * signs), guess, 9.0)


@pytest.fixture
def crooked_approximation(monkeypatch):
    monkeypatch.setattr(samplers, "approximate", crooked)


def test_hyperparameters_are_carried_by_a_crooked_approximation(crooked_approximation):
    check_geweke(MODEL, DATA, statistics=STATISTICS, replicates=300)


# ------------------------------------------------------------------ broken samplers


def stepping(broken, model=MODEL):
    """The model whose `step` is that of another."""
    return mutant(model, step=lambda self, rng, state, data: broken.step(rng, state, data))


def binomials_of(change):
    """With other numbers in place of what each stick takes and what reaches it."""

    def binomials(self, data):
        return np.stack(change(*MODEL.binomials(data)))

    return stepping(mutant(MODEL, binomials=binomials))


def total_for_reaching(taken, reaching):
    """N instead of N_k for every stick."""
    return taken, np.repeat(reaching[:, :1], reaching.shape[1], axis=1)


def uncentred(self, data):
    return MODEL.trend(data)._replace(centre=np.zeros((1, 2)))


def unpredicted(self, rng, state, data):
    """Psi at new inputs from the prior, as if nothing had been seen."""
    right = MODEL.step(rng, state, data)
    psi = right.psi.copy()
    (field,) = MODEL.fields(np.log(right.hyperparameters), data)
    drawn = MODEL.trend(data).at(right.beta) + field.sample(rng, 2)
    psi[len(psi) - 1 :] = drawn[len(psi) - 1 :]
    return replace(right, psi=psi)


def last_row_only(self, rng, state, data):
    def stick_counts(self):
        parts = np.zeros((2, data.num_sites, data.num_categories - 1), dtype=np.int64)
        parts[:, data.row_sites] = data.row_stick_counts()
        return parts

    return MODEL.step(rng, state, mutant(data, stick_counts=stick_counts))


def patched(where, name, broken):
    """The model whose sweeps find another function in place of one of their own."""

    def step(self, rng, state, data):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(where, name, broken)
            return MODEL.step(rng, state, data)

    return mutant(MODEL, step=step)


def flat(self, rows, psi):
    """As if the approximation were the posterior."""
    return np.zeros(psi.shape[1])


def without_prior(self, x):
    return -0.05 * float(np.sum(x**2))


def without_jacobian(self, x):
    """The density of the hyperparameters, taken for that of their logarithms."""
    return LOG_PRIOR(self, x) - float(np.sum(x))


def inverted(covariance, x):
    covariance, log_prior = FIND(covariance, x)
    sites = DATA.sites
    inverse = np.linalg.inv(covariance.cov(sites) + 1e-6 * np.eye(len(sites)))
    return mutant(covariance, cov=lambda self, X, Y=None: inverse), log_prior


FIND, LOG_PRIOR = sticks.covariance_at, Sticks.log_prior
BROKEN = {
    "moves without a correction": patched(Approximation, "correction", flat),
    "counts of the others": binomials_of(lambda taken, reaching: (reaching - taken, reaching)),
    "N instead of N_k": binomials_of(total_for_reaching),
    "the mean forgotten": stepping(mutant(MODEL, trend=uncentred)),
    "covariance for precision": patched(sticks, "covariance_at", inverted),
    "another prior of hyperparameters": stepping(
        replace(MODEL, covariance=Constant(0.8) * Matern(1.5, 2.0, active=[0]))
    ),
    "coefficients without their prior": stepping(replace(MODEL, mean_var=50.0)),
    "hyperparameters without their prior": patched(Sticks, "log_prior", without_prior),
    "hyperparameters without the Jacobian of their logarithms": patched(
        Sticks, "log_prior", without_jacobian
    ),
    "nothing predicted": mutant(MODEL, step=unpredicted),
    "one row of those at an input": mutant(MODEL, step=last_row_only),
}


def carried_whatever(rng, point, target):
    """Accepted whatever the corrections are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Approximation, "correction", flat)
        return gp_moves.carry(rng, point, target)


def test_geweke_refuses_hyperparameters_that_are_always_carried(crooked_approximation):
    broken = patched(samplers, "carry", carried_whatever)
    rejects(check_geweke, broken, DATA, statistics=STATISTICS, replicates=960)


# Where the approximation is far, carries and swings stand in for leaps and turns: what they use.
FAR = ["moves without a correction", "counts of the others", "N instead of N_k",
       "covariance for precision", "hyperparameters without their prior"]  # fmt: skip


@pytest.mark.parametrize(
    ("any_approximation", "kind"),
    [*((0.3, kind) for kind in BROKEN), *((9.0, kind) for kind in FAR)],
    indirect=["any_approximation"],
)
def test_geweke_refuses_broken_samplers(kind, any_approximation):
    rejects(check_geweke, BROKEN[kind], DATA, statistics=STATISTICS, replicates=960)


def test_geweke_refuses_a_jitter_of_the_prior_alone(any_approximation):
    """Drawn with more variance than the correction knows of."""

    def step(self, rng, state, data):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                gp_prior.dense_fields, "lower_root",
                lambda cov: (np.linalg.cholesky(cov + np.eye(len(cov))), -1),
            )  # fmt: skip
            gp_prior._root_of.cache_clear()
            try:
                return FIXED.step(rng, state, data)
            finally:
                gp_prior._root_of.cache_clear()

    rejects(check_geweke, mutant(FIXED, step=step), DATA, replicates=960)


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
