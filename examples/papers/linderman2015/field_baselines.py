r"""Baselines for multinomial Gaussian processes: regression on shares, and the last shares seen.

`RawGP` turns each row of counts into smoothed shares, takes their sticks, and regresses those on
the inputs as if they had been observed with one Gaussian noise (Linderman, Johnson and Adams 2015,
section 4, "Raw GP")::

    y_ik = sticks((x_i + pseudo_count) / (N_i + K pseudo_count)),      i = 1..n, k = 1..K-1
    y_ik = mean_k + f_k(s_i) + e_ik,    f_k ~ GP(0, covariance),    e_ik ~ N(0, noise_var)

with mean_k the average over rows. Everything is in closed form, and the hyperparameters that
maximise

    sum_k log N(y_k; mean_k, covariance(S, S) + noise_var I)

are found by `RawGP.learned`. It ignores that a share of 3 in 4 is less certain than one of 300 in
400, and takes a count of 0 in 50 for an observed share of 0.002.

`Static` carries each place's last observed shares forward.

Neither is a Bayesian model of counts: there is no chain to run, only `predict_probs`.

>>> import numpy as np, pgmult
>>> from pgmult.fields.covariances import SquaredExponential
>>> times = np.arange(6.0)
>>> counts = np.column_stack([10 + 10 * times, 60 - 10 * times]).astype(int)
>>> data = pgmult.fields.as_field(times, counts, new_inputs=[6.0])
>>> Static().predict_probs(data).round(2)
array([[0.85, 0.15]])
>>> RawGP(SquaredExponential(3.0), noise_var=0.01).predict_probs(data).round(1)
array([[0.9, 0.1]])
"""

import warnings
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize

from pgmult.core.arguments import as_kind, as_repeats, as_seed
from pgmult.core.parameters import Checked, Positive, whole
from pgmult.core.typing import FloatArray, IntArray
from pgmult.fields.covariances import Covariance
from pgmult.fields.covariances.base import as_covariance
from pgmult.fields.data import CountField, smoothed_shares
from pgmult.links import StickBreaking

_FACTOR = 1e4  # by which a learned hyperparameter may differ from where it started


@dataclass(frozen=True, slots=True, eq=False)
class Static(Checked):
    """Each place's last observed shares, carried forward.

    Parameters
    ----------
    time : int
        The column of the inputs that is time; the others say which place it is.
    pseudo_count : float
        Added to every count, so that no probability is 0.
    """

    time: Annotated[int, whole(minimum=0)] = 0
    pseudo_count: Positive = 1.0

    def predict_probs(self, data: Any) -> FloatArray:
        """Probabilities at the new inputs, ``(num_new_inputs, K)``.

        Rows are nan where a new input's place has no counts at its time or before, with a warning
        that names them.

        Raises
        ------
        ValueError
            If no new input has any.
        """
        data = as_kind(data, "data", CountField, "make one with as_field")
        if self.time >= data.inputs.shape[1]:
            raise ValueError(
                f"time must be a column of the inputs, of which there are"
                f" {data.inputs.shape[1]}, got {self.time}"
            )
        counts = data.site_counts()
        last = np.array(
            [self._last(data.sites, counts, new) for new in data.new_inputs], dtype=np.int64
        )
        unknown = np.flatnonzero(last < 0)
        if len(unknown):
            where = data.new_inputs[unknown[0]].tolist()
            said = f"no counts at the place of the new input {where} or before its time"
            if len(unknown) == len(last):
                raise ValueError(said)
            warnings.warn(
                f"{said}, and of {len(unknown)} of {len(last)} new inputs: their rows are nan",
                stacklevel=2,
            )
        shares = smoothed_shares(counts[last], self.pseudo_count)
        shares[unknown] = np.nan
        return shares

    def _last(self, sites: FloatArray, counts: IntArray, new: FloatArray) -> int:
        """The site of the last counts at the place of a new input, or -1."""
        same = np.delete(sites == new, self.time, axis=1).all(axis=1)
        times = sites[:, self.time]
        found = np.flatnonzero(same & (times <= new[self.time]) & (counts.sum(axis=1) > 0))
        return int(found[np.argmax(times[found])]) if len(found) else -1


@dataclass(frozen=True, slots=True, eq=False)
class RawGP(Checked):
    """Gaussian process regression on the sticks of smoothed shares.

    Parameters
    ----------
    covariance : Covariance
        Of each stick as a function of the inputs.
    noise_var : float
        Variance of the noise, positive.
    pseudo_count : float
        Added to every count, positive.

    Notes
    -----
    Rows without counts are left out; all others weigh the same. O(n^3) for n rows, and O(n^2) a
    stick.
    """

    covariance: Annotated[Covariance, as_covariance]
    noise_var: Positive = 1.0
    pseudo_count: Positive = 0.1

    def learned(self, data: Any, *, max_iterations: int = 100) -> "RawGP":
        """A copy with the covariance and noise that maximise the marginal likelihood.

        A point estimate: no prior is used, and each parameter stays within a factor of 10,000 of
        its start. The covariance found is a fair choice for a multinomial model with fixed
        hyperparameters, and is what the paper uses for its two models.

        Parameters
        ----------
        data : CountField
        max_iterations : int
            Of L-BFGS; each costs one factorisation, O(n^3), per hyperparameter.
        """
        inputs, sticks = self._training(as_kind(data, "data", CountField, "make one with as_field"))
        start = np.append(self.covariance.log_params, np.log(self.noise_var))

        found = minimize(
            lambda theta: -self._with(theta)._evidence(inputs, sticks), start, method="L-BFGS-B",
            bounds=[(x - np.log(_FACTOR), x + np.log(_FACTOR)) for x in start],
            options={"maxiter": as_repeats(max_iterations, "max_iterations"), "ftol": 1e-12},
        )  # fmt: skip
        return self._with(found.x)

    def log_marginal_likelihood(self, data: Any) -> float:
        """Log density of all sticks together, their means given."""
        return self._evidence(
            *self._training(as_kind(data, "data", CountField, "make one with as_field"))
        )

    def predict(self, data: Any) -> tuple[FloatArray, FloatArray]:
        """Mean of each stick at the new inputs and its variance, without noise.

        Returns
        -------
        mean : array, ``(num_new_inputs, num_categories - 1)``
        var : array, ``(num_new_inputs,)``
            The same for all sticks.
        """
        data = as_kind(data, "data", CountField, "make one with as_field")
        inputs, sticks = self._training(data)
        mean = sticks.mean(axis=0)
        root = self._root(inputs)
        across = self.covariance.cov(data.new_inputs, inputs)
        whitened = solve_triangular(root, across.T, lower=True)
        var = self.covariance.diagonal(data.new_inputs) - np.sum(whitened**2, axis=0)
        weights = cho_solve((root, True), sticks - mean)
        return mean + across @ weights, np.maximum(var, 0.0)

    def predict_probs(self, data: Any) -> FloatArray:
        """Probabilities at the new inputs, of the mean sticks, ``(num_new_inputs, K)``."""
        data = as_kind(data, "data", CountField, "make one with as_field")
        return self.link(data).probs(self.predict(data)[0])

    def sample_probs(self, data: Any, draws: int, random_seed: Any = None) -> FloatArray:
        """Draws of the probabilities at each new input, ``(draws, num_new_inputs, K)``.

        Sticks are independent. Each new input is drawn from its marginal law, not jointly with
        others.

        Parameters
        ----------
        data : CountField
        draws : int
        random_seed : int, optional
        """
        data = as_kind(data, "data", CountField, "make one with as_field")
        mean, var = self.predict(data)
        shape = (as_repeats(draws, "draws"), *mean.shape)
        noise = np.random.default_rng(as_seed(random_seed)).standard_normal(shape)
        return self.link(data).probs(mean + np.sqrt(var)[:, None] * noise)

    def link(self, data: CountField) -> StickBreaking:
        """The link from sticks to probabilities, in the order of the data."""
        return StickBreaking(order=data.order)

    def _training(self, data: CountField) -> tuple[FloatArray, FloatArray]:
        """Inputs of rows with counts, and the sticks there."""
        seen = data.counts.sum(axis=1) > 0
        if not seen.any():
            raise ValueError("data must have counts in one row at least, all rows are empty")
        shares = smoothed_shares(data.counts[seen], self.pseudo_count)
        return data.inputs[seen], self.link(data).inverse(shares)

    def _with(self, theta: FloatArray) -> "RawGP":
        covariance = self.covariance.with_log_params(theta[:-1])
        return replace(self, covariance=covariance, noise_var=float(np.exp(theta[-1])))

    def _root(self, inputs: FloatArray) -> FloatArray:
        cov = self.covariance.cov(inputs)
        cov[np.diag_indices_from(cov)] += self.noise_var
        return np.asarray(np.linalg.cholesky(cov))

    def _evidence(self, inputs: FloatArray, sticks: FloatArray) -> float:
        """The log marginal likelihood."""
        root = self._root(inputs)
        deviation = sticks - sticks.mean(axis=0)
        weights = cho_solve((root, True), deviation)
        size, num_sticks = deviation.shape
        log_root = np.log(np.diagonal(root)).sum() + 0.5 * size * np.log(2.0 * np.pi)
        return float(-0.5 * np.sum(deviation * weights) - num_sticks * log_root)
