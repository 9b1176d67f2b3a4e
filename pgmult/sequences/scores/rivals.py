r"""Baselines for models of sequences: shares, Markov chains, hidden Markov models.

Each step is predicted from those before it in its sequence, by draws given all the *other* steps:
with theta the parameters, p(x_t | x_<t, theta) leaves the likelihood of step t out and keeps those
of all others, so that importance sampling over draws given everything
(`pgmult.core.scores.leave_one_out`) finds

    p(x_t | x_<t, other steps' terms) = E[p(x_t | x_<t, theta) | without that term].

So all of the data are scored, without favouring models with more parameters. Baselines are sampled,
some hundred draws each, and scored in the same way. If the continuations of the sequences are
known, these are predicted instead, from the draws as they are.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from pgmult.core.arguments import as_kind, as_list, as_seed, made, under_name
from pgmult.core.comparison import Comparison, between_two
from pgmult.core.scores import Score
from pgmult.core.typing import Model
from pgmult.core.validate import as_positive_int
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.data.sequences import Sequences, as_sequences, with_rows
from pgmult.sequences.models.hmm import MultinomialHMM
from pgmult.sequences.models.lds import MultinomialLDS, usual_state_dim
from pgmult.sequences.models.markov import MarkovChain
from pgmult.sequences.models.trend import MultinomialTrend
from pgmult.sequences.posteriors import PredictsSteps, sequences_of
from pgmult.sequences.scores.one_step import by_draw, check_continued, scored

_DRAWS, _TUNE = 100, 50  # of a rival's chain
_CHAINS, _PARTICLES = 2, 100
_FEWEST = 5  # draws of a chain
_WORK = 6_000_000  # moves of particles
_MOST_ROWS = 300_000  # numbers of a Markov chain's rows
_SHORT = 8  # steps
_LEFT_OUT = "given all other steps (leave-one-out)."
_MOST_A_STEP = 1000  # observations that are counted: millions are a matter of the last digit
_ADVICE = {  # from the simplest on
    "shares alone": "say how frequent symbols are: their order predicts nothing these models use",
    "a Markov chain of order 1": "use that chain (--model markov, sequences.MarkovChain(1))",
    "a Markov chain of order 2": "use that chain (--model markov2, sequences.MarkovChain(2))",
    "a hidden Markov model": "use that model (--model hmm, sequences.MultinomialHMM(8))",
}
_ORDER = (*_ADVICE,)


class Search(Comparison):
    """Models of which one is to be taken; the one with the best score stands first."""

    __slots__ = ()
    subject: ClassVar[str] = "the best"

    @property
    def sentences(self) -> list[str]:
        """Sentences that say which one to take."""
        which = self.names[0]
        if self.best == which:
            return [f"Take {which}: it predicts best."]
        return [f"Take {self.best}: {which} predicts best, but by no more than twice the error."]


def compare(
    run: Posterior, other: Posterior | None = None, *, held_out: object = None,
    names: tuple[str, str] = ("the first", "the second"), random_seed: int = 0,
) -> Comparison:  # fmt: skip
    """Does a run predict the next step better than shares, Markov chains and hidden states do, or
    than another run?

    Parameters
    ----------
    run : Posterior
        Of any model of symbols and counts.
    other : Posterior, optional
        Of the same sequences, to be compared with instead of simple models.
    held_out : Sequences, optional
        The continuation of each sequence, which was not in the fits; without it each step of the
        data is predicted by draws given the others.
    names : pair of str
        What to call two runs.
    random_seed : int
        Of chains of simple models and of particles.

    Notes
    -----
    Where particles would take long, fewer draws are used, and the beginnings of sequences alone.
    """
    seed, leave_out = as_seed(random_seed), held_out is None
    how = "Each step that was held out is predicted from those before it."
    if leave_out:
        how = f"Each step is predicted from those before it, by draws {_LEFT_OUT}"

    def score(one: Posterior) -> tuple[Score, Sequences, str]:
        test, after = sequences_of(one), None
        if isinstance(one.model, MultinomialTrend):
            raise TypeError(
                "run must be of a model that predicts steps given its draws, got MultinomialTrend,"
                " each step of which has its own level: compare forecasts of steps held out"
            )
        if not leave_out:
            with under_name("held_out", of="data"), under_name("held_out", of="test"):
                later, after = as_kind(held_out, "held_out", Sequences), test
                test = _thinned(sequences_of(one, later))
                check_continued(after, test)
        return _own(one, test, after, seed)

    if other is not None:
        scores = []
        for one, its in ((run, "run"), (other, "other")):
            with under_name(its, of="run"):
                scores.append(score(one)[0])
        return between_two(names, scores, _unit(run.data), how)
    model, test, note = score(run)
    data = sequences_of(run)
    candidates = {"the model": model, _ORDER[0]: _shares(data, test, leave_out)}
    for name, rival in rival_models(run.model, data).items():
        brief = _sampled_briefly(rival, bare(data), seed)
        log_p = by_draw(brief, bare(test), None if leave_out else bare(data), _DRAWS, 0, seed)
        candidates[name] = scored(log_p, test, leave_out)
    own_name = _name_of(run.model)
    simpler = _ORDER if own_name is None else _ORDER[: _ORDER.index(own_name)]
    return Comparison.of(candidates, _unit(data), how + note, _ADVICE, simpler)


def _unit(data: Sequences) -> str:
    return "a step" if data.totals.max(initial=0) <= 1 else "an observation"


def best_model(
    data: Sequences, models: Mapping[str, object], random_seed: int = 0, *,
    callback: Callable[[str, Posterior], object] | None = None,
) -> tuple[str, Search]:  # fmt: skip
    """Choose one of some models by brief runs of each: the best, or the first as good as it.

    The last quarter of the shortest sequence, if that has eight steps or more, is held out of all
    and predicted; otherwise all steps are, by draws given all others. Of a step held out at most
    1,000 observations count.

    Parameters
    ----------
    data : Sequences
    models : mapping from a name to a model
        The simplest first.
    random_seed : int
    callback : callable, optional
        Called as ``callback(name, run)`` after each brief run.

    Returns
    -------
    name : str
    comparison : Comparison
        Of the one with the best score with the others.
    """
    if len(models) < 2:
        raise ValueError(f"models must be two at least, got {len(models)}")
    shortest = int(data.lengths.min())
    hold_out = shortest // 4 if shortest >= _SHORT else 0
    scores = {}
    for name, model in models.items():
        model_data = held_by(model, data) or data
        train, test = model_data.split(-hold_out) if hold_out else (model_data, model_data)
        run = _sampled_briefly(model, train, random_seed)
        if callback is not None:
            callback(name, run)
        after = sequences_of(run) if hold_out else None
        tested = sequences_of(run, _thinned(test) if hold_out else test)
        scores[name] = _own(run, tested, after, random_seed)[0]
    first = max(scores, key=lambda name: scores[name].mean)
    how = f"Each step is predicted from those before it, by draws of a brief run {_LEFT_OUT}"
    if hold_out:
        how = f"The last {hold_out} steps are predicted, each from those before it, by a brief run"
        how += " without them."
    simpler, candidates = [*scores][: [*scores].index(first)], {first: scores[first], **scores}
    search = Search.of(candidates, _unit(data), how, simpler=simpler)
    return search.best, search


def _thinned(data: Sequences) -> Sequences:
    """Keep at most a thousand observations of each step, drawn without replacement."""
    many = np.flatnonzero(data.totals > _MOST_A_STEP)
    if not len(many):
        return data
    rng, rows = np.random.default_rng(0), data.to_csr().copy()
    for t in many:
        entries = slice(data.indptr[t], data.indptr[t + 1])
        rows.data[entries] = rng.multivariate_hypergeometric(data.counts[entries], _MOST_A_STEP)
    rows.eliminate_zeros()
    return with_rows(data, rows)


def search_state_dim(
    data: object, candidates: Sequence[int] | None = None, *,
    make_model: Callable[[int], object] | None = None, random_seed: int = 0,
) -> tuple[int, Comparison]:  # fmt: skip
    """Choose the number of dimensions, or of hidden states, that predicts best by brief runs.

    The last quarter of the shortest sequence, where that has eight steps or more, is predicted;
    otherwise all steps are, by draws given all others.

    Parameters
    ----------
    data : Sequences, or what `pgmult.sequences.as_sequences` takes
    candidates : sequence of int, optional
        Dimensions, each once; if left out 1, 2, 4 and 8, as far as there are so many symbols, and,
        where steps have many counts, one less than symbols.
    make_model : callable, optional
        From a number to a model, such as `MultinomialHMM`; `MultinomialLDS` if left out.
    random_seed : int

    Returns
    -------
    number : int
        The best, or the smallest that is as good within twice the standard error.
    comparison : Comparison
        Scores of all; print it for a table.

    Raises
    ------
    ValueError
        If candidates are fewer than two, or name a number twice.
    """
    make = MultinomialLDS if make_model is None else make_model
    sequences = as_sequences(data)
    if candidates is None:
        sizes = {d for d in (1, 2, 4, 8) if d <= max(sequences.num_symbols, 2)}
        candidates = sorted(sizes | {usual_state_dim(sequences)})
    listed = as_list(candidates, "candidates", "numbers")
    numbers = sorted(as_positive_int(number, "candidates") for number in listed)
    if len(numbers) < 2 or len(set(numbers)) < len(numbers):
        raise ValueError(f"candidates must be two different numbers or more, got {candidates}")
    models = {str(n): made(make, n, "a number of dimensions or states") for n in numbers}
    name, search = best_model(sequences, models, as_seed(random_seed))
    return int(name), search


def rival_models(model: object, data: Sequences) -> dict[str, Model[Sequences, Any]]:
    """Models of other kinds that anyone would try, the simplest first; none looks at inputs."""
    models: dict[str, Model[Sequences, Any]] = {}
    for order in () if data.channels else (1, 2):
        if (data.num_symbols + 1) ** order * data.num_symbols <= _MOST_ROWS:
            models[_ORDER[order]] = MarkovChain(order)
    states = max(2, min(8, data.num_steps // 20))
    models[_ORDER[3]] = MultinomialHMM(states, stickiness=None, start_tries=3, start_sweeps=20)
    return {name: rival for name, rival in models.items() if name != _name_of(model)}


def bare(data: Sequences) -> Sequences:
    """The sequences without their inputs and known states."""
    nothing = np.empty(0, dtype=np.int64)
    return replace(data, inputs=None, design=None, known=nothing, state_names=None)


def held_by(model: Any, data: Sequences) -> Sequences | None:
    """The sequences as a model takes them, without inputs if it knows none; None if it cannot."""
    for one in (data, bare(data)):
        with suppress(ValueError):
            model.as_data(one)
            return one
    return None


def _name_of(model: object) -> str | None:
    """What a model is called among the rivals, if it is one of them."""
    if isinstance(model, MarkovChain) and model.order <= 2:
        return _ORDER[model.order]
    return _ORDER[3] if type(model) is MultinomialHMM else None


def _sampled_briefly(model: Any, data: Sequences, random_seed: int) -> Posterior:
    """Some hundred draws, without a word."""
    keep = getattr(model, "predictive_variables", None)
    if keep is not None and not isinstance(model, PredictsSteps):
        keep = (*keep, "last_states")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return sample(
            model, data, keep=keep, draws=_DRAWS, tune=_TUNE, chains=_CHAINS,
            random_seed=random_seed, progressbar=False,
        )  # fmt: skip


def _own(
    run: Posterior, test: Sequences, after: Sequences | None, seed: int
) -> tuple[Score, Sequences, str]:
    """The model's score, of what steps, and what to say if these are not all."""
    most, note = max(run.num_chains, _DRAWS), ""
    if not isinstance(run.model, PredictsSteps):
        most = min(most, _WORK // (_PARTICLES * test.num_steps))
        most = max(most, _FEWEST * run.num_chains)
        length, work = int(test.lengths.max()), _PARTICLES * most
        while work * np.minimum(test.lengths, length).sum() > 2 * _WORK and length > 50:
            length //= 2
        if length < test.lengths.max():
            test = test.split(length)[0]
            note = f" Only the first {length:,} steps of a sequence are scored, to be quick."
    log_p = by_draw(run, test, after, most, _PARTICLES, seed)
    return scored(log_p, test, after is None), test, note


def _shares(data: Sequences, test: Sequences, leave_out: bool) -> Score:
    """Frequencies of all symbols, without those of the step that is predicted."""
    log_p = np.zeros(test.num_steps)
    for number in range(max(1, len(data.channels))):
        one, its = data.channel(number), test.channel(number)
        frequencies = np.bincount(one.symbols, one.counts, one.num_symbols) + 0.5
        step = its.step_of_entry
        left = frequencies[its.symbols] - its.counts * leave_out
        total = frequencies.sum() - its.totals[step] * leave_out
        log_p += np.bincount(step, its.counts * np.log(left / total), its.num_steps)
    return scored(log_p[None, None], test, left_out=False)
