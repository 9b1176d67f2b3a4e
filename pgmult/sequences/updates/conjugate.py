r"""Conjugate draws of dynamics, weights and scales given the states and omega.

*Dynamics*. Every step but the first of a sequence is a row of a multivariate linear regression::

    x_t  =  A x_{t-1} + W u_t + noise,     noise ~ N(0, Q),

with covariates (x_{t-1}, u_t) and coefficients (A, W)', so under the matrix-normal inverse-Wishart
prior (A, W, Q) is one exact draw (West and Harrison 1997, Bayesian Forecasting and Dynamic Models,
chapter 16). The first states are rows of their own, with a mean and a covariance. Inputs enter
from the second step of a sequence on: see `LinearDynamics.driven`.

All depend on sums over rows alone (`RegressionSums`), which add up over blocks of sequences.

*Weights*. Given omega and the regressors z_t = (x_t, u_t, 1) the rows of W in psi_t = W z_t are
independent,

    w_k | omega, z ~ exp(-w' (P_k + sum_t omega_tk z_t z_t') w / 2
                         + (P_k m_k + sum_t kappa_tk z_t)' w)

with prior N(m_k, P_k^-1), P_k diagonal (Polson, Scott and Windle 2013, section 1.1). Column d of
the loadings, the columns of W that multiply x_t, has an inverse-gamma variance: where a column is
not needed its scale shrinks, and with it what that coordinate of the state explains (MacKay 1995,
"Probable networks and plausible predictions", on automatic relevance determination).

>>> import numpy as np
>>> prior = MatrixNormalInverseWishart(np.zeros((2, 2)), np.eye(2), 4.0, np.eye(2))
>>> states = np.random.default_rng(0).standard_normal((400, 2)).cumsum(axis=0)
>>> sums = transition_sums(states, np.array([0, 400]), None, np.eye(2))
>>> A, W, Q = draw_dynamics(np.random.default_rng(1), prior, sums)
>>> A.round(1) + 0.0
array([[1., 0.],
       [0., 1.]])
"""

from dataclasses import dataclass

import numpy as np

from pgmult.compiled.linalg import cholesky, sample_inverse_wishart
from pgmult.compiled.rows import over_rows
from pgmult.compiled.simd import WIDTH
from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.core.validate import new_key
from pgmult.priors.gaussian import NormalInverseWishart
from pgmult.priors.matrix_normal import MatrixNormalInverseWishart
from pgmult.sequences.compiled import dynamics as compiled
from pgmult.sequences.compiled import symbols

Dynamics = tuple[FloatArray, FloatArray, FloatArray]
"""transition (D, D), input weights (D, num_inputs) and noise_cov (D, D)."""


@dataclass(frozen=True, slots=True, eq=False)
class RegressionSums:
    """Sums over rows y that are regressed on z, about coefficients near the ones they call for.

    Attributes
    ----------
    coefficients : array, ``(n, p)``
    zz : array, ``(p, p)`` or larger
        Sum of z z'. More rows and columns than the coefficients have are of constants.
    ze : array, ``(p, n)`` or larger
        Sum of z e', e = y - coefficients z.
    ee : array, ``(n, n)``
        Sum of e e'.
    """

    coefficients: FloatArray
    zz: FloatArray
    ze: FloatArray
    ee: FloatArray

    @property
    def count(self) -> float:
        """Number of rows: the last of z is 1."""
        return float(self.zz[-1, -1])

    def translated(self, delta: FloatArray) -> "RegressionSums":
        """`transition_sums` after adding ``(D,)`` numbers to all states."""
        z, A = np.zeros(len(self.zz)), self.coefficients[:, : len(delta)]
        z[: len(delta)], e = delta, delta - np.einsum("ij,j->i", A, delta)
        sum_z, sum_e, column, more = self.zz[-1], self.ze[-1], z[:, None], self.count * z
        return RegressionSums(
            self.coefficients,
            self.zz + (sum_z[:, None] * z + column * sum_z + more[:, None] * z),
            self.ze + (column * sum_e + (sum_z + more)[:, None] * e),
            self.ee + (sum_e[:, None] * e + e[:, None] * sum_e + (self.count * e)[:, None] * e),
        )

    def posterior(
        self, mean: FloatArray, row_precision: FloatArray, scale: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The coefficients' mean, ``(p, n)``, the precision of its rows, and the noise's scale."""
        posterior = np.empty_like(mean), np.empty_like(row_precision), scale.copy()
        sums = self.coefficients, self.zz, self.ze, self.ee
        compiled.regression_posterior(mean, row_precision, *sums, *posterior)
        return posterior

    def posterior_draw(
        self, rng: Generator, mean: FloatArray, row_precision: FloatArray, dof: float,
        scale: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:  # fmt: skip
        """One draw of coefficients', ``(p, n)``, and covariance from their posterior.

        Raises
        ------
        FloatingPointError
            If there is no posterior: a row is not finite.
        """
        centre, precision, scale = self.posterior(mean, row_precision, scale)
        cov, key = np.empty_like(scale), new_key(rng)
        _factor(scale)
        _factor(precision)
        sample_inverse_wishart(key, scale, float(dof + self.count), cov)
        scale[:] = cov
        _factor(scale)
        compiled.matrix_normal(rng.standard_normal(centre.shape), precision, scale, centre)
        return centre, cov


def transition_sums(
    states: FloatArray, offsets: IntArray, inputs: FloatArray | None, coefficients: FloatArray
) -> RegressionSums:
    """Sums over the steps that have a predecessor, of z = (x_{t-1}, u_t, 1).

    Parameters
    ----------
    states : array, ``(num_steps, D)``
    offsets : int array, ``(num_sequences + 1,)``
        Sequence s is the steps ``offsets[s]:offsets[s + 1]``.
    inputs : array, ``(num_steps, U)``, or None
        Those of first steps play no part.
    coefficients : array, ``(D, D + U)``
    """
    D, p = coefficients.shape
    u = np.empty((len(states), 0)) if inputs is None else inputs
    zz, ze, ee = np.zeros((p + 1, p + 1)), np.zeros((p + 1, D)), np.zeros((D, D))
    compiled.transition_sums(states, u, offsets, coefficients, zz, ze, ee)
    return RegressionSums(coefficients, zz, ze, ee)


def first_sums(states: FloatArray, offsets: IntArray, mean: FloatArray) -> RegressionSums:
    """Sums over first states, about a mean ``(D,)``: z is 1."""
    away = states[offsets[:-1]] - mean
    squares, count = np.einsum("si,sj->ij", away, away), np.array([[float(len(away))]])
    return RegressionSums(mean[:, None], count, np.add.reduce(away, axis=0, keepdims=True), squares)


def draw_dynamics(
    rng: Generator, prior: MatrixNormalInverseWishart, later: RegressionSums
) -> Dynamics:
    """One exact draw of the dynamics given their `transition_sums`.

    `prior` is of (A, W)', the rows of A' first.

    Raises
    ------
    FloatingPointError
        If there is no posterior: a state is not finite.
    """
    of_prior = prior.mean, prior.row_precision, prior.dof, prior.scale
    coefficients, Q = later.posterior_draw(rng, *of_prior)
    D = len(Q)
    return coefficients.T[:, :D].copy(), coefficients.T[:, D:].copy(), Q


def _factor(matrix: FloatArray) -> None:
    """Replace a positive definite matrix by its Cholesky factor."""
    if not np.isfinite(matrix).all() or cholesky(matrix) > 0:
        raise FloatingPointError("states have no finite distribution left (have they exploded?)")


def draw_initial(
    rng: Generator, prior: NormalInverseWishart, first: RegressionSums
) -> tuple[FloatArray, FloatArray]:
    """One exact draw of mean ``(D,)`` and covariance ``(D, D)`` of first states, by their sums."""
    strength = np.full((1, 1), float(prior.strength))
    mean, cov = first.posterior_draw(rng, prior.mean[None], strength, prior.dof, prior.scale)
    return mean[0], cov


def sample_rows(
    rng: Generator, squares: FloatArray, linear: FloatArray, prior_precision: FloatArray,
    prior_mean: FloatArray,
) -> FloatArray:  # fmt: skip
    """One exact draw of every row of W, ``(num_rows, n)``.

    Parameters
    ----------
    rng : numpy.random.Generator
    squares : array, ``(num_rows, n (n + 1) / 2)``
        Lower triangles, row by row, as `ActiveSticks.statistics` gives them.
    linear : array, ``(num_rows, n)``
    prior_precision, prior_mean : arrays, ``(num_rows, n)``

    Raises
    ------
    FloatingPointError
        If a row has no finite posterior: the states have exploded.

    Notes
    -----
    O(num_rows n**3), eight rows at a time.
    """
    out, pulled = np.empty(linear.shape), linear + prior_precision * prior_mean
    rows = squares, pulled, prior_precision, out
    groups = -(-len(out) // WIDTH)
    statuses = over_rows(symbols.sample_regressions, groups, new_key(rng), *rows, grain=8)
    if failed := [status - 1 for status in statuses if status]:
        raise FloatingPointError(
            f"the weights of row {min(failed)} have no finite posterior (have states exploded?)"
        )
    return out


def sample_loading_var(
    rng: Generator, loadings: FloatArray, shape: float, scale: float
) -> FloatArray:
    """The variance of each column given loadings ``(n, D)`` and its IG(shape, scale) prior."""
    squares = np.einsum("kd,kd->d", loadings, loadings)
    gammas = rng.gamma(shape + 0.5 * len(loadings), size=len(squares))
    return np.asarray((scale + 0.5 * squares) / gammas)
