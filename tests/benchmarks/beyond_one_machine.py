"""What a sweep costs beside the work on rows, on processes or a Dask cluster of this machine.

    python tests/benchmarks/beyond_one_machine.py overhead --documents 100000 --topics 100
    python tests/benchmarks/beyond_one_machine.py overhead --where dask --documents 100000
    python tests/benchmarks/beyond_one_machine.py flat --sweeps 500

``overhead`` samples CorrelatedTopics from the state that a corpus was simulated from, on workers,
with its kept draws and a cut, and makes the same sweeps here. It tells, in CPU seconds a sweep
(other work on the machine changes wall clock), what one process needs; what the workers need for
the rows, and for all else (reading, telling, replaying); and what the driver needs. ``flat`` tells
memory of driver and workers, files of a chain and tasks of the scheduler as a long run goes on.
"""

import argparse
import os
import tempfile
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from large_corpus import simulated

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
        self.done.append((task, done._replace(total=None)))
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


@contextmanager
def place(options):
    if options.where == "local":
        workers = Processes(options.workers)
        try:
            yield Watched(workers, lambda: workers.pids), lambda: 0
        finally:
            workers.close()
        return
    import dask
    import distributed

    with (
        dask.config.set({"distributed.admin.low-level-log-length": 0}),  # else logs grow for hours
        distributed.LocalCluster(
            options.workers, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        yield (
            Watched(DaskCluster(client), lambda: pids),
            lambda: client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)),
        )


def problem(options):
    """A corpus, the state that it was simulated from, and the model."""
    num_topics = options.topics
    corpus, state = simulated(
        np.random.default_rng(0), options.documents, options.words, num_topics, options.length
    )
    print(f"{corpus}, K = {num_topics}, {options.workers} workers ({options.where})", flush=True)
    return corpus, state, pgmult.topics.CorrelatedTopics(num_topics)


def overhead(options):
    rng = np.random.default_rng(0)
    corpus, state = simulated(rng, options.documents, options.words, options.topics, options.length)
    model = pgmult.topics.CorrelatedTopics(options.topics)
    print(
        f"{corpus}, K = {options.topics}, {options.workers} workers ({options.where})", flush=True
    )
    here = []
    rng = np.random.default_rng(1)
    with one_blas_thread():
        point = state
        for _ in range(options.here + 1):
            began = time.process_time()
            point = model.step(rng, point, corpus)
            here.append(time.process_time() - began)
    one = float(np.mean(here[1:])) if options.here else np.nan
    print(f"here            {one:8.3f} CPU s a sweep, one thread", flush=True)
    marks = []
    with place(options) as (workers, _), tempfile.TemporaryDirectory(dir=options.folder) as folder:

        def mark(sweep):
            marks.append(
                (
                    time.perf_counter(),
                    time.process_time(),
                    workers.cpu(),
                    len(workers.done),
                    workers.faults(),
                )
            )

        pgmult.sample(
            model, corpus, draws=options.sweeps // options.thin, tune=2, chains=1,
            thin=options.thin, initvals=state, store=f"{folder}/run", cluster=workers,
            cut=options.cut, random_seed=1, progressbar=False, callback=mark,
        )  # fmt: skip
        (wall, driver, cpu, first, faults), last = marks[1], marks[-1]
        n = len(marks) - 2
        tasks = workers.done[first : last[3]]
        kinds = {
            kind: sum(done.cpu for task, done in tasks if task.kind == kind) / n
            for kind in ("step", "tell", "save")
        }
        by_sweep = {}
        for task, done in tasks:
            if task.kind == "step":
                by_sweep.setdefault(task.sweep, []).append(done.seconds)
        slowest = sum(max(each) for each in by_sweep.values()) / n
        wall, driver, cpu = ((b - a) / n for a, b in zip((wall, driver, cpu), last, strict=False))
        faults = (last[4] - faults) / n
        print(f"rows            {kinds['step']:8.3f} CPU s a sweep, of all workers")
        print(f"tell, save      {kinds['tell']:8.3f} {kinds['save']:8.3f}")
        print(f"workers besides {cpu - sum(kinds.values()):8.3f}   ({faults:,.0f} page faults)")
        print(f"driver          {driver:8.3f}")
        print(f"wall clock      {wall:8.3f}, of which the slowest rows {slowest:.3f}")
        share = (cpu - kinds["step"] - kinds["tell"] + driver) / kinds["step"]
        print(f"beside rows     {share:8.1%} of the CPU of rows (what is told of draws aside)")
        print(f"rows there/here {kinds['step'] / one:8.2f}")


def flat(options):
    rng = np.random.default_rng(0)
    corpus, state = simulated(rng, options.documents, options.words, options.topics, options.length)
    model = pgmult.topics.CorrelatedTopics(options.topics)
    print(
        f"{corpus}, K = {options.topics}, {options.workers} workers ({options.where})", flush=True
    )
    with place(options) as (workers, tasks), tempfile.TemporaryDirectory() as folder:

        def look(sweep):
            if (sweep.index + 1) % (options.sweeps // 10) == 0:
                files = len(list(Path(folder, "run", "chain-0").glob("[rs][oh]*")))
                sizes = " ".join(f"{size:7.1f}" for size in workers.memory())
                print(
                    f"sweep {sweep.index + 1:5}  driver {resident(os.getpid()):7.1f} MiB  workers"
                    f" {sizes} MiB  {tasks()} tasks  {files} files of rows and shared states",
                    flush=True,
                )

        pgmult.sample(
            model, corpus, draws=1, tune=options.sweeps - 1, chains=1, initvals=state,
            store=f"{folder}/run", cluster=workers, cut=options.cut, random_seed=1,
            progressbar=False, callback=look,
        )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["overhead", "flat"])
    parser.add_argument("--where", choices=["local", "dask"], default="local")
    parser.add_argument("--workers", type=int, default=2)
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
    {"overhead": overhead, "flat": flat}[options.what](options)


if __name__ == "__main__":
    main()
