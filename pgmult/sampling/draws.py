"""Draws with named axes.

`Draws` maps each kept variable to a plain array ``(chain, draw, ...)``, in memory or in a run
directory; `dims` names its axes and `coords` labels them. `pgmult.sampling.origin` has the model
and the data that they are of.

Users work with `pgmult.sampling.posterior.Posterior`: draws with summaries, diagnostics, files and
methods of the model.
"""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, Self

import numpy as np

from pgmult.core.arguments import as_choice, as_kind, as_mapping, as_strings
from pgmult.core.markup import joined, tag
from pgmult.core.tabled import Column, Table
from pgmult.core.tables import Lazily
from pgmult.core.typing import AnyArray, ArrayLike, FloatArray, IntArray, data_of
from pgmult.core.validate import as_positive_int
from pgmult.sampling.codec import contiguous, fingerprint
from pgmult.sampling.origin import Origin
from pgmult.sampling.store import StoredDraws, as_every, flat_entries


class DrawsInMemory(dict[str, AnyArray]):
    """Variables in memory, to be asked as `pgmult.sampling.store.StoredDraws` are."""

    def __init__(self, arrays: Mapping[str, AnyArray], every: Mapping[str, int]):
        super().__init__(arrays)
        self.every = dict(every)

    def shape_of(self, name: str) -> tuple[int, ...]:
        """``(chain, draw, ...)``."""
        return np.shape(self[name])

    def entries(self, name: str, chosen: IntArray) -> AnyArray:
        """Some entries of a variable, by their flat numbers, ``(chain, draw, len(chosen))``."""
        return flat_entries(np.asarray(self[name]), 2)[:, :, chosen]

    def each(self, name: str, chain: int) -> Iterator[AnyArray]:
        """The draws of one chain in order."""
        return iter(self[name][chain])


class Draws(Lazily[AnyArray]):
    """Draws of the kept variables: arguments and attributes are those of `Posterior`."""

    def __init__(
        self, draws: Mapping[str, AnyArray], *, dims: Mapping[str, Sequence[str]] | None = None,
        coords: Mapping[str, ArrayLike] | None = None, origin: Origin | None = None,
        sample_stats: Mapping[str, AnyArray] | None = None,
        attrs: Mapping[str, Any] | None = None, label_dims: frozenset[str] = frozenset(),
        every: Mapping[str, int] | None = None,
    ):  # fmt: skip
        self._draws: DrawsInMemory | StoredDraws
        if isinstance(draws, StoredDraws):
            self._draws = draws
        else:
            self._draws = DrawsInMemory(as_mapping(draws, "draws"), as_every(every, "every"))
        super().__init__(self._draws, self._draws.__getitem__)
        self.every = self._draws.every  # of which variables not every draw was kept, and which was
        self.sample_stats = dict(as_mapping(sample_stats, "sample_stats"))
        if not self._draws and not self.sample_stats:
            raise ValueError("draws must hold at least one variable")
        self.attrs = dict(as_mapping(attrs, "attrs"))
        labelled = list(label_dims) if isinstance(label_dims, Set) else label_dims
        self.label_dims = frozenset(as_strings(labelled, "label_dims"))
        self.origin = None if origin is None else as_kind(origin, "origin", Origin)
        self.coords = {axis: _labels(x) for axis, x in as_mapping(coords, "coords").items()}
        self.dims: dict[str, tuple[str, ...]] = {}
        axes = as_mapping(dims, "dims")
        for name in self._draws:
            shape = self._draws.shape_of(name)
            numbered = [f"{name}_dim_{i}" for i in range(len(shape) - 2)]
            named = as_strings(axes[name], "dims") if name in axes else numbered
            if len(shape) != 2 + len(named):
                expected = ", ".join(["chain", "draw", *named])
                raise ValueError(f"draws of {name} must have shape ({expected}), got {shape}")
            axis = f"every_{self.every[name]}" if self.every.get(name, 1) > 1 else "draw"
            self.dims[name] = ("chain", axis, *named)
            self._label_axes(name, self.dims[name], shape)
        for name, values in self.sample_stats.items():
            if np.ndim(values) != 2:
                got = f"{np.shape(values)} of {name}"
                raise ValueError(f"sample_stats must have shape (chain, draw), got {got}")
            self._label_axes(name, ("chain", "draw"), np.shape(values))

    def _label_axes(self, name: str, axes: tuple[str, ...], shape: tuple[int, ...]) -> None:
        for axis, size in zip(axes, shape, strict=True):
            labels = self.coords.setdefault(axis, np.arange(size))
            if labels.shape != (size,):
                wanted = f"{size} labels of {axis!r} to go with {name}"
                raise ValueError(f"coords must have {wanted}, got shape {labels.shape}")

    def __getitem__(self, name: str) -> AnyArray:
        try:
            return super().__getitem__(name)
        except KeyError:
            hint = " (it is in posterior.sample_stats)" if name in self.sample_stats else ""
            raise KeyError(f"no variable {name!r}; kept: {', '.join(self)}{hint}") from None

    @property
    def num_chains(self) -> int:
        """Number of chains."""
        return len(self.coords["chain"])

    @property
    def num_draws(self) -> int:
        """Draws kept in each chain."""
        return len(self.coords["draw"])

    def _sizes(self) -> dict[str, str]:
        """The axes of each variable and their lengths, in words."""
        return {
            name: ", ".join(f"{axis}: {len(self.coords[axis])}" for axis in axes[2:])
            for name, axes in self.dims.items()
        }

    def _repr_html_(self) -> str:
        sizes = self._sizes()
        axes = [size or "-" for size in sizes.values()]
        columns = [Column("variable", list(sizes), "variable"), Column("axes", axes, "axes")]
        title = tag("p", f"Posterior: {self.num_chains} chains x {self.num_draws} draws")
        return joined(title, Table("", columns).html(), tag("p", "numbers: .summary()"))

    def __repr__(self) -> str:
        width = max((len(name) for name in self), default=0)
        lines = [f"<Posterior: {self.num_chains} chains x {self.num_draws} draws"]
        planned = self.attrs.get("draws", self.num_draws)
        if self.num_draws < planned:
            lines[0] += f" (of {planned} planned)"
        lines += [f"  {name:<{width}}  ({sizes})" for name, sizes in self._sizes().items()]
        return "\n".join(lines) + ">"

    def together(self, *names: str) -> dict[str, AnyArray]:
        """Draws ``(chain, draw, ...)`` of some variables, at which all of them were kept.

        The variables themselves, unless only every so manyth draw was kept of some.
        """
        steps = self.steps(*names)
        return {name: self[name][:, step - 1 :: step] for name, step in steps.items()}

    def steps(self, *names: str) -> dict[str, int]:
        """Every how manyth of the draws that are here of each was kept of all these variables."""
        apart = {name: self.every.get(as_choice(name, "name", self), 1) for name in names}
        all_of_them = math.lcm(*apart.values())
        return {name: all_of_them // n for name, n in apart.items()}

    def whole(self) -> Self:
        """The draws of which every variable was kept."""
        if not self.every:
            return self
        apart = math.lcm(*self.every.values())
        of_draws = {"draw", *(axes[1] for axes in self.dims.values())}
        stats = self.sample_stats.items()
        return type(self)(
            self.together(*self), dims={name: axes for name, (_, _, *axes) in self.dims.items()},
            coords={axis: x for axis, x in self.coords.items() if axis not in of_draws},
            sample_stats={name: values[:, apart - 1 :: apart] for name, values in stats},
            attrs=self.attrs, label_dims=self.label_dims, origin=self.origin,
        )  # fmt: skip

    def stack(self, name: str) -> AnyArray:
        """One variable's draws, its chains one after the other, ``(chain * draw, ...)``."""
        array = self[as_choice(name, "name", self)]
        return array.reshape(array.shape[0] * array.shape[1], *array.shape[2:])

    def each(self, name: str, chain: int = 0) -> Iterator[AnyArray]:
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
        return self._draws.each(name, chain)

    def size_of(self, name: str) -> int:
        """How many draws of a chain were kept of a variable."""
        return self.num_draws // self.every.get(name, 1)

    def thinned(self, name: str, most: int) -> AnyArray:
        """Return at most so many draws of a variable, evenly spread, as many of each chain.

        Returns
        -------
        array, ``(chain, draw, ...)``
        """
        size = max(1, as_positive_int(most, "most") // self.num_chains)
        length = self.size_of(as_choice(name, "name", self))
        if size >= length:
            return np.asarray(self[name])
        wanted = set(np.linspace(0, length - 1, size).astype(np.int64).tolist())
        chains = (enumerate(self.each(name, c)) for c in range(self.num_chains))
        return np.array([[draw for i, draw in chain if i in wanted] for chain in chains])

    def entries(self, name: str, limit: int | None) -> tuple[list[str], FloatArray, str]:
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
        source = self._draws if name in self._draws else DrawsInMemory(self.sample_stats, {})
        axes = self.dims.get(name, ("chain", "draw"))[2:]
        shape = source.shape_of(name)[2:]
        size = math.prod(shape)
        if size == 0:
            return [], np.empty((self.num_chains, self.size_of(name), 0)), f"{name}: no entries"
        chosen, note = np.arange(size), ""
        if limit is not None and size > limit:
            chosen = np.linspace(0, size - 1, limit).astype(np.int64)
            note = f"{name}: {limit:,} of {size:,} entries, evenly spread"
        labels = [name] * len(chosen)
        if axes:
            places = np.unravel_index(chosen, shape)
            words = [self.coords[axis][place] for axis, place in zip(axes, places, strict=True)]
            labels = [f"{name}[{', '.join(map(str, word))}]" for word in zip(*words, strict=True)]
        return labels, source.entries(name, chosen).astype(np.float64), note

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
            raise ValueError(f"posterior must have a link, {type(self.model).__name__} has none")
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
        find = self._known().find_inputs
        with suppress(FileNotFoundError):  # draws that were saved without their data
            if find is not None:
                return find()["data"]
        why = "these draws were saved without them (those of pgmult.sample know theirs)"
        raise ValueError(f"data must be given, for {why}")

    def is_of(self, data: object) -> bool:
        """Are these the data that the draws were conditioned on, to the last bit?

        Parameters
        ----------
        data : object
            The model's own data type, or anything its ``as_data`` takes.
        """
        original = self._known()
        return original.data_hash == fingerprint(contiguous(data_of(original.model, data)))

    def _known(self) -> Origin:
        if self.origin is None:
            raise ValueError(
                "posterior must know its model: take it from pgmult.sample, from pgmult.load (with"
                " model=, if its class is yours), or give Posterior(origin=Origin.of(model, data))"
            )
        return self.origin

    def is_labelled(self, name: str) -> bool:
        """Whether a variable has an axis whose labels need not agree between chains."""
        return not self.label_dims.isdisjoint(self.dims.get(name, ()))


def _labels(labels: ArrayLike) -> AnyArray:
    try:
        return np.asarray(labels)
    except ValueError as error:
        raise ValueError(f"coords must have a row of labels for each axis: {error}") from None
