"""Millions of Pólya-gamma draws against the law, and broken samplers that must be caught."""

import sys
import types
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from pgmult import polya_gamma
from pgmult.compiled import jit
from pgmult.compiled import polya_gamma as compiled
from tests.oracle.polya_gamma import discrepancies

pytestmark = pytest.mark.slow

INTEGERS = (1, 2, 3, 4, 5, 8, 9, 20, 100, 1000, 7000, 10**6)
REALS = (0.05, 0.5, 0.95, 1.3, 1.99, 2.01, 2.7, 4.6, 7.9, 8.1, 33.3)
TILTS = (0.0, 0.6, 1.4, 2.9, 3.99, 4.01, 6.0, 30.0)


def p_values(rng, b, c, size):
    z_mean, z_var, p_distance = discrepancies(polya_gamma.sample(rng, np.full(size, b), c), b, c)
    return np.array([2.0 * norm.sf(abs(z_mean)), 2.0 * norm.sf(abs(z_var)), p_distance])


@pytest.mark.parametrize("shapes", [INTEGERS, REALS], ids=["integer", "real"])
def test_every_regime(shapes):
    """No exceedance beyond chance over all cells, after one escalation to a longer run.

    The p-value of a variance is only asymptotic: where b is small, it has too many extremes.
    """
    rng = np.random.default_rng(20)
    cells = [(float(b), c) for b in shapes for c in TILTS]
    values = np.array([p_values(rng, b, c, 200_000) for b, c in cells])
    suspects = [cell for cell, p in zip(cells, values, strict=True) if p.min() < 1e-2 / values.size]
    for b, c in suspects:
        assert p_values(rng, b, c, 2_000_000).min() > 1e-4, (b, c)
    # p-values of distances are uniform as a whole: a small bias everywhere would show
    assert (values[:, 2] < 0.05).mean() < 0.05 + 4.0 * np.sqrt(0.05 * 0.95 / len(cells))


# What is broken in the source, and where it shows

MUTANTS = {
    "a dropped series term": ("total += term", "total += 0.0 * term", 3.0, 0.3),
    "a dropped tail": ("x += f / rate", "x += 0.5 * f / rate", 2.0, 0.3),
    "a thinning without the base": ("* (c - tilt) * (c + tilt)", "* (c - tilt) * c", 1.0, 3.0),
    "a chord too low": ("+ u * _STRIP_TABLE[table, strip, 3]", "", 4.0, 0.1),
    "a wrong root": ("u * (1.0 + r) > 1.0", "u > 0.5", 2.0, 5.0),
    "a tangent below the logarithm": ("most = 1.0986122886681098 +", "most = 0.6 +", 0.7, 0.5),
    "a bound too low": ("_LEADING * x *", "0.5 * _LEADING * x *", 0.9, 0.1),
    "a forgotten shift": ("omega = b * shift + scale * x", "omega = scale * x", 12.0, 1.0),
    "a remainder of another tilt": ("z = c * c * (2.0", "z = c * c * (3.0", 100.0, 3.5),
    "a missing gamma term": ("for k in range(2 + fit)", "for k in range(1 + fit)", 12.0, 1.0),
    "a generous squeeze": ("squeeze = 0.02 * inverse", "squeeze = 0.0 * inverse", 9.0, 0.0),
}


def compiled_from(source, monkeypatch):
    """`pgmult.compiled.polya_gamma` made from another source, kept out of the cache on disk."""
    monkeypatch.setattr(jit, "cache_directory", lambda: None)
    module = types.ModuleType("pgmult.compiled.polya_gamma_mutant")
    module.__package__ = "pgmult.compiled"
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(source, "polya_gamma_mutant", "exec"), module.__dict__)
    return module


def verdict(module, b, c, size=1_000_000):
    key, out = np.array([6, 28], dtype=np.uint64), np.empty(size)
    num_chunks = -(-size // module.CHUNK)
    module.fill(0, 0, num_chunks, key, 0, np.full(size, b), np.full(size, c), out)
    z_mean, z_var, p_distance = discrepancies(out, b, c)
    return max(abs(z_mean), abs(z_var)) > 5.0 or p_distance < 1e-6


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name, monkeypatch):
    old, new, b, c = MUTANTS[name]
    source = Path(compiled.__file__).read_text(encoding="utf-8")
    assert source.count(old) == 1
    assert not verdict(compiled, b, c)
    assert verdict(compiled_from(source.replace(old, new), monkeypatch), b, c)
