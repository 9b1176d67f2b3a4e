r"""Long chains of regressions of classes: what approximations of their posterior are measured by.

Weights of all K classes have priors N(0, 1) and rows x_n see psi_nk = x_n' w_k. Two likelihoods::

    softmax    p(y_n = i) = exp(psi_ni) / sum_k exp(psi_nk)
    probit     p(y_n = i) = E_u prod_{k != i} Phi(u + psi_ni - psi_nk),     u ~ N(0, 1)

The first has a closed gradient, the second one integral (the trapezoid rule, to some 1e-5 of a
row's log likelihood), so `hamiltonian` draws all weights at once: Hamiltonian Monte Carlo in the
coordinates of a Gaussian approximation, many chains side by side. Pilot runs move its covariance
towards that of their draws, and set the step. Gibbs sampling is no choice for the probit: with
its latent utilities a thousand sweeps give four independent draws, or fewer.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Rows = Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]
Density = Callable[[FloatArray], tuple[FloatArray, FloatArray]]

NUM_CHAINS = 20
STEP = 0.7  # of the trapezoid rule


def softmax_rows(psi: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    """Log probabilities of labels, ``(chain, row)``, and derivatives, ``(chain, class, row)``."""
    at = np.arange(len(labels))
    psi = psi - psi.max(axis=1, keepdims=True)
    share = np.exp(psi)
    total = share.sum(axis=1, keepdims=True)
    log_prob = psi[:, labels, at] - np.log(total[:, 0])
    share /= -total
    share[:, labels, at] += 1.0
    return log_prob, share


def probit_rows(psi: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    """The same of a probit."""
    at, num_classes = np.arange(len(labels)), psi.shape[1]
    rest = (labels + np.arange(1, num_classes)[:, None]) % num_classes
    lead = psi[:, None, labels, at] - psi[:, rest, at]
    prob, fall = np.zeros(psi[:, 0].shape), np.zeros(lead.shape)
    for u in np.arange(-6.0, 6.0 - min(float(lead.min()), 0.0), STEP):  # far out for lost rows
        gap = lead + u
        below = np.maximum(ndtr(gap), 1e-300)
        share = STEP / math.sqrt(2.0 * math.pi) * math.exp(-0.5 * u * u) * below.prod(axis=1)
        prob += share
        fall += np.exp(-0.5 * gap * gap) / below * share[:, None]
    prob = np.maximum(prob, 1e-300)
    fall /= math.sqrt(2.0 * math.pi) * prob[:, None]
    slope = np.empty_like(psi)
    slope[:, rest, at] = -fall
    slope[:, labels, at] = fall.sum(axis=1)
    return np.log(prob), slope


def posterior(x: FloatArray, labels: IntArray, num_classes: int, rows: Rows) -> Density:
    """Log density of weights ``(chain, class * covariate)``, and its gradient."""

    def density(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        log_prob, slope = rows(predictors(x, weights, num_classes), labels)
        gradient = (slope.reshape(-1, len(x)) @ x).reshape(weights.shape) - weights
        return log_prob.sum(axis=1) - 0.5 * (weights * weights).sum(axis=1), gradient

    return density


def predictors(x: FloatArray, weights: FloatArray, num_classes: int) -> FloatArray:
    """psi, ``(chain, class, row)``."""
    return (weights.reshape(-1, x.shape[1]) @ x.T).reshape(-1, num_classes, len(x))


def softmax_probs(psi: FloatArray) -> FloatArray:
    """Probabilities of the classes, ``(chain, class, row)``."""
    share = np.exp(psi - psi.max(axis=1, keepdims=True))
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def probit_probs(psi: FloatArray) -> FloatArray:
    """The same of a probit."""
    every = [np.full(psi.shape[2], k) for k in range(psi.shape[1])]
    return np.exp(np.stack([probit_rows(psi, labels)[0] for labels in every], axis=1))


def hamiltonian(
    rng: np.random.Generator, density: Density, mean: FloatArray, cov: FloatArray, num_draws: int
) -> FloatArray:
    """Draws ``(chain, draw, weight)`` by Hamiltonian Monte Carlo, after three pilot runs.

    Parameters
    ----------
    rng : numpy.random.Generator
    density : callable
        Log density of vectors ``(chain, weight)``, and its gradient.
    mean, cov : arrays
        Of a Gaussian near it, to start from.
    """
    step = 0.3
    here = rng.multivariate_normal(mean, cov, NUM_CHAINS)
    for share in (0.05, 0.1, 0.2, 1.0):
        length = math.ceil(share * num_draws)
        root = np.linalg.cholesky(cov)
        value, gradient = density(here)
        draws, taken = np.empty((NUM_CHAINS, length, len(mean))), 0.0
        for draw in range(length):
            time = rng.uniform(1.1, 2.0)  # about a quarter of a Gaussian's period
            num_steps = math.ceil(time / step)
            short = time / num_steps
            momentum = rng.standard_normal(here.shape)
            level = value - 0.5 * (momentum * momentum).sum(axis=1)
            place, new_value, new_gradient = here, value, gradient
            momentum = momentum + 0.5 * short * new_gradient @ root
            for left in reversed(range(num_steps)):
                place = place + short * momentum @ root.T
                new_value, new_gradient = density(place)
                momentum = momentum + (1.0 if left else 0.5) * short * new_gradient @ root
            new_level = new_value - 0.5 * (momentum * momentum).sum(axis=1)
            accepted = np.log(rng.random(NUM_CHAINS)) < new_level - level
            taken += accepted.mean() / length
            here = np.where(accepted[:, None], place, here)
            value = np.where(accepted, new_value, value)
            gradient = np.where(accepted[:, None], new_gradient, gradient)
            draws[:, draw] = here
        step *= min(max(taken / 0.85, 0.5), 1.1)
        recent = draws[:, length // 2 :].reshape(-1, len(mean))
        # as if the Gaussian before had been seen five times a weight
        weight = len(recent) / (len(recent) + 5.0 * len(mean))
        cov = weight * np.cov(recent.T) + (1.0 - weight) * cov
    return draws
