"""Do sequences that are simulated from the model look like the data?

>>> import pgmult
>>> data = pgmult.sequences.as_sequences(["ABABABABABABABABABAB"])
>>> model = pgmult.sequences.MultinomialLDS(state_dim=1)
>>> run = pgmult.sample(
...     model, data, keep=[*model.default_keep, "states"],
...     draws=20, tune=20, chains=1, random_seed=0, progressbar=False,
... )
>>> check(run).statistics
('repeats', 'run of a step', 'dispersion')
"""

from itertools import starmap
from typing import Any

import numpy as np
from scipy.special import xlogy

from pgmult.core.arguments import as_seed
from pgmult.core.checks import PredictiveChecks
from pgmult.core.typing import FloatArray, IntArray
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.posteriors import Foretells, draws_of, points_and_states, sequences_of
from pgmult.sequences.priors.state_space import StateSpaceDraw

_REPEATS = "Symbols repeat the one before them {} often than the model says: try {}."
_RUNS = "A step is in {} runs of one symbol than the model says: try {}."
_SCATTER = "Observations scatter {} around their probabilities than the model says: {}."
_CHANNELS = "Channels depend {} on each other than the model says: try {} hidden states."
_LARGER, _OTHER = "a larger state_dim", "another model"


def _both(sentence: str, more: tuple[str, str], less: tuple[str, str]) -> tuple[str, str]:
    """Advice where a statistic of the data is above those of the model, and where it is below."""
    return sentence.format(*more), sentence.format(*less)


_DEPEND = "counts of a step may depend on each other"
_ADVICE = {
    "repeats": _both(_REPEATS, ("more", _LARGER), ("less", _LARGER)),
    "run of a step": _both(_RUNS, ("longer", _LARGER), ("shorter", _LARGER)),
    "dispersion": _both(_SCATTER, ("more", _DEPEND), ("less", "try a smaller state_dim")),
}
_HIDDEN, _ORDER = "hidden states, or more of them", "a Markov chain of higher order"
_ADVICE_ON_RUNS = {
    "repeats": _both(_REPEATS, ("more", _OTHER), ("less", _OTHER)),
    "run of a step": _both(_RUNS, ("longer", _HIDDEN), ("shorter", _ORDER)),
    "dependence": _both(_CHANNELS, ("more", "more"), ("less", "fewer")),
}


def check(run: Posterior, *, max_draws: int = 200, random_seed: int = 0) -> PredictiveChecks:
    """Simulate observations with the same totals from draws of the states, and compare.

    *Repeats* is the share of steps whose most frequent symbol is that of the step before, of pairs
    of which none is missing; *run of a step* the mean length of the run of one symbol that a step
    is in, so that a run counts by its length: with as many repeats it is larger where some
    sequences stay longer than others, and smaller where all runs are alike; *dispersion* the
    mean square of (count - expected) over its variance, expected given the draw. Of several
    channels the first has repeats and runs, and *dependence* is the mutual information of the first
    two.

    Parameters
    ----------
    run : Posterior
        Run that kept ``states`` beside the variables that its model keeps by default.
    max_draws : int
    random_seed : int, optional

    Raises
    ------
    TypeError
        If the posterior is of a model without a state space.
    ValueError
        If it lacks a variable, or its data are not available.
    """
    data = sequences_of(run)
    rng = np.random.default_rng(as_seed(random_seed))
    observed = np.flatnonzero(data.totals > 0)
    sequence = data.sequence_of_step[observed]
    follows = np.flatnonzero((np.diff(observed) == 1) & (np.diff(sequence) == 0)) + 1
    first = data.channel_slices[0]
    counts, totals = data.to_csr()[observed].toarray(), data.totals[observed]
    model: Any = run.model
    if isinstance(run.model, Foretells):  # repeats and runs, of sequences that are made anew
        draws = draws_of(run, model.predictive_variables, max_draws)
        made = (model.replicate(rng, draw, data)[observed] for draw in draws)

        def statistics(counts: IntArray) -> dict[str, float]:
            between = {"dependence": _dependence(counts, data)} if data.channels else {}
            return {**_runs(counts[:, first], follows), **between}

        of_data = statistics(counts)
        return PredictiveChecks.of(((of_data, statistics(new)) for new in made), _ADVICE_ON_RUNS)
    inputs = None if data.inputs is None else data.inputs[observed]

    def of_draw(point: StateSpaceDraw, states: FloatArray) -> Any:
        probs = point.link.probs(point.psi(states[observed], inputs))
        probs = probs / probs.sum(axis=1, keepdims=True)
        expected = totals[:, None] * probs
        variance, frequent = np.maximum(expected * (1.0 - probs), 1e-12), expected > 0.01
        sides = []
        for values in (counts, rng.multinomial(totals, probs)):
            scatter = (np.square(values - expected) / variance)[frequent]
            sides.append(_runs(values, follows) | {"dispersion": float(np.mean(scatter))})
        return sides

    return PredictiveChecks.of(starmap(of_draw, points_and_states(run, max_draws)), _ADVICE)


def _dependence(counts: IntArray, data: Sequences) -> float:
    """The mutual information of symbols of the first two channels at the same step."""
    one, other = (counts[:, columns] for columns in data.channel_slices[:2])
    both = (one.T @ other).astype(np.float64)
    shares = both / max(both.sum(), 1.0)
    alone = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    return float(xlogy(shares, shares / np.where(alone > 0.0, alone, 1.0)).sum())


def _runs(counts: IntArray, follows: IntArray) -> dict[str, float]:
    first = counts.argmax(axis=1)
    again = np.zeros(len(counts), dtype=np.int64)
    again[follows] = first[follows] == first[follows - 1]
    lengths = np.diff(np.flatnonzero(np.append(again == 0, True)))
    return {
        "repeats": float(again.sum() / max(len(follows), 1)),
        "run of a step": float((lengths**2).sum() / max(len(counts), 1)),
    }
