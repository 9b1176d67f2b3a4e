"""A user's derivatives are looked at before they are used."""

from dataclasses import dataclass

import numpy as np
import pytest
from gaussian_targets import PoissonLogNormal, TwoHumps

from examples.papers.wang2013.derivatives import check_derivatives
from examples.papers.wang2013.laplace import fit_delta, fit_laplace
from examples.papers.wang2013.nonconjugate import fit_nonconjugate

COV = np.array([[1.5, 0.7, 0.0], [0.7, 2.0, -0.4], [0.0, -0.4, 0.8]])
COUNTS = np.random.default_rng(0).poisson(4.0, size=(30, 3))
RIGHT = PoissonLogNormal(COUNTS, [0.3, -0.5, 1.0], COV)
START = np.random.default_rng(1).normal(size=(30, 3))


class Changed:
    """The right objectives with one method that answers something else."""

    def __init__(self, method, change):
        for name in dir(RIGHT):
            if not name.startswith("_"):
                setattr(self, name, getattr(RIGHT, name))
        right = getattr(RIGHT, method)
        setattr(self, method, lambda *arguments: change(right(*arguments), *arguments))


def off(entry, by):
    def change(answer, *arguments):
        answer = answer.copy()
        answer[(..., *entry)] += by
        return answer

    return change


MUTANTS = {
    "a value that forgot its prior": (
        Changed("value", lambda v, theta, rows: (COUNTS[rows] * theta - np.exp(theta)).sum(axis=1)),
        r"gradient must be the derivative of value: entry 0 of row 0 is",
    ),
    "a gradient with the wrong sign": (Changed("gradient", lambda g, *_: -g), "gradient must be"),
    "a gradient of the prior twice": (
        Changed("gradient", lambda g, theta, rows: g - (theta - RIGHT.mean) @ RIGHT.precision),
        "gradient must be the derivative of value",
    ),
    "one entry of a gradient": (
        Changed("gradient", off((2,), 0.05)),
        "gradient must be the derivative of value: entry 2 of row 0 is",
    ),
    "a gradient that is nan": (
        Changed("gradient", off((1,), np.nan)),
        "gradient must be .* entry 1 of row 0 is nan, and finite differences give",
    ),
    "a precision for a Hessian": (Changed("hessian", lambda h, *_: -h), "hessian must be"),
    "one entry of a Hessian": (
        Changed("hessian", off((1, 2), 0.01)),
        "hessian must be the derivative of gradient: entry 1, 2 of row 0 is",
    ),
    "a Hessian without the likelihood": (
        Changed("hessian", lambda h, *_: np.zeros_like(h) - RIGHT.precision),
        "hessian must be the derivative of gradient: entry 0, 0 of row 0 is",
    ),
    "one value for all rows": (
        Changed("value", lambda v, *_: v.sum()),
        r"value must return an array of shape \(8,\) for a start of 8 rows .*, got \(\)",
    ),
    "a column of values": (
        Changed("value", lambda v, *_: v[:, None]),
        r"value must return an array of shape \(8,\) for a start of 8 rows .*, got \(8, 1\)",
    ),
    "a Hessian that is its diagonal": (
        Changed("hessian", lambda h, *_: np.diagonal(h, axis1=1, axis2=2)),
        r"hessian must return an array of shape \(8, 3, 3\) for a start of .*, got \(8, 3\)",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.parametrize("fit", [fit_laplace, fit_delta])
def test_what_is_wrong_is_named(name, fit):
    objectives, match = MUTANTS[name]
    with pytest.raises(ValueError, match=f"objectives.{match}"):
        fit(objectives, START)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e8])
@pytest.mark.parametrize("far", [-40.0, 0.0, 12.0, 300.0])
def test_right_ones_pass_whatever_their_scale_and_wherever_they_start(scale, far):
    """Of the functions and of the start; beside a large constant, and at a saddle."""

    class Scaled:
        def __getattr__(self, name):
            shift = 1e6 * scale if name == "value" else 0.0
            return lambda *arguments: scale * getattr(RIGHT, name)(*arguments) + shift

    check_derivatives(Scaled(), START + far)
    check_derivatives(TwoHumps(), np.array([[0.0], [min(far, 40.0)]]))


@dataclass
class Gamma:
    """shape log x - x / scale: defined for x > 0, and as sharp as `scale` is small."""

    scale: float

    def value(self, theta, rows):
        return 3.0 * np.log(theta[:, 0]) - theta[:, 0] / self.scale

    def gradient(self, theta, rows):
        return 3.0 / theta - 1.0 / self.scale

    def hessian(self, theta, rows):
        return (-3.0 / theta**2)[:, :, None]


@pytest.mark.parametrize("scale", [1e-9, 1e-6, 1e-4, 1e-2, 1.0, 1e6])
def test_functions_with_edges_pass(scale):
    """Where differences cannot be told from the edge nothing is known, and nothing refused."""
    with np.errstate(invalid="ignore", divide="ignore"):
        check_derivatives(Gamma(scale), scale * np.array([[0.1], [2.9], [3.0], [30.0]]))


def test_an_edge_does_not_hide_a_wrong_hessian():
    class Wrong(Gamma):
        def hessian(self, theta, rows):
            return (-2.0 / theta**2)[:, :, None]

    with pytest.raises(ValueError, match="hessian must be"):
        check_derivatives(Wrong(1.0), np.array([[1e-7], [0.5]]))


def test_nodes_are_named(monkeypatch):
    class OneNode:
        def __init__(self, objectives):
            self.asked = objectives

        def objectives(self, node, gaussians, rest):
            return self.asked

        def update_rest(self, gaussians, rest):
            return rest

        def log_joint(self, gaussians, rest):
            return 0.0

    wrong = Changed("gradient", off((0,), 1.0))
    with pytest.raises(ValueError, match=r"objectives of 'eta'.gradient must be the derivative"):
        fit_nonconjugate(OneNode(wrong), {"eta": START}, None)
    assert fit_nonconjugate(OneNode(RIGHT), {"eta": START}, None).converged


def test_derivatives_are_looked_at_once_and_in_few_rows():
    class Counting(PoissonLogNormal):
        asked = 0

        def value(self, theta, rows):
            Counting.asked += len(rows)
            return super().value(theta, rows)

    many = np.random.default_rng(2).poisson(3.0, size=(5000, 3))
    check_derivatives(Counting(many, [0.0, 0.0, 0.0], COV), np.zeros((5000, 3)))
    assert Counting.asked == 8 * (1 + 2 * 2 * 3)
    check_derivatives(Gamma(1.0), np.ones((0, 1)))
