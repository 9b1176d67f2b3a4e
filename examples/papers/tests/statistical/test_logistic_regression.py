"""The samplers of logistic regressions are right, and the harness refuses broken ones."""

from dataclasses import replace

import numpy as np
import pytest
from same_draws import forget_a_block

from examples.papers.regressions import updates as module
from examples.papers.regressions.compiled.slices import slice_weights
from examples.papers.regressions.compiled.weights import sample_weights
from examples.papers.regressions.data import as_labelled_rows
from examples.papers.regressions.logistic import (
    GroupedLogisticRegression,
    GroupedLogisticRegressionState,
    LogisticRegression,
)
from pgmult.priors import MvNormal
from pgmult.priors.gaussian import Moments, log_inverse_wishart
from pgmult.testing import (
    check_geweke,
    check_likelihood,
    check_model,
    check_sbc,
    conditional_ratio,
    mutant,
    rejects,
)

pytestmark = pytest.mark.slow

ABOUT = np.array([0.3, -1.0])  # of moments: any point will do

# Nine rows of three groups, the second without rows; one row has no trial, some have several.
X = np.array(
    [[1.0, 0.5], [1.0, -1.2], [1.0, 2.0], [1.0, 0.0], [1.0, -0.3], [1.0, 1.1], [1.0, -2.0],
     [1.0, 0.9], [1.0, 0.2]]
)  # fmt: skip
DATA = as_labelled_rows(
    X, [1, 0, 2, 0, 1, 1, 0, 3, 0], groups=list("aaacacaca"), trials=[1, 1, 3, 0, 1, 1, 2, 5, 1],
    group_names=["a", "b", "c"],
    predictor_offset=[0.4, 0.0, -1.5, 0.0, 1.0, -0.5, 2.0, -0.2, 0.3],
)  # fmt: skip
PRIOR = MvNormal(np.array([0.5, -0.4]), np.array([[1.5, 0.6], [0.6, 2.0]]))
MODEL = LogisticRegression(PRIOR)
GROUPED = GroupedLogisticRegression(PRIOR, 5.0, np.array([[2.0, -0.5], [-0.5, 1.0]]))
BLOCKS = replace(GROUPED, block_rows=1)


def moving(monkeypatch, by):
    """All groups move in one of the two ways, whatever the rule says."""
    monkeypatch.setattr(module, "_easy", lambda data, base: np.full(len(base), by == "gibbs"))


@pytest.mark.parametrize(
    ("model", "by"),
    [(MODEL, "gibbs"), (MODEL, "slices"), (BLOCKS, "gibbs"), (GROUPED, "slices")],
    ids=["fixed prior, gibbs", "fixed prior, slices", "in blocks, gibbs", "learned prior, slices"],
)
def test_logistic_regressions(monkeypatch, model, by):
    moving(monkeypatch, by)
    check_model(replace(model), DATA)


@pytest.mark.parametrize("model", [MODEL, GROUPED], ids=["fixed prior", "learned prior"])
def test_chains_reach_the_posterior(monkeypatch, model):
    moving(monkeypatch, "slices")
    check_sbc(replace(model), DATA, tune=30, thin=8, replicates=200)


# ------------------------------------------------------------------ every block's conditional


@pytest.fixture
def state():
    return GROUPED.prior(np.random.default_rng(3), DATA)


def points(draw, seed=5):
    rng = np.random.default_rng(seed)
    return [draw(rng) for _ in range(6)]


def log_weights(weights, mu, Sigma):
    return MvNormal(mu, Sigma).log_density(weights).sum()


def weights_block(omega, precision=None, kappa=None):
    """Log joint of weights and omega, and the Gaussian that weights are drawn from."""
    if precision is None:
        precision = PRIOR.precision()
    if kappa is None:
        kappa = DATA.successes - 0.5 * DATA.trials

    def log_joint(weights):
        psi = np.einsum("nd,nd->n", DATA.covariates, np.repeat(weights, np.diff(DATA.offsets), 0))
        psi = psi + DATA.known
        likelihood = DATA.successes * psi - DATA.trials * np.logaddexp(0.0, psi)
        # PG(omega | b, psi) / PG(omega | b, 0) = cosh(psi / 2)**b exp(-omega psi**2 / 2)
        log_omega = DATA.trials * np.log(np.cosh(psi / 2.0)) - 0.5 * omega * psi**2
        return PRIOR.log_density(weights).sum() + likelihood.sum() + log_omega.sum()

    def log_conditional(weights):
        total = 0.0
        for g, (a, b) in enumerate(zip(DATA.offsets[:-1], DATA.offsets[1:], strict=True)):
            x = DATA.covariates[a:b]
            P = precision + x.T @ (omega[a:b, None] * x)
            pull = kappa[a:b] - omega[a:b] * DATA.known[a:b]
            h = precision @ PRIOR.prior_mean + x.T @ pull
            total += MvNormal(np.linalg.solve(P, h), np.linalg.inv(P)).log_density(weights[g])
        return total

    return log_joint, log_conditional


OMEGA = np.random.default_rng(8).gamma(1.0, 0.3, size=9)
WEIGHTS = points(lambda rng: rng.standard_normal((3, 2)))


def test_weights_given_omega():
    conditional_ratio(*weights_block(OMEGA), WEIGHTS)


@pytest.mark.parametrize(
    "broken",
    [
        {"precision": PRIOR.prior_cov},
        {"kappa": DATA.successes.astype(float)},
        {"kappa": 0.5 * DATA.trials - DATA.successes},
    ],
    ids=["covariance for precision", "kappa without its half", "kappa with the wrong sign"],
)
def test_conditional_ratio_refuses_broken_weights(broken):
    rejects(conditional_ratio, *weights_block(OMEGA, **broken), WEIGHTS)


def mu_block(state, model=GROUPED):
    posterior = model.mu_given(Moments.of(state.weights, ABOUT), state.Sigma)
    return (
        lambda mu: PRIOR.log_density(mu) + log_weights(state.weights, mu, state.Sigma),
        lambda mu: posterior.log_density(mu),
    )


MUS = points(lambda rng: rng.standard_normal(2))


def test_mu_given_weights(state):
    conditional_ratio(*mu_block(state), MUS)


def test_conditional_ratio_refuses_a_broken_mu(state):
    no_prior_mean = replace(GROUPED, mean_prior=MvNormal(np.zeros(2), PRIOR.prior_cov))
    rejects(conditional_ratio, *mu_block(state, no_prior_mean), MUS)
    rejects(conditional_ratio, *mu_block(state, EXTRA_GROUP), MUS)


def Sigma_block(state, model=GROUPED):
    posterior = model.Sigma_given(Moments.of(state.weights, ABOUT), state.mu)
    return (
        lambda Sigma: (
            log_inverse_wishart(Sigma, GROUPED.dof, GROUPED.scale)
            + log_weights(state.weights, state.mu, Sigma)
        ),
        lambda Sigma: log_inverse_wishart(Sigma, *posterior),
    )


@pytest.fixture
def Sigmas():
    return points(lambda rng: GROUPED.prior(rng, DATA).Sigma)


def test_Sigma_given_weights(state, Sigmas):
    conditional_ratio(*Sigma_block(state), Sigmas)


@pytest.mark.parametrize("kind", ["one degree too few", "scatter around zero"])
def test_conditional_ratio_refuses_a_broken_Sigma(state, kind, Sigmas):
    rejects(conditional_ratio, *Sigma_block(state, BROKEN_SIGMA[kind]), Sigmas)


# ------------------------------------------------------------------ broken samplers


EXTRA_GROUP = mutant(
    GROUPED, mu_given=lambda self, w, Sigma: GROUPED.mu_given(replace(w, count=w.count + 1), Sigma)
)
BROKEN_SIGMA = {
    "one degree too few": mutant(
        GROUPED,
        Sigma_given=lambda self, w, mu: (GROUPED.dof + w.count - 1.0, self.scale + w.around(mu)),
    ),
    "scatter around zero": mutant(
        GROUPED,
        Sigma_given=lambda self, w, mu: (GROUPED.dof + w.count, self.scale + w.around(0.0 * mu)),
    ),
}


def changed(kernel, change):
    """A kernel with other rows and another prior: change(successes, trials, precision, known)."""

    def broken(worker, start, stop, rows, prior, *rest):
        y, b, P, o = change(rows.successes, rows.trials, prior.precision, rows.known)
        rows, prior = rows._replace(successes=y, trials=b, known=o), prior._replace(precision=P)
        return kernel(worker, start, stop, rows, prior, *rest)

    return broken


def omega_at_zero(worker, start, stop, rows, prior, key, weights, *rest):
    return sample_weights(worker, start, stop, rows, prior, key, np.zeros_like(weights), *rest)


CHANGES = {
    "failures for successes": lambda y, b, P, o: (b - y, b, P, o),
    "one trial in every row": lambda y, b, P, o: (y, np.ones_like(b), P, o),
    "covariance for precision": lambda y, b, P, o: (y, b, np.linalg.inv(P), o),
    "offset forgotten": lambda y, b, P, o: (y, b, P, np.zeros_like(o)),
}
BROKEN_KERNELS = {
    **{kind: changed(sample_weights, change) for kind, change in CHANGES.items()},
    "omega at zero": omega_at_zero,
}


@pytest.mark.parametrize("kind", BROKEN_KERNELS)
def test_geweke_refuses_broken_weights(monkeypatch, kind):
    moving(monkeypatch, "gibbs")
    monkeypatch.setattr(module, "sample_weights", BROKEN_KERNELS[kind])
    more = replace(DATA, trials=4 * DATA.trials)
    rejects(check_geweke, MODEL, more, replicates=600)


def uncorrected(worker, start, stop, rows, prior, around, key, weights, out):
    """Draws from the base itself, whatever the labels say besides."""
    mean, root, _ = around
    rng = np.random.default_rng(key)
    noise = rng.standard_normal((*mean.shape, 1))
    out[:] = mean + 1.5 * np.linalg.solve(np.swapaxes(root, 1, 2), noise)[..., 0]
    return 0


BROKEN_SLICES = {
    **{kind: changed(slice_weights, change) for kind, change in CHANGES.items()},
    "no correction": uncorrected,
}


@pytest.mark.parametrize("kind", BROKEN_SLICES)
def test_geweke_refuses_broken_slices(monkeypatch, kind):
    moving(monkeypatch, "slices")
    monkeypatch.setattr(module, "slice_weights", BROKEN_SLICES[kind])
    more = replace(DATA, trials=4 * DATA.trials)
    rejects(check_geweke, MODEL, more, replicates=600)


@pytest.mark.parametrize("kind", BROKEN_SIGMA)
def test_geweke_refuses_a_broken_learned_prior(kind):
    rejects(check_geweke, BROKEN_SIGMA[kind], DATA, replicates=1000)


def test_geweke_refuses_a_block_that_is_forgotten(monkeypatch):
    forget_a_block(monkeypatch)
    rejects(check_geweke, replace(GROUPED, block_rows=1), DATA, replicates=1000)


def test_geweke_refuses_a_stale_mu():
    def step(self, rng, state, data):
        new = GROUPED.step(rng, state, data)
        old = Moments.of(state.weights, state.mu)
        stale = GROUPED.mu_given(old, state.Sigma).sample(rng)
        return GroupedLogisticRegressionState(new.weights, stale, new.Sigma)

    rejects(check_geweke, mutant(GROUPED, step=step), DATA, replicates=1000)


def test_the_coin_refuses_the_likelihood_of_other_labels():
    def reversed_labels(self, state, data):
        return MODEL.log_likelihood(state, data.with_successes(data.trials - data.successes))

    check_likelihood(MODEL, DATA, replicates=1000)
    rejects(check_likelihood, mutant(MODEL, log_likelihood=reversed_labels), DATA)
