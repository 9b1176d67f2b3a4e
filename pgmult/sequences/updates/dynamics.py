"""Conjugate draws of linear dynamics given their states.

Every step but the first of a sequence is a row of a multivariate linear regression::

    x_t  =  A x_{t-1} + W u_t + noise,     noise ~ N(0, Q),

with covariates (x_{t-1}, u_t) and coefficients (A, W)', so under the matrix-normal inverse-Wishart
prior (A, W, Q) is one exact draw (West and Harrison 1997, Bayesian Forecasting and Dynamic Models,
chapter 16). The first states are rows of their own: they have a free mean and covariance
(`sample_initial`), fixed ones, or, with no new parameter, the law that the dynamics leave
invariant,

    x_first ~ N(0, V),    V = A V A' + Q

(`sample_stationary_dynamics`). Inputs enter from the second step of a sequence on: see
`pgmult.sequences.priors.dynamics.input_drive`.

>>> import numpy as np
>>> prior = dynamics_prior(state_dim=2)
>>> states = np.random.default_rng(0).standard_normal((400, 2)).cumsum(axis=0)
>>> A, W, Q = sample_dynamics(np.random.default_rng(1), prior, states, np.array([0, 400]))
>>> A.round(1) + 0.0
array([[1., 0.],
       [0., 1.]])
"""

import math

import numpy as np

from pgmult.compiled.linalg import sample_inverse_wishart
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int, new_key
from pgmult.priors.gaussian import MvNormal, NormalInverseWishart
from pgmult.priors.matrix_normal import MatrixNormalInverseWishart
from pgmult.sequences.compiled import dynamics as compiled
from pgmult.sequences.priors.dynamics import stationary_cov

__all__ = [
    "dynamics_prior",
    "sample_dynamics",
    "sample_initial",
    "sample_stable_prior",
    "sample_stationary_dynamics",
]

Dynamics = tuple[FloatArray, FloatArray, FloatArray]
"""transition (D, D), input weights (D, num_inputs) and noise_cov (D, D)."""

_MAX_TRIES = 10_000


def dynamics_prior(
    state_dim: int, num_inputs: int = 0, *, persistence: float = 0.0, noise_var: float = 1.0
) -> MatrixNormalInverseWishart:
    """A proper weak prior: A around ``persistence * I``, every row of (A, W) worth one step.

    It has dof D + 2 and so E[Q] = noise_var I.
    """
    D, U = as_positive_int(state_dim, "state_dim"), as_positive_int(num_inputs, "num_inputs", 0)
    mean = persistence * np.eye(D + U, D)
    return MatrixNormalInverseWishart(mean, np.eye(D + U), D + 2.0, noise_var * np.eye(D))


def sample_dynamics(
    rng: np.random.Generator,
    prior: MatrixNormalInverseWishart,
    states: FloatArray,
    offsets: IntArray,
    inputs: FloatArray | None = None,
) -> Dynamics:
    """One exact draw of the dynamics given the states of all sequences.

    Parameters
    ----------
    rng : numpy.random.Generator
    prior : MatrixNormalInverseWishart
        Of (A, W)': mean ``(D + num_inputs, D)``, the rows of A' first.
    states : array, ``(num_steps, D)``
    offsets : int array, ``(num_sequences + 1,)``
        Sequence s is the steps ``offsets[s]:offsets[s + 1]``.
    inputs : array, ``(num_steps, num_inputs)``, optional
        Those of first steps play no part.

    Returns
    -------
    transition : array, ``(D, D)``
    input_weights : array, ``(D, num_inputs)``
    noise_cov : array, ``(D, D)``

    Raises
    ------
    ValueError
        If shapes do not agree.
    FloatingPointError
        If there is no posterior: a state is not finite.
    """
    x, ends, u = _checked(prior, states, offsets, inputs)
    centre, precision = np.empty_like(prior.mean), np.empty_like(prior.row_precision)
    scale = prior.scale.copy()
    num_seen = compiled.regression_posterior(
        prior.mean, prior.row_precision, x, u, ends, centre, precision, scale
    )
    return _split(*_draw(rng, centre, precision, prior.dof + num_seen, scale))


def _draw(
    rng: np.random.Generator,
    centre: FloatArray,
    precision: FloatArray,
    dof: float,
    scale: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Coefficients and covariance from their matrix-normal inverse-Wishart law, overwritten."""
    cov, key = np.empty_like(scale), new_key(rng)
    failed = compiled.factor(scale) or compiled.factor(precision)
    if not failed:
        sample_inverse_wishart(key, scale, float(dof), cov)
        scale[:] = cov
        failed = compiled.factor(scale)
    if failed:
        raise FloatingPointError("states have no finite law left (have they exploded?)")
    compiled.matrix_normal(rng.standard_normal(centre.shape), precision, scale, centre)
    return centre, cov


def _split(coefficients: FloatArray, noise_cov: FloatArray) -> Dynamics:
    D = len(noise_cov)
    transposed = coefficients.T
    return transposed[:, :D].copy(), transposed[:, D:].copy(), noise_cov


def _checked(
    prior: MatrixNormalInverseWishart,
    states: FloatArray,
    offsets: IntArray,
    inputs: FloatArray | None,
) -> tuple[FloatArray, IntArray, FloatArray]:
    """States, offsets and inputs that go together, as compiled code takes them."""
    num_covariates, D = prior.mean.shape
    if states.shape != (offsets[-1], D):
        raise ValueError(f"states must have shape {(int(offsets[-1]), D)}, got {states.shape}")
    u = np.empty((len(states), 0)) if inputs is None else inputs
    if u.ndim != 2 or len(u) != len(states):
        raise ValueError(f"inputs must have shape ({len(states)}, num_inputs), got {u.shape}")
    if D + u.shape[1] != num_covariates:
        raise ValueError(
            f"the prior is of {num_covariates} covariates, but states and inputs are"
            f" {D + u.shape[1]}"
        )
    return np.ascontiguousarray(states), offsets, np.ascontiguousarray(u)


def sample_initial(
    rng: np.random.Generator, prior: NormalInverseWishart, states: FloatArray, offsets: IntArray
) -> tuple[FloatArray, FloatArray]:
    """One exact draw of the mean ``(D,)`` and covariance ``(D, D)`` of first states."""
    D = len(prior.mean)
    if states.shape != (offsets[-1], D):
        raise ValueError(f"states must have shape {(int(offsets[-1]), D)}, got {states.shape}")
    centre, scale, count = np.empty((1, D)), prior.scale.copy(), len(offsets) - 1
    strength = float(prior.strength)
    compiled.initial_posterior(
        prior.mean, strength, np.ascontiguousarray(states), offsets, centre, scale
    )
    precision = np.full((1, 1), strength + count)
    mean, cov = _draw(rng, centre, precision, prior.dof + count, scale)
    return mean[0], cov


def sample_stationary_dynamics(
    rng: np.random.Generator,
    prior: MatrixNormalInverseWishart,
    states: FloatArray,
    offsets: IntArray,
    current: Dynamics,
    inputs: FloatArray | None = None,
) -> Dynamics:
    """One Markov step of the dynamics when first states have their stationary law.

    The prior is `prior` kept to stable transitions. A draw of `sample_dynamics` is proposed and
    taken with the ratio of the densities of the first states, 0 where it is not stable: an
    independence Metropolis step, exact. It is taken nearly always where sequences are long.

    Parameters
    ----------
    rng, prior, states, offsets, inputs
        As in `sample_dynamics`.
    current : tuple of arrays
        Transition, input weights and noise_cov where the chain is.

    Returns
    -------
    tuple of arrays
        The proposal, or `current`.

    Raises
    ------
    ValueError
        If the current transition is not stable, or as in `sample_dynamics`.
    """
    proposal = sample_dynamics(rng, prior, states, offsets, inputs)
    log_uniform = math.log1p(-rng.random())
    first = states[offsets[:-1]]
    now = _log_stationary(first, current[0], current[2])
    if now == -math.inf:
        raise ValueError("the current transition must be stable: its spectral radius is not < 1")
    then = _log_stationary(first, proposal[0], proposal[2])
    return proposal if log_uniform < then - now else current


def _log_stationary(first: FloatArray, transition: FloatArray, noise_cov: FloatArray) -> float:
    """Log density of first states under the stationary law; -inf where there is none."""
    cov = stationary_cov(transition, noise_cov)
    if cov is None:
        return -math.inf
    return float(MvNormal(np.zeros(len(cov)), cov).log_density(first).sum())


def sample_stable_prior(rng: np.random.Generator, prior: MatrixNormalInverseWishart) -> Dynamics:
    """A draw of `prior` kept to stable transitions, by rejection.

    Raises
    ------
    ValueError
        If stable transitions are too rare under the prior.
    """
    for _ in range(_MAX_TRIES):
        draw = _split(*prior.sample(rng))
        if stationary_cov(draw[0], draw[2]) is not None:
            return draw
    raise ValueError(
        f"none of {_MAX_TRIES} draws of the prior is stable"
        " (raise its row_precision, or move its mean towards 0)"
    )
