"""The examples in docstrings of what papers bring along."""

import doctest
from importlib import import_module

import pytest

MODULES = [
    f"hensman2012.{name}"
    for name in ("alignments", "collapsed", "estimator", "expression", "mixture_gibbs", "problems")
]
PAPER = "field_baselines field_scores gaussian_lds newborns softmax_gp translation vectors"
MODULES += [f"linderman2015.{name}" for name in PAPER.split()]
MODULES += ["regressions.bounds", "wang2013.language_model"]
COMPILES = pytest.param("linderman2015.logistic_normal_lds", marks=pytest.mark.slow)  # particles


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")  # they are short on purpose
@pytest.mark.parametrize("name", [*MODULES, COMPILES])
def test_docstrings(name):
    assert doctest.testmod(import_module(f"examples.papers.{name}")).failed == 0
