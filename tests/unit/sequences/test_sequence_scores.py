"""Scores of sequences: averages of draws, missing steps, blocks and continuation."""

from typing import ClassVar

import numpy as np
import pytest

from pgmult import Posterior, StickBreaking
from pgmult.core.typing import coords_of
from pgmult.sampling import Origin
from pgmult.sequences import MultinomialHMM, MultinomialLDS, as_sequences
from pgmult.sequences.scores.one_step import blocks_of, by_draw, joined, one_step_ahead, scored
from pgmult.sequences.scores.particle_filter import particle_filter
from pgmult.sequences.scores.rivals import compare

K = 3
TRAIN = as_sequences([[0, 1, -1, 2], [1, 1]], num_symbols=K)
TEST = as_sequences([[2, 0, -1], [0, 2, 2, 1]], num_symbols=K)

# ------------------------------------------------------------------ scores


def test_blocks_are_segments_of_one_sequence():
    sequence = np.repeat([0, 2, 3], [100, 2, 300])
    blocks = blocks_of(sequence)
    assert (np.diff(blocks) >= 0).all()
    assert set(np.diff(blocks)) == {0, 1}
    assert len(set(zip(sequence.tolist(), blocks.tolist(), strict=True))) == blocks[-1] + 1
    sizes = np.bincount(blocks)
    assert sizes.tolist()[:6] == [17, 17, 16, 17, 17, 16]
    assert sizes[6] == 2
    assert len(sizes) == 6 + 1 + 19
    assert blocks_of(np.arange(40)).tolist() == list(range(40))  # many sequences: whole ones


def test_missing_steps_are_left_out_and_counts_weigh():
    test = as_sequences([np.array([[1, 0, 0], [0, 0, 0], [0, 3, 0]])])
    found = scored(np.array([[[-1.0, 0.0, -5.0]]]), test, left_out=False)
    np.testing.assert_array_equal(found.by_unit, [-1.0, -5.0])
    assert found.totals.tolist() == [1, 3]
    assert found.mean == -1.5


def simulated_scores(correlation, repeats=400, steps=1000):
    """Standard errors, and the true one, of differences with autocorrelation."""
    rng = np.random.default_rng(0)
    test = as_sequences([np.zeros(steps, dtype=int)], num_symbols=2)

    def score(log_p):
        return scored(log_p[None, None], test, left_out=False)

    noise = rng.normal(size=(repeats, steps))
    for t in range(1, steps):
        noise[:, t] += correlation * noise[:, t - 1]
    gains = [score(row).gain_over(score(np.zeros(steps))) for row in noise]
    means, by_block = np.array([(gain.mean, gain.error) for gain in gains]).T
    return means.std(), by_block.mean(), noise.std() / np.sqrt(steps)


def test_standard_errors_by_blocks_see_autocorrelation():
    truth, by_block, by_step = simulated_scores(0.0)
    assert by_block == pytest.approx(truth, rel=0.12)
    assert by_step == pytest.approx(truth, rel=0.12)
    truth, by_block, by_step = simulated_scores(0.8)
    assert by_block == pytest.approx(truth, rel=0.2)
    assert by_step < 0.5 * truth


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


def posterior_of(model, draws, data=TRAIN):
    return Posterior(
        draws, dims=model.dims, coords=coords_of(model, data), origin=Origin.of(model, data)
    )


def hmm_posterior(draws=6):
    rng = np.random.default_rng(2)
    return posterior_of(
        MultinomialHMM(2),
        {
            "initial": rng.dirichlet(np.ones(2), size=(2, draws // 2)),
            "transition": rng.dirichlet(np.ones(2), size=(2, draws // 2, 2)),
            "emission": rng.dirichlet(np.ones(K), size=(2, draws // 2, 2)),
        },
    )


def test_exact_forecasts_of_new_sequences_and_of_continuations():
    posterior, model = hmm_posterior(), MultinomialHMM(2)
    draws = [
        {name: array[c, i] for name, array in posterior.items()} for c in range(2) for i in range(3)
    ]
    new = one_step_ahead(posterior, TEST)
    each = np.array([model.log_predictive(draw, TEST) for draw in draws])
    seen = TEST.totals > 0
    np.testing.assert_allclose(new.by_unit, np.log(np.exp(each).mean(axis=0))[seen])
    going_on = one_step_ahead(posterior, TEST, after=TRAIN)
    whole, tested = joined(TRAIN, TEST)
    each = np.array([model.log_predictive(draw, whole)[tested] for draw in draws])
    expected = np.log(np.exp(each).mean(axis=0))[seen]
    np.testing.assert_allclose(going_on.by_unit, expected)
    assert not np.allclose(going_on.by_unit, new.by_unit)
    assert by_draw(posterior, TEST, None, 2, 0, 0).shape == (2, 1, TEST.num_steps)


@pytest.mark.slow
@pytest.mark.parametrize("continues", [False, True])
def test_state_spaces_go_through_the_particle_filter(continues):
    model, rows = MultinomialLDS(1), K - 1
    rng = np.random.default_rng(3)
    spread = np.broadcast_to(np.eye(1), (1, 4, 1, 1))
    posterior = posterior_of(
        model,
        {
            "transition": 0.8 * spread, "noise_cov": 0.5 * spread,
            "initial_mean": np.zeros((1, 4, 1)), "initial_cov": spread,
            "loadings": rng.normal(size=(1, 4, rows, 1)), "offset": rng.normal(size=(1, 4, rows)),
            "last_states": rng.normal(size=(1, 4, 2, 1)),
            "input_weights": np.zeros((1, 4, 1, 0)), "emission_weights": np.zeros((1, 4, rows, 0)),
            "noise_sd": np.zeros((1, 4, 0)),
        },
    )  # fmt: skip
    test = as_sequences(TEST, order=TEST.order[::-1])  # the posterior's order counts
    after = TRAIN if continues else None
    got = one_step_ahead(posterior, test, after=after, random_seed=7)
    draws = []
    for i in range(4):
        parameters = {name: posterior[name][0, i] for name in model.predictive_variables}
        draw = model.state_space(parameters, model.link(TRAIN))
        draws.append(draw.continued(posterior["last_states"][0, i]) if continues else draw)
    each = particle_filter(np.random.default_rng(7), draws, TEST, 200).log_predictive
    expected = np.log(np.exp(each).mean(axis=0))[TEST.totals > 0]
    np.testing.assert_allclose(got.by_unit, expected)


class Shares:
    """Somebody's own model: one probability of the first of two symbols."""

    dims: ClassVar = {"share": ()}
    predictive_variables = ("share",)

    def log_predictive(self, draw, data):
        return np.log(np.where(data.to_csr().toarray()[:, 0] > 0, draw["share"], 1 - draw["share"]))


def test_a_users_own_model_is_scored():
    data = as_sequences([[0, 1, 1]], num_symbols=2)
    posterior = posterior_of(Shares(), {"share": np.full((1, 3), 0.25)}, data)
    score = one_step_ahead(posterior, data)
    np.testing.assert_allclose(score.by_unit, np.log([0.25, 0.75, 0.75]))


def test_what_cannot_be_compared():
    posterior = hmm_posterior()
    with pytest.raises(TypeError, match="run must be a Posterior"):
        compare(dict(posterior), posterior, held_out=TEST)
    with pytest.raises(ValueError, match="other must know its model"):
        compare(posterior, Posterior(dict(posterior)), held_out=TEST)
    with pytest.raises(ValueError, match=r"held_out must continue the training .* 2 .* and 1 test"):
        compare(posterior, posterior, held_out=TEST.take([0]))
    with pytest.raises(TypeError, match="held_out must be"):
        compare(posterior, held_out="later")
    with pytest.raises(ValueError, match="names must be two"):
        compare(posterior, posterior, held_out=TEST, names=["a"])


def test_what_cannot_be_scored():
    posterior = hmm_posterior()
    draws = {name: posterior[name] for name in ("initial", "transition")}
    with pytest.raises(ValueError, match="run lacks emission: sample with keep="):
        one_step_ahead(posterior_of(MultinomialHMM(2), draws), TEST)
    field = StickBreakingGaussian()
    with pytest.raises(TypeError, match=r"with a state space, got StickBreakingGaussian"):
        one_step_ahead(Posterior(draws, origin=Origin.of(field, TRAIN)), TEST)
    with pytest.raises(ValueError, match="must know its model"):
        one_step_ahead(Posterior(draws), TEST)
    with pytest.raises(TypeError, match="must be a Posterior, got "):
        one_step_ahead(draws, TEST)
    with pytest.raises(ValueError, match="2 training and 1 test"):
        one_step_ahead(posterior, TEST.take([0]), after=TRAIN)
    with pytest.raises(ValueError, match="after must be the sequences that the run"):
        one_step_ahead(posterior, TEST, after=TEST)
    with pytest.raises(ValueError, match="posterior's 3 symbols, 0, 1, 2, got 4"):
        one_step_ahead(posterior, as_sequences([[3, 0]]))
    with pytest.raises(ValueError, match="max_draws must be at least 1"):
        one_step_ahead(posterior, TEST, max_draws=0)


class StickBreakingGaussian:
    """A model with a link, but neither predictions nor a state space."""

    def link(self, data):
        return StickBreaking()
