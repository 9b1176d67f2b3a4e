"""What a run is to draw: its model, data, settings and starts, checked before anything is done."""

import platform
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.rows import row_threads
from pgmult.core._version import __version__
from pgmult.core.arguments import as_choice, as_strings, brief
from pgmult.core.typing import FindsStarts, Model, Start, absent_of, coords_of, data_of, traits_of
from pgmult.core.validate import as_positive_int
from pgmult.sampling.blocks import as_block_model, is_of_rows
from pgmult.sampling.cluster.executors import check_cluster
from pgmult.sampling.codec import contiguous, fingerprint
from pgmult.sampling.origin import Origin, stored_model
from pgmult.sampling.store import LOG_LIKELIHOOD, MOST_SWEEPS, RunReader, Settings

_SHARED = 2**31  # the spawn key of a start that chains share; theirs are 0, 1, 2, ...


@dataclass(frozen=True)
class Plan:
    """What is sampled: all that draws and their descriptions depend on.

    Attributes
    ----------
    model, data : as the model has them
    settings : Settings
    starts : state, list of states, or None
        Where chains begin: None where they find their own.
    facts : mapping
        What the posterior's attributes say of where chains began.
    """

    model: Model[Any, Any]
    data: object
    settings: Settings
    starts: object
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, model: Model[Any, Any], data: object, settings: Settings, starts: object, threads: int,
        cluster: object,
    ) -> Self:  # fmt: skip
        """The plan of a new run: `starts` and `cluster` are those of `pgmult.sample`.

        Starts that chains share are found with so many threads.
        """
        data = data_of(model, data)
        check_blocks(cluster, model, settings.keep)
        absent = absent_of(model, data)
        names = tuple(name for name in settings.keep if name not in absent)
        every = {name: n for name, n in settings.every.items() if name in names}
        settings = replace(settings, keep=names, every=every)
        model, data = contiguous(model), contiguous(data)
        return cls(model, data, settings, *_begin(starts, model, data, settings, threads))

    @classmethod
    def stored(cls, run: RunReader, model: Any, data: object) -> Self:
        """Plan of a run directory; a model and data that are given must be those of the run.

        Parameters
        ----------
        run : Run
        model, data : optional
        """
        meta = run.meta
        if "settings" not in meta:
            raise ValueError(f"{run.path} holds the draws of a posterior, and no run to go on with")
        if meta["version"] != __version__:
            warnings.warn(
                f"{run.path} was begun by pgmult {meta['version']} and goes on with {__version__}:"
                " its draws may differ from those of an unbroken run",
                stacklevel=3,
            )
        kinds = {"model": (model, meta["model"]["$class"]), "data": (data, meta["data_type"])}
        for what, (value, kind) in kinds.items():
            module = kind.partition(":")[0]
            if value is None and module.split(".")[0] != "pgmult" and module not in run.modules:
                wanted = "pass model= and data="
                raise ValueError(f"{what} of {run.path} is a {kind}, not of pgmult: {wanted}")
        if model is not None:
            check_model(model)
            model = contiguous(model)
        model = stored_model(run, model)
        inputs = run.inputs(*(("starts",) if data is not None else ("data", "starts")))
        data = inputs["data"] if data is None else contiguous(data_of(model, data))
        if fingerprint(data) != meta["data_hash"]:
            raise ValueError(f"data must be that of the run in {run.path}: its hash differs")
        return cls(model, data, Settings(**meta["settings"]), inputs["starts"])

    @cached_property
    def coords(self) -> Mapping[str, NDArray[Any]]:
        """Labels along the axes of variables."""
        return coords_of(self.model, self.data)

    @cached_property
    def origin(self) -> Origin:
        """What draws know of where they come from."""
        return Origin.of(self.model, self.data)

    def attrs(self) -> dict[str, Any]:
        """What the posterior's attributes say."""
        settings = self.settings
        return {
            "model": repr(self.model), "random_seed": settings.entropy, "draws": settings.draws,
            "tune": settings.tune, "thin": settings.thin, "pgmult_version": __version__,
            "numpy_version": np.__version__, "python_version": platform.python_version(),
            **self.facts,
        }  # fmt: skip

    def meta(self) -> dict[str, Any]:
        """What is written in the run directory's ``meta.json``."""
        settings, kind = self.settings, type(self.data)
        return {
            "version": __version__, "chains": settings.chains,
            "dims": {name: list(self.model.dims[name]) for name in settings.keep},
            "sample_stats": [LOG_LIKELIHOOD],
            "label_dims": sorted(traits_of(self.model).label_dims), "settings": asdict(settings),
            "every": dict(settings.every), **self.origin.encoded(),
            "data_type": f"{kind.__module__}:{kind.__qualname__}", "attrs": self.attrs(),
        }  # fmt: skip


_MODEL_PARTS = ("dims", "init", "step", "log_likelihood")


def check_model(model: object) -> None:
    """Refuse what is no model."""
    if isinstance(model, type):
        raise TypeError(f"model must be a model, got the class itself: {model.__name__}(...)")
    if missing := [name for name in _MODEL_PARTS if not hasattr(model, name)]:
        raise TypeError(
            f"model must have {', '.join(_MODEL_PARTS)} (see pgmult.core.typing.Model);"
            f" {type(model).__name__} has no {', '.join(missing)}"
        )


def check_place(cluster: object, shards: int | None, cut: int | None) -> None:
    """Check `cluster`, `shards` and `cut`."""
    check_cluster(cluster)
    for name, value in (("shards", shards), ("cut", cut)):
        if value is not None:
            as_positive_int(value, name, 1, MOST_SWEEPS)
            if cluster is None:
                raise ValueError(f"{name} must be left out where there is no cluster, got {value}")


def check_blocks(cluster: object, model: Any, keep: Sequence[str]) -> None:
    """Check that a cluster can sample the model and keep the variables `keep`."""
    if cluster is None:
        return
    as_block_model(model)
    if type(model).__module__ == "__main__":
        raise ValueError(
            "model must be of a class that workers of a cluster can import, got"
            f" {type(model).__name__} of this script or notebook (put it into a module)"
        )
    for name in keep:
        of_rows = is_of_rows(model, name)
        if of_rows or name in model.whole_names:
            kind = f"with a value for each {model.dims[name][0]}" if of_rows else "made of all rows"
            raise ValueError(f"keep must name no variable {kind} with a cluster, got {name!r}")


def as_keep(
    keep: object, draws: object, model: Any, cluster: object
) -> tuple[tuple[str, ...], dict[str, int]]:
    """The variables to keep, and every how manyth draw of those of which not all are."""
    if keep is None:
        names = tuple(traits_of(model).default_keep)
        if cluster is None:
            return names, {}
        as_block_model(model)
        return tuple(name for name in names if not is_of_rows(model, name)), {}
    listed = [keep] if isinstance(keep, str) else list(keep) if isinstance(keep, Mapping) else keep
    names = tuple(dict.fromkeys(as_strings(listed, "keep")))
    every = {}
    if isinstance(keep, Mapping):
        every = {name: as_positive_int(keep[name], "keep", 1, MOST_SWEEPS) for name in names}
        if (most := max(every.values(), default=1)) > as_positive_int(draws, "draws"):
            raise ValueError(f"keep must be at most the {draws} draws of a chain, got {most}")
    if LOG_LIKELIHOOD in names:
        raise ValueError("keep must not name log_likelihood, which is always in sample_stats")
    for name in names:
        if name not in model.dims:
            known = ", ".join(of for of in model.dims if of != LOG_LIKELIHOOD)
            raise ValueError(f"keep must name variables of the model, got {name!r}; {known}")
    return names, {name: n for name, n in every.items() if n > 1}


def _begin(
    starts: Any, model: Model[Any, Any], data: object, settings: Settings, threads: int
) -> tuple[Any, dict[str, object]]:
    """States to begin with, None where chains find their own, and attributes that describe them."""
    if isinstance(starts, str):
        if as_choice(starts, "starts", ("independent", "shared")) == "independent":
            return None, {"starts": starts}
        entropy = np.random.SeedSequence(settings.entropy, spawn_key=(_SHARED,))
        rng = np.random.Generator(np.random.Philox(entropy))
        with row_threads(threads):
            if isinstance(model, FindsStarts):
                starts = model.find_start(rng, data, settings.chains)
            else:
                starts = model.init(rng, data)
    several = isinstance(starts, list | tuple)
    given = list(starts) if several else [starts]
    if several and len(given) != settings.chains:
        chains = f"each of the {settings.chains} chains"
        raise ValueError(f"starts must be one, or a list of one for {chains}, got {len(given)}")
    for start in given:
        if isinstance(start, type) or not is_dataclass(start):
            wanted = "'independent', 'shared', a start, a state or a list of these"
            raise TypeError(f"starts must be {wanted}, got {brief(start)}")
    states = [start.state if isinstance(start, Start) else start for start in given]
    facts = [dict(start.facts()) for start in given if isinstance(start, Start)]
    kind = "given" if several else "shared"
    return contiguous(states if several else states[0]), {"starts": kind, "start_facts": facts}
