"""Every answer of every verb has a table, a figure, a plot and draws."""

import types
from importlib import import_module
from typing import get_args, get_type_hints

import numpy as np
import pytest

from pgmult.core.answers import Answer
from pgmult.core.checks import PredictiveChecks
from pgmult.core.comparison import Comparison
from pgmult.core.estimands import Estimand
from pgmult.core.figures.base import Figure
from pgmult.core.figures.pairs import HeatMap
from pgmult.core.figures.shares import Raster, Stack
from pgmult.core.figures.tiles import Tiles
from pgmult.core.scores import Score
from pgmult.sampling.summary import Summary

FAMILIES = ("topics", "fields", "sequences", "regression", "choice")
NO_NUMBERS = {"report", "export", "refit", "merge"}  # a page, files, other runs

# What answers lack that rooms have not yet completed: class -> attributes.
LACKING = {"Imputed": {"figure"}, "TopWord": {"table", "figure", "draws"}}


def verbs():
    for name in FAMILIES:
        family = getattr(import_module(f"pgmult.{name}.family"), name.upper())
        yield from ((name, word, verb.load()) for word, verb in family.verbs.items())


def answers_of(function):
    """The classes that a function returns, by its annotation."""
    module = import_module(function.__module__)
    kind = get_type_hints(function, vars(module) | {"Any": object})["return"]
    kinds = get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    return set(map(_inner, kinds))


def _inner(kind):
    """What lists are of."""
    while get_args(kind):
        kind = get_args(kind)[0]
    return kind


ANSWERS = {
    (name, word): kinds
    for name, word, function in verbs()
    if word not in NO_NUMBERS
    for kinds in [answers_of(function)]
}


def lacks(kind):
    """What a class of answers does not state."""
    if not issubclass(kind, Answer):
        return {"table", "figure", "draws"}
    stated = {
        name
        for base in kind.__mro__
        if base not in (Answer, object)
        for name in (*vars(base), *getattr(base, "__annotations__", ()))
    }
    return {"table", "figure", "draws"} - stated


@pytest.mark.parametrize("verb", ANSWERS, ids=".".join)
def test_every_verb_returns_an_answer_with_a_table_a_figure_and_draws(verb):
    for kind in ANSWERS[verb]:
        assert lacks(kind) <= LACKING.get(kind.__name__, set()), kind.__name__


def test_the_list_of_what_lacks_shrinks():
    kinds = {kind.__name__: lacks(kind) for kinds in ANSWERS.values() for kind in kinds}
    done = {name for name, what in LACKING.items() if not what <= kinds.get(name, set())}
    assert not done, f"these have what they lacked; take it out of the list: {done}"


def shares():
    draws = np.random.default_rng(0).dirichlet([5.0, 3.0, 2.0], size=(50, 2))
    return Estimand(draws, ("year", "name"), {"year": [1999, 2000], "name": ["Ada", "Ben", "Cy"]})


def checks():
    pairs = [({"mean": 1.0, "most": 3.0}, {"mean": 1.0 + 0.1 * i, "most": 3.0}) for i in range(9)]
    return PredictiveChecks.of(pairs, {"mean": ("More.", "Less."), "most": ("More.", "Less.")})


def compared():
    units = np.linspace(-2.0, -1.0, 8)
    totals = np.ones(8, dtype=np.int64)
    scores = {"this model": Score(units, totals), "shares": Score(units - 0.5, totals)}
    return Comparison.of(scores, "a count", "Made up.")


def summed_up():
    values = np.random.default_rng(0).normal(size=(2, 30, 3))
    columns = {name: values.mean(axis=(0, 1)) for name in ("mean", "5%", "95%")}
    return Summary(
        ("a[0]", "a[1]", "b"), ("a", "a", "b"), columns, (), (values[..., :2], values[:, :9, 2:])
    )


@pytest.mark.parametrize("make", [shares, checks, compared, summed_up])
def test_the_answers_of_all_families_are_drawn_and_told(make):
    pytest.importorskip("matplotlib")
    answer = make()
    assert isinstance(answer.figure(), Figure)
    assert "<" in answer.figure().svg()
    assert answer.plot().figure is not None
    assert len(answer.table()) > 0
    assert np.asarray(answer.draws).ndim >= 2
    assert "<table" in answer.section("A title").html()


def test_rows_with_fewer_draws_end_in_nan():
    draws = summed_up().draws
    assert draws.shape == (60, 3)
    assert np.isfinite(draws[:, :2]).all()
    assert np.isnan(draws[18:, 2]).all()
    assert np.isfinite(draws[:18, 2]).all()


FIGURES = {
    "heat map": HeatMap(np.eye(3), list("abc"), list("xyz"), "identity", "column", "row", "Heat."),
    "stack": Stack(
        np.array([[0.2, 0.3], [0.5, 0.5]]), ["a", "b"], "stack",
        seen=np.array([0, -1]), divider=1.0, tick_text=str,
    ),
    "raster": Raster([np.array([0, 0, 1, -2]), np.array([-1, 1])], ["one", "two"], ["a", "b"], ""),
    "tiles": Tiles({"NY": (0.2, 0.1, 0.3)}, "map"),
}  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_on_pages_and_by_matplotlib(name):
    pytest.importorskip("matplotlib")
    assert FIGURES[name].svg().count("<svg") >= 1
    axes = FIGURES[name].plot()
    axes.figure.canvas.draw()
    assert axes.has_data()
