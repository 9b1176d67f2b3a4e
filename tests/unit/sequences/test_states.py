"""States of hidden Markov models: matched, told, decoded."""

from itertools import product

import numpy as np
import pytest

import pgmult
from pgmult.core.typing import coords_of
from pgmult.sampling.origin import Origin
from pgmult.sampling.posterior import Posterior
from pgmult.sequences import MixedHMM, MultinomialHMM, as_sequences
from pgmult.sequences.states import states

EMISSION = np.array([[0.8, 0.15, 0.05], [0.05, 0.15, 0.8]])
MOVES = np.array([[0.95, 0.05], [0.1, 0.9]])


def simulated(length=400, seed=0):
    rng, z, symbols = np.random.default_rng(seed), 0, []
    for _ in range(length):
        z = rng.choice(2, p=MOVES[z])
        symbols.append(rng.choice(3, p=EMISSION[z]))
    return as_sequences([symbols], num_symbols=3)


def posterior_of(data, switched, lost=()):
    """The truth as draws, the states of some chains or draws switched."""
    chains, draws = switched.shape
    values = {"initial": np.array([0.5, 0.5]), "transition": MOVES, "emission": EMISSION}
    arrays = {name: np.tile(v, (chains, draws, *(1,) * v.ndim)) for name, v in values.items()}
    for c, d in product(range(chains), range(draws)):
        order = [1, 0] if switched[c, d] else [0, 1]
        if c in lost:
            arrays["emission"][c, d] = [[0.4, 0.3, 0.3], [0.3, 0.4, 0.3]]
        arrays["initial"][c, d] = arrays["initial"][c, d][order]
        arrays["emission"][c, d] = arrays["emission"][c, d][order]
        arrays["transition"][c, d] = arrays["transition"][c, d][np.ix_(order, order)]
    model = MultinomialHMM(2)
    stats = {"log_likelihood": np.where(np.isin(np.arange(chains), lost), -9.0, 0.0)[:, None]
             * np.ones((chains, draws))}  # fmt: skip
    return Posterior(
        arrays, dims=model.dims, coords=coords_of(model, data), sample_stats=stats,
        origin=Origin.of(model, data),
    )  # fmt: skip


def test_states_that_switch_within_chains_and_between_them_are_matched():
    data = simulated()
    found = states(posterior_of(data, np.random.default_rng(1).random((3, 8)) < 0.5))
    np.testing.assert_allclose(found.emissions.mean, EMISSION)
    np.testing.assert_allclose(found.transitions.mean, MOVES)
    np.testing.assert_allclose(found.durations.mean, [20.0, 10.0])
    assert found.shares.mean[0] > 0.5 > found.shares.mean[1]
    np.testing.assert_allclose(found.agreement, 1.0)
    assert "2 of 2 states were found by all 3 chains" in found.sentences[0]
    told = found.table().columns
    assert len(told["mean"]) == 2 * (2 + 3 + 2)
    assert "1" in repr(found)


def test_a_chain_with_other_states_is_told_and_left_out():
    data = simulated()
    found = states(posterior_of(data, np.zeros((3, 4), dtype=bool), lost=(1,)))
    assert found.used.tolist() == [True, False, True]
    np.testing.assert_allclose(found.emissions.mean, EMISSION)
    assert "1 of 3 chains have other states" in found.sentences[1]


def test_the_path_is_the_likeliest_of_all():
    data = as_sequences([[0, 2, -1, 2, 0, 0], [1, 2]], num_symbols=3)
    found = states(posterior_of(data, np.zeros((1, 2), dtype=bool)))
    order = np.array([0, 1]) if found.emissions.mean[0, 0] > 0.5 else np.array([1, 0])
    counts = data.to_csr().toarray()
    for first, last in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        scores = {}
        for path in product(range(2), repeat=int(last - first)):
            p = 0.5
            for t, z in enumerate(path):
                p *= (MOVES[path[t - 1], z] if t else 1.0) * np.prod(
                    EMISSION[z] ** counts[first + t]
                )
            scores[path] = p
        best = max(scores, key=scores.get)
        assert order[found.path[first:last]].tolist() == list(best)
        sums = np.zeros((last - first, 2))
        for path, p in scores.items():
            sums[np.arange(last - first), path] += p
        np.testing.assert_allclose(
            found.probs[first:last], (sums / sums.sum(axis=1, keepdims=True))[:, order], atol=1e-9
        )


def test_other_sequences_are_decoded():
    found = states(
        posterior_of(simulated(), np.zeros((2, 2), dtype=bool)),
        as_sequences([[0, 0, 0, 2, 2, 2]], num_symbols=3),
    )
    assert found.path.tolist() == [0, 0, 0, 1, 1, 1]
    assert list(found.steps().columns) == ["sequence", "step", "state", "p1", "p2"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_a_sampled_run_tells_the_truth():
    run = pgmult.sample(
        MultinomialHMM(2), simulated(1500), draws=100, tune=100, chains=3, random_seed=3,
        progressbar=False,
    )  # fmt: skip
    found = run.states()
    np.testing.assert_allclose(found.emissions.mean, EMISSION, atol=0.06)
    np.testing.assert_allclose(found.transitions.mean, MOVES, atol=0.05)
    assert (found.durations.lower < [20.0, 10.0]).all()
    assert (found.durations.upper > [20.0, 10.0]).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_states_with_inputs():
    data = simulated(200)
    data = as_sequences(data, inputs=np.random.default_rng(0).normal(size=(200, 1)))
    for acts in ("transitions", "both"):
        run = pgmult.sample(
            MixedHMM(2, inputs=acts), data, draws=20, tune=20, chains=2, random_seed=3,
            progressbar=False,
        )  # fmt: skip
        found = run.states()
        assert found.path.shape == (200,)
        np.testing.assert_allclose(found.probs.sum(axis=1), 1.0)
