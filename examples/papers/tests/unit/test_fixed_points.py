"""Mixing: the same fixed points in far fewer steps, and a precision at every step."""

import numpy as np
import pytest

from examples.papers.regressions.mixing import Mixing, distance
from pgmult.testing import rejects
from pgmult.variational.ascent import invert

GROUPS, BLOCKS, D = 2, 2, 3


def slow_maps(seed=0):
    """Linear maps of means and precisions that contract by 0.99 in one direction, and less else."""
    rng = np.random.default_rng(seed)
    size = BLOCKS * (D + D * D)
    goal_mean = rng.normal(size=(GROUPS, BLOCKS, D))
    roots = rng.normal(size=(GROUPS, BLOCKS, D, D))
    goal_precision = roots @ np.swapaxes(roots, -1, -2) + np.eye(D)
    rates = np.linspace(0.3, 0.99, size)
    turn = np.linalg.qr(rng.normal(size=(size, size)))[0]
    shrink = (turn * rates) @ turn.T

    def target(mean, precision):
        gap = np.concatenate(
            [mean - goal_mean, (precision - goal_precision).reshape(GROUPS, BLOCKS, -1)], axis=2
        )
        new = (gap.reshape(GROUPS, -1) @ shrink).reshape(gap.shape)
        turned = new[:, :, D:].reshape(precision.shape)
        return (
            goal_mean + new[:, :, :D],
            goal_precision + 0.5 * (turned + np.swapaxes(turned, -1, -2)),
        )

    return target, goal_mean, goal_precision


def search(target, propose, num_steps):
    mean = np.zeros((GROUPS, BLOCKS, D))
    precision = np.tile(np.eye(D), (GROUPS, BLOCKS, 1, 1))
    for _ in range(num_steps):
        mean, precision = propose(mean, precision, *target(mean, precision))
        np.linalg.cholesky(precision)
    return mean, precision


def is_there_soon(propose):
    target, goal_mean, goal_precision = slow_maps()
    mean, precision = search(target, propose, 60)
    assert distance(mean, precision, goal_mean, goal_precision).max() < 1e-6


def test_a_slow_contraction_ends_soon():
    is_there_soon(Mixing().propose)
    rejects(is_there_soon, lambda mean, precision, *target: target)


def test_groups_do_not_know_of_each_other():
    target, *_ = slow_maps()
    together = search(target, Mixing().propose, 12)
    alone = [Mixing() for _ in range(GROUPS)]

    def apart(*ways):
        each = [mix.propose(*(way[[g]] for way in ways)) for g, mix in enumerate(alone)]
        return tuple(np.concatenate(parts) for parts in zip(*each, strict=True))

    for a, b in zip(together, search(target, apart, 12), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


def test_no_proposal_without_precisions():
    """Ways of -1 at 4 and -0.9 at 3 lead to -6: the target stands."""
    mixing = Mixing()
    mean = np.zeros((1, 1, 1))
    for here, way in ((4.0, -1.0), (3.0, -0.9)):
        ends = np.full((1, 1, 1, 1), here), np.full((1, 1, 1, 1), here + way)
        proposed = mixing.propose(mean, ends[0], mean, ends[1])[1]
        assert proposed.item() == ends[1].item()


def test_distance_is_that_of_fisher():
    """Twice the divergence of Gaussians, where they are near."""
    rng = np.random.default_rng(1)
    mean = rng.normal(size=(1, 1, D))
    root = rng.normal(size=(D, D))
    P = (root @ root.T + np.eye(D))[None, None]
    step = 1e-3 * rng.normal(size=(D, D))
    other_mean = mean + 1e-3 * rng.normal(size=mean.shape)
    Q = P + step + step.T
    S, log_det = invert(P)
    gap = (mean - other_mean)[0, 0]
    divergence = 0.5 * (np.trace(Q[0, 0] @ S[0, 0]) - D + gap @ Q[0, 0] @ gap)
    divergence += 0.5 * float(log_det[0, 0] - np.linalg.slogdet(Q[0, 0])[1])
    assert distance(mean, P, other_mean, Q)[0] ** 2 == pytest.approx(2.0 * divergence, rel=0.01)
