"""Hidden Markov models with inputs: answers about inputs, and of steps ahead."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from scipy.special import expit

import pgmult
from pgmult.latent.compiled.stacked import solve
from pgmult.latent.layout import joined
from pgmult.latent.terms import log_sd
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sequences import MixedHMM, MultinomialHMM, as_sequences
from pgmult.sequences.input_effects import long_run
from pgmult.sequences.models.hmm import log_predictive_of
from pgmult.sequences.models.mixed_hmm import SummedOut
from pgmult.sequences.updates.summed_out import OrderedSticks, started
from tests.every_model import MODELS


@pytest.fixture(scope="module")
def run():
    model, data = MODELS["MixedHMM"]()
    with pytest.warns(ConvergenceWarning):
        return pgmult.sample(
            model, data, draws=12, tune=3, chains=2, cores=1, random_seed=0, progressbar=False
        )


def test_likelihoods_are_those_of_each_step_with_its_own_transitions(run):
    """Beside a sum over steps in numpy, for inputs on transitions and on emissions."""
    model, data = run.model, run.data
    state = model.state_of({name: run[name][0, -1] for name in model.predictive_variables})
    transition, emission, which = model.probs(state, data.design, data.order)
    np.testing.assert_allclose(transition.sum(axis=2), 1.0)
    total = 0.0
    for s in range(data.num_sequences):
        law = state.initial
        for t in range(data.offsets[s], data.offsets[s + 1]):
            law = law if t == data.offsets[s] else law @ transition[which[t]]
            law = law * emission[which[t], :, data.symbols[t]]
            total, law = total + np.log(law.sum()), law / law.sum()
    assert model.log_likelihood(state, data) == pytest.approx(total, rel=1e-10)


def test_without_effects_it_is_a_plain_hidden_markov_model(run):
    model, data = run.model, run.data
    state = model.state_of({name: run[name][0, 0] for name in model.predictive_variables})
    flat = state.weights.copy()
    flat[:, 1:] = 0.0
    state = model.whole(state, flat, state.hyperparameters, state.tuning, data)
    plain = MultinomialHMM(2).log_likelihood(state, replace(data, inputs=None, design=None))
    assert model.log_likelihood(state, data) == pytest.approx(plain, rel=1e-10)


def test_long_run_shares_stay_as_they_are():
    transition = np.random.default_rng(0).dirichlet(np.ones(4), size=(3, 4))
    shares = long_run(transition)
    np.testing.assert_allclose(np.einsum("ci,cij->cj", shares, transition), shares, atol=1e-12)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_effects_of_inputs(run):
    found = run.effects("x", [-1.0, 1.0])
    assert found.axes == ("x", "symbol")
    np.testing.assert_allclose(found.mean.sum(axis=1), 1.0)
    by = run.effects("x", [0.0], by="who")
    assert by.axes == ("x", "who", "symbol")
    np.testing.assert_allclose(by.mean.sum(axis=2), 1.0)
    alone = run.effects("who", at={"x": 0.0})
    np.testing.assert_allclose(by.mean[0], alone.mean)
    assert run.effects("sequence").axes == ("sequence", "symbol")


def test_steps_ahead_take_their_inputs(run):
    who = np.unique(run.data.names)
    future = {"who": np.repeat(who, 3), "x": np.tile([0.0, 1.0, 5.0], len(who))}
    found, other = (run.forecast(3, inputs=future | {"x": x}) for x in (future["x"], -future["x"]))
    np.testing.assert_allclose(found.mean.sum(axis=2), 1.0)
    assert not np.allclose(found.mean, other.mean)
    np.testing.assert_allclose(found.mean[:, 0], other.mean[:, 0])
    with pytest.raises(ValueError, match=r"a table with 12 rows.*--future"):
        run.forecast(3)


def test_individuals_that_are_new_have_effects_of_their_own(run):
    new = pgmult.read(
        {"who": ["new"] * 4, "x": [0.0, 1.0, -1.0, 0.5], "does": list("abca")}
    ).sequences("does", sequence="who", inputs=run.data.design)
    with pytest.warns(UserWarning, match="simulated to within a standard error"):
        found = run.predict(new)
    assert found.mean.shape == (4, 3)
    assert np.isfinite(found.mean).all()


def test_columns_of_numbers_are_inputs_too():
    data = MixedHMM(2).as_data(as_sequences(["ABAB", "BAB"], inputs=np.arange(7.0)[:, None]))
    assert data.design.names.tolist() == ["Intercept", "x0"]
    with pytest.raises(ValueError, match="must have inputs"):
        MixedHMM(2).as_data(["ABAB"])


def test_a_report_tells_what_inputs_do(run):
    text = run.report(comparison=False, steps=2, max_draws=8).text()
    for told in ("In the long run", "What x does", "Hidden states"):
        assert told in text


def test_dirichlet_rows_as_sticks_are_logits_of_beta_variables():
    concentration = np.array([[0.3, 2.0, 1.1], [4.0, 0.7, 0.2]])
    sticks = OrderedSticks(np.array([[2, 0, 1], [0, 1, 2]]))
    taken, reached = sticks.tried(concentration[None])
    psi = np.random.default_rng(0).standard_normal((5, 2, 2))
    share = expit(psi)
    logit = np.log(share * (1.0 - share))
    a, b = np.array([[1.1, 0.3], [4.0, 0.7]]), np.array([[2.3, 2.0], [0.9, 0.2]])
    told = (scipy.stats.beta.logpdf(share, a, b) + logit).sum(axis=(1, 2))
    own = (taken * psi - reached * np.logaddexp(0.0, psi)).sum(axis=(1, 2))
    gaps = told - own
    np.testing.assert_allclose(gaps, gaps[0], rtol=1e-10)
    probs = sticks.probs(psi)
    np.testing.assert_allclose(sticks.psi(probs[1]), psi[1], rtol=1e-10)


def log_joint(model, data, state, at, parts):
    """Of what paths move, in their coordinates; from the model's laws and dense matrices."""
    first, moves, emits = (
        own.probs(psi) for own, psi in zip(at.sticks.values(), at.psi(parts), strict=True)
    )
    share = at.seen.share
    transition = moves[0] if len(moves) == 1 else np.einsum("c,cij->ij", share, moves)
    emission = emits[0] if len(emits) == 1 else np.einsum("c,cmk->mk", share, emits)
    w, x, total = state.weights.copy(), state.hyperparameters.copy(), 0.0
    for name, part, before in zip(at.sticks, parts, at.before, strict=True):
        if name not in at.seen.acting:
            taken, reached = at.sticks[name].tried(before)
            psi = part.weights.reshape(taken.shape)
            total += (taken * psi - reached * np.logaddexp(0.0, psi)).sum()
            continue
        terms = at.seen.acting[name]
        family, place = terms.family, terms.place
        w[place][:, terms.w] = part.weights
        x[place][:, terms.x[terms.is_sd]] = part.x
        for s in range(len(part.weights)):
            own = x[place][s, terms.x]
            each = zip(family.terms, family.hyperparameters, strict=True)
            precision = joined([term.precision(own[at]) for term, at in each]).toarray()
            total += family.log_prior(own) + 0.5 * np.linalg.slogdet(precision)[1]
            total += np.log(stretch(part, s)).sum()
            total -= 0.5 * part.weights[s] @ precision @ part.weights[s]
    moved = replace(
        state, initial=first[0, 0], transition=transition, emission=emission, weights=w,
        hyperparameters=x,
    )  # fmt: skip
    return total + model.log_likelihood(moved, data)


def stretch(part, s):
    """What a stick's coordinates are multiplied by to be weights."""
    sd = np.append(sd_at(part.x[s]) / part.scales.near[s], 1.0)[part.scales.of]
    told = part.scales.added[s]
    return sd * np.sqrt((1.0 + told) / (1.0 + told * sd**2))


def sd_at(x):
    return np.exp(log_sd(np.asarray(x)))


def kinetic(part):
    """Of velocities, by the dense inverse of the metric."""
    size, total = part.weights.shape[1], 0.0
    for s, velocity in enumerate(part.velocity):
        columns = np.empty((size, size))
        for j in range(size):
            solve(part.metric, s, np.eye(size)[j], columns[j])
        own = velocity[:size]
        total += 0.5 * own @ np.linalg.solve(columns, own)
        total += 0.5 * part.masses[s] @ velocity[size:] ** 2
    return total


@pytest.mark.parametrize("inputs", ["transitions", "emissions", "both"])
def test_paths_follow_the_posterior(run, inputs):
    """A path's account of its energy is that of the model, and a fine one keeps the energy."""
    data, rng = run.data, np.random.default_rng(1)
    model = replace(run.model, inputs=inputs, num_states=3)
    state = model.prior(rng, data)
    at = SummedOut(model, state, data)
    told = log_predictive_of(at.chains(at.psi(at.parts))).sum()
    assert told == pytest.approx(model.log_likelihood(state, data))
    moved = tuple(started(rng, part) for part in at.parts)
    begun = log_joint(model, data, state, at, moved)
    white = sum(0.5 * (part.velocity**2).sum() for part in moved)
    grown = at.leap(moved, 0.2, 3)
    ended = log_joint(model, data, state, at, moved) - sum(map(kinetic, moved))
    assert grown == pytest.approx(ended - begun + white, abs=1e-7)
    assert abs(grown) > 1e-5
    fine = [part._replace(velocity=rng.standard_normal(part.velocity.shape)) for part in moved]
    assert at.leap(tuple(fine), 2e-3, 30) == pytest.approx(0.0, abs=1e-3)
    assert max(np.abs(one.velocity).max() for one in fine) > 0.1


def test_chains_start_away_from_effects_of_zero():
    """Which standard deviations near 0, with correlations near 1, would keep there."""
    rng, people, steps = np.random.default_rng(0), 30, 20
    table = {
        "who": np.repeat(np.arange(people), steps), "x": rng.standard_normal(people * steps),
        "does": rng.choice(list("abc"), people * steps),
    }  # fmt: skip
    data = pgmult.read(table).sequences("does", sequence="who", inputs="~ x + (1 + x | who)")
    model = MixedHMM(2, inputs="both", start_tries=1, start_sweeps=3)
    state = model.init(np.random.default_rng(1), data)
    assert (model.sds(state, data) > 1e-3).any(axis=0).all()


def test_formulas_of_transitions_and_of_emissions():
    table = {
        "who": np.repeat(list("ab"), 12), "x": np.tile([0.0, 1.0, 2.0], 8),
        "z": np.tile([1.0, -1.0], 12), "does": np.tile(["s", "t", "s", "s"], 6),
    }  # fmt: skip
    data = pgmult.read(table).sequences("does", sequence="who", inputs="~ x + z + (1 | who)")
    model = MixedHMM(2, inputs={"transitions": "~ x", "emissions": "~ z + (1 | who)"})
    state = model.prior(np.random.default_rng(0), data)
    for _ in range(2):
        names = model.coords(data)["weight"].tolist()
        used = {name: state.weights[:, i] != 0.0 for i, name in enumerate(names)}
        np.testing.assert_array_equal(used["x"], [True, True, False, False])
        np.testing.assert_array_equal(used["z"], [False, False, True, True])
        np.testing.assert_array_equal(used[names[-1]], used["z"])
        np.testing.assert_array_equal(model.sds(state, data)[:, 0] > 1e-3, used["z"])
        state = model.step(np.random.default_rng(1), state, data)
    with pytest.raises(ValueError, match="'~ y' has y, which the data's formula"):
        MixedHMM(2, inputs={"transitions": "~ y"}).prior(np.random.default_rng(0), data)
    with pytest.raises(ValueError, match="must be one of transitions, emissions, got 'starts'"):
        MixedHMM(2, inputs={"starts": "~ x"})


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_sticks_of_new_sequences_break_in_the_order_of_the_run():
    """Which symbol is frequent among new ones does not change what their probabilities are."""

    def of(symbols):
        table = {"x": np.linspace(-1.0, 1.0, len(symbols)), "does": list(symbols)}
        return pgmult.read(table).sequences("does", inputs="~ x")

    run = pgmult.sample(
        MixedHMM(2, inputs="emissions", start_tries=1, start_sweeps=1), of("AAAABBABABAACAAB"),
        draws=4, tune=2, chains=1, random_seed=0, progressbar=False,
    )  # fmt: skip
    new = of("CCCCACCCCCCCCCCB")
    assert new.order[0] != run.data.order[0]
    found = run.predict(new, max_draws=1).mean
    draw = {name: run[name][0, 0] for name in run.model.predictive_variables}
    emission = run.model.probs(run.model.state_of(draw), run.data.design, run.data.order)[1]
    weights = run.model.state_probs(run.model.state_of(draw), replace(new, order=run.data.order))
    np.testing.assert_allclose(found, np.einsum("tm,tmk->tk", weights, emission), atol=1e-9)


def test_transitions_draw_by_draw(run):
    model, data = run.model, run.data
    draws = {name: run.stack(name) for name in model.predictive_variables}
    found = model.transition_probs(draws, data.design)
    assert found.shape == (24, data.num_steps, 2, 2)
    state = model.state_of({name: values[7] for name, values in draws.items()})
    transition, _, which = model.probs(state, data.design, data.order)
    np.testing.assert_array_equal(found[7], transition[which])
    with pytest.raises(ValueError, match="rows of these are needed"):
        model.transition_probs(draws)
    plain = MultinomialHMM(2)
    np.testing.assert_array_equal(plain.transition_probs(draws), draws["transition"])
    with pytest.raises(ValueError, match="takes no inputs"):
        plain.transition_probs(draws, data.design)
