r"""The stick-breaking link: K - 1 real numbers to K probabilities, one logistic stick at a time.

Stick k takes the share sigma(psi_k) of what the sticks before it left (Linderman, Johnson and
Adams 2015, "Dependent multinomial models made easy", section 2)::

    pi_k = sigma(psi_k) prod_{j<k} sigma(-psi_j)   for k < K,      pi_K takes the rest.

A multinomial is then a product of binomials: with N_k = sum_{j>=k} x_j, the observations that
reach stick k, and kappa_k = x_k - N_k / 2,

    p(x | psi) ∝ prod_k sigma(psi_k)^{x_k} sigma(-psi_k)^{N_k - x_k}
               = prod_k 2^{-N_k} exp(kappa_k psi_k) E[exp(-omega_k psi_k^2 / 2)],

where omega_k ~ PG(N_k, 0) (Polson, Scott and Windle 2013, theorem 1). Given
omega_k | psi_k ~ PG(N_k, psi_k) the likelihood is a diagonal Gaussian potential, J = omega and
h = kappa (their equation 9): all sticks at once, which no softmax allows. A stick that nothing
reaches has J = h = 0.

>>> import numpy as np
>>> link = StickBreaking()
>>> link.probs([0.0, 0.0])
array([0.5 , 0.25, 0.25])
>>> potential = link.augment(np.random.default_rng(0), [0.0, 0.0], [3, 0, 0])
>>> potential.h
array([1.5, 0. ])
>>> bool(potential.J[1] == 0)
True
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.special import expit

from pgmult import polya_gamma
from pgmult.compiled import sticks
from pgmult.compiled.rows import over_rows
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import ArrayLike, FloatArray, Generator, IntArray
from pgmult.core.validate import as_counts, as_nonnegative, as_permutation, common_shape, new_key
from pgmult.links._base import BaseLink, as_interior, as_psi, as_rows, as_weights, leading_shape

_Array = TypeVar("_Array", FloatArray, IntArray)


@dataclass(frozen=True, slots=True)
class StickBreaking(BaseLink):
    """K probabilities from K - 1 logistic sticks.

    Every method is vectorised over leading axes, which broadcast between arguments, costs O(K) a
    row, and is stable for ``|psi|`` to 700 and K to 100,000. What is linear in the counts
    (`log_likelihood`, `expected`, `quadratic`) takes expected counts too.

    Parameters
    ----------
    order : sequence of K integers, optional
        A permutation of the categories: stick j breaks for category ``order[j]``, and the last
        category takes the rest. Any order gives the same family of probabilities, but not the
        same prior, nor the same mixing: Gibbs sampling mixes best with frequent categories first.
        Default: the categories as they come.
    """

    order: Sequence[int] | IntArray | None = None

    def __post_init__(self) -> None:
        if self.order is None:
            return
        order = as_counts(self.order, "order")
        if order.ndim != 1 or order.size < 2:
            raise ValueError(f"order must list 2 categories or more, got shape {order.shape}")
        order = as_permutation(order, order.size)
        object.__setattr__(self, "order", tuple(order.tolist()))

    def probs(self, psi: ArrayLike) -> FloatArray:
        """Probabilities of the categories.

        Parameters
        ----------
        psi : array, ``(..., num_categories - 1)``

        Returns
        -------
        array, ``(..., num_categories)``
            Each right to a few units in the last place, down to the smallest float; below it use
            `log_probs`.
        """
        return self._over_psi(sticks.probs_rows, psi)

    def log_probs(self, psi: ArrayLike) -> FloatArray:
        """Logarithms of the probabilities, finite where the probabilities underflow."""
        return self._over_psi(sticks.log_probs_rows, psi)

    def inverse(self, pi: ArrayLike) -> FloatArray:
        """The psi of given probabilities: psi_k = log pi_k - log sum_{j>k} pi_j.

        Parameters
        ----------
        pi : array, ``(..., num_categories)``
            Positive; must sum to 1.

        Raises
        ------
        ValueError
            If a probability is 0: its psi is infinite.
        """
        pi = self._to_sticks(as_interior(pi), "pi")
        return np.log(pi[..., :-1]) - np.log(_sum_from(pi)[..., 1:])

    def totals(self, counts: ArrayLike) -> IntArray:
        """N_k, the observations that reach each stick, ``(..., num_categories - 1)``."""
        return _sum_from(self._to_sticks(as_counts(counts), "counts"))[..., :-1]

    def augment(self, rng: Generator, psi: ArrayLike, counts: ArrayLike) -> DiagonalPotential:
        """Draw omega_k | psi_k ~ PG(N_k, psi_k): the potential of one Gibbs step.

        Rows have streams of their own, keyed by one draw from `rng`, and are shared among the
        threads of `pgmult.compiled.rows.row_threads`.

        Parameters
        ----------
        rng : numpy.random.Generator
        psi : array, ``(..., num_categories - 1)``
        counts : integer array, ``(..., num_categories)``

        Returns
        -------
        DiagonalPotential, ``(..., num_categories - 1)``
            J = omega, h = kappa; both exactly 0 where no observation reaches the stick.
        """
        psi, counts = as_psi(psi, 1), as_counts(counts)
        order = self.order_of(psi.shape[-1] + 1)
        leading = leading_shape(counts, (*psi.shape[:-1], order.size))
        rows = as_rows(psi, leading), as_rows(counts, leading)
        J, h = np.empty((2, *rows[0].shape))
        over_rows(sticks.augment_rows, len(J), new_key(rng), *rows, order, J, h)
        shape = (*leading, order.size - 1)
        return DiagonalPotential(J.reshape(shape), h.reshape(shape))

    def expected(self, mean: ArrayLike, var: ArrayLike, counts: ArrayLike) -> DiagonalPotential:
        """The potential under E_q[omega], for a Gaussian q(psi): one mean-field step.

        The best q(omega_k) is PG(N_k, xi_k) with xi_k^2 = E psi_k^2, and the bound is Jaakkola and
        Jordan's (2000). It is linear in the counts, so for random counts their means serve. Like
        every mean field it gives psi too small a variance.

        Parameters
        ----------
        mean, var : arrays, ``(..., num_categories - 1)``
            Moments of psi under q.
        counts : array, ``(..., num_categories)``
            Counts or expected counts.

        Returns
        -------
        DiagonalPotential, ``(..., num_categories - 1)``
        """
        mean = as_psi(mean, 1, "mean")
        var = as_nonnegative(var, "var")
        taken, reaching = self._binomials(counts, common_shape(mean=mean.shape, var=var.shape))
        J = polya_gamma.mean(reaching, np.sqrt(mean * mean + var))
        return DiagonalPotential(J, np.broadcast_to(taken - 0.5 * reaching, J.shape).copy())

    def quadratic(self, psi: ArrayLike, counts: ArrayLike) -> DiagonalPotential:
        """The second-order Taylor expansion of the log likelihood: Newton and Laplace.

        J is minus its second derivative, N_k sigma(psi_k) sigma(-psi_k), and h - J psi its first.
        Shapes as in `log_likelihood`.
        """
        psi = as_psi(psi, 1)
        taken, reaching = self._binomials(counts, psi.shape)
        share, rest = expit(psi), expit(-psi)
        J = reaching * share * rest
        return DiagonalPotential(J, taken * rest - (reaching - taken) * share + J * psi)

    def order_of(self, num_categories: int) -> IntArray:
        """The category of each stick, and last the one that takes the rest."""
        if self.order is None:
            return np.arange(num_categories)
        if len(self.order) != num_categories:
            raise ValueError(f"order must list {num_categories} categories, got {len(self.order)}")
        return np.asarray(self.order, dtype=np.int64)

    def _to_sticks(self, array: _Array, name: str) -> _Array:
        """Categories in the order of the sticks."""
        if array.ndim == 0 or array.shape[-1] < 2:
            raise ValueError(f"{name} must have at least 2 categories, got shape {array.shape}")
        return array if self.order is None else array[..., self.order_of(array.shape[-1])]

    def _binomials(
        self, counts: ArrayLike, psi_shape: tuple[int, ...]
    ) -> tuple[FloatArray, FloatArray]:
        """How much each stick takes (x_k) and how much reaches it (N_k)."""
        weights = as_weights(counts, (*psi_shape[:-1], psi_shape[-1] + 1))
        weights = self._to_sticks(weights, "counts")
        return weights[..., :-1], _sum_from(weights)[..., :-1]

    def _over_psi(self, kernel: Callable[..., None], psi: ArrayLike) -> FloatArray:
        psi = as_psi(psi, 1)
        order = self.order_of(psi.shape[-1] + 1)
        rows = as_rows(psi, psi.shape[:-1])
        out = np.empty((len(rows), order.size))
        over_rows(kernel, len(rows), rows, order, out)
        return out.reshape(*psi.shape[:-1], order.size)


def _sum_from(array: _Array) -> _Array:
    """Sums over j >= k along the last axis, from the far end: no cancellation."""
    return np.cumsum(array[..., ::-1], axis=-1)[..., ::-1]
