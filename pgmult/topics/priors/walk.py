"""A Gaussian whose mean is a random walk: its conjugate prior, and the evidence of its drift.

    Sigma ~ IW,  mu_0 | Sigma ~ N(mean, Sigma / strength),  mu_t ~ N(mu_{t-1}, drift_var Sigma)

Steps in units of Sigma make the means at all times matrix normal given Sigma, with a tridiagonal
precision between times: a `MatrixNormalInverseWishart` whose covariates are indicators of time.
Given drift_var the model is conjugate, so drift_var has a likelihood with mu and Sigma integrated
out. `TimedRows` are the sufficient statistics of rows; later costs do not depend on their number.

>>> import numpy as np
>>> from pgmult import NormalInverseWishart
>>> prior = mean_walk(NormalInverseWishart.weak(np.zeros(2)), 0.1, num_times=3)
>>> seen = TimedRows.of([[1.0, 0.0], [3.0, 1.0]], times=[0, 2], num_times=3)
>>> means, Sigma = seen.posterior(prior).sample(np.random.default_rng(0))
>>> means.shape, Sigma.shape
((3, 2), (2, 2))
"""

import math
from dataclasses import dataclass

import numpy as np

from pgmult.compiled.linalg import scatter
from pgmult.core.typing import Array, ArrayLike, BoolArray, FloatArray, Generator, IntArray
from pgmult.priors import MvNormal, NormalInverseWishart
from pgmult.priors.matrix_normal import MatrixNormalInverseWishart
from pgmult.sampling.blocks import Sums
from pgmult.sampling.moves import slice_sample
from pgmult.topics.data.timed import TimedCorpus
from pgmult.topics.priors.means import Fields, PsiMean, PsiState, with_two_words


def mean_walk(
    start: NormalInverseWishart, drift_var: float, num_times: int
) -> MatrixNormalInverseWishart:
    """The prior of means ``(num_times, n)`` and Sigma: a walk from `start`."""
    precision = _walk_precision(start.strength, drift_var, num_times)
    means = np.tile(start.mean, (num_times, 1))
    return MatrixNormalInverseWishart(means, precision, start.dof, start.scale)


@dataclass(frozen=True, slots=True, eq=False)
class TimedRows:
    """Sufficient statistics of rows ~ N(means[times], Sigma) for means and Sigma.

    Attributes
    ----------
    counts : int64 array, ``(num_times,)``
    averages : array, ``(num_times, n)``
        Of each time's rows; zeros where there are none.
    within : array, ``(n, n)``
        Scatter of the rows around their time's average.
    """

    counts: IntArray
    averages: FloatArray
    within: FloatArray

    @classmethod
    def of(cls, rows: ArrayLike, times: ArrayLike, num_times: int) -> "TimedRows":
        """Summarise rows, ``(num_rows, n)``, at times 0, ..., num_times - 1, ``(num_rows,)``."""
        x, t = np.asarray(rows, dtype=np.float64), np.asarray(times)
        counts = np.bincount(t, minlength=num_times)
        averages = np.zeros((num_times, x.shape[1]))
        np.add.at(averages, t, x)
        averages /= np.maximum(counts, 1)[:, None]
        return cls(counts, averages, scatter(x - averages[t], np.zeros(x.shape[1])))

    @classmethod
    def of_sums(
        cls, counts: IntArray, about: FloatArray, totals: FloatArray, squares: FloatArray
    ) -> "TimedRows":
        """Rows by their sums.

        Parameters
        ----------
        counts : int64 array, ``(num_times,)``
        about : array, ``(num_times, n)``
            A point near the rows of each time.
        totals : array, ``(num_times, n)``
            Sums of x - about.
        squares : array, ``(n, n)``
            Sum of (x - about)(x - about)', over all times.
        """
        shifts = totals / np.maximum(counts, 1)[:, None]
        between = scatter(np.sqrt(counts)[:, None] * shifts, np.zeros(totals.shape[1]))
        averages = np.where(counts[:, None] > 0, about + shifts, 0.0)
        return cls(counts, averages, squares - between)

    def posterior(self, prior: MatrixNormalInverseWishart) -> MatrixNormalInverseWishart:
        """The prior of ``(num_times, n)`` means given the rows."""
        weights = self.counts[:, None]
        precision = prior.row_precision + np.diag(self.counts.astype(np.float64))
        shift = np.linalg.solve(precision, weights * (self.averages - prior.mean))
        means = prior.mean + shift
        origin = np.zeros(means.shape[1])
        residuals = np.sqrt(weights) * (self.averages - means)
        moved = np.linalg.cholesky(prior.row_precision).T @ shift
        scale = prior.scale + self.within + scatter(residuals, origin) + scatter(moved, origin)
        dof = prior.dof + int(self.counts.sum())
        return MatrixNormalInverseWishart(means, precision, dof, scale)

    def log_evidence(self, start: NormalInverseWishart, drift_var: float) -> float:
        """Log probability of the rows under `mean_walk`, up to a constant without the drift.

        Means and Sigma are integrated out.
        """
        num_times, n = self.averages.shape
        walk = _walk_precision(start.strength, drift_var, num_times)
        precision = walk + np.diag(self.counts)
        gaps = self.averages - start.mean
        weighted = self.counts[:, None] * gaps
        # counts - counts precision^-1 counts = counts precision^-1 walk
        scale = start.scale + self.within + weighted.T @ np.linalg.solve(precision, walk @ gaps)
        growth = np.linalg.slogdet(precision)[1] + (num_times - 1) * math.log(drift_var)
        dof = start.dof + int(self.counts.sum())
        return float(-0.5 * (n * growth + dof * np.linalg.slogdet(scale)[1]))


def _walk_precision(strength: float, drift_var: float, num_times: int) -> FloatArray:
    """Between times, in units of the precision of rows."""
    precision = np.zeros((num_times, num_times))
    flat, weight = precision.reshape(-1), 1.0 / drift_var
    flat[1 :: num_times + 1] = flat[num_times :: num_times + 1] = -weight
    flat[:: num_times + 1] = 2.0 * weight
    precision[-1, -1] = weight
    precision[0, 0] = strength + (weight if num_times > 1 else 0.0)
    return precision


def log_inverse_gamma(log_var: FloatArray, shape: float, scale: float) -> FloatArray:
    """Log density of the logarithm of an inverse-gamma variable, up to a constant."""
    return -shape * log_var - scale * np.exp(-log_var)


@dataclass(frozen=True, slots=True, eq=False)
class WalkingMean(PsiMean[TimedCorpus]):
    """psi_d ~ N(mu_t, Sigma) at time t of the document, mu a walk. Fields: mu, Sigma and its drift.

    Attributes
    ----------
    gaussian : NormalInverseWishart
        Prior of mu_0 and Sigma.
    shape, scale : float
        Inverse-gamma prior of ``prevalence_drift``, the variance of a step in units of Sigma.
    """

    gaussian: NormalInverseWishart
    shape: float
    scale: float

    def as_data(self, data: object) -> TimedCorpus:
        """The data, if they are a corpus with times."""
        if not isinstance(data, TimedCorpus):
            got, hint = type(data).__name__, "make the data with as_timed_corpus(counts, times)"
            raise TypeError(f"dynamic topics need the documents' times, got {got} ({hint})")
        return with_two_words(data)

    def coords(self, data: TimedCorpus) -> dict[str, Array]:
        """Times."""
        return {"time": data.time_labels}

    def means(self, state: PsiState, data: TimedCorpus) -> FloatArray:
        """Mean of psi, ``(num_documents, n)``."""
        return np.asarray(state.mu[data.times])

    def sums(self, state: PsiState, psi: FloatArray, data: TimedCorpus) -> Sums:
        """Number of documents and first moments of psi by time, second moments over all times.

        Moments are about the old mu of each time.
        """
        away = psi - state.mu[data.times]
        totals = np.zeros(state.mu.shape)
        np.add.at(totals, data.times, away)
        squares = scatter(away, np.zeros(psi.shape[1]))
        counts = np.bincount(data.times, minlength=data.num_times)
        return Sums((counts,), (totals, squares))

    def given(self, rng: Generator, state: PsiState, sums: Sums, data: TimedCorpus) -> Fields:
        """A slice of the log drift given psi, mu and Sigma integrated out; then mu and Sigma."""
        rows = TimedRows.of_sums(sums.exact[0], state.mu, *sums.rounded)

        def log_density(log_drift: FloatArray, active: BoolArray) -> FloatArray:
            prior = log_inverse_gamma(log_drift, self.shape, self.scale)
            return prior + rows.log_evidence(self.gaussian, float(np.exp(log_drift[0])))

        log_drift = slice_sample(rng, log_density, np.log([state.prevalence_drift]), width=1.0)
        return self._walked(rng, float(np.exp(log_drift[0])), rows)

    def prior(self, rng: Generator, data: TimedCorpus) -> tuple[FloatArray, Fields]:
        """Psi, and mu, Sigma and the drift, drawn from the prior."""
        drift = float(self.scale / rng.gamma(self.shape))
        mu, Sigma = mean_walk(self.gaussian, drift, data.num_times).sample(rng)
        psi = MvNormal(mu[data.times], Sigma).sample(rng)
        return psi, {"mu": mu, "Sigma": Sigma, "prevalence_drift": drift}

    def start(self, rng: Generator, psi: FloatArray, data: TimedCorpus) -> Fields:
        """The drift at ``scale / shape``, and mu and Sigma given it and psi."""
        rows = TimedRows.of(psi, data.times, data.num_times)
        return self._walked(rng, self.scale / self.shape, rows)

    def _walked(self, rng: Generator, drift: float, rows: TimedRows) -> Fields:
        """Mu and Sigma given rows and the drift."""
        mu, Sigma = rows.posterior(mean_walk(self.gaussian, drift, len(rows.counts))).sample(rng)
        return {"mu": mu, "Sigma": Sigma, "prevalence_drift": drift}
