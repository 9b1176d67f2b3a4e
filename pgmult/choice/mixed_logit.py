r"""Hierarchical mixed logit: people choose by tastes that are drawn from one population.

Person i has tastes beta_i for the attributes x of alternatives; other attributes z have the same
coefficients b for everybody. In an occasion the probability of alternative r among those available
is

    p_r proportional to exp(x_r' coef(beta_i) + z_r' b),      beta_i ~ N(mean, cov),

where coef is beta itself or, for attributes whose sign is fixed, sign exp(beta) (log-normal).
Without people it is the conditional logit (McFadden 1974). Priors, for attributes divided by their
standard deviation within occasions: mean and b are normal; the covariance is Huang and Wand's
(2013, "Simple marginally noninformative prior distributions for covariance matrices"), whose
standard deviations are half-t with 2 degrees of freedom and whose correlations are uniform; or
standard deviations are independent half-t and the covariance is diagonal.

A sweep has two exact moves. Both use sites: Gaussian approximations of each person's likelihood,
found before the chain and then fixed (`pgmult.choice.pilot`). Given the population, a site makes a
person's tastes Gaussian:

* tastes given the population, independently for each person: Hamiltonian paths that rotate about
  that Gaussian (`pgmult.latent.moves`, "swing");
* mean, b and the root of the covariance, all together, by a Hamiltonian path on which every
  person's tastes keep their distance from the mean of the Gaussian, in its standard deviations
  ("carry"). Tastes with many data then hardly move, and the population moves as if they were
  integrated out; tastes with few data move with the population. (Yu and Meng 2011: either scheme
  alone is slow where the other is fast, and a slow chain may look converged.) A path has as many
  parts as short chains before the first sweep needed for acceptance: more for few people, whose
  sites leave much of the posterior to the path. One path in ten has four times as many, so that
  no chain stays where sites are poor.

The rows of a block are people; each step of a path sums over blocks (`pgmult.sampling.blocks`).

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> price, quality = rng.normal(size=(2, 300, 3))
>>> taken = np.argmax(quality - price + rng.gumbel(size=(300, 3)), axis=1)
>>> table = {
...     "who": np.repeat(np.arange(30), 30), "case": np.repeat(np.arange(300), 3),
...     "price": price.ravel(), "quality": quality.ravel(),
...     "taken": (np.arange(3) == taken[:, None]).ravel(),
... }
>>> data = pgmult.read(table).choices("taken ~ price + quality + (price | who)", occasion="case")
>>> posterior = pgmult.sample(
...     MixedLogit(), data, draws=500, tune=100, chains=1, random_seed=0, progressbar=False
... )
>>> posterior["mean"].shape, posterior["coefficients"].shape, posterior["tastes"].shape
((1, 500, 1), (1, 500, 1), (1, 500, 30, 1))
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from scipy.stats import invwishart

from pgmult.choice.compiled.people import Noise, Population, carry_rows, slopes_rows, swing_rows
from pgmult.choice.data import ChoiceRows
from pgmult.choice.family import CHOICE
from pgmult.choice.pilot import Frame, PilotTuning, laid_out, metric_of, piloted, sites_of
from pgmult.core.family import Family
from pgmult.core.parameters import Checked, axes_of, real, whole
from pgmult.core.typing import Coords, FloatArray, Generator
from pgmult.sampling.blocks import BLOCK_ROWS, Ask, Asks, Sums, SweepsInBlocks, as_block_rows

_Scale = Annotated[float, real(minimum=1e-5, maximum=1e5)]
_DOF = 2.0  # degrees of freedom of half-t; correlations are uniform then
_TURN = 0.65 * math.pi  # somewhat more than a quarter: draws alternate
_SHORT = 0.1  # of people's paths: half as long, for tastes where their site is far too narrow
_FINE, _FINER = 0.1, 4  # share of the population's paths, and their parts: where sites are poor


@dataclass(frozen=True, slots=True, eq=False)
class MixedLogitState:
    """One point of the chain, in the units of the attributes.

    Attributes
    ----------
    mean : array
        Mean of people's tastes; of log coefficients for attributes whose sign is fixed.
    cov : array
    coefficients : array
        Coefficients of attributes for which all people have the same taste.
    tastes : array
    tuning : PilotTuning
        What short chains before the first sweep learned of the posterior: fixed, and part of no
        draw.
    """

    mean: Annotated[FloatArray, "attribute"]
    cov: Annotated[FloatArray, "attribute", "other_attribute"]
    coefficients: Annotated[FloatArray, "fixed"]
    tastes: Annotated[FloatArray, "person", "attribute"]
    tuning: PilotTuning


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MixedLogit(Checked, SweepsInBlocks[ChoiceRows, MixedLogitState]):
    """Choices among alternatives by people whose tastes differ.

    Parameters
    ----------
    mean_scale : float
        Prior standard deviation of mean tastes and coefficients, for attributes divided by their
        standard deviation within occasions.
    sd_scale : float
        Scale of the half-t distribution of the standard deviations of tastes, in the same units.
    kicks : int
        Number of gradient kicks on the path of each person's tastes.
    block_rows : int
        People per block. It changes the draws, not their distribution.

    Notes
    -----
    A sweep reads all rows nine times, or more where the posterior is far from normal, with
    O(num_attributes) operations a row, and factors as many matrices of num_attributes squared a
    person. Memory is twice that of the data, or more where few people have most of the occasions,
    and for each person another such matrix.
    """

    mean_scale: _Scale = 5.0
    sd_scale: _Scale = 2.5
    kicks: Annotated[int, whole()] = 3
    block_rows: Annotated[int, as_block_rows] = BLOCK_ROWS

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(MixedLogitState) | {
        "sds": ("attribute",), "probs": ("row",),
    }  # fmt: skip
    row_dim: ClassVar[str] = "person"
    whole_names: ClassVar[frozenset[str]] = frozenset({"probs"})
    default_keep: ClassVar[tuple[str, ...]] = ("mean", "cov", "coefficients", "tastes", "sds")
    monitored: ClassVar[tuple[str, ...]] = ("mean", "coefficients", "sds")
    ess_targets: ClassVar[Mapping[str, float]] = dict.fromkeys(monitored, 50.0)
    least_draws: ClassVar[int] = 100
    family: ClassVar[Family] = CHOICE

    def coords(self, data: ChoiceRows) -> Coords:
        """Labels of attributes and people."""
        names, fixed = data.names[data.random], data.names[data.fixed]
        axes = {"attribute": names, "other_attribute": names, "fixed": fixed}
        return {**axes, "person": data.person_names}

    def prior(self, rng: Generator, data: ChoiceRows) -> MixedLogitState:
        """Population and tastes from the prior; the sites are found near its centre."""
        frame, d = Frame.of(data), len(data.random)
        mean = self.mean_scale * rng.standard_normal(d)
        b = self.mean_scale * rng.standard_normal(len(data.fixed))
        if data.diagonal or not d:
            cov = np.diag((self.sd_scale * rng.standard_t(_DOF, size=d)) ** 2)
        else:
            scales = self.sd_scale**-2 / rng.standard_gamma(0.5, size=d)
            scale = np.diag(2.0 * _DOF / scales)
            cov = np.reshape(invwishart.rvs(_DOF + d - 1.0, scale, random_state=rng), (d, d))
        base = frame.pack(Population(0.0 * mean, 0.0 * b, self.sd_scale * np.eye(d)))
        population = Population(mean, b, np.linalg.cholesky(cov))
        tastes = mean + rng.standard_normal((data.num_people, d)) @ population.root.T
        return MixedLogitState(
            **frame.shared_outside(population), tastes=frame.tastes_outside(tastes.T),
            tuning=PilotTuning(base, metric_of(data, self, base)),
        )  # fmt: skip

    def simulate(self, rng: Generator, state: MixedLogitState, data: ChoiceRows) -> ChoiceRows:
        """New choices in the same occasions, as many in each."""
        return replace(data, taken=data.drawn(rng, self.probs(state, data)))

    def init(self, rng: Generator, data: ChoiceRows) -> MixedLogitState:
        """A start near the posterior mean, found by short chains on some people, and the sites."""
        return self.near(rng, data, piloted(data, self))

    def near(self, rng: Generator, data: ChoiceRows, tuning: PilotTuning) -> MixedLogitState:
        """A population and tastes drawn from approximations of their posterior."""
        frame, white = Frame.of(data), rng.standard_normal(len(tuning.base))
        population = frame.population(tuning.base + tuning.metric @ white)
        white = rng.standard_normal(frame.empty(len(data.random)).shape)
        state = MixedLogitState(
            **frame.shared_outside(population), tastes=frame.tastes_outside(white), tuning=tuning,
        )  # fmt: skip
        return self.carried(None, state, white, data, *population)[0]

    def local_step(
        self, rng: Generator, state: MixedLogitState, data: ChoiceRows
    ) -> tuple[MixedLogitState, FloatArray, Sums]:
        """Move people's tastes; their standardised distances from the mean go to the path."""
        frame, num = Frame.of(data), len(state.tastes)
        population = frame.inside(state.mean, state.cov, state.coefficients)
        tastes = frame.tastes_inside(state)
        tastes[:, num:] = population.mean[:, None]
        white = np.linalg.solve(population.root, tastes - population.mean[:, None])
        if len(white):
            lengths = np.ones(white.shape[1])
            lengths[:num] = self.lengths(rng, state)[frame.order]
            normal = np.asarray(rng.standard_normal(white.shape))
            exponential = rng.standard_exponential(len(lengths))
            frame.over(
                swing_rows, laid_out(data).given(population.b), sites_of(data, state.tuning.base),
                population, Noise(normal, lengths, exponential, self.kicks), (tastes, white),
            )  # fmt: skip
        moved = replace(state, tastes=frame.tastes_outside(tastes))
        population = frame.population(frame.pack(population))
        return moved, white, self.carried(None, moved, white, data, *population)[2]

    def lengths(self, rng: Generator, state: MixedLogitState) -> FloatArray:
        """Lengths of the steps of people's paths, which must not depend on their tastes."""
        length = _TURN / self.kicks * rng.uniform(0.8, 1.2, size=len(state.tastes))
        return np.where(rng.uniform(size=len(length)) < _SHORT, 0.5 * length, length)

    def carried(
        self, rng: None, state: MixedLogitState, white: FloatArray, data: ChoiceRows,
        *population: FloatArray,
    ) -> tuple[MixedLogitState, FloatArray, Sums]:  # fmt: skip
        """Tastes carried along; log density of a block's people, and its slope in (mean, b, root).

        Parameters
        ----------
        population : arrays
            Mean, coefficients and root of the population, of scaled attributes.
        white : array, ``(num_attributes, num_lanes)``
            Distances of tastes from their means, in standard deviations.
        """
        frame, d = Frame.of(data), len(white)
        tastes, values, of_root = frame.empty(d), frame.empty(), frame.empty(d, d)
        slopes = frame.empty(d + len(state.coefficients))
        frame.over(
            carry_rows, laid_out(data), sites_of(data, state.tuning.base), Population(*population),
            white, (tastes, values, slopes, of_root),
        )  # fmt: skip
        with np.errstate(invalid="ignore"):
            sums = values.sum(keepdims=True), slopes.sum(axis=1), of_root[frame.where].sum(axis=1)
        return replace(state, tastes=frame.tastes_outside(tastes)), white, Sums((), sums)

    def shared_step(
        self, rng: Generator, state: MixedLogitState, sums: Sums, data: ChoiceRows, ask: Asks
    ) -> MixedLogitState:
        """A Hamiltonian path of the population, with tastes carried along."""
        frame, base, metric = Frame.of(data), state.tuning.base, state.tuning.metric
        start = frame.pack(frame.inside(state.mean, state.cov, state.coefficients))
        z = np.linalg.solve(metric, start - base)
        parts = state.tuning.parts * (_FINER if rng.uniform() < _FINE else 1)
        step = _TURN / parts * rng.uniform(0.8, 1.2)
        cos, sin = math.cos(step), math.sin(step)
        momentum = rng.standard_normal(len(z))
        value, slope = self.log_density(frame, frame.population(base + metric @ z), sums)
        gain = 0.5 * float(momentum @ momentum) - value
        with np.errstate(over="ignore", invalid="ignore"):
            for stage in range(1, parts + 1):
                momentum = momentum + 0.5 * step * (slope @ metric + z)
                z, momentum = cos * z + sin * momentum, cos * momentum - sin * z
                population = frame.population(base + metric @ z)
                sums = ask(Ask("carried", population, moves=stage == parts, draws=False))
                value, slope = self.log_density(frame, population, sums)
                momentum = momentum + 0.5 * step * (slope @ metric + z)
            gain += value - 0.5 * float(momentum @ momentum)
        if gain > -rng.standard_exponential():
            return replace(state, **frame.shared_outside(population))
        ask(Ask("carried", frame.population(start), moves=True, draws=False))
        return state

    def log_density(
        self, frame: Frame, population: Population, sums: Sums
    ) -> tuple[float, FloatArray]:
        """Log density of the population's coordinates, and its slope, given the sums over people.

        -inf where a number is not finite.
        """
        values, slopes, of_root = sums.rounded
        mean, b, root = population
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            prior, prior_slope = _log_prior_root(root, self.sd_scale, frame.diagonal)
            alike = np.append(mean, b)
            of_coordinates = frame.jacobian(root).T @ of_root + prior_slope[frame.where]
            slope = np.append(slopes - alike / self.mean_scale**2, of_coordinates)
            value = float(values[0]) + prior - 0.5 * float(alike @ alike) / self.mean_scale**2
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            return -math.inf, np.zeros_like(slope)
        return value, slope

    def local_summary(self, state: MixedLogitState, data: ChoiceRows) -> Sums:
        """The log probability of a block's choices."""
        frame, values = Frame.of(data), Frame.of(data).empty()
        choices = laid_out(data).given(frame.inside(state.mean, state.cov, state.coefficients).b)
        unused = np.empty((0, 0)), np.empty((0, 0, 0))
        frame.over(slopes_rows, choices, frame.tastes_inside(state), values, *unused)
        return Sums((), (np.asarray(values.sum()),))

    def probs(self, state: MixedLogitState, data: ChoiceRows) -> FloatArray:
        """Probabilities of the alternatives of all occasions, ``(num_rows,)``."""
        return data.probs(state.tastes[data.person_of_row], state.coefficients)

    def sds(self, state: MixedLogitState, data: ChoiceRows) -> FloatArray:
        """Standard deviations of tastes."""
        return np.sqrt(state.cov.diagonal())


def _log_prior_root(root: FloatArray, sd_scale: float, diagonal: bool) -> tuple[float, FloatArray]:
    """Log density of the coordinates of a root of the covariance, and its slope in them.

    With the root D U, where D is diagonal and U has ones on its diagonal, Huang and Wand's density
    (2013, property 2) times the Jacobian is prod_k (nu v_k + D_kk^2 / A^2)^-((nu + d) / 2), where v
    is the diagonal of (U U')^-1: smooth where a standard deviation is 0, of either sign.
    """
    d, scales = len(root), root.diagonal()
    power = _DOF + (1 if diagonal else d)
    inverse = np.linalg.inv(root / scales[:, None])
    precision = inverse.T @ inverse
    inside = _DOF * precision.diagonal() + (scales / sd_scale) ** 2
    slope = power * (precision * (_DOF / inside)) @ inverse.T
    np.fill_diagonal(slope, -power * scales / sd_scale**2 / inside)
    return -0.5 * power * float(np.log(inside).sum()), slope
