"""The run directory: the same bits after every break, and clear words about damage."""

import errno
import json
import os
import shutil
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from chain_models import Normal, NormalState, Values, same, values

import pgmult
from pgmult.core.potentials import DiagonalPotential
from pgmult.sampling import codec as _codec
from pgmult.sampling import store
from pgmult.sampling.store import Run, RunWriter, rectangle

OPTIONS = {"draws": 60, "tune": 20, "chains": 2, "random_seed": 9, "keep": ["mean", "latent"]}


def sample(path=None, model=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pgmult.ConvergenceWarning)
        return pgmult.sample(model or Normal(), values(), store=path, **(OPTIONS | options))


def resume(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pgmult.ConvergenceWarning)
        return pgmult.resume(path, **({"model": Normal(), "data": values()} | options))


@pytest.fixture
def often(monkeypatch):
    """Every chain commits after each sweep."""
    monkeypatch.setattr(store, "FLUSH_SECONDS", 0.0)
    monkeypatch.setattr(store, "FLUSH_SHARE", 1e9)


@pytest.fixture(scope="module")
def whole():
    return sample()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("finished") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "FLUSH_SECONDS", 0.0)
        patch.setattr(store, "FLUSH_SHARE", 1e9)
        sample(path)
    return path


@pytest.fixture
def run(tmp_path, finished):
    """A finished run of one part a draw."""
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def some_part(run, name="mean", which=30):
    return sorted((run / "chain-1").glob(f"{name}.*.npy"))[which]


# The way there and back


def test_stored_draws_are_those_in_memory(run, whole):
    assert len(list((run / "chain-0").glob("mean.*"))) == 60
    assert same(pgmult.load(run), whole)
    assert pgmult.load(run).attrs.keys() == whole.attrs.keys()
    assert pgmult.load(run).coords.keys() == whole.coords.keys()


def test_few_parts_where_there_is_no_hurry(tmp_path, whole):
    assert same(sample(tmp_path / "run"), whole)
    assert len(list((tmp_path / "run" / "chain-0").glob("mean.*"))) == 1


def test_parts_are_cut_by_size(tmp_path, monkeypatch, whole):
    monkeypatch.setattr(store, "FLUSH_BYTES", 20 * 176)
    assert same(sample(tmp_path / "run"), whole)
    assert len(list((tmp_path / "run" / "chain-0").glob("mean.*"))) == 3


@pytest.mark.parametrize("stop", [(0, 0), (0, 5), (0, 40), (1, 3), (1, 79)])
def test_resumed_equals_uninterrupted(tmp_path, whole, stop):
    def callback(sweep):
        if (sweep.chain, sweep.index) == stop:
            raise KeyboardInterrupt

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            sample(tmp_path / "run", cores=1, callback=callback)
        except KeyboardInterrupt:
            assert stop[1] < 20
    assert same(resume(tmp_path / "run"), whole)


def test_resume_can_go_further(run):
    assert same(resume(run, draws=100), sample(draws=100))
    assert pgmult.load(run).attrs["draws"] == 100
    assert same(resume(run), sample(draws=100))
    with pytest.raises(ValueError, match="draws must be at least 100, which are kept; got 80"):
        resume(run, draws=80)


def test_a_longer_plan_outlives_a_break(run):
    def callback(sweep):
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        resume(run, draws=100, callback=callback)
    assert same(resume(run), sample(draws=100))


def test_initial_values_outlive_a_break(tmp_path):
    initvals = [NormalState(1.0, 2.0, 3, np.ones(20)), {"mean": 5.0}]

    def callback(sweep):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample(tmp_path / "run", initvals=initvals, cores=1, callback=callback)
    assert not (tmp_path / "run" / "chain-1" / "checkpoint.npz").exists()
    assert same(resume(tmp_path / "run"), sample(initvals=initvals))


def test_scattered_arrays_do_not_change_the_bits(tmp_path):
    """A state whose arrays are views, in products whose last bits depend on memory order."""

    class Views(Normal):
        def step(self, rng, state, data):
            state = Normal.step(self, rng, state, data)
            latent = rng.normal(size=(20, 2))[:, 1]
            return NormalState(float(latent @ latent) / 20, state.var, state.steps, latent)

    seen = []
    sample(model=Views(), callback=lambda sweep: seen.append(sweep.state.latent.flags.c_contiguous))
    assert all(seen)


# Reading at any time


def test_load_before_the_first_draw(tmp_path):
    def callback(sweep):
        with pytest.warns(UserWarning, match="there are no draws yet"):
            posterior = pgmult.load(tmp_path / "run")
        assert posterior["latent"].shape == (2, 0, 20)
        assert posterior["mean"].shape == (2, 0)
        assert posterior.sample_stats["log_likelihood"].shape == (2, 0)
        assert "0 draws (of 60 planned)" in repr(posterior)
        assert "mean" in str(posterior.summary())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample(tmp_path / "run", callback=callback, cores=1)


def test_load_while_it_is_written(tmp_path, often, whole):
    def callback(sweep):
        if (sweep.chain, sweep.index) == (1, 30):
            with pytest.warns(UserWarning, match=r"left out of 60 draws a chain: 1 \(10 draws\)"):
                posterior = pgmult.load(tmp_path / "run")
            np.testing.assert_array_equal(posterior["latent"], whole["latent"][:1])

    sample(tmp_path / "run", cores=1, callback=callback)


def test_reads_nothing_until_asked(run):
    posterior = pgmult.load(run)
    shutil.rmtree(run / "chain-0")
    assert "latent  (item: 20)" in repr(posterior)
    with pytest.raises(FileNotFoundError):
        posterior["latent"]


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ([5, 5, 5], ([0, 1, 2], 5)),
        ([0, 0], ([0, 1], 0)),
        ([100, 0, 100, 3], ([0, 2], 100)),
        ([10, 9, 10], ([0, 1, 2], 9)),
        ([7], ([0], 7)),
    ],
)
def test_largest_rectangle(kept, expected):
    assert rectangle(kept) == expected


# One writer


def test_only_one_writer(run):
    with RunWriter(run), pytest.raises(BlockingIOError, match="another process is writing"):
        resume(run)
    assert len(resume(run)["mean"]) == 2


def test_a_writer_that_died_leaves_no_lock(run):
    code = (
        "import os, signal, sys\n"
        "from pgmult.sampling.store import RunWriter\n"
        "writer = RunWriter(sys.argv[1])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    dead = subprocess.run([sys.executable, "-c", code, run], check=False)
    assert dead.returncode == -9
    resume(run)


# Damage


def test_parts_without_a_checkpoint_are_left_alone_and_made_again(run, whole):
    extra = run / "chain-0" / "mean.000000060-000000070.00000000.npy"
    extra.write_bytes(b"half a par")
    assert same(pgmult.load(run), whole)
    assert same(resume(run, draws=70), sample(draws=70))
    assert not extra.exists()


def flip(path):
    content = bytearray(path.read_bytes())
    content[-3] ^= 0x40
    path.write_bytes(content)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-5])


@pytest.mark.parametrize("damage", [flip, truncate, Path.unlink])
def test_a_damaged_part_is_named(run, whole, damage):
    part = some_part(run, "latent")
    damage(part)
    with pytest.raises(ValueError, match="damaged='drop'") as caught:
        pgmult.load(run)["latent"]
    assert str(part if damage is not Path.unlink else part.parent) in str(caught.value)
    with pytest.warns(UserWarning, match=r"read \[60, 30\] undamaged draws"):
        posterior = pgmult.load(run, damaged="drop")
    np.testing.assert_array_equal(posterior["latent"], whole["latent"][:, :30])


def test_other_variables_are_not_held_up(run, whole):
    flip(some_part(run, "latent"))
    np.testing.assert_array_equal(pgmult.load(run)["mean"], whole["mean"])


@pytest.mark.parametrize("damage", [flip, truncate, lambda path: path.write_bytes(b"")])
def test_a_damaged_checkpoint_is_named(run, whole, damage):
    checkpoint = run / "chain-1" / "checkpoint.npz"
    damage(checkpoint)
    with pytest.raises(ValueError, match="is damaged") as caught:
        resume(run, draws=80)
    assert str(checkpoint) in str(caught.value)
    with pytest.warns(UserWarning, match=r"read \[60, 60\]"):
        assert same(pgmult.load(run, damaged="drop"), whole)


def test_every_byte_of_a_checkpoint_counts(run):
    checkpoint = run / "chain-0" / "checkpoint.npz"
    content = checkpoint.read_bytes()
    assert Run(run).checkpoint(0, {"chain_models"})["kept"] == 60
    for position in range(0, len(content), 11):
        changed = bytearray(content)
        changed[position] ^= 0x10
        checkpoint.write_bytes(changed)
        with pytest.raises(ValueError, match=r"checkpoint\.npz is damaged"):
            Run(run).checkpoint(0, {"chain_models"})


def test_damaged_meta(run):
    meta = run / "meta.json"
    content = json.loads(meta.read_text())
    meta.write_text(json.dumps(content | {"pgmult_run": 99, "version": "7.0"}))
    with pytest.raises(ValueError, match=r"has schema 99 .* reads schema 1 .*by pgmult 7\.0"):
        pgmult.load(run)
    for text in ("{", "[]", '{"name": "another tool"}'):
        meta.write_text(text)
        with pytest.raises(ValueError, match="is damaged, or not of pgmult"):
            pgmult.load(run)


def test_load_takes_two_words_for_damage(run):
    with pytest.raises(ValueError, match="must be 'raise' or 'drop', got 'ignore'"):
        pgmult.load(run, damaged="ignore")


# Directories that are not ours


def test_foreign_directories(tmp_path, run):
    with pytest.raises(FileExistsError, match=r"holds a run already \(pgmult\.resume goes on"):
        sample(run)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"")
    with pytest.raises(FileExistsError, match="not empty and not a run of pgmult"):
        sample(tmp_path / "photos")
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat.jpg"]
    with pytest.raises(FileExistsError, match="must be a directory, this is a file"):
        sample(tmp_path / "photos" / "cat.jpg")
    for path in (tmp_path / "photos", tmp_path / "nothing", tmp_path / "photos" / "cat.jpg"):
        for function in (pgmult.load, pgmult.resume):
            with pytest.raises(FileNotFoundError, match="not a run directory of pgmult"):
                function(path)
    (tmp_path / "empty").mkdir()
    assert len(sample(tmp_path / "empty")["mean"]) == 2


def test_unwritable_directories(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        sample(tmp_path / "file" / "run")
    (tmp_path / "run").mkdir(mode=0o500)
    if os.geteuid() == 0:  # whom no mode stops

        def refuse(*arguments):
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(store, "open", refuse, raising=False)
    with pytest.raises(PermissionError, match=r"directory cannot be written to: Perm.*run"):
        sample(tmp_path / "run")


def test_begun_and_killed_before_the_data_was_written(run, whole):
    for chain in ("chain-0", "chain-1"):
        shutil.rmtree(run / chain)
    (run / "inputs.npz").rename(run / "inputs.npz.tmp")
    with pytest.warns(UserWarning, match="no draws yet"):
        pgmult.load(run)
    with pytest.raises(FileNotFoundError, match="stopped before its data was written"):
        resume(run)
    assert same(sample(run), whole)


# A full disk


def test_a_disk_that_refuses(tmp_path, whole, monkeypatch):
    """Writes begin to fail in the middle of a run: what was committed before is readable."""
    written = []
    write = store._write

    def failing(path, content):
        written.append(path)
        if len(written) > 200:
            path.write_bytes(content[:20])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(store, "_write", failing)
        patch.setattr(store, "FLUSH_SECONDS", 0.0)
        patch.setattr(store, "FLUSH_SHARE", 1e9)
        with pytest.raises(OSError, match=r"No space left on device: '.*\.npy'") as caught:
            sample(tmp_path / "run", chains=1)
    assert "pgmult.load" in caught.value.__notes__[1]
    posterior = pgmult.load(tmp_path / "run")
    assert posterior.num_draws > 20
    np.testing.assert_array_equal(posterior["latent"], whole["latent"][:1, : posterior.num_draws])
    assert same(resume(tmp_path / "run"), sample(chains=1))


# Models, data and states as JSON and arrays


@dataclass(frozen=True)
class Nested:
    inner: object
    items: tuple = ()


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -3,
        2**200,
        0.1,
        float("inf"),
        float("nan"),
        "π",
        (1, (2.5, None), ["a"]),
        {"a": {"b": (1,)}},
        np.float32(0.1),
        np.int64(3),
        np.array([1.5, np.nan, -np.inf]),
        np.array([[1, 2], [3, 4]], dtype=np.uint8),
        np.arange(12.0).reshape(3, 4).T,
        np.array(["a", "bcd"]),
        np.array(2.0),
        np.zeros((0, 3)),
        np.array([True, False]),
        DiagonalPotential(np.ones(3), np.arange(3.0)),
        Nested(Nested(np.eye(2), (1, Nested(None)))),
    ],
    ids=repr,
)
def test_codec_round_trip(value, inline):
    arrays = None if inline else {}
    tree = json.loads(json.dumps(_codec.encode(value, arrays)))
    again = _codec.decode(tree, arrays, {__name__})
    assert type(again) is type(value)
    assert _codec.fingerprint(again) == _codec.fingerprint(value)
    if isinstance(value, np.ndarray):
        assert again.dtype == value.dtype
        assert again.flags.c_contiguous == value.flags.c_contiguous
        np.testing.assert_array_equal(again, value)


def test_fingerprints_differ():
    pairs = [1, 1.0, True, "1", None, (1,), [1], np.array(1), np.array([1]), np.float64(1)]
    pairs += [np.array([1, 2]), np.array([2, 1]), np.array([[1, 2]]), np.array([1.0, 2.0])]
    assert len({_codec.fingerprint(value) for value in pairs}) == len(pairs)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Nested(lambda x: x), r"value\.inner cannot be stored: it is a function"),
        (Nested((1, {2: 3})), r"value\.inner\.1 cannot be stored: it is a dict"),
        (np.array([None]), "array of dtype object"),
        (np.array(["2020-01-01"], "datetime64[D]"), "array of dtype datetime64"),
    ],
)
def test_what_cannot_be_stored(value, message):
    with pytest.raises(TypeError, match=message):
        _codec.encode(value)


def test_a_class_inside_a_function_cannot_be_stored(tmp_path):
    @dataclass(frozen=True)
    class Local(Normal):
        pass

    with pytest.raises(TypeError, match=r"model cannot be stored: its class .*Local is def"):
        sample(tmp_path / "run", model=Local())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "pgmult.sampling.store:os.system",
        "pgmult.sampling.store:Run",
        "pgmult.nowhere:X",
        "x:",
    ],
)
def test_decoding_makes_dataclasses_of_pgmult_only(name):
    with pytest.raises((ValueError, ImportError)):
        _codec.decode({"$class": name, "fields": {}})


def test_foreign_models_must_be_passed_and_match(run):
    with pytest.raises(ValueError, match="is a chain_models:Normal, not of pgmult: pass model="):
        pgmult.resume(run)
    with pytest.raises(
        ValueError, match=r"model must be that of the run, Normal\(scale=1.0\), got"
    ):
        resume(run, model=Normal(scale=2.0))
    with pytest.raises(ValueError, match=r"data must be that of the run .* its hash differs"):
        resume(run, data=Values(values().x + 1e-12))
    assert len(resume(run, data=None)["mean"]) == 2  # read back: its class came with the model


def test_a_run_of_pgmults_own_model_is_read_without_help(tmp_path):
    def callback(sweep):
        if (sweep.chain, sweep.index) == (1, 7):
            raise KeyboardInterrupt

    counts = np.random.default_rng(0).poisson(0.5, size=(12, 15))
    corpus = pgmult.topics.as_corpus(counts, vocabulary=[f"word {i}" for i in range(15)])
    options = {"draws": 12, "tune": 4, "chains": 2, "random_seed": 1, "cores": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = pgmult.sample(pgmult.topics.LDA(3), corpus, **options)
        pgmult.sample(
            pgmult.topics.LDA(3), corpus, store=tmp_path / "run", callback=callback, **options
        )
        assert pgmult.load(tmp_path / "run").num_chains == 1
        assert same(pgmult.resume(tmp_path / "run", cores=2), whole)


def test_another_version_is_mentioned(run, whole):
    meta = json.loads((run / "meta.json").read_text())
    (run / "meta.json").write_text(json.dumps(meta | {"version": "0.0.1"}))
    with pytest.warns(UserWarning, match=r"begun by pgmult 0\.0\.1 and goes on with"):
        assert same(resume(run), whole)


def test_nothing_is_a_pickle(run):
    for path in run.rglob("*.np?"):
        np.load(path, allow_pickle=False)
