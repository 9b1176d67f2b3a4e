"""Sweeps on a Dask cluster: the same draws, and no task or result that stays behind."""

import os
import signal

import pytest
from block_models import GaussianRows, rows, same

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


def test_nobody_at_the_address(monkeypatch):
    monkeypatch.setattr("pgmult.sampling.cluster.dask._CONNECT", 0.5)
    with pytest.raises(ConnectionError, match="no Dask scheduler answers at tcp:"):
        DaskCluster("tcp://127.0.0.1:9")
