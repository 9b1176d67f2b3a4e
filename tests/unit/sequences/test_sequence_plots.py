"""Latent axes of sequences, and figures that show what they are given."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult.sequences import as_sequences, latent_axes, plots
from pgmult.sequences.forecasts import Forecast, StepProbs

NAMES = ["rain", "snow", "sun", "wind"]
LEVELS = np.array([0.05, 0.5, 0.95])


def softmax(psi):
    p = np.exp(psi - psi.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def moving():
    """Two states; every draw holds them in a basis of its own, 0.1 away from each other."""
    rng = np.random.default_rng(0)
    t = np.arange(60.0)
    x = np.column_stack([np.sin(0.2 * t), np.cos(0.37 * t)])
    loadings = np.array([[2.0, 0.0], [-1.0, 0.3], [0.0, 0.8], [0.5, -1.0]])
    mean = softmax(x @ loadings.T)
    spread = np.exp(np.array([-0.4, 0.0, 0.4]))[:, None, None]
    states = []
    for _ in range(8):
        basis = rng.normal(size=(2, 2)) + 2.0 * np.eye(2)
        states.append((x + 0.1 * rng.normal(size=x.shape)) @ basis + rng.normal(size=2))
    data = as_sequences(
        [[NAMES[rng.choice(4, p=p)] for p in part] for part in (mean[:40], mean[40:])],
        alphabet=NAMES,
    )
    return StepProbs(mean, mean * spread, LEVELS, np.array(states), data), data


def test_axes_are_weighted_principal_axes_of_log_probabilities(moving):
    probs, _ = moving
    found = latent_axes(probs, 2)
    w = probs.mean.mean(axis=0)
    np.testing.assert_allclose(found.weights, w)
    np.testing.assert_allclose(found.scores.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(found.scores.T @ found.scores / 60, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(found.effects @ w, 0.0, atol=1e-12)
    logs = np.log(probs.mean)
    logs = logs - logs.mean(axis=0)
    logs = logs - (logs @ w)[:, None]
    np.testing.assert_allclose(found.scores @ found.effects, logs, atol=1e-10)
    assert found.shares.sum() == pytest.approx(1.0)
    assert found.shares[0] > found.shares[1]
    gram = (found.effects * w) @ found.effects.T  # shares are of weighted variance
    np.testing.assert_allclose(gram[0, 0] / gram[1, 1], found.shares[0] / found.shares[1])
    np.testing.assert_allclose(gram[0, 1], 0.0, atol=1e-12)


def test_bands_see_through_the_bases_of_draws(moving):
    probs, _ = moving
    found = latent_axes(probs, 2)
    width = found.upper - found.lower
    assert (width > 0.0).all()
    assert 0.05 < width.mean() < 0.6  # states are 0.1 apart, of variance 0.5
    assert np.abs(0.5 * (found.lower + found.upper) - found.scores).max() < 0.4
    bases = [np.array([[0.0, -3.0], [0.5, 1.0]]), np.eye(2)]
    turned = [states @ bases[i % 2] + i for i, states in enumerate(probs.state_mean)]
    again = latent_axes(replace(probs, state_mean=np.array(turned)), 2)
    np.testing.assert_allclose(again.lower, found.lower, atol=1e-9)
    np.testing.assert_allclose(again.upper, found.upper, atol=1e-9)


def test_axes_that_cannot_be(moving):
    probs, _ = moving
    with pytest.raises(ValueError, match="at most the 2 dimensions"):
        latent_axes(probs, 3)
    with pytest.raises(ValueError, match=r"probability must be between 0 and 1, got 1\.5"):
        latent_axes(probs, 1, probability=1.5)
    still = StepProbs(
        np.full((5, 3), 1 / 3),
        np.full((3, 5, 3), 1 / 3),
        LEVELS,
        np.zeros((2, 5, 2)),
        probs.sequences,
    )
    with pytest.raises(ValueError, match="do not move in 1 directions"):
        latent_axes(still, 1)


def lines(axes):
    """Data of the labelled lines, by label."""
    return {
        line.get_label(): np.asarray(line.get_ydata())
        for line in axes.lines
        if not line.get_label().startswith("_")
    }


def heights(collection):
    """Lowest and highest corner of a band."""
    y = collection.get_paths()[0].vertices[:, 1]
    return y.min(), y.max()


def test_probabilities_with_bands_and_what_was_observed(moving):
    probs, data = moving
    axes = plots.symbol_probs(probs, data, sequence=1, symbols=["snow", 0])
    found = lines(axes)
    assert list(found) == ["snow", "rain"]
    np.testing.assert_array_equal(found["snow"], probs.mean[40:, 1])
    for band, k in zip(axes.collections, (1, 0), strict=True):
        expected = probs.quantiles[0, 40:, k].min(), probs.quantiles[2, 40:, k].max()
        np.testing.assert_allclose(heights(band), expected)
    ticks = [line for line in axes.lines if line.get_marker() == "|"]
    for line, k in zip(ticks, (1, 0), strict=True):
        np.testing.assert_array_equal(
            line.get_xdata(), np.flatnonzero(data.to_csr()[40:].toarray()[:, k])
        )
    most = plots.symbol_probs(probs, data, symbols=2)
    variance = probs.mean[:40].var(axis=0)
    assert set(lines(most)) == {NAMES[k] for k in np.argsort(-variance)[:2]}
    assert plots.symbol_probs(probs, data, axes=most) is most


def test_fans_begin_where_the_history_ends(moving):
    probs, data = moving
    rng = np.random.default_rng(1)
    mean = rng.dirichlet(np.ones(4), size=(2, 5))
    levels = np.array([0.5, 0.05, 0.95, 0.25, 0.75])
    scale = np.array([1.0, 0.5, 1.5, 0.8, 1.2])[:, None, None, None]
    ahead = Forecast(mean, mean * scale, levels, np.zeros((3, 2, 5), dtype=np.int64), data)
    axes = plots.forecast_fan(ahead, data, sequence=1, symbols=["sun"], history=probs, last=10)
    (line,) = [line for line in axes.lines if line.get_label() == "sun"]
    np.testing.assert_array_equal(line.get_xdata(), np.arange(-9, 6))
    np.testing.assert_array_equal(line.get_ydata(), [*probs.mean[50:, 2], *mean[1, :, 2]])
    outer, inner, past = axes.collections
    np.testing.assert_allclose(
        heights(outer), [0.5 * mean[1, :, 2].min(), 1.5 * mean[1, :, 2].max()]
    )
    np.testing.assert_allclose(
        heights(inner), [0.8 * mean[1, :, 2].min(), 1.2 * mean[1, :, 2].max()]
    )
    np.testing.assert_allclose(
        heights(past), [probs.quantiles[0, 50:, 2].min(), probs.quantiles[2, 50:, 2].max()]
    )
    alone = plots.forecast_fan(ahead, data, symbols=1)
    assert len(alone.collections) == 2
    assert len(next(iter(lines(alone).values()))) == 5


def test_trajectories_and_words_of_axes(moving):
    probs, data = moving
    found = latent_axes(probs, 2)
    axes = plots.latent_trajectories(found, data, sequence=1)
    first, second = lines(axes).values()
    np.testing.assert_array_equal(first, found.scores[40:, 0])
    np.testing.assert_array_equal(second, found.scores[40:, 1])
    np.testing.assert_allclose(
        heights(axes.collections[1]), [found.lower[40:, 1].min(), found.upper[40:, 1].max()]
    )
    figure = plots.axis_words(found, data, num_words=2)
    for a, panel in enumerate(figure.axes):
        shown = [NAMES.index(label.get_text()) for label in panel.get_yticklabels()]
        pull = np.sqrt(found.weights) * found.effects[a]
        assert shown[0] == pull.argmax()
        assert shown[-1] == pull.argmin()
        assert len(set(shown)) == len(shown)
        ends = [bar.get_x() + bar.get_width() for bar in panel.patches]
        np.testing.assert_allclose(ends, np.exp(found.effects[a, shown]))


def test_figures_are_drawn_to_a_file(moving, tmp_path):
    probs, data = moving
    found = latent_axes(probs, 2)
    for i, figure in enumerate(
        (
            plots.symbol_probs(probs, data).figure,
            plots.latent_trajectories(found, data).figure,
            plots.axis_words(found, data),
        )
    ):
        figure.savefig(tmp_path / f"{i}.png")
        assert (tmp_path / f"{i}.png").read_bytes().startswith(b"\x89PNG")


def test_bad_input(moving):
    probs, data = moving
    with pytest.raises(ValueError, match="sequence must be from 0 to 1, the last one, got 2"):
        plots.symbol_probs(probs, data, sequence=2)
    with pytest.raises(ValueError, match="symbols must be of the data, got 'hail'"):
        plots.symbol_probs(probs, data, symbols=["hail"])
    with pytest.raises(ValueError, match="symbols must be of the data, got 4"):
        plots.symbol_probs(probs, data, symbols=[4])
    with pytest.raises(ValueError, match="the data have 40 steps, the values are of 60"):
        plots.latent_trajectories(latent_axes(probs, 1), data.take([0]))
