"""Paths drawn by particle Gibbs against exact smoothing on a grid."""

import importlib.util
import inspect
import sys
from functools import partial

import numpy as np
import pytest
from oracle.grid_states import GridStates
from oracle.grid_states import make_data as sequences_of
from oracle.grid_states import make_draw as draw_of

from examples.papers.linderman2015 import particle_gibbs as module
from examples.papers.linderman2015.compiled import particle_blocks
from examples.papers.linderman2015.gaussian_lds import filtered
from examples.papers.linderman2015.particle_gibbs import sample_paths
from pgmult import LogisticNormal
from pgmult.compiled.rows import row_threads
from pgmult.sequences import as_sequences
from pgmult.sequences.priors.dynamics import LinearDynamics
from pgmult.sequences.priors.state_space import StateSpaceDraw
from pgmult.testing import rejects

COPIES = 500  # of the same two sequences: independent chains, side by side
make_data, make_draw = partial(sequences_of, steps=8), partial(draw_of, "softmax")


def check_smoothing(
    draw, data, many, *, sampled=None, num_particles=3, block_length=4, sweeps=25, start=0.0
):
    """Chains from one place reach the smoothing law: means, variances, neighbours' products."""
    exact = GridStates(draw, data)
    rng = np.random.default_rng(2)
    x = np.full((many.num_steps, 1), start)
    for _ in range(sweeps):
        x, _ = sample_paths(rng, sampled or draw, many, x, num_particles, block_length)
    x = x.reshape(-1, data.num_steps)
    products = x[:, :-1] * x[:, 1:]
    inside = np.isfinite(exact.product[1:])
    root = np.sqrt(len(x))
    scores = np.concatenate(
        [
            (x.mean(axis=0) - exact.mean) / np.sqrt(exact.var) * root,
            (((x - exact.mean) ** 2).mean(axis=0) / exact.var - 1.0) / np.sqrt(2.0) * root,
            (
                (products.mean(axis=0) - exact.product[1:])
                / np.maximum(products.std(axis=0), 1e-3)
                * root
            )[inside],
        ]
    )
    assert (np.abs(scores) < 4.5).all(), scores.round(1)


@pytest.mark.slow
@pytest.mark.parametrize("block_length", [1, 4, 50])
@pytest.mark.parametrize("total", [1, 60], ids=["symbols", "counts"])
def test_paths_are_smoothed(total, block_length):
    sweeps = 60 if block_length == 1 else 25
    check_smoothing(
        make_draw(), make_data(total), make_data(total, COPIES), block_length=block_length,
        sweeps=sweeps,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_any_share_of_blind_particles_will_do(share, monkeypatch):
    """With all of them blind, weights differ widely and ancestors are drawn often."""
    monkeypatch.setattr(module, "_BLIND_SHARE", share)
    check_smoothing(
        make_draw(), make_data(8), make_data(8, COPIES), num_particles=6, block_length=50,
        sweeps=40,
    )  # fmt: skip


@pytest.mark.slow
def test_without_observations_paths_are_draws_of_the_dynamics():
    """Every weight is 1: the present path is taken once in num_particles."""
    depth = 3
    rng = np.random.default_rng(3)
    transition = np.array([[0.9, 0.2, 0.0], [-0.2, 0.8, 0.1], [0.0, 0.1, 0.5]])
    draw = StateSpaceDraw(
        transition, 0.3 * np.eye(depth), np.ones(depth), np.eye(depth),
        loadings=rng.normal(size=(4, depth)), offset=np.zeros(4), link=LogisticNormal(),
    )  # fmt: skip
    counts = np.zeros((5, 4), np.int64)
    counts[0, 1] = 1  # one observation there must be
    data = as_sequences([*(1500 * [counts]), counts[:1]])
    unseen = draw._replace(loadings=np.zeros((4, depth)))
    x = np.zeros((data.num_steps, depth))
    moves = []
    for _ in range(30):
        x, moved = sample_paths(rng, unseen, data, x, 5, 3)
        moves.append(moved[:-1].mean())
    np.testing.assert_allclose(np.mean(moves), 0.8, atol=0.01)
    law = LinearDynamics(
        transition, draw.noise_cov, np.ones(depth), np.eye(depth), np.array([0, 5])
    )
    means, covs, _ = filtered(law)  # nothing is seen: the prior's own
    x = x[:-1].reshape(1500, 5, depth)
    scores = (x.mean(axis=0) - means) / np.sqrt(np.diagonal(covs, axis1=1, axis2=2) / 1500)
    assert (np.abs(scores) < 4.5).all()
    last = np.cov(x[:, -1].T)
    np.testing.assert_allclose(last, covs[-1], atol=0.2)


# ------------------------------------------------------------------ mutants


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"offset": np.zeros(4)},
        {"initial_mean": np.full(1, 2.0)},
        {"noise_cov": np.array([[1.0]])},
        {"transition": np.array([[0.7]])},
    ],
    ids=["offset ignored", "initial mean", "noise", "transition"],
)
def test_paths_of_another_model_are_refused(changes):
    rejects(
        check_smoothing, make_draw(), make_data(4), make_data(4, COPIES),
        sampled=make_draw(**changes),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", ["reference dropped", "reference of a neighbour", "no move"])
def test_broken_references_are_refused(what, monkeypatch):
    """A path that forgets the present one is drawn from particles alone, biased by their number."""
    right = module.particle_blocks.conditional_blocks

    def broken(worker, start, stop, *arguments):
        states = arguments[-2]
        if what == "reference dropped":
            states[:] = 3.0
        elif what == "reference of a neighbour":
            states[1:] = states[:-1].copy()
        if what == "no move":
            return 0
        return right(worker, start, stop, *arguments)

    monkeypatch.setattr(module.particle_blocks, "conditional_blocks", broken)
    rejects(
        check_smoothing, make_draw(), make_data(4), make_data(4, COPIES), num_particles=2,
        block_length=2,
    )  # fmt: skip


@pytest.mark.slow
def test_ancestors_drawn_without_the_transition_are_refused(monkeypatch, tmp_path):
    """One line of the source, the transition density in the ancestors' weights, taken out."""
    density = "ahead[n] -= 0.5 * scaled[n] * scaled[n]"
    source = inspect.getsource(particle_blocks)
    assert source.count(density) == 1
    path = tmp_path / "changed_blocks.py"
    path.write_text(source.replace(density, "pass"))
    spec = importlib.util.spec_from_file_location("changed_blocks", path)
    changed = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "changed_blocks", changed)
    spec.loader.exec_module(changed)
    monkeypatch.setattr(module, "_BLIND_SHARE", 1.0)  # ancestors are drawn often
    draw = make_draw(noise_cov=np.array([[0.05]]), transition=np.array([[0.98]]))
    arguments = draw, make_data(12), make_data(12, 800)
    options = {"num_particles": 6, "block_length": 50, "sweeps": 40}
    check_smoothing(*arguments, **options)
    monkeypatch.setattr(particle_blocks, "conditional_blocks", changed.conditional_blocks)
    rejects(check_smoothing, *arguments, **options)


# ------------------------------------------------------------------ the rest of the contract


@pytest.mark.slow
def test_threads_do_not_matter():
    draw, data = make_draw(), make_data(3, 5)
    x = np.zeros((data.num_steps, 1))
    results = []
    for threads in (1, 3):
        with row_threads(threads):
            results.append(sample_paths(np.random.default_rng(4), draw, data, x, 5, 2))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    assert (x == 0.0).all()


@pytest.mark.parametrize("length", [1, 3, 20])
def test_blocks_cover_every_step_once(length):
    data = make_data(1, 3)
    for shift in range(length):
        starts, stops, sequences, odd = module._blocks(data, length, shift)
        steps = np.concatenate([np.arange(a, b) for a, b in zip(starts, stops, strict=True)])
        np.testing.assert_array_equal(np.sort(steps), np.arange(data.num_steps))
        assert (stops - starts).max() <= max(length, shift + 1)
        for chosen in (odd, ~odd):
            ends = set(zip(sequences[chosen], stops[chosen], strict=True))
            begins = set(zip(sequences[chosen], starts[chosen], strict=True))
            assert not ends & begins  # no two of a call touch


@pytest.mark.slow
def test_bad_input():
    rng, draw, data = np.random.default_rng(5), make_draw(), make_data()
    with pytest.raises(ValueError, match=r"states must have shape \(8, 1\), got \(8, 2\)"):
        sample_paths(rng, draw, data, np.zeros((8, 2)), 5)
    with pytest.raises(FloatingPointError, match="no particle has a finite weight"):
        sample_paths(rng, draw, data, np.full((8, 1), np.nan), 5)
