"""Access to draws of topic models: a chain's draws one after the other, and the data."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from pgmult.core.arguments import as_kind, as_list
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling.diagnostics import MIN_DRAWS, ess_bulk
from pgmult.sampling.posterior import Posterior

Data = TypeVar("Data")

_POOL = 15  # most probable words of a topic, out of which its name is chosen
FEW_DRAWS = 50.0
"""Effective draws, below which an interval is not called reliable."""

MERGED = "merged"
"""Attribute of a run whose topics were merged: for each of them, the topics of the model in it."""

PsiPrior = tuple[FloatArray, IntArray, FloatArray]
"""Means of psi, and which of some covariances each document has."""

_OF_REGRESSION = ("coefficients", "Sigma", "effects", "effect_variances")


def spread(num_draws: int, max_draws: int) -> IntArray:
    """Return at most `max_draws` of the numbers of draws, evenly spread."""
    count = min(as_positive_int(max_draws, "max_draws"), num_draws)
    return np.unique(np.linspace(0, num_draws - 1, count).astype(np.int64))


def share_of_draws(max_draws: int, num_chains: int) -> int:
    """Return each chain's share of at most `max_draws` draws, one at least."""
    return max(1, as_positive_int(max_draws, "max_draws") // num_chains)


def as_draws(run: Any, *names: str, argument: str = "run") -> Posterior:
    """The posterior itself, if it holds these variables."""
    draws = as_kind(run, argument, Posterior, "of pgmult.sample or pgmult.load")
    missing = [name for name in names if name not in draws]
    if missing:
        raise not_kept(draws, repr(missing[0]), argument)
    return draws


def not_kept(run: Posterior, wanted: str, argument: str = "run") -> ValueError:
    """The error of draws without a variable."""
    got, hint = ", ".join(map(str, run)), "(name it in keep= of pgmult.sample)"
    return ValueError(f"{argument} must hold {wanted}, got only {got} {hint}")


def as_unmerged(run: Posterior) -> Posterior:
    """Refuse a run whose topics were merged, where those of its model are needed."""
    if MERGED in as_draws(run).attrs:
        raise ValueError("run must be of the model's topics, got merged ones: ask the run before")
    return run


def united(run: Posterior, values: FloatArray) -> FloatArray:
    """Sum values of the model's topics, ``(..., topic)``, to those of the topics of a run."""
    if MERGED not in run.attrs:
        return values
    return np.stack([values[..., group].sum(axis=-1) for group in run.attrs[MERGED]], axis=-1)


def as_chain(run: Posterior, chain: object) -> int:
    """The place in arrays, from 0, of a chain that is given by its number, from 1."""
    return as_positive_int(chain, "chain", maximum=as_draws(run).num_chains) - 1


def topic_places(topics: object, size: int, argument: str = "topics") -> IntArray:
    """Places in arrays, from 0, of topics that are given by their numbers, from 1 to `size`."""
    asked = as_list(topics, argument, "numbers of topics")
    numbers = [as_positive_int(k, argument, minimum=1, maximum=size) for k in asked]
    return np.array(numbers, dtype=np.int64) - 1


def of_chain(run: Posterior, place: int, *names: str, beside: Sequence[str] = ()) -> dict[str, Any]:
    """Draws of some variables in the chain at a place, at which `beside` were kept too."""
    as_draws(run, *names)
    held = run.together(*names, *(name for name in beside if name in run))
    if held[names[0]].shape[1] == 0:
        raise ValueError("run must have draws, and has none yet")
    return {name: held[name][place] for name in names}


def data_of_run(run: Posterior, data: object, kind: type[Data], hint: str = "") -> Data:
    """Return the data of a run, or `data`, which must be the same."""
    draws = as_draws(run)
    checked = as_kind(draws.data if data is None else data, "data", kind, hint)
    if data is not None and not draws.is_of(checked):
        raise ValueError(f"data must be what the posterior was sampled with, got {checked!r}")
    return checked


def regression_variables(run: Posterior, data: Any) -> list[str]:
    """Names of the kept variables that the prior of psi depends on in a structural topic model."""
    absent = run.model.absent(data)
    return [name for name in _OF_REGRESSION if name not in absent]


def prior_at(draws: Mapping[str, Any], number: int, design: Any) -> PsiPrior:
    """Means of psi at the rows of a design under one draw, and its covariances.

    Without a design: the mean ``mu`` and the covariance ``Sigma``, one of each for all documents.
    Levels that the design does not know have effects of the prior: see `Design.covariances`.

    Returns
    -------
    means : array, ``(num_rows, n)``
    which : int array, ``(num_rows,)``
    covariances : array, ``(num_covariances, n, n)``
    """
    at = {name: np.asarray(draw[number], dtype=np.float64) for name, draw in draws.items()}
    n = len(at["Sigma"])
    if design is None:
        return at["mu"][None], np.zeros(1, dtype=np.int64), at["Sigma"][None]
    means = design.mean(at["coefficients"], at.get("effects", np.empty((0, n))))
    variances = at.get("effect_variances", np.empty(0))
    return means, *design.covariances(at["Sigma"], variances)


def each_draw(
    run: Posterior, name: str, place: int, max_draws: int | None = None, beside: Sequence[str] = ()
) -> Iterator[FloatArray]:
    """One variable's draws in the chain at a place, in float64: all, or `max_draws` evenly spread.

    Of the draws at which `beside` were kept, where not every draw of these was.

    Raises
    ------
    ValueError
        If the variable was not kept, or there is no draw.
    """
    as_draws(run, name)
    step = run.steps(name, *(other for other in beside if other in run))[name]
    num_draws = run.size_of(name) // step
    draws = islice(run.each(name, place), step - 1, None, step)
    if num_draws == 0:
        raise ValueError("run must have draws, and has none yet")
    used = set(spread(num_draws, num_draws if max_draws is None else max_draws).tolist())
    return (np.asarray(d, dtype=np.float64) for i, d in enumerate(draws) if i in used)


def mean_of(draws: Iterable[FloatArray]) -> FloatArray:
    """The mean over draws, nan left out; one draw at a time is in memory."""
    total, count = np.zeros(()), np.zeros(())
    for draw in draws:
        is_number = ~np.isnan(draw)
        total = total + (draw if is_number.all() else np.where(is_number, draw, 0.0))
        count = count + (1 if is_number.all() else is_number)
    return np.asarray(total / count)


def quantile(values: FloatArray, at: float | list[float], axis: int) -> FloatArray:
    """Quantiles, nan left out; as fast as `numpy.quantile` where there is no nan."""
    find = np.nanquantile if np.isnan(values).any() else np.quantile
    return np.asarray(find(values, at, axis=axis))


def independent_draws(draws: FloatArray, num_chains: int) -> FloatArray:
    """Return the effective draws of each entry, over all chains that have it.

    Chains that disagree make them few: see `pgmult.sampling.diagnostics.ess_bulk`.

    Parameters
    ----------
    draws : array, ``(num_chains * num_draws, ...)``
        Chain after chain. An entry that a chain lacks is nan in all of its draws.

    Returns
    -------
    array, ``(...)``
        nan where draws never change, or are too few to tell.
    """
    worth = np.full(draws.shape[1:], np.nan)
    if len(draws) < num_chains * MIN_DRAWS or not worth.size:
        return worth
    by_chain = draws.reshape(num_chains, -1, *worth.shape)
    is_present = ~np.isnan(by_chain).any(axis=1)
    for chains in np.unique(is_present.reshape(num_chains, -1), axis=1).T:
        entries = (chains == is_present.T).all(axis=-1).T
        if chains.any():
            worth[entries] = ess_bulk(by_chain[chains][:, :, entries])
    return worth


def over_versions(topics: FloatArray) -> FloatArray:
    """Word probabilities of topics, ``(num_topics, num_words)``; versions, if any, averaged."""
    return np.asarray(topics.reshape(len(topics), -1, topics.shape[-1]).mean(axis=1))


def most_probable(topics: FloatArray, num_words: int) -> IntArray:
    """The most probable words of topics, ``(num_topics, num_words)``.

    Of topics in several versions, ``(num_topics, versions, num_words)``, the versions' average.
    """
    return np.argsort(-over_versions(topics), axis=1, kind="stable")[:, :num_words]


def telling(topics: FloatArray, num_words: int) -> IntArray:
    """Return the words that distinguish topics, ``(num_topics, num_words)``.

    Among the most probable words (fifteen of a large vocabulary) these have the largest share of
    their probability in the topic. `topics` is as for `most_probable`.
    """
    by_word = over_versions(topics)
    pool = most_probable(topics, max(num_words, min(_POOL, by_word.shape[1] // 20)))
    shares = by_word / np.maximum(by_word.sum(axis=0), np.finfo(float).tiny)
    exclusive = np.take_along_axis(shares, pool, axis=1)
    chosen = np.argsort(-exclusive, axis=1, kind="stable")[:, :num_words]
    return np.asarray(np.take_along_axis(pool, chosen, axis=1))


def names_along(run: Posterior, axis: str, size: int) -> list[str]:
    """Labels of an axis as strings; numbers where it has none."""
    return [str(label) for label in run.coords.get(axis, range(size))]
