"""Hyperparameters of a multinomial Gaussian process by Monte Carlo EM (empirical Bayes)."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from pgmult.core.arguments import as_kind, as_seed
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import FloatArray
from pgmult.fields.data import CountField

if TYPE_CHECKING:
    from pgmult.fields.models.multinomial_gp import MultinomialGP

__all__ = ["empirical_bayes"]

_ROUNDS = 12  # each _SWEEPS sweeps that give draws of omega, and one maximisation
_SWEEPS = 4

_log = logging.getLogger("pgmult")


def empirical_bayes(
    model: "MultinomialGP", data: CountField, random_seed: int = 0
) -> "MultinomialGP":
    """The same model with hyperparameters fixed at an estimate from the data.

    A Monte Carlo EM algorithm whose missing data are omega, psi integrated out: rounds of a few
    sweeps that give draws of omega, and the maximum over the parameters of the mean log density
    of those draws and of the prior. All sticks share the estimate.

    Parameters
    ----------
    model : MultinomialGP
        From whose covariance the search starts.
    data : CountField
    random_seed : int
    """
    from pgmult.fields.models.multinomial_gp import MultinomialGP

    as_kind(model, "model", MultinomialGP)
    as_kind(data, "data", CountField, "make one with as_field")
    rng = np.random.default_rng(as_seed(random_seed))
    _log.warning(
        "MultinomialGP: hyperparameters are estimated and then fixed (empirical Bayes);"
        " intervals do not know that they are estimates"
    )
    fixed = replace(
        model, covariance=model.law, overdispersion=0.0, hyperparameters="fixed", shared=True
    )
    state = fixed.init(rng, data)
    link, counts = model.link(data), data.site_counts()
    for _ in range(_ROUNDS):
        draws = []
        for _ in range(_SWEEPS):
            state = fixed.step(rng, state, data)
            draws.append((link.augment(rng, state.psi, counts), state.beta))
        start = fixed.law.log_params
        best = minimize(_loss, start, args=(fixed, draws, data), method="L-BFGS-B").x
        fixed = replace(fixed, covariance=fixed.law.with_log_params(best))
        if np.abs(best - start).max() < 0.02:
            break
    _log.info(
        "MultinomialGP: estimated %s",
        dict(zip(model.law.param_names, np.exp(best).round(4).tolist(), strict=True)),
    )
    return fixed


def _loss(
    theta: FloatArray,
    model: "MultinomialGP",
    draws: Sequence[tuple[DiagonalPotential, FloatArray]],
    data: CountField,
) -> float:
    """Minus the mean log density of the draws of omega, and minus the log prior."""
    log_densities = [
        model.field(theta[None], beta, data).condition(potential).log_normalizer().sum()
        for potential, beta in draws
    ]
    prior = model.law.with_log_params(theta).log_prior()
    return -float(np.mean(log_densities)) - prior
