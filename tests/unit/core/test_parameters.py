"""Dataclasses check themselves by their annotations."""

import inspect
import pickle
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from pgmult.core.parameters import Checked, Positive, axes_of, real, sizes_of, whole
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_finite, as_spd
from pgmult.priors import Dirichlet, NormalInverseWishart
from pgmult.sequences import MixedHMM
from pgmult.topics import LDA, CorrelatedTopics


@dataclass(frozen=True, slots=True, eq=False)
class Base(Checked):
    size: Annotated[int, whole(minimum=2)]
    scale: Positive = 1.0
    rate: Annotated[float, real(above=0.0, maximum=1.0)] | None = None
    flag: bool = True
    level: float = 0.0
    method: Literal["auto", "slice"] = "auto"
    words: Dirichlet | None = None
    anything: Any = None
    steps: list[str] = field(init=False, repr=False)

    def _complete(self) -> None:
        self._set(steps=[f"base {self.size}"])


@dataclass(frozen=True, slots=True, eq=False)
class Child(Base):
    more: "Annotated[int, whole(0, 9)]" = 0

    def _complete(self) -> None:
        self.steps.append(f"child {self.more}")


@dataclass(frozen=True, slots=True, eq=False)
class Law(Checked):
    mean: Annotated[FloatArray, as_finite, "dim"]
    cov: Annotated[FloatArray, as_spd, "dim", "dim"]
    rows: Annotated[FloatArray | None, as_finite, "...", "dim"] = None


@dataclass(frozen=True, slots=True, eq=False)
class State:
    psi: Annotated[FloatArray, "row", "stick"]
    level: float
    name: str = ""


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"size": 1}, "size must be at least 2, got 1"),
        ({"size": 2.0}, "size must be an integer, got 2.0"),
        ({"scale": 0.0}, "scale must be positive, got 0.0"),
        ({"scale": [1.0]}, "scale must be a number"),
        ({"rate": 1.5}, "rate must be at most 1, got 1.5"),
        ({"flag": 1}, "flag must be True or False"),
        ({"level": np.inf}, "level must be finite"),
        ({"method": "gibbs"}, "method must be one of auto, slice, got 'gibbs'"),
        ({"words": 3.0}, "words must be a Dirichlet, got 3.0"),
        ({"more": 10}, "more must be at most 9, got 10"),
    ],
)
def test_refuses_what_a_type_does_not_allow(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Child(**{"size": 3, **wrong})


def test_keeps_converted_values_and_completes_parents_first():
    made = Child(size=np.int64(3), scale=np.float64(2.0), rate=1, more=np.int8(4))
    assert [type(value) for value in (made.size, made.scale, made.rate, made.more)] == [
        int, float, float, int,
    ]  # fmt: skip
    assert made.steps == ["base 3", "child 4"]
    assert replace(made, size=5).steps == ["base 5", "child 4"]
    assert pickle.loads(pickle.dumps(made)).steps == made.steps


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mean": [0.0]}, r"cov must have shape \(1, 1\) to go with mean, got \(2, 2\)"),
        ({"mean": 0.0}, r"mean must have the axes \(dim\), got shape \(\)"),
        ({"rows": np.ones((4, 3))}, r"rows must have shape \(2\) to go with mean, got \(3,\)"),
        ({"rows": 1.0}, r"rows must have the axes \(dim\), got shape \(\)"),
        ({"cov": -np.eye(2)}, "cov must be positive definite"),
    ],
)
def test_axes_of_one_name_have_one_length(wrong, message):
    with pytest.raises(ValueError, match=message):
        Law(**{"mean": [0, 1], "cov": np.eye(2), "rows": np.ones((7, 4, 2)), **wrong})


def test_axes_and_sizes_of_states():
    assert axes_of(State) == {"psi": ("row", "stick"), "level": ()}
    assert sizes_of(State(np.zeros((4, 2)), 0.0)) == {"row": 4, "stick": 2}
    with pytest.raises(ValueError, match="psi must have the axes"):
        sizes_of(State(np.zeros(4), 0.0))
    with pytest.raises(ValueError, match=r"psi must have shape \(3, 1\) to go with psi"):
        sizes_of(State(np.zeros((3, 1)), 0.0), State(np.zeros((4, 1)), 0.0))


def test_signatures_show_types_without_checks():
    shown = inspect.signature(Base)
    assert list(shown.parameters) == [
        "size", "scale", "rate", "flag", "level", "method", "words", "anything",
    ]  # fmt: skip
    assert shown.parameters["size"].annotation is int
    assert shown.parameters["rate"].annotation == float | None
    assert shown.parameters["scale"].default == 1.0


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (CorrelatedTopics(30), "CorrelatedTopics(num_topics=30)"),
        (LDA(2, alpha=[1.0, 2.0]), "LDA(num_topics=2, alpha=[1.0, 2.0])"),
        (MixedHMM(3, inputs="both"), "MixedHMM(num_states=3, inputs='both')"),
        (MixedHMM(3, stickiness=0.5), "MixedHMM(num_states=3, stickiness=0.5)"),
        (
            CorrelatedTopics(30, gaussian=NormalInverseWishart.weak(np.ones(29))),
            "CorrelatedTopics(num_topics=30, gaussian=NormalInverseWishart(mean=<29 array>,"
            " strength=1.0, dof=31.0, scale=<29 x 29 array>))",
        ),
    ],
)  # fmt: skip
def test_models_print_what_differs_from_their_defaults(model, text):
    assert repr(model) == text
    assert repr(model) == repr(replace(model))
