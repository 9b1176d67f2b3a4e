"""Fields by the name of their structure."""

import logging

import numpy as np
import pytest

from pgmult.potentials import DiagonalPotential
from pgmult.priors.covariances import Matern, SquaredExponential
from pgmult.priors.gp import GaussianProcess
from pgmult.priors.grids import GridProcess
from pgmult.priors.inducing_points import InducingProcess
from pgmult.priors.space_time import SpaceTimeProcess
from pgmult.priors.structures import make_field

GRID = np.array([[t, s] for t in range(30) for s in range(20)], dtype=float)
MARKOV = Matern(1.5, 9.0, active=[0]) * SquaredExponential(4.0, active=[1])
SMOOTH = SquaredExponential(9.0, active=[0]) * SquaredExponential(4.0, active=[1])


@pytest.mark.parametrize(
    ("structure", "kind"),
    [
        ("dense", GaussianProcess),
        ("state_space", SpaceTimeProcess),
        ("grid", GridProcess),
        ("inducing_points", InducingProcess),
    ],
)
def test_all_structures_compute_the_same(structure, kind):
    rng = np.random.default_rng(0)
    inputs, new = GRID[:70], GRID[70:75]
    J = rng.gamma(1.0, size=(70, 2))
    h = rng.standard_normal((70, 2))
    fields = [
        make_field(s, MARKOV, inputs, 0.2).condition(DiagonalPotential(J, h))
        for s in (structure, "dense")
    ]
    field, dense = fields
    assert isinstance(field, kind)
    assert field.shape == dense.shape == (70, 2)
    np.testing.assert_allclose(field.mean(), dense.mean(), atol=1e-8)
    np.testing.assert_allclose(field.log_normalizer(), dense.log_normalizer(), atol=1e-8)
    for got, expected in zip(field.predict(new), dense.predict(new), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-8)


@pytest.mark.parametrize(
    ("covariance", "inputs", "kind", "words"),
    [
        (SMOOTH, GRID[:50], GaussianProcess, "'dense': 50 inputs are few"),
        (MARKOV, GRID, SpaceTimeProcess, "'state_space': it is exact"),
        (SMOOTH, GRID, GridProcess, "'grid': it is exact"),
        (
            SquaredExponential(),
            GRID,
            GaussianProcess,
            "'dense': state_space: the covariance is not",
        ),
        (SMOOTH, np.random.default_rng(0).random((600, 2)), GaussianProcess, "fill little of"),
    ],
)
def test_auto_takes_what_is_exact_and_says_so(covariance, inputs, kind, words, caplog):
    with caplog.at_level(logging.INFO, logger="pgmult"):
        field = make_field("auto", covariance, inputs)
    assert isinstance(field, kind)
    assert "structure='auto' took" in caplog.text
    assert words in caplog.text


def test_auto_never_approximates():
    with pytest.raises(ValueError, match=r"no exact structure fits 5001 inputs .* name one"):
        make_field("auto", SquaredExponential(), np.random.default_rng(0).random((5001, 2)))


def test_refuses_unknown_structures():
    with pytest.raises(ValueError, match="structure must be one of dense, state_space, grid"):
        make_field("sparse", MARKOV, GRID)
