"""A run answers what its family can answer for it, and says why it cannot answer the rest."""

import ast
import copy
import inspect
import textwrap

import numpy as np
import pytest

from pgmult.choice.family import CHOICE
from pgmult.core.family import Family, Verb
from pgmult.fields.family import FIELDS
from pgmult.regression.family import REGRESSION
from pgmult.sampling.origin import Origin
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.family import SEQUENCES
from pgmult.topics.family import TOPICS

FAMILIES = [TOPICS, SEQUENCES, FIELDS, REGRESSION, CHOICE]


def width(run, times=1):
    """How many entries."""
    return times * run["mu"].shape[2]


TOYS = Family(
    "toys",
    {
        "width": Verb(f"{__name__}:width", keeps=("mu", "nu")),
        "height": Verb(f"{__name__}:width", models=("Tower",)),
        "depth": Verb(f"{__name__}:width", keeps=("depths",)),
    },
)


class Toy:
    family = TOYS


class Tower(Toy):
    pass


def run_of(model):
    draws = {"mu": np.zeros((2, 3, 4))}
    return Posterior(draws, origin=Origin(model, None, None))


def test_answers_are_methods_of_a_run():
    run = run_of(Toy())
    assert run.width(times=2) == 8
    assert str(inspect.signature(run.width)) == "(times=1)"
    assert run.width.__doc__ == "How many entries."
    assert "width" in dir(run)
    assert run_of(Tower()).height() == 4


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("height", "it takes a run of Tower, got Toy"),
        ("depth", r"must have kept depths \(name it in keep=\)"),
        ("weight", r"no attribute 'weight' \(of toys: width, height, depth\)"),
    ],
)
def test_what_a_run_cannot_answer_is_not_offered(word, why):
    run = run_of(Toy())
    assert word not in dir(run)
    assert not hasattr(run, word)
    with pytest.raises(AttributeError, match=why):
        getattr(run, word)


@pytest.mark.parametrize("run", [run_of(object()), Posterior({"mu": np.zeros((1, 2))})])
def test_draws_without_a_family_have_no_answers(run):
    with pytest.raises(AttributeError, match=r"no attribute 'width'$"):
        _ = run.width
    assert "width" not in dir(run)
    assert copy.deepcopy(run)["mu"].shape == run["mu"].shape


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_word_of_a_family_is_a_function_of_a_run(family):
    common = {"predict"} if family is REGRESSION else {"predict", "check", "compare", "report"}
    assert common <= set(family.verbs)
    for word, verb in family.verbs.items():
        assert word not in dir(Posterior), "a posterior has this word already"
        needed = [
            p.name
            for p in list(inspect.signature(verb.load()).parameters.values())[1:]
            if p.default is p.empty and p.kind is not p.VAR_KEYWORD
        ]
        assert "data" not in needed, f"{word} must find the data in the run"


def test_type_checkers_know_the_words_of_all_families():
    tree = ast.parse(textwrap.dedent(inspect.getsource(Posterior)))
    aliases = [node.targets for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    known = {name.id for targets in aliases for name in targets if isinstance(name, ast.Name)}
    assert set().union(*(family.verbs for family in FAMILIES)) <= known
