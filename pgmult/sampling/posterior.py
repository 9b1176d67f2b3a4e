"""Draws from a posterior, with named axes.

A `Posterior` maps each kept variable to a plain array ``(chain, draw, ...)``; `dims` names its
axes and `coords` labels them. What `pgmult.sample` returns, `pgmult.load` reads and
`Posterior.save` writes are one and the same thing.

>>> import numpy as np
>>> draws = {"mu": np.random.default_rng(0).normal(size=(4, 500, 2))}
>>> posterior = Posterior(draws, dims={"mu": ("side",)}, coords={"side": ["left", "right"]})
>>> posterior
<Posterior: 4 chains x 500 draws
  mu  (side: 2)>
>>> posterior["mu"].shape, posterior.dims["mu"]
((4, 500, 2), ('chain', 'draw', 'side'))
>>> print(posterior.summary())
                mean      sd      5%    95%  mcse_mean  ess_bulk  ess_tail  r_hat
mu[left]    -0.02417   1.002  -1.674  1.656    0.02421      1712      1820  1.000
mu[right]  -0.006033  0.9946    -1.6  1.636    0.02211      2022      2013  1.001
"""

import json
import math
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pgmult.core._version import __version__
from pgmult.core.arguments import as_choice, as_kind, as_mapping, as_path, as_seed, as_strings
from pgmult.core.family import family_of
from pgmult.core.notebook import columns_html
from pgmult.core.sealed import reading
from pgmult.core.typing import basis_dims_of, data_of, label_parts_of, label_rows_of
from pgmult.core.validate import as_positive_int
from pgmult.sampling import diagnostics
from pgmult.sampling.codec import contiguous, encode, fingerprint
from pgmult.sampling.labels import LabelMatches, match_rows
from pgmult.sampling.origin import Origin
from pgmult.sampling.store import Run, RunWriter, StoredDraws, flat_entries, rectangle

__all__ = ["Posterior", "Summary", "load"]

R_HAT_LIMIT = 1.01
ESS_PER_CHAIN_LIMIT = 100
CHECKED_ENTRIES = 500  # of one variable, by the check after sampling
MATCHED_DRAWS = 100  # of a chain, whose mean rows tell labels apart
SUMMARY_ENTRIES = 1000  # of one variable, in a summary unless told otherwise
PRINTED_ROWS = 20  # of one variable, when a summary is printed


class Posterior(Mapping[str, NDArray[Any]]):
    """Draws of the kept variables.

    Parameters
    ----------
    draws : mapping from name to array, ``(chain, draw, ...)``
    dims : mapping from name to the names of the axes after chain and draw
        Variables left out get ``<name>_dim_0`` and so on.
    coords : mapping from an axis's name to its labels, optional
        Axes left out are numbered from 0.
    sample_stats : mapping from name to array, ``(chain, draw)``, optional
    attrs : mapping, optional
        Whatever else describes the run, in JSON's types.
    label_dims : collection of str, optional
        Axes whose labels need not agree between chains: variables that carry one are diagnosed
        within each chain only.
    origin : Origin, optional
        The model and data that the draws are of: `pgmult.sampling.Origin.of`.

    Attributes
    ----------
    dims : dict from name to all axes, ``("chain", "draw", ...)``
    coords : dict from an axis's name to an array of labels
    sample_stats, attrs, label_dims : as above
    """

    def __init__(
        self,
        draws: Mapping[str, NDArray[Any]],
        *,
        dims: Mapping[str, Sequence[str]] | None = None,
        coords: Mapping[str, ArrayLike] | None = None,
        sample_stats: Mapping[str, NDArray[Any]] | None = None,
        attrs: Mapping[str, Any] | None = None,
        label_dims: frozenset[str] = frozenset(),
        origin: Origin | None = None,
    ):
        self._draws: Mapping[str, NDArray[Any]] = as_mapping(draws, "draws")
        self.sample_stats = dict(as_mapping(sample_stats, "sample_stats"))
        if not self._draws and not self.sample_stats:
            raise ValueError("draws must hold at least one variable")
        self.attrs = dict(as_mapping(attrs, "attrs"))
        labelled = list(label_dims) if isinstance(label_dims, Set) else label_dims
        self.label_dims = frozenset(as_strings(labelled, "label_dims"))
        self._origin = None if origin is None else as_kind(origin, "origin", Origin)
        self.coords = {axis: _labels(x) for axis, x in as_mapping(coords, "coords").items()}
        self.dims: dict[str, tuple[str, ...]] = {}
        axes = as_mapping(dims, "dims")
        for name in self._draws:
            self._name_axes(name, as_strings(axes[name], "dims") if name in axes else None)
        for name, values in self.sample_stats.items():
            if np.ndim(values) != 2:
                raise ValueError(
                    f"sample_stats must have shape (chain, draw), {name} has {np.shape(values)}"
                )
            self._label_axes(name, ("chain", "draw"), np.shape(values))

    def _name_axes(self, name: str, axes: Sequence[str] | None) -> None:
        shape = _shape_of(self._draws, name)
        if axes is None:
            axes = [f"{name}_dim_{i}" for i in range(len(shape) - 2)]
        if len(shape) != 2 + len(axes):
            expected = ", ".join(["chain", "draw", *axes])
            raise ValueError(f"draws of {name} must have shape ({expected}), got {shape}")
        self.dims[name] = ("chain", "draw", *axes)
        self._label_axes(name, self.dims[name], shape)

    def _label_axes(self, name: str, axes: tuple[str, ...], shape: tuple[int, ...]) -> None:
        for axis, size in zip(axes, shape, strict=True):
            labels = self.coords.setdefault(axis, np.arange(size))
            if labels.shape != (size,):
                raise ValueError(
                    f"{name} has {size} entries along {axis!r}, but that axis has labels of shape"
                    f" {labels.shape}"
                )

    def __getitem__(self, name: str) -> NDArray[Any]:
        try:
            return self._draws[name]
        except KeyError:
            hint = " (it is in posterior.sample_stats)" if name in self.sample_stats else ""
            raise KeyError(f"no variable {name!r}; kept: {', '.join(self)}{hint}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._draws

    def __iter__(self) -> Iterator[str]:
        return iter(self._draws)

    def __len__(self) -> int:
        return len(self._draws)

    @property
    def model(self) -> Any:
        """The model that the draws are of.

        Raises
        ------
        ValueError
            If the draws do not know it.
        """
        return self._known().model

    @property
    def link(self) -> Any:
        """The link of `model`, in the order that the data gave it.

        Raises
        ------
        ValueError
            If the draws do not know it, or the model has none.
        """
        link = self._known().link
        if link is None:
            raise ValueError(
                f"posterior must have a link, and {type(self.model).__name__} has none"
            )
        return link

    @property
    def data(self) -> Any:
        """The data that the draws were conditioned on, in the model's own type.

        At hand in the process that sampled, and in the directory of a run (read anew each time).

        Raises
        ------
        ValueError
            If the draws do not know where they are.
        """
        find = self._known().find_data
        try:
            data = None if find is None else find()
        except FileNotFoundError:  # draws that were saved without their data
            data = None
        if data is None:
            raise ValueError(
                "data must be given, for these draws were saved without them (those of"
                " pgmult.sample know theirs, with and without store=)"
            )
        return data

    def is_of(self, data: Any) -> bool:
        """Are these the data that the draws were conditioned on, to the last bit?

        Parameters
        ----------
        data : object
            The model's own data type, or anything its ``as_data`` takes.
        """
        known = self._known()
        return known.data_hash == fingerprint(contiguous(data_of(known.model, data)))

    def _known(self) -> Origin:
        if self._origin is None:
            raise ValueError(
                "posterior must know its model, and these draws came without one: take them from"
                " pgmult.sample, from pgmult.load (with model=, where its class is your own), or"
                " give Posterior(..., origin=Origin.of(model, data))"
            )
        return self._origin

    if TYPE_CHECKING:  # words of the families: a run offers those that it can answer
        predict: Callable[..., Any]
        effects: Callable[..., Any]
        check: Callable[..., Any]
        compare: Callable[..., Any]
        report: Callable[..., Any]
        export: Callable[..., Any]
        forecast: Callable[..., Any]
        impute: Callable[..., Any]
        topics: Callable[..., Any]
        content: Callable[..., Any]
        stability: Callable[..., Any]
        correlations: Callable[..., Any]
        documents: Callable[..., Any]
        quotes: Callable[..., Any]
        permutation_test: Callable[..., Any]
        variance_shares: Callable[..., Any]
        shares_over_time: Callable[..., Any]
    else:

        def __getattr__(self, name: str) -> Any:
            origin = self.__dict__.get("_origin")  # there is none yet in a copy that is being made
            family = None if origin is None else family_of(origin.model)
            if family is None or name not in family.verbs:
                known = "" if family is None else f" (of {family.name}: {', '.join(family.verbs)})"
                raise AttributeError(
                    f"{type(self).__name__!r} object has no attribute {name!r}{known}"
                )
            return family.method(self, name)

    def __dir__(self) -> list[str]:
        family = None if self._origin is None else family_of(self._origin.model)
        return sorted({*super().__dir__(), *([] if family is None else family.answers(self))})

    @property
    def num_chains(self) -> int:
        """Number of chains."""
        return len(self.coords["chain"])

    @property
    def num_draws(self) -> int:
        """Draws kept in each chain."""
        return len(self.coords["draw"])

    def _repr_html_(self) -> str:
        axes = [axes[2:] for axes in self.dims.values()]
        columns = {
            "variable": list(self),
            "axes": [", ".join(f"{a}: {len(self.coords[a])}" for a in own) or "-" for own in axes],
        }
        title = f"Posterior: {self.num_chains} chains x {self.num_draws} draws"
        return columns_html(columns, title, ["numbers: .summary()"], most=None)

    def __repr__(self) -> str:
        width = max((len(name) for name in self), default=0)
        lines = [f"<Posterior: {self.num_chains} chains x {self.num_draws} draws"]
        planned = self.attrs.get("draws", self.num_draws)
        if self.num_draws < planned:
            lines[0] += f" (of {planned} planned)"
        for name, (_, _, *axes) in self.dims.items():
            sizes = ", ".join(f"{axis}: {len(self.coords[axis])}" for axis in axes)
            lines.append(f"  {name:<{width}}  ({sizes})")
        return "\n".join(lines) + ">"

    def stack(self, name: str) -> NDArray[Any]:
        """One variable's draws, its chains one after the other, ``(chain * draw, ...)``."""
        array = self[as_choice(name, "name", self)]
        return array.reshape(self.num_chains * self.num_draws, *array.shape[2:])

    def each(self, name: str, chain: int = 0) -> Iterator[NDArray[Any]]:
        """One variable's draws in one chain, one after the other.

        Of a run on disk, one file of draws is in memory at a time.

        Parameters
        ----------
        name : str
        chain : int
            From 0: its place among the chains that are here, ``posterior.coords["chain"]``.
        """
        as_choice(name, "name", self)
        chain = as_positive_int(chain, "chain", 0, self.num_chains - 1)
        if isinstance(self._draws, StoredDraws):
            return self._draws.each(name, chain)
        return iter(self[name][chain])

    def summary(
        self,
        var_names: str | Sequence[str] | None = None,
        *,
        max_entries: int | None = SUMMARY_ENTRIES,
    ) -> "Summary":
        """Mean, sd, 5 % and 95 % quantiles and diagnostics of every entry.

        Parameters
        ----------
        var_names : str or sequence of str, optional
            Variables or sample statistics; all variables and the log likelihood if left out.
        max_entries : int or None
            Of a variable with more entries, so many are summarised, evenly spread; None for all.

        Returns
        -------
        Summary
            One row an entry. Variables along `label_dims` have one row for every chain, since
            label 0 of one chain need not be label 0 of another.
        """
        if max_entries is not None:
            max_entries = as_positive_int(max_entries, "max_entries")
        names = [*self, *self.sample_stats]
        if var_names is not None:
            given = as_strings(
                [var_names] if isinstance(var_names, str) else var_names, "var_names"
            )
            names = [as_choice(name, "var_names", names) for name in given]
        rows: list[str] = []
        owners: list[str] = []
        pieces: dict[str, list[NDArray[np.float64]]] = {column: [] for column in _COLUMNS}
        notes: list[str] = []
        for name in names:
            labels, draws, note = self.entries(name, max_entries)
            notes += [note] if note else []
            if not labels:
                continue
            within = self.num_chains > 1 and self._is_labelled(name)
            for chain in range(self.num_chains) if within else [None]:
                if chain is None:
                    rows += labels
                    columns = _columns(draws)
                else:
                    rows += [f"{label} chain {self.coords['chain'][chain]}" for label in labels]
                    columns = _columns(draws[chain : chain + 1])
                owners += [name] * len(labels)
                for column, values in columns.items():
                    pieces[column].append(values)
        if self.num_draws < diagnostics.MIN_DRAWS:
            notes.append(f"{self.num_draws} draws a chain are too few for diagnostics")
        table = {
            column: np.concatenate(arrays) if arrays else np.empty(0)
            for column, arrays in pieces.items()
        }
        return Summary(tuple(rows), tuple(owners), table, tuple(notes))

    def _is_labelled(self, name: str) -> bool:
        return not self.label_dims.isdisjoint(self.dims.get(name, ()))

    def entries(self, name: str, limit: int | None) -> tuple[list[str], NDArray[np.float64], str]:
        """Labels and draws ``(chain, draw, entries)`` of at most `limit` entries, and a note.

        Parameters
        ----------
        name : str
            Of a variable or a sample statistic.
        limit : int or None
            Of more entries, so many are taken, evenly spread; None for all.
        """
        as_choice(name, "name", [*self, *self.sample_stats])
        if limit is not None:
            limit = as_positive_int(limit, "limit")
        source = self._draws if name in self._draws else self.sample_stats
        axes = self.dims.get(name, ("chain", "draw"))[2:]
        shape = _shape_of(source, name)[2:]
        size = math.prod(shape)
        if size == 0:
            return [], np.empty((self.num_chains, self.num_draws, 0)), f"{name}: no entries"
        chosen, note = np.arange(size), ""
        if limit is not None and size > limit:
            chosen = np.linspace(0, size - 1, limit).astype(np.int64)
            note = f"{name}: {limit:,} of {size:,} entries, evenly spread"
        labels = [name] * len(chosen)
        if axes:
            places = np.unravel_index(chosen, shape)
            words = [self.coords[axis][place] for axis, place in zip(axes, places, strict=True)]
            labels = [f"{name}[{', '.join(map(str, word))}]" for word in zip(*words, strict=True)]
        return labels, _entries_of(source, name, chosen), note

    def convergence_problems(self) -> str:
        """What the diagnostics complain of, in words; empty if nothing.

        Every kept value (of large variables 500, evenly spread) is expected to have a split
        R-hat of at most 1.01 and bulk and tail effective sample sizes of at least 100 a chain.
        Where labels are arbitrary and their rows were kept (topics by their words), chains are
        matched label by label: each value is then judged within its chains, and between chains it
        counts which labels all of them found. Coordinates in an arbitrary basis are not judged,
        where something else was kept.
        """
        if self.num_draws < diagnostics.MIN_DRAWS:
            return (
                f"{self.num_draws} draws a chain are too few to say whether the chains converged"
                f" (at least {diagnostics.MIN_DRAWS})"
            )
        matched = self.label_matches()
        high: list[tuple[float, str]] = []
        few: list[tuple[float, str]] = []
        undefined: list[str] = []
        notes: list[str] = []
        checked = 0
        for name in [*self._judged(), *self.sample_stats]:
            labels, draws, note = self.entries(name, CHECKED_ENTRIES)
            if not labels:
                continue
            notes += [note] if note else []
            checked += len(labels)
            undefined += [labels[i] for i in np.flatnonzero(np.isnan(draws).any(axis=(0, 1)))]
            r_hat, ess = _worst(draws, separate=bool(matched) or self._is_labelled(name))
            high += [(-r, label) for r, label in zip(r_hat, labels, strict=True) if r > R_HAT_LIMIT]
            few += [
                (e, label) for e, label in zip(ess, labels, strict=True) if e < ESS_PER_CHAIN_LIMIT
            ]
        problems = []
        if undefined:
            problems.append(f"{len(undefined)} are nan in some draw ({', '.join(undefined[:4])})")
        if high:
            worst = ", ".join(f"{label} {-r:.3g}" for r, label in sorted(high)[:4])
            problems.append(f"{len(high)} have a split R-hat above {R_HAT_LIMIT} (worst: {worst})")
        if few:
            worst = ", ".join(f"{label} {e:.3g}" for e, label in sorted(few)[:4])
            problems.append(
                f"{len(few)} have a bulk or tail effective sample size below"
                f" {ESS_PER_CHAIN_LIMIT} a chain (worst: {worst})"
            )
        sentences = [
            f"{matches.headline(f'{axis}s')}: the others are of modes that chains do not cross, and"
            " more draws do not join them."
            for axis, matches in matched.items()
            if not matches.by_all.all()
        ]
        if problems:
            checks = f" (checked of {'; '.join(notes)})" if notes else ""
            where = ", each within its chains," if matched else ""
            sentences.append(
                f"of {checked} kept values{where} {'; '.join(problems)}{checks}."
                " Sample longer (draws=, tune=) or look at posterior.summary()"
            )
        return " ".join(sentences)

    def _judged(self) -> list[str]:
        """Variables that chains can be expected to agree on."""
        basis = frozenset() if self._origin is None else basis_dims_of(self.model)
        judged = [name for name in self if basis.isdisjoint(self.dims.get(name, ()))]
        return judged or list(self)

    def label_matches(self) -> dict[str, LabelMatches]:
        """For each axis of arbitrary labels, how those of all chains go with those of the first.

        Of models with ``label_rows`` (see `pgmult.core.typing.Model`), where the variable that
        tells the labels apart was kept, and of two chains or more; by 100 draws of each.
        """
        if self._origin is None or self.num_chains < 2:
            return {}
        matches = {}
        parts = label_parts_of(self.model)
        for axis, rows in label_rows_of(self.model).items():
            in_parts = parts.get(axis) in self
            name = parts[axis] if in_parts else rows
            if name in self:
                means = np.stack([self._mean(name, c) for c in range(self.num_chains)])
                if np.isfinite(means).all():
                    means = means.swapaxes(1, 2) if in_parts else means
                    matches[axis] = match_rows(means, worst=in_parts)
        return matches

    def _mean(self, name: str, chain: int) -> NDArray[np.float64]:
        """Mean of at most 100 draws of a chain, evenly spread."""
        count = min(MATCHED_DRAWS, self.num_draws)
        used = set(np.linspace(0, self.num_draws - 1, count).astype(int).tolist())
        total: Any = 0.0
        for i, draw in enumerate(self.each(name, chain)):
            if i in used:
                total = total + np.asarray(draw, dtype=np.float64)
        return np.asarray(total / count)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the draws to a new or empty directory, for `pgmult.load`.

        Raises
        ------
        FileExistsError
            If something is there already.
        """
        bad = [name for name in [*self, *self.sample_stats] if not name.isidentifier()]
        if bad:
            raise ValueError(f"a variable's name must be an identifier to be saved, got {bad[0]!r}")
        meta = {
            "version": __version__,
            "chains": self.num_chains,
            "dims": {name: axes for name, (_, _, *axes) in self.dims.items()},
            "sample_stats": list(self.sample_stats),
            "label_dims": sorted(self.label_dims),
            "attrs": self.attrs,
            **({} if self._origin is None else self._origin.encoded()),
        }
        arrays = {**self, **self.sample_stats}
        with RunWriter.create(as_path(path), meta, self.coords, None) as run:
            for i in range(self.num_chains):
                chain = run.chain(i)
                chain.begin({n: np.empty(a.shape[2:], a.dtype) for n, a in arrays.items()})
                for draw in range(self.num_draws):
                    chain.append({name: array[i, draw] for name, array in arrays.items()})
                    if chain.due():
                        chain.commit({"sweep": draw + 1, "seconds": self._seconds(i)})
                chain.commit({"sweep": self.num_draws, "seconds": self._seconds(i)})

    def _seconds(self, chain: int) -> float:
        return float(self.attrs["seconds"][chain]) if "seconds" in self.attrs else 0.0

    def to_arviz(self, data: Any = None, *, random_seed: Any = 0) -> Any:
        """The draws for ArviZ: InferenceData of ArviZ 0.x, an xarray DataTree of ArviZ 1.x.

        Parameters
        ----------
        data : optional
            What the posterior was sampled from, of a model whose data are multinomial rows (fields,
            sequences, topics, regressions): with it come the groups ``log_likelihood`` (of each
            row, given what the draw keeps: a step's states, a document's proportions; with hidden
            Markov models given the steps before it),
            ``observed_data``, ``posterior_predictive`` and ``constant_data``, for ``loo``,
            ``compare`` and ``plot_ppc``. Rows without counts are left out of the first of these.
            The variable is ``counts`` in each of them.
        random_seed : int, optional
            Of the posterior predictive counts.

        Raises
        ------
        ImportError
            If ArviZ is not installed (``pip install pgmult[arviz]``), or cannot be imported.
        TypeError, ValueError
            If the model's data are no such rows, `data` are others than the posterior's, or it did
            not keep what tells their probabilities.
        MemoryError
            If the log likelihoods do not fit into memory.

        Warns
        -----
        UserWarning
            If the posterior predictive counts do not fit, and are left out.
        """
        from pgmult.sampling._arviz import to_arviz

        return to_arviz(self, data, as_seed(random_seed))


def load(
    path: str | os.PathLike[str],
    *,
    model: Any = None,
    damaged: Literal["raise", "drop"] = "raise",
) -> Posterior:
    """Read the draws in a run directory, finished or not, while it is written to or after.

    A variable is read when it is first used, and every byte of it is checked then.

    Parameters
    ----------
    path : path
        What was given as ``store=`` to `pgmult.sample`, or to `Posterior.save`.
    model : Model, optional
        That of the draws, where its class is not of pgmult: without it, such draws do not know
        their model.
    damaged : {"raise", "drop"}
        What to do about damaged files: name the first that is met, or check all of them now and
        leave out, with a warning, the draws from the first damaged one on.

    Returns
    -------
    Posterior
        Of chains of unequal length, the largest rectangle of draws; a warning names the chains
        left out, and says so if there are no draws yet.

    Raises
    ------
    FileNotFoundError
        If `path` is no run directory.
    ValueError
        If a file is damaged, or `model` is not that of the draws.
    """
    as_choice(damaged, "damaged", ("raise", "drop"))
    run = Run(as_path(path))
    origin = _origin(run, model)
    numbers = range(run.num_chains)
    read = run.undamaged if damaged == "drop" else run.counters
    counters = [read(chain) for chain in numbers]
    kept = [chain.kept for chain in counters]
    if damaged == "drop":
        warnings.warn(f"{path}: read {kept} undamaged draws of the chains", stacklevel=2)
    chains, num_draws = rectangle(kept)
    if num_draws == 0:
        warnings.warn(f"{path}: there are no draws yet", stacklevel=2)
    elif len(chains) < len(kept):
        left_out = ", ".join(f"{i} ({kept[i]} draws)" for i in numbers if i not in chains)
        warnings.warn(
            f"{path}: chains left out of {num_draws} draws a chain: {left_out}", stacklevel=2
        )
    dims, coords = run.meta["dims"], run.coords()
    kinds: dict[str, Any] = {  # where no chain has begun, all that the labels tell
        name: (tuple(len(coords.get(axis, ())) for axis in dims.get(name, ())), np.dtype(float))
        for name in run.names
    }
    kinds |= next((counters[i].kinds for i in chains if counters[i].kinds), {})
    readable = {chain: kept[chain] for chain in chains}
    stats = StoredDraws(run, run.meta["sample_stats"], readable, num_draws, kinds)
    attrs = run.meta["attrs"] | {"seconds": [counters[i].seconds for i in chains]}
    all_labels = coords.pop("chain", np.arange(run.num_chains))
    coords.pop("draw", None)
    return Posterior(
        StoredDraws(run, dims, readable, num_draws, kinds),
        dims=dims,
        coords={"chain": all_labels[chains], **coords},
        sample_stats=dict(stats),
        attrs=attrs,
        label_dims=frozenset(run.meta["label_dims"]),
        origin=origin,
    )


def _origin(run: Run, model: Any) -> Origin | None:
    """What a run directory says of its draws' origin; None where that cannot be decoded."""
    if "model" not in run.meta:
        return None
    if model is not None:
        tree = json.loads(json.dumps(encode(model, place="model")))
        if tree != run.meta["model"]:
            raise ValueError(
                f"model must be that of the draws in {run.path}, {run.meta['attrs'].get('model')},"
                f" got {model!r}"
            )
    elif not run.meta["model"]["$class"].startswith("pgmult."):
        return None
    modules = set() if model is None else {type(model).__module__}
    with reading(run.path / "meta.json"):
        return Origin.decoded(run.meta, modules, partial(_stored_data, run, modules))


def _stored_data(run: Run, modules: Collection[str]) -> Any:
    return run.inputs(modules)["data"]


def _labels(labels: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(labels)
    except ValueError as error:
        raise ValueError(f"coords must have a row of labels for each axis: {error}") from None


def _shape_of(draws: Mapping[str, NDArray[Any]], name: str) -> tuple[int, ...]:
    """Shape of a variable, without reading it when it is on disk."""
    return draws.shape_of(name) if isinstance(draws, StoredDraws) else np.shape(draws[name])


def _entries_of(
    draws: Mapping[str, NDArray[Any]], name: str, chosen: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Some entries of a variable, ``(chain, draw, len(chosen))``, by their flat numbers."""
    if isinstance(draws, StoredDraws):
        return draws.entries(name, chosen).astype(np.float64)
    return flat_entries(np.asarray(draws[name]), 2)[:, :, chosen].astype(np.float64)


def _worst(
    draws: NDArray[np.float64], *, separate: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """R-hat, and the smaller effective sample size a chain, of each entry; of chains apart?"""
    groups = [draws[i : i + 1] for i in range(len(draws))] if separate else [draws]
    r_hat = np.stack([diagnostics.r_hat(group) for group in groups])
    ess = np.stack(
        [
            np.minimum(diagnostics.ess_bulk(group), diagnostics.ess_tail(group)) / len(group)
            for group in groups
        ]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a constant's R-hat is nan
        return np.nanmax(r_hat, axis=0), np.nanmin(ess, axis=0)


_COLUMNS = ("mean", "sd", "5%", "95%", "mcse_mean", "ess_bulk", "ess_tail", "r_hat")


def _columns(draws: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    nothing = np.full(draws.shape[2], np.nan)
    columns = dict.fromkeys(_COLUMNS, nothing)
    if draws.shape[1] > 0:
        low, high = np.quantile(draws, [0.05, 0.95], axis=(0, 1))
        columns |= {"mean": draws.mean(axis=(0, 1)), "5%": low, "95%": high}
    if draws.shape[0] * draws.shape[1] > 1:
        columns["sd"] = draws.std(axis=(0, 1), ddof=1)
    if draws.shape[1] >= diagnostics.MIN_DRAWS:
        columns |= {
            "mcse_mean": diagnostics.mcse_mean(draws),
            "ess_bulk": diagnostics.ess_bulk(draws),
            "ess_tail": diagnostics.ess_tail(draws),
            "r_hat": diagnostics.r_hat(draws),
        }
    return columns


@dataclass(frozen=True, eq=False)
class Summary:
    """A table of statistics, one row an entry; printing it shows at most 20 rows a variable.

    Attributes
    ----------
    rows : tuple of str
        ``name[labels]`` of each row.
    variables : tuple of str
        The variable each row belongs to.
    columns : dict from str to array, ``(rows,)``
        mean, sd, 5%, 95%, mcse_mean, ess_bulk, ess_tail, r_hat; nan where undefined.
    notes : tuple of str
        What was left out, and why.
    """

    rows: tuple[str, ...]
    variables: tuple[str, ...]
    columns: dict[str, NDArray[np.float64]]
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> NDArray[np.float64]:
        return self.columns[column]

    def _shown(self) -> tuple[list[int], list[str]]:
        """Which rows are printed, and a note on those that are not."""
        shown: list[int] = []
        counts: dict[str, int] = {}
        for i, name in enumerate(self.variables):
            counts[name] = counts.get(name, 0) + 1
            if counts[name] <= PRINTED_ROWS:
                shown.append(i)
        hidden = [
            f"{name}: {count - PRINTED_ROWS:,} more rows in .columns and .to_pandas()"
            for name, count in counts.items()
            if count > PRINTED_ROWS
        ]
        return shown, [*self.notes, *hidden]

    def _repr_html_(self) -> str:
        shown, notes = self._shown()
        cells = {
            name: [_cell(name, values[i]) for i in shown] for name, values in self.columns.items()
        }
        return columns_html({"": [self.rows[i] for i in shown], **cells}, notes=notes, most=None)

    def __str__(self) -> str:
        shown, notes = self._shown()
        cells = {
            name: [name, *(_cell(name, values[i]) for i in shown)]
            for name, values in self.columns.items()
        }
        widths = {name: max(map(len, column)) for name, column in cells.items()}
        labels = ["", *(self.rows[i] for i in shown)]
        left = max(map(len, labels))
        lines = [
            "  ".join([label.ljust(left), *(cells[name][j].rjust(widths[name]) for name in cells)])
            for j, label in enumerate(labels)
        ]
        return "\n".join([*lines, *(f"({note})" for note in notes)])

    __repr__ = __str__

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame, indexed by `rows`."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas needs pandas: pip install pandas") from error
        return pandas.DataFrame(self.columns, index=pandas.Index(self.rows, name="entry"))


def _cell(column: str, value: float) -> str:
    if np.isnan(value):
        return "-"
    if column.startswith("ess"):
        return f"{value:.0f}"
    return f"{value:.3f}" if column == "r_hat" else f"{value:.4g}"
