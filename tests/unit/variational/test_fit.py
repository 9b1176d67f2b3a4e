"""Every fit without sampling answers the same questions."""

import re
from dataclasses import replace

import numpy as np
import pytest
from gaussian_targets import PoissonLogNormal

from examples.papers.hensman2012.collapsed import natural_cg
from examples.papers.hensman2012.problems import GaussianMixtureProblem
from examples.papers.knowles2011.probit import fit_probit_regression
from examples.papers.regressions.data import as_counted_rows, as_labelled_rows
from examples.papers.regressions.logistic import GroupedLogisticRegression, LogisticRegression
from examples.papers.regressions.logistic_fits import (
    fit_grouped_logistic_regression,
    fit_logistic_regression,
)
from examples.papers.regressions.multinomial_fits import (
    fit_softmax_regression,
    fit_stick_breaking_regression,
)
from examples.papers.wang2013.language_model import fit_language_model
from examples.papers.wang2013.laplace import expand, fit_delta, fit_laplace
from examples.papers.wang2013.nonconjugate import fit_nonconjugate
from examples.papers.wang2013.variational_ctm import fit_ctm
from pgmult.priors import MvNormal
from pgmult.topics.fits.stick_breaking import fit_cavi, fit_svi
from pgmult.topics.models.correlated import CorrelatedTopics
from pgmult.topics.models.logistic_normal import LogisticNormalTopics
from pgmult.variational import LogisticSite, fit_sites
from pgmult.variational.ascent import Fit

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(3.0, size=(6, 2))
TARGET = PoissonLogNormal(COUNTS, [0.5, 1.0], np.array([[1.0, 0.3], [0.3, 1.0]]))
START = np.zeros((6, 2))
X = RNG.normal(size=(40, 2))
Y = (X[:, 0] + RNG.logistic(size=40) > 0.0).astype(int)
LABELLED = as_labelled_rows(X, Y, groups=np.arange(40) % 4)
COUNTED = as_counted_rows(X, RNG.multinomial(4, [0.5, 0.3, 0.2], size=40))
PRIOR = MvNormal(np.zeros(2), np.eye(2))
WORDS = RNG.poisson(0.7, size=(12, 15))


class OneNode:
    def objectives(self, node, gaussians, rest):
        return TARGET

    def update_rest(self, gaussians, rest):
        return rest

    def log_joint(self, gaussians, rest):
        theta = gaussians["theta"]
        curve = np.einsum("rij,rji->r", TARGET.hessian(theta.mean, np.arange(6)), theta.cov)
        return float((TARGET.value(theta.mean, np.arange(6)) + 0.5 * curve).sum())


def nonconjugate(method):
    return fit_nonconjugate(OneNode(), {"theta": START}, None, method=method)


# how it is made, its method and whether it bounds
FITS = {
    "fit_laplace": (lambda: fit_laplace(TARGET, START), "laplace", False),
    "fit_delta": (lambda: fit_delta(TARGET, START), "delta", False),
    "fit_delta, diagonal": (
        lambda: fit_delta(TARGET, START, diagonal=True), "diagonal_delta", False,
    ),
    "expand": (lambda: expand(TARGET, START), "previous_mean", False),
    **{
        f"fit_nonconjugate, {name}": (lambda name=name: nonconjugate(name), name, False)
        for name in ("laplace", "delta", "diagonal_delta", "previous_mean")
    },
    **{
        f"fit_logistic_regression, {name}": (
            lambda name=name: fit_logistic_regression(
                LogisticRegression(PRIOR), LABELLED, method=name
            ),
            name,
            name in ("jaakkola_jordan", "quadrature"),
        )
        for name in ("laplace", "delta", "jaakkola_jordan", "quadrature")
    },
    "fit_grouped_logistic_regression": (
        lambda: fit_grouped_logistic_regression(
            GroupedLogisticRegression(PRIOR, 6.0, np.eye(2)), LABELLED, method="jaakkola_jordan"
        ),
        "jaakkola_jordan",
        True,
    ),
    "fit_sites": (
        lambda: fit_sites(X, LogisticSite(Y, np.ones(40)), PRIOR), "sites", False,
    ),
    **{
        f"fit_softmax_regression, {name}, {covariance}": (
            lambda name=name, covariance=covariance: fit_softmax_regression(
                COUNTED, method=name, covariance=covariance
            ),
            name,
            name == "tilted",
        )
        for name, covariance in [
            ("tilted", "class"), ("taylor", "class"), ("tilted", "full"), ("laplace", "full"),
        ]
    },
    "fit_stick_breaking_regression": (
        lambda: fit_stick_breaking_regression(COUNTED), "jaakkola_jordan", True,
    ),
    "fit_probit_regression": (lambda: fit_probit_regression(COUNTED), "probit", True),
    "natural_cg": (
        lambda: natural_cg(GaussianMixtureProblem(X, 2), random_seed=0, method="vbem"),
        "vbem",
        True,
    ),
    "fit_cavi": (
        lambda: fit_cavi(CorrelatedTopics(2, start_sweeps=5), WORDS, random_seed=0), "cavi", True,
    ),
    "fit_svi": (
        lambda: fit_svi(
            CorrelatedTopics(2, start_sweeps=5), WORDS, random_seed=0, batch_size=4, max_epochs=5,
            tolerance=0.5,
        ),
        "svi",
        False,
    ),
    "fit_ctm": (
        lambda: fit_ctm(LogisticNormalTopics(2), WORDS, random_seed=0, start_sweeps=5),
        "laplace",
        False,
    ),
    "fit_language_model": (lambda: fit_language_model(WORDS, tolerance=1e-4), "laplace", False),
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name.startswith("fit_ctm") else ())
        for name in FITS
    ],
)
def test_every_fit_answers(name):
    make, method, is_bound = FITS[name]
    fit = make()
    assert isinstance(fit, Fit)
    assert (fit.method, fit.is_bound, fit.converged) == (method, is_bound, True)
    assert type(fit.objective) is float
    assert np.isfinite(fit.objective)
    assert type(fit.num_iterations) is int
    assert fit.num_iterations >= 1
    history = getattr(fit, "history", None)
    if history is not None:
        assert history[-1] == fit.objective
        assert len(history) - fit.num_iterations == (name == "natural_cg")
        if is_bound:
            assert (np.diff(history) >= -1e-9 * np.abs(history[1:])).all()


def test_a_row_that_has_not_converged_is_enough_to_say_no():
    fit = fit_laplace(TARGET, START)
    some = replace(fit, row_converged=np.arange(6) > 0)
    assert not some.converged
    assert not fit_laplace(TARGET, START, max_iterations=1).converged


@pytest.mark.parametrize("diagonal", [False, True])
def test_levels_of_rows_are_what_they_say(diagonal):
    """Laplace's integral of exp f, and the delta method's expectation of f and entropy."""
    rows = np.arange(6)
    q = fit_laplace(TARGET, START)
    precision = -TARGET.hessian(q.mean, rows)
    integral = TARGET.value(q.mean, rows) + np.log(2.0 * np.pi)
    np.testing.assert_allclose(q.level, integral - 0.5 * np.linalg.slogdet(precision)[1])
    q = fit_delta(TARGET, START, diagonal=diagonal)
    curve = np.einsum("rij,rji->r", TARGET.hessian(q.mean, rows), q.cov)
    expected = TARGET.value(q.mean, rows) + 0.5 * curve + q.entropy()
    np.testing.assert_allclose(q.level, expected, rtol=1e-9)
    assert q.objective == pytest.approx(expected.sum())


def test_one_node_without_a_rest_has_the_objective_of_its_rows():
    fit, q = nonconjugate("delta"), fit_delta(TARGET, START)
    assert fit.objective == pytest.approx(q.objective, rel=1e-9)


# a front door with a method that is misspelt, and the names it should list
MISSPELT = {
    "fit_nonconjugate": (
        lambda: nonconjugate("newton"), "laplace, delta, diagonal_delta, previous_mean",
    ),
    "natural_cg": (
        lambda: natural_cg(GaussianMixtureProblem(X, 2), method="newton"),
        "fletcher_reeves, hestenes_stiefel, polak_ribiere, vbem, squarem",
    ),
    "fit_logistic_regression": (
        lambda: fit_logistic_regression(LogisticRegression(PRIOR), LABELLED, method="newton"),
        "laplace, delta, jaakkola_jordan, quadrature",
    ),
    "fit_stick_breaking_regression": (
        lambda: fit_stick_breaking_regression(COUNTED, method="newton"),
        "laplace, delta, jaakkola_jordan, quadrature",
    ),
    "fit_softmax_regression": (
        lambda: fit_softmax_regression(COUNTED, method="newton"),
        "log, tilted, quadratic, bohning, taylor, adaptive, quadrature",
    ),
    "fit_softmax_regression, full": (
        lambda: fit_softmax_regression(COUNTED, method="newton", covariance="full"),
        "log, tilted, quadratic, bohning, taylor, adaptive, quadrature, laplace",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISSPELT)
def test_a_misspelt_method_is_answered_by_all_names(name):
    call, names = MISSPELT[name]
    with pytest.raises(ValueError, match=re.escape(f"must be one of {names}, got ") + "'?newton"):
        call()
