"""The sampler of the softmax Gaussian process is right, and the harness refuses broken ones."""

from dataclasses import replace

import numpy as np
import pytest

from examples.papers.linderman2015 import softmax_gp
from examples.papers.linderman2015.softmax_gp import LogisticNormalGP
from pgmult.fields import as_field
from pgmult.fields.covariances import LogNormal, SquaredExponential
from pgmult.fields.scores import shares_inside
from pgmult.testing import check_geweke, check_likelihood, check_model, check_sbc, mutant, rejects

pytestmark = pytest.mark.slow

# Two rows at one input, a missing row, unequal totals; one new input is old.
DATA = as_field(
    [0.0, 1.0, 1.0, 2.5], [[1, 2, 0], [2, 1, 4], [3, 1, 0], [0, 0, 0]], new_inputs=[4.0, 1.0]
)
COVARIANCE = 1.5 * SquaredExponential(1.5)
MODEL = LogisticNormalGP(COVARIANCE, mean=[0.8, 0.0, -0.5], restarts=3)
SAMPLED = replace(MODEL, hyperparameters="sampled")


def statistics(model):
    fields = ("psi", "whitened", "hyperparameters")
    return {
        **{name: lambda state, data, name=name: getattr(state, name) for name in fields},
        "log_likelihood": model.log_likelihood,
        "pi_new": model.pi_new,
        "fit": lambda state, data: (model.pi(state, data) * data.counts).sum(axis=0),
    }


@pytest.mark.parametrize("model", [MODEL, SAMPLED], ids=["fixed", "sampled"])
def test_logistic_normal_gp(model):
    check_model(model, DATA, replicates=300, statistics=statistics(model))


def test_two_categories_and_one_site():
    model = LogisticNormalGP(COVARIANCE, hyperparameters="sampled")
    check_model(model, as_field([0.0], [[2, 3]]), replicates=300, statistics=statistics(model))


def test_reaches_the_posterior():
    identified = {"log_likelihood": MODEL.log_likelihood, "pi": MODEL.pi, "pi_new": MODEL.pi_new}
    check_sbc(MODEL, DATA, identified, tune=30, thin=10, replicates=150)


def test_the_coin_refuses_the_likelihood_of_other_inputs():
    def reversed_inputs(self, state, data):
        return MODEL.log_likelihood(replace(state, psi=state.psi[::-1].copy()), data)

    check_likelihood(MODEL, DATA, replicates=1000)
    rejects(check_likelihood, mutant(MODEL, log_likelihood=reversed_inputs), DATA)


def with_rotation(change):
    """`MODEL` whose functions are moved by `change(rotate, *arguments)`."""

    def sample_functions(self, *arguments):
        rotate = softmax_gp.rotate_functions
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(softmax_gp, "rotate_functions", lambda *inner: change(rotate, *inner))
            return MODEL._sample_functions(*arguments)

    return mutant(MODEL, _sample_functions=sample_functions)


def partners_stay(rotate, key, counts, totals, mean, restarts, functions, across):
    """As if rotating a function left its partner what it was."""
    for restart in range(3 * restarts):
        partners = np.roll(across, -restart, axis=0)
        rotate(key + np.uint64(restart), counts, totals, mean, 1, functions, partners)
    return 0


def same_ellipses(rotate, key, counts, totals, mean, restarts, functions, across):
    """One partner for all functions at a time."""
    across[:] = across[0]
    return rotate(key, counts, totals, mean, restarts, functions, across)


def common_too_wide(self, rng, whitened):
    common = rng.standard_normal((len(whitened), 1))
    return whitened - whitened.mean(axis=1, keepdims=True) + common


def common_forgotten(self, rng, whitened):
    return whitened - whitened.mean(axis=1, keepdims=True)


def seen_functions_again(self, rng, whitened, data):
    whitened = whitened.copy()
    whitened[3:] = whitened[:1]
    return whitened


BROKEN = {
    "counts twice": with_rotation(
        lambda rotate, key, counts, *rest: rotate(key, 2 * counts, *rest)
    ),
    "totals twice": with_rotation(
        lambda rotate, key, counts, totals, *rest: rotate(key, counts, 2 * totals, *rest)
    ),
    "counts of other categories": with_rotation(
        lambda rotate, key, counts, *rest: rotate(key, counts[::-1].copy(), *rest)
    ),
    "counts of other inputs": with_rotation(
        lambda rotate, key, counts, totals, *rest: rotate(
            key, counts[:, ::-1].copy(), totals[::-1].copy(), *rest
        )
    ),
    "mean forgotten": with_rotation(
        lambda rotate, key, counts, totals, mean, *rest: rotate(
            key, counts, totals, 0 * mean, *rest
        )
    ),
    "partners stay": with_rotation(partners_stay),
    "one partner for all": with_rotation(same_ellipses),
    "common function too wide": mutant(MODEL, _sample_common=common_too_wide),
    "common function forgotten": mutant(MODEL, _sample_common=common_forgotten),
    "new inputs tied to old ones": mutant(MODEL, _sample_unseen=seen_functions_again),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_geweke_refuses_broken_samplers(kind):
    rejects(check_geweke, BROKEN[kind], DATA, statistics=statistics(MODEL), replicates=600)


OTHER_PRIORS = replace(
    SAMPLED, covariance=1.5 * SquaredExponential(1.5, priors={"length_scale": LogNormal(3.0, 0.5)})
)


def of_other_functions(self, rng, state, data):
    turned = replace(state, whitened=state.whitened[::-1].copy())
    return SAMPLED._sample_hyperparameters(rng, turned, data)


def of_other_priors(self, rng, state, data):
    return OTHER_PRIORS._sample_hyperparameters(rng, state, data)


@pytest.mark.parametrize("broken", [of_other_functions, of_other_priors])
def test_geweke_refuses_broken_hyperparameters(broken):
    model = mutant(SAMPLED, _sample_hyperparameters=broken)
    rejects(check_geweke, model, DATA, statistics=statistics(SAMPLED), replicates=300)


def test_intervals_of_new_probabilities_cover():
    """Of 60 fields drawn from the prior, at two inputs between and beyond the counts."""
    rng = np.random.default_rng(0)
    model = LogisticNormalGP(COVARIANCE)
    data = as_field(np.arange(6.0), np.full((6, 3), 5), new_inputs=[2.5, 7.0])
    draws, truths = [], []
    for _ in range(60):
        truth = model.prior(rng, data)
        simulated = model.simulate(rng, truth, data)
        state, kept = model.init(rng, simulated), []
        for sweep in range(240):
            state = model.step(rng, state, simulated)
            if sweep >= 40 and sweep % 10 == 0:
                kept.append(model.pi_new(state, simulated))
        draws.append(np.array(kept).reshape(20, -1))
        truths.append(model.pi_new(truth, data).ravel())
    levels = [0.5, 0.8, 0.95]
    inside = shares_inside(np.stack(draws, axis=1), np.array(truths), levels).mean(axis=-1)
    error = inside.std(axis=1, ddof=1) / np.sqrt(inside.shape[1])
    assert np.all(np.abs(inside.mean(axis=1) - levels) < 3.5 * error), inside.mean(axis=1)
