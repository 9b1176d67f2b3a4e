"""Split R-hat and effective sample sizes against ArviZ, and in the corners ArviZ leaves open."""

import warnings

import numpy as np
import pytest

from pgmult.sampling import diagnostics


@pytest.fixture(scope="module")
def arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("arviz")


def independent(rng, shape):
    return rng.normal(size=shape)


def persistent(rng, shape):
    x = rng.normal(size=shape)
    for t in range(1, shape[1]):
        x[:, t] = 0.95 * x[:, t - 1] + 0.3 * x[:, t]
    return x


def alternating(rng, shape):
    x = rng.normal(size=shape)
    for t in range(1, shape[1]):
        x[:, t] = -0.8 * x[:, t - 1] + 0.3 * x[:, t]
    return x


def heavy_tailed(rng, shape):
    return rng.standard_cauchy(size=shape)


def tied(rng, shape):
    return rng.integers(0, 4, size=shape).astype(float)


def apart(rng, shape):
    return rng.normal(size=shape) + 3.0 * np.arange(shape[0])[:, None, None]


KINDS = [independent, persistent, alternating, heavy_tailed, tied, apart]


@pytest.mark.parametrize("shape", [(1, 4), (2, 5), (3, 7), (4, 33), (2, 100), (4, 1000), (3, 501)])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_agrees_with_arviz(arviz, kind, shape):
    if int(arviz.__version__.split(".")[0]) >= 1:
        pytest.skip("compared with the functions of ArviZ 0.x")
    draws = kind(np.random.default_rng(sum(shape)), (*shape, 3))
    pairs = {
        diagnostics.ess_bulk: lambda x: arviz.ess(x, method="bulk"),
        diagnostics.ess_tail: lambda x: arviz.ess(x, method="tail"),
        diagnostics.mcse_mean: arviz.mcse,
    }
    if shape[0] > 1:
        pairs[diagnostics.r_hat] = arviz.rhat
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ours, theirs in pairs.items():
            expected = [float(np.squeeze(theirs(draws[:, :, i]))) for i in range(3)]
            np.testing.assert_allclose(ours(draws), expected, rtol=1e-9, err_msg=ours.__name__)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_entries_do_not_meet(kind, monkeypatch):
    """Many entries, in batches of any size, give what each gives alone."""
    draws = kind(np.random.default_rng(3), (3, 60, 7)).reshape(3, 60, 7, 1)
    functions = [diagnostics.r_hat, diagnostics.ess_bulk, diagnostics.ess_tail]
    together = [function(draws) for function in functions]
    monkeypatch.setattr(diagnostics, "_BATCH", 400)
    for function, values in zip(functions, together, strict=True):
        assert values.shape == (7, 1)
        np.testing.assert_array_equal(function(draws), values)
        alone = [function(draws[:, :, i, 0]) for i in range(7)]
        np.testing.assert_allclose(values[:, 0], alone, rtol=1e-12)


def test_constant_chains():
    same = np.full((4, 100), 0.1)
    assert np.isnan(diagnostics.r_hat(same))
    assert diagnostics.ess_bulk(same) == 400
    stuck = np.repeat(np.arange(4.0)[:, None], 100, axis=1)
    assert diagnostics.r_hat(stuck) > 1e6
    assert diagnostics.ess_bulk(stuck) < 20


def test_ess_of_an_autoregression():
    """The true value for rate r is N (1 - r) / (1 + r)."""
    rate, shape = 0.8, (4, 5000, 50)
    rng = np.random.default_rng(5)
    draws = rng.normal(size=shape)
    draws[:, 1:] *= np.sqrt(1 - rate**2)
    for t in range(1, shape[1]):
        draws[:, t] += rate * draws[:, t - 1]
    expected = 20000 * (1 - rate) / (1 + rate)
    assert np.mean(draws.var(axis=(0, 1)) / diagnostics.mcse_mean(draws) ** 2) == pytest.approx(
        expected, rel=0.05
    )


def test_nan_spoils_its_own_entry_only():
    draws = np.random.default_rng(0).normal(size=(2, 50, 3))
    draws[1, 7, 1] = np.nan
    for function in (diagnostics.r_hat, diagnostics.ess_bulk, diagnostics.ess_tail):
        assert np.isnan(function(draws)).tolist() == [False, True, False]


@pytest.mark.parametrize("shape", [(4,), (4, 3), (0, 10)])
def test_too_few_draws_are_an_error(shape):
    with pytest.raises(ValueError, match="at least 4 draws a chain, got shape"):
        diagnostics.r_hat(np.zeros(shape))
