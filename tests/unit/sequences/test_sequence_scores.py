"""Scores of sequences: pooling of draws, pairing, blocks, continuation and the legacy number."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

import pgmult
from pgmult import StickBreaking
from pgmult.sequences import MultinomialHMM, MultinomialLDS, as_sequences
from pgmult.sequences.models.gaussian_lds import GaussianLDS
from pgmult.sequences.scores.legacy import legacy_score
from pgmult.sequences.scores.ngrams import bigram, unigram
from pgmult.sequences.scores.one_step import (
    SequenceScore,
    _blocks,
    blend,
    joined,
    mix_draws,
    one_step_ahead,
)
from pgmult.sequences.scores.particle_filter import StateSpaceDraw, particle_log_predictive

K = 3
TRAIN = as_sequences([[0, 1, -1, 2], [1, 1]], num_symbols=K)
TEST = as_sequences([[2, 0, -1], [0, 2, 2, 1]], num_symbols=K)

# ------------------------------------------------------------------ pooling draws


def test_the_mixture_is_of_whole_sequences():
    rng = np.random.default_rng(0)
    by_draw = np.log(rng.uniform(0.1, 1.0, size=(5, 7)))
    offsets = np.array([0, 3, 7])
    mixed = mix_draws(by_draw, offsets)
    for first, last in ((0, 3), (3, 7)):
        whole = np.log(np.mean(np.exp(by_draw[:, first:last].sum(axis=1))))
        assert mixed[first:last].sum() == pytest.approx(whole, rel=1e-12)
        assert mixed[first] == pytest.approx(np.log(np.exp(by_draw[:, first]).mean()))
    average = mix_draws(by_draw, offsets, "average")
    np.testing.assert_allclose(average, np.log(np.exp(by_draw).mean(axis=0)))
    assert not np.allclose(average, mixed)
    with pytest.raises(ValueError, match='must be "mixture" or "average"'):
        mix_draws(by_draw, offsets, "best")


def test_the_mixture_is_a_distribution_of_the_next_symbol():
    rng = np.random.default_rng(1)
    past = np.log(rng.uniform(size=(4, 6)))
    tables = np.log(rng.dirichlet(np.ones(K), size=4))
    last = [
        mix_draws(np.column_stack([past, tables[:, k]]), np.array([0, 7]))[-1] for k in range(K)
    ]
    assert np.exp(last).sum() == pytest.approx(1.0)


def test_a_draw_that_rules_out_a_step_loses_its_weight():
    with np.errstate(divide="ignore"):
        by_draw = np.log([[0.5, 0.0, 0.9], [0.2, 0.4, 0.3]])
    mixed = mix_draws(by_draw, np.array([0, 3]))
    np.testing.assert_allclose(mixed, np.log([0.35, 0.08 / 0.7, 0.3]))
    nobody = np.array([[0.0, -np.inf, -1.0], [0.0, -np.inf, -2.0]])
    mixed = mix_draws(nobody, np.array([0, 3]))
    expected = [0.0, -np.inf, logsumexp([-1.0, -2.0]) - np.log(2.0)]
    np.testing.assert_allclose(mixed, expected)


# ------------------------------------------------------------------ scores


def test_blocks_are_segments_of_one_sequence():
    sequence = np.repeat([0, 2, 3], [100, 2, 300])
    blocks = _blocks(sequence)
    assert (np.diff(blocks) >= 0).all()
    assert set(np.diff(blocks)) == {0, 1}
    assert len(set(zip(sequence.tolist(), blocks.tolist(), strict=True))) == blocks[-1] + 1
    sizes = np.bincount(blocks)
    assert sizes.tolist()[:6] == [17, 17, 16, 17, 17, 16]
    assert sizes[6] == 2
    assert len(sizes) == 6 + 1 + 19
    assert _blocks(np.arange(40)).tolist() == list(range(40))  # many sequences: whole ones


def test_missing_steps_are_left_out_and_counts_weigh():
    test = as_sequences([np.array([[1, 0, 0], [0, 0, 0], [0, 3, 0]])])
    score = SequenceScore.of_steps("mine", np.array([-1.0, 0.0, -5.0]), test)
    np.testing.assert_array_equal(score.log_predictive, [-1.0, -5.0])
    assert score.totals.tolist() == [1, 3]
    assert score.mean == -1.5
    assert "-1.5000" in str(score)


def simulated_scores(correlation, repeats=400, steps=1000):
    """Standard errors, and the true one, of differences with autocorrelation."""
    rng = np.random.default_rng(0)
    test = as_sequences([np.zeros(steps, dtype=int)], num_symbols=2)
    noise = rng.normal(size=(repeats, steps))
    for t in range(1, steps):
        noise[:, t] += correlation * noise[:, t - 1]
    zero = SequenceScore.of_steps("zero", np.zeros(steps), test)
    gains = [SequenceScore.of_steps("x", row, test).gain_over(zero) for row in noise]
    means, by_block, by_step = np.array(gains).T
    return means.std(), by_block.mean(), by_step.mean()


def test_standard_errors_by_blocks_see_autocorrelation():
    truth, by_block, by_step = simulated_scores(0.0)
    assert by_block == pytest.approx(truth, rel=0.12)
    assert by_step == pytest.approx(truth, rel=0.12)
    truth, by_block, by_step = simulated_scores(0.8)
    assert by_block == pytest.approx(truth, rel=0.2)
    assert by_step < 0.5 * truth


def test_gains_are_paired():
    train = as_sequences([np.tile([0, 1, 2], 20)], num_symbols=K)
    test = as_sequences([np.tile([0, 1, 2], 10)], num_symbols=K)
    gain = bigram(train, test).gain_over(unigram(train, test))
    assert gain.mean > 0.5
    assert gain.standard_error < 0.1
    assert str(gain).startswith("+")
    with pytest.raises(ValueError, match="of the same steps: unigram"):
        unigram(train, TEST).gain_over(unigram(train, test))


# ------------------------------------------------------------------ continuation


def test_joined_sequences():
    whole, tested = joined(TRAIN, TEST)
    assert whole.lengths.tolist() == [7, 6]
    expected = [[0, 1, 0, 2, 2, 0, 0], [1, 1, 0, 2, 2, 1]]
    dense = whole.to_csr().toarray()
    assert dense[:7].argmax(axis=1).tolist() == expected[0]
    assert dense[7:].argmax(axis=1).tolist() == expected[1]
    assert whole.totals.tolist() == [1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1]
    assert tested.tolist() == [4, 5, 6, 9, 10, 11, 12]
    np.testing.assert_array_equal(dense[tested], TEST.to_csr().toarray())


def test_joined_undoes_split():
    rng = np.random.default_rng(0)
    data = as_sequences(
        [rng.poisson(0.7, size=(n, K)) for n in (5, 3, 9)], inputs=rng.normal(size=(17, 2))
    )
    whole, _ = joined(*data.split([2, 1, 8]))
    for name in ("offsets", "indptr", "symbols", "counts", "inputs"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(data, name))


# ------------------------------------------------------------------ posteriors of models


def hmm_posterior(draws=6):
    rng = np.random.default_rng(2)
    return {
        "initial": rng.dirichlet(np.ones(2), size=(2, draws // 2)),
        "transition": rng.dirichlet(np.ones(2), size=(2, draws // 2, 2)),
        "emission": rng.dirichlet(np.ones(K), size=(2, draws // 2, 2)),
    }


def test_exact_forecasts_of_new_sequences_and_of_continuations():
    posterior, model = hmm_posterior(), MultinomialHMM(2)
    draws = [
        {name: array[c, i] for name, array in posterior.items()} for c in range(2) for i in range(3)
    ]
    new = one_step_ahead(posterior, model, TRAIN, TEST)
    by_draw = np.array([model.log_predictive(draw, TEST) for draw in draws])
    seen = TEST.totals > 0
    np.testing.assert_allclose(new.log_predictive, mix_draws(by_draw, TEST.offsets)[seen])
    assert new.num_draws == 6
    going_on = one_step_ahead(posterior, model, TRAIN, TEST, continues=True, pooling="average")
    whole, tested = joined(TRAIN, TEST)
    by_draw = np.array([model.log_predictive(draw, whole)[tested] for draw in draws])
    expected = mix_draws(by_draw, TEST.offsets, "average")[seen]
    np.testing.assert_allclose(going_on.log_predictive, expected)
    assert not np.allclose(going_on.log_predictive, new.log_predictive)
    assert one_step_ahead(posterior, model, TRAIN, TEST, max_draws=2).num_draws == 2


STATE_SPACE = SimpleNamespace(
    dims=dict.fromkeys(
        ("transition", "noise_cov", "initial_mean", "initial_cov", "loadings", "offset")
    )
)


def state_space_posterior(rows=K - 1, loadings=1.0):
    rng = np.random.default_rng(3)
    spread = np.broadcast_to(np.eye(1), (1, 4, 1, 1))
    return {
        "transition": 0.8 * spread, "noise_cov": 0.5 * spread,
        "initial_mean": np.zeros((1, 4, 1)), "initial_cov": spread,
        "loadings": loadings * rng.normal(size=(1, 4, rows, 1)),
        "offset": rng.normal(size=(1, 4, rows)),
        "last_states": rng.normal(size=(1, 4, 2, 1)),
    }  # fmt: skip


@pytest.mark.parametrize("continues", [False, True])
@pytest.mark.parametrize("rows", [K - 1, K])
def test_state_spaces_go_through_the_particle_filter(rows, continues):
    posterior = state_space_posterior(rows)
    got = one_step_ahead(
        posterior, STATE_SPACE, TRAIN, TEST, continues=continues, num_particles=50, random_seed=7
    )
    draws = []
    for i in range(4):
        draw = StateSpaceDraw(
            *(posterior[name][0, i] for name in STATE_SPACE.dims),
            link="softmax" if rows == K else "stick_breaking",
            order=None if rows == K else TRAIN.symbol_order,
        )
        draws.append(draw.continued(posterior["last_states"][0, i]) if continues else draw)
    by_draw = particle_log_predictive(np.random.default_rng(7), draws, TEST, 50)
    expected = mix_draws(by_draw, TEST.offsets)[TEST.totals > 0]
    np.testing.assert_allclose(got.log_predictive, expected)


def test_what_cannot_be_scored():
    posterior = hmm_posterior()
    del posterior["emission"]
    with pytest.raises(ValueError, match="posterior lacks emission: sample with keep="):
        one_step_ahead(posterior, MultinomialHMM(2), TRAIN, TEST)
    with pytest.raises(TypeError, match="nor is it a state space: it has no transition"):
        one_step_ahead(posterior, SimpleNamespace(dims={}), TRAIN, TEST)
    with pytest.raises(ValueError, match="2 training and 1 test"):
        one_step_ahead(hmm_posterior(), MultinomialHMM(2), TRAIN, TEST.take([0]), continues=True)
    with pytest.raises(ValueError, match="number their symbols alike"):
        unigram(as_sequences(["abc"]), as_sequences(["abd"]))
    with pytest.raises(ValueError, match="max_draws must be at least 1"):
        one_step_ahead(hmm_posterior(), MultinomialHMM(2), TRAIN, TEST, max_draws=0)


# ------------------------------------------------------------------ the legacy score


def legacy_baseline():
    """Every training symbol's share; here none is 0."""
    shares = np.bincount(TRAIN.symbols, minlength=K) / len(TRAIN.symbols)
    return np.log(shares)[TEST.symbols].sum()


def test_legacy_score_of_hidden_markov_models_is_joint():
    posterior, model = hmm_posterior(), MultinomialHMM(2)
    got = legacy_score(posterior, model, TRAIN, TEST)
    whole, tested = joined(TRAIN, TEST)
    totals = [
        model.log_predictive({k: v[c, i] for k, v in posterior.items()}, whole)[tested].sum()
        for c in range(2) for i in range(3)
    ]  # fmt: skip
    expected = logsumexp(totals) - np.log(6.0)
    assert got.log_probability == pytest.approx(expected)
    assert got.baseline == pytest.approx(legacy_baseline())
    assert got.score == pytest.approx((expected - legacy_baseline()) / 6)


def test_legacy_baseline_pays_for_unseen_symbols():
    train = as_sequences([[0, 0]], num_symbols=K)
    test = as_sequences([[0, 2]], num_symbols=K)
    posterior = {name: array[:, :, :1] if name == "last_states" else array
                 for name, array in state_space_posterior().items()}  # fmt: skip
    got = legacy_score(posterior, STATE_SPACE, train, test)
    assert got.baseline == pytest.approx(np.log(1e-8), rel=1e-6)


@pytest.mark.parametrize("rows", [K - 1, K])
def test_legacy_score_of_state_spaces_without_loadings(rows):
    posterior = state_space_posterior(rows, loadings=0.0)
    got = legacy_score(posterior, STATE_SPACE, TRAIN, TEST, num_simulations=3)
    sticks = StickBreaking(TRAIN.symbol_order)
    totals = [
        (log_softmax(offset) if rows == K else sticks.log_probs(offset))[TEST.symbols].sum()
        for offset in posterior["offset"][0]
    ]
    assert got.log_probability == pytest.approx(logsumexp(totals) - np.log(4.0))


def test_legacy_simulations_go_on_from_the_last_state():
    """One step ahead they estimate an integral over the next state."""
    posterior = state_space_posterior(rows=K)
    test = as_sequences([[2], [0]], num_symbols=K)
    got = legacy_score(posterior, STATE_SPACE, TRAIN, test, num_simulations=1000)
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    totals = []
    for i in range(4):
        joint = 0.0
        for last, symbol in zip(posterior["last_states"][0, i], (2, 0), strict=True):
            x = 0.8 * last + np.sqrt(0.5) * nodes
            psi = posterior["offset"][0, i] + x[:, None] * posterior["loadings"][0, i].T
            probs = np.exp(log_softmax(psi, axis=1))[:, symbol]
            joint += np.log(weights @ probs / weights.sum())
        totals.append(joint)
    assert got.log_probability == pytest.approx(logsumexp(totals) - np.log(4.0), abs=0.05)


def test_legacy_score_of_raw_vectors():
    rng = np.random.default_rng(4)
    posterior = {
        "transition": 0.5 * np.ones((1, 2, 1, 1)), "noise_cov": np.ones((1, 2, 1, 1)),
        "loadings": rng.normal(size=(1, 2, K, 1)), "offset": rng.normal(size=(1, 2, K)),
        "emission_var": np.ones((1, 2, K)),
    }  # fmt: skip
    got = legacy_score(posterior, GaussianLDS(1), TRAIN, TEST, num_simulations=200)
    assert "largest" in got.method
    assert -20.0 < got.log_probability < -3.0


# ------------------------------------------------------------------ blending


def score_of(log_predictive, sequence=None):
    log_predictive = np.asarray(log_predictive, dtype=np.float64)
    size = len(log_predictive)
    sequence = np.zeros(size, np.int64) if sequence is None else np.asarray(sequence)
    return SequenceScore("s", log_predictive, np.ones(size, np.int64), sequence)


def test_a_blend_integrates_its_weight_out_of_whole_sequences():
    rng = np.random.default_rng(2)
    p, q = rng.uniform(0.05, 1.0, size=(2, 7))
    sequence = np.repeat([0, 3], [4, 3])
    found = blend(score_of(np.log(p), sequence), score_of(np.log(q), sequence), num_weights=2000)
    nodes, weights = np.polynomial.legendre.leggauss(20)  # exact for polynomials of the weight
    u = 0.5 * (nodes + 1.0)[:, None]
    for first, last in ((0, 4), (4, 7)):
        steps = slice(first, last)
        for stop in range(first + 1, last + 1):
            along = slice(first, stop)
            whole = 0.5 * weights @ ((1.0 - u) * p[along] + u * q[along]).prod(axis=1)
            assert found.log_predictive[along].sum() == pytest.approx(np.log(whole), abs=1e-6)
        assert found.log_predictive[steps][0] == pytest.approx(np.log(0.5 * (p + q)[first]))


def test_a_blend_is_a_distribution_and_learns():
    rng = np.random.default_rng(3)
    past = np.log(rng.uniform(size=(2, 6)))
    tables = np.log(rng.dirichlet(np.ones(K), size=2))
    last = [
        blend(*(score_of([*x, table[k]]) for x, table in zip(past, tables, strict=True)))
        for k in range(K)
    ]
    assert sum(np.exp(score.log_predictive[-1]) for score in last) == pytest.approx(1.0)
    good, bad = score_of(np.full(500, -1.0)), score_of(np.full(500, -3.0))
    assert abs(blend(good, bad).log_predictive[-1] - -1.0) < 0.02
    assert abs(blend(bad, good).log_predictive[-1] - -1.0) < 0.02
    np.testing.assert_allclose(blend(good, good).log_predictive, good.log_predictive)
    with pytest.raises(ValueError, match="must be of the same steps"):
        blend(good, score_of([-1.0]))


def test_a_blend_with_what_is_impossible():
    never, sure = score_of([-np.inf, -0.1]), score_of([-0.1, -0.1])
    found = blend(never, sure, num_weights=1000)
    assert np.exp(found.log_predictive[0]) == pytest.approx(0.5 * np.exp(-0.1))
    assert found.log_predictive[1] == pytest.approx(-0.1)


# ------------------------------------------------------------------ orders of symbols


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_a_posterior_whose_sticks_break_in_another_order_is_refused():
    model = MultinomialLDS(1)
    posterior = pgmult.sample(
        model, TRAIN, draws=3, tune=1, chains=1, random_seed=0, progressbar=False
    )
    backwards = as_sequences(TRAIN, order=TRAIN.symbol_order[::-1].copy())
    with pytest.raises(ValueError, match="the sticks of the posterior break for"):
        one_step_ahead(posterior, model, backwards, TEST)
    one_step_ahead(posterior, model, TRAIN, as_sequences(TEST, order=[2, 1, 0]))  # TRAIN's counts
