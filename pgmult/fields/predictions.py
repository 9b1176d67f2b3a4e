"""Predicted probabilities of the categories of a field, with intervals and scores.

>>> import numpy as np, pgmult
>>> from pgmult.fields.covariances import Matern
>>> counts = np.random.default_rng(0).multinomial(20, [0.5, 0.3, 0.2], size=8)
>>> data = pgmult.fields.as_field(
...     np.arange(8.0), counts, new_inputs=[8.0], categories=["a", "b", "c"]
... )
>>> posterior = pgmult.sample(
...     pgmult.fields.MultinomialGP(Matern(1.5, length_scale=5.0)), data,
...     draws=50, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> found = predict(posterior, inputs="new")
>>> found.mean.shape, found.rank_probabilities(1).shape
((1, 3), (1, 3))
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, xlogy

from pgmult.core.arguments import as_choice, as_flag, as_kind, as_mapping, as_seed
from pgmult.core.averages import Rows, average, crossed
from pgmult.core.estimands import Estimand, Labels
from pgmult.core.typing import ArrayLike, FloatArray, IntArray
from pgmult.core.validate import as_counts, as_nonnegative, as_positive_int
from pgmult.fields.data import CountField
from pgmult.fields.elsewhere import predict_at
from pgmult.fields.models.multinomial_gp import MultinomialGP, MultinomialGPState
from pgmult.fields.scores import Calibration, calibration
from pgmult.fields.tables import axis_and_places, with_table
from pgmult.links.logistic import logistic_expectations
from pgmult.sampling.posterior import Posterior

_CELLS = 2**21  # of a covariance, at a time
_NOTHING_LEFT = 0.01  # correlation below which a place says nothing of another


def predict(
    run: Posterior,
    new: object = None,
    *,
    data: CountField | None = None,
    inputs: Literal["all", "seen", "new"] = "all",
    places: Mapping[str, object] | None = None,
    names: Sequence[str] | None = None,
    max_draws: int | None = 1000,
    probability: float = 0.9,
    random_seed: int | None = 0,
) -> "FieldPredictions":
    """Probabilities of the categories with intervals, at any inputs.

    Parameters
    ----------
    run : Posterior
        Of a field, that kept ``psi``, or ``pi`` and ``pi_new``; for inputs that were not in the
        fit, of a `MultinomialGP` that kept ``psi``, ``beta`` and ``hyperparameters``.
    new : table or array, ``(num_new, num_inputs)``, optional
        Table of inputs that were not in the fit; each draw then costs as much as a sweep. It needs
        the columns of the table that the data come from, with places named as there.
    data : CountField, optional
        The data of the run, needed only if it was saved without them.
    inputs : {"all", "seen", "new"}
        Without `new`: the inputs of the counts, those that were new to the fit, or both.
    places : mapping, optional
        Coordinates of places that the data do not have, as in `field_of`.
    names : sequence of str, ``(num_new,)``, optional
        Labels of `new`.
    max_draws : int, optional
        Draws to use at most, evenly spread over the chains; None for all.
    probability : float
        Of the intervals.
    random_seed : int, optional

    Raises
    ------
    ValueError
        If the run did not keep these variables, the data are not its own, or a place is unknown.
    """
    data = own_data(run, data)
    as_choice(inputs, "inputs", ("all", "seen", "new"))
    means = None
    if new is not None:
        wider = with_table(data, new, places, names)
        pi, means = _at(run, data, wider, max_draws, random_seed)
        labels = row_labels(wider, ["new"])
    else:
        if inputs == "new" and not data.num_new:
            raise ValueError("data must have new inputs (pass them to as_field)")
        parts = ["seen"] + ["new"] * (data.num_new > 0) if inputs == "all" else [inputs]
        pi = np.concatenate([_kept(run, data, which, max_draws) for which in parts], axis=1)
        labels = row_labels(data, parts)
    if data.categories is not None:
        labels["category"] = data.categories
    caption = f"Probabilities of the categories, {len(pi):,} draws."
    about: dict[str, Any] = {"labels": labels, "caption": caption, "probability": probability}
    return FieldPredictions(pi, means=means, **about)


def _at(
    run: Posterior, data: CountField, wider: CountField, max_draws: int | None, seed: int | None
) -> tuple[FloatArray, FloatArray]:
    """Draws of the probabilities at the new inputs of `wider`, and means of each row alone."""
    model = run.model
    if not isinstance(model, MultinomialGP):
        kind, hint = type(model).__name__, "leave new= out: it predicts at its data's new inputs"
        raise TypeError(f"run must be of a MultinomialGP, got one of {kind} ({hint})")
    needed = ("psi", "beta", "hyperparameters")
    _require(run, needed, " to predict at new inputs")
    _warn_of_far(run, data.inputs[data.totals > 0], wider.new_inputs, data.input_labels)
    rng, link = np.random.default_rng(as_seed(seed)), run.link
    states = map(MultinomialGPState, *(_drawn(run, name, max_draws) for name in needed))
    draws = [predict_at(rng, model, state, data, wider.new_inputs) for state in states]
    means = [_mean_probs(link.order, draw.mean, draw.var) for draw in draws]
    return np.array([link.probs(draw.values) for draw in draws]), np.mean(means, axis=0)


def _mean_probs(order: Sequence[int], mean: FloatArray, var: FloatArray) -> FloatArray:
    """Means of the probabilities where sticks are independent normals, a row each."""
    share, last = logistic_expectations(mean, var)[1], np.ones((len(mean), 1))
    remaining = np.concatenate([last, np.cumprod(1.0 - share, axis=1)], axis=1)
    probs = np.empty_like(remaining)
    probs[:, list(order)] = np.concatenate([share, last], axis=1) * remaining
    return probs


def _warn_of_far(run: Posterior, seen: FloatArray, new: FloatArray, names: Sequence[str]) -> None:
    """Warn of new inputs where the field remembers nothing of those that have counts."""
    if not len(seen):
        return
    prior = run.model.covariance
    logs = np.log(run.stack("hyperparameters")).mean(axis=0)[:, : prior.num_params]
    forgotten = np.ones(len(new), dtype=np.bool_)
    for covariance in map(prior.with_log_params, logs):
        for chunk in np.array_split(np.arange(len(new)), -(-len(new) * len(seen) // _CELLS) or 1):
            left = covariance.cov(new[chunk], seen).max(axis=1) / covariance.diagonal(new[chunk])
            forgotten[chunk] &= left < _NOTHING_LEFT
    if forgotten.any():
        row = int(forgotten.argmax())
        where = ", ".join(f"{name} {x:g}" for name, x in zip(names, new[row], strict=True))
        ends = zip(names, seen.min(axis=0), seen.max(axis=0), strict=True)
        ranges = ", ".join(f"{name} from {low:g} to {high:g}" for name, low, high in ends)
        words = (
            f"{forgotten.sum():,} of {len(new):,} new inputs are so far from the data that the mean"
            f" of all is predicted there, row {row} at {where} for one: the data are at {ranges}"
        )
        warnings.warn(f"{words} (are the units the same?)", stacklevel=3)


def _kept(run: Posterior, data: CountField, which: str, max_draws: int | None) -> FloatArray:
    """Draws of the probabilities at the inputs that the chains knew, as they were kept."""
    name = "pi" if which == "seen" else "pi_new"
    if "psi" in run and (which == "seen" or name not in run):
        psi = _drawn(run, "psi", max_draws)
        at = data.row_psi(psi) if which == "seen" else psi[:, data.new_sites]
        return np.asarray(run.link.probs(at))
    _require(run, [name])
    return _drawn(run, name, max_draws)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FieldPredictions(Estimand):
    """Draws of the categories' probabilities at some inputs, and summaries of them.

    Attributes
    ----------
    draws : array, ``(num_draws, num_rows, num_categories)``
        Of the probabilities, all chains one after the other.
    labels : mapping
        Of "row": the columns of the inputs as the caller's table has them. Of "category".
    means : array, ``(num_rows, num_categories)``, or None
        Averages of E[pi | omega], where sticks are independent normals: of a row they are the same
        whatever rows are asked for with it, and vary less than those of the draws.
    """

    axes: tuple[str, ...] = ("row", "category")
    labels: Mapping[str, Labels] = field(default_factory=dict)
    means: FloatArray | None = field(default=None, kw_only=True)

    @property
    def mean(self) -> FloatArray:
        """Mean probabilities, ``(num_rows, num_categories)``; rows sum to 1."""
        return np.asarray(self.draws.mean(axis=0)) if self.means is None else self.means

    def rows(self, chosen: NDArray[np.bool_] | IntArray) -> "FieldPredictions":
        """Predictions of some rows, chosen by a mask or row numbers."""
        rows = {name: np.asarray(x)[chosen] for name, x in self.columns_of("row").items()}
        labels = {**self.labels, "row": rows}
        means = None if self.means is None else self.means[chosen]
        return replace(self, draws=self.draws[:, chosen], labels=labels, means=means)

    def rank_probabilities(self, top: int) -> FloatArray:
        """P[category is among the `top` most probable], ``(num_rows, num_categories)``."""
        size = self.draws.shape[-1]
        if as_positive_int(top, "top") >= size:
            raise ValueError(f"top must be below the number of categories, {size}, got {top}")
        first = np.argpartition(-self.draws, top - 1, axis=-1)[..., :top]
        inside = np.zeros(self.draws.shape)
        np.put_along_axis(inside, first, 1.0, axis=-1)
        return np.asarray(inside.mean(axis=0))

    def counts(self, totals: ArrayLike, random_seed: int | None = None) -> IntArray:
        """New counts, one table per draw, ``(num_draws, num_rows, num_categories)``.

        Parameters
        ----------
        totals : integer or integer array, ``(num_rows,)``
        random_seed : int, optional
        """
        num_rows = self.draws.shape[1]
        sizes = as_counts(totals, "totals")
        if sizes.shape not in ((), (num_rows,)):
            raise ValueError(f"totals must be one number or {num_rows}, got shape {sizes.shape}")
        shares = self.draws / self.draws.sum(axis=-1, keepdims=True)
        rng = np.random.default_rng(as_seed(random_seed))
        return rng.multinomial(np.broadcast_to(sizes, shares.shape[:-1]), shares)

    def log_predictive_density(self, counts: ArrayLike, *, coefficients: bool = True) -> FloatArray:
        """Log probability of new counts of each row, averaged over draws, ``(num_rows,)``.

        A row of zeros has 0. Rows are scored one by one, not jointly.

        Parameters
        ----------
        counts : integer array, ``(num_rows, num_categories)``
        coefficients : bool
            Whether to include the multinomial coefficients.
        """
        table = as_counts(counts)
        if table.shape != self.draws.shape[1:]:
            raise ValueError(f"counts must have shape {self.draws.shape[1:]}, got {table.shape}")
        log_p = xlogy(table, self.draws).sum(axis=-1)
        density = logsumexp(log_p, axis=0) - np.log(len(log_p))
        if as_flag(coefficients, "coefficients"):
            density += gammaln(table.sum(axis=-1) + 1.0) - gammaln(table + 1.0).sum(axis=-1)
        return np.asarray(density)

    def calibration(
        self, counts: ArrayLike, *, least: float = 1.0, random_seed: int | None = None
    ) -> Calibration:
        """Check these predictions against held-out counts; if they fail, say what to try.

        Parameters
        ----------
        counts, least, random_seed
            As in `pgmult.fields.calibration`.
        """
        return calibration(self.draws, counts, least=least, random_seed=random_seed)


def effects(
    run: Posterior,
    column: str,
    values: Sequence[object] | None = None,
    *,
    at: Mapping[str, object] | None = None,
    by: str | None = None,
    weight: Literal["counts", "equal"] | Mapping[str, float] = "counts",
    probability: float = 0.9,
    max_draws: int = 1000,
) -> Estimand:
    """Average the probabilities of the categories at each value of an input.

    Averages are over the observed rows that have the value, and places weigh as much as they have
    counts, at all times alike; `weight` says otherwise. ``found.difference(column, a, b)`` compares
    two values. If other inputs vary along with this one, so do the rows that are averaged: fix them
    with `at`, or separate them with `by`.

    Parameters
    ----------
    run : Posterior
        Of a field, that kept ``psi`` or ``pi``.
    column : str
        Name of an input.
    values : sequence, optional
        Values of the column to average at; all that were observed by default.
    at : mapping from column to a value, or to several, optional
        Only rows that have these.
    by : str, optional
        Second input, for each of whose values averages are taken.
    weight : {"counts", "equal"} or mapping, optional
        Weights of places: their counts, all alike, or the population of each place by its name.
    probability : float
        Of the intervals.
    max_draws : int

    Returns
    -------
    Estimand
        Axes `column`, then `by` if given, and category.

    Raises
    ------
    ValueError
        If there is no such input or value, or no row has it.

    Examples
    --------
    >>> import pgmult
    >>> from pgmult.fields.covariances import Matern
    >>> table = {"year": [1990, 1990, 2000, 2000], "name": ["Ada", "Ben"] * 2, "n": [30, 9, 10, 30]}
    >>> data = pgmult.read(table).field("year", "name", count="n")
    >>> model = pgmult.fields.MultinomialGP(Matern(1.5, 10.0))
    >>> run = pgmult.sample(
    ...     model, data, keep="psi", draws=20, tune=10, chains=1, random_seed=0, progressbar=False
    ... )
    >>> found = effects(run, "year")
    >>> found.axes, found.difference("year", 2000, 1990).mean.shape
    (('year', 'category'), (2,))
    """
    observed = rows(run, max_draws=max_draws)
    groups = crossed(observed.table, column, values, by)
    weights, words = _weights(own_data(run, None), observed.table, weight)
    return average(
        over=replace(observed, weights=weights), by=groups, where=at, probability=probability,
        caption=f"Mean probabilities of the categories by {' and '.join(groups)}{words}.",
    )  # fmt: skip


def _weights(
    data: CountField, table: Mapping[str, object], weight: str | Mapping[str, float]
) -> tuple[FloatArray, str]:
    """Weights of the rows, and in words."""
    _, _, places, place = axis_and_places(data, table, data.num_rows)
    word = as_choice(weight, "weight", ("counts", "equal")) if isinstance(weight, str) else ""
    if len(places) == 1 or word == "equal":
        return np.ones(data.num_rows), ", rows weighted equally" if len(places) > 1 else ""
    if word:
        counts = np.bincount(place, data.totals, minlength=len(places))
        return np.maximum(counts, 1.0)[place], ", places weighted by their counts"
    sizes = as_mapping(weight, "weight")
    if missing := [name for name in places if name not in sizes]:
        raise ValueError(f"weight must have a population of every place, got none of {missing[0]}")
    population = as_nonnegative([sizes[name] for name in places], "weight")
    return population[place], ", places weighted by the populations given"


def rows(run: Posterior, new: Any = None, *, max_draws: int | None = 1000) -> Rows:
    """Return the rows of the data, or of a table of inputs, for `pgmult.core.averages.average`.

    Where inputs are set to other values, the field is drawn there.
    """
    first = predict(run, new, inputs="seen", max_draws=max_draws)
    table = dict(first.columns_of("row"))

    def probabilities(inputs: Mapping[str, object]) -> FloatArray:
        return (first if inputs is table else predict(run, inputs, max_draws=max_draws)).draws

    return Rows(table, probabilities, {"category": first.columns_of("category")["category"]})


def row_labels(data: CountField, parts: Sequence[str]) -> dict[str, Any]:
    """The inputs of some rows as the caller's table has them, under the names of its columns."""
    every = {
        "seen": (data.columns, data.inputs, data.names),
        "new": (data.new_columns, data.new_inputs, data.new_names),
    }
    tables, inputs, labels = zip(*(every[which] for which in parts), strict=True)
    if all(table is not None for table in tables):
        return {"row": {n: np.concatenate([t[n] for t in tables]) for n in tables[0]}}
    columns = dict(zip(data.input_labels, np.concatenate(inputs).T, strict=True))
    if all(names is not None for names in labels):
        columns = {"row": np.concatenate(labels), **columns}
    return {"row": columns}


def _drawn(run: Posterior, name: str, max_draws: int | None) -> FloatArray:
    """Draws of a variable, all chains one after the other, evenly thinned."""
    total = run.num_chains * run.num_draws
    if max_draws is None or total <= as_positive_int(max_draws, "max_draws"):
        return run.stack(name)
    chosen = set(np.linspace(0, total - 1, max_draws).astype(np.int64).tolist())
    every = (d for chain in range(run.num_chains) for d in run.each(name, chain))
    return np.array([draw for i, draw in enumerate(every) if i in chosen])


def own_data(run: Posterior, data: CountField | None) -> CountField:
    """The data of a run, or those given if they are the same."""
    as_kind(run, "run", Posterior)
    if data is None:
        return as_kind(run.data, "the data of the run", CountField)
    if not run.is_of(data):
        hint = "new inputs, labels and the order of sticks belong to them"
        raise ValueError(f"data must be those of the run, got other ones: {data!r} ({hint})")
    return data


def _require(run: Posterior, needed: Sequence[str], purpose: str = "") -> None:
    """Refuse a run that did not keep what it takes for a purpose."""
    if missing := [name for name in needed if name not in run]:
        names = ", ".join(missing)
        raise ValueError(f"the posterior must have kept {names}{purpose} (pass it in keep=)")
