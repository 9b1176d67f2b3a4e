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

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Any

from pgmult.core.arguments import as_path, as_seed
from pgmult.core.machine import as_cores
from pgmult.core.typing import Model, traits_of
from pgmult.sampling.chains import Callback, Chains
from pgmult.sampling.cluster.executors import opened
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sampling.goals import as_goal
from pgmult.sampling.memory import Memory
from pgmult.sampling.plan import Plan, as_keep, check_blocks, check_model, check_place
from pgmult.sampling.posterior import Posterior, load
from pgmult.sampling.store import RunWriter, Settings, StoredDraws


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
    starts: Any = "independent",
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
        the error stream elsewhere. It also says once when code is compiled.
    keep : sequence of str, or mapping from str to int, optional
        Variables to keep, of those in ``model.dims``; ``model.default_keep`` if left out. The log
        likelihood is always kept, as a sample statistic. A mapping says every how manyth draw is
        kept of each: ``{"mu": 1, "topics": 20}``; of 2 and more to seven digits. Such variables are
        not judged for convergence, and questions that take several use the draws that all have.
    starts : {"independent", "shared"}, start or list of one per chain
        Where chains begin. "independent", the default: every chain finds its own start, so that
        agreement between chains is evidence. "shared": one start is found, by the model's search if
        it has one, and all chains begin there, to describe one mode of a posterior with many:
        chains agree by construction, and every result is *given that mode*. A start from
        `pgmult.topics.find_start`, or a state, is shared as well; a list has one per chain.
        ``attrs["starts"]`` of the posterior says which it was, "independent", "shared" or "given"
        (a list), and ``attrs["start_facts"]`` what the searches report of their starts, one mapping
        each; for topics, their `support` among the search's leaves.
    callback : callable, optional
        Called as ``callback(sweep)`` after every sweep, one call at a time: see `Sweep`.
    until : str, optional
        When to stop before `draws` are made. "400ess": once the main results (or the first kept
        variable that chains can agree on) have an effective sample size of 400 over all chains,
        the smallest of 200 entries. "settled": after 200 draws a chain, once that is 100 a chain
        (fields: after 100, once psi is worth 50 a chain and hyperparameters 25)
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
    check_model(model)
    check_place(cluster, shards, cut)
    goal = as_goal(until)
    store = None if store is None else as_path(store, "store")
    if cluster is not None and store is None:
        raise ValueError("store must be a directory that all workers of a cluster reach, got None")
    names, every = as_keep(keep, draws, model, cluster)
    settings = Settings(draws, tune, chains, thin, as_seed(random_seed), names, every)
    threads = as_cores(cores)
    plan = Plan.of(model, data, settings, starts, threads, cluster)
    with opened(cluster, shards, cut, threads) as place:
        run = Chains(plan, goal, callback, cores, progressbar, place)
        if store is None:
            memory = Memory(plan.settings)
            outcome = run.go(memory)
            seconds = [chain.seconds for chain in run.chains]
            posterior = memory.posterior(plan, run.kept, seconds, outcome)
        else:
            inputs = {"data": plan.data, "starts": plan.starts}
            with RunWriter.create(store, plan.meta(), plan.coords, inputs) as writer:
                posterior = _stored(run, plan, writer)
    _warn_of_problems(posterior)
    return posterior


def resume(
    store: str | os.PathLike[str],
    *,
    draws: int | None = None,
    model: object = None,
    data: object = None,
    cores: int | None = None,
    progressbar: bool = True,
    callback: Callback | None = None,
    until: str | None = None,
    cluster: object = None,
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
    check_place(cluster, shards, cut)
    goal = as_goal(until)
    with ExitStack() as stack:
        writer = stack.enter_context(RunWriter(as_path(store, "store"), model, data))
        meta = writer.meta
        plan = Plan.stored(writer, model, data)
        settings = plan.settings if draws is None else replace(plan.settings, draws=draws)
        counters = [writer.counters(i) for i in range(settings.chains)]
        longest = max(chain.kept for chain in counters)
        if settings.draws < longest:
            raise ValueError(f"draws must be at least {longest}, which are kept; got {draws}")
        plan = replace(plan, settings=settings)
        check_blocks(cluster, plan.model, settings.keep)
        place = stack.enter_context(opened(cluster, shards, cut, as_cores(cores)))
        run = Chains(plan, goal, callback, cores, progressbar, place)
        for chain, counted in zip(run.chains, counters, strict=True):
            chain.restore(writer, counted)
        attrs = meta["attrs"] | {"draws": settings.draws}
        if settings.draws != meta["settings"]["draws"]:  # what ended it does so no more
            attrs = {name: x for name, x in attrs.items() if name not in ("until", "ended")}
        if attrs != meta["attrs"]:
            writer.update(settings=asdict(settings), attrs=attrs)
        if goal is not None:
            _remember(writer, run)
        posterior = _stored(run, plan, writer)
    _warn_of_problems(posterior)
    return posterior


def _stored(run: Chains, plan: Plan, writer: RunWriter) -> Posterior:
    """Run the chains, and read their draws while nobody else can write there."""
    outcome = run.go(writer, str(writer.path))
    if outcome:  # how long a run was that its goal ended
        settings = replace(plan.settings, draws=outcome["draws"])
        writer.update(settings=asdict(settings), attrs=writer.meta["attrs"] | outcome)
    with warnings.catch_warnings():
        if run.interrupted:  # which has been said
            warnings.simplefilter("ignore")
        return load(writer.path, model=plan.model)


def _remember(writer: RunWriter, run: Chains) -> None:
    """Show what is watched the draws that were made before."""
    for chain in run.chains:
        counters = writer.counters(chain.number)
        if counters.kept:
            counts, names = {chain.number: counters.kept}, run.watch.names
            held = StoredDraws(writer, names, counts, counters.kept, counters.kinds)
            for draws in zip(*(held.each(name, 0) for name in names), strict=True):
                run.watch.add(chain.number, dict(zip(names, draws, strict=True)))


def _warn_of_problems(posterior: Posterior) -> None:
    anew = posterior.origin is not None and traits_of(posterior.origin.model).draws_anew
    problems = "" if anew else posterior.convergence_problems()
    if problems:
        warnings.warn(problems, ConvergenceWarning, stacklevel=3)
