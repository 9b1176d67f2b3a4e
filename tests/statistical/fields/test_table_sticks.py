"""Separable fields: every move leaves the joint distribution, and is refused when broken."""

from dataclasses import replace

import numpy as np
import pytest

import pgmult
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Constant, LogNormal, Matern, SquaredExponential, White
from pgmult.fields.updates import table_sticks
from pgmult.fields.updates.table_sticks import LevelDraw, Potential, Reference
from pgmult.latent.hyperparameters import Leaning
from pgmult.sampling.diagnostics import mcse_mean
from pgmult.testing import check_geweke, check_model, check_sbc, mutant, rejects

pytestmark = pytest.mark.slow

# Irregular times, a missing cell, a repeated input, a missing row, a new time and a new place.
DATA = as_field(
    [[0.0, 0.0], [0.0, 1.0], [0.7, 1.0], [0.7, 1.0], [2.0, 0.0], [2.0, 1.0]],
    [[2, 1, 1], [3, 0, 2], [0, 2, 1], [0, 0, 0], [16, 2, 1], [1, 1, 9]],
    new_inputs=[[3.0, 1.0], [2.0, 2.0]],
)
COVARIANCE = Constant(0.8, priors={"var": LogNormal(0.8, 0.4)}) * Matern(
    1.5, 2.0, priors={"length_scale": LogNormal(2.0, 0.4)}, active=[0]
) * SquaredExponential(1.5, fixed=["length_scale"], active=[1]) + White(
    0.4, priors={"var": LogNormal(0.4, 0.4)}
)
MODEL = MultinomialGP(COVARIANCE, mean_var=1.0, structure="separable")
# Narrow priors, of which a few cells tell next to nothing: a move that forgets one is seen at once.
NARROW = replace(
    MODEL,
    covariance=Constant(0.8, priors={"var": LogNormal(0.8, 0.1)})
    * Matern(1.5, 2.0, priors={"length_scale": LogNormal(2.0, 0.1)}, active=[0])
    * SquaredExponential(1.5, fixed=["length_scale"], active=[1])
    + White(0.4, priors={"var": LogNormal(0.4, 0.1)}),
)
FIXED = replace(MODEL, hyperparameters="fixed")
STATISTICS = {
    "psi": lambda state, data: state.psi,
    "beta": lambda state, data: state.beta,
    "hyperparameters": lambda state, data: state.hyperparameters,
    "log_likelihood": MODEL.log_likelihood,
    "standardised": lambda state, data: ((state.psi - state.beta) ** 2).sum(axis=0),
    "steps": lambda state, data: (state.psi[1:] - state.psi[:-1]) ** 2,
}


def rough(sticks):
    """Any hyperparameters and any levels: bad ones will do, and a pilot would take long."""
    x = sticks.start
    level = np.linspace(-1.0, 1.5, sticks.taken.size).reshape(sticks.taken.shape)
    guess = Leaning(x, 0.5 * np.eye(len(x)), np.zeros(len(x)))
    return Reference(guess, Potential(sticks, x, level))


@pytest.fixture(autouse=True)
def any_pilot(monkeypatch):
    monkeypatch.setattr(table_sticks, "pilot", rough)


@pytest.mark.parametrize(
    "model",
    [MODEL, replace(MODEL, shared=False, mean="linear"), replace(FIXED, mean=[0.5, -0.5])],
    ids=["shared, constant mean", "a covariance a stick, linear mean", "all fixed"],
)
def test_separable_fields(model):
    check_model(model, DATA, replicates=100)


@pytest.mark.parametrize(
    "model", [MODEL, replace(MODEL, shared=False), NARROW], ids=["shared", "own", "narrow priors"]
)
def test_joint_distribution(model):
    check_geweke(model, DATA, statistics=STATISTICS, replicates=200)


def test_joint_distribution_where_length_scales_move_rarely(monkeypatch):
    monkeypatch.setattr(table_sticks, "scale_rate", lambda sticks: 0.3)
    check_geweke(NARROW, DATA, statistics=STATISTICS, replicates=200)


# A table with a missing cell, and rare categories: many counts are zeros.
SMALL = as_field(
    [[float(t), float(s)] for t in range(5) for s in range(3)][1:], np.tile([1, 4, 7], (14, 1))
)
FIELD = replace(
    MODEL,
    covariance=Constant(1.0, priors={"var": LogNormal(1.0, 0.6)})
    * Matern(1.5, 2.0, priors={"length_scale": LogNormal(2.0, 0.6)}, active=[0])
    * Matern(0.5, 2.0, priors={"length_scale": LogNormal(2.0, 0.6)}, active=[1])
    + White(0.4, priors={"var": LogNormal(0.4, 0.6)}),
    mean=[-2.5, -0.5],
)


CALIBRATED = {
    "logs of v, two length scales and scatter": lambda state, data: np.log(state.hyperparameters),
    "psi": lambda state, data: state.psi[::5],
}


def test_calibration_of_hyperparameters(monkeypatch):
    """A whole chain, its pilot run included."""
    monkeypatch.undo()
    check_sbc(FIELD, SMALL, CALIBRATED, replicates=60, tune=10, draws=12, thin=4)


# ------------------------------------------------------------------ broken samplers


def patched(where, name, broken, model=MODEL):
    """The model whose sweeps find another function in place of one of their own."""

    def step(self, rng, state, data):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(where, name, broken)
            return model.step(rng, state, data)

    return mutant(model, step=step)


def swung_whatever(rng, sticks, point, reference):
    """A path by the Gaussian alone."""
    fit = 0.0 * point.fit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_sticks, "log_likelihood", lambda sticks, level, var: fit)
        patch.setattr(Potential, "log", lambda self, level: fit)
        return SWING(rng, sticks, point._replace(fit=fit), reference)


def effects_without_prior(rng, sticks, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sticks, "log_prior", lambda x: 0.0)
        return MOVE_EFFECTS(rng, sticks, *arguments)


def together_without_prior(rng, sticks, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sticks, "log_prior", lambda x: 0.0)
        return MOVE_TOGETHER(rng, sticks, *arguments)


def hardly_knowing(move):
    """A move of hyperparameters given psi by their priors, ten times as wide.

    Without any the variances' densities would have no integral.
    """

    def moved(rng, sticks, *arguments):
        def collapsed(sticks, x, rotated, features):
            right = COLLAPSE(sticks, x, rotated, features)
            return right._replace(log_density=right.log_density - 0.99 * sticks.log_prior(x))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(table_sticks, "collapse_rotated", collapsed)
            return move(rng, sticks, *arguments)

    return moved


def effects_of_psi(rng, sticks, point, reference):
    """As if a cell's level were its psi: the counts' scatter is taken for that of the cells."""
    level = 2.0 + 3.0 * point.level
    fit = table_sticks.log_likelihood(sticks, level, sticks.effect(point.x))
    moved = MOVE_EFFECTS(rng, sticks, point._replace(level=level, fit=fit), reference)
    return moved._replace(level=point.level)


def cells_too_wide(rng, sticks, level, var):
    return DRAW_CELLS(rng, sticks, level, 1.5 * var)


def levels_too_high(rng, sticks, x, psi):
    beta, level = DRAW_LEVEL(rng, sticks, x, psi)
    return beta, level + 1.0


def collapsed_without_beta(sticks, x, rotated, features):
    """The mean's coefficients are taken for known."""
    right = COLLAPSE(sticks, x, rotated, features)
    return right._replace(
        log_density=right.gaussian.log_density(rotated).sum() + sticks.log_prior(x)
    )


SWING, MOVE_EFFECTS = table_sticks.swing, table_sticks.move_effects
MOVE_TOGETHER = table_sticks.move_together
DRAW_CELLS, DRAW_LEVEL = table_sticks.draw_cells, table_sticks.draw_level
COLLAPSE = table_sticks.collapse_rotated
BROKEN = {
    "scatter that hardly knows its prior": patched(
        table_sticks, "scatter", hardly_knowing(table_sticks.scatter), NARROW
    ),
    "scales of f that hardly know their priors": patched(
        table_sticks, "move_smooth", hardly_knowing(table_sticks.move_smooth), NARROW
    ),
    "paths without counts": patched(table_sticks, "swing", swung_whatever),
    "effects without their prior": patched(
        table_sticks, "move_effects", effects_without_prior, NARROW
    ),
    "effects around another level": patched(table_sticks, "move_effects", effects_of_psi),
    "hyperparameters moved with u without their prior": patched(
        table_sticks, "move_together", together_without_prior, NARROW
    ),
    "cells that scatter more": patched(table_sticks, "draw_cells", cells_too_wide),
    "levels too high": patched(table_sticks, "draw_level", levels_too_high),
}


def test_geweke_refuses_variances_that_hardly_know_their_priors(monkeypatch):
    """Those of f, where length scales do not move: what moves then is another step."""
    monkeypatch.setattr(table_sticks, "scale_rate", lambda sticks: 0.0)
    broken = patched(table_sticks, "scatter", hardly_knowing(table_sticks.scatter), NARROW)
    statistics = {"v": lambda state, data: np.log(state.hyperparameters[:, :1])}
    rejects(check_geweke, broken, DATA, statistics=statistics, replicates=960)


def test_geweke_refuses_coefficients_taken_for_known():
    linear = replace(MODEL, mean="linear")  # the more of them, the plainer
    broken = patched(table_sticks, "collapse_rotated", collapsed_without_beta, linear)
    statistics = {"hyperparameters": lambda state, data: state.hyperparameters}
    rejects(check_geweke, broken, DATA, statistics=statistics, replicates=960)


@pytest.mark.parametrize("kind", BROKEN)
def test_geweke_refuses_broken_samplers(kind):
    rejects(check_geweke, BROKEN[kind], DATA, statistics=STATISTICS, replicates=960)


# ------------------------------------------------------------------ one move by itself


ALONE = replace(
    FIELD,
    covariance=Constant(1.0, priors={"var": LogNormal(1.0, 0.7)})
    * Matern(1.5, 1.0, priors={"length_scale": LogNormal(1.0, 0.7)}, active=[0])
    * Matern(0.5, 1.0, priors={"length_scale": LogNormal(1.0, 0.7)}, active=[1])
    + White(0.3, fixed=["var"]),
    mean=[-1.0],
)


def moved_alone(replicates=600, moves=5):
    """How `move_together` by itself changes a draw of everything, on average, over the error.

    Hyperparameters, levels and counts are a joint draw before the moves, and so they must be after
    them.
    """
    rng, changes = np.random.default_rng(3), []
    inputs = [[float(t), float(s)] for t in range(3) for s in range(3)]
    data = as_field(inputs, np.tile([0, 30], (9, 1)), order="given")
    (sticks,) = ALONE.table_sticks(data)
    free = np.ones(len(sticks.start), dtype=bool)
    for _ in range(replicates):
        x = ALONE.full_covariance(data).sample_log_params(rng)
        psi = sticks.sample(rng, x, sticks.trend.centre).psi
        _, level = table_sticks.draw_level(rng, sticks, x, psi)
        sticks.taken = rng.binomial(30, 1.0 / (1.0 + np.exp(-psi))).astype(float)
        mean, reference = sticks.mean(sticks.trend.centre), rough(sticks)
        fit = table_sticks.log_likelihood(sticks, level, sticks.effect(x))
        start = now = LevelDraw(x, mean, level, fit)
        for _ in range(moves):
            now = table_sticks.move_together(rng, sticks, now, reference, free)
        changes.append(_predicted_of(sticks, *now) - _predicted_of(sticks, *start))
    return np.sqrt(replicates) * np.mean(changes, axis=0) / (np.std(changes, axis=0) + 1e-12)


def _predicted_of(sticks, x, mean, level, fit):
    """Statistics that a move which is wrong changes."""
    gaussian = sticks.gaussian(x)
    squares = np.mean(gaussian.rotate(level - mean) ** 2 / np.maximum(gaussian.smooth, 1e-9))
    return np.array([*x, *x**2, squares, level.mean(), np.mean(level**2), fit.sum()])


def test_move_together_by_itself():
    assert np.abs(moved_alone()).max() < 4.0


def without_evidence(self, x, mean):
    gaussian = GAUSSIAN(self, x, mean)
    gaussian.log_evidence = 0.0
    return gaussian


GAUSSIAN = Potential.gaussian
BROKEN_ALONE = {
    "how likely hyperparameters are for the Gaussian": [(Potential, "gaussian", without_evidence)],
    "how they are proposed": [(Leaning, "log_density", lambda self, x: 0.0)],
    "what the Gaussian lacks": [
        (Potential, "log", lambda self, level: np.zeros(1)),
        (table_sticks, "log_likelihood", lambda sticks, level, var: np.zeros(1)),
    ],
}


@pytest.mark.parametrize("kind", BROKEN_ALONE)
def test_move_together_that_forgets_something_is_refused(kind, monkeypatch):
    for where, name, broken in BROKEN_ALONE[kind]:
        monkeypatch.setattr(where, name, broken)
    assert np.abs(moved_alone()).max() > 5.0


# ------------------------------------------------------------------ against the dense sampler


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_posterior_is_that_of_the_dense_sampler(monkeypatch):
    monkeypatch.undo()
    rng = np.random.default_rng(0)
    inputs = np.array([[t, s] for t in range(8) for s in range(4)], dtype=float)[2:]
    counts = rng.multinomial(30, [0.6, 0.38, 0.02], size=30)
    data = as_field(inputs, counts, new_inputs=[[9.0, 0.0], [9.0, 1.0], [11.5, 5.0], [4.0, 1.0]])
    found = {}
    for seed, (structure, num_draws) in enumerate({"separable": 600, "dense": 1200}.items()):
        model = replace(MODEL, structure=structure, mean="linear")
        keep = ["pi", "pi_new", "hyperparameters"]
        found[structure] = pgmult.sample(
            model, data, draws=num_draws, tune=100, chains=2, random_seed=seed, progressbar=False,
            keep=[*keep, "psi", "beta"],
        )  # fmt: skip
        predicted = found[structure].predict([[9.0, 0.0], [4.0, 1.0]]).mean
        np.testing.assert_allclose(
            predicted, found[structure]["pi_new"][..., [0, 3], :].mean(axis=(0, 1)), atol=0.03
        )
    for name in keep:
        for moment in (1, 2):
            draws = [np.sign(run[name]) * np.abs(run[name]) ** moment for run in found.values()]
            means = [each.mean(axis=(0, 1)) for each in draws]
            errors = [mcse_mean(each) for each in draws]
            assert (np.abs(means[0] - means[1]) < 4.5 * np.hypot(*errors)).all(), name
