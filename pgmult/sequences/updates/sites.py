r"""Moves around Gaussian sites that the data alone give, where steps have many observations.

Given omega, which remembers all N observations, what is rare among many hardly moves: the data tell
only as much as the N p of them. Where a step has many observations each pair's likelihood in psi is
nearly Gaussian: with a site (J_tk, h_tk) in its place (`Pairs`), and psi_tk = mu_tk + e_tk,
e_tk ~ N(0, v_k) white noise where counts are overdispersed, everything is Gaussian but the
correction

    C(psi) = sum_tk log p(counts_tk | psi_tk) - h_tk psi_tk + J_tk psi_tk^2 / 2.

Noise is integrated out by

    (J, h)  ->  (J, h) / (1 + v J),     psi | mu ~ N((mu + v h) / (1 + v J), v / (1 + v J)).

The variances v_k of noise, given states, are a Gibbs draw by the sites, from points of a grid that
was laid through each at random; noise is *carried* along, its own white noise as it was, and what
that does to C decides. *Rows* of weights are proposed, given states and noise, from a Gaussian near
what these leave of the posterior, found by Newton steps from the sites. A *turn* moves states and
noise of a sequence along an ellipse around their mean (Murray, Adams and MacKay 2010). Sites depend
on nothing that moves, so all of it is exact.
"""

import numpy as np
from scipy.special import expit

from pgmult.compiled.rows import over_rows
from pgmult.compiled.simd import WIDTH
from pgmult.core.typing import BoolArray, FloatArray, Generator
from pgmult.core.validate import new_key
from pgmult.priors.matrix_normal import linear_means
from pgmult.sequences.active_sticks import ActiveSticks, Pairs
from pgmult.sequences.compiled import symbols
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.priors.dynamics import LinearDynamics
from pgmult.sequences.priors.state_space import LDSState

LEAST_SD, LARGEST_SD = 1e-4, 30.0
_POINTS = 16  # of a grid of standard deviations
_FINEST, _COARSEST = 0.03, 0.6  # its steps, of logarithms
_MANY = 20


class SitedBlock:
    """States and noise of a block of sequences, and the sites around which they move.

    Parameters
    ----------
    data : Sequences
    state : LDSState
    columns : array, ``(num_steps, n)``
        What psi is linear in besides states.
    """

    def __init__(self, data: Sequences, state: LDSState, columns: FloatArray):
        self._active, self._sequence = ActiveSticks.of(data), data.sequence_of_step
        self.pairs = pairs = Pairs.of(data)
        self.states, self._columns = state.states, columns
        self.noise, noise_var = np.zeros(len(pairs.J)), np.zeros(len(state.weights))
        if len(state.noise_sd):
            self.noise, noise_var = state.noise[pairs.step, pairs.stick], state.noise_sd**2
        self._soften(noise_var)
        self._offer = self.noise, noise_var

    def _soften(self, noise_var: FloatArray) -> None:
        """Integrate noise of these variances out of the sites."""
        self.noise_var, pairs = noise_var, self.pairs
        self._shrink = 1.0 / (1.0 + noise_var[pairs.stick] * pairs.J)

    def _means(self, states: FloatArray, weights: FloatArray) -> FloatArray:
        """Psi without noise, of each pair."""
        psi = linear_means(np.concatenate([states, self._columns], axis=1), weights.T)
        return psi[self.pairs.step, self.pairs.stick]

    def psi(self, weights: FloatArray) -> FloatArray:
        """Psi of each pair."""
        return self._means(self.states, weights) + self.noise

    def carry_noise(self, weights: FloatArray, noise_var: FloatArray) -> FloatArray:
        """Offer noise that goes along with its variances; the gain of C of each stick."""
        pairs, mean = self.pairs, self._means(self.states, weights)
        old, new = self.noise_var[pairs.stick], noise_var[pairs.stick]
        was, becomes = old * self._shrink, new / (1.0 + new * pairs.J)
        pull = pairs.h - pairs.J * mean
        noise = becomes * pull + np.sqrt(becomes / was) * (self.noise - was * pull)
        self._offer = noise, noise_var
        gain = pairs.correction(mean + noise) - pairs.correction(mean + self.noise)
        return np.bincount(pairs.stick, gain, len(noise_var)).astype(np.float64)

    def noise_log_densities(self, weights: FloatArray, noise_var: FloatArray) -> FloatArray:
        """Log densities of the sites given variances ``(num_sticks, n)``, noise integrated out."""
        pairs, mean = self.pairs, self._means(self.states, weights)
        fit, pull = mean * (pairs.h - 0.5 * pairs.J * mean), pairs.h
        out = np.empty(noise_var.shape)
        for column, var in zip(out.T, noise_var.T, strict=True):
            v = var[pairs.stick]
            spread = 1.0 + v * pairs.J
            densities = (fit + 0.5 * v * pull * pull) / spread - 0.5 * np.log(spread)
            column[:] = np.bincount(pairs.stick, densities, len(var))
        return out

    def rows_after(self, accepted: BoolArray, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What is quadratic and linear in each stick's weights, given states and noise.

        Noise is first what was offered of the sticks that accepted it. The sums are by the
        expansion of the likelihood at some weights, or by the sites where there are none, and laid
        out as those of `ActiveSticks.statistics`.
        """
        pairs, design = self.pairs, np.concatenate([self.states, self._columns], axis=1)
        if accepted.any():
            noise, noise_var = self._offer
            self.noise = np.where(accepted[pairs.stick], noise, self.noise)
            self._soften(np.where(accepted, noise_var, self.noise_var))
        J, h = pairs.J, pairs.h
        if at.size:
            psi = self.psi(at)
            share = expit(psi)
            J = pairs.reaching * share * (1.0 - share)
            h = pairs.taken - pairs.reaching * share + J * psi
        return self._active.statistics(J, design, h - J * self.noise)

    def fits(self, weights: FloatArray) -> FloatArray:
        """The log likelihood of each stick, given states and noise."""
        fit = self.pairs.log_likelihoods(self.psi(weights))
        return np.bincount(self.pairs.stick, fit, len(weights)).astype(np.float64)

    def gains(self, weights: FloatArray, others: FloatArray) -> FloatArray:
        """Gain in log likelihood of each stick, by the first weights over the others."""
        return self.fits(weights) - self.fits(others)

    @property
    def sites(self) -> tuple[FloatArray, FloatArray]:
        """What sites say of psi without noise: J and h in the place of omega and kappa."""
        return self._shrink * self.pairs.J, self._shrink * self.pairs.h

    def turn(self, rng: Generator, weights: FloatArray, states: LinearDynamics) -> None:
        """One elliptical slice of states, whose distribution is by `sites`, and noise.

        Every sequence has its own.
        """
        pairs = self.pairs
        across, centre = states.sample_around(rng)
        tilt = self.noise_var[pairs.stick] * self._shrink
        sd = np.sqrt(tilt)

        def psi_of(states: FloatArray, white: FloatArray | float) -> FloatArray:
            mean = self._means(states, weights)
            return np.asarray(mean + tilt * (pairs.h - pairs.J * mean) + sd * white)

        psi_across, middle = psi_of(across, rng.standard_normal(len(sd))), psi_of(centre, 0.0)
        present, sequence = self.psi(weights), self._sequence
        size, of_pair = int(sequence[-1]) + 1, sequence[pairs.step]

        def fit(psi: FloatArray) -> FloatArray:
            return np.bincount(of_pair, pairs.correction(psi), size).astype(np.float64)

        level = fit(present) - rng.standard_exponential(size)
        angle = rng.uniform(0.0, 2.0 * np.pi, size)
        low, high = angle - 2.0 * np.pi, angle.copy()
        while True:
            cos, sin = np.cos(angle), np.sin(angle)
            psi = middle + (present - middle) * cos[of_pair] + (psi_across - middle) * sin[of_pair]
            failed = (fit(psi) < level) & (angle != 0.0)
            if not failed.any():
                break
            low = np.where(failed & (angle < 0.0), angle, low)
            high = np.where(failed & (angle > 0.0), angle, high)
            angle = np.where(failed, rng.uniform(low, high), angle)
        away, other = self.states - centre, across - centre
        self.states = centre + away * cos[sequence, None] + other * sin[sequence, None]
        self.noise = psi - self._means(self.states, weights) if sd.any() else self.noise


class RowProposal:
    """A Gaussian near the distribution of each stick's weights, given states and noise.

    Parameters
    ----------
    squares, linear : arrays
        As `SitedBlock.rows_after` gives them.
    mean, precision : arrays, ``(num_sticks, q)``
        Of the prior.
    """

    def __init__(
        self, squares: FloatArray, linear: FloatArray, mean: FloatArray, precision: FloatArray
    ):
        (n, q), (rows, columns) = linear.shape, np.tril_indices(linear.shape[1])
        self.prior_mean, self.prior_precision = mean, precision
        P = np.empty((n, q, q))
        P[:, rows, columns] = P[:, columns, rows] = squares
        P[:, range(q), range(q)] += precision
        self._root, right = np.linalg.cholesky(P), linear + precision * mean
        self.mean = np.asarray(np.linalg.solve(P, right[:, :, None])[:, :, 0], dtype=np.float64)

    def sample(self, rng: Generator) -> FloatArray:
        """A draw of all rows."""
        white = rng.standard_normal((*self.mean.shape, 1))
        return self.mean + np.linalg.solve(np.swapaxes(self._root, 1, 2), white)[:, :, 0]

    def log_ratio(self, weights: FloatArray) -> FloatArray:
        """Log prior less the log density of this Gaussian, of each stick."""
        white = np.einsum("kij,ki->kj", self._root, weights - self.mean)
        squares = self.prior_precision * (weights - self.prior_mean) ** 2
        return np.asarray(0.5 * ((white**2).sum(axis=1) - squares.sum(axis=1)))


class NoiseIntegratedOut:
    """Pólya-gamma variables of overdispersed counts: noise is integrated out, and drawn at the end.

    With omega ~ PG(N, psi) and noise of variance v the potential of mu is that of the module's
    docstring, of (omega, kappa).
    """

    def __init__(self, rng: Generator, pairs: Pairs, psi: FloatArray, noise_var: FloatArray):
        self.pairs, self.noise_var = pairs, noise_var
        self.omega, groups = np.empty(len(psi)), len(psi) // WIDTH
        lanes = pairs.reaching, psi, self.omega
        over_rows(symbols.draw_lanes, groups, new_key(rng), *lanes, grain=8)
        self.kappa = pairs.taken - 0.5 * pairs.reaching
        self._shrink = 1.0 / (1.0 + noise_var[pairs.stick] * self.omega)

    @property
    def sites(self) -> tuple[FloatArray, FloatArray]:
        """What stands in the place of omega and kappa."""
        return self.omega * self._shrink, self.kappa * self._shrink

    def sample_noise(self, rng: Generator, mean: FloatArray) -> FloatArray:
        """Noise of all steps and sticks, ``(num_steps, num_sticks)``; `mean` is psi without it."""
        pairs, white = self.pairs, rng.standard_normal(mean.shape)
        noise, reached = np.sqrt(self.noise_var) * white, pairs.reaching > 0
        at = pairs.step[reached], pairs.stick[reached]
        tilt = self.noise_var[at[1]] * self._shrink[reached]
        pull = self.kappa[reached] - self.omega[reached] * mean[at]
        noise[at] = tilt * pull + np.sqrt(tilt) * white[at]
        return np.asarray(noise)


def grid_of_sds(rng: Generator, sd: FloatArray) -> FloatArray:
    """Standard deviations ``(num_sticks, n)`` on grids through `sd`."""
    size = (len(sd), 1)
    step = np.exp(rng.uniform(np.log(_FINEST), np.log(_COARSEST), size))
    place = np.arange(_POINTS) - rng.integers(_POINTS, size=size)
    return np.asarray(sd[:, None] * np.exp(step * place))


def log_density_of_sds(sd: FloatArray, scale: float) -> FloatArray:
    """Log density of the logarithm of a half-t standard deviation of three degrees."""
    inside = (sd >= LEAST_SD) & (sd <= LARGEST_SD)
    return np.where(inside, np.log(sd) - 2.0 * np.log1p((sd / scale) ** 2 / 3.0), -np.inf)


def sample_noise_sd(rng: Generator, scale: float, size: int) -> FloatArray:
    """Standard deviations of noise from their prior, cut off where it has next to nothing."""
    sd = np.zeros(size)
    while (outside := (sd < LEAST_SD) | (sd > LARGEST_SD)).any():
        sd[outside] = scale * np.abs(rng.standard_t(3.0, int(outside.sum())))
    return sd


def many_a_step(data: Sequences) -> bool:
    """Whether a step with observations has some twenty on average: enough for sites of its own."""
    return bool(data.whole.taken.sum() >= _MANY * max(int(data.whole.reached[0]), 1))
