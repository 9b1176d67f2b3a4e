"""Sweeps whose rows are elsewhere: the same draws, whatever becomes of those who make them."""

import errno
import os
import random
import signal
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
from block_models import (
    AskingPaths,
    GaussianRows,
    InThisProcess,
    Rows,
    StartingRows,
    paths,
    rows,
    same,
)
from chain_models import Normal, values

import pgmult
from pgmult.core import sealed
from pgmult.sampling import store
from pgmult.sampling.cluster import tasks
from pgmult.sampling.cluster.executors import Patient, WorkersLostError
from pgmult.sampling.cluster.files import ChainFiles, RowRange, SharedArrays
from pgmult.sampling.cluster.processes import Processes
from pgmult.sampling.cluster.rows import shards_of
from pgmult.sampling.cluster.tasks import Done, work
from pgmult.topics import as_corpus

SETTINGS = {"draws": 12, "tune": 3, "chains": 2, "random_seed": 1, "progressbar": False}
GIVEN = {"model": GaussianRows(), "data": rows(), "progressbar": False}
pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")


class Faulty(InThisProcess):
    """Workers that forget, and that do a task twice."""

    def __init__(self, seed):
        super().__init__()
        self._chance = random.Random(seed)
        self._lock = threading.Lock()

    def run(self, task, home):
        with self._lock:
            forgets, repeats = self._chance.random() < 0.3, self._chance.random() < 0.3
        if forgets:
            with tasks._memory.lock:
                tasks._memory._rows.clear()
        if repeats and task.kind != "forget":
            super().run(task, home)
        return super().run(task, home)


@pytest.fixture(scope="module")
def here():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pgmult.sample(GaussianRows(), rows(), **SETTINGS)


@pytest.mark.parametrize(("shards", "cut"), [(2, 1), (5, 4), (None, None)])
def test_draws_do_not_depend_on_shards_or_cuts(here, tmp_path, shards, cut):
    found = pgmult.sample(
        GaussianRows(), rows(), store=tmp_path / "run", cluster=InThisProcess(), shards=shards,
        cut=cut, **SETTINGS,
    )  # fmt: skip
    assert same(here, found)
    assert same(here, pgmult.load(tmp_path / "run", model=GaussianRows()))


def test_draws_do_not_depend_on_what_workers_remember(here, tmp_path):
    workers = Faulty(2)
    found = pgmult.sample(
        GaussianRows(), rows(), store=tmp_path / "run", cluster=workers, shards=3, cut=5, **SETTINGS
    )
    assert same(here, found)
    again = [done.again for _, done in workers.done]
    assert max(again) > 1
    assert max(again) <= 5  # since the last cut


@pytest.mark.parametrize(("shards", "cut"), [(1, 3), (2, 1), (5, 4)])
def test_rows_of_cells_answer_what_the_shared_step_asks(tmp_path, shards, cut):
    settings = SETTINGS | {"keep": "mu"}
    whole = pgmult.sample(AskingPaths(), paths(), **settings)
    again = pgmult.sample(
        AskingPaths(), paths(), store=tmp_path / "run", cluster=InThisProcess(), shards=shards,
        cut=cut, **settings,
    )  # fmt: skip
    assert same(whole, again)
    assert len(np.unique(whole["mu"])) == whole["mu"].size


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_answers_do_not_depend_on_what_workers_remember(tmp_path, seed):
    settings = SETTINGS | {"keep": "mu"}
    whole = pgmult.sample(AskingPaths(), paths(), **settings)
    workers, run = Faulty(seed), tmp_path / "run"
    with pytest.raises(RuntimeError, match="enough"):
        pgmult.sample(
            AskingPaths(), paths(), store=run, cluster=workers, shards=3, cut=4,
            callback=stopped_after(7), **settings,
        )  # fmt: skip
    found = pgmult.resume(
        run, model=AskingPaths(), data=paths(), cluster=Faulty(seed + 10), shards=2, cut=3,
        progressbar=False,
    )  # fmt: skip
    assert same(whole, found)
    asked = [len(task.asks) for task, _ in workers.done if task.kind == "answer"]
    assert max(asked) == 2


def test_rows_start_where_they_are(tmp_path, monkeypatch):
    whole = pgmult.sample(StartingRows(), rows(), **SETTINGS)
    for shards, workers in ((1, InThisProcess()), (5, Faulty(3))):
        run, kinds = tmp_path / f"run-{shards}", set()

        def look(sweep, run=run, kinds=kinds):
            paths = (run / f"chain-{sweep.chain}").iterdir()
            kinds.update(path.name.split(".")[0] for path in paths)

        with monkeypatch.context() as patch:
            patch.setattr(StartingRows, "init", None)  # that holds all rows
            found = pgmult.sample(
                StartingRows(), rows(), store=run, cluster=workers, shards=shards, cut=4,
                callback=look, **SETTINGS,
            )  # fmt: skip
        assert same(whole, found)
        assert {task.kind for task, _ in workers.done} >= {"start", "step"}
        assert "rows" in kinds
        assert "start" not in kinds  # since the first cut
    begun = StartingRows().init(np.random.default_rng(5), rows())
    given = SETTINGS | {"starts": replace(begun, mu=np.ones(2))}
    again = pgmult.sample(
        StartingRows(), rows(), store=tmp_path / "given", cluster=InThisProcess(), shards=2, **given
    )
    assert same(again, pgmult.sample(StartingRows(), rows(), **given))
    assert not same(again, whole)


def test_variables_of_cells_cannot_be_kept_elsewhere(tmp_path):
    for name, axis in (("x", "step"), ("first", "sequence")):
        with pytest.raises(ValueError, match=f"with a value for each {axis} .*'{name}'"):
            pgmult.sample(
                AskingPaths(), paths(), store=tmp_path / "run", cluster=InThisProcess(),
                keep=name, **SETTINGS,
            )  # fmt: skip


@pytest.mark.slow
def test_a_worker_that_began_afresh_would_be_seen(here, tmp_path, monkeypatch):
    read = ChainFiles.read_rows

    def first_of_all(files, sweep, start, stop, parts):
        found = read(files, sweep, start, stop, parts)
        return found if sweep == 0 else {name: np.zeros_like(x) for name, x in found.items()}

    monkeypatch.setattr(ChainFiles, "read_rows", first_of_all)
    settings = SETTINGS | {"store": tmp_path / "run", "shards": 3, "cut": 5}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GaussianRows, "local_step", _by_its_rows)
        before = pgmult.sample(GaussianRows(), rows(), **SETTINGS)
        found = pgmult.sample(GaussianRows(), rows(), cluster=Faulty(2), **settings)
    assert not same(before, found)


def _by_its_rows(model, rng, state, data, step=GaussianRows.local_step):
    """A step whose rows depend on what they were, as those of real models do."""
    return step(model, rng, state, Rows(0.5 * (data.y + state.x)))


def stopped_after(sweeps):
    """A callback that ends the run there."""

    def callback(sweep):
        if sweep.index + 1 == sweeps:
            raise RuntimeError("enough")

    return callback


@pytest.mark.parametrize(
    ("before", "after"), [("there", "here"), ("here", "there"), ("there", "there")]
)
def test_a_run_goes_on_anywhere(here, tmp_path, before, after):
    places = {
        "here": lambda shards: {},
        "there": lambda shards: {"cluster": InThisProcess(), "shards": shards, "cut": 4},
    }
    run = tmp_path / "run"
    with pytest.raises(RuntimeError, match="enough"):
        pgmult.sample(
            GaussianRows(), rows(), store=run, callback=stopped_after(10), **places[before](2),
            **SETTINGS,
        )  # fmt: skip
    found = pgmult.resume(run, **GIVEN, **places[after](5))
    assert same(here, found)
    for chain in range(2):
        kinds = [path.name.split(".")[0] for path in (run / f"chain-{chain}").iterdir()]
        assert kinds.count("rows") == (0 if after == "here" else 5)
        assert kinds.count("shared") == (0 if after == "here" else 1)


def test_only_the_last_cut_is_on_disk(tmp_path):
    most = []

    def look(sweep):
        names = [path.name for path in (tmp_path / "run" / "chain-0").iterdir()]
        most.append([sum(name.startswith(k) for name in names) for k in ("rows", "shared")])

    settings = SETTINGS | {"chains": 1, "callback": look}
    pgmult.sample(
        GaussianRows(), rows(), store=tmp_path / "run", cluster=InThisProcess(), shards=3, cut=4,
        **settings,
    )  # fmt: skip
    assert np.max(most, axis=0).tolist() == [3, 5]


def test_a_full_disk_loses_nothing_beyond_the_last_cut(here, tmp_path, monkeypatch):
    write, calls = ChainFiles.write_rows, []

    def full(files, sweep, start, fields):
        if sweep == 8 and not calls:
            calls.append(sweep)
            raise OSError(errno.ENOSPC, "No space left on device")  # on one worker: another can
        if sweep == 12:
            raise OSError(errno.ENOSPC, "No space left on device", str(files.folder))
        write(files, sweep, start, fields)

    monkeypatch.setattr("pgmult.sampling.cluster.rows._PAUSE", 0.0)
    monkeypatch.setattr(ChainFiles, "write_rows", full)
    run = tmp_path / "run"
    with pytest.raises(OSError, match="No space left") as caught:
        pgmult.sample(
            GaussianRows(), rows(), store=run, cluster=InThisProcess(), shards=3, cut=4, **SETTINGS
        )
    assert calls == [8]
    assert any("resume" in note for note in caught.value.__notes__)
    assert 8 <= store.RunReader(run).counters(0).sweep < 12
    monkeypatch.setattr(ChainFiles, "write_rows", write)
    assert same(here, pgmult.resume(run, **GIVEN, cluster=InThisProcess()))


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "chain-0").mkdir()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*rows\.000000000\.0-3\.npz'"):
        ChainFiles(tmp_path / "chain-0", "run").write_rows(0, 0, {"x": np.zeros(3)})
    assert list((tmp_path / "chain-0").iterdir()) == []


def test_files_are_read_though_python_fails_at_headers_in_two_threads(tmp_path, monkeypatch):
    files, x, fails = ChainFiles(tmp_path, "run"), np.arange(6.0), iter([True, True, False] * 9)
    files.write_shared(0, SharedArrays({"mu": x}, np.zeros(2, np.uint64)))
    files.write_rows(0, 0, {"x": x})
    right = sealed._HEADERS[1, 0]

    def header(file):
        found = right(file)
        if next(fails):
            raise SystemError("AST constructor recursion depth mismatch (before=60, after=63)")
        return found

    monkeypatch.setitem(sealed._HEADERS, (1, 0), header)
    np.testing.assert_array_equal(files.read_shared(0).state["mu"], x)
    np.testing.assert_array_equal(files.read_rows(0, 0, 6, [RowRange(0, 6)])["x"], x)


def test_files_of_rows_are_read_by_any_cut_and_checked(tmp_path):
    (tmp_path / "chain-0").mkdir()
    files = ChainFiles(tmp_path / "chain-0", "one")
    whole = {"x": np.random.default_rng(0).normal(size=(12, 2)), "n": np.arange(12, dtype=np.int32)}
    parts = [RowRange(0, 5), RowRange(5, 8), RowRange(8, 12)]
    for start, stop in parts:
        files.write_rows(7, start, {name: x[start:stop] for name, x in whole.items()})
    for start, stop in [(0, 12), (3, 9), (5, 8), (6, 7)]:
        found = files.read_rows(7, start, stop, parts)
        for name, array in whole.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array[start:stop])
    with pytest.raises(ValueError, match=r"rows 8 to 12 after sweep 7 are in no file"):
        files.read_rows(7, 0, 12, parts[:2])
    with pytest.raises(ValueError, match="another place"):
        ChainFiles(tmp_path / "chain-0", "two").read_rows(7, 0, 12, parts)
    path = tmp_path / "chain-0" / "rows.000000007.5-8.npz"
    content = bytearray(path.read_bytes())
    content[150] ^= 1  # in the rows themselves
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"rows\.000000007\.5-8\.npz is damaged"):
        files.read_rows(7, 0, 12, parts)


def test_shards_have_whole_blocks_and_like_costs():
    assert shards_of(np.ones(53), 8, 1) == [(0, 53)]
    assert shards_of(np.ones(53), 8, 99) == [
        (0, 8), (8, 16), (16, 24), (24, 32), (32, 40), (40, 48), (48, 53),
    ]  # fmt: skip
    assert shards_of(np.ones(3), 8, 4) == [(0, 3)]
    costs = np.repeat([9.0, 1.0], [8, 40])
    assert shards_of(costs, 8, 2) == [(0, 8), (8, 48)]
    corpus = as_corpus(np.repeat([[1] * 60, [1] + [0] * 59], [100, 500], axis=0))
    assert shards_of(corpus.row_costs, 10, 2) == [(0, 250), (250, 600)]
    rng = np.random.default_rng(0)
    for size in rng.integers(1, 400, size=50):
        shards = int(rng.integers(1, 20))
        found = shards_of(rng.gamma(0.1, size=size), 4, shards)
        assert [row for part in found for row in range(*part)] == list(range(size))
        assert all(start % 4 == 0 for start, _ in found)
        assert len(found) == min(shards, max(1, (size + 2) // 4))


def test_errors_name_the_row_of_the_whole(tmp_path):
    data = rows()
    data.y[29, 1] = 1e300
    model = GaussianRows(fails_at=1e300)
    with pytest.raises(ValueError, match=r"got inf at row 29\n"):
        pgmult.sample(model, data, **SETTINGS)
    with pytest.raises(ValueError, match=r"got inf at row 29\n") as caught:
        pgmult.sample(
            model, data, store=tmp_path / "run", cluster=InThisProcess(), shards=2, **SETTINGS
        )
    assert "about rows 24 to 52 of chain" in " ".join(caught.value.__notes__)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"cluster": "tcp"}, r"cluster must be 'local' .*got 'tcp'"),
        ({"cluster": 3}, r"cluster must be 'local' .*got 3"),
        ({"cluster": Processes}, r"cluster must be 'local'"),
        ({"cluster": "local", "store": None}, "store must be a directory that all workers"),
        ({"shards": 2}, "shards must be left out where there is no cluster, got 2"),
        ({"cut": 2}, "cut must be left out where there is no cluster, got 2"),
        ({"cluster": "local", "shards": 0}, "shards must be"),
        ({"cluster": "local", "cut": 1.5}, "cut must be"),
        ({"cluster": "local", "keep": ["x"]}, "no variable with a value for each row .*'x'"),
        ({"cluster": "local", "data": rows(0)}, "data must have rows"),
        ({"cluster": "local", "model": Normal(), "data": values(), "keep": None},
         "model must have rows that are independent"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused_in_a_sentence(tmp_path, arguments, sentence):
    given = {"model": GaussianRows(), "data": rows(), "store": tmp_path / "run"} | arguments
    with pytest.raises((TypeError, ValueError), match=sentence):
        pgmult.sample(given.pop("model"), given.pop("data"), **given, **SETTINGS)


def test_a_model_of_a_script_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(GaussianRows, "__module__", "__main__")
    with pytest.raises(ValueError, match="GaussianRows of this script or notebook"):
        pgmult.sample(GaussianRows(), rows(), store=tmp_path, cluster="local", **SETTINGS)


def test_patience_grows_with_what_a_task_may_have_to_do_again():
    class Slow(Patient):
        def _ask(self, task, home):
            return Done(None, seconds=2.0, again=2)

    patience = Slow(10.0)
    task = tasks.Task("step", "run", "id", "session", 0, (), 0, 8, 5, 2)
    assert patience.limit(task) == 10.0
    patience.run(task, 0)
    assert patience.limit(task) == 10.0 + 10 * 2.0 * 4


def test_workers_of_another_release_are_refused():
    task = tasks.Task("step", "run", "id", "session", 0, (), 0, 8, 5, 2, version="0")
    with pytest.raises(ValueError, match="workers must have the pgmult of the driver, 0, and"):
        work(task)


def test_processes_have_the_draws_of_this_one(here, tmp_path):
    found = pgmult.sample(
        GaussianRows(), rows(), store=tmp_path / "run", cluster="local", cores=2, shards=3, cut=4,
        **SETTINGS,
    )  # fmt: skip
    assert same(here, found)


@pytest.mark.slow
def test_processes_that_hang_are_replaced(here, tmp_path):
    workers, stopped = Processes(2, patience=3.0), []

    def stop_one(sweep):
        if sweep.index == 6 and sweep.chain == 0:
            stopped.append(workers.pids[0])
            os.kill(stopped[0], signal.SIGSTOP)

    found = pgmult.sample(
        GaussianRows(), rows(), store=tmp_path / "run", cluster=workers, cut=4, callback=stop_one,
        **SETTINGS,
    )  # fmt: skip
    assert same(here, found)
    assert stopped[0] not in workers.pids
    workers.close()
    assert workers.pids == []
    with pytest.raises(WorkersLostError, match="workers were closed"):
        workers.run(tasks.Task("forget", "", "", "", 0, (), 0, 1), 0)
