"""Probabilities of symbols at every step: smoothed, imputed and forecast.

Three questions to a posterior of sequences driven by linear Gaussian states, each answered by
averaging over its draws, with quantiles that hold the uncertainty of the parameters and of the
states:

* `predict`: the probabilities at step t given *all* observations of its sequence;
* `impute`: which symbols stood at the missing steps;
* `forecast`: the steps after the last one, with simulated futures.

Each is asked of the sequences that the posterior was sampled from, or of others. `predict` of other
sequences and `impute` draw states by the model's own Gibbs steps, parameters held at each draw.
`forecast` of other sequences finds their last states by a particle filter.

>>> import numpy as np, pgmult
>>> data = pgmult.sequences.as_sequences(["ABABABABABABAB"])
>>> posterior = pgmult.sample(
...     pgmult.sequences.MultinomialLDS(state_dim=2), data,
...     draws=20, tune=20, chains=1, random_seed=0, progressbar=False,
... )
>>> ahead = posterior.forecast(3)
>>> ahead.mean.shape, ahead.quantiles.shape, ahead.simulated.shape
((1, 3, 2), (3, 1, 3, 2), (20, 1, 3))
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pgmult.core.arguments import as_repeats, as_seed
from pgmult.core.figures.lines import Lines
from pgmult.core.tabled import Column, Table, Tabled, number
from pgmult.core.tables import date_text
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_counts, as_finite, as_positive_int
from pgmult.links import StickBreaking
from pgmult.priors.gaussian import lower_cholesky
from pgmult.priors.matrix_normal import linear_means
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.active_sticks import ActiveSticks
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.data.tables import future_of
from pgmult.sequences.figures import symbol_lines
from pgmult.sequences.next_change import NextChange
from pgmult.sequences.posteriors import (
    Foretells,
    draws_of,
    refuse_without_last_states,
    sequences_of,
    state_space_draws,
    states_of,
)
from pgmult.sequences.priors.dynamics import LinearDynamics, input_drive
from pgmult.sequences.priors.state_space import StateSpaceDraw
from pgmult.sequences.scores.particle_filter import particle_filter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    Axes = Any

_QUANTILES = (0.05, 0.5, 0.95)
_START_PARTICLES = 100  # of the filter that smoothing starts from
_BLOCK = 1 << 22  # probabilities held at a time


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Probabilities(Tabled):
    """Probabilities of symbols at some steps: what all answers have."""

    mean: FloatArray
    quantiles: FloatArray
    levels: FloatArray
    sequences: Sequences

    caption: ClassVar[str]

    def _places(self) -> tuple[IntArray, IntArray]:
        """The sequence of each row of `mean`, and its step there."""
        raise NotImplementedError

    def table(self) -> Table:
        """A row for each step and symbol, as `pgmult.core.tabled.Table`.

        Its columns are ``sequence`` and ``symbol`` (names, or numbers from 0), ``step`` (from 0 in
        each sequence), ``time`` where the sequences have it, ``mean``, and ``q0.05`` and so on for
        each level.
        """
        data = self.sequences
        sequence, step = (np.repeat(place, data.num_symbols) for place in self._places())
        symbols = np.arange(data.num_symbols) if data.alphabet is None else data.alphabet
        columns = [
            Column(
                "sequence", sequence if data.names is None else data.names[sequence], "sequence"
            ),
            Column("step", step, "step"),
            Column("symbol", np.tile(symbols, len(step) // len(symbols)), "symbol"),
            Column("mean", self.mean.ravel(), "mean", number(3)),
        ]
        if (when := data.times(sequence, step)) is not None:
            told = date_text if when.dtype.kind == "M" else str
            columns.insert(2, Column("time", when, "time", told))
        for level, values in zip(self.levels, self.quantiles, strict=True):
            columns.append(Column(f"q{level:g}", values.ravel(), f"q{level:g}", number(3)))
        return Table(self.caption, columns)

    def __repr__(self) -> str:
        return f"{self.caption} of {self.sequences}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StepProbs(_Probabilities):
    """Probabilities of symbols at the steps of sequences.

    Attributes
    ----------
    mean : array, ``(num_steps, num_symbols)``
        Posterior means: the best single prediction. Rows sum to 1.
    quantiles : array, ``(num_levels, num_steps, num_symbols)``
        Of the posterior of each probability.
    levels : array, ``(num_levels,)``
    sequences : Sequences
        Whose steps these are.
    state_mean : array, ``(num_draws, num_steps, state_dim)``
        Means of the states under each draw, or the states themselves: bases of the state differ
        between draws.
    """

    state_mean: FloatArray

    caption: ClassVar[str] = "Probabilities of symbols at each step"

    def _places(self) -> tuple[IntArray, IntArray]:
        return _places(self.sequences, np.arange(self.sequences.num_steps))

    def figure(self, *, sequence: int = 0, symbols: Sequence[str | int] | int = 4) -> Lines:
        """Probabilities of some symbols along a sequence: see `symbol_lines`."""
        return symbol_lines(self, sequence=sequence, symbols=symbols)

    def plot(self, axes: Axes | None = None, **options: Any) -> Axes:
        """The `figure`, drawn with matplotlib."""
        return self.figure(**options).plot(axes)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Imputed(_Probabilities):
    """Symbols at missing steps.

    Attributes
    ----------
    mean : array, ``(num_missing, num_symbols)``
        Probability of each symbol.
    quantiles : array, ``(num_levels, num_missing, num_symbols)``
    levels : array, ``(num_levels,)``
    sequences : Sequences
        Whose steps are missing.
    steps : int64 array, ``(num_missing,)``
        Which steps of all sequences are missing.
    simulated : int64 array, ``(num_paths, num_missing)``
        Joint draws, one symbol per step: a row is one completion of all sequences.
    counts : int64 array, ``(num_paths, num_missing, num_symbols)``, or None
        Joint draws of counts, where totals were given.
    """

    steps: IntArray
    simulated: IntArray
    counts: IntArray | None = None

    caption: ClassVar[str] = "Probabilities of symbols at missing steps"

    def _places(self) -> tuple[IntArray, IntArray]:
        return _places(self.sequences, self.steps)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Forecast(_Probabilities):
    """Forecasts of the steps after the last one of each sequence.

    Attributes
    ----------
    mean : array, ``(num_sequences, steps, num_symbols)``
        Probability of each symbol.
    quantiles : array, ``(num_levels, num_sequences, steps, num_symbols)``
        Of the posterior of each probability, not of which symbol occurs.
    levels : array, ``(num_levels,)``
    sequences : Sequences
        The sequences that are forecast. In tables steps ahead are numbered from the sequence's
        length.
    simulated : int64 array, ``(num_paths, num_sequences, steps)``
        Simulated futures: one symbol per step, states and symbols of a row drawn jointly.
    counts : int64 array, ``(num_paths, num_sequences, steps, num_symbols)``, or None
        Simulated futures of counts, where totals were given.
    """

    simulated: IntArray
    counts: IntArray | None = None

    caption: ClassVar[str] = "Probabilities of symbols at steps ahead"

    def _places(self) -> tuple[IntArray, IntArray]:
        steps = self.mean.shape[1]
        sequence, ahead = np.divmod(np.arange(self.sequences.num_sequences * steps), steps)
        return sequence, ahead + self.sequences.lengths[sequence]

    def next_change(self) -> "NextChange":
        """How long each sequence's current symbol lasts, and which symbol follows."""
        return NextChange.of(self.simulated, self.sequences)

    def figure(
        self,
        *,
        history: StepProbs | None = None,
        sequence: int = 0,
        symbols: Sequence[str | int] | int = 3,
        last: int = 50,
    ) -> Lines:
        """Fans of nested quantiles, after the `last` steps of a history: see `symbol_lines`."""
        return symbol_lines(history, self, sequence=sequence, symbols=symbols, last=last)

    def plot(self, axes: Axes | None = None, **options: Any) -> Axes:
        """The `figure`, drawn with matplotlib."""
        return self.figure(**options).plot(axes)


def predict(
    posterior: Posterior,
    data: Any = None,
    *,
    levels: Sequence[float] = _QUANTILES,
    max_draws: int | None = None,
    sweeps: int = 3,
    warm_up: int = 10,
    random_seed: int = 0,
) -> StepProbs:
    """Probabilities at every step, missing ones included, given all observations.

    For the posterior's own sequences they are computed from the states that its chains kept; states
    of other sequences are sampled at each of its draws.

    Parameters
    ----------
    posterior : Posterior
        Of `pgmult.sequences.MultinomialLDS` or `pgmult.sequences.LogisticNormalLDS`, with the
        variables that they keep by default, and ``states`` where no data are given; of a hidden
        Markov model; or of a Markov chain, whose probabilities are given the steps before alone.
    data : Sequences, or what the model takes, optional
        Any sequences of the posterior's symbols, of `MultinomialLDS`.
    levels : sequence of float
        Of the quantiles.
    max_draws : int, optional
        Draws to use at most, evenly spread over the chains: by default 500, or 100 where
        states are sampled.
    sweeps : int
        Gibbs sweeps of Pólya-gamma variables and states at each draw. ``state_mean`` averages the
        exact Gaussian means given omega of each, which vary less than states do.
    warm_up : int
        Sweeps before those. Every draw starts anew, from filtered states, because bases of the
        state differ between draws.
    random_seed : int

    Raises
    ------
    TypeError
        If the posterior is of a model without a state space.
    ValueError
        If the posterior does not know its model or lacks a variable, or the data are of other
        symbols or the model of another link.
    """
    wanted, rng = _as_levels(levels), np.random.default_rng(as_seed(random_seed))
    most = 500 if data is None else 100
    if max_draws is not None:
        most = as_positive_int(max_draws, "max_draws")
    sequences = sequences_of(posterior, data)
    if isinstance(posterior.model, Foretells):
        model = posterior.model
        held = max(20, 8 * _BLOCK // (sequences.num_steps * sequences.num_symbols))
        kept = draws_of(posterior, model.predictive_variables, min(most, held))
        probs = np.array([model.step_probs(draw, sequences) for draw in kept])
        return StepProbs(
            probs.mean(axis=0), np.quantile(probs, wanted, axis=0), wanted, sequences,
            np.zeros((len(kept), sequences.num_steps, 0)),
        )  # fmt: skip
    draws = state_space_draws(posterior, most, sequences)
    if data is None:
        if "states" not in posterior:
            raise ValueError(
                "the posterior lacks states: sample with keep=['states', ...], or give the data, of"
                " which states are then sampled"
            )
        states = np.array(states_of(posterior, most))
        means = states
    else:
        states, means = _smoothed_states(rng, draws, sequences, sweeps, warm_up)
    mean, quantiles, *_ = _summaries(rng, draws, states, sequences.inputs, wanted)
    return StepProbs(mean, quantiles, wanted, sequences, means)


def forecast(
    posterior: Posterior,
    steps: int,
    data: Any = None,
    *,
    inputs: Any = None,
    totals: ArrayLike | None = None,
    levels: Sequence[float] = _QUANTILES,
    max_draws: int = 500,
    paths: int = 1,
    num_particles: int = 200,
    random_seed: int = 0,
) -> Forecast:
    """Forecast every sequence from its end, along simulated paths of states.

    Parameters
    ----------
    posterior : Posterior
        As in `predict`.
    steps : int
        How far ahead, >= 1.
    data : Sequences, or what the model takes, optional
        Other sequences of the posterior's symbols: their last states come from a particle filter.
    inputs : array, ``(num_sequences, steps, num_inputs)``, or table, optional
        Of the steps ahead; required where the data have inputs. By a formula they are a table with
        its columns and those of the sequences and times, if the data were made of a table.
    totals : int or int array, ``(steps,)`` or ``(num_sequences, steps)``, optional
        How many observations each step ahead will have: `Forecast.counts` are drawn of so many.
    levels, max_draws, random_seed
        As in `predict`.
    paths : int
        Simulated paths for each draw: more of them smooth the quantiles where draws are few.
    num_particles : int
        For other sequences.

    Raises
    ------
    TypeError, ValueError
        As in `predict`, and if inputs or totals do not go with the steps ahead.
    """
    steps, wanted = as_repeats(steps, "steps"), _as_levels(levels)
    rng, sequences = np.random.default_rng(as_seed(random_seed)), sequences_of(posterior, data)
    if sequences.design is not None and inputs is not None and not isinstance(inputs, np.ndarray):
        inputs = future_of(sequences, inputs, steps)
    if isinstance(posterior.model, Foretells):
        return _foretold(rng, posterior, sequences, steps, inputs, wanted, max_draws, paths, totals)
    ahead = sequences.extended(steps, inputs)  # refuses missing and superfluous inputs
    future = np.flatnonzero(_is_new(sequences, ahead))
    u = None if ahead.inputs is None else ahead.inputs[future]
    shape = sequences.num_sequences, steps
    sizes = None if totals is None else _as_totals(totals, shape).ravel()
    repeats = as_repeats(paths, "paths")
    draws = state_space_draws(posterior, max_draws, ahead)
    if data is not None:
        if ahead.inputs is not None:  # with the columns of all levels
            sequences = replace(sequences, inputs=np.delete(ahead.inputs, future, axis=0))
        filtered = particle_filter(rng, draws, sequences, num_particles)
        last = filtered.state_draw[:, sequences.offsets[1:] - 1]
    else:
        refuse_without_last_states(posterior)
        last = np.array([d["last_states"] for d in draws_of(posterior, ["last_states"], max_draws)])
    draws, last = [d for d in draws for _ in range(repeats)], np.repeat(last, repeats, axis=0)
    states = np.empty((len(draws), len(future), draws[0].state_dim))
    for draw, x, path in zip(draws, last, states, strict=True):
        root = lower_cholesky(draw.noise_cov)
        drive = draw.drive(u, len(future)).reshape(-1, steps, draw.state_dim)
        by_sequence = path.reshape(drive.shape)
        x = draw.padded(x)
        for t in range(steps):
            noise = linear_means(rng.standard_normal(x.shape), root.T)
            x = linear_means(x, draw.transition.T) + drive[:, t] + noise
            by_sequence[:, t] = x
    mean, quantiles, simulated, counts = _summaries(
        rng, draws, states, u, wanted, simulate=True, totals=sizes
    )
    return Forecast(
        mean.reshape(*shape, -1), quantiles.reshape(len(wanted), *shape, -1), wanted, sequences,
        simulated.reshape(-1, *shape),
        None if counts is None else counts.reshape(len(draws), *shape, -1),
    )  # fmt: skip


def _foretold(
    rng: np.random.Generator,
    posterior: Posterior,
    data: Sequences,
    steps: int,
    inputs: Any,
    levels: FloatArray,
    max_draws: int,
    paths: int,
    totals: ArrayLike | None,
) -> Forecast:
    """Of a model that knows its probabilities ahead given its parameters."""
    model, given = posterior.model, data
    if data.design is not None or inputs is not None:
        given = data.extended(steps, inputs)
    draws = draws_of(posterior, model.predictive_variables, max_draws)
    found = [
        model.ahead(rng, draw, given, steps)
        for draw in draws
        for _ in range(as_repeats(paths, "paths"))
    ]
    probs = np.array([one for one, _ in found])
    counts = None
    if totals is not None:
        sizes = _as_totals(totals, (data.num_sequences, steps))
        counts = rng.multinomial(sizes, probs / probs.sum(axis=3, keepdims=True))
    return Forecast(
        probs.mean(axis=0), np.quantile(probs, levels, axis=0), levels, data,
        np.array([symbols for _, symbols in found]), counts,
    )  # fmt: skip


def impute(
    posterior: Posterior,
    data: Any = None,
    *,
    totals: ArrayLike | None = None,
    levels: Sequence[float] = _QUANTILES,
    max_draws: int = 100,
    paths: int = 1,
    sweeps: int = 3,
    warm_up: int = 10,
    random_seed: int = 0,
) -> Imputed:
    """The symbols at missing steps, given all observations: one per step, or counts.

    States are sampled at each draw, of the posterior's own sequences if no `data` are given. Other
    parameters and errors are those of `predict`, and

    Parameters
    ----------
    totals : int or int array, ``(num_missing,)``, optional
        How many observations each missing step would have had: `Imputed.counts` are drawn of so
        many.
    paths : int
        Completions for each draw.

    Raises
    ------
    ValueError
        Also if no step is missing.
    """
    wanted, rng = _as_levels(levels), np.random.default_rng(as_seed(random_seed))
    sequences = sequences_of(posterior, data)
    draws = state_space_draws(posterior, max_draws, sequences)
    missing = np.flatnonzero(sequences.totals == 0)
    if len(missing) == 0:
        raise ValueError("no step of the data is missing, there is nothing to impute")
    sizes = None if totals is None else _as_totals(totals, (len(missing),))
    draws = [draw for draw in draws for _ in range(as_repeats(paths, "paths"))]
    states, _ = _smoothed_states(rng, draws, sequences, sweeps, warm_up)
    u = None if sequences.inputs is None else sequences.inputs[missing]
    mean, quantiles, simulated, counts = _summaries(
        rng, draws, states[:, missing], u, wanted, simulate=True, totals=sizes
    )
    return Imputed(mean, quantiles, wanted, sequences, missing, simulated, counts)


def _places(data: Sequences, steps: IntArray) -> tuple[IntArray, IntArray]:
    """The sequence of each step, and where in it the step stands."""
    sequence = np.searchsorted(data.offsets, steps, side="right") - 1
    return sequence, steps - data.offsets[sequence]


def _as_levels(levels: Sequence[float]) -> FloatArray:
    wanted = np.atleast_1d(as_finite(levels, "levels"))
    if wanted.ndim != 1 or wanted.size == 0:
        raise ValueError(f"levels must be one number or more in a row, got shape {wanted.shape}")
    if (wanted < 0.0).any() or (wanted > 1.0).any():
        raise ValueError(f"levels must be numbers from 0 to 1, got {levels}")
    return wanted


def _as_totals(totals: ArrayLike, shape: tuple[int, ...]) -> IntArray:
    """One total for every step: one number, one for each step ahead, or all of them."""
    sizes = as_counts(totals, "totals")
    if sizes.shape not in ((), shape[-1:], shape):
        raise ValueError(f"totals must be one number or of shape {shape}, got {sizes.shape}")
    return np.broadcast_to(sizes, shape)


def _is_new(data: Sequences, ahead: Sequences) -> NDArray[np.bool_]:
    """Which steps of the extended sequences are not in `data`."""
    within = np.arange(ahead.num_steps) - np.repeat(ahead.offsets[:-1], ahead.lengths)
    return np.asarray(within >= np.repeat(data.lengths, ahead.lengths))


def _smoothed_states(
    rng: np.random.Generator,
    draws: list[StateSpaceDraw],
    data: Sequences,
    sweeps: int,
    warm_up: int,
) -> tuple[FloatArray, FloatArray]:
    """A draw of all states under each draw of the parameters, and their averaged means."""
    if not isinstance(draws[0].link, StickBreaking):
        raise ValueError("smoothing needs the stick-breaking link")
    sweeps = as_repeats(sweeps, "sweeps")
    warm_up = as_repeats(warm_up, "warm_up", minimum=0)
    active = ActiveSticks.of(replace(data, order=draws[0].order))
    D = draws[0].state_dim
    known = np.ones((data.num_steps, 1))
    if data.inputs is not None:
        known = np.concatenate([data.inputs, known], axis=1)
    states = particle_filter(rng, draws, data, _START_PARTICLES).state_draw
    means = np.zeros_like(states)
    for draw, x, mean in zip(draws, states, means, strict=True):
        columns = [draw.loadings, draw.offset[:, None]]
        drive = None
        if data.inputs is not None:
            assert draw.emission_weights is not None  # the models have both
            assert draw.input_weights is not None
            columns.insert(1, draw.emission_weights)
            drive = input_drive(data.inputs, draw.input_weights, data.offsets)
        weights = np.concatenate(columns, axis=1)
        law = LinearDynamics(
            draw.transition, draw.noise_cov, draw.initial_mean, draw.initial_cov, data.offsets,
            drive=drive,
        )  # fmt: skip
        for sweep in range(warm_up + sweeps):
            design = np.concatenate([x, known], axis=1)
            omega = active.augment(rng, design, weights)
            posterior = law.condition(active.potential(omega, design, weights, D))
            if sweep >= warm_up:
                mean += posterior.smooth()[0] / sweeps
            x[:] = posterior.sample(rng)
    return states, means


def _summaries(
    rng: np.random.Generator,
    draws: list[StateSpaceDraw],
    states: FloatArray,
    inputs: FloatArray | None,
    levels: FloatArray,
    *,
    simulate: bool = False,
    totals: IntArray | None = None,
) -> tuple[FloatArray, FloatArray, IntArray, IntArray | None]:
    """Mean and quantiles of probabilities over draws, and one symbol or counts a draw and step.

    `states`, ``(num_draws, num_steps, D)``, have `inputs`, ``(num_steps, num_inputs)``; steps go in
    blocks, so that all draws of all probabilities are never held.
    """
    num_steps, K, link = states.shape[1], draws[0].num_symbols, draws[0].link
    mean, quantiles = np.empty((num_steps, K)), np.empty((len(levels), num_steps, K))
    simulated = np.zeros((len(draws), num_steps if simulate else 0), dtype=np.int64)
    counts = None
    if totals is not None:
        counts = np.empty((len(draws), num_steps, K), dtype=np.int64)
    block = max(1, _BLOCK // (len(draws) * K))
    for first in range(0, num_steps, block):
        steps = slice(first, min(first + block, num_steps))
        probs = np.empty((len(draws), steps.stop - first, K))
        for draw, x, out in zip(draws, states[:, steps], probs, strict=True):
            out[:] = link.probs(draw.psi(x, None if inputs is None else inputs[steps]))
        mean[steps] = probs.mean(axis=0)
        quantiles[:, steps] = np.quantile(probs, levels, axis=0)
        if simulate:
            running = np.cumsum(probs, axis=2)
            u = rng.random(running.shape[:2]) * running[:, :, -1]
            simulated[:, steps] = (running <= u[:, :, None]).sum(axis=2)
        if counts is not None and totals is not None:
            shares = probs / probs.sum(axis=2, keepdims=True)
            counts[:, steps] = rng.multinomial(totals[steps], shares)
    return mean, quantiles, simulated, counts
