r"""Trends of counts: levels with damped slopes, whose noise changes with time.

For forecasts of shares some steps ahead: names by year, votes by election, cases by month. Each
stick k of each sequence is a structural time series (Harvey 1989; Gardner and McKenzie 1985 on
damped trends) with stochastic volatility (Kim, Shephard and Chib 1998)::

    counts_t     ~  Multinomial(total_t, stick-breaking(psi_t))
    psi_tk       ~  N(level_tk, (noise_k s_tk)^2)                       observations scatter
    level_tk     ~  N(level_{t-1,k} + slope_{t-1,k}, s_tk^2)
    slope_tk     ~  N(damping_k slope_{t-1,k}, (slope_noise_k s_tk)^2)
    log s_tk     ~  N(log s_{t-1,k}, volatility_k^2)

Each stick learns how far a movement carries on (`damping`, from 0 to 1), how its noise divides
between levels, slopes and observations, and how large it is *by now*: a forecast is as wide as the
recent past says, and grows wider with the steps ahead. Parameters have Gaussian priors on log odds
and logarithms. First levels are N(0, 5^2), first slopes have the distribution that they keep, and
the last s_tk, from which forecasts go on, the prior of `parameters`.

Sticks and sequences are independent, so a sweep goes through them side by side:
`pgmult.sequences.compiled.trends` describes it. It is exact for counts of any size.

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> share = 1.0 / (1.0 + np.exp(-0.1 * np.arange(-15.0, 15.0)))
>>> counts = rng.multinomial(2000, np.stack([share, 1.0 - share], axis=1))
>>> run = pgmult.sample(
...     MultinomialTrend(), [counts], draws=200, tune=200, chains=1, random_seed=0,
...     progressbar=False,
... )
>>> ahead = run.forecast(5).mean[0, :, 0]
>>> bool(ahead[0] > share[-1] and ahead[4] > ahead[0])
True
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logsumexp, xlogy

from pgmult.compiled.rows import over_rows
from pgmult.core.parameters import Checked, axes_of, whole
from pgmult.core.sweeps import Sampled, Scan
from pgmult.core.typing import Coords, Draw, FloatArray, Generator, IntArray, Names
from pgmult.core.validate import as_finite, new_key
from pgmult.links import StickBreaking
from pgmult.sequences.active_sticks import Pairs
from pgmult.sequences.compiled import trends as compiled
from pgmult.sequences.data.sequences import Sequences, one_of, sequences_for, simulate_symbols
from pgmult.sequences.models.base import Ahead, SequenceModel

_PRIOR = np.array([[1.0, 1.5], [-1.5, 1.0], [-1.5, 1.0], [-1.4, 1.0], [-4.0, 2.0]])
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def as_prior(prior: ArrayLike, name: str = "prior") -> FloatArray:
    """Means and standard deviations, ``(5, 2)``."""
    rows = as_finite(prior, name)
    if rows.shape != _PRIOR.shape or (rows[:, 1] <= 0.0).any():
        wanted = "five rows of a mean and a positive standard deviation"
        raise ValueError(f"{name} must have {wanted}, got {np.asarray(prior).tolist()}")
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class TrendState:
    """One point of the chain.

    Attributes
    ----------
    coordinates : array, ``(num_sequences, num_sticks, 5)``
        Log odds of the damping; logarithms of slope noise and noise, of volatility, and of the
        last scale s.
    log_scales : array, ``(num_steps, num_sticks)``
        log s.
    paths : array, ``(num_steps, num_sticks, 3)``
        Level, slope and psi.
    """

    coordinates: Annotated[FloatArray, "sequence", "stick", "coordinate"]
    log_scales: Annotated[FloatArray, "step", "stick"]
    paths: Annotated[FloatArray, "step", "stick", "component"]

    @property
    def psi(self) -> FloatArray:
        """The link's argument at every step."""
        return self.paths[:, :, 2].copy()

    @property
    def damping(self) -> FloatArray:
        """What is left of a slope a step later, ``(num_sequences, num_sticks)``."""
        return np.asarray(expit(self.coordinates[:, :, compiled.DAMPING]))

    @property
    def volatility(self) -> FloatArray:
        """How much the logarithm of the noise changes a step, ``(num_sequences, num_sticks)``."""
        return np.asarray(np.exp(self.coordinates[:, :, compiled.VOLATILITY]))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MultinomialTrend(SequenceModel, Sampled[Sequences, TrendState], Checked):
    """Levels with damped slopes and noise that changes with time, for each stick by itself.

    Parameters
    ----------
    memory : int
        How many steps of each sequence count, the last ones, 3 at least: how series moved long ago
        says little about how they will. Earlier steps are left out of the run.
    parameters : array, ``(5, 2)``
        Means and standard deviations of Gaussian priors: of the damping's log odds; of the
        logarithms of slope noise and noise, in units of the level's noise s; of the volatility; and
        of the last s. They are the same for all sticks.

    Notes
    -----
    Forecasts are of the sequences that the run is of: other ones need a run of their own.
    ``predict(filtered=True)`` comes from a Gaussian filter given a draw's parameters, exact as far
    as counts of a stick tell its psi like a Gaussian; levels are filtered, but parameters and
    scales know all steps. So runs are judged by forecasts of what was held out, not by `compare`.

    A sweep costs O(num_steps num_sticks), some 60 passes over the data.
    """

    memory: Annotated[int, whole(3)] = 20
    parameters: Annotated[FloatArray, as_prior] = field(default_factory=lambda: _PRIOR.copy())

    dims: ClassVar[Mapping[str, Names]] = axes_of(TrendState) | {
        "psi": ("step", "stick"), "damping": ("sequence", "stick"),
        "volatility": ("sequence", "stick"), "last_trends": ("sequence", "stick", "trend"),
        "last_probs": ("sequence", "symbol"), "probs": ("step", "symbol"),
    }  # fmt: skip
    predictive_variables: ClassVar[Names] = ("coordinates", "log_scales", "last_trends", "psi")
    monitored: ClassVar[Names] = ("last_probs",)
    default_keep: ClassVar[Names] = (*predictive_variables, "damping", "volatility", "last_probs")

    def as_data(self, data: Any) -> Sequences:
        """The last steps of `as_sequences`, without inputs, channels and known states."""
        return sequences_for("MultinomialTrend", data).last(self.memory)

    def coords(self, data: Sequences) -> Coords:
        """Labels of symbols, sticks and sequences, and names of coordinates."""
        named = {} if data.names is None else {"sequence": data.names}
        return {
            "symbol": data.labels, "stick": data.labels[data.order[:-1]],
            "coordinate": ["damping", "slope noise", "noise", "volatility", "scale"],
            "component": ["level", "slope", "psi"], "trend": ["level", "slope"], **named,
        }  # fmt: skip

    # ------------------------------------------------------------------ the model

    def link(self, data: Sequences) -> StickBreaking:
        """The link from psi to probabilities, frequent symbols first."""
        return StickBreaking(order=data.order)

    def prior(self, rng: Generator, data: Sequences) -> TrendState:
        """A state from the prior."""
        x, n = self._parameters(rng, data), data.num_symbols - 1
        log_scales, paths = np.empty((data.num_steps, n)), np.empty((data.num_steps, n, 3))
        for q, one in enumerate(x):
            steps = slice(data.offsets[q], data.offsets[q + 1])
            walk = np.exp(one[:, 3]) * rng.standard_normal((data.lengths[q] - 1, n))
            log_scales[steps] = np.cumsum(np.concatenate([one[None, :, 4], walk]), axis=0)[::-1]
            scale, damping = np.exp(log_scales[steps]), expit(one[:, 0])
            white = rng.standard_normal((data.lengths[q], 3, n))
            slope_sd = np.exp(one[:, 1]) / np.sqrt(1.0 - damping**2)
            trend = compiled.FIRST_SD * white[0, 0], scale[0] * slope_sd * white[0, 1]
            for t, (s, e) in enumerate(zip(scale, white, strict=True)):
                trend = _moved(trend, s, one, e) if t > 0 else trend
                psi = trend[0] + s * np.exp(one[:, 2]) * e[2]
                paths[data.offsets[q] + t] = np.stack([*trend, psi], axis=1)
        return TrendState(x, log_scales, paths)

    def _parameters(self, rng: Generator, data: Sequences) -> FloatArray:
        """Coordinates from their prior."""
        (mean, sd), shape = self.parameters.T, (data.num_sequences, data.num_symbols - 1)
        return np.asarray(mean + sd * rng.standard_normal((*shape, len(mean))))

    def probs(self, state: TrendState, data: Sequences) -> FloatArray:
        """Probabilities of every step, ``(num_steps, num_symbols)``."""
        return self.link(data).probs(state.psi)

    def simulate(self, rng: Generator, state: TrendState, data: Sequences) -> Sequences:
        """Sequences of the same lengths and totals."""
        return simulate_symbols(rng, self.probs(state, data), data)

    def log_likelihood(self, state: TrendState, data: Sequences) -> float:
        """Log p(observations | psi), without multinomial coefficients."""
        return float(xlogy(data.to_csr().toarray(), self.probs(state, data)).sum())

    def last_trends(self, state: TrendState, data: Sequences) -> FloatArray:
        """Level and slope of each sequence's last step, ``(num_sequences, num_sticks, 2)``."""
        return state.paths[data.offsets[1:] - 1, :, :2]

    def last_probs(self, state: TrendState, data: Sequences) -> FloatArray:
        """Probabilities at each sequence's last step, ``(num_sequences, num_symbols)``."""
        return self.link(data).probs(state.psi[data.offsets[1:] - 1])

    # ------------------------------------------------------------------ the sampler

    def sampler(self, data: Sequences) -> Scan[TrendState]:
        """Return the sweep over all series, and a start: parameters and paths around the sites."""
        series, shape = self.series(data), (data.num_steps, data.num_symbols - 1)

        def moved(rng: Generator, state: TrendState, fresh: bool) -> TrendState:
            new = TrendState(state.coordinates.copy(), state.log_scales.copy(), state.paths.copy())
            x = new.coordinates.reshape(-1, new.coordinates.shape[2])
            moves = new.log_scales, new.paths, fresh
            over_rows(compiled.sweep, len(x), new_key(rng), series, x, *moves, grain=1)
            return new

        def start(rng: Generator) -> TrendState:
            x = self._parameters(rng, data)
            return moved(rng, TrendState(x, np.zeros(shape), np.zeros((*shape, 3))), True)

        return Scan(start, (lambda rng, state: moved(rng, state, False),))

    def series(self, data: Sequences) -> compiled.TrendSeries:
        """The series as compiled code takes them."""
        pairs, dense = Pairs.of(data), np.zeros((4, data.num_symbols - 1, data.num_steps))
        reached = pairs.reaching > 0.0
        for out, values in zip(dense, (pairs.taken, pairs.reaching, pairs.J, pairs.h), strict=True):
            out[pairs.stick[reached], pairs.step[reached]] = values[reached]
        (taken, reaching, J, h), (mean, sd) = dense, self.parameters.T.copy()
        return compiled.TrendSeries(data.offsets, taken, reaching, J, h, mean, sd)

    # ------------------------------------------------------------------ predictions

    def step_probs(self, draw: Draw, data: Sequences, *, filtered: bool = False) -> FloatArray:
        """Probabilities of every step; `filtered`, expected given the steps before it alone."""
        if not filtered:
            return self.link(data).probs(draw["psi"])
        psi, weights = self._nodes(draw, data)
        stays = (expit(-psi) * weights).sum(axis=2)
        left = np.cumprod(np.concatenate([np.ones((len(psi), 1)), stays], axis=1), axis=1)
        out = np.empty_like(left)
        out[:, data.order] = left * np.append(1.0 - stays, np.ones((len(psi), 1)), axis=1)
        return out

    def log_predictive(self, draw: Draw, data: Sequences) -> FloatArray:
        """Log p(counts_t | counts_<t, draw), ``(num_steps,)``; 0 at missing steps."""
        (psi, weights), series = self._nodes(draw, data), self.series(data)
        fit = series.taken.T[:, :, None] * psi
        fit -= series.reaching.T[:, :, None] * np.logaddexp(0.0, psi)
        return np.asarray(logsumexp(fit, b=weights, axis=2).sum(axis=1))

    def _nodes(self, draw: Draw, data: Sequences) -> tuple[FloatArray, FloatArray]:
        """Points of psi given the steps before, ``(num_steps, num_sticks, n)``, and weights."""
        scales, moments = draw["log_scales"], np.empty((data.num_steps, data.num_symbols - 1, 2))
        x = np.ascontiguousarray(draw["coordinates"]).reshape(-1, compiled.NUM_PARAMETERS)
        over_rows(compiled.filter_rows, len(x), self.series(data), x, scales, moments, grain=1)
        mean, sd = moments[:, :, :1], np.sqrt(moments[:, :, 1:])
        return mean + sd * _NODES, _WEIGHTS

    def ahead(self, chances: FloatArray, draw: Draw, data: Sequences, steps: int) -> Ahead:
        """Probabilities along one path of each sequence, and symbols drawn of them.

        Shapes are those of `pgmult.sequences.MarkovChain.ahead`; the path follows from the first of
        a sequence's uniform numbers.
        """
        x, psi = draw["coordinates"], np.empty((data.num_sequences, steps, data.num_symbols - 1))
        for q, (one, last) in enumerate(zip(x, draw["last_trends"], strict=True)):
            rng = np.random.default_rng(int(chances[q, 0, 0] * 2**53))
            trend, log_scale = (last[:, 0], last[:, 1]), one[:, compiled.SCALE]
            for t, e in enumerate(rng.standard_normal((steps, 4, len(one)))):
                log_scale = log_scale + np.exp(one[:, compiled.VOLATILITY]) * e[3]
                s = np.exp(log_scale)
                trend = _moved(trend, s, one, e)
                psi[q, t] = trend[0] + s * np.exp(one[:, compiled.NOISE]) * e[2]
        probs = self.link(data).probs(psi)
        return probs, one_of(chances[:, 1, :steps], probs)

    def replicate(self, rng: Generator, draw: Draw, data: Sequences) -> IntArray:
        """New observations given psi of one draw, as counts of steps."""
        made = simulate_symbols(rng, self.link(data).probs(draw["psi"]), data)
        return np.asarray(made.to_csr().toarray())

    def row_probs(self, draw: Mapping[str, Any], data: Sequences) -> FloatArray:
        """Probabilities of steps: ``probs``, or those given ``psi``."""
        if "probs" in draw:
            return np.asarray(draw["probs"])
        if "psi" not in draw:
            raise ValueError("the posterior must have kept probs or psi (pass it in keep=)")
        return self.link(data).probs(draw["psi"])


def _moved(
    trend: tuple[FloatArray, FloatArray], scale: FloatArray, x: FloatArray, white: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Level and slope a step later, by white noise ``(2 or more, num_sticks)``."""
    level, slope = trend
    damping, ratio = expit(x[:, compiled.DAMPING]), np.exp(x[:, compiled.SLOPE])
    return level + slope + scale * white[0], damping * slope + ratio * scale * white[1]
