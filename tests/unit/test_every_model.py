"""What holds for every model, whatever its data: one contract."""

import dataclasses
import pickle
from functools import cache

import numpy as np
import pytest
from every_model import MODELS
from same_draws import (
    arrays,
    check_shards_do_not_matter,
    check_threads_do_not_matter,
    forget_a_block,
)
from scipy.special import xlogy

import pgmult
from pgmult.core.typing import absent_of, coords_of, traits_of, variable
from pgmult.sampling.blocks import as_block_model, num_rows
from pgmult.sampling.codec import decode, encode

# Variants, whose names have a second word, and models whose code nothing else that is quick needs.
SLOW = {"DynamicTopics"} | {name for name in MODELS if " " in name}


def of_models(names):
    return pytest.mark.parametrize(
        "name",
        [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in names],
    )


every_model = of_models(MODELS)
pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")


def is_in_blocks(name):
    """Is a sweep of this model made of blocks of rows?"""
    try:
        as_block_model(MODELS[name]()[0])
    except (TypeError, ValueError):
        return False
    return True


def in_small_blocks(name):
    """The model with some ten blocks, and its data."""
    model, data = MODELS[name]()
    rows = num_rows(model, model.init(np.random.default_rng(0), data), data)
    return dataclasses.replace(model, block_rows=max(1, rows // 10)), data


FEW_ROWS = "MultinomialLDS"  # see the tests of that model
IN_BLOCKS = [name for name in MODELS if not name.startswith(FEW_ROWS) and is_in_blocks(name)]

WITH_THETA = [name for name in MODELS if "Topics" in name]


@cache
def made(name):
    """A model and its data, which keep what was found for them at once."""
    return MODELS[name]()


@cache
def swept(name, seed=1):
    """A model, its data and a state after some sweeps."""
    model, data = made(name)
    rng = np.random.default_rng(seed)
    state = model.init(rng, data)
    for _ in range(2):
        state = model.step(rng, state, data)
    return model, data, state


@every_model
def test_same_seed_same_draws_for_any_number_of_threads(name):
    check_threads_do_not_matter(*MODELS[name]())


@of_models(IN_BLOCKS)
def test_shards_do_not_matter(name):
    model, data = in_small_blocks(name)
    check_shards_do_not_matter(model, data)


@every_model
def test_sweeps_move_all_that_the_prior_draws(name):
    """Two chains differ in every number of the state that two draws from the prior differ in."""
    model, data, one = swept(name)
    other = swept(name, 2)[2]
    rngs = [np.random.default_rng(seed) for seed in (3, 4)]
    drawn, again = (arrays(model.prior(rng, data)) for rng in rngs)
    for field, value in arrays(one).items():
        if value.dtype.kind == "f" and not np.array_equal(drawn[field], again[field]):
            assert not np.array_equal(value, arrays(other)[field]), field


@every_model
def test_a_sweep_changes_neither_its_state_nor_the_data(name):
    model, data, state = swept(name)
    before = pickle.dumps((state, data))
    model.step(np.random.default_rng(4), state, data)
    assert pickle.dumps((state, data)) == before


@every_model
def test_declared_axes_fit_variables_and_labels(name):
    """Every variable has the axes that the model says, of one length each, and labels fit."""
    model, data, state = swept(name)
    sizes = {axis: len(labels) for axis, labels in coords_of(model, data).items()}
    absent = absent_of(model, data)
    assert set(traits_of(model).default_keep) <= set(model.dims)
    for key, axes in model.dims.items():
        if key in absent:
            continue
        shape = np.shape(variable(model, state, data, key))
        assert len(shape) == len(axes), key
        for axis, size in zip(axes, shape, strict=True):
            assert sizes.setdefault(axis, size) == size, (key, axis)


@every_model
def test_model_data_and_state_survive_being_written(name):
    """Encoded as JSON and arrays and decoded they continue to the same bits."""
    model, data, state = swept(name)
    stored = {}
    tree = encode((model, data, state), stored)
    again = decode(tree, stored)
    mine, theirs = np.random.default_rng(7), np.random.default_rng(7)
    expected, found = model.step(mine, state, data), again[0].step(theirs, again[2], again[1])
    for field, value in arrays(expected).items():
        np.testing.assert_array_equal(arrays(found)[field], value, err_msg=field)


@every_model
def test_the_log_likelihood_is_a_number_that_the_state_moves(name):
    model, data, state = swept(name)
    other = swept(name, 2)[2]
    values = [model.log_likelihood(one, data) for one in (state, other)]
    assert np.isfinite(values).all()
    assert values[0] != values[1]


@of_models(WITH_THETA)
def test_rows_of_topic_models_add_up_to_the_log_likelihood(name):
    """Words are drawn from theta @ topics, by the topics of the document's own time or group."""
    model, data, state = swept(name)
    kept = set(model.dims) - absent_of(model, data)
    draw = {key: variable(model, state, data, key) for key in kept}
    probs = model.row_probs(draw, data)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    total = xlogy(model.observed_rows(data).counts, probs).sum()
    assert model.log_likelihood(state, data) == pytest.approx(total, rel=1e-9)
    with pytest.raises(ValueError, match="must have kept"):
        model.row_probs({"effective_topics": draw["effective_topics"]}, data)


@every_model
def test_odd_generators_are_refused_by_the_driver(name):
    model, data = made(name)
    with pytest.raises(TypeError, match="random_seed must be an integer or None"):
        pgmult.sample(model, data, draws=1, tune=0, chains=1, random_seed="one", progressbar=False)


def test_a_forgotten_block_is_noticed(monkeypatch):
    """The check of shards refuses a sweep that leaves out what one block says."""
    model, data = in_small_blocks("CorrelatedTopics")
    forget_a_block(monkeypatch)
    with pytest.raises(AssertionError):
        check_shards_do_not_matter(model, data)
