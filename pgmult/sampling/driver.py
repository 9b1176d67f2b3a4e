"""The driver: runs chains of any model's ``step`` in parallel, and monitors and stores draws.

Chains run in threads; the compiled parts of a sweep release the interpreter's lock, and spare
threads share the rows inside a chain. Chain c draws from a Philox generator seeded with the c-th
child of the seed. The same seed gives the same draws, bit for bit, whatever `cores` is, however the
threads take turns, whether or not the run is watched, and whether it was stored, interrupted,
killed or resumed.

The bits may differ with another release of pgmult, numpy, scipy or numba (or of the BLAS or LLVM in
them), on a processor with other vector instructions, for which other machine code is compiled, and
with ``NUMBA_DISABLE_JIT=1``, since the interpreter rounds differently from compiled code. Draws of
such runs are from the same distribution. A run that is resumed with another pgmult says so in a
warning.

::

    posterior = pgmult.sample(model, data, draws=500, random_seed=1, store="run")
    print(posterior.summary())
    posterior = pgmult.resume("run", draws=2000)
"""

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, is_dataclass, replace
from typing import Any

import numpy as np

from pgmult.compiled.rows import row_threads
from pgmult.core._version import __version__
from pgmult.core.arguments import as_choice, as_path, as_seed, as_strings, brief
from pgmult.core.machine import as_cores
from pgmult.core.sealed import reading
from pgmult.core.typing import FindsStarts, Model, Start, absent_of, data_of, traits_of
from pgmult.core.validate import as_positive_int
from pgmult.sampling.blocks import ChecksBlocks, as_block_model, is_of_rows, takes_all_rows
from pgmult.sampling.chains import (
    LOG_LIKELIHOOD,
    Callback,
    _Chains,
    _check_decodable,
    _Memory,
    _MemoryChain,
    _Run,
)
from pgmult.sampling.cluster.opening import check_cluster, opened
from pgmult.sampling.codec import contiguous, decode, encode, fingerprint
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sampling.draws import Origin
from pgmult.sampling.goals import as_goal
from pgmult.sampling.posterior import Posterior
from pgmult.sampling.store import MOST_SWEEPS, Run, RunWriter, Settings, StoredDraws

_SHARED = 2**31  # the spawn key of a start that chains share; theirs are 0, 1, 2, ...


def sample(
    model: Model[Any, Any],
    data: Any,
    *,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    cores: int | None = None,
    thin: int = 1,
    random_seed: int | None = None,
    progressbar: bool = True,
    keep: str | Sequence[str] | Mapping[str, int] | None = None,
    starts: Any = "own",
    callback: Callback | None = None,
    until: str | None = None,
    store: str | os.PathLike[str] | None = None,
    cluster: Any = None,
    shards: int | None = None,
    cut: int | None = None,
) -> Posterior:
    """Draw from the posterior of a model by Markov chain Monte Carlo.

    Parameters
    ----------
    model : Model
        Hyperparameters and the rule of one sweep: see `pgmult.core.typing.Model`.
    data : object
        What the model is conditioned on: its own data type, or anything its ``as_data`` takes.
    draws : int
        Draws to keep of each chain.
    tune : int
        Sweeps of each chain that are made first and not kept.
    chains : int
    cores : int, optional
        Threads to use; all processors this process may use if left out. ``min(chains, cores)``
        chains run at a time, and spare threads work inside a chain. Draws do not depend on it.
    thin : int
        Keep every `thin`-th sweep after tuning: ``draws * thin`` sweeps are made.
    random_seed : int, optional
        Any integer >= 0; if left out a fresh one is drawn and written in ``attrs``.
    progressbar : bool
        Show progress: a line that rewrites itself in terminals and notebooks, a line a minute on
        the error stream elsewhere. It also says once when code is compiled and, for runs of more
        than a minute, the expected time and the size of the draws.
    keep : sequence of str, or mapping from str to int, optional
        Variables to keep, of those in ``model.dims``; ``model.default_keep`` if left out. The log
        likelihood is always kept, as a sample statistic. A mapping says every how manyth draw is
        kept of each: ``{"mu": 1, "topics": 20}``; of 2 and more to seven digits. Such variables are
        not judged for convergence, and questions that take several use the draws that all have.
    starts : {"own", "shared"}, start or list of one per chain
        Where chains begin. "own", the default: every chain finds its own start, so that agreement
        between chains is evidence. "shared": one start is found, by the model's search if it has
        one, and all chains begin there, to describe one mode of a posterior with many: chains agree
        by construction, and every result is *given that mode*. A start from
        `pgmult.topics.find_start`, or a state, is shared as well; a list has one per chain.
        ``attrs["starts"]`` of the posterior says which it was, "own", "shared" or "given" (a list),
        and ``attrs["start_facts"]`` what the searches report of their starts, one mapping each; for
        topics, their `support` among the search's leaves.
    callback : callable, optional
        Called as ``callback(sweep)`` after every sweep, one call at a time: see `Sweep`.
    until : str, optional
        When to stop before `draws` are made. "400ess": once what reports tell first (or the first
        kept variable that chains can agree on) has an effective sample size of 400 over all chains,
        the smallest of 200 entries. "settled": after 200 draws a chain, once that is 100 a chain
        and chains agree in their log likelihoods; of topics, once these are level (see
        `pgmult.sampling.goals`). Both depend on draws alone. "90s", "5min", "2h": after that time,
        with one draw per chain at least. ``attrs["draws"]`` says how many the longest chain has,
        ``attrs["ended"]`` why it ended; `resume` goes on to more.
    store : path, optional
        A new or empty directory to write draws and checkpoints to as they are made: what is there
        survives a crash, `pgmult.load` reads it at any time and `pgmult.resume` goes on with it.
    cluster : "local", address, dask.distributed.Client or Executor, optional
        Where to update rows of the data instead of here, for models whose rows are independent
        given what they share: "local", `cores` processes of this machine; a Dask cluster, by its
        client or the address of its scheduler, ``"tcp://..."``; or an executor of your own
        (`pgmult.sampling.cluster.executors.Executor`). Needs `store`, a directory that all workers
        reach by the same path. Draws do not depend on it: they are those of this process. Variables
        of single rows (documents) cannot be kept, and are not by default; the states that
        `callback` sees have None in their place.
    shards : int, optional
        Pieces of work per sweep; as many as the cluster does at a time if left out.
    cut : int, optional
        Sweeps between writes of the rows to `store`, and so how many may have to be repeated when a
        worker or this process dies; 20 if left out. Neither draws nor what is kept depend on
        `shards` and `cut`.

    Returns
    -------
    Posterior
        With Ctrl-C, the draws made so far, with a warning. Chains of unequal length are cut, or
        left out, so that as many draws as possible are kept.

    Raises
    ------
    MemoryError
        If the draws to keep would not fit into memory.
    KeyboardInterrupt
        With Ctrl-C before any draw was kept.
    Exception
        Whatever a chain raises, with a note that names the chain and the sweep.

    Warns
    -----
    ConvergenceWarning
        If a kept value has a split R-hat above 1.01 or an effective sample size below 100 per
        chain.
    """
    _check_model(model)
    _check_place(cluster, shards, cut)
    goal = as_goal(until)
    store = None if store is None else as_path(store, "store")
    every = _as_every(keep, draws)
    names = _as_keep(list(keep) if isinstance(keep, Mapping) else keep, model, cluster)
    settings = Settings(draws, tune, chains, thin, as_seed(random_seed), names, every)
    if cluster is not None and store is None:
        raise ValueError(
            "store must be a directory that all workers reach where there is a cluster, got None"
        )
    data = data_of(model, data)
    _check_blocks(cluster, model, data, settings.keep)
    absent = absent_of(model, data)
    names = tuple(name for name in settings.keep if name not in absent)
    every = {name: n for name, n in settings.every.items() if name in names}
    settings = replace(settings, keep=names, every=every)
    model, data = contiguous(model), contiguous(data)
    origin = Origin.of(model, data)
    states, facts = _begin(starts, model, data, settings, cores)
    run = _Run(model, data, settings, states, origin, facts)
    with opened(cluster, shards, cut, as_cores(cores)) as place:
        made = _Chains(run, callback, cores, progressbar, place)
        if store is None:
            memory = _Memory(settings)
            made.go([_MemoryChain(memory, i) for i in range(settings.chains)], goal=goal)
            posterior = memory.posterior(made)
        else:
            inputs = {"data": data, "starts": states}
            with RunWriter.create(store, run.meta(), made.coords, inputs) as writer:
                made.go([writer.chain(i) for i in range(settings.chains)], str(store), goal)
                _settle(writer, made)
                posterior = made.load(store)  # while nobody else can write there
    _warn_of_problems(posterior)
    return posterior


def resume(
    store: str | os.PathLike[str],
    *,
    draws: int | None = None,
    model: Any = None,
    data: Any = None,
    cores: int | None = None,
    progressbar: bool = True,
    callback: Callback | None = None,
    until: str | None = None,
    cluster: Any = None,
    shards: int | None = None,
    cut: int | None = None,
) -> Posterior:
    """Continue a stored run; the draws are the same bits as those of an unbroken run.

    Parameters
    ----------
    store : path
        The run directory.
    draws : int, optional
        Draws of each chain to have in the end; as many as were planned if left out.
    model, data : optional
        Needed for models and data whose classes are not of pgmult, and checked against the run.
    cores, progressbar, callback, cluster, shards, cut : as for `sample`
        The run may have used another cluster before, or none.
    until : str, optional
        As for `sample`, checked at the same draws; seconds count from this call.

    Returns
    -------
    Posterior
        All draws, those made before included.

    Raises
    ------
    FileNotFoundError
        If there is no run in the directory.
    ValueError
        If `model` or `data` differ from those of the run, if it holds more draws already, or if a
        file is damaged.
    BlockingIOError
        If another process is writing to the run.
    """
    _check_place(cluster, shards, cut)
    goal = as_goal(until)
    with ExitStack() as stack:
        writer = stack.enter_context(RunWriter(as_path(store, "store")))
        meta = writer.meta
        if "settings" not in meta:
            raise ValueError(f"{store} holds the draws of a posterior, and no run to go on with")
        given = [value for value in (model, data) if value is not None]
        modules = {type(value).__module__ for value in given}
        if model is None or data is None:
            _check_decodable(meta, store, modules)
        model, data, states = _checked_inputs(writer, model, data, modules)
        settings = Settings(**meta["settings"])
        counters = [writer.counters(i) for i in range(settings.chains)]
        longest = max(chain.kept for chain in counters)
        if draws is not None:
            settings = replace(settings, draws=draws)
            if settings.draws < longest:
                raise ValueError(f"draws must be at least {longest}, which are kept; got {draws}")
        if meta["version"] != __version__:
            warnings.warn(
                f"{store} was begun by pgmult {meta['version']} and goes on with {__version__}:"
                " its draws may differ from those of an unbroken run",
                stacklevel=2,
            )
        _check_blocks(cluster, model, data, settings.keep)
        place = stack.enter_context(opened(cluster, shards, cut, as_cores(cores)))
        run = _Chains(_Run(model, data, settings, states), callback, cores, progressbar, place)
        for chain in run.chains:
            checkpoint = writer.checkpoint(chain.number, modules)
            if checkpoint is not None:
                with reading(writer.path / f"chain-{chain.number}" / "checkpoint.npz"):
                    chain.restore(checkpoint, counters[chain.number])
        attrs = meta["attrs"] | {"draws": settings.draws}
        if settings.draws != meta["settings"]["draws"]:  # what ended it does so no more
            attrs = {name: told for name, told in attrs.items() if name not in ("until", "ended")}
        if attrs != meta["attrs"]:
            writer.update(settings=asdict(settings), attrs=attrs)
        if goal is not None:
            _remember(writer, run)
        run.go([writer.chain(i) for i in range(settings.chains)], str(store), goal)
        _settle(writer, run)
        posterior = run.load(store)
    _warn_of_problems(posterior)
    return posterior


def _settle(writer: RunWriter, made: _Chains) -> None:
    """Write how long a run was that its goal ended."""
    kept = [writer.counters(i).kept for i in range(made.settings.chains)]
    if changes := made.settled(kept):
        attrs = writer.meta["attrs"] | changes["attrs"]
        writer.update(settings=changes["settings"], attrs=attrs)


def _remember(writer: RunWriter, made: _Chains) -> None:
    """Show what is watched the draws that were made before."""
    run = Run(writer.path)
    for chain in range(made.settings.chains):
        counters = run.counters(chain)
        if counters.kept:
            kept = {chain: counters.kept}
            held = StoredDraws(run, made.watched, kept, counters.kept, counters.kinds)
            for name in made.watched:
                made.remember(name, chain, held.each(name, 0))


_MODEL_PARTS = ("dims", "init", "step", "log_likelihood")


def _check_model(model: Any) -> None:
    if isinstance(model, type):
        raise TypeError(f"model must be a model, got the class itself: {model.__name__}(...)")
    missing = [name for name in _MODEL_PARTS if not hasattr(model, name)]
    if missing:
        raise TypeError(
            f"model must have {', '.join(_MODEL_PARTS)} (see pgmult.core.typing.Model);"
            f" {type(model).__name__} has no {', '.join(missing)}"
        )


def _check_place(cluster: Any, shards: int | None, cut: int | None) -> None:
    """Check `cluster`, `shards` and `cut`."""
    check_cluster(cluster)
    for name, value in (("shards", shards), ("cut", cut)):
        if value is not None:
            as_positive_int(value, name, 1, MOST_SWEEPS)
            if cluster is None:
                raise ValueError(f"{name} must be left out where there is no cluster, got {value}")


def _check_blocks(cluster: Any, model: Any, data: Any, keep: Sequence[str]) -> None:
    """Check that a cluster can sample the model of these data and keep the variables `keep`."""
    if cluster is None:
        return
    as_block_model(model)
    if isinstance(model, ChecksBlocks):
        model.check_blocks(data)
    if type(model).__module__ == "__main__":
        raise ValueError(
            "model must be of a class that workers can import where there is a cluster, and"
            f" {type(model).__name__} is defined in the script or notebook that runs (put it into"
            " a module)"
        )
    for name in keep:
        if is_of_rows(model, name):
            raise ValueError(
                f"keep must name no variable of single rows where there is a cluster, got {name!r},"
                f" which has a value for each {model.dims[name][0]}"
            )
        if takes_all_rows(model, name):
            raise ValueError(
                "keep must name no variable that is made of all rows at once where there is a"
                f" cluster, got {name!r}"
            )


def _as_every(keep: Any, draws: Any) -> dict[str, int]:
    """Of which variables not every draw is to be kept."""
    if not isinstance(keep, Mapping):
        return {}
    names = as_strings(list(keep), "keep")
    given = {name: as_positive_int(keep[name], "keep", 1, MOST_SWEEPS) for name in names}
    if given and max(given.values()) > as_positive_int(draws, "draws"):
        raise ValueError(
            f"keep must be at most the {draws} draws of a chain, got {max(given.values())}"
        )
    return {name: n for name, n in given.items() if n > 1}


def _as_keep(keep: Any, model: Any, cluster: Any) -> tuple[str, ...]:
    if keep is None:
        names = tuple(traits_of(model).default_keep)
        if cluster is None:
            return names
        as_block_model(model)
        return tuple(name for name in names if not is_of_rows(model, name))
    names = tuple(dict.fromkeys(as_strings([keep] if isinstance(keep, str) else keep, "keep")))
    if LOG_LIKELIHOOD in names:
        raise ValueError(
            "keep must not name log_likelihood: it is always kept, in posterior.sample_stats"
        )
    unknown = [name for name in names if name not in model.dims]
    if unknown:
        there = ", ".join(name for name in model.dims if name != LOG_LIKELIHOOD)
        raise ValueError(f"keep must name variables of the model, got {unknown[0]!r}; {there}")
    return names


def _begin(
    starts: Any, model: Any, data: Any, settings: Settings, cores: int | None
) -> tuple[Any, dict[str, Any]]:
    """States to begin with, None where chains find their own, and attributes that tell of them."""
    if isinstance(starts, str) and as_choice(starts, "starts", ("own", "shared")) == "own":
        return None, {"starts": "own"}
    if isinstance(starts, str):
        entropy = np.random.SeedSequence(settings.entropy, spawn_key=(_SHARED,))
        rng = np.random.Generator(np.random.Philox(entropy))
        with row_threads(as_cores(cores)):
            if isinstance(model, FindsStarts):
                starts = model.find_start(rng, data, settings.chains)
            else:
                starts = model.init(rng, data)
    several = isinstance(starts, list | tuple)
    each = list(starts) if several else [starts]
    if several and len(each) != settings.chains:
        raise ValueError(
            f"starts must be one, or a list of one for each of the {settings.chains} chains,"
            f" got a list of {len(each)}"
        )
    for start in each:
        if isinstance(start, type) or not is_dataclass(start):
            raise TypeError(
                f"starts must be 'own', 'shared', a start, a state or a list of these,"
                f" got {brief(start)}"
            )
    states = [start.state if isinstance(start, Start) else start for start in each]
    facts = [dict(start.facts()) for start in each if isinstance(start, Start)]
    kind = "given" if several else "shared"
    return contiguous(states if several else states[0]), {"starts": kind, "start_facts": facts}


def _warn_of_problems(posterior: Posterior) -> None:
    anew = posterior.origin is not None and traits_of(posterior.origin.model).draws_anew
    problems = "" if anew else posterior.convergence_problems()
    if problems:
        warnings.warn(problems, ConvergenceWarning, stacklevel=3)


def _checked_inputs(writer: RunWriter, model: Any, data: Any, modules: set[str]) -> Any:
    """Model, data and states to begin with; those given must be those of the run."""
    meta = writer.meta
    if model is None:
        with reading(writer.path / "meta.json"):
            model = decode(meta["model"], modules=modules)
    else:
        _check_model(model)
        model = contiguous(model)
        tree = json.loads(json.dumps(encode(model, place="model")))
        if tree != meta["model"]:
            raise ValueError(
                f"model must be that of the run, {meta['attrs']['model']}, got {model!r}"
            )
    inputs = writer.inputs(modules, ("starts",) if data is not None else ("data", "starts"))
    data = inputs["data"] if data is None else contiguous(data_of(model, data))
    if fingerprint(data) != meta["data_hash"]:
        raise ValueError(f"data must be that of the run in {writer.path}: its hash differs")
    return model, data, inputs["starts"]
