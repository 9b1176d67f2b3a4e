r"""The softmax link: K real numbers to K probabilities, pi_k = exp(psi_k) / sum_j exp(psi_j).

With a Gaussian prior on psi this is the logistic normal. The sum over j ties all coordinates
together, so no Pólya-gamma augmentation makes the likelihood Gaussian in all of psi: `augment`
refuses. Given the other coordinates, though, one psi_k sees a logistic likelihood (Chen, Zhu,
Wang, Zheng and Zhang 2013, "Scalable inference for logistic-normal topic models", section 3.2)::

    p(x | psi) ∝ sigma(psi_k - zeta_k)^{x_k} sigma(zeta_k - psi_k)^{N - x_k},
    zeta_k = log sum_{j != k} exp(psi_j),

so omega ~ PG(N, psi_k - zeta_k) makes psi_k alone Gaussian given the others.

Adding a number to every coordinate changes nothing; `inverse` returns the psi that sums to 0.

>>> import numpy as np
>>> link = LogisticNormal()
>>> link.probs([0.0, 0.0, np.log(2.0)]).round(3)
array([0.25, 0.25, 0.5 ])
"""

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from scipy.special import log_softmax, softmax

from pgmult.core.potentials import DensePotential
from pgmult.core.typing import ArrayLike, FloatArray, Generator
from pgmult.core.validate import as_nonnegative, common_shape
from pgmult.links._base import BaseLink, as_interior, as_psi, as_weights


@dataclass(frozen=True, slots=True)
class LogisticNormal(BaseLink):
    """K probabilities from K real numbers by the softmax.

    Every method is vectorised over leading axes, which broadcast between arguments. What is linear
    in the counts (`log_likelihood`, `expected`, `quadratic`) takes expected counts too.
    """

    def probs(self, psi: ArrayLike) -> FloatArray:
        """Probabilities, ``(..., num_categories)``, of psi of the same shape."""
        return np.asarray(softmax(as_psi(psi, 2), axis=-1))

    def log_probs(self, psi: ArrayLike) -> FloatArray:
        """Logarithms of the probabilities, finite where the probabilities underflow."""
        return np.asarray(log_softmax(as_psi(psi, 2), axis=-1))

    def inverse(self, pi: ArrayLike) -> FloatArray:
        """The psi of given positive probabilities that sums to 0 over the last axis.

        Raises
        ------
        ValueError
            If a probability is 0: its psi is infinite.
        """
        log_pi = np.log(as_interior(pi))
        return np.asarray(log_pi - log_pi.mean(axis=-1, keepdims=True))

    def augment(self, rng: Generator, psi: ArrayLike, counts: ArrayLike) -> NoReturn:
        """Refuses: the softmax has no augmentation that is Gaussian in all of psi.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError(
            "the softmax link has no block augmentation: Pólya-gamma variables make only one of its"
            " coordinates Gaussian at a time (use the StickBreaking link)"
        )

    def expected(self, mean: ArrayLike, var: ArrayLike, counts: ArrayLike) -> DensePotential:
        """The potential of Böhning's (1992) quadratic lower bound, best for the given moments.

        The softmax has no block augmentation whose omega could be averaged; mean field uses a bound
        instead. The log-sum-exp curves nowhere more than A = (I - 11' / K) / 2, so

            log p(x | psi) >= log p(x | m) + (x - N pi(m))' d - N d' A d / 2,    d = psi - m,

        whose mean under q is greatest at m = E psi, whatever the variance. J = N A ignores how
        rare a category is, so the posterior covariance is too small, the more so the more
        categories there are; for a faithful covariance expand with `quadratic` instead.

        Parameters
        ----------
        mean, var : arrays, ``(..., num_categories)``
            Moments of psi under q.
        counts : array, ``(..., num_categories)``
            Counts or expected counts.

        Returns
        -------
        DensePotential, ``(..., num_categories)``
        """
        mean = as_psi(mean, 2, "mean")
        shape = common_shape(mean=mean.shape, var=as_nonnegative(var, "var").shape)
        mean, counts = np.broadcast_to(mean, shape), as_weights(counts, shape)
        totals, size = counts.sum(axis=-1, keepdims=True), shape[-1]
        J = totals[..., None] * (0.5 * (np.eye(size) - 1.0 / size))
        slope = counts - totals * softmax(mean, axis=-1)
        h = slope + 0.5 * totals * (mean - mean.mean(axis=-1, keepdims=True))
        return DensePotential(np.broadcast_to(J, (*h.shape, size)).copy(), h)

    def quadratic(self, psi: ArrayLike, counts: ArrayLike) -> DensePotential:
        """The second-order Taylor expansion of the log likelihood: Newton and Laplace.

        J is minus its second derivative, N (diag(pi) - pi pi'), of rank K - 1, and h - J psi its
        first, x - N pi. Shapes as in `log_likelihood`; O(K^2) per row.
        """
        psi = as_psi(psi, 2)
        counts, pi = as_weights(counts, psi.shape), softmax(psi, axis=-1)
        weights = counts.sum(axis=-1, keepdims=True) * pi
        h = counts - weights + weights * (psi - (pi * psi).sum(axis=-1, keepdims=True))
        return DensePotential(weights[..., None] * (np.eye(psi.shape[-1]) - pi[..., None, :]), h)
