r"""Non-conjugate variational message passing for logistic and multinomial regression.

Each class k has weights w_k with a Gaussian prior, rows of data see psi_nk = x_n' w_k, and
q(W) = prod_k N(w_k | m_k, S_k). In variational message passing a factor sends to each of its
variables exp of its expected logarithm, which for a softmax is no Gaussian. Knowles and Minka
(2011, algorithm 1) send instead the Gaussian whose expected logarithm has the same *gradient* with
respect to the moments of q. With F(m, v) = E log p(y_n | psi_n), or what stands for it,

    message to psi_nk:   J = -2 dF/dv_nk,    h = dF/dm_nk + J m_nk,

a Gaussian potential; potentials of rows go to the weights by x_n, and the prior is conditioned on
them. For a conjugate factor this is the usual message, whatever q is; at a fixed point q is a
stationary point of the evidence bound L = sum_n F - KL(q || prior).

What messages say of all classes at once makes them oscillate, and class by class they still
diverge on some data. So classes take turns, and a class whose new natural parameters would lower L
goes only part of the way: its parameters are averages of old and new ones, a direction in which L
rises, halved until it does.

`fit_messages` knows factors only by `Factor.expect`, so a factor of your own is a few lines; here
are `LogisticFactor` and `SoftmaxFactor`, with the approximations of `pgmult.inference.bounds`.
Here a conjugate factor, a linear regression, reaches its fixed point at once:

>>> import numpy as np
>>> from pgmult.priors import MvNormal
>>> class Squares:
...     is_bound = True
...     y = np.array([[1.0], [2.0], [3.0]])
...     def expect(self, mean, var):
...         gap = self.y - mean
...         return -0.5 * (gap**2 + var)[:, 0], gap, np.full_like(gap, -0.5)
>>> fit = fit_messages(np.ones((3, 1)), Squares(), MvNormal(np.zeros(1), np.eye(1)), 1)
>>> fit.mean, fit.cov, fit.num_iterations
(array([[1.5]]), array([[[0.25]]]), 2)

References: Knowles and Minka (2011), Non-conjugate variational message passing for multinomial and
binary regression.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from pgmult._validate import as_finite, as_positive_int
from pgmult.inference.bounds import SOFTPLUS, Approximation
from pgmult.inference.sites import Expectation, LogisticRows
from pgmult.potentials import DiagonalPotential
from pgmult.priors.gaussian import MvNormal
from pgmult.typing import FloatArray, IntArray

__all__ = [
    "Factor",
    "LogisticFactor",
    "RegressionFit",
    "SoftmaxFactor",
    "fit_messages",
    "message",
]

_MOST_HALVINGS = 40
_SLACK = 1e-12  # of L: what rounding may take from it


class Factor(Protocol):
    """Log likelihoods of rows under Gaussian predictors, or what stands for them."""

    @property
    def is_bound(self) -> bool:
        """Whether values are nowhere above E log p."""

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, ``(num_rows,)``, dF/dm and dF/dv, from moments ``(num_rows, num_classes)``.

        No derivative with respect to a variance may be positive.
        """


def message(mean: FloatArray, d_mean: FloatArray, d_var: FloatArray) -> DiagonalPotential:
    """The Gaussian whose expected logarithm has these derivatives at `mean`."""
    J = -2.0 * d_var
    return DiagonalPotential(J, d_mean + J * mean)


class LogisticFactor(LogisticRows):
    """Binomial rows of one class of weights: E[y psi - b log(1 + exp psi)].

    Parameters
    ----------
    successes, trials : arrays, ``(num_rows,)``
    method : str
        A name in `pgmult.inference.bounds.SOFTPLUS`.
    """

    __slots__ = ("_approximation",)

    _approximation: Approximation

    def __init__(self, successes: FloatArray, trials: FloatArray, method: str = "tilted") -> None:
        super().__init__(successes, trials)
        object.__setattr__(self, "_approximation", choose(SOFTPLUS, method))

    @property
    def is_bound(self) -> bool:
        """Whether values are nowhere above E log p."""
        return self._approximation.is_bound

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, ``(num_rows,)``, dF/dm and dF/dv, ``(num_rows, 1)``."""
        rest, d_mean, d_var = self._approximation.expect(mean[:, 0], var[:, 0])
        return (
            self.successes * mean[:, 0] - self.trials * rest,
            (self.successes - self.trials * d_mean)[:, None],
            -(self.trials * d_var)[:, None],
        )


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxFactor:
    """Multinomial rows: E[sum_k y_k psi_k - N log sum exp psi].

    Attributes
    ----------
    counts : array, ``(num_rows, num_classes)``
    approximation : Approximation
        Of the log sum exp: of `pgmult.inference.bounds.LOG_SUM_EXP` for independent predictors, or
        of `DENSE_LOG_SUM_EXP` where `var` is ``(num_rows, num_classes, num_classes)``.
    """

    counts: FloatArray | IntArray
    approximation: Approximation

    at_mode: ClassVar[bool] = False

    @property
    def is_bound(self) -> bool:
        """Whether values are nowhere above E log p."""
        return self.approximation.is_bound

    def expect(self, mean: FloatArray, var: FloatArray) -> Expectation:
        """F, dF/dm and dF/dv."""
        totals = self.counts.sum(axis=1)
        rest, d_mean, d_var = self.approximation.expect(mean, var)
        each = totals.reshape(-1, *(1,) * (d_var.ndim - 1))
        value = (self.counts * mean).sum(axis=1) - totals * rest
        return value, self.counts - totals[:, None] * d_mean, -each * d_var


def choose(table: dict[str, Approximation], method: str) -> Approximation:
    """The approximation of that name."""
    if method not in table:
        raise ValueError(f"method must be one of {', '.join(table)}, got {method!r}")
    return table[method]


@dataclass(frozen=True, slots=True, eq=False)
class RegressionFit:
    """A Gaussian approximation of the weights of all classes.

    Attributes
    ----------
    mean : array, ``(num_classes, num_weights)``
    cov : array, ``(num_classes, num_weights, num_weights)``
        Covariance of each class's own weights.
    joint_cov : array, ``(num_classes * num_weights, num_classes * num_weights)``, or None
        Of all classes', one class after the other; None where they are independent under q.
    objective : float
        L: the log evidence, bounded or approximated.
    is_bound : bool
        Whether `objective` is a lower bound of the log evidence.
    converged : bool
    num_iterations : int
    """

    mean: FloatArray
    cov: FloatArray
    joint_cov: FloatArray | None
    objective: float
    is_bound: bool
    converged: bool
    num_iterations: int


def fit_messages(
    covariates: FloatArray,
    factor: Factor,
    prior: MvNormal,
    num_classes: int,
    *,
    tolerance: float = 1e-5,
    max_sweeps: int = 1000,
) -> RegressionFit:
    """Pass messages between rows and classes of weights until they agree.

    Parameters
    ----------
    covariates : array, ``(num_rows, num_weights)``
    factor : Factor
    prior : MvNormal
        Of each class's weights, with one mean for all classes or one a class.
    num_classes : int
    tolerance : float
        Ends when a sweep moves no class's mean by more than this, in posterior standard deviations
        (Mahalanobis), and L by no more than this.
    max_sweeps : int

    Returns
    -------
    RegressionFit

    Notes
    -----
    A sweep costs O(num_classes (num_rows num_weights**2 + num_weights**3)) and evaluates the
    factor once for each class, or more often where it goes part of the way. L never falls.
    """
    x = as_finite(covariates, "covariates")
    as_positive_int(max_sweeps, "max_sweeps")
    size = x.shape[1]
    if prior.potential is not None:
        raise ValueError("prior must not be conditioned on a potential")
    mean0 = np.atleast_2d(prior.prior_mean)
    if mean0.shape[1] != size or len(mean0) not in (1, num_classes):
        raise ValueError(
            f"prior must be of {size} weights, of one class or {num_classes}, got {mean0.shape}"
        )
    mean0 = np.broadcast_to(mean0, (num_classes, size))
    P0 = prior.precision()
    log_det0 = float(np.linalg.slogdet(P0)[1])

    def divergence(m: FloatArray, S: FloatArray, log_det: float, k: int) -> float:
        gap = m - mean0[k]
        return 0.5 * float(log_det - log_det0 + np.sum(P0 * S) - size + gap @ P0 @ gap)

    P = np.tile(P0, (num_classes, 1, 1))
    S = np.tile(prior.prior_cov, (num_classes, 1, 1))
    m = mean0.copy()
    h = m @ P0
    psi, var = x @ m.T, np.repeat(_spread(x, prior.prior_cov)[:, None], num_classes, axis=1)
    divergences = np.zeros(num_classes)
    expectation = factor.expect(psi, var)
    level = float(expectation[0].sum())
    converged = False
    for sweep in range(1, max_sweeps + 1):  # noqa: B007
        before, moved = level, 0.0
        for k in range(num_classes):
            sent = message(psi[:, k], expectation[1][:, k], expectation[2][:, k])
            target_P = P0 + (x * sent.J[:, None]).T @ x
            target_h = P0 @ mean0[k] + sent.h @ x
            part = 1.0
            for _ in range(_MOST_HALVINGS):
                new_P = P[k] + part * (target_P - P[k])
                new_h = h[k] + part * (target_h - h[k])
                new_S, log_det = _invert(new_P)
                new_m = new_S @ new_h
                new_psi, new_var = psi.copy(), var.copy()
                new_psi[:, k], new_var[:, k] = x @ new_m, _spread(x, new_S)
                new_divergences = divergences.copy()
                new_divergences[k] = divergence(new_m, new_S, log_det, k)
                new_expectation = factor.expect(new_psi, new_var)
                new_level = float(new_expectation[0].sum() - new_divergences.sum())
                if new_level >= level - _SLACK * (1.0 + abs(level)):
                    break
                part *= 0.5
            else:
                continue  # no better place to within rounding
            gap = new_m - m[k]
            moved = max(moved, math.sqrt(max(float(gap @ new_P @ gap), 0.0)))
            P[k], h[k], S[k], m[k] = new_P, new_h, new_S, new_m
            psi, var, divergences = new_psi, new_var, new_divergences
            expectation, level = new_expectation, new_level
        if moved <= tolerance and level - before <= tolerance:
            converged = True
            break
    return RegressionFit(m, S, None, level, factor.is_bound, converged, sweep)


def _spread(x: FloatArray, cov: FloatArray) -> FloatArray:
    """x_n' cov x_n of every row."""
    return np.asarray(np.einsum("nd,nd->n", x @ cov, x))


def _invert(precision: FloatArray) -> tuple[FloatArray, float]:
    """The inverse, and the log determinant of the precision."""
    root = np.linalg.cholesky(precision)
    inverse_root = np.linalg.inv(root)
    return inverse_root.T @ inverse_root, 2.0 * float(np.log(np.diagonal(root)).sum())
