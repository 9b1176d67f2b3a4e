"""What scores and forecasts need from a posterior of sequences: kind of model, draws and symbols.

A model predicts by one of two protocols. `PredictsSteps`: the probability of a step given those
before it has a closed form. `HasStateSpace`: given a draw, the model is a linear Gaussian state
observed through a link, for which there is a particle filter.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, Protocol, runtime_checkable

from pgmult.core.arguments import as_kind, under_name
from pgmult.core.typing import Draw, FloatArray, data_of
from pgmult.core.validate import as_positive_int
from pgmult.formulas.design import table_of
from pgmult.links import StickBreaking
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.data.sequences import Sequences, as_sequences, few_of
from pgmult.sequences.models.base import Ahead
from pgmult.sequences.models.trend import MultinomialTrend
from pgmult.sequences.priors.state_space import StateSpaceDraw, joined_states


@runtime_checkable
class PredictsSteps(Protocol):
    """A model whose one-step-ahead probabilities given its parameters have a closed form.

    Attributes
    ----------
    predictive_variables : the kept variables that they depend on.
    """

    predictive_variables: tuple[str, ...]

    def log_predictive(self, draw: Mapping[str, object], data: Sequences) -> FloatArray:
        """Log p(x_t | x_<t of the same sequence, draw), ``(num_steps,)``; 0 at missing steps."""


@runtime_checkable
class Foretells(PredictsSteps, Protocol):
    """A model whose probabilities given its parameters have a closed form, ahead as well."""

    def step_probs(self, draw: Draw, data: Sequences, *, filtered: bool = False) -> FloatArray:
        """Probabilities of every step given all observations, or given those before it alone."""

    def ahead(self, chances: FloatArray, draw: Draw, data: Sequences, steps: int) -> Ahead:
        """Probabilities ahead of each sequence, ``(num_sequences, steps, num_symbols)``, and one
        path of symbols, ``(num_sequences, steps)``, that follows from uniform numbers,
        ``(num_sequences, 2, steps + 1)``.
        """


@runtime_checkable
class HasStateSpace(Protocol):
    """A model of linear Gaussian states observed through a link.

    Sequences can be continued where it keeps ``last_states``, ``(num_sequences, state_dim)``.

    Attributes
    ----------
    predictive_variables : the kept variables that `state_space` takes.
    """

    predictive_variables: tuple[str, ...]

    def state_space(self, draw: Mapping[str, object], link: StickBreaking) -> StateSpaceDraw:
        """One posterior draw as particle methods take it."""

    def at_levels(self, draw: dict[str, Any], data: Sequences) -> dict[str, Any]:
        """The draw with effects of all levels that data have."""


def sequences_of(run: Posterior, data: object = None) -> Sequences:
    """Sequences of a run's symbols, from what its model takes; those of the run by default.

    Raises
    ------
    TypeError
        If the posterior is a plain mapping of arrays.
    ValueError
        If the posterior does not know its model, or is of other symbols.
    """
    of_arrays = "of arrays, Posterior(..., origin=Origin.of(model, data)) makes one"
    as_kind(run, "run", Posterior, of_arrays)
    with under_name("run", of="posterior"):
        model, of_run = run.model, run.data
    converted = data_of(model, of_run if data is None else data)
    sequences = converted if isinstance(converted, Sequences) else as_sequences(data)
    design = None if data is None else getattr(of_run, "design", None)
    if design is not None and sequences.design is not None:  # coded as the run's
        cells, size = table_of(sequences.design), sequences.num_steps
        sequences = sequences.with_design(design.like(cells, new_levels=True, num_rows=size))
    if isinstance(model, MultinomialTrend) and not run.is_of(sequences):
        raise ValueError("data must be the run's: MultinomialTrend goes on from their ends alone")
    symbols, labels = sequences.labels, run.coords.get("symbol")
    if labels is not None and labels.tolist() != symbols.tolist():
        raise ValueError(
            f"data must have the posterior's {len(labels)} symbols, {few_of(labels)}, got"
            f" {len(symbols)}, {few_of(symbols)} (give as_sequences alphabet= or num_symbols=)"
        )
    if isinstance(of_run, Sequences):  # what sticks break by
        sequences = replace(sequences, order=of_run.order)
    return sequences


def draws_of(run: Posterior, names: Iterable[str], max_draws: int) -> list[dict[str, Any]]:
    """Draws of some variables, at most `max_draws`, as many of each chain; one at least.

    Raises
    ------
    ValueError
        If a variable was not kept.
    """
    names, most = tuple(names), as_positive_int(max_draws, "max_draws")
    missing = [name for name in names if name not in run]
    if missing:
        keep = ", ".join(map(repr, names))
        raise ValueError(f"the run lacks {', '.join(missing)}: sample with keep=[{keep}, ...]")
    if run.num_draws == 0:
        raise ValueError("the run has no draws")
    taken = [chain.from_iterable(run.thinned(name, most)) for name in names]
    return [dict(zip(names, draw, strict=True)) for draw in zip(*taken, strict=True)]


def state_space_draws(
    run: Posterior, max_draws: int, data: Sequences | None = None, *, continued: bool = False
) -> list[StateSpaceDraw]:
    """The parameters of `draws_of`, for sequences that begin or that continue the posterior's.

    Where the design of `data` has levels that the posterior's has not, their effects are drawn.

    Raises
    ------
    TypeError
        If the posterior's model has no state space.
    ValueError
        If a variable was not kept.
    """
    model, link = run.model, run.link
    if not isinstance(model, HasStateSpace):
        raise TypeError(f"run must be of a model with a state space, got {type(model).__name__}")
    if continued:
        refuse_without_last_states(run)
    names = [*model.predictive_variables, *["last_states"] * continued]
    levels = data is not None and data.num_effects > run.data.num_effects
    draws = draws_of(run, [*names, *["hyperparameters"] * levels], max_draws)
    if data is not None and levels:
        draws = [model.at_levels(draw, data) for draw in draws]
    points = [model.state_space(draw, link) for draw in draws]
    if not continued:
        return points
    return [p.continued(draw["last_states"]) for p, draw in zip(points, draws, strict=True)]


def points_and_states(run: Posterior, most: int) -> Iterator[tuple[StateSpaceDraw, FloatArray]]:
    """The parameters of each draw, and the states of every step, with noise where it was kept."""
    names = ["states", *(["noise"] if "noise" in run else [])]
    states = map(joined_states, draws_of(run, names, most))
    return zip(state_space_draws(run, most), states, strict=True)


def refuse_without_last_states(run: Posterior) -> None:
    """Refuse to go on where a posterior's sequences ended if it does not say where that was."""
    if "last_states" not in run:
        raise ValueError(
            "run must have kept last_states to go on where its sequences ended, and runs on a"
            " cluster keep none: forecast(steps, data) finds them by a particle filter"
        )
