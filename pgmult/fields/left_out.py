r"""Each row of counts from all others: how probable the model finds it without its own counts.

Given hyperparameters, coefficients and psi at all other sites the sticks of site i are normal, with
r = psi - mean and K their covariance (Rasmussen and Williams 2006, section 5.4.2)::

    m_i = psi_i - [K^-1 r]_i / [K^-1]_ii,      v_i = 1 / [K^-1]_ii

(on a table of times and places at the cost of a rotation: `pgmult.fields.priors.separable`)
and the counts x_i of a row given these are one-dimensional integrals, a stick each::

    p(x_i | psi_-i)  =  prod_k E[sigma(psi_k)^x_k sigma(-psi_k)^(N_k - x_k)],   psi_k ~ N(m_ik, v_i)

A draw of the posterior has seen x_i. Weighted by 1 / p(x_i | psi_-i) it has not, for its psi_i is
integrated out and all else depends on x_i through that factor alone (Vehtari, Mononen, Tolvanen,
Sivula and Winther 2016, "Bayesian leave-one-out cross-validation approximations for Gaussian latent
variable models"). These weights vary much less than 1 / p(x_i | psi_i), whatever the counts: psi_i
hardly tells of all else. The largest are smoothed, and their shape says where they do not serve
(`pgmult.core.scores`). Rows at one site: the others of the site stay.
"""

import math
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, logsumexp

from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.fields.data import CountField
from pgmult.fields.models.multinomial_gp import MultinomialGP, MultinomialGPState
from pgmult.links.logistic import logistic_expectations
from pgmult.sampling.posterior import Posterior

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
_LOG_WEIGHTS = np.log(_WEIGHTS) - 0.5 * np.log(2.0 * np.pi)
_NEWTON_STEPS, _SETTLED = 30, 1e-6  # nodes about a point so near the mode are as good
_NUGGET = 1e-9  # of the largest variance; smooth covariances are singular to rounding without
_LEAST_VAR = 1e-8
_WORK, _CELLS = 1e11, 3e5  # multiplications of all inverses; probabilities of all draws on tables
_HELD = 2**25  # draws of probabilities held at a time
_LEAST, _NEVER = 1e-300, -700.0
_NEEDED = ("psi", "beta", "hyperparameters")


def without_row(
    run: Posterior, data: CountField, rows: IntArray, max_draws: int
) -> tuple[FloatArray, FloatArray]:
    """Predict some rows given all others, by each draw of a run.

    Where the run did not keep what this takes, or the model is another, draws are taken as they
    are: they have seen the row.

    Parameters
    ----------
    run : Posterior
        That kept ``psi``, ``beta`` and ``hyperparameters``; or ``psi`` or ``pi``.
    data : CountField
    rows : int array
    max_draws : int
        Draws to use at most; fewer where inverses of covariances are large.

    Returns
    -------
    log_p : array, ``(num_chains, num_draws, num_rows)``
        Log probability of the row's counts.
    log_probs : array, ``(num_chains, num_draws, num_rows, num_categories)``
        Log probabilities of the categories.
    """
    counts_of_rows = data.counts[rows]
    # draws of one state
    together = all(n in run for n in _NEEDED) and len({run.size_of(n) for n in _NEEDED}) == 1
    if not (together and isinstance(run.model, MultinomialGP)):
        log_probs = as_drawn(run, data, rows, max_draws)
        return np.einsum("cdrk,rk->cdr", log_probs, counts_of_rows), log_probs
    conditionals = _Conditionals(run.model, data)
    most = _number(run, data, max_draws, conditionals.affordable)
    draws = [run.thinned(name, most) for name in _NEEDED]
    shape = draws[0].shape[:2]
    log_p, log_probs = np.empty((*shape, len(rows))), np.empty((*shape, *counts_of_rows.shape))
    counts = _Counts.of(data, rows)
    for at in np.ndindex(*shape):
        normals = conditionals.of(MultinomialGPState(*(values[at] for values in draws)))
        log_p[at], log_probs[at] = counts.log_probs(*(x[data.row_sites[rows]] for x in normals))
    return log_p, log_probs


def _number(run: Posterior, data: CountField, max_draws: int, affordable: float = math.inf) -> int:
    """Draws to use: those that are soon done and can be held, but a few of each chain."""
    held = _HELD / max(1, data.counts.size)
    return min(max_draws, max(4 * run.num_chains, int(min(affordable, held))))


def as_drawn(run: Posterior, data: CountField, rows: IntArray, max_draws: int) -> FloatArray:
    """Log probabilities of the categories, ``(chains, draws, rows, categories)``."""
    draws = run.thinned("psi" if "psi" in run else "pi", _number(run, data, max_draws))
    probs = np.empty((*draws.shape[:2], len(rows), data.num_categories))
    for at in np.ndindex(*draws.shape[:2]):
        probs_of_all = run.link.probs(data.row_psi(draws[at])) if "psi" in run else draws[at]
        probs[at] = probs_of_all[rows]
    return np.log(np.maximum(probs, _LEAST))


class _Conditionals:
    """Psi at each site given psi at all others that have counts, or at all of a table."""

    def __init__(self, model: MultinomialGP, data: CountField):
        self._model, self._data = model, data
        self._table = model.table_sticks(data)
        self._seen = np.flatnonzero(data.site_counts().any(axis=1))
        # of the draw before: hyperparameters often stay
        self._inverse = lru_cache(maxsize=len(model.start(data)))(self._find_inverse)

    @property
    def affordable(self) -> float:
        """Draws that are soon done."""
        data, size = self._data, float(len(self._seen))
        if self._table is not None:
            return _CELLS / (size * data.num_categories)
        return _WORK / (size**3 * len(self._model.start(data)))

    def of(self, state: MultinomialGPState) -> tuple[FloatArray, FloatArray, FloatArray]:
        """psi, means and variances at the sites, each ``(num_sites, num_sticks)``."""
        data, model, seen = self._data, self._model, self._seen
        psi = state.psi[: data.num_sites]
        mean, var = psi.copy(), np.full(psi.shape, _LEAST_VAR)
        if self._table is not None:
            for sticks, draw in zip(self._table, state.on_tables(self._table), strict=True):
                centre, spread = map(sticks.table.at_sites, sticks.others(draw))
                mean[:, sticks.columns] = centre[: data.num_sites]
                var[:, sticks.columns] = spread[: data.num_sites]
            return psi, mean, np.maximum(var, _LEAST_VAR)
        left = (psi - model.trend(data).at(state.beta))[seen]
        for columns, theta in zip(model.columns(data), state.hyperparameters, strict=True):
            inverse = self._inverse(theta.tobytes())
            precision = np.diag(inverse)[:, None]
            mean[seen, columns] -= inverse @ left[:, columns] / precision
            var[seen, columns] = 1.0 / precision
        return psi, mean, np.maximum(var, _LEAST_VAR)

    def _find_inverse(self, theta: bytes) -> FloatArray:
        cov = self._model.full_covariance(self._data).with_log_params(np.log(np.frombuffer(theta)))
        matrix = cov.cov(self._data.sites[self._seen])
        matrix[np.diag_indices(len(matrix))] += _NUGGET * matrix.max()
        return np.asarray(cho_solve(cho_factor(matrix, lower=True), np.eye(len(matrix))))


class _Counts(NamedTuple):
    """Counts of some rows by sticks, and those of the other rows at their sites.

    Attributes
    ----------
    of_rows, others : arrays, ``(2, num_rows, num_sticks)``
        How much each stick takes and how much reaches it.
    counted : bool array, ``(num_rows, num_sticks)``
    order : int array
    """

    of_rows: FloatArray
    others: FloatArray
    counted: BoolArray
    order: IntArray

    @classmethod
    def of(cls, data: CountField, rows: IntArray) -> "_Counts":
        of_rows = data.row_stick_counts()[:, rows].astype(np.float64)
        others = data.stick_counts()[:, data.row_sites[rows]] - of_rows
        return cls(of_rows, others, data.was_counted[rows][:, data.order[:-1]], data.order)

    def log_probs(
        self, psi: FloatArray, mean: FloatArray, var: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Log probability of each row's own counts, and of each category, given all others."""
        integral = partial(log_mean_binomial, mean, var, psi)
        both = integral(self.of_rows + self.others)
        if self.others.any():
            others = integral(self.others)
            share = integral(self.others + 1.0) - others
            complement = integral(self.others + np.reshape([0.0, 1.0], (2, 1, 1))) - others
            both -= others
        else:
            shares = (logistic_expectations(sign * mean, var)[1] for sign in (1.0, -1.0))
            share, complement = (np.log(np.maximum(one, _LEAST)) for one in shares)
        share = np.where(self.counted, share, _NEVER)
        log_probs = np.zeros((len(share), len(self.order)))
        log_probs[:, self.order[:-1]] = share
        log_probs[:, self.order[1:]] += np.cumsum(np.where(self.counted, complement, 0.0), axis=1)
        return both.sum(axis=1), log_probs


def log_mean_binomial(
    mean: FloatArray, var: FloatArray, start: FloatArray, counts: FloatArray
) -> FloatArray:
    """Log E[sigma(psi)^x sigma(-psi)^(n - x)], psi ~ N(mean, var), elementwise; counts are x and n.

    Gauss-Hermite quadrature around the mode, which is looked for from `start` on, scaled by the
    curvature there.
    """
    x, n = counts
    precision = 1.0 / np.maximum(var, 1e-300)
    psi = np.broadcast_to(start, np.broadcast_shapes(mean.shape, x.shape)).copy()
    for _ in range(_NEWTON_STEPS):  # of a concave function; steps of one unit at most far away
        slope = x - n * expit(psi) - precision * (psi - mean)
        move = slope / np.maximum(n * expit(psi) * expit(-psi) + precision, np.abs(slope))
        psi += move
        if np.abs(move).max(initial=0.0) < _SETTLED:
            break
    scale = 1.0 / np.sqrt(n * expit(psi) * expit(-psi) + precision)
    nodes = psi[..., None] + scale[..., None] * _NODES
    log_density = x[..., None] * nodes - n[..., None] * np.logaddexp(0.0, nodes)
    log_density -= 0.5 * precision[..., None] * (nodes - mean[..., None]) ** 2
    terms = log_density + 0.5 * _NODES**2 + _LOG_WEIGHTS
    return np.asarray(logsumexp(terms, axis=-1) + np.log(scale) + 0.5 * np.log(precision))
