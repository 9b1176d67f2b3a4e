r"""Random effects with a covariance of their own, given that of the rows.

Rows y_d, ``(n,)``, whose covariance Sigma is known here, and one grouping among their terms::

    u_a    ~  N(0, Omega)                                          effect of level a
    Omega  ~  IW(2 nu diag(b), nu + n - 1),    b_k ~ Gamma(1/2, rate 1 / scale^2)
    y_d    ~  N(B' x_d + u_a(d) + other terms, Sigma)

so that every standard deviation of Omega is half-t (`HalfTScales`). With Sigma = V V' and Omega = V
diag(lambda) V' (one eigenproblem), rows y V^-T have independent columns: column i is a regression
with noise 1 and effects of variance lambda_i. Its evidence, (B, u) integrated out, costs no more
than that of one column, and (B, u) is one exact draw.

Omega given the effects alone would hardly move where they are small. So each lambda is moved given
V, the effects integrated out. Symmetric matrices have volume prod_{i<j} |lambda_i - lambda_j| in
these coordinates (Muirhead 1982, "Aspects of multivariate statistical theory", theorem 3.2.17),
hence the law of one lambda given the others and V is ::

    evidence_i(lambda_i) lambda_i^(-(dof + n + 1) / 2) exp(-s_i / (2 lambda_i))
        prod_{j != i} |lambda_i - lambda_j|,            s = diag(V^-1 scale V^-T).

>>> from pgmult import MatrixNormalInverseWishart
>>> rng = np.random.default_rng(0)
>>> codes, Omega = np.repeat(np.arange(50), 10), np.diag([4.0, 0.01])
>>> y = (rng.normal(size=(50, 2)) * [2.0, 0.1])[codes] + rng.normal(size=(500, 2))
>>> x = np.ones((500, 1))
>>> prior = MatrixNormalInverseWishart.weak(np.zeros((1, 2)), x)
>>> regression = MixedRegression.of(prior, y, x, [codes])
>>> along = FreeEffects.of(regression, np.empty(0), np.eye(2), Omega)
>>> along.variances
array([0.01, 4.  ])
>>> evidence = [along.log_evidence(1, at) for at in (0.04, 1.0, 4.0, 16.0, 64.0)]
>>> int(np.argmax(evidence))
2
>>> along.sample(rng, along.variances).effects.shape
(50, 2)
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from pgmult.compiled.linalg import invert_lower, sample_inverse_wishart, scatter
from pgmult.core.typing import FloatArray
from pgmult.core.validate import new_key
from pgmult.priors.gaussian import NormalInverseWishart, lower_cholesky
from pgmult.priors.mixed_regression import DOF, MixedDraw, MixedRegression
from pgmult.priors.scales import HalfTScales


class OmegaPrior(NamedTuple):
    """The inverse Wishart of Omega given its auxiliary scales."""

    dof: float
    scale: FloatArray


def given_scales(rng: np.random.Generator, Omega: FloatArray, scale: float) -> OmegaPrior:
    """The prior of Omega, its auxiliary scales drawn given where it is."""
    drawn = HalfTScales(DOF, scale).given(rng, Omega, _carrier(len(Omega)))
    return OmegaPrior(drawn.dof, drawn.scale)


def prior_covariances(rng: np.random.Generator, num: int, n: int, scale: float) -> FloatArray:
    """So many covariances from their prior, ``(num, n, n)``."""
    drawn = np.empty((num, n, n))
    for j in range(num):
        prior = HalfTScales(DOF, scale).sample(rng, _carrier(n))
        drawn[j] = sample_covariance(rng, OmegaPrior(prior.dof, prior.scale), np.empty((0, n)))
    return drawn


def sample_covariance(
    rng: np.random.Generator, prior: OmegaPrior, effects: FloatArray
) -> FloatArray:
    """Omega given its scales and the effects ``(A, n)``."""
    Omega = np.empty_like(prior.scale)
    scale = prior.scale + scatter(effects, np.zeros(len(Omega)))
    sample_inverse_wishart(
        new_key(rng), lower_cholesky(scale), float(prior.dof + len(effects)), Omega
    )
    return Omega


def _carrier(n: int) -> NormalInverseWishart:
    return NormalInverseWishart.weak(np.zeros(n))


@dataclass(frozen=True, slots=True, eq=False)
class FreeEffects:
    """What rows say of coefficients and effects along the common axes of Sigma and Omega.

    Attributes
    ----------
    regression : MixedRegression
        Of the rows; the term that it eliminates first is the one whose covariance is Omega.
    axes : array, ``(n, n)``
        V: Sigma = V V' and Omega = V diag(variances) V'.
    inverse : array, ``(n, n)``
        Of `axes`.
    variances : array, ``(n,)``
        Lambda, in units of Sigma; the smallest first.
    precision : array, ``(r, r)``
        Of all other columns given those effects' absence: the same along every axis.
    pull, outer_pull : arrays, ``(r, n)`` and ``(A, n)``
        Those of `regression`, along the axes.
    """

    regression: MixedRegression
    axes: FloatArray
    inverse: FloatArray
    variances: FloatArray
    precision: FloatArray
    pull: FloatArray
    outer_pull: FloatArray

    @classmethod
    def of(
        cls, regression: MixedRegression, others: FloatArray, Sigma: FloatArray, Omega: FloatArray
    ) -> "FreeEffects":
        """Along the axes of two covariances; `others` are rho of the other terms."""
        root = lower_cholesky(Sigma)
        half = invert_lower(root)
        whitened = np.einsum("ij,jk,lk->il", half, Omega, half)
        variances, vectors = np.linalg.eigh(0.5 * (whitened + whitened.T))
        variances = np.maximum(variances, 1e-14 * variances[-1])
        inverse = np.einsum("ji,jk->ik", vectors, half)
        return cls(
            regression, np.einsum("ij,jk->ik", root, vectors), inverse, variances,
            regression.inner_precision(others), np.einsum("rn,in->ri", regression.pull, inverse),
            np.einsum("an,in->ai", regression.outer_pull, inverse),
        )  # fmt: skip

    def log_evidence(self, axis: int, variance: float) -> float:
        """Log density of the rows along one axis, up to a constant; O(A r**2 + r**3)."""
        outer = self.regression.outer_counts + 1.0 / variance
        half, pulled, outer_pulled = self._solve(axis, outer)
        log_det = float(np.sum(np.log(outer))) + len(outer) * math.log(variance)
        log_det -= 2.0 * float(np.sum(np.log(np.diagonal(half))))
        return 0.5 * (float(pulled @ pulled) + outer_pulled - log_det)

    def _solve(self, axis: int, outer: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Inverse of the other columns' Cholesky factor, their pull under it, the effects' own."""
        r = len(self.precision)
        together = np.empty((len(outer), r + 1))
        root = 1.0 / np.sqrt(outer)
        np.multiply(self.regression.outer_cross, root[:, None], out=together[:, :r])
        np.multiply(self.outer_pull[:, axis], root, out=together[:, r])
        taken = scatter(together, np.zeros(r + 1))
        half = invert_lower(lower_cholesky(self.precision - taken[:r, :r]))
        pulled = np.einsum("qr,r->q", half, self.pull[:, axis] - taken[:r, r])
        return half, pulled, float(taken[r, r])

    def log_density(self, axis: int, variance: float, at: FloatArray, prior: OmegaPrior) -> float:
        """Log density of one variance, the others being `at`, up to a constant: see above."""
        others = np.abs(variance - np.delete(at, axis))
        if not (variance > 0.0 and math.isfinite(variance) and others.all()):
            return -math.inf
        w = self.inverse[axis]
        pull = float(np.einsum("i,ij,j->", w, prior.scale, w)) / variance
        power = (prior.dof + len(at) + 1.0) * math.log(variance)
        volume = float(np.sum(np.log(others)))
        return self.log_evidence(axis, variance) - 0.5 * (power + pull) + volume

    def covariance(self, variances: FloatArray) -> FloatArray:
        """Omega with these variances along the axes."""
        return np.asarray(np.einsum("ik,k,jk->ij", self.axes, variances, self.axes))

    def sample(self, rng: np.random.Generator, variances: FloatArray) -> MixedDraw:
        """Coefficients and effects of all terms in one draw, given these variances."""
        r, n = self.pull.shape
        levels = len(self.outer_pull)
        noise = rng.standard_normal((r + levels, n))
        inner, outer = np.empty((r, n)), np.empty((levels, n))
        for axis, variance in enumerate(variances):
            precision = self.regression.outer_counts + 1.0 / variance
            half, pulled, _ = self._solve(axis, precision)
            inner[:, axis] = np.einsum("qr,q->r", half, pulled + noise[:r, axis])
            left = self.outer_pull[:, axis] - np.einsum(
                "ar,r->a", self.regression.outer_cross, inner[:, axis]
            )
            outer[:, axis] = left / precision + noise[r:, axis] / np.sqrt(precision)
        back = partial(np.einsum, "ak,ik->ai")
        Sigma = np.asarray(back(self.axes, self.axes))
        return self.regression.arranged(back(inner, self.axes), back(outer, self.axes), Sigma)
