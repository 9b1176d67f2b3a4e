"""The step of a document's sticks leaves their exact posterior alone, and moves what creeps."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from pgmult import MvNormal, StickBreaking
from pgmult.compiled.rows import row_threads
from pgmult.topics.compiled import sticks as kernels
from pgmult.topics.updates import sticks as updates
from pgmult.topics.updates.sticks import sample_used_sticks

MEAN = np.array([-0.7, 0.4])
COV = np.array([[1.5, 0.9], [0.9, 2.0]])
COUNTS = [[2, 0, 3], [0, 4, 0], [5, 0, 0], [0, 0, 6], [1, 2, 0], [0, 0, 0], [0, 1, 2], [3, 1, 1]]


def exact_moments(link, mean, cov, counts):
    """Mean and covariance of two sticks by a sum over a fine grid."""
    line = np.linspace(-12.0, 12.0, 481)
    psi = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    log_density = link.log_likelihood(psi, np.tile(counts, (len(psi), 1)))
    log_density = log_density + MvNormal(mean, cov).log_density(psi)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    centre = weights @ psi
    return centre, (psi - centre).T @ ((psi - centre) * weights[:, None])


def largest_z_score(order=None, copies=1500, sweeps=20, means=None):
    """Moments of chains that start at the prior, one a copy, against the exact ones."""
    link, rng = StickBreaking(order), np.random.default_rng(1)
    means = np.tile(MEAN, (len(COUNTS), 1)) if means is None else means
    counts, mean = np.tile(COUNTS, (copies, 1)), np.tile(means, (copies, 1))
    psi = MvNormal(mean, COV).sample(rng)
    for _ in range(sweeps):
        psi = sample_used_sticks(rng, link, psi, counts, mean, COV)
    found = 0.0
    for i, row in enumerate(COUNTS):
        centre, cov = exact_moments(link, means[i], COV, row)
        deviation = psi[i :: len(COUNTS)] - centre
        squares = np.stack([deviation[:, 0] ** 2, deviation[:, 1] ** 2, deviation.prod(axis=1)])
        expected = np.array([cov[0, 0], cov[1, 1], cov[0, 1]])
        scores = [
            *(deviation.mean(axis=0) / np.sqrt(np.diag(cov) / copies)),
            *((squares.mean(axis=1) - expected) / (squares.std(axis=1) / np.sqrt(copies))),
        ]
        found = max(found, np.abs(scores).max())
    return found


@pytest.mark.parametrize("order", [None, (2, 0, 1)])
def test_two_sticks_have_their_exact_posterior(order):
    assert largest_z_score(order) < 4.5


def test_every_row_has_its_own_mean():
    means = MEAN + np.arange(len(COUNTS))[:, None] * [0.2, -0.1]
    assert largest_z_score(means=means) < 4.5


BROKEN = {
    "omega of another psi": (
        "draw_integer(rest, psi[r, k],",
        "draw_integer(rest, 5.0 + psi[r, k],",
    ),
    "N instead of N_k": ("                rest -= count\n", ""),
    "other sticks forgotten": (" - omega[lane, i] * centre[at] - pull[at]", "-pull[at]"),
    "proposals accepted": ("excess = add(log_ratio,", "excess = add(splat(1e9),"),
    "conditional prior for marginal": ("while grown < depth:", "while grown < n:"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BROKEN)
def test_broken_steps_are_noticed(kind, monkeypatch, tmp_path):
    right, wrong = BROKEN[kind]
    source = Path(kernels.__file__).read_text(encoding="utf-8")
    assert source.count(right) == 1
    monkeypatch.setattr("pgmult.compiled.jit.cache_directory", lambda: None)  # none holds a mutant
    path = tmp_path / "broken_sticks.py"
    path.write_text(source.replace(right, wrong), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("broken_sticks", path)
    assert spec is not None
    assert spec.loader is not None
    broken = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(broken)
    monkeypatch.setattr(updates, "sticks", broken)
    assert largest_z_score(copies=15_000) > 6.0


def test_without_observations_rows_are_the_prior():
    """Whatever they were before, and one mean a row."""
    rows = 40_000
    rng = np.random.default_rng(2)
    cov = np.array([[2.0, 1.2, 0.1], [1.2, 1.5, -0.4], [0.1, -0.4, 1.0]])
    mean = np.tile([[0.0, 1.0, -1.0], [2.0, 0.0, 3.0]], (rows // 2, 1))
    counts = np.zeros((rows, 4), dtype=np.int64)
    moved = sample_used_sticks(rng, StickBreaking(), np.zeros((rows, 3)), counts, mean, cov)
    whitened = (moved - mean) @ np.linalg.inv(np.linalg.cholesky(cov)).T
    for column in whitened.T:
        assert stats.kstest(column, "norm").pvalue > 1e-4
    assert np.abs(np.corrcoef(whitened.T) - np.eye(3)).max() < 0.03


def test_rare_categories_move_faster_than_by_augmentation():
    """One use in many: steps given omega are short, proposals from the prior are not."""
    link, rng = StickBreaking(), np.random.default_rng(3)
    mean, cov = np.array([-8.0]), np.array([[9.0]])
    counts = np.tile([0, 100], (5000, 1))
    start = np.full((5000, 1), -8.0)
    potential = link.augment(rng, start, counts)
    augmented = MvNormal(mean, cov).condition(potential).sample(rng)
    moved = sample_used_sticks(rng, link, start, counts, mean, cov)
    assert np.mean((moved - start) ** 2) > 5.0 * np.mean((augmented - start) ** 2)


@pytest.mark.parametrize("num_topics", [2, 6, 21])
def test_threads_do_not_matter_and_arguments_are_not_changed(num_topics):
    rng = np.random.default_rng(4)
    counts = rng.poisson(rng.gamma(0.3, 5.0, size=(101, num_topics)))
    psi = rng.normal(size=(101, num_topics - 1))
    before = psi.copy()
    mean, cov = np.zeros(num_topics - 1), np.eye(num_topics - 1)
    draws = []
    for threads in (1, 2, 3):
        with row_threads(threads):
            again = np.random.default_rng(0)
            draws.append(sample_used_sticks(again, StickBreaking(), psi, counts, mean, cov))
    np.testing.assert_array_equal(psi, before)
    np.testing.assert_array_equal(draws[1], draws[0])
    np.testing.assert_array_equal(draws[2], draws[0])


def test_a_singular_covariance_is_refused():
    with pytest.raises(ValueError, match="singular"):
        sample_used_sticks(
            np.random.default_rng(0), StickBreaking(), np.zeros((2, 2)),
            np.ones((2, 3), dtype=np.int64), np.zeros(2), np.ones((2, 2)),
        )  # fmt: skip
