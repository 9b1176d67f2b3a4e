"""Draws of linear dynamics and of the law of first states, given the states of all sequences.

The sums about coefficients near those that the states call for, as
`pgmult.sequences.updates.conjugate` has them, are found in two passes.
"""

import numpy as np

from pgmult.core.typing import FloatArray, IntArray
from pgmult.priors import MatrixNormalInverseWishart, NormalInverseWishart
from pgmult.sequences.updates.conjugate import (
    draw_dynamics,
    draw_initial,
    first_sums,
    transition_sums,
)


def sample_dynamics(
    rng: np.random.Generator,
    prior: MatrixNormalInverseWishart,
    states: FloatArray,
    offsets: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """One exact draw of A and Q, ``(D, D)`` each; `prior` is of A' and Q.

    Raises
    ------
    FloatingPointError
        If there is no posterior: a state is not finite.
    """
    x = np.ascontiguousarray(states)
    sums = transition_sums(x, offsets, None, np.ascontiguousarray(prior.mean.T))
    centre, _, _ = sums.posterior(prior.mean, prior.row_precision, prior.scale)
    later = transition_sums(x, offsets, None, np.ascontiguousarray(centre.T))
    transition, _, noise_cov = draw_dynamics(rng, prior, later)
    return transition, noise_cov


def sample_initial(
    rng: np.random.Generator, prior: NormalInverseWishart, states: FloatArray, offsets: IntArray
) -> tuple[FloatArray, FloatArray]:
    """One exact draw of the mean ``(D,)`` and covariance ``(D, D)`` of first states."""
    first = first_sums(states, offsets, states[offsets[:-1]].mean(axis=0))
    return draw_initial(rng, prior, first)
