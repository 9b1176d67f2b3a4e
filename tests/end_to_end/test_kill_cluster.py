"""A run whose workers and drivers are killed again and again is the run that was not.

As a script, this file is the driver that gets killed: it begins or resumes the run in a directory,
with or without workers, and prints a line for every cut.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from block_models import GaussianRows, rows, same

import pgmult
from pgmult.sampling import store
from pgmult.sampling.cluster.processes import Processes
from pgmult.sequences import MultinomialLDS, as_sequences

SETTINGS = {"draws": 40, "tune": 10, "chains": 2, "random_seed": 4, "progressbar": False}
GIVEN = {"model": GaussianRows(), "data": rows(3000), "progressbar": False}
WORKERS_KILLED = 20
PATHS_KILLED = 5
DRIVERS_KILLED = 5

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")]


@pytest.fixture(scope="module")
def unbroken():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pgmult.sample(GaussianRows(), rows(3000), **SETTINGS)


@pytest.fixture
def chance():
    seed = random.SystemRandom().randrange(2**32)
    print("moments drawn from seed", seed)  # which a failure shows
    return random.Random(seed)


def under_fire(folder, model, data, settings, kills, chance):
    """A run on three shards whose workers are killed so many times, every sweep or two."""
    workers, killed, over = Processes(2), [], threading.Event()
    moved = threading.Event()

    def kill():
        while not over.is_set() and len(killed) < kills:
            moved.wait()  # since the last: a worker that has only begun is not worth it
            over.wait(chance.uniform(0.0, 0.05))
            if workers.pids and not over.is_set():
                os.kill(chance.choice(workers.pids), signal.SIGKILL)
                killed.append(workers.pids)
            moved.clear()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        found = pgmult.sample(
            model, data, store=folder / "run", cluster=workers, shards=3, cut=7,
            callback=lambda sweep: moved.set() if sweep.index % 3 else None, **settings,
        )  # fmt: skip
    finally:
        over.set()
        moved.set()
        killer.join()
        workers.close()
    assert len(killed) == kills
    return found


def test_workers_may_be_killed_at_any_moment(tmp_path, unbroken, chance):
    found = under_fire(tmp_path, GaussianRows(), rows(3000), SETTINGS, WORKERS_KILLED, chance)
    assert same(unbroken, found)


def test_workers_may_be_killed_on_a_path(tmp_path, chance):
    """A sweep of these sequences asks its blocks some eight times."""
    rng = np.random.default_rng(0)
    data = as_sequences([rng.integers(0, 4, 40) for _ in range(60)])
    model, settings = MultinomialLDS(2, block_rows=8), SETTINGS | {"draws": 10, "chains": 1}
    found = under_fire(tmp_path, model, data, settings, PATHS_KILLED, chance)
    assert same(pgmult.sample(model, data, keep=list(found), **settings), found)


def begin_or_resume(path, shards):
    """In a process of its own: a run that tells of its cuts."""
    commit = store.ChainWriter.commit

    def reporting(writer, checkpoint):
        commit(writer, checkpoint)
        os.write(1, b"cut\n")

    store.ChainWriter.commit = reporting
    warnings.simplefilter("ignore")
    place = {"cluster": "local", "cores": 2, "shards": shards, "cut": 3} if shards else {}
    os.write(1, b"ready\n")
    if (path / "inputs.npz").exists():
        pgmult.resume(path, **GIVEN, **place)
    else:
        pgmult.sample(GaussianRows(), rows(3000), store=path, **SETTINGS, **place)


def killed_after(path, shards, cuts, seconds):
    """Run the driver, kill it so many seconds after so many cuts; how it ended."""
    command = [sys.executable, __file__, path, str(shards)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), *sys.path]))
    }
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as child:
        for _ in range(1 + cuts):
            if not child.stdout.readline():
                break
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.kill()
        child.stdout.read()  # until its workers have gone, too
    return child.returncode


def test_drivers_may_be_killed_at_any_moment(tmp_path, unbroken, chance):
    run, killed = tmp_path / "run", 0
    for shards in [2, 5, 1, 3, 2, 4][:DRIVERS_KILLED]:
        ended = killed_after(run, shards, 2 + chance.randrange(4), chance.uniform(0.0, 0.3))
        killed += ended == -signal.SIGKILL
    assert killed == DRIVERS_KILLED
    there = store.RunReader(run).counters(0).sweep
    assert 0 < there < SETTINGS["tune"] + SETTINGS["draws"]
    assert same(unbroken, pgmult.resume(run, **GIVEN, cluster="local", cores=2, shards=2))


if __name__ == "__main__":
    begin_or_resume(Path(sys.argv[1]), int(sys.argv[2]))
