"""Probabilities of symbols at every step: smoothed, filtered, imputed and forecast.

Four questions to a posterior of sequences driven by linear Gaussian states, each answered by
averaging over its draws, with quantiles that hold the uncertainty of the parameters and of the
states:

* `smooth`: the probabilities at step t given *all* observations of its sequence;
* `filter_sequences`: given those up to and including step t;
* `impute`: which symbols stood at the missing steps;
* `forecast`: the steps after the last one, with simulated futures.

`smooth` and `impute` draw states by the model's own Gibbs steps, parameters held at each draw; they
take any sequences, those that the posterior was sampled from included, and tell the parameters
nothing new. `filter_sequences` goes by particles, and so does `forecast` for new sequences.

>>> import numpy as np, pgmult
>>> data = pgmult.sequences.as_sequences(["ABABABABABABAB"])
>>> posterior = pgmult.sample(
...     pgmult.sequences.MultinomialLDS(state_dim=2), data,
...     draws=20, tune=20, chains=1, random_seed=0, progressbar=False,
... )
>>> ahead = forecast(posterior, data, steps=3)
>>> ahead.mean.shape, ahead.quantiles.shape, ahead.simulated.shape
((1, 3, 2), (3, 1, 3, 2), (20, 1, 3))
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pgmult.core.arguments import as_flag, as_repeats, as_seed
from pgmult.core.notebook import columns_html
from pgmult.core.tables import as_frame
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_counts, as_finite
from pgmult.links import StickBreaking
from pgmult.priors.gaussian import lower_cholesky
from pgmult.priors.matrix_normal import linear_means
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.active_sticks import ActiveSticks
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.posteriors import (
    draws_of,
    refuse_without_last_states,
    sequences_of,
    state_space_draws,
)
from pgmult.sequences.priors.dynamics import LinearDynamics, input_drive
from pgmult.sequences.priors.state_space import StateSpaceDraw
from pgmult.sequences.scores.particle_filter import particle_filter

__all__ = [
    "Forecast",
    "Imputed",
    "StepProbs",
    "filter_sequences",
    "forecast",
    "impute",
    "smooth",
]

_QUANTILES = (0.05, 0.5, 0.95)
_START_PARTICLES = 100  # of the filter that smoothing starts from
_BLOCK = 1 << 22  # probabilities held at a time


@dataclass(frozen=True, slots=True, eq=False)
class StepProbs:
    """Probabilities of symbols at the steps of sequences.

    Attributes
    ----------
    mean : array, ``(num_steps, num_symbols)``
        Posterior means: the best single prediction. Rows sum to 1.
    quantiles : array, ``(num_levels, num_steps, num_symbols)``
        Of the posterior of each probability.
    levels : array, ``(num_levels,)``
    state_mean : array, ``(num_draws, num_steps, state_dim)``
        Means of the states under each draw, or the states themselves: bases of the state differ
        between draws.
    sequences : Sequences
        Whose steps these are.
    """

    mean: FloatArray
    quantiles: FloatArray
    levels: FloatArray
    state_mean: FloatArray
    sequences: Sequences

    @classmethod
    def of(
        cls,
        posterior: Posterior,
        data: Sequences,
        *,
        levels: Sequence[float] = _QUANTILES,
        max_draws: int = 500,
    ) -> "StepProbs":
        """Smoothed probabilities from the states that the chains went through, at no further cost.

        Parameters
        ----------
        posterior : Posterior
            That kept ``states`` beside the variables that its model keeps by default.
        data : Sequences
            What the posterior was sampled from.
        levels : sequence of float
            Of the quantiles.
        max_draws : int
            At most so many draws are used, evenly spread over the chains.

        Raises
        ------
        ValueError
            If the posterior lacks a variable, or the data are others than its own.
        """
        wanted, data = _as_levels(levels), sequences_of(posterior, data)
        if not posterior.is_of(data):
            raise ValueError(
                "data must be the sequences that the posterior was sampled from, got others"
                " (smooth takes any)"
            )
        draws = state_space_draws(posterior, max_draws)
        states = np.array([d["states"] for d in draws_of(posterior, ["states"], max_draws)])
        rng = np.random.default_rng(0)  # nothing is drawn
        mean, quantiles, *_ = _summaries(rng, draws, states, data.inputs, wanted)
        return cls(mean, quantiles, wanted, states, data)

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """A tidy table, a row for each step and symbol, as a mapping from name to array.

        Its columns are ``sequence`` and ``symbol`` (names, or numbers from 0), ``step`` (from 0 in
        each sequence), ``time`` where the sequences have it, ``mean``, and ``q0.05`` and so on for
        each level.
        """
        rows = _places(self.sequences, np.arange(self.sequences.num_steps))
        return _tidy(self.sequences, rows, self.mean, self.quantiles, self.levels)

    def to_dataframe(self) -> Any:
        """The table of `to_columns` as a pandas data frame."""
        return as_frame(self.to_columns())

    def _repr_html_(self) -> str:
        return columns_html(self.to_columns(), "Probabilities of symbols at each step")


@dataclass(frozen=True, slots=True, eq=False)
class Imputed:
    """Symbols at missing steps.

    Attributes
    ----------
    steps : int64 array, ``(num_missing,)``
        Which steps of all sequences are missing.
    mean : array, ``(num_missing, num_symbols)``
        Probability of each symbol.
    quantiles : array, ``(num_levels, num_missing, num_symbols)``
    levels : array, ``(num_levels,)``
    simulated : int64 array, ``(num_paths, num_missing)``
        Joint draws, one symbol a step: a row is one completion of all sequences.
    sequences : Sequences
        Whose steps are missing.
    counts : int64 array, ``(num_paths, num_missing, num_symbols)``, or None
        Joint draws of counts, where totals were given.
    """

    steps: IntArray
    mean: FloatArray
    quantiles: FloatArray
    levels: FloatArray
    simulated: IntArray
    sequences: Sequences
    counts: IntArray | None = None

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """A tidy table, a row for each missing step and symbol, as `StepProbs.to_columns`."""
        rows = _places(self.sequences, self.steps)
        return _tidy(self.sequences, rows, self.mean, self.quantiles, self.levels)

    def to_dataframe(self) -> Any:
        """The table of `to_columns` as a pandas data frame."""
        return as_frame(self.to_columns())

    def _repr_html_(self) -> str:
        return columns_html(self.to_columns(), "Probabilities of symbols at missing steps")


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """What comes after the last step of each sequence.

    Attributes
    ----------
    mean : array, ``(num_sequences, steps, num_symbols)``
        Probability of each symbol.
    quantiles : array, ``(num_levels, num_sequences, steps, num_symbols)``
        Of the posterior of each probability: how it may move, not which symbol comes.
    levels : array, ``(num_levels,)``
    simulated : int64 array, ``(num_paths, num_sequences, steps)``
        Simulated futures: one symbol a step, states and symbols of a row drawn jointly.
    sequences : Sequences
        What goes on.
    counts : int64 array, ``(num_paths, num_sequences, steps, num_symbols)``, or None
        Simulated futures of counts, where totals were given.
    """

    mean: FloatArray
    quantiles: FloatArray
    levels: FloatArray
    simulated: IntArray
    sequences: Sequences
    counts: IntArray | None = None

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """A tidy table, a row for each step ahead and symbol, as `StepProbs.to_columns`.

        The first step ahead is as long as its sequence was.
        """
        data, steps = self.sequences, self.mean.shape[1]
        rows = np.divmod(np.arange(data.num_sequences * steps), steps)
        mean = self.mean.reshape(-1, data.num_symbols)
        quantiles = self.quantiles.reshape(-1, *mean.shape)
        return _tidy(data, (rows[0], rows[1] + data.lengths[rows[0]]), mean, quantiles, self.levels)

    def to_dataframe(self) -> Any:
        """The table of `to_columns` as a pandas data frame."""
        return as_frame(self.to_columns())

    def _repr_html_(self) -> str:
        return columns_html(self.to_columns(), "Probabilities of symbols at steps ahead")


def forecast(
    posterior: Posterior,
    data: Any,
    steps: int,
    *,
    inputs: ArrayLike | None = None,
    totals: ArrayLike | None = None,
    new: bool = False,
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
        Of `pgmult.sequences.MultinomialLDS` or `pgmult.sequences.LogisticNormalLDS`, with the
        variables that they keep by default.
    data : Sequences, or what the model takes
        What the posterior was sampled from; with ``new=True``, other sequences of its symbols.
    steps : int
        How far ahead, >= 1.
    inputs : array, ``(num_sequences, steps, num_inputs)``, optional
        Of the steps ahead; required where the data have inputs.
    totals : int or int array, ``(steps,)`` or ``(num_sequences, steps)``, optional
        How many observations each step ahead will have: `Forecast.counts` are drawn of so many.
    new : bool
        Whether `data` are other sequences: their last states then come from a particle filter.
    levels : sequence of float
        Of the quantiles.
    max_draws : int
        At most so many draws are used, evenly spread over the chains.
    paths : int
        Simulated paths for each draw: more of them smooth the quantiles where draws are few.
    num_particles : int
        For new sequences.
    random_seed : int

    Raises
    ------
    TypeError
        If the posterior is of a model without a state space.
    ValueError
        If the posterior does not know its model or lacks a variable, or the data are others than
        its own, or of other symbols.
    """
    steps, wanted = as_repeats(steps, "steps"), _as_levels(levels)
    rng, data = np.random.default_rng(as_seed(random_seed)), sequences_of(posterior, data)
    if not (as_flag(new, "new") or posterior.is_of(data)):
        raise ValueError(
            "data must be the sequences that the posterior was sampled from, got others"
            " (new=True forecasts these)"
        )
    ahead = data.extended(steps, inputs)  # refuses missing and superfluous inputs
    future = np.flatnonzero(_is_new(data, ahead))
    u = None if ahead.inputs is None else ahead.inputs[future]
    sizes = None
    if totals is not None:
        sizes = _as_totals(totals, (data.num_sequences, steps)).ravel()
    repeats = as_repeats(paths, "paths")
    draws = state_space_draws(posterior, max_draws)
    if new:
        filtered = particle_filter(rng, draws, data, num_particles)
        last = filtered.state_draw[:, data.offsets[1:] - 1]
    else:
        refuse_without_last_states(posterior)
        last = np.array([d["last_states"] for d in draws_of(posterior, ["last_states"], max_draws)])
    draws, last = [d for d in draws for _ in range(repeats)], np.repeat(last, repeats, axis=0)
    states = np.empty((len(draws), len(future), draws[0].state_dim))
    for draw, x, path in zip(draws, last, states, strict=True):
        root = lower_cholesky(draw.noise_cov)
        drive = draw.drive(u, len(future)).reshape(-1, steps, draw.state_dim)
        by_sequence = path.reshape(drive.shape)
        for t in range(steps):
            noise = linear_means(rng.standard_normal(x.shape), root.T)
            x = linear_means(x, draw.transition.T) + drive[:, t] + noise
            by_sequence[:, t] = x
    mean, quantiles, simulated, counts = _summaries(
        rng, draws, states, u, wanted, simulate=True, totals=sizes
    )
    shape = (data.num_sequences, steps)
    return Forecast(
        mean.reshape(*shape, -1),
        quantiles.reshape(len(wanted), *shape, data.num_symbols),
        wanted,
        simulated.reshape(-1, *shape),
        data,
        None if counts is None else counts.reshape(len(draws), *shape, -1),
    )


def filter_sequences(
    posterior: Posterior,
    data: Any,
    *,
    levels: Sequence[float] = _QUANTILES,
    max_draws: int = 100,
    num_particles: int = 200,
    random_seed: int = 0,
) -> StepProbs:
    """Probabilities at every step given the observations up to and including it.

    Parameters as in `forecast`; `data` are any sequences of the posterior's symbols.
    """
    wanted, rng = _as_levels(levels), np.random.default_rng(as_seed(random_seed))
    data, draws = sequences_of(posterior, data), state_space_draws(posterior, max_draws)
    filtered = particle_filter(rng, draws, data, num_particles)
    mean, quantiles, *_ = _summaries(rng, draws, filtered.state_draw, data.inputs, wanted)
    return StepProbs(mean, quantiles, wanted, filtered.state_mean, data)


def smooth(
    posterior: Posterior,
    data: Any,
    *,
    levels: Sequence[float] = _QUANTILES,
    max_draws: int = 100,
    sweeps: int = 3,
    warm_up: int = 10,
    random_seed: int = 0,
) -> StepProbs:
    """Probabilities at every step, missing ones included, given all observations.

    Parameters
    ----------
    posterior : Posterior
        Of `pgmult.sequences.MultinomialLDS`, with the variables that it keeps by default.
    data : Sequences, or what the model takes
        Any sequences of the posterior's symbols.
    levels, max_draws, random_seed
        As in `forecast`.
    sweeps : int
        Gibbs sweeps of Pólya-gamma variables and states at each draw. ``state_mean`` averages the
        exact Gaussian means given omega of each, which vary less than states do.
    warm_up : int
        Sweeps before those. Every draw starts anew, from filtered states, because bases of the
        state differ between draws.

    Raises
    ------
    TypeError, ValueError
        As in `forecast`, and if the posterior is of another link.
    """
    wanted, rng = _as_levels(levels), np.random.default_rng(as_seed(random_seed))
    data, draws = sequences_of(posterior, data), state_space_draws(posterior, max_draws)
    states, means = _smoothed_states(rng, draws, data, sweeps, warm_up)
    mean, quantiles, *_ = _summaries(rng, draws, states, data.inputs, wanted)
    return StepProbs(mean, quantiles, wanted, means, data)


def impute(
    posterior: Posterior,
    data: Any,
    *,
    totals: ArrayLike | None = None,
    levels: Sequence[float] = _QUANTILES,
    max_draws: int = 100,
    paths: int = 1,
    sweeps: int = 3,
    warm_up: int = 10,
    random_seed: int = 0,
) -> Imputed:
    """The symbols at missing steps, given all observations: one a step, or counts.

    Parameters and errors are those of `smooth`, and

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
    data, draws = sequences_of(posterior, data), state_space_draws(posterior, max_draws)
    missing = np.flatnonzero(data.totals == 0)
    if len(missing) == 0:
        raise ValueError("no step of the data is missing, there is nothing to impute")
    sizes = None if totals is None else _as_totals(totals, (len(missing),))
    draws = [draw for draw in draws for _ in range(as_repeats(paths, "paths"))]
    states, _ = _smoothed_states(rng, draws, data, sweeps, warm_up)
    u = None if data.inputs is None else data.inputs[missing]
    mean, quantiles, simulated, counts = _summaries(
        rng, draws, states[:, missing], u, wanted, simulate=True, totals=sizes
    )
    return Imputed(missing, mean, quantiles, wanted, simulated, data, counts)


def _places(data: Sequences, steps: IntArray) -> tuple[IntArray, IntArray]:
    """The sequence of each step, and where in it the step stands."""
    sequence = np.searchsorted(data.offsets, steps, side="right") - 1
    return sequence, steps - data.offsets[sequence]


def _tidy(
    data: Sequences,
    rows: tuple[IntArray, IntArray],
    mean: FloatArray,
    quantiles: FloatArray,
    levels: FloatArray,
) -> dict[str, NDArray[Any]]:
    """Columns of probabilities of symbols at steps."""
    sequence, step = (np.repeat(place, data.num_symbols) for place in rows)
    symbols = np.arange(data.num_symbols) if data.alphabet is None else data.alphabet
    columns = {
        "sequence": sequence if data.names is None else data.names[sequence],
        "step": step,
        **({} if (when := data.times(sequence, step)) is None else {"time": when}),
        "symbol": np.tile(symbols, len(mean)),
        "mean": mean.ravel(),
    }
    ends = zip(levels, quantiles, strict=True)
    return columns | {f"q{level:g}": values.ravel() for level, values in ends}


def _as_levels(levels: Sequence[float]) -> FloatArray:
    wanted = np.atleast_1d(as_finite(levels, "levels"))
    if wanted.ndim != 1 or (wanted < 0.0).any() or (wanted > 1.0).any():
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
        raise ValueError("smoothing needs the stick-breaking link: filter_sequences takes both")
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
