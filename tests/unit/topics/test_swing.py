"""The path of a document's psi leaves its exact posterior alone, under either link."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from pgmult import LogisticNormal, MvNormal, StickBreaking
from pgmult.compiled.jit import jit
from pgmult.compiled.linalg import row_at
from pgmult.compiled.simd import WIDTH, store
from pgmult.testing import conditional_ratio
from pgmult.topics.compiled import swing as kernels
from pgmult.topics.updates import swing as updates
from pgmult.topics.updates.swing import swing_psi

MEAN = np.array([-0.7, 0.4])
COV = np.array([[1.5, 0.9], [0.9, 2.0]])
COUNTS = [[2, 0, 3], [0, 4, 0], [5, 0, 0], [0, 0, 6], [1, 2, 0], [0, 0, 0], [0, 1, 2], [3, 1, 1]]
LINKS = {
    "sticks": StickBreaking(),
    "other order": StickBreaking((2, 0, 1)),
    "softmax": LogisticNormal(),
}


def exact_moments(link, mean, cov, counts):
    """Mean and covariance of two coordinates by a sum over a fine grid."""
    line = np.linspace(-12.0, 12.0, 481)
    psi = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    log_density = link.log_likelihood(psi, np.tile(counts, (len(psi), 1)))
    log_density = log_density + MvNormal(mean, cov).log_density(psi)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    centre = weights @ psi
    return centre, (psi - centre).T @ ((psi - centre) * weights[:, None])


def largest_z_score(link, copies=1500, sweeps=8):
    """Moments of chains that start at the prior, one a copy, against the exact ones.

    Documents have means of their own.
    """
    rng = np.random.default_rng(1)
    rows = np.array(COUNTS) if isinstance(link, StickBreaking) else np.array(COUNTS)[:, :2]
    means = MEAN + np.arange(len(rows))[:, None] * [0.2, -0.1]
    counts, mean, cov = np.tile(rows, (copies, 1)), np.tile(means, (copies, 1)), COV
    psi = MvNormal(mean, cov).sample(rng)
    for _ in range(sweeps):
        psi = swing_psi(rng, link, psi, counts, mean, cov)
    found = 0.0
    for i, row in enumerate(rows):
        centre, exact = exact_moments(link, means[i], cov, row)
        deviation = psi[i :: len(rows)] - centre
        squares = np.stack([deviation[:, 0] ** 2, deviation[:, 1] ** 2, deviation.prod(axis=1)])
        expected = np.array([exact[0, 0], exact[1, 1], exact[0, 1]])
        scores = [
            *(deviation.mean(axis=0) / np.sqrt(np.diag(exact) / copies)),
            *((squares.mean(axis=1) - expected) / (squares.std(axis=1) / np.sqrt(copies))),
        ]
        found = max(found, np.abs(scores).max())
    return found


@pytest.mark.parametrize("link", LINKS)
def test_two_coordinates_have_their_exact_posterior(link):
    assert largest_z_score(LINKS[link]) < 4.5


@jit
def look(lanes, rows, mean, weights, precision, packed, psi, step, out):
    """Eight rows of the same counts: the log density at each that a path's acceptance takes, its
    slopes by differences, those of the correction, and the site."""
    n = len(mean)
    key = np.zeros(2, dtype=np.uint64)
    for lane in range(WIDTH):
        kernels._read(rows, lane, lane, n, np.atleast_2d(mean), key, psi, lanes)
    kernels._approximate(lanes, weights, n, rows.softmax)
    kernels._factor(lanes, precision, n, rows.softmax, packed)
    start = lanes.old.copy()
    for k in range(n):
        lanes.old[k * WIDTH : (k + 1) * WIDTH] = start[k * WIDTH]
    lanes.x[:] = start
    store(out[0], 0, kernels._gain(lanes, precision, n, rows.softmax))
    kernels._slopes(lanes, n, rows.softmax)
    out[1], out[2], out[3], out[4] = lanes.solved, lanes.linear, lanes.curvature, start
    for i in range(2):
        for k in range(n):
            lanes.x[:] = start
            lanes.x[k * WIDTH : (k + 1) * WIDTH] += step * (2 * i - 1)
            store(out[5 + i], k * WIDTH, kernels._gain(lanes, precision, n, rows.softmax))


@pytest.mark.slow
@pytest.mark.parametrize("link", [LINKS["sticks"], LINKS["softmax"]], ids=["sticks", "softmax"])
def test_paths_see_the_posterior_and_its_slopes(link):
    """Log joint less what a path takes for it is the same anywhere; slopes by differences."""
    rng, softmax = np.random.default_rng(7), isinstance(link, LogisticNormal)
    size, step = 5 if softmax else 4, 1e-5
    root = rng.normal(size=(size, size))
    mean, cov = rng.normal(size=size), root @ root.T + np.eye(size)
    psi, counts = 2.0 * rng.normal(size=(8, size)), np.tile([3, 0, 40, 1, 2], (8, 1))
    ids = np.arange(8, dtype=np.uint64)
    rows = kernels.SwingRows(np.arange(8), np.full(8, size), counts, np.arange(5), ids, softmax)
    packed, found = np.zeros(row_at(size + 1), np.float32), np.zeros((7, size * WIDTH))
    lanes, weights, precision = kernels._make_lanes(size), 1.0 / np.diag(cov), np.linalg.inv(cov)
    look(lanes, rows, mean, weights, precision, packed, psi, step, found)
    joint = link.log_likelihood(psi, counts) + MvNormal(mean, cov).log_density(psi)
    conditional_ratio(lambda i: joint[i], lambda i: found[0, i], range(8))
    slopes, linear, curvature, x, before, after = found[1:].reshape(6, size, WIDTH)
    pulled = linear - curvature * x - precision @ x
    if softmax:
        pulled += curvature * (curvature * x).sum(axis=0) / counts[0].sum()
    density = (after - before) / (2.0 * step)
    np.testing.assert_allclose(slopes, density - pulled, rtol=1e-5, atol=1e-5)


ROUGH = (
    ("add_product(linear, load(lanes.curvature, at), x))", "multiply(splat(0.3), linear))"),
    ("_TURNS = 4", "_TURNS = 2"),
)
"""Few turns, and a site far from the likelihood: only what is accepted makes a path exact."""

SITES = "        _approximate(lanes, weights, depth, rows.softmax)\n"

BROKEN = {
    "nothing": ("", ""),
    "all accepted": ("(excess, splat(0.0), load", "(splat(1.0), splat(0.0), load"),
    "no correction accepted": ("_gain(lanes, precision, depth, softmax))", "splat(0.0))"),
    "kicks of one length": ("length = half if kick == 0 or kick == _TURNS else", "length ="),
    "a site that follows the point": (
        SITES,
        "        lanes.x[:], lanes.slope[:] = lanes.old, 50.0\n" + SITES,
    ),
    "conditional prior for marginal": ("while grown < depth:", "while grown < n:"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BROKEN)
def test_broken_paths_are_noticed(kind, monkeypatch, tmp_path):
    """Where the site is rough, so that the correction matters."""
    source = Path(kernels.__file__).read_text(encoding="utf-8")
    for right, wrong in (BROKEN[kind], *ROUGH):
        assert not right or source.count(right) == 1
        source = source.replace(right, wrong) if right else source
    monkeypatch.setattr("pgmult.compiled.jit.cache_directory", lambda: None)  # none holds a mutant
    path = tmp_path / "broken_swing.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("broken_swing", path)
    assert spec is not None
    assert spec.loader is not None
    broken = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(broken)
    monkeypatch.setattr(updates, "swing", broken)
    links = [LINKS["sticks"], *([LINKS["softmax"]] if kind == "nothing" else [])]
    score = max(largest_z_score(link, copies=6_000, sweeps=20) for link in links)
    assert score < 4.5 if kind == "nothing" else score > 6.0


def test_without_observations_rows_are_the_prior():
    """Whatever they were before, and one mean a row."""
    rows = 40_000
    rng = np.random.default_rng(2)
    cov = np.array([[2.0, 1.2, 0.1], [1.2, 1.5, -0.4], [0.1, -0.4, 1.0]])
    mean = np.tile([[0.0, 1.0, -1.0], [2.0, 0.0, 3.0]], (rows // 2, 1))
    counts = np.zeros((rows, 4), dtype=np.int64)
    moved = swing_psi(rng, StickBreaking(), np.zeros((rows, 3)), counts, mean, cov)
    whitened = (moved - mean) @ np.linalg.inv(np.linalg.cholesky(cov)).T
    for column in whitened.T:
        assert stats.kstest(column, "norm").pvalue > 1e-4
    assert np.abs(np.corrcoef(whitened.T) - np.eye(3)).max() < 0.03


@pytest.mark.parametrize("link", [LINKS["sticks"], LINKS["softmax"]], ids=["sticks", "softmax"])
@pytest.mark.parametrize("tokens", [3, 100, 100_000])
def test_paths_are_accepted_at_any_length(link, tokens):
    rng = np.random.default_rng(5)
    size = 20 - isinstance(link, StickBreaking)
    root = rng.normal(size=(size, size))
    cov = 0.5 * np.eye(size) + 2.0 * root @ root.T / size
    psi = MvNormal(np.zeros(size), cov).sample(rng, 400)
    counts = link.simulate(rng, psi, np.full(400, tokens))
    moved = swing_psi(rng, link, psi, counts, np.zeros(size), cov)
    assert (moved[:, 0] != psi[:, 0]).mean() > 0.75


def test_extreme_means_and_values_stay_finite():
    """Exponentials of either link over- and underflow."""
    rng = np.random.default_rng(6)
    counts = np.array([[1, 0, 2], [0, 0, 0], [10**9, 0, 1]])
    for link, size in ((StickBreaking(), 2), (LogisticNormal(), 3)):
        for far in (-2000.0, 2000.0):
            mean, psi = np.zeros((3, size)), np.zeros((3, size))
            mean[:, 0] = far
            psi[:, 1] = -far
            assert np.isfinite(swing_psi(rng, link, psi, counts, mean, np.eye(size))).all()
    with pytest.raises(ValueError, match="document 1 is not finite"):
        swing_psi(
            rng,
            StickBreaking(),
            np.array([[0.0], [np.nan]]),
            counts[:2, :2].copy(),
            np.zeros(1),
            np.eye(1),
        )


def test_a_singular_covariance_is_refused():
    with pytest.raises(ValueError, match="singular"):
        swing_psi(
            np.random.default_rng(0), StickBreaking(), np.zeros((2, 2)),
            np.ones((2, 3), dtype=np.int64), np.zeros(2), np.ones((2, 2)),
        )  # fmt: skip
