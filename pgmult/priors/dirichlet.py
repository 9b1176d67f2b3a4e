r"""Dirichlet rows: p(pi | alpha) ∝ prod_v pi_v^{alpha_v - 1}, conjugate to multinomial counts.

A row of a topic model's word distributions has thousands of categories, small alpha and mostly zero
counts. Rows are normalised gamma variates computed on the log scale, so no concentration is too
small: with alpha = 1e-5 a row is still a valid draw, not 0 / 0.

>>> import numpy as np
>>> posterior = Dirichlet(0.5).condition([[2, 0, 1], [0, 0, 0]])
>>> posterior.mean().round(2)
array([[0.56, 0.11, 0.33],
       [0.33, 0.33, 0.33]])
>>> posterior.sample(np.random.default_rng(0)).shape
(2, 3)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln, xlogy

from pgmult.compiled.dirichlet import sample_rows
from pgmult.compiled.rows import over_rows
from pgmult.core import validate
from pgmult.core.arguments import as_list
from pgmult.core.machine import refuse_unaffordable
from pgmult.core.typing import ArrayLike, FloatArray, Generator


@dataclass(frozen=True, slots=True, eq=False)
class Dirichlet:
    """Independent Dirichlet rows.

    Parameters
    ----------
    concentration : array, ``(..., num_categories)``, or one positive number
        alpha. One number is used for every category, however many there are.
    """

    concentration: ArrayLike

    def __post_init__(self) -> None:
        alpha = validate.as_positive(self.concentration, "concentration")
        if alpha.ndim and alpha.shape[-1] < 2:
            raise ValueError(f"concentration must have at least 2 categories, got {alpha.shape}")
        if alpha.size and alpha.min() < 1e-300:
            raise ValueError(f"concentration must be at least 1e-300, got {alpha.min()}")
        object.__setattr__(self, "concentration", alpha)

    def condition(self, counts: ArrayLike) -> "Dirichlet":
        """The posterior given multinomial counts: the concentration grows by them.

        Parameters
        ----------
        counts : array, ``(..., num_categories)``
            Counts or expected counts; leading axes broadcast.
        """
        counts = validate.as_nonnegative(counts, "counts")
        return Dirichlet(self._concentration_for("counts", counts.shape) + counts)

    def sample(self, rng: Generator, shape: Sequence[int] | None = None) -> FloatArray:
        """One draw of every row.

        Rows have streams of their own, keyed by one draw from `rng`, and are shared among the
        threads of `pgmult.compiled.rows.row_threads`.

        Parameters
        ----------
        rng : numpy.random.Generator
        shape : integers, optional
            Shape of the draw, ``(..., num_categories)``. Default: the concentration's.

        Returns
        -------
        array, ``(..., num_categories)``
            Non-negative, rows sum to 1. A probability below the smallest float is 0.
        """
        shape = np.shape(self.concentration) if shape is None else shape
        sizes = as_list(shape, "shape", "integers")
        shape = tuple(validate.as_positive_int(size, "shape", minimum=0) for size in sizes)
        refuse_unaffordable(16.0 * math.prod(shape), "shape", shape)
        alpha = np.broadcast_to(self._concentration_for("shape", shape), shape)
        rows = np.require(alpha, requirements=["C", "A", "W"]).reshape(-1, shape[-1])
        out = np.empty(rows.shape)
        over_rows(sample_rows, len(rows), validate.new_key(rng), rows, out, grain=1)
        return out.reshape(shape)

    def mean(self) -> FloatArray:
        """Expected probabilities, ``(..., num_categories)``."""
        alpha = self._concentration_for("shape", np.shape(self.concentration))
        return np.asarray(alpha / alpha.sum(axis=-1, keepdims=True))

    def log_density(self, pi: ArrayLike) -> FloatArray:
        """Log density of each row over any num_categories - 1 of its probabilities.

        Parameters
        ----------
        pi : array, ``(..., num_categories)``

        Returns
        -------
        array, ``(...)``
            Infinite where a probability is 0 and its concentration is not 1: a draw with tiny
            concentrations may underflow to such a point.
        """
        pi = validate.as_simplex(pi)
        alpha = self._concentration_for("pi", pi.shape)
        alpha = np.broadcast_to(alpha, np.broadcast_shapes(alpha.shape, pi.shape))
        normaliser = gammaln(alpha).sum(axis=-1) - gammaln(alpha.sum(axis=-1))
        return np.asarray(xlogy(alpha - 1.0, pi).sum(axis=-1) - normaliser)

    def _concentration_for(self, name: str, shape: tuple[int, ...]) -> FloatArray:
        """The concentration, if it goes with an array of this shape."""
        alpha = np.asarray(self.concentration)
        if len(shape) == 0 or shape[-1] < 2:
            hint = "one concentration for all categories does not say how many there are"
            raise ValueError(f"{name} must have at least 2 categories, got {shape} ({hint})")
        if alpha.shape[-1:] not in ((), shape[-1:]):
            raise ValueError(f"{name} must have {alpha.shape[-1]} categories, got shape {shape}")
        validate.common_shape(**{"concentration": alpha.shape, name: shape})
        return alpha


def dirichlet_divergence(concentration: FloatArray, prior: float) -> float:
    """KL of Dirichlet rows from the symmetric Dirichlet."""
    totals, size = concentration.sum(axis=1), concentration.shape[1]
    rows = gammaln(totals) - gammaln(concentration).sum(axis=1)
    rows = rows - gammaln(prior * size) + size * gammaln(prior)
    logs = digamma(concentration) - digamma(totals)[:, None]
    return float((rows + np.sum((concentration - prior) * logs, 1)).sum())
