"""Corpora on disk: seconds a sweep and peak memory by their size.

    python -m tests.benchmarks.packed --documents 10000 100000 --folder /tmp/packed
    python -m tests.benchmarks.packed --documents 1000000 --folder /tmp/packed
    python -m tests.benchmarks.packed --fit --documents 250000 --chains 2 --draws 10
    python -m tests.benchmarks.packed --cluster --documents 1000000 --folder /tmp/packed

The first simulate documents of correlated topics in blocks and pack them; every size is packed,
started and swept in a process of its own. Memory is what the process holds of its own (``RssAnon``,
its peak sampled), beside pages of the corpus's files, which the system may take back (``RssFile``),
and the peak of both as the system counts it (``VmHWM``). The third is `pgmult topics fit`, from the
folder to the page without rivals, as many sweeps of tuning as draws. The fourth has two worker
processes find the start and make the sweeps, and tells what their driver holds.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import pgmult
from pgmult.compiled.rows import row_threads
from pgmult.sampling.cluster.processes import Processes
from tests.benchmarks.simulated import Truth


def held(name, pid="self"):
    """A line of what the process holds, in GB."""
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1]) * 1024 / 1e9
    raise ValueError(name)


class Peak:
    """The largest RssAnon and RssFile of this process, sampled."""

    def __enter__(self):
        self.own = self.files = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self):
        while not self._stop.wait(0.05):
            self.own = max(self.own, held("RssAnon"))
            self.files = max(self.files, held("RssFile"))

    def __exit__(self, *error):
        self._stop.set()
        self._thread.join()


def pack(options, size, folder):
    truth = Truth(np.random.default_rng(0), options.words, options.topics, options.length)
    began = time.process_time()
    with Peak() as peak:
        corpus = pgmult.topics.pack_corpus(truth.blocks(size), folder)
    bytes_on_disk = sum(file.stat().st_size for file in folder.iterdir())
    print(
        f"{corpus}, {len(corpus.words):,} entries: simulated and packed in"
        f" {time.process_time() - began:.0f} CPU s, {bytes_on_disk / 1e9:.2f} GB on disk, peak"
        f" {peak.own:.2f} GB",
        flush=True,
    )


def sweep(options, folder):
    began = time.process_time()
    corpus = pgmult.topics.open_corpus(folder)
    opened = time.process_time() - began
    checks = []
    for _ in range(options.sweeps + 1):
        began = time.process_time()
        for array in (corpus.indptr, corpus.words, corpus.counts):
            array.checked[:] = False
            array.check()
        checks.append(time.process_time() - began)
    checked = min(checks)
    model = pgmult.topics.CorrelatedTopics(options.topics)
    rng = np.random.default_rng(1)
    with row_threads(options.threads):
        with Peak() as first:
            began = time.process_time(), time.perf_counter()
            state = model.init(rng, corpus)
            started = time.process_time() - began[0], time.perf_counter() - began[1]
        cpu, wall = [], []
        with Peak() as peak:
            for _ in range(options.sweeps + 1):
                began = time.process_time(), time.perf_counter()
                state = model.step(rng, state, corpus)
                cpu.append(time.process_time() - began[0])
                wall.append(time.perf_counter() - began[1])
            began = time.process_time()
            value = model.log_likelihood(state, corpus)
            scored = time.process_time() - began
    words = corpus.num_tokens
    print(
        f"{corpus}, K = {options.topics}, {options.threads} thread(s): opened {opened:.2f} CPU s"
        f" (checksums {checked:.3f} CPU s, {checked / min(cpu[1:]):.1%} of a sweep),"
        f" start {started[0]:.0f} CPU s ({started[1]:.0f} s), sweep {min(cpu[1:]):.2f} CPU s"
        f" ({min(wall[1:]):.2f} s), log likelihood {scored:.2f} CPU s ({value / words:.3f} a word);"
        f" peak of its own {first.own:.2f} GB in the start, {peak.own:.2f} GB in sweeps, of files"
        f" {peak.files:.2f} GB, VmHWM {held('VmHWM'):.2f} GB",
        flush=True,
    )


def fit(options, folder):
    """The command line, from the packed corpus to its page."""
    numbers = {"topics": options.topics, "chains": options.chains, "cores": options.threads,
               "draws": options.draws, "tune": options.draws}  # fmt: skip
    given = [str(x) for name, value in numbers.items() for x in (f"--{name}", value)]
    with tempfile.TemporaryDirectory(dir=folder.parent) as out:
        run = ["fit", str(folder), *given, "--quiet", "--no-compare", "--out", f"{out}/run"]
        command = [sys.executable, "-m", "pgmult", "topics", *run]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        pages = {file.name: file.stat().st_size for file in Path(out).rglob("*.html")}
    print(
        f"pgmult topics fit, {options.chains} chains of {2 * options.draws} sweeps:"
        f" {used.ru_utime + used.ru_stime:.0f} CPU s, peak {used.ru_maxrss * 1024 / 1e9:.2f} GB,"
        f" pages of bytes {pages}:\n{told[:1500]}",
        flush=True,
    )


def cluster(options, folder):
    corpus = pgmult.topics.open_corpus(folder)
    model = pgmult.topics.CorrelatedTopics(options.topics)
    held_by = []

    def look(sweep):
        theirs = max(held("RssAnon", pid) for pid in workers.pids)
        held_by.append((time.perf_counter(), peak.own, theirs))

    began = time.perf_counter()
    workers = Processes(options.threads)
    with Peak() as peak, tempfile.TemporaryDirectory(dir=folder.parent) as store:
        pgmult.sample(
            model, corpus, draws=1, tune=options.sweeps, chains=1, random_seed=1, callback=look,
            store=f"{store}/run", cluster=workers, progressbar=False, thin=1,
        )  # fmt: skip
    workers.close()
    times, _, theirs = zip(*held_by, strict=True)
    print(
        f"{corpus}, K = {options.topics}, {options.threads} processes: first sweep done after"
        f" {times[0] - began:.0f} s, sweep {min(np.diff(times)):.1f} s; the driver holds"
        f" {held_by[0][1]:.2f} GB of its own at most by then, {peak.own:.2f} GB in all, a worker"
        f" {max(theirs):.2f} GB",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--length", type=int, default=110)
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/packed"))
    parser.add_argument("--only", choices=["pack", "sweep", "fit", "cluster"])
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--draws", type=int, default=10)
    chosen = parser.parse_args()
    if chosen.only == "pack":
        pack(chosen, chosen.documents[0], chosen.folder)
    elif chosen.only:
        {"sweep": sweep, "fit": fit, "cluster": cluster}[chosen.only](chosen, chosen.folder)
    else:
        for count in chosen.documents:
            if shutil.disk_usage(chosen.folder.parent).free < 40 * chosen.length * count:
                raise SystemExit(
                    f"not enough room for {count:,} documents in {chosen.folder.parent}"
                )
            place = chosen.folder / str(count)
            place.parent.mkdir(exist_ok=True)
            own = {"documents": count, "folder": place} | {
                name: getattr(chosen, name)
                for name in ("words", "topics", "length", "sweeps", "threads", "chains", "draws")
            }
            given = [str(x) for name, value in own.items() for x in (f"--{name}", value)]
            command = [sys.executable, "-m", "tests.benchmarks.packed", *given]
            try:
                also = ["cluster"] if chosen.cluster else ["sweep", "fit"][: 1 + chosen.fit]
                for part in ("pack", *also):
                    subprocess.run([*command, "--only", part], check=True, env=os.environ.copy())
            finally:
                shutil.rmtree(place, ignore_errors=True)
        chosen.folder.rmdir()
