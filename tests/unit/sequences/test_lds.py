"""The sampler of linear dynamical systems, block by block, and what it takes and gives."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from oracle.dynamics import log_density
from oracle.sticks import dense_omega
from same_draws import check_shards_do_not_matter

import pgmult
from pgmult.latent.terms import log_sd
from pgmult.links import StickBreaking
from pgmult.priors import LKJ, MatrixNormalInverseWishart, MvNormal, Normal, NormalInverseWishart
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sequences.active_sticks import ActiveSticks
from pgmult.sequences.compiled.dynamics import scale_log_density
from pgmult.sequences.data.sequences import as_sequences
from pgmult.sequences.models.lds import MultinomialLDS
from pgmult.sequences.updates import conjugate, lds_moves
from pgmult.sequences.updates.conjugate import first_sums, transition_sums
from pgmult.sequences.updates.spectral_start import spectral_states
from pgmult.testing import conditional_ratio, rejects

INPUTS = np.random.default_rng(9).standard_normal((9, 2))
SYMBOLS = as_sequences([[0, 2, -1, 1, 0], [1, 1, 3, 0]])
COUNTS = as_sequences(
    [
        np.array([[1, 2, 0, 0], [0, 0, 0, 0], [3, 0, 1, 1], [0, 1, 0, 2], [1, 0, 0, 0]]),
        np.array([[0, 1, 0, 2], [0, 0, 0, 4], [2, 2, 0, 0], [0, 1, 1, 0]]),
    ],
    inputs=INPUTS,
)
MODELS = {
    "symbols": (MultinomialLDS(2), SYMBOLS),
    "counts": (MultinomialLDS(2), COUNTS),
    "dynamics": (MultinomialLDS(3, inputs="dynamics"), COUNTS),
    "emissions": (MultinomialLDS(1, inputs="emissions", loading_scale=1.0), COUNTS),
}


@pytest.fixture(params=MODELS)
def case(request):
    model, data = MODELS[request.param]
    return model, data, model.prior(np.random.default_rng(3), data)


def log_joint(model, data, state):
    """Log density of states, weights and observations, in the naive way: no sticks are skipped."""
    u = np.zeros((data.num_steps, 0)) if data.inputs is None else data.inputs
    total = 0.0
    for s in range(data.num_sequences):
        for t in range(data.offsets[s], data.offsets[s + 1]):
            mean, cov = state.initial_mean, state.initial_cov
            if t > data.offsets[s]:
                mean = state.transition @ state.states[t - 1] + state.input_weights @ u[t]
                cov = state.noise_cov
            total += scipy.stats.multivariate_normal.logpdf(state.states[t], mean, cov)
    psi = state.states @ state.loadings.T + u @ state.emission_weights.T + state.offset
    link = StickBreaking(order=data.order)
    total += link.log_likelihood(psi, data.to_csr().toarray()).sum()
    total += scipy.stats.norm.logpdf(state.loadings, 0.0, np.sqrt(state.loading_var)).sum()
    if model.inputs != "dynamics":
        sd = np.sqrt(model.emission_var)
        total += scipy.stats.norm.logpdf(state.emission_weights, 0.0, sd).sum()
    mean, var = model.offset_moments(data)
    return total + scipy.stats.norm.logpdf(state.offset, mean, np.sqrt(var)).sum()


def log_omega(model, data, state, omega):
    """PG(omega | N, psi) / PG(omega | N, 0), in psi."""
    u = np.zeros((data.num_steps, 0)) if data.inputs is None else data.inputs
    psi = state.states @ state.loadings.T + u @ state.emission_weights.T + state.offset
    reaching = StickBreaking(order=data.order).totals(data.to_csr().toarray())
    return (reaching * np.log(np.cosh(psi / 2.0)) - omega * psi**2 / 2.0).sum()


def augmented(model, data, state):
    active = ActiveSticks.of(data)
    design, weights = model.design(state.states, data), state.weights
    return active, design, active.augment(np.random.default_rng(4), design, weights)


def test_states_given_omega(case):
    model, data, state = case
    active, design, omega = augmented(model, data, state)
    seen = active.potential(omega, design, state.weights, model.state_dim)
    posterior = model.states_given(state, data, seen)
    dense = dense_omega(active, omega)

    def joint(x):
        moved = replace(state, states=x)
        return log_joint(model, data, moved) + log_omega(model, data, moved, dense)

    rng = np.random.default_rng(5)
    points = [state.states + rng.standard_normal(state.states.shape) for _ in range(5)]
    conditional_ratio(joint, lambda x: log_density(posterior, x), points)
    silent = state.weights.copy()
    silent[:, -1] = 0.0  # the offset forgotten
    seen = active.potential(omega, design, silent, model.state_dim)
    broken = model.states_given(state, data, seen)
    rejects(conditional_ratio, joint, lambda x: log_density(broken, x), points)


def test_weights_given_omega(case, monkeypatch):
    model, data, state = case
    active, design, omega = augmented(model, data, state)
    asked = {}

    def remember(rng, squares, linear, precision, mean):
        asked.update(squares=squares, linear=linear, precision=precision, mean=mean)
        return mean

    monkeypatch.setattr(conjugate, "sample_rows", remember)
    sums = active.statistics(omega, design)
    model.sampler(data).draw_weights(np.random.default_rng(0), state, *sums)
    dense, n = dense_omega(active, omega), design.shape[1]
    lower = np.tril_indices(n)

    def joint(weights):
        moved = replace(state, weights=weights)
        return log_joint(model, data, moved) + log_omega(model, data, moved, dense)

    def conditional(weights):
        total = 0.0
        for k, w in enumerate(weights):
            S = np.zeros((n, n))
            S[lower] = asked["squares"][k]
            S = S + np.tril(S, -1).T + np.diag(asked["precision"][k])
            total += (asked["linear"][k] + asked["precision"][k] * asked["mean"][k]) @ w
            total -= 0.5 * w @ S @ w
        return total

    rng = np.random.default_rng(6)
    shape = state.weights.shape
    conditional_ratio(joint, conditional, [rng.standard_normal(shape) for _ in range(5)])


def sums_of(model, data, state):
    """The moments of the states that all else is drawn from."""
    u = model.entering(data, "dynamics")
    return (
        transition_sums(state.states, data.offsets, u, state.dynamics),
        first_sums(state.states, data.offsets, state.initial_mean),
    )


def test_level_of_all_states(case):
    model, data, state = case
    start, (later, _) = model.gaussian_prior, sums_of(model, data, state)
    precision, linear = model.sampler(data).level_potential(state, later)

    def joint(delta):
        mean, weights = state.initial_mean + delta, state.weights.copy()
        weights[:, -1] -= state.loadings @ delta
        moved = replace(state, states=state.states + delta, weights=weights, initial_mean=mean)
        total = log_joint(model, data, moved)
        prior = MvNormal(start.mean, state.initial_cov / start.strength)
        return total + float(prior.log_density(mean))

    rng = np.random.default_rng(7)
    conditional_ratio(
        joint, lambda d: linear @ d - 0.5 * d @ precision @ d,
        [rng.standard_normal(model.state_dim) for _ in range(5)],
    )  # fmt: skip
    draws = np.array([lds_moves.sample_level(rng, precision, linear) for _ in range(4000)])
    cov = np.linalg.inv(precision)
    z = (draws.mean(axis=0) - cov @ linear) / np.sqrt(np.diag(cov) / 4000)
    assert np.abs(z).max() < 4.5
    np.testing.assert_allclose(np.cov(draws.T), cov, atol=0.15 * np.abs(cov).max())


def test_translation_leaves_probabilities_alone(case):
    model, data, state = case
    later, _ = sums_of(model, data, state)
    moved, delta = model.sampler(data).move_level(np.random.default_rng(0), state, later)
    assert np.abs(delta).max() > 1e-3
    there, _, _ = model.sampler(data).local_move(
        None, state, None, delta, np.ones(model.state_dim), state.weights
    )
    np.testing.assert_allclose(
        model.design(there.states, data) @ moved.weights.T,
        model.design(state.states, data) @ state.weights.T,
        atol=1e-10,
    )


def test_scales_of_the_states(case):
    model, data, state = case
    D, n = model.state_dim, data.num_symbols - 1
    driving = model.entering(data, "dynamics").shape[1]
    prior, moves = model.dynamics_prior(data), model.sampler(data)

    def joint(a):
        factors = np.exp(a)
        moved = lds_moves.rescaled(state, factors)
        moved, _, _ = moves.local_move(None, moved, None, np.zeros(D), factors, moved.weights)
        np.testing.assert_allclose(model.probs(moved, data), model.probs(state, data))
        total = log_joint(model, data, moved)
        coefficients = np.c_[moved.transition, moved.input_weights[:, :driving]].T
        total += prior.log_density(coefficients, moved.noise_cov)
        total += scipy.stats.invgamma.logpdf(
            moved.loading_var, model.loading_shape, scale=model.loading_scale
        ).sum()
        # log Jacobian: states, loadings, loading_var, input weights, noise_cov
        power = data.num_steps - n - 2 + driving + (D + 1)
        total += model.gaussian_prior.log_density(moved.initial_mean, moved.initial_cov)
        power += 1 + (D + 1)
        return total + power * a.sum()

    rng = np.random.default_rng(8)
    points = [0.5 * rng.standard_normal(D) for _ in range(5)]
    density = moves.scale_density(state)
    conditional_ratio(joint, lambda a: scale_log_density(a, density), points)


def test_log_likelihood_and_probs_agree(case):
    model, data, state = case
    probs = model.probs(state, data)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    expected = (data.to_csr().toarray() * np.log(probs)).sum()
    np.testing.assert_allclose(model.log_likelihood(state, data), expected, rtol=1e-10)
    last = data.offsets[1:] - 1
    np.testing.assert_allclose(model.last_probs(state, data), probs[last])
    np.testing.assert_array_equal(model.last_states(state, data), state.states[last])
    np.testing.assert_allclose(model.mean_probs(state, data), probs.mean(axis=0))


SHORT = as_sequences(
    [np.random.default_rng(s).multinomial(2, [0.4, 0.3, 0.2, 0.1], 1 + s % 4) for s in range(14)],
    inputs=np.random.default_rng(0).standard_normal((sum(1 + s % 4 for s in range(14)), 2)),
)  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"inputs": "emissions"}], ids=["both", "emissions"])
def test_shards_do_not_matter(options):
    check_shards_do_not_matter(MultinomialLDS(2, block_rows=2, **options), SHORT)


def test_any_basis_of_the_state_has_the_same_invariants():
    model, data = MODELS["symbols"]
    state = model.prior(np.random.default_rng(0), data)
    basis = np.array([[2.0, 1.0], [0.0, -3.0]])
    inverse = np.linalg.inv(basis)
    turned = replace(
        state, dynamics=basis @ state.transition @ inverse,
        noise_cov=basis @ state.noise_cov @ basis.T,
        weights=np.c_[state.loadings @ inverse, state.offset],
    )  # fmt: skip
    for name in ("eigenvalue_moduli", "amplitudes", "lagged_amplitudes"):
        np.testing.assert_allclose(getattr(turned, name), getattr(state, name), rtol=1e-6)
    seen = state.loadings @ state.noise_cov @ state.loadings.T
    lagged = state.loadings @ state.transition @ state.noise_cov @ state.loadings.T
    for name, matrix in (("amplitudes", seen), ("lagged_amplitudes", lagged)):
        np.testing.assert_allclose(
            getattr(state, name) ** 2,
            np.linalg.svd(matrix, compute_uv=False)[:2], rtol=1e-6,
        )  # fmt: skip


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_the_driver_takes_what_users_have():
    posterior = pgmult.sample(
        MultinomialLDS(2), ["ABBA", "BAB"], draws=4, tune=1, chains=1, random_seed=0,
        progressbar=False,
    )  # fmt: skip
    assert posterior["last_probs"].shape == (1, 4, 2, 2)
    assert posterior.coords["symbol"].tolist() == ["A", "B"]
    assert posterior.coords["stick"].tolist() == ["B"]


def test_a_nearly_singular_noise_leaves_the_states_to_the_square_root_filter(case):
    model, data, state = case
    thin = np.ones((model.state_dim,) * 2) + 1e-13 * np.eye(model.state_dim)
    moved = model.step(np.random.default_rng(0), replace(state, noise_cov=thin), data)
    assert np.isfinite(moved.states).all()


def test_more_coordinates_than_symbols_and_one_step():
    for data in (as_sequences([[1]], num_symbols=2), as_sequences([[0, -1], [1, -1]])):
        model, rng = MultinomialLDS(4), np.random.default_rng(0)
        state = model.step(rng, model.init(rng, data), data)
        assert all(
            np.isfinite(getattr(state, field.name)).all() for field in dataclasses.fields(state)
        )


@pytest.mark.slow
def test_a_symbol_that_no_one_saw_keeps_its_prior():
    data = as_sequences([[0, 1, 0, 0]], num_symbols=40)
    model, rng = MultinomialLDS(1), np.random.default_rng(0)
    state, offsets = model.init(rng, data), []
    for _ in range(2000):
        state = model.step(rng, state, data)
        offsets.append(state.offset[20:])
    mean, var = model.offset_moments(data)
    # J = h = 0 there, but the level of the states moves offsets with the loadings
    np.testing.assert_allclose(np.mean(offsets, axis=0), mean[20:], atol=0.15)
    np.testing.assert_allclose(np.var(offsets, axis=0), var[20:], rtol=0.2)


def test_spectral_states_find_what_drives_the_symbols():
    rng = np.random.default_rng(0)
    truth = np.zeros((2, 1000))
    for t in range(1, 1000):
        truth[:, t] = 0.97 * truth[:, t - 1] + 0.25 * rng.standard_normal(2)
    logits = truth.T @ np.array([[2.0, -2.0, 0.0, 0.0], [0.0, 0.0, 2.0, -2.0]])
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    symbols = (probs.cumsum(axis=1) < rng.random((1000, 1))).sum(axis=1)
    data = as_sequences([symbols[:600], symbols[600:]])
    states = spectral_states(rng, data, 2)
    fitted = np.linalg.lstsq(np.c_[states, np.ones(1000)], truth.T, rcond=None)[0]
    residual = truth.T - np.c_[states, np.ones(1000)] @ fitted
    assert (residual.var(axis=0) < 0.6 * truth.var(axis=1)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concentration": 0.0}, "concentration must be at least 0.1"),
        (
            {"dynamics": MatrixNormalInverseWishart(np.eye(3), np.eye(3), 5.0, np.eye(3))},
            "dynamics must be of 2 dimensions, got 3",
        ),
        ({"start": NormalInverseWishart.weak(np.zeros(3))}, "start must have 2 dimensions"),
    ],
)
def test_bad_hyperparameters(options, message):
    with pytest.raises(ValueError, match=message):
        MultinomialLDS(**{"state_dim": 2} | options)


def test_dynamics_must_have_a_row_for_every_input():
    prior = MatrixNormalInverseWishart(np.zeros((2, 2)), np.eye(2), 5.0, np.eye(2))
    with pytest.raises(ValueError, match="2 states and 2 inputs, got 2"):
        MultinomialLDS(2, dynamics=prior).as_data(COUNTS)
    MultinomialLDS(2, dynamics=prior, inputs="emissions").as_data(COUNTS)


# ------------------------------------------------------------------ effects of individuals


def of_animals(formula, *names):
    who = np.repeat(names or ["a", "b"], 3)
    table = {
        "animal": who, "x": np.linspace(-1.0, 1.0, len(who)), "does": list("ABABBA")[: len(who)],
    }  # fmt: skip
    return pgmult.read(table).sequences("does", sequence="animal", inputs=formula)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:probabilities are simulated")  # from four draws
def test_inputs_have_a_column_for_each_effect():
    model = MultinomialLDS(1, inputs="emissions")
    data = model.as_data(of_animals("~ x + (1 | animal)"))
    assert data.num_effects == 2
    np.testing.assert_array_equal(data.inputs[:, 1:], np.kron(np.eye(2), np.ones((3, 1))))
    assert model.as_data(data) is data
    assert model.coords(data)["input"].tolist() == ["x", "1 | animal[a]", "1 | animal[b]"]
    with pytest.warns(ConvergenceWarning):
        run = pgmult.sample(
            model, data, draws=4, tune=0, chains=1, random_seed=0, progressbar=False
        )
    assert run["sds"].shape == (1, 4, 1, 1)
    one = {"animal": ["a", "b"], "x": [0.0, 0.0]}
    assert run.forecast(1, inputs=one).mean.shape == (2, 1, 2)
    zoe = of_animals(run.data.design, "zoe")
    assert run.forecast(2, zoe, inputs={"animal": ["zoe"] * 2, "x": [0.0, 1.0]}).mean.shape == (
        1, 2, 2,
    )  # fmt: skip
    assert run.predict(zoe).mean.shape == (3, 2)
    assert np.isfinite(pgmult.sequences.one_step_ahead(run, zoe).by_unit).all()


@pytest.mark.slow
def test_effects_of_an_input_keep_the_noise_of_states():
    """Beside paths that are driven again, from first states on."""
    model = MultinomialLDS(2)
    data = model.as_data(of_animals("~ x + (1 | animal)"))
    with pytest.warns(ConvergenceWarning):
        run = pgmult.sample(
            model, data, draws=3, tune=0, chains=1, random_seed=0, progressbar=False,
            keep=[*model.default_keep, "states"],
        )  # fmt: skip
    found = run.effects("x", [0.5, -2.0], by="animal")
    other = np.column_stack([np.full(6, -2.0) / data.design.scale[1], data.inputs[:, 1:]])
    for d in range(3):
        A, B, x = (run[name][0, d] for name in ("transition", "input_weights", "states"))
        new = x.copy()
        for t in (1, 2, 4, 5):
            noise = x[t] - A @ x[t - 1] - B @ data.inputs[t]
            new[t] = A @ new[t - 1] + B @ other[t] + noise
        psi = new @ run["loadings"][0, d].T + run["offset"][0, d]
        probs = run.link.probs(psi + other @ run["emission_weights"][0, d].T)
        np.testing.assert_allclose(found.draws[d, 1], probs.reshape(2, 3, 2).mean(axis=1))
    assert "On average" in run.report(comparison=False, steps=1).text()


@pytest.mark.slow
@pytest.mark.parametrize("inputs", ["emissions", "dynamics", "both"])
def test_effects_of_new_levels_are_drawn_from_the_law_of_the_levels(inputs):
    model = MultinomialLDS(2, inputs=inputs)
    data = model.as_data(of_animals("~ x + (1 + x | animal)"))
    many = {"animal": np.char.add("z", np.arange(4000).astype(str)), "x": np.zeros(4000)}
    new = data.with_design(data.design.like(many, new_levels=True), effects=True)
    assert new.num_inputs == 5 + 8000
    state = model.prior(np.random.default_rng(0), data)
    names = (*model.predictive_variables, "hyperparameters")
    kept = {name: getattr(state, name) for name in names}
    draw = model.at_levels(kept, new)
    for name in ("emission_weights", "input_weights"):
        np.testing.assert_array_equal(draw[name][:, :5], kept[name])
    sds, effects = np.exp(log_sd(state.hyperparameters)), draw["emission_weights"][:, 5:]
    if inputs != "dynamics":
        found = effects.reshape(-1, 4000, 2).std(axis=1)
        np.testing.assert_allclose(found, sds[: len(effects)], rtol=0.05)
    if inputs != "emissions":
        own = draw["input_weights"][:, 5:].reshape(2, 4000, 2)
        for i in range(2):
            np.testing.assert_allclose(
                np.cov(own[:, :, i]), state.noise_cov * sds[-1, i] ** 2, rtol=0.1, atol=0.02
            )


def test_terms_that_linear_dynamics_do_not_take():
    with pytest.raises(ValueError, match="LKJ is of correlations"):
        MultinomialLDS(1, priors={"(1 + x | animal)": LKJ()}).as_data(
            of_animals("~ x + (1 + x | animal)")
        )
    with pytest.raises(ValueError, match=r"whose effects are independent, got rw"):
        MultinomialLDS(1).as_data(of_animals("~ x + rw(x)"))
    with pytest.raises(ValueError, match="got one of fixed"):
        MultinomialLDS(1, priors={"fixed": Normal(0.0, 1.0)}).as_data(
            of_animals("~ x + (1 | animal)")
        )
