"""Collapsed Gibbs sampling of a mixture of Gaussians, many chains at once.

The model of `examples.papers.hensman2012.problems.GaussianMixtureProblem`: weights from a symmetric
Dirichlet, the mean and covariance of each of K components from a normal-inverse-Wishart prior. With
these integrated out, rows are drawn one after the other (Neal 2000, "Markov chain sampling methods
for Dirichlet process mixture models", algorithm 3, here with a fixed number of components)::

    p(z_n = k | z_-n, x)  =  (concentration + N_k) t(x_n | rows of k but n) / const.

The chains are independent: they share the arithmetic only, an array operation for all of them.

>>> x = np.array([[0.0], [0.1], [9.0]])
>>> prior = NormalInverseWishart(np.zeros(1), 0.1, 3.0, np.eye(1))
>>> for z in gibbs(np.random.default_rng(0), x, 2, prior, num_chains=5, sweeps=3):
...     print(z.shape)
(5, 3)
(5, 3)
(5, 3)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from pgmult import NormalInverseWishart

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Components:
    """The laws of all components given their rows: normal-inverse-Wishart, K in each of C chains.

    Attributes
    ----------
    prior : NormalInverseWishart
    counts : array, ``(C, K)``
        Rows of each component.
    mean : array, ``(C, K, D)``
    precision : array, ``(C, K, D, D)``
        The inverse of the scale.
    log_det : array, ``(C, K)``
        Of the scale.
    """

    prior: NormalInverseWishart
    counts: Floats
    mean: Floats
    precision: Floats
    log_det: Floats

    @classmethod
    def of(cls, x: Floats, shares: Floats, prior: NormalInverseWishart) -> Self:
        """Given how much of each row they have, ``(C, num_rows, K)``."""
        counts = shares.sum(axis=1)
        mean = prior.strength * prior.mean + np.einsum("cnk,ni->cki", shares, x)
        mean /= (prior.strength + counts)[..., None]
        away = x[:, None] - mean[:, None]  # (C, num_rows, K, D)
        pull = prior.mean - mean
        scale = prior.scale + prior.strength * pull[..., :, None] * pull[..., None, :]
        scale += np.einsum("cnk,cnki,cnkj->ckij", shares, away, away, optimize=True)
        return cls(prior, counts, mean, np.linalg.inv(scale), np.linalg.slogdet(scale)[1])

    def put(self, row: Floats, z: Ints, sign: float = 1.0) -> None:
        """Add a row to component z of each chain, or take it away with sign -1."""
        at = np.arange(len(z)), z
        before = self.prior.strength + self.counts[at]
        away = row - self.mean[at]
        factor = sign * before / (before + sign)  # the scale grows by factor * away away'
        pull = np.einsum("cij,cj->ci", self.precision[at], away)
        growth = 1.0 + factor * np.sum(pull * away, axis=1)
        self.precision[at] -= (factor / growth)[:, None, None] * pull[:, :, None] * pull[:, None]
        self.log_det[at] += np.log(growth)
        self.mean[at] += (sign / (before + sign))[:, None] * away
        self.counts[at] += sign

    def log_predictive(self, row: Floats) -> Floats:
        """Log density of another row in each component, Student's t, ``(C, K)``."""
        depth, strength = len(row), self.prior.strength + self.counts
        dof = self.prior.dof + self.counts + 1.0
        away = row - self.mean
        square = np.einsum("cki,ckij,ckj->ck", away, self.precision, away)
        share = strength / (strength + 1.0)
        return (
            gammaln(0.5 * dof) - gammaln(0.5 * (dof - depth))
            + 0.5 * depth * np.log(share / np.pi)
            - 0.5 * self.log_det - 0.5 * dof * np.log1p(share * square)
        )  # fmt: skip

    def log_density(self, points: Floats, concentration: float) -> Floats:
        """Log predictive density of the mixture at each point, ``(C, num_points)``."""
        weights = concentration + self.counts
        weights /= weights.sum(axis=1, keepdims=True)
        each = [logsumexp(np.log(weights) + self.log_predictive(row), axis=1) for row in points]
        return np.stack(each, axis=1)


def draw(rng: np.random.Generator, log_probs: Floats) -> Ints:
    """One index a row of unnormalised log probabilities."""
    return np.argmax(log_probs + rng.gumbel(size=log_probs.shape), axis=1)


def sweep(
    rng: np.random.Generator, x: Floats, z: Ints, components: Components, concentration: float
) -> None:
    """Draw the component of every row anew; changes `z` and `components`."""
    for n, row in enumerate(x):
        components.put(row, z[:, n], -1.0)
        prior = np.log(concentration + components.counts)
        z[:, n] = draw(rng, prior + components.log_predictive(row))
        components.put(row, z[:, n])


def gibbs(
    rng: np.random.Generator,
    x: Floats,
    num_components: int,
    prior: NormalInverseWishart,
    concentration: float = 1.0,
    *,
    num_chains: int,
    sweeps: int,
) -> Iterator[Ints]:
    """The components of all rows after each sweep, ``(num_chains, num_rows)``.

    Half of the chains start with all rows in one component, half with rows in random ones.
    """
    z = rng.integers(num_components, size=(num_chains, len(x)))
    z[::2] = 0
    for _ in range(sweeps):  # components anew each time: rounding errors would add up
        components = Components.of(x, np.eye(num_components)[z], prior)
        sweep(rng, x, z, components, concentration)
        yield z.copy()
