"""Figures of sequences show what they are given."""

import numpy as np
import pytest

from pgmult.sequences import as_sequences
from pgmult.sequences.answers import Forecast, StepProbs

NAMES = ["rain", "snow", "sun", "wind"]
LEVELS = np.array([0.05, 0.5, 0.95])


def softmax(psi):
    p = np.exp(psi - psi.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def moving():
    rng = np.random.default_rng(0)
    t = np.arange(60.0)
    x = np.column_stack([np.sin(0.2 * t), np.cos(0.37 * t)])
    loadings = np.array([[2.0, 0.0], [-1.0, 0.3], [0.0, 0.8], [0.5, -1.0]])
    mean = softmax(x @ loadings.T)
    spread = np.exp(np.array([-0.4, 0.0, 0.4]))[:, None, None]
    data = as_sequences(
        [[NAMES[rng.choice(4, p=p)] for p in part] for part in (mean[:40], mean[40:])],
        alphabet=NAMES,
    )
    return StepProbs(mean[None], mean, mean * spread, LEVELS, data), data


def test_probabilities_with_bands_and_what_was_observed(moving):
    probs, data = moving
    found = probs.figure(sequence=1, symbols=["snow", 0])
    assert [line.name for line in found.lines] == ["snow", "rain"]
    for line, k in zip(found.lines, (1, 0), strict=True):
        np.testing.assert_array_equal(line.mean, probs.mean[40:, k])
        np.testing.assert_array_equal(line.bands, [probs.quantiles[[0, 2], 40:, k]])
        np.testing.assert_array_equal(line.rug, np.flatnonzero(data.to_csr()[40:].toarray()[:, k]))
    variance = probs.mean[:40].var(axis=0)
    most = {line.name for line in probs.figure(symbols=2).lines}
    assert most == {NAMES[k] for k in np.argsort(-variance)[:2]}
    axes = probs.plot()
    assert probs.plot(axes) is axes


def test_fans_begin_where_the_history_ends(moving):
    probs, data = moving
    rng = np.random.default_rng(1)
    mean = rng.dirichlet(np.ones(4), size=(2, 5))
    levels = np.array([0.5, 0.05, 0.95, 0.25, 0.75])
    scale = np.array([1.0, 0.5, 1.5, 0.8, 1.2])[:, None, None, None]
    ahead = Forecast(
        mean[None], mean, mean * scale, levels, data, np.zeros((3, 2, 5), dtype=np.int64)
    )
    found = ahead.figure(sequence=1, symbols=["sun"], history=probs, last=10)
    (line,) = found.lines
    assert found.divider == 19.5
    np.testing.assert_array_equal(line.x, np.arange(10, 25))
    np.testing.assert_array_equal(line.mean, [*probs.mean[50:, 2], *mean[1, :, 2]])
    outer, inner = np.array(line.bands)
    np.testing.assert_array_equal(outer[:, :10], probs.quantiles[[0, 2], 50:, 2])
    np.testing.assert_array_equal(inner[:, :10], np.tile(probs.mean[50:, 2], (2, 1)))
    for band, ends in ((outer, (0.5, 1.5)), (inner, (0.8, 1.2))):
        np.testing.assert_allclose(band[:, 10:], np.outer(ends, mean[1, :, 2]))
    (alone,) = ahead.figure(symbols=1).lines
    assert len(alone.bands) == 2
    assert alone.x.tolist() == [40, 41, 42, 43, 44]


def test_a_figure_is_drawn_to_a_file(moving, tmp_path):
    probs, _ = moving
    probs.plot().figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"sequence": 2}, "sequence must be from 0 to 1, got 2"),
        ({"symbols": ["hail"]}, "symbols must be of the data, got 'hail'"),
        ({"symbols": [4]}, "symbols must be of the data, got 4"),
    ],
)
def test_bad_input(moving, options, match):
    with pytest.raises(ValueError, match=match):
        moving[0].figure(**options)
