"""The sampler of `LogisticNormalLDS` is right, and the harness refuses it when it is broken."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest

from examples.papers.linderman2015 import logistic_normal_lds as module
from examples.papers.linderman2015.logistic_normal_lds import LogisticNormalLDS
from pgmult.priors import NormalInverseWishart
from pgmult.sequences import as_sequences
from pgmult.testing import check_geweke, check_model, mutant, rejects

pytestmark = pytest.mark.slow

MODEL = LogisticNormalLDS(
    state_dim=1,
    num_particles=3,
    start=NormalInverseWishart(np.array([2.0]), 5.0, 8.0, np.array([[2.0]])),
    offset_var=2.0,
    loading_shape=4.0,
    loading_scale=12.0,
)
DATA = as_sequences(  # totals are all that is used
    [np.array([[9, 0, 0], [0, 6, 0], [0, 0, 0], [0, 3, 6]]), np.array([[4, 0, 0], [0, 8, 1]])]
)
FIELDS = [
    "states", "transition", "noise_cov", "initial_mean", "initial_cov", "loadings", "offset",
    "loading_var",
]  # fmt: skip


def statistics(model):
    """Everything but `moved`, which says what the last sweep did; and what ties states to data."""
    return {
        **{name: lambda s, d, name=name: getattr(s, name) for name in FIELDS},
        "log_likelihood": model.log_likelihood,
        "fit": lambda s, d: (d.to_csr().toarray() * (s.states @ s.loadings.T)).sum(),
        "level": lambda s, d: d.to_csr().toarray().sum(axis=0) @ s.offset,
    }


def test_counts():
    check_model(MODEL, DATA, statistics=statistics(MODEL), replicates=700)


def test_symbols_and_two_dimensions():
    model = replace(MODEL, state_dim=2, start=None)
    symbols = as_sequences([[0, 1, -1, 2], [1, 1]], num_symbols=3)
    check_model(model, symbols, statistics=statistics(model), replicates=500)


def with_paths(change):
    """`sample_paths` with a changed draw, data or states."""
    right = module.sample_paths

    def broken(rng, draw, data, states, num_particles):
        return right(rng, *change(draw, data, states), num_particles)

    return broken


BROKEN_PATHS = {
    "offset ignored": lambda draw, data, x: (
        draw._replace(offset=np.zeros_like(draw.offset)), data, x,
    ),
    "transition with the wrong sign": lambda draw, data, x: (
        draw._replace(transition=-draw.transition), data, x,
    ),
    "precision for covariance": lambda draw, data, x: (
        draw._replace(noise_cov=np.linalg.inv(draw.noise_cov)), data, x,
    ),
    "first states from nowhere": lambda draw, data, x: (
        draw._replace(initial_mean=np.zeros(1), initial_cov=np.eye(1)), data, x,
    ),
    "one sequence": lambda draw, data, x: (
        draw, replace(data, offsets=data.offsets[[0, -1]]), x,
    ),
    "reference path dropped": lambda draw, data, x: (draw, data, np.zeros_like(x)),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN_PATHS)
def test_broken_paths_are_refused(kind, monkeypatch):
    monkeypatch.setattr(module, "sample_paths", with_paths(BROKEN_PATHS[kind]))
    # sequences run together may be driven where no particle has a weight, and are refused there
    refusal = FloatingPointError if kind == "one sequence" else ()
    with contextlib.suppress(refusal):
        rejects(check_geweke, MODEL, DATA, statistics=statistics(MODEL), replicates=700)


def stale_states(rng, data, design, rows, precision):
    return right_rows(rng, data, np.roll(design, 1, axis=0), rows, precision)


def no_prior(rng, data, design, rows, precision):
    return right_rows(rng, data, design, rows, np.full_like(precision, 0.1))


def no_shift_prior(rng, data, design, rows, precision):
    new = right_rows(rng, data, design, rows, precision)
    return new - new.mean(axis=0)


right_rows = module.sample_softmax_rows


@pytest.mark.parametrize("broken", [stale_states, no_prior, no_shift_prior])
def test_broken_rows_are_refused(broken, monkeypatch):
    monkeypatch.setattr(module, "sample_softmax_rows", broken)
    rejects(check_geweke, MODEL, DATA, statistics=statistics(MODEL), replicates=700)


def test_inverted_variances_are_refused():
    broken = mutant(
        MODEL,
        step=lambda self, rng, state, data: MODEL.step(
            rng, replace(state, loading_var=1.0 / state.loading_var), data
        ),
    )
    rejects(check_geweke, broken, DATA, statistics=statistics(MODEL), replicates=700)
