"""What sweeps of an additive regression go around: approximations of the posterior, found once.

Of each stick, or of all together, the rows that reach it, their likelihood, and the Gaussian that
`pgmult.latent` finds near the posterior of its weights.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from scipy.special import log_softmax, softmax

from pgmult.core.blas import one_blas_thread
from pgmult.core.memory import once_a_data_set
from pgmult.core.typing import FloatArray
from pgmult.latent.additive import Additive
from pgmult.latent.approximation import Approximation, approximate, hyperparameters_near
from pgmult.latent.predictors import Joint, Latent, check_priors, latent_of, mapping
from pgmult.links import StickBreaking
from pgmult.regression.data import MOST_EVENTS, AdditiveRows
from pgmult.regression.models.dense import Dense, is_dense, softmax_likelihood
from pgmult.variational.sites import CountSite, LogisticSite

_LINEARISED = 3  # times that rows of a softmax are seen anew
_LEAST_SHARE = 1e-4


class Regression(Protocol):
    """What approximations depend on."""

    @property
    def effects(self) -> str:
        """What terms act on."""

    @property
    def priors(self) -> Mapping[str, Any]:
        """Laws of terms."""


class Block(NamedTuple):
    """Sticks that are sampled together: their predictors, rows and approximation."""

    family: Additive
    rows: Any
    found: Approximation

    def sample(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Hyperparameters and weights from the approximation."""
        x = hyperparameters_near(rng, self.family, self.found.guess)
        w = self.family.at(x, self.found.absorbed).sample(rng)
        if isinstance(self.rows, CountSite) and not math.isinf(self.rows.size):
            x = np.append(x, math.log(self.rows.size))
        return x, w


@once_a_data_set
def whole_latent(data: AdditiveRows, model: Regression) -> Latent:
    """Terms and design of all rows."""
    is_sized = data.family == "negative_binomial"
    priors = {k: v for k, v in model.priors.items() if not is_sized or k != "size"}
    check_priors(data.design, priors, learns_scales=True)
    return latent_of(data.design, model.priors, joint_of(data, model.effects))


def joint_of(data: AdditiveRows, effects: str) -> Joint | None:
    """How sticks see effects that they share."""
    if effects == "sticks":
        return None
    if data.is_events:
        raise ValueError(f"effects must be 'sticks' for events, got {effects!r}")
    num, names = data.num_sticks, tuple(data.categories[data.order].tolist())
    if effects == "softmax":
        if data.design.offset is not None:
            raise ValueError("offset(...) adds to all categories alike, which changes no softmax")
        return Joint(names, np.eye(num + 1), np.zeros(num + 1))
    assert data.shares is not None
    equal = StickBreaking().inverse(np.full(num + 1, 1.0 / (num + 1)))
    return Joint(names, mapping(data.shares[data.order]), equal)


@once_a_data_set
def approximated(data: AdditiveRows, model: Regression) -> list[Block]:
    """Of each stick, or all, the rows that reach it and the approximation of its posterior."""
    with one_blas_thread():
        latent = whole_latent(data, model)
        if data.is_events:
            return [_events(data, *likelihoods(data, model)[0])]
        if model.effects == "softmax":
            return [_softmax(data, latent)]
        return [
            Block(family, site, approximate(family, site))
            for family, site in likelihoods(data, model)
        ]


@once_a_data_set
def dense_parts(data: AdditiveRows, model: Regression) -> list[Dense]:
    """What dense sweeps of each stick, or all, go around; none where they are not dense."""
    parts = approximated(data, model)
    if not all(is_dense(family) for family, _, _ in parts):
        return []
    if model.effects == "softmax":
        rows = softmax_likelihood(data.design.matrix, data.counts.astype(np.float64), data.order)
        return [Dense.of(family, found, rows) for family, _, found in parts]
    return [Dense.of(family, found) for family, _, found in parts]


@once_a_data_set
def likelihoods(data: AdditiveRows, model: Regression) -> list[tuple[Additive, Any]]:
    """Of each stick, or all, the rows that reach it and their likelihood."""
    latent = whole_latent(data, model)
    if data.is_events:
        site = CountSite(data.counts[:, 0].astype(np.float64), weights=data.times)
        return [(latent.family, site)]
    taken = data.counts[:, data.order].astype(np.float64)
    reaching = np.cumsum(taken[:, ::-1], axis=1)[:, ::-1]
    found = []
    for sticks in np.arange(data.num_sticks).reshape(-1, latent.num_sticks):
        y, trials = taken[:, sticks].T.ravel(), reaching[:, sticks].T.ravel()
        rows = np.flatnonzero(trials)
        found.append((latent.family.take(rows), LogisticSite(y[rows], trials[rows])))
    return found


def _events(data: AdditiveRows, family: Additive, site: CountSite) -> Block:
    """Rows of events; the size of a negative binomial is roughly that of the best predictors."""
    found = approximate(family, site)
    if data.family == "poisson":
        return Block(family, site, found)
    for _ in range(2):
        at = family.at(found.guess.mean, found.absorbed).mean
        rates = np.exp(np.minimum(family.predictor(at), MOST_EVENTS))
        site = replace(site, size=rough_size(site.counts, rates, np.asarray(site.weights)))
        found = approximate(family, site)
    return Block(family, site, found)


def rough_size(counts: FloatArray, rates: FloatArray, times: FloatArray) -> float:
    """Of negative binomials of known means: their variance beyond a Poisson's is mean^2 / size."""
    beyond, squares = float(times @ ((counts - rates) ** 2 - rates)), float(times @ rates**2)
    return float(np.clip(squares / max(beyond, 1e-2 * squares), 0.2, 100.0))


@dataclass(frozen=True, slots=True, eq=False)
class _SoftmaxRows:
    """The likelihood of a softmax, as a function of predictors that are linear in its scores.

    Attributes
    ----------
    counts : array, ``(num_rows, K)``
    back : array, ``(num_rows, K, K - 1)``
        From predictors less their offsets to scores, up to a constant that does not matter.
    offset : array, ``((K - 1) num_rows,)``
    """

    counts: FloatArray
    back: FloatArray
    offset: FloatArray

    def _scores(self, psi: FloatArray) -> FloatArray:
        phi = (psi - self.offset).reshape(self.back.shape[2], -1)
        return np.asarray(np.einsum("nks,sn->nk", self.back, phi))

    def total(self, psi: FloatArray) -> float:
        """Log likelihood of all rows, up to a constant."""
        return float(np.sum(self.counts * log_softmax(self._scores(psi), axis=1)))

    def slope(self, psi: FloatArray) -> FloatArray:
        """Its derivatives."""
        expected = self.counts.sum(axis=1, keepdims=True) * softmax(self._scores(psi), axis=1)
        return np.ravel(np.einsum("nk,nks->sn", self.counts - expected, self.back))


def _softmax(data: AdditiveRows, latent: Latent) -> Block:
    """Rows of a softmax, by what sticks are of its scores near the probabilities of each row.

    There sticks are orthogonal, with binomial likelihoods: their sites, on predictors linear in
    the scores eta, psi = M(p) (eta - eta_hat) + psi(p), have the softmax's own curvature.
    """
    assert data.shares is not None
    taken = data.counts[:, data.order].astype(np.float64)
    reaching = np.cumsum(taken[:, ::-1], axis=1)[:, ::-1][:, :-1]
    site = LogisticSite(taken[:, :-1].T.ravel(), reaching.T.ravel())
    num = data.num_rows
    every = range(data.num_categories)
    designs = [latent.family.design[k * num : (k + 1) * num] for k in every]
    probs = np.tile(data.shares[data.order], (num, 1))
    for _ in range(_LINEARISED):
        M = np.array([mapping(p) for p in probs])
        offset = StickBreaking().inverse(probs) - np.einsum("nsk,nk->ns", M, np.log(probs))
        parts = [
            sum(sparse.diags_array(m) @ each for m, each in zip(row, designs, strict=True))
            for row in M.transpose(1, 2, 0)
        ]
        family = Additive(latent.family.terms, sparse.vstack(parts), offset.T.ravel())
        found = approximate(family, site)
        eta = latent.family.predictor(family.at(found.guess.mean, found.absorbed).mean)
        near = softmax(eta.reshape(-1, num).T, axis=1) + _LEAST_SHARE
        probs = near / near.sum(axis=1, keepdims=True)
    rows: Any = _SoftmaxRows(taken, np.linalg.pinv(M), family.offset)
    rng = np.random.default_rng(0)
    law = family.at(found.guess.mean, found.absorbed)
    left = [found.correction(rows, family.predictor(law.sample(rng))) for _ in range(40)]
    return Block(family, rows, replace(found, spread=float(np.var(left))))
