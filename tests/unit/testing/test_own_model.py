"""The example of a model of one's own: right, refused where broken, run from end to end."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import pgmult
from pgmult.core.typing import coords_of, traits_of
from pgmult.testing import check_model, mutant, rejects

PATH = Path(__file__).parents[3] / "examples" / "own_model.py"
spec = importlib.util.spec_from_file_location("own_model", PATH)
own = sys.modules["own_model"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(own)

MODEL = own.MultinomialCAR(own.lattice(2, 2))
Q = np.array(
    [[2.0, -0.95, -0.95, 0], [-0.95, 2, 0, -0.95], [-0.95, 0, 2, -0.95], [0, -0.95, -0.95, 2]]
)
TINY = own.Votes(np.array([[2, 1, 0], [0, 0, 0], [1, 0, 3], [0, 2, 0]]))


def test_a_model_may_leave_out_what_has_a_default():
    assert coords_of(MODEL, TINY) == {}
    assert traits_of(MODEL).default_keep == ("probs", "level")
    assert traits_of(MODEL).label_dims == frozenset()
    with pytest.warns(pgmult.ConvergenceWarning):
        posterior = pgmult.sample(
            MODEL, TINY, draws=4, tune=1, chains=1, random_seed=0, progressbar=False
        )
    assert posterior["probs"].shape == (1, 4, 4, 3)


class Noise:
    """In the place of a Generator: what is given for the noise of each row."""

    def __init__(self, *rows):
        self._rows = iter(rows)

    def standard_normal(self, size):
        return next(self._rows)


def test_fields_are_a_linear_map_of_noise_with_the_posterior_covariance(rng):
    level, J, h = rng.normal(), rng.gamma(1.0, size=4), rng.normal(size=4)
    rows = (np.tile(J, (5, 1)), np.tile(h, (5, 1)))
    found = MODEL.sample_field(Noise(np.zeros(4), *np.eye(4)), np.full(5, level), *rows)
    cov = np.linalg.inv(Q + np.diag(J))
    np.testing.assert_allclose(found[0], cov @ (Q.sum(axis=1) * level + h), atol=1e-12)
    root = found[1:] - found[0]
    np.testing.assert_allclose(root.T @ root, cov, atol=1e-12)


@pytest.mark.slow
def test_the_example_is_right():
    assert check_model(MODEL, TINY).passed


def sticks_in_the_wrong_order(self, rng, state, data):
    return MODEL.step(rng, state, own.Votes(data.counts[:, [1, 0, 2]]))


def levels_too_wide(self, rng, state, data):
    new = MODEL.step(rng, state, data)
    pull = Q.sum(axis=0)
    centre = new.psi @ pull / (0.25 + pull.sum())
    return own.VotesState(new.psi, centre + 1.5 * (new.level - centre))


def covariance_for_precision(self, rng, state, data):
    def sample_field(self, rng, mean, J, h):
        field = pgmult.MvNormal(np.tile(mean[:, None], 4), Q)
        return field.condition(pgmult.DiagonalPotential(J, h)).sample(rng)

    return mutant(MODEL, sample_field=sample_field).step(rng, state, data)


@pytest.mark.slow
@pytest.mark.parametrize(
    "step", [sticks_in_the_wrong_order, levels_too_wide, covariance_for_precision]
)
def test_a_broken_example_is_refused(step):
    assert "geweke FAILED" in rejects(check_model, mutant(MODEL, step=step), TINY)


@pytest.mark.slow
def test_the_example_runs(capsys):
    import runpy

    runpy.run_path(str(PATH), run_name="__main__")
    told = capsys.readouterr().out
    assert "points off" in told
    assert "geweke passed" in told
