"""What a sweep costs beside the work on rows, on processes or a Dask cluster of this machine.

    python tests/benchmarks/beyond_one_machine.py overhead --documents 100000 --topics 100
    python tests/benchmarks/beyond_one_machine.py overhead --where dask --workers 1 --threads 2
    python tests/benchmarks/beyond_one_machine.py overhead --model paths --words 20 --topics 3

``overhead`` samples CorrelatedTopics from the state that a corpus was simulated from, on workers,
with its kept draws and a cut, and makes the same sweeps here. It tells, in CPU seconds a sweep
(other work on the machine changes wall clock), what one process needs; what the workers need for
the rows, and for all else (reading, telling, replaying); what the driver needs; and what the same
processes need in the same time when there is nothing to do. Places take turns, and the spread over
repetitions is told. With ``--model paths`` it is MultinomialLDS: documents are sequences of so many
steps, words the symbols and topics the dimensions of the state. ``quiet`` is Dask without its
profiler and with seldom looks at itself.
"""

import argparse
import os
import tempfile
import time
import warnings
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from simulated import Truth

import pgmult
from pgmult.core.blas import one_blas_thread
from pgmult.sampling.cluster.dask import DaskCluster
from pgmult.sampling.cluster.processes import Processes

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Watched:
    """An executor that keeps what its tasks took."""

    def __init__(self, executor, pids):
        self.executor, self.pids, self.done = executor, pids, []

    @property
    def num_slots(self):
        return self.executor.num_slots

    def run(self, task, home):
        done = self.executor.run(task, home)
        self.done.append((replace(task, parts=()), done._replace(total=None), done.seconds))
        return done

    def close(self):
        self.executor.close()

    def cpu(self):
        """CPU seconds of the workers, from their beginning."""
        fields = [
            Path(f"/proc/{pid}/stat").read_text().split(") ")[1].split() for pid in self.pids()
        ]
        return sum(int(f[11]) + int(f[12]) for f in fields) / TICK

    def faults(self):
        """Minor page faults of the workers."""
        stats = [
            Path(f"/proc/{pid}/stat").read_text().split(") ")[1].split() for pid in self.pids()
        ]
        return sum(int(f[7]) for f in stats)

    def memory(self):
        """Resident MiB of each worker, mapped files aside."""
        return [resident(pid) for pid in self.pids()]


def resident(pid):
    size = [int(x) for x in Path(f"/proc/{pid}/statm").read_text().split()]
    return (size[1] - size[2]) * PAGE / 2**20


QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "2s",
}


@contextmanager
def place(options, where):
    if where == "local":
        workers = Processes(options.workers)
        try:
            yield Watched(workers, lambda: workers.pids), lambda: 0
        finally:
            workers.close()
        return
    import dask
    import distributed

    log = {"distributed.admin.low-level-log-length": 0}  # else logs grow for hours
    with (
        dask.config.set(log | (QUIET if where == "quiet" else {})),
        distributed.LocalCluster(
            options.workers, threads_per_worker=options.threads, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        yield (
            Watched(DaskCluster(client), lambda: pids),
            lambda: client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)),
        )


def problem(options):
    """Data, the state that they were simulated from, and the model."""
    if options.model == "paths":
        return paths(options)
    rng = np.random.default_rng(0)
    words, state = Truth(rng, options.words, options.topics, options.length).block(
        options.documents
    )
    corpus = pgmult.topics.as_corpus(words)
    threads = f" of {options.threads} threads" if options.threads > 1 else ""
    print(f"{corpus}, K = {options.topics}, {options.workers} workers{threads}", flush=True)
    model = pgmult.topics.CorrelatedTopics(options.topics, block_rows=options.block_rows or 2048)
    return corpus, state, model


def paths(options):
    """Sequences of symbols whose states move slowly."""
    rng, D, size = np.random.default_rng(0), options.topics, options.documents
    empty = [np.arange(options.length) % options.words] * size
    model = pgmult.sequences.MultinomialLDS(D, block_rows=options.block_rows or 256)
    like = model.as_data(empty)
    state = replace(
        model.prior(rng, like), transition=0.9 * np.eye(D), noise_cov=0.2 * np.eye(D),
        initial_mean=np.zeros(D), initial_cov=np.eye(D), offset=model._offset_moments(like)[0],
        loadings=rng.standard_normal((options.words - 1, D)), loading_var=np.ones(D),
    )  # fmt: skip
    state = replace(state, states=model._law(state, like).sample(rng))
    data = model.simulate(rng, state, like)
    print(f"{data}, D = {D}, {options.workers} workers", flush=True)
    return data, state, model


def here(options, corpus, state, model):
    """CPU seconds of a sweep in this process."""
    rng, seconds = np.random.default_rng(1), []
    with one_blas_thread():
        for _ in range(options.here + 1):
            began = time.process_time()
            state = model.step(rng, state, corpus)
            seconds.append(time.process_time() - began)
    return float(np.mean(seconds[1:]))


def there(options, where, corpus, state, model):
    """The same on workers, by what it was for; clock and page faults as well."""
    marks = []
    with (
        place(options, where) as (workers, _),
        tempfile.TemporaryDirectory(dir=options.folder) as folder,
    ):

        def look():
            return np.array(
                [time.perf_counter(), time.process_time(), workers.cpu(), workers.faults()]
            )

        def mark(sweep):
            marks.append((look(), len(workers.done)))

        pgmult.sample(
            model, corpus, draws=options.sweeps // options.thin, tune=2, chains=1,
            thin=options.thin, starts=state, store=f"{folder}/run", cluster=workers,
            shards=options.shards, cut=options.cut, random_seed=1, progressbar=False, callback=mark,
        )  # fmt: skip
        before = look()
        time.sleep(options.rest)
        after = look()
    (began, first), (ended, last) = marks[1], marks[-1]
    n = len(marks) - 2
    wall, driver, cpu, faults = (ended - began) / n
    seconds, own, theirs, _ = after - before
    tasks = workers.done[first:last]
    kinds = {"step": 0.0, "summarize": 0.0}
    for task, _, task_cpu in tasks:
        kind = "step" if task.kind == "answer" else task.kind
        if kind in kinds:
            kinds[kind] += task_cpu / n
    slowest = {}
    for task, done, _ in tasks:
        if task.kind in ("step", "answer"):
            what = task.sweep, *(number for number, _ in task.asks[-1:])
            slowest[what] = max(slowest.get(what, 0.0), done.seconds)
    at_rest = (own + theirs) / seconds * wall
    besides = cpu - kinds["step"] - kinds["summarize"] + driver
    return {
        "rows": kinds["step"],
        "summarize": kinds["summarize"],
        "workers besides": cpu - kinds["step"] - kinds["summarize"],
        "driver": driver,
        "of both, at rest": at_rest,
        "beside rows": besides / kinds["step"],
        "but at rest": (besides - at_rest) / kinds["step"],
        "wall clock": wall,
        "slowest rows": sum(slowest.values()) / n,
        "page faults": faults,
    }


def overhead(options):
    given = problem(options)
    found = {where: [] for where in options.where}
    alone = []
    for _ in range(options.repeats):
        if options.here:
            alone.append(here(options, *given))
        for where in options.where:
            found[where].append(there(options, where, *given))
    if alone:
        print(f"one process, one thread: {spread(alone, '.3f')} CPU s a sweep")
    print(f"{'':18}" + "".join(f"{where:>26}" for where in found))
    for what in found[options.where[0]][0]:
        form = {"beside rows": ".1%", "but at rest": ".1%", "page faults": ",.0f"}.get(what, ".3f")
        told = (spread([each[what] for each in found[where]], form) for where in found)
        print(f"{what:18}" + "".join(f"{each:>26}" for each in told))


def spread(values, form):
    """The median, and the smallest and largest."""
    middle, least, most = np.median(values), min(values), max(values)
    return f"{middle:{form}}" + (f" ({least:{form}}-{most:{form}})" if len(values) > 1 else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["overhead"])
    parser.add_argument(
        "--where", choices=["local", "dask", "quiet"], nargs="+", default=["local", "dask", "quiet"]
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rest", type=float, default=4.0, help="seconds of nothing to do")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of a Dask worker")
    parser.add_argument("--shards", type=int)
    parser.add_argument("--model", choices=["topics", "paths"], default="topics")
    parser.add_argument("--block-rows", type=int, help="2048, and 256 of paths, if left out")
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--words", type=int, default=5000)
    parser.add_argument("--length", type=int, default=100)
    parser.add_argument("--sweeps", type=int, default=20)
    parser.add_argument("--here", type=int, default=3, help="sweeps in one process")
    parser.add_argument("--thin", type=int, default=5)
    parser.add_argument("--cut", type=int, default=20)
    parser.add_argument("--folder", help="for the run directory")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    overhead(options)


if __name__ == "__main__":
    main()
