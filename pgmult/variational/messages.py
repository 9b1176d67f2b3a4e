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

Going where all messages say at once oscillates; class by class it still diverges on some data, and
where it converges it takes hundreds of sweeps. Three things help. A softmax sees differences of
classes only, so what their means have in common goes straight to where the prior wants it.
Anderson's mixing foretells from the last few steps where they lead. And L may not fall: if it
would, natural parameters become averages of old and new ones, a direction in which L rises, with
a share of the new that is halved until it does.

`fit_messages` knows factors only by `Factor.expect`, so a factor of your own is a few lines; here
are `LogisticFactor` and `SoftmaxFactor`, with the approximations of `pgmult.variational.bounds`.
Here a conjugate factor, a linear regression, reaches its fixed point at once:

>>> import numpy as np
>>> from pgmult.priors import MvNormal
>>> class Squares:
...     method, is_bound, sees_differences_only = "squares", True, False
...     y = np.array([[1.0], [2.0], [3.0]])
...     def expect(self, mean, var):
...         gap = self.y - mean
...         return -0.5 * (gap**2 + var)[:, 0], gap, np.full_like(gap, -0.5)
>>> fit = fit_messages(np.ones((3, 1)), Squares(), MvNormal(np.zeros(1), np.eye(1)), 1)
>>> fit.mean, fit.cov, fit.num_iterations
(array([[1.5]]), array([[[0.25]]]), 2)

References: Knowles and Minka (2011), Non-conjugate variational message passing for multinomial and
binary regression; Anderson (1965), Iterative procedures for nonlinear integral equations.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from pgmult.core.arguments import as_choice, as_kind, as_real
from pgmult.core.machine import refuse_unaffordable
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_covariates, as_positive_int
from pgmult.priors.gaussian import MvNormal
from pgmult.variational.ascent import Climb, slack
from pgmult.variational.bounds import SOFTPLUS, Approximation
from pgmult.variational.fixed_points import Mixing, invert, predictor_vars, unpack_prior
from pgmult.variational.logistic_sites import LogisticRows
from pgmult.variational.sites import Expectation

__all__ = [
    "Factor",
    "LogisticFactor",
    "RegressionFit",
    "SoftmaxFactor",
    "fit_messages",
    "message",
]

_ROUNDING = 1e-8  # of a message's precision


@runtime_checkable
class Factor(Protocol):
    """Log likelihoods of rows under Gaussian predictors, or what stands for them."""

    @property
    def method(self) -> str:
        """Its name, which its fits have too."""

    @property
    def is_bound(self) -> bool:
        """Whether values are nowhere above E log p."""

    @property
    def sees_differences_only(self) -> bool:
        """Whether nothing changes when the means of all classes of a row move together."""

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
        A name in `pgmult.variational.bounds.SOFTPLUS`.
    """

    sees_differences_only: ClassVar[bool] = False

    __slots__ = ("_approximation",)

    _approximation: Approximation

    def __init__(self, successes: FloatArray, trials: FloatArray, method: str = "tilted") -> None:
        super().__init__(successes, trials)
        object.__setattr__(self, "_approximation", choose(SOFTPLUS, method))

    @property
    def method(self) -> str:
        """The approximation's name."""
        return self._approximation.name

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
        Of the log sum exp: of `pgmult.variational.bounds.LOG_SUM_EXP` for independent predictors,
        or of `DENSE_LOG_SUM_EXP` where `var` is ``(num_rows, num_classes, num_classes)``.
    """

    counts: FloatArray | IntArray
    approximation: Approximation

    at_mode: ClassVar[bool] = False
    sees_differences_only: ClassVar[bool] = True

    @property
    def method(self) -> str:
        """The approximation's name."""
        return self.approximation.name

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
    return table[as_choice(method, "method", table)]


@dataclass(frozen=True, slots=True, eq=False)
class RegressionFit:
    """A Gaussian approximation of the weights of all classes: a `pgmult.variational.Fit`.

    Attributes
    ----------
    method : str
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

    method: str
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
    max_iterations: int = 1000,
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
        Ends where messages would move q by no more than this in Fisher's metric, in which means
        move by posterior standard deviations (Mahalanobis).
    max_iterations : int

    Returns
    -------
    RegressionFit

    Raises
    ------
    ValueError
        If prior and classes do not fit, or the factor is not finite or rises with a variance.

    Notes
    -----
    An iteration costs O(num_classes (num_rows num_weights**2 + num_weights**3)), and evaluates the
    factor once, or more often where it goes part of the way. L never falls.
    """
    x = as_covariates(covariates)
    as_kind(factor, "factor", Factor)
    as_positive_int(num_classes, "num_classes")
    refuse_unaffordable(40.0 * num_classes * x.shape[1] ** 2, "num_classes", num_classes)
    as_real(tolerance, "tolerance", minimum=0.0)
    as_positive_int(max_iterations, "max_iterations")
    size = x.shape[1]
    mean0, P0 = unpack_prior(prior, num_classes, size, "class")
    at = partial(_evaluate, x, factor, mean0, P0, float(np.linalg.slogdet(P0)[1]))
    try:
        here = at(mean0, np.tile(P0, (num_classes, 1, 1)))
    except (ValueError, IndexError) as error:
        raise ValueError(
            f"factor must go with covariates of shape {x.shape} and num_classes = {num_classes},"
            f" got {error}"
        ) from error
    shapes = {np.shape(derivative) for derivative in here.derivatives}
    if shapes != {here.psi.shape}:
        raise ValueError(
            f"factor must have derivatives of shape {here.psi.shape}, a column for each of"
            f" num_classes, got {', '.join(map(str, shapes))}"
        )
    if not np.isfinite(here.level):
        raise ValueError(
            f"factor must have finite values under the prior, got {here.level} in all (bring"
            " covariates to smaller scales, or give a narrower prior)"
        )
    mixing, part, converged = Mixing(), 1.0, False
    for iteration in range(1, max_iterations + 1):  # noqa: B007
        sent = message(here.psi, *here.derivatives)
        if sent.J.min(initial=0.0) < -_ROUNDING:
            raise ValueError(
                "factor must not rise with a variance, got a derivative of"
                f" {-0.5 * sent.J.min():.3g}"
            )
        target_P = P0 + (x.T * sent.J.T[:, None, :]) @ x
        target_h = mean0 @ P0 + sent.h.T @ x
        target = np.asarray(np.linalg.solve(target_P, target_h[..., None])[..., 0])
        ways = here.mean[None], here.precision[None], target[None], target_P[None]
        proposed = mixing.propose(*ways, tolerance=tolerance)
        if proposed is None:
            converged = True
            break
        there = at(*(part[0] for part in proposed))
        if there.level >= here.level - slack(here.level):
            here = there
            continue
        # part of the way to the target, along which L rises
        h = np.einsum("kij,kj->ki", here.precision, here.mean)
        climb = Climb(here.level, share=min(1.0, 2.0 * part))
        for _ in climb:
            part = climb.share[0]
            P = here.precision + part * (target_P - here.precision)
            mean = np.linalg.solve(P, (h + part * (target_h - h))[..., None])[..., 0]
            there = at(mean, P)
            climb.accept(there.level)
        here = here if climb.stuck[0] else there
    return RegressionFit(
        factor.method, here.mean, here.cov, None, here.level, factor.is_bound, converged, iteration
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """L and what messages are made of, at one q."""

    mean: FloatArray
    precision: FloatArray
    cov: FloatArray
    psi: FloatArray  # means of the predictors
    derivatives: tuple[FloatArray, FloatArray]
    level: float


def _evaluate(
    x: FloatArray,
    factor: Factor,
    mean0: FloatArray,
    P0: FloatArray,
    log_det0: float,
    mean: FloatArray,
    precision: FloatArray,
) -> _Point:
    """L at q, after what all means have in common has moved to where the prior wants it."""
    if factor.sees_differences_only:
        mean = mean + (mean0 - mean).mean(axis=0)
    cov, log_det = invert(precision)
    psi = x @ mean.T
    value, d_mean, d_var = factor.expect(psi, predictor_vars(x, cov))
    gap = mean - mean0
    divergence = 0.5 * (
        log_det.sum() - len(cov) * log_det0
        + np.sum(P0 * cov) - mean.size + np.sum(gap @ P0 * gap)
    )  # fmt: skip
    level = float(value.sum() - divergence)
    return _Point(mean, precision, cov, psi, (d_mean, d_var), level)
