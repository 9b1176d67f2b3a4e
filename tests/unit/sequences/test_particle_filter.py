"""Particle filters against sums over a grid, and their likelihood estimates against the truth."""

import numpy as np
import pytest
from oracle.grid_states import GridStates, make_data, make_draw
from scipy.special import logsumexp

from pgmult import StickBreaking
from pgmult.compiled.rows import row_threads
from pgmult.sequences.scores import particle_filter as module
from pgmult.sequences.scores.particle_filter import particle_filter
from pgmult.testing import rejects

pytestmark = pytest.mark.slow  # no other quick test compiles these kernels


def log_predictive(*given):
    return particle_filter(*given).log_predictive


# ------------------------------------------------------------------ agreement with the exact answer


def check_against_grid(draw, data, num_particles=20_000, runs=4):
    exact = GridStates(draw, data)
    rng = np.random.default_rng(5)
    ours = [log_predictive(rng, [draw], data, num_particles)[0] for _ in range(runs)]
    np.testing.assert_allclose(np.mean(ours, axis=0), exact.log_predictive, atol=0.012)


@pytest.mark.parametrize("total", [1, 60], ids=["symbols", "counts"])
def test_log_predictive_is_that_of_the_grid(total):
    check_against_grid(make_draw(), make_data(total))


def test_inputs_drive_states_and_emissions():
    data = make_data(2, inputs=2)
    check_against_grid(make_draw(inputs=2), data)
    check_against_grid(make_draw(inputs=2).continued(np.array([[1.0], [-0.5]])), data)


@pytest.mark.parametrize("total", [1, 60], ids=["symbols", "counts"])
def test_paths_are_draws_of_all_states_given_all_observations(total):
    draw, data = make_draw(inputs=1), make_data(total, inputs=1)
    exact = GridStates(draw, data)
    found = particle_filter(np.random.default_rng(5), 100 * [draw], data, 200, num_paths=40)
    x = found.paths[..., 0].reshape(-1, data.num_steps)
    np.testing.assert_allclose(x.mean(axis=0), exact.mean, atol=0.06)
    np.testing.assert_allclose(x.var(axis=0), exact.var, rtol=0.12, atol=0.01)
    inside = np.isfinite(exact.product)
    products = (x[:, :-1] * x[:, 1:]).mean(axis=0)
    np.testing.assert_allclose(products[inside[1:]], exact.product[inside], rtol=0.06, atol=0.2)


def test_last_states_have_the_filtered_law():
    draw, data = make_draw(), make_data()
    exact = GridStates(draw, data)
    found = particle_filter(np.random.default_rng(6), 50 * [draw], data, 200, num_last=40)
    last = data.offsets[1:] - 1
    x = found.last[..., 0].swapaxes(1, 2).reshape(-1, data.num_sequences)
    np.testing.assert_allclose(x.mean(axis=0), exact.mean[last], atol=0.06)
    np.testing.assert_allclose(x.var(axis=0), exact.var[last], rtol=0.1)


def test_what_is_found_of_a_sequence_depends_on_it_alone():
    draws, data = [make_draw(inputs=1), make_draw(inputs=1, seed=2)], make_data(inputs=1)
    log_p = log_predictive(np.random.default_rng(3), draws, data, 20)
    for chosen in ([1], [1, 0], [0, 0, 1], [1, 1]):
        part = data.take(chosen)
        one = log_predictive(np.random.default_rng(3), draws, part, 20)
        pieces = [log_p[:, data.offsets[q] : data.offsets[q + 1]] for q in chosen]
        np.testing.assert_array_equal(one, np.concatenate(pieces, axis=1))


def test_another_order_of_sticks():
    check_against_grid(make_draw(link=StickBreaking([2, 0, 3, 1])), make_data(2))


def test_sequences_start_from_places_of_their_own():
    check_against_grid(make_draw(initial_mean=np.array([[2.0], [-2.0]])), make_data())


def test_without_loadings_states_do_not_matter():
    draw = make_draw(depth=3, loadings=np.zeros((3, 3)))
    data = make_data()
    result = particle_filter(np.random.default_rng(7), [draw], data, 10)
    exact = GridStates(make_draw(loadings=np.zeros((3, 1)), offset=draw.offset), data)
    np.testing.assert_allclose(result.log_predictive[0], exact.log_predictive, atol=1e-6)


def test_states_without_noise_are_one_draw_of_the_first():
    """Noise near zero makes nothing singular, and many counts do not lose all particles."""
    draw = make_draw(transition=np.eye(1), noise_cov=1e-12 * np.eye(1))
    data = make_data(60)
    x = np.linspace(-8.0, 8.0, 4001)
    log_p = draw.link.log_probs(draw.offset + x[:, None] * draw.loadings[:, 0])
    prior = -0.5 * ((x - 0.3) ** 2 / 1.5 + np.log(2.0 * np.pi * 1.5)) + np.log(x[1] - x[0])
    counts = data.to_csr().toarray()
    exact = [logsumexp(prior + log_p @ part.sum(axis=0)) for part in (counts[:6], counts[6:])]
    result = particle_filter(np.random.default_rng(8), [draw], data, 20_000)
    totals = np.add.reduceat(result.log_predictive[0], data.offsets[:-1])
    np.testing.assert_allclose(totals, exact, atol=0.15)


# ------------------------------------------------------------------ unbiased likelihoods


def check_unbiased(draw, data, exact=None, num_particles=8, draws=4000):
    """The mean of estimated likelihoods over exact ones is 1."""
    exact = GridStates(draw, data).log_predictive.sum() if exact is None else exact
    log_p = log_predictive(np.random.default_rng(9), draws * [draw], data, num_particles)
    ratio = np.exp(log_p.sum(axis=1) - exact)
    score = (ratio.mean() - 1.0) / (ratio.std() / np.sqrt(draws))
    assert abs(score) < 4.0, score


@pytest.mark.parametrize("total", [1, 60], ids=["symbols", "counts"])
def test_likelihoods_are_unbiased(total):
    check_unbiased(make_draw(), make_data(total))


@pytest.mark.parametrize(
    "changes",
    [
        {"offset": np.zeros(3)},
        {"initial_mean": np.zeros(1)},
        {"noise_cov": 0.9 * np.eye(1)},
        {"transition": 0.6 * np.eye(1)},
        {"link": StickBreaking([0, 1, 3, 2])},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_filters_of_another_model_are_refused(changes):
    data = make_data(4)
    exact = GridStates(make_draw(), data).log_predictive.sum()
    rejects(check_unbiased, make_draw(**changes), data, exact, num_particles=50)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_any_share_of_blind_particles_will_do(share, monkeypatch):
    monkeypatch.setattr(module, "_BLIND_SHARE", share)
    check_unbiased(make_draw(), make_data(4))


# ------------------------------------------------------------------ the rest of the contract


def test_threads_do_not_matter():
    draws = [make_draw(depth=2, seed=seed) for seed in range(3)]
    results = []
    for threads in (1, 3):
        with row_threads(threads):
            rng = np.random.default_rng(11)
            results.append(particle_filter(rng, draws, make_data(), 20, num_last=2, num_paths=3))
    for name in ("log_predictive", "last", "paths"):
        np.testing.assert_array_equal(getattr(results[0], name), getattr(results[1], name))


def test_draws_do_not_disturb_each_other():
    """Draw s has streams of its own, whatever the other draws are."""
    one, other = make_draw(seed=0), make_draw(seed=1)
    data = make_data()
    first = log_predictive(np.random.default_rng(12), [one, one], data, 20)
    second = log_predictive(np.random.default_rng(12), [one, other], data, 20)
    np.testing.assert_array_equal(first[0], second[0])
    assert (first[1] != second[1]).any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offset": np.zeros(4), "loadings": np.zeros((4, 1))}, "are of 5 symbols, the data of 4"),
        ({"loadings": np.zeros((3, 2))}, r"loadings must have shape \(3, 1\), got \(3, 2\)"),
        ({"noise_cov": -np.eye(1)}, "noise_cov must be positive definite"),
        ({"transition": np.array([[np.nan]])}, "transition must be finite"),
        ({"initial_mean": np.array([np.inf])}, "initial_mean must be finite"),
        ({"input_weights": np.zeros((1, 2))}, "do the data lack inputs"),
    ],
)
def test_bad_draws(changes, message):
    with pytest.raises(ValueError, match=message):
        particle_filter(np.random.default_rng(13), [make_draw(**changes)], make_data(), 10)


def test_bad_arguments():
    rng, draw, data = np.random.default_rng(14), make_draw(), make_data()
    with pytest.raises(ValueError, match="num_particles must be at least 2"):
        particle_filter(rng, [draw], data, 1)
    exploding = make_draw(transition=np.array([[1e300]]))
    with pytest.raises(FloatingPointError, match="eigenvalue"):
        particle_filter(rng, [exploding], data, 10)
