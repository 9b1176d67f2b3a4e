"""Probabilities of symbols at every step: smoothed, imputed and forecast.

Three questions to a posterior of sequences driven by linear Gaussian states, each answered by
averaging over its draws, with quantiles that hold the uncertainty of the parameters and of the
states. The answer for a sequence depends on it alone, not on the others:

* `predict`: the probabilities at step t given *all* observations of its sequence;
* `impute`: which symbols were at the missing steps;
* `forecast`: the steps after the last one, with simulated futures.

Each is asked of the sequences that the posterior was sampled from, or of others. `predict` of other
sequences and `impute` draw states from their distribution given a draw of the parameters, back
through a particle filter (Godsill, Doucet and West 2004); `forecast` of other sequences takes
the filter's last states. Both average many states under each draw: what that
leaves to chance in a mean has a standard error below .01, or a warning says what it is.

>>> import numpy as np, pgmult
>>> data = pgmult.sequences.as_sequences(["ABABABABABABAB"])
>>> run = pgmult.sample(
...     pgmult.sequences.MultinomialLDS(state_dim=2), data,
...     draws=20, tune=20, chains=1, random_seed=0, progressbar=False,
... )
>>> ahead = run.forecast(3)
>>> ahead.mean.shape, ahead.quantiles.shape, ahead.simulated.shape
((1, 3, 2), (3, 1, 3, 2), (20, 1, 3))
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from pgmult.core.arguments import as_flag, as_repeats, as_seed
from pgmult.core.typing import ArrayLike, FloatArray, Generator, IntArray
from pgmult.core.validate import as_counts, as_finite, as_positive_int, keyed_generator
from pgmult.formulas.design import Design
from pgmult.formulas.terms import GroupTerm
from pgmult.sampling.posterior import Posterior
from pgmult.sequences import posteriors
from pgmult.sequences.answers import Forecast, Imputed, StepProbs
from pgmult.sequences.data.sequences import Sequences, one_of, with_rows
from pgmult.sequences.data.tables import future_of
from pgmult.sequences.models.hmm import MultinomialHMM
from pgmult.sequences.priors.state_space import StateSpaceDraw, as_arrays
from pgmult.sequences.scores.particle_filter import own_keys, own_streams, particle_filter

LEVELS = (0.05, 0.5, 0.95)
_Summary = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
_BLOCK = 1 << 22  # probabilities held at a time
_PARTICLES = 200  # at each step of other sequences, under each draw
_SIMULATED = 4000  # states that a mean is over, of all draws together
_MOST_STATES, _MOST_KEPT = 1 << 25, 1 << 27  # numbers of paths and of a filter's steps
_FEWEST_PARTICLES = 32
_MOST_BEGUN = 20_000  # steps of all beginnings of sequences
_LEAST_ERROR = 0.01  # a simulation error that is reported


def predict(
    run: Posterior, data: object = None, *, filtered: bool = False,
    levels: Sequence[float] = LEVELS, max_draws: int | None = None, random_seed: int = 0,
) -> StepProbs:  # fmt: skip
    """Probabilities at every step, missing ones included: smoothed, or filtered.

    Smoothed ones are given all observations of the sequence, later ones among them; filtered ones
    are predictions, given those before the step alone. For the sequences of the run, smoothed ones
    are computed from the states that its chains kept; states of other sequences are sampled at each
    of its draws.

    Parameters
    ----------
    run : Posterior
        Of `pgmult.sequences.MultinomialLDS`, with the variables that it keeps by default, and
        ``states`` where no data are given; of a hidden Markov model; or of a Markov chain, whose
        probabilities are given the steps before alone where the symbol was observed.
    data : Sequences, or what the model takes, optional
        Sequences of the run's symbols; those of the run by default.
    filtered : bool
        Predict each step from those before it alone, as one could have at the time. Otherwise
        later observations count, too.
    levels : sequence of float
        Of the quantiles.
    max_draws : int, optional
        Draws to use at most, evenly spread over the chains: by default 500, or 100 where
        states are sampled.
    random_seed : int

    Raises
    ------
    TypeError
        If the posterior is of a model without a state space.
    ValueError
        If the posterior does not know its model or lacks a variable, or the data are of other
        symbols.

    Warns
    -----
    UserWarning
        If a mean's simulation error is .01 or more.
    """
    wanted, rng = _as_levels(levels), np.random.default_rng(as_seed(random_seed))
    sequences, model = posteriors.sequences_of(run, data), run.model
    is_known, filtered = isinstance(model, posteriors.Foretells), as_flag(filtered, "filtered")
    most = 500 if is_known or data is None else 100
    if max_draws is not None:
        most = as_positive_int(max_draws, "max_draws")
    if is_known:
        held = max(20, 8 * _BLOCK // (sequences.num_steps * sequences.num_symbols))
        taken = posteriors.draws_of(run, model.predictive_variables, min(most, held))
        probs = np.array([model.step_probs(d, sequences, filtered=filtered) for d in taken])
        return StepProbs(*_summarised(probs, wanted, sequences), sequences, filtered)
    if filtered:
        unseen, last = _beginnings(sequences, type(model).__name__)
        smoothed = predict(run, unseen, levels=levels, max_draws=most, random_seed=random_seed)
        return replace(
            smoothed, draws=smoothed.draws[:, last], mean=smoothed.mean[last],
            quantiles=smoothed.quantiles[:, last], sequences=sequences, filtered=True,
        )  # fmt: skip
    if data is None:
        if "states" not in run:
            hint = "sample with keep=['states', ...], or give the data, to sample their states"
            raise ValueError(f"the run lacks states: {hint}")
        pairs = list(posteriors.points_and_states(run, most))
        draws, paths = [d for d, _ in pairs], np.array([[d.padded(x)] for d, x in pairs])
        pieces = iter([(slice(0, sequences.num_steps), sequences, paths, 1)])
    else:
        draws = posteriors.state_space_draws(run, most, sequences)
        pieces = _smoothed(rng, draws, sequences)
    summaries = _Summaries(sequences.num_steps, sequences, wanted)
    for steps, piece, paths, size in pieces:
        for rows, probs in _Spaces(draws, piece).probs(paths, np.arange(piece.num_steps)):
            summaries.add(probs, slice(steps.start + rows.start, steps.start + rows.stop), size)
    if data is not None:
        _warn_of_error(summaries.variance)
    return StepProbs(*summaries.arrays(), sequences)


def _beginnings(data: Sequences, model: str) -> tuple[Sequences, IntArray]:
    """Each beginning of a sequence, whose last step is taken as missing, and that step of each.

    Its smoothed probabilities are predictions of the step from those before it.
    """
    size = int((data.lengths * (data.lengths + 1) // 2).sum())
    if size > _MOST_BEGUN:
        raise ValueError(
            f"filtered=True takes at most {_MOST_BEGUN:,} steps of all beginnings of sequences for"
            f" {model}, got {size:,} (take fewer or shorter ones, hidden states or a Markov chain)"
        )
    begun = data.beginnings()
    rows, last = begun.to_csr().tolil(), begun.offsets[1:] - 1
    rows[last] = 0
    return with_rows(begun, rows), last


def forecast(
    run: Posterior, steps: int, data: object = None, *, inputs: object = None,
    totals: ArrayLike | None = None, levels: Sequence[float] = LEVELS, max_draws: int = 500,
    random_seed: int = 0, simulate_to: int | None = None,
) -> Forecast:  # fmt: skip
    """Forecast every sequence from its end, along simulated paths of states.

    Parameters
    ----------
    run : Posterior
        As in `predict`.
    steps : int
        How far ahead, >= 1.
    data : Sequences, or what the model takes, optional
        Other sequences of the posterior's symbols: their last states come from a particle filter.
    inputs : array, ``(num_sequences, steps, num_inputs)``, or table, optional
        Inputs of the steps ahead; required where the data have inputs. By a formula they are a
        table with its columns and those of the sequences and times, if the data were made of one.
    totals : int or int array, ``(steps,)`` or ``(num_sequences, steps)``, optional
        How many observations each step ahead will have: `Forecast.counts` are drawn of so many.
    levels, max_draws, random_seed
        As in `predict`.
    simulate_to : int, optional
        As far as futures are simulated, >= `steps`, where that is further than probabilities are
        wanted: inputs and totals are then of so many steps, too.

    Raises
    ------
    TypeError, ValueError
        As in `predict`, and if inputs or totals do not go with the steps ahead.
    """
    asked, wanted = as_repeats(steps, "steps"), _as_levels(levels)
    steps = asked if simulate_to is None else as_repeats(simulate_to, "simulate_to", minimum=asked)
    rng, sequences = np.random.default_rng(as_seed(random_seed)), posteriors.sequences_of(run, data)
    is_table = inputs is not None and not isinstance(inputs, np.ndarray | Design)
    if sequences.design is not None and is_table:
        inputs = future_of(sequences, inputs, steps)
    shape = sequences.num_sequences, steps
    sizes = None if totals is None else _as_totals(totals, shape)
    if isinstance(run.model, posteriors.Foretells):
        extended = sequences
        if isinstance(run.model, MultinomialHMM) or inputs is not None:
            extended = sequences.extended(steps, inputs)
        streams, far = own_streams(own_keys(rng, sequences)), (asked, steps)
        probs, paths, counts = _by_model(streams, run, extended, far, sizes, max_draws)
        return Forecast(*_summarised(probs, wanted, extended), sequences, paths, counts)
    ahead = sequences.extended(steps, inputs)  # refuses missing and superfluous inputs
    draws = posteriors.state_space_draws(run, max_draws, ahead)
    number, future = _paths_of(len(draws)), ahead.offsets[1:, None] - np.arange(steps, 0, -1)
    size = number if data is None else max(_PARTICLES, 2 * number)
    if data is not None:
        if ahead.inputs is not None:  # with the columns of all levels
            sequences = replace(sequences, inputs=np.delete(ahead.inputs, future, axis=0))
        last = particle_filter(rng, draws, sequences, size, num_last=number).last
    else:
        posteriors.refuse_without_last_states(run)
        ends = posteriors.draws_of(run, ["last_states"], max_draws)
        padded = [d.padded(x["last_states"]) for d, x in zip(draws, ends, strict=True)]
        last = np.repeat(np.array(padded)[:, :, None], number, axis=2)
    keys, spaces = own_keys(rng, sequences), _Spaces(draws, ahead)
    streams, summaries = own_streams(keys), _Summaries(len(keys) * asked, ahead, wanted)
    simulated = np.empty((len(draws), *shape), dtype=np.int64)
    drawn = np.empty((*simulated.shape, ahead.num_symbols * (sizes is not None)), np.int64)
    for q, key in enumerate(keys):
        stream = keyed_generator(key)
        states = spaces.simulated(stream, last[:, q], future[q, :asked])
        for block, probs in spaces.probs(states, future[q, :asked]):
            summaries.add(probs, slice(q * asked + block.start, q * asked + block.stop), size)
        chosen = np.take_along_axis(states, _one_path(streams[q], states)[..., None], axis=1)
        chosen = spaces.continued(stream, chosen, future[q])
        for block, probs in spaces.probs(chosen, future[q]):
            taken = probs[:, 0]
            simulated[:, q, block] = one_of(streams[q].random(taken.shape[:-1]), taken)
            if sizes is not None:
                drawn[:, q, block] = _counts(streams[q], taken, sizes[q, block])
    _warn_of_error(summaries.variance)
    counts = None if sizes is None else drawn
    return Forecast(*summaries.arrays(len(keys), asked), sequences, simulated, counts)


def _by_model(
    streams: list[Generator], run: Posterior, data: Sequences, steps: tuple[int, int],
    sizes: IntArray | None, max_draws: int,
) -> tuple[FloatArray, IntArray, IntArray | None]:  # fmt: skip
    """Probabilities, symbols and counts ahead of a model that knows these given its parameters.

    Probabilities are wanted for fewer `steps` than futures.
    """
    wanted, far = steps
    draws = posteriors.draws_of(run, run.model.predictive_variables, max_draws)
    chances = np.stack([s.random((len(draws), 2, far + 1)) for s in streams], axis=1)
    futures = [run.model.ahead(*one, data, far) for one in zip(chances, draws, strict=True)]
    simulated = np.array([path for _, path in futures])
    probs = np.array([ahead[:, : wanted if sizes is None else far] for ahead, _ in futures])
    if sizes is None:
        return probs, simulated, None
    every = zip(streams, np.swapaxes(probs, 0, 1), sizes, strict=True)
    return probs[:, :, :wanted], simulated, np.stack([_counts(*one) for one in every], axis=1)


def impute(
    run: Posterior, data: object = None, *, totals: ArrayLike | None = None,
    levels: Sequence[float] = LEVELS, max_draws: int = 100, random_seed: int = 0,
) -> Imputed:  # fmt: skip
    """The symbols at missing steps, given all observations: one per step, or counts.

    States are sampled at each draw, of the sequences of the run if no `data` are given. Other
    parameters and errors are those of `predict`, and

    Parameters
    ----------
    totals : int or int array, ``(num_missing,)``, optional
        How many observations each missing step would have had: `Imputed.counts` are drawn of so
        many.

    Raises
    ------
    ValueError
        Also if no step is missing.
    """
    wanted, rng = _as_levels(levels), np.random.default_rng(as_seed(random_seed))
    sequences = posteriors.sequences_of(run, data)
    draws = posteriors.state_space_draws(run, max_draws, sequences)
    missing = np.flatnonzero(sequences.totals == 0)
    if len(missing) == 0:
        raise ValueError("no step of the data is missing, there is nothing to impute")
    sizes = None if totals is None else _as_totals(totals, (len(missing),))
    summaries = _Summaries(len(missing), sequences, wanted)
    streams = own_streams(own_keys(rng, sequences))
    simulated = np.empty((len(draws), len(missing)), dtype=np.int64)
    counts = np.empty((*simulated.shape, sequences.num_symbols), np.int64)
    for steps, piece, states, size in _smoothed(rng, draws, sequences):
        first, end = np.searchsorted(missing, [steps.start, steps.stop])
        absent = missing[first:end] - steps.start
        whose = sequences.sequence_of_step[missing[first:end]]
        chosen = {q: _one_path(streams[q], states) for q in np.unique(whose).tolist()}
        for rows, probs in _Spaces(draws, piece).probs(states[:, :, absent], absent):
            summaries.add(probs, slice(first + rows.start, first + rows.stop), size)
            for row in range(rows.start, rows.stop):  # sequences do not depend on each other
                q = int(whose[row])
                taken = np.take_along_axis(probs[:, :, row - rows.start], chosen[q], axis=1)[:, 0]
                simulated[:, first + row] = one_of(streams[q].random(taken.shape[:-1]), taken)
                if sizes is not None:
                    counts[:, first + row] = _counts(streams[q], taken, sizes[first + row])
    _warn_of_error(summaries.variance)
    made = None if sizes is None else counts
    return Imputed(*summaries.arrays(), sequences, missing, simulated, made)


def _as_levels(levels: Sequence[float]) -> FloatArray:
    wanted = np.atleast_1d(as_finite(levels, "levels"))
    if wanted.ndim != 1 or not wanted.size or wanted.min() < 0.0 or wanted.max() > 1.0:
        raise ValueError(f"levels must be numbers from 0 to 1, one or more, got {levels}")
    return wanted


def _as_totals(totals: ArrayLike, shape: tuple[int, ...]) -> IntArray:
    """One total for every step: one number, one for each step ahead, or all of them."""
    sizes = as_counts(totals, "totals")
    if sizes.shape not in ((), shape[-1:], shape):
        raise ValueError(f"totals must be one number or of shape {shape}, got {sizes.shape}")
    return np.broadcast_to(sizes, shape)


class _Summaries:
    """Means, quantiles and draws of probabilities over draws and states.

    `draws` are averages over the states of a draw, of as many draws as are held. `variance` is the
    largest that simulation leaves in a mean.
    """

    def __init__(self, num_rows: int, data: Sequences, levels: FloatArray):
        self.mean = np.empty((num_rows, data.num_symbols))
        self.quantiles = np.empty((len(levels), num_rows, data.num_symbols))
        self.variance, self._levels = 0.0, levels
        self.draws = np.empty((0, num_rows, data.num_symbols))
        self._is_drawn_once = _has_new_levels(data)

    def add(self, probs: FloatArray, rows: slice, num_particles: int) -> None:
        """Probabilities of some rows, ``(num_draws, num_paths, num_rows, num_symbols)``."""
        draws, paths = probs.shape[:2]
        if not len(self.draws):
            held = int(np.clip(4 * _BLOCK // self.mean.size, 1, draws))
            self.draws = np.empty((held, *self.mean.shape))
        chosen = np.linspace(0, draws - 1, len(self.draws)).astype(np.int64)
        self.draws[:, rows] = probs[chosen].mean(axis=1)
        flat = probs.reshape(-1, *probs.shape[2:])
        self.mean[rows] = flat.mean(axis=0)
        self.quantiles[:, rows] = np.quantile(flat, self._levels, axis=0)
        pooled = self._is_drawn_once or paths == 1
        chance = flat.var(axis=0) if pooled else probs.var(axis=1).mean(axis=0)
        if not self._is_drawn_once:
            chance *= 1 / paths + 1 / num_particles
        self.variance = max(self.variance, float(chance.max(initial=0.0)) / draws)

    def arrays(self, *shape: int) -> _Summary:
        """Draws, means, quantiles and their levels, rows in a shape."""
        shape, arrays = shape or self.mean.shape[:1], (self.draws, self.mean, self.quantiles)
        draws, mean, ends = (x.reshape(*x.shape[:-2], *shape, x.shape[-1]) for x in arrays)
        return draws, mean, ends, self._levels


def _summarised(probs: FloatArray, levels: FloatArray, data: Sequences) -> _Summary:
    """Probabilities that each draw has in closed form, their means, quantiles and levels."""
    if _has_new_levels(data):
        _warn_of_error(float(probs.var(axis=0).max()) / len(probs))
    return probs, probs.mean(axis=0), np.quantile(probs, levels, axis=0), levels


def _has_new_levels(data: Sequences) -> bool:
    """Whether effects of levels without data are drawn, one under each draw."""
    terms = () if data.design is None else data.design.terms
    return any(isinstance(term, GroupTerm) and len(term.new) for term in terms)


def _warn_of_error(variance: float) -> None:
    """Tell the largest standard error that simulation leaves in a mean, if it is large."""
    if (error := np.sqrt(variance)) >= _LEAST_ERROR:
        said = f"simulated to within a standard error of {error:.3f}, which more draws lower"
        warnings.warn(f"probabilities are {said} (max_draws=)", stacklevel=3)


def _paths_of(num_draws: int) -> int:
    """An even number of paths of states under each draw."""
    return 2 * max(-(-_SIMULATED // (2 * num_draws)), 1)


def _smoothed(
    rng: Generator, draws: list[StateSpaceDraw], data: Sequences
) -> Iterator[tuple[slice, Sequences, FloatArray, int]]:
    """Steps, their sequences, paths of states ``(num_draws, num_paths, steps, D)``, particles.

    Some neighbouring sequences at a time, as many as are held; paths and particles of a sequence
    depend on its length alone.
    """
    most_paths, D, seed = _paths_of(len(draws)), draws[0].state_dim, int(rng.integers(2**63))
    paths = np.clip(_MOST_STATES // np.maximum(1, len(draws) * data.lengths * D), 1, most_paths)
    most = max(_PARTICLES, 2 * most_paths)
    held = np.clip(_MOST_KEPT // (data.lengths * 2 * (D + 1)), _FEWEST_PARTICLES, most)
    load = np.cumsum(len(draws) * paths * data.lengths * D) // _MOST_STATES
    alike = np.stack([paths, held, load], axis=1)
    cuts = np.flatnonzero((alike[1:] != alike[:-1]).any(axis=1)) + 1
    for first, end in pairwise([0, *cuts.tolist(), len(alike)]):
        steps = slice(int(data.offsets[first]), int(data.offsets[end]))
        piece = data.take(np.arange(first, end))
        rng, size = np.random.default_rng(seed), int(held[first])
        filtered = particle_filter(rng, draws, piece, size, num_paths=int(paths[first]))
        yield steps, piece, filtered.paths, size


class _Spaces:
    """State spaces of draws, for the steps of some sequences."""

    def __init__(self, draws: list[StateSpaceDraw], data: Sequences):
        steps, self._model = as_arrays(draws, data)
        self._inputs: FloatArray = np.asarray(steps.inputs)
        self._link, self._size = draws[0].link, len(draws) * data.num_symbols

    def simulated(self, rng: Generator, last: FloatArray, steps: IntArray) -> FloatArray:
        """States of the steps after a sequence's last, ``(num_draws, num_paths, steps, D)``.

        The noise of half of the paths is that of the others with its sign changed.
        """
        draws, paths, D = last.shape
        half = rng.standard_normal((draws, paths // 2, len(steps), D))
        order = rng.permuted(np.tile(np.arange(paths), (draws, 1)), axis=1)
        x = np.take_along_axis(last, order[:, :, None], axis=1)  # which do not go by their place
        return self._after(x, np.concatenate([half, -half], axis=1), steps)

    def continued(self, rng: Generator, states: FloatArray, steps: IntArray) -> FloatArray:
        """Paths ``(num_draws, num_paths, any, D)`` that go on to so many steps."""
        draws, paths, have, D = states.shape
        noise = rng.standard_normal((draws, paths, len(steps) - have, D))
        return np.concatenate([states, self._after(states[:, :, -1], noise, steps[have:])], axis=2)

    def _after(self, x: FloatArray, noise: FloatArray, steps: IntArray) -> FloatArray:
        """States after x ``(num_draws, num_paths, D)``, by standard normal noise of each step."""
        transition: FloatArray = np.swapaxes(np.asarray(self._model.transition), 1, 2)
        root: FloatArray = np.swapaxes(np.asarray(self._model.root), 1, 2)
        out: FloatArray = noise @ root[:, None]
        if self._inputs.size:
            out += np.einsum("tu,sdu->std", self._inputs[steps], self._model.input_weights)[:, None]
        for t in range(out.shape[2]):
            x = x @ transition + out[:, :, t]
            out[:, :, t] = x
        return out

    def probs(self, states: FloatArray, steps: IntArray) -> Iterator[tuple[slice, FloatArray]]:
        """Yield blocks of steps, and probabilities given states as `simulated` has them."""
        size = max(1, 4 * _BLOCK // (states.shape[1] * self._size))
        for first in range(0, len(steps), size):
            block = slice(first, min(first + size, len(steps)))
            psi = states[:, :, block] @ np.swapaxes(np.asarray(self._model.loadings), 1, 2)[:, None]
            psi += np.asarray(self._model.offset)[:, None, None]
            if self._inputs.size:
                weights = self._model.emission_weights
                psi += np.einsum("tu,snu->stn", self._inputs[steps[block]], weights)[:, None]
            yield block, self._link.probs(psi)


def _one_path(rng: Generator, states: FloatArray) -> IntArray:
    """The number of one path of each draw, ``(num_draws, 1, 1)``."""
    paths = np.tile(np.arange(states.shape[1]), (len(states), 1))
    return rng.permuted(paths, axis=1)[:, :1, None]


def _counts(rng: Generator, probs: FloatArray, totals: IntArray) -> IntArray:
    """Counts of so many observations from each row of probabilities."""
    return rng.multinomial(totals, probs / probs.sum(axis=-1, keepdims=True))
