"""Sweeps on a Dask cluster: the same draws, and no task or result that stays behind."""

import os
import signal
import sys

import numpy as np
import pytest
from block_models import GaussianRows, HeavyRows, rows, same

import pgmult
from pgmult.sampling.cluster.dask import DaskCluster

distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

SETTINGS = {"draws": 12, "tune": 3, "chains": 2, "random_seed": 1, "progressbar": False}


@pytest.fixture(scope="module")
def here():
    return pgmult.sample(GaussianRows(), rows(), **SETTINGS)


@pytest.fixture
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


def own_bytes():
    """What this process holds, files aside."""
    with open("/proc/self/status") as status:
        (line,) = (line for line in status if line.startswith("RssAnon"))
    return 1024 * int(line.split()[1])


def on(place, run, **more):
    return pgmult.sample(
        GaussianRows(), rows(), store=run, cluster=place, cut=4, **SETTINGS, **more
    )


def pids(client):
    return list(client.run(os.getpid).values())


def test_draws_are_those_of_one_machine(here, client, tmp_path):
    tasks = []

    def look(sweep):
        if sweep.index > 2:
            tasks.append(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))

    assert same(here, on(client, tmp_path / "client", callback=look))
    assert max(tasks) <= 8
    address = client.scheduler.address
    assert same(here, on(address, tmp_path / "address", shards=5))
    assert client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_nothing_grows_with_the_sweeps(client, tmp_path):
    """A megabyte a shard and sweep would be 400 MB, were it kept anywhere, and a task each 400."""
    tasks, sizes = [], []

    def look(sweep):
        if sweep.index >= 50 and sweep.index % 50 == 0:
            tasks.append(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))
            sizes.append([own_bytes(), *client.run(own_bytes).values()])

    pgmult.sample(
        HeavyRows(), rows(), store=tmp_path / "run", cluster=client, cut=20, draws=1, tune=250,
        chains=1, random_seed=1, progressbar=False, callback=look,
    )  # fmt: skip
    assert len(tasks) == 5
    assert max(tasks) <= 2
    assert np.max(np.array(sizes) - sizes[0]) < 50e6
    assert len(list((tmp_path / "run" / "chain-0").iterdir())) < 10


def test_workers_that_die_and_hang_are_replaced(here, client, tmp_path):
    first = pids(client)

    def harm(sweep):
        if (sweep.chain, sweep.index) == (0, 5):
            os.kill(first[0], signal.SIGKILL)
        if (sweep.chain, sweep.index) == (1, 10):
            os.kill(first[1], signal.SIGSTOP)

    place = DaskCluster(client, patience=4.0)
    assert same(here, on(place, tmp_path / "run", callback=harm))
    assert not set(first) & set(pids(client))


def test_errors_of_the_model_come_back(client, tmp_path):
    data = rows()
    data.y[29, 1] = 1e300
    with pytest.raises(ValueError, match=r"got inf at row 29\n"):
        pgmult.sample(
            GaussianRows(fails_at=1e300), data, store=tmp_path / "run", cluster=client, **SETTINGS
        )


def test_a_worker_of_many_threads_does_one_task_a_sweep(here, tmp_path):
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=3, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        place = DaskCluster(client)
        assert place.num_slots == 1
        assert same(here, on(place, tmp_path / "run"))


def test_a_worker_that_cannot_be_reached_from_here(here, client, tmp_path, monkeypatch):
    monkeypatch.setattr(DaskCluster, "_reaches", lambda place, address: False)
    assert same(here, on(client, tmp_path / "run"))


def test_nobody_at_the_address(monkeypatch):
    monkeypatch.setattr("pgmult.sampling.cluster.dask._CONNECT", 0.5)
    with pytest.raises(ConnectionError, match="no Dask scheduler answers at tcp:"):
        DaskCluster("tcp://127.0.0.1:9")
