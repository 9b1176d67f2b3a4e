r"""A prior of the scales of a covariance, which conjugate priors of it would fix.

An inverse Wishart ties the variances of Sigma to its correlations, and its scale matters where the
data say little. Given auxiliary scales the prior here is inverse Wishart again, so a Gibbs sweep
has one more exact step, `given`, and goes on as before with the conjugate prior that it returns.

>>> import numpy as np
>>> from pgmult import NormalInverseWishart
>>> prior, rng = NormalInverseWishart.weak(np.zeros(2)), np.random.default_rng(0)
>>> mu, Sigma = HalfTScales().sample(rng, prior).sample(rng)
>>> HalfTScales().given(rng, Sigma, prior).dof
3.0
"""

from dataclasses import dataclass, replace
from typing import Annotated, TypeVar

import numpy as np

from pgmult.compiled.linalg import invert_positive_definite
from pgmult.core.parameters import Checked, real
from pgmult.core.typing import FloatArray
from pgmult.priors.gaussian import NormalInverseWishart
from pgmult.priors.matrix_normal import MatrixNormalInverseWishart

_Positive = Annotated[float, real(above=0.0, minimum=1e-100, maximum=1e100)]
Conjugate = TypeVar("Conjugate", NormalInverseWishart, MatrixNormalInverseWishart)


@dataclass(frozen=True, slots=True)
class HalfTScales(Checked):
    r"""Every standard deviation of Sigma half-t, whatever the others are (Huang and Wand 2013).

    With n coordinates, and in place of the `dof` and `scale` of the prior that it is used with::

        b_k ~ Gamma(1/2, rate 1 / scale^2),     Sigma | b ~ IW(2 dof diag(b), dof + n - 1)

    makes sqrt(Sigma_kk) half-t with `dof` degrees of freedom, and with dof = 2 every correlation
    uniform on (-1, 1) ("Simple marginally noninformative prior distributions for covariance
    matrices", section 2). Given Sigma,

        b_k ~ Gamma((dof + n) / 2, rate dof (Sigma^-1)_kk + 1 / scale^2).

    Attributes
    ----------
    dof : float
        > 0; of the half-t.
    scale : float
        > 0; of the half-t, in units of psi.
    """

    dof: _Positive = 2.0
    scale: _Positive = 2.5

    def sample(self, rng: np.random.Generator, prior: Conjugate) -> Conjugate:
        """The conjugate prior, its scales drawn from theirs."""
        return self._with(rng.gamma(0.5, self.scale**2, size=len(prior.scale)), prior)

    def given(self, rng: np.random.Generator, Sigma: FloatArray, prior: Conjugate) -> Conjugate:
        """The conjugate prior, its scales drawn given a covariance."""
        rate = self.dof * np.diagonal(invert_positive_definite(Sigma)) + self.scale**-2
        return self._with(rng.gamma(0.5 * (self.dof + len(Sigma)), 1.0 / rate), prior)

    def _with(self, b: FloatArray, prior: Conjugate) -> Conjugate:
        scale = np.diag(2.0 * self.dof * np.maximum(b, 1e-200))
        return replace(prior, dof=self.dof + len(b) - 1.0, scale=scale)
