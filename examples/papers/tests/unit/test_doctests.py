"""The examples in docstrings of what papers bring along."""

import doctest
from importlib import import_module

import pytest

MODULES = [
    f"hensman2012.{name}"
    for name in ("alignments", "collapsed", "estimator", "expression", "mixture_gibbs", "problems")
]
PAPER = "field_baselines field_scores gaussian_lds logistic_normal_lds newborns softmax_gp"
MODULES += [f"linderman2015.{name}" for name in [*PAPER.split(), "translation", "vectors"]]
MODULES += ["regressions.bounds", "wang2013.language_model"]


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")  # they are short on purpose
@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    assert doctest.testmod(import_module(f"examples.papers.{name}")).failed == 0
