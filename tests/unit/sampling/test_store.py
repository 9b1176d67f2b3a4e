"""The run directory: the same bits after every break, and clear words about damage."""

import errno
import json
import os
import random
import shutil
import subprocess
import sys
import tracemalloc
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from chain_models import Normal, NormalState, Values, same, values

import pgmult
from pgmult.core import sealed
from pgmult.core.potentials import DiagonalPotential
from pgmult.sampling import codec as _codec
from pgmult.sampling import store
from pgmult.sampling.store import RunReader, RunWriter, rectangle

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
    starts = [NormalState(mean, 2.0, 3, np.ones(20)) for mean in (1.0, 5.0)]

    def callback(sweep):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample(tmp_path / "run", starts=starts, cores=1, callback=callback)
    assert not (tmp_path / "run" / "chain-1" / "checkpoint.npz").exists()
    assert same(resume(tmp_path / "run"), sample(starts=starts))


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


@dataclass(frozen=True)
class Wide(Normal):
    """Variables whose axes have no labels, one of them without entries."""

    dims: ClassVar = Normal.dims | {"wide": ("row", "column"), "none": ("nothing",)}

    def wide(self, state, data):
        return np.zeros((3, 4), np.float32)

    def none(self, state, data):
        return np.zeros(0)


def test_shapes_before_the_first_draw(tmp_path):
    def stop(sweep):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample(tmp_path / "run", model=Wide(), keep=["wide", "none"], callback=stop, cores=1)
    with pytest.warns(UserWarning, match="there are no draws yet"):
        posterior = pgmult.load(tmp_path / "run")
    assert posterior["wide"].shape == (2, 0, 3, 4)
    assert posterior["wide"].dtype == np.float32
    assert posterior["none"].shape == (2, 0, 0)
    assert "wide  (row: 3, column: 4)" in repr(posterior)


def test_load_while_it_is_written(tmp_path, often):
    few = {"draws": 12, "tune": 2}
    whole = sample(**few)

    def callback(sweep):
        if (sweep.chain, sweep.index) == (1, 7):
            with pytest.warns(UserWarning, match=r"left out of 12 draws a chain: 1 \(5 draws\)"):
                posterior = pgmult.load(tmp_path / "run")
            np.testing.assert_array_equal(posterior["latent"], whole["latent"][:1])

    sample(tmp_path / "run", cores=1, callback=callback, **few)


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
    assert RunReader(run).counters(0).kept == 60
    for position in range(0, len(content), 11):
        changed = bytearray(content)
        changed[position] ^= 0x10
        checkpoint.write_bytes(changed)
        with pytest.raises(ValueError, match=r"checkpoint\.npz is damaged"):
            RunReader(run, Normal()).checkpoint(0)


def rewrite_meta(run, change):
    """Change ``meta.json`` and give it the checksum of what it then says."""
    meta = json.loads((run / "meta.json").read_text())
    change(meta)
    sealed.write_json(run / "meta.json", meta)


def test_a_newer_meta(run):
    rewrite_meta(run, lambda meta: meta.update(pgmult_run=99, version="7.0"))
    with pytest.raises(ValueError, match=r"reads schema 4, got 99 .*by pgmult 7\.0"):
        pgmult.load(run)


@pytest.mark.parametrize("text", ["{", "", "[]", '{"name": "another tool"}', "[" * 10**6])
@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_meta_that_is_none(run, text, is_sealed):
    content = text.encode()
    if is_sealed:
        content = sealed._sealed_json("meta.json", content)
    (run / "meta.json").write_bytes(content)
    for function in (pgmult.load, resume):
        with pytest.raises(ValueError, match=r"meta\.json is damaged, or not of"):
            function(run)


@pytest.mark.parametrize(
    "name",
    ["pgmult.__main__:x", "os:system", "pgmult.topics.models.lda:x", "pgmult.:x", "pgmult.x:x"],
)
def test_a_model_that_nobody_wrote(run, name):
    rewrite_meta(run, lambda meta: meta.update(model={"$class": name, "fields": {}}))
    if name.startswith("pgmult"):
        with pytest.raises(ValueError, match=r"meta\.json is damaged"):
            pgmult.load(run)
    with pytest.raises(ValueError, match=r"damaged|not of pgmult"):
        pgmult.resume(run, data=values())


def test_large_states_are_written_and_counted_without_copies(run):
    state = {"psi": np.ones((3000, 2000)), "seeds": np.arange(5)}

    def share_of_state(step):
        tracemalloc.start()
        try:
            step()
            return tracemalloc.get_traced_memory()[1] / state["psi"].nbytes
        finally:
            tracemalloc.stop()

    with RunWriter(run, Normal()) as writer:
        before = writer.counters(0)
        told = {"sweep": before.sweep, "seconds": before.seconds, "state": state}
        told = writer.checkpoint(0) | told
        chain = writer.chain(0)
        assert share_of_state(lambda: chain.commit(told)) < 0.5
        assert share_of_state(lambda: writer.counters(0)) < 0.2
        assert share_of_state(lambda: writer.checkpoint(0)) < 2.2  # its bytes, and the array
        assert writer.counters(0) == before
        found = writer.checkpoint(0)["state"]
    assert np.array_equal(found["psi"], state["psi"])


def test_a_file_of_another_chain_or_run_is_refused(run, tmp_path):
    """Whole as it is, it is in the wrong place."""
    sample(tmp_path / "other")
    for theirs in (run / "chain-0", tmp_path / "other" / "chain-1"):
        ours = tmp_path / theirs.parent.name / "copy"
        shutil.copytree(run, ours)
        shutil.copy(theirs / "checkpoint.npz", ours / "chain-1")
        for function in (pgmult.load, resume):
            with pytest.raises(ValueError, match=r"damaged, .* or was written for another place"):
                function(ours)
    part = some_part(run)
    other = sorted((run / "chain-0").glob("mean.*.npy"))[30]
    part.unlink()
    shutil.copy(other, run / "chain-1")
    with pytest.raises(ValueError, match="CRC-32"):
        pgmult.load(run)["mean"]


def test_a_lost_checkpoint_does_not_lose_the_draws(run):
    (run / "chain-1" / "checkpoint.npz").unlink()
    parts = sorted((run / "chain-1").iterdir())
    for function in (pgmult.load, resume):
        with pytest.raises(ValueError, match="is missing, and there are draws of that chain"):
            function(run)
    assert sorted((run / "chain-1").iterdir()) == parts


def put_in_place_of(part, content, start, stop):
    seed = RunReader(part.parents[1])._seed(f"{part.parent.name}/mean.{start:09}-{stop:09}")
    crc = store.zlib.crc32(content, seed)
    part.unlink()
    part.with_name(f"mean.{start:09}-{stop:09}.{crc:08x}.npy").write_bytes(content)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': " + "(" * 3000 + "), }",
        "-" * 9000 + "1",
        "",
    ],
    ids=lambda header: header[:50],
)
def test_a_part_that_claims_what_it_is_not(run, header):
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(8)
    part = some_part(run)
    put_in_place_of(part, content, *map(int, part.name.split(".")[1].split("-")))
    with pytest.raises(ValueError, match="is damaged"):
        pgmult.load(run)["mean"]


# Links


def test_links_are_not_followed(run, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(run, elsewhere)
    for name in ("meta.json", "coords.npz", "inputs.npz", "chain-0/checkpoint.npz"):
        (run / name).unlink()
        (run / name).symlink_to(elsewhere / name)
        with pytest.raises(ValueError, match="it is no regular file"):
            (pgmult.load(run), resume(run, draws=80))
        (run / name).unlink()
        shutil.copy(elsewhere / name, run / name)
    shutil.rmtree(run / "chain-1")
    (run / "chain-1").symlink_to(elsewhere / "chain-1")
    for function in (pgmult.load, resume):
        with pytest.raises(ValueError, match="chain-1 of 2 chains is no folder"):
            function(run)
    (run / "chain-1").unlink()
    shutil.copytree(elsewhere / "chain-1", run / "chain-1")
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (run / "meta.json.tmp").symlink_to(precious)
    (run / "chain-0" / "checkpoint.npz.tmp").symlink_to(precious)
    assert same(resume(run, draws=70), sample(draws=70))
    (run / "lock").unlink()
    (run / "lock").symlink_to(tmp_path / "new")
    with pytest.raises(OSError, match="cannot be written to"):
        resume(run)
    assert precious.read_text() == "mine"
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_are_not_waited_for(run):
    (run / "coords.npz").unlink()
    os.mkfifo(run / "coords.npz")
    with pytest.raises(ValueError, match="it is no regular file"):
        pgmult.load(run)


# Flipped bits

READERS = (
    pgmult.load,
    lambda path: resume(path, draws=70),
    lambda path: resume(path, data=None, draws=70),
)


@pytest.mark.parametrize("number", [30, pytest.param(600, marks=pytest.mark.slow)])
def test_no_flipped_bit_passes(tmp_path, whole, number):
    """A single bit, anywhere in any file: refused by name, or the result is the same."""
    run, copy = tmp_path / "run", tmp_path / "copy"
    sample(run)
    expected = [whole, *[sample(draws=70)] * 2]
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.stat().st_size)
    moments = random.Random(number)
    complaints = []
    for i in range(number):
        path = files[i // 3 % len(files)]
        there = path.read_bytes()
        bit = moments.randrange(8 * len(there))
        shutil.copytree(run, copy)
        changed = bytearray(there)
        changed[bit // 8] ^= 1 << bit % 8
        (copy / path.relative_to(run)).write_bytes(changed)
        try:
            assert same(READERS[i % 3](copy), expected[i % 3]), f"bit {bit} of {path}"
        except ValueError as error:
            complaints.append(str(error))
        shutil.rmtree(copy)
    assert all(str(copy) in complaint for complaint in complaints)
    assert len(complaints) > 0.8 * number, "whatever is read stands under a checksum"


def test_load_takes_two_words_for_damage(run):
    with pytest.raises(ValueError, match="damaged must be one of raise, drop, got 'ignore'"):
        pgmult.load(run, damaged="ignore")


# Directories that are not ours


def test_foreign_directories(tmp_path, run):
    with pytest.raises(FileExistsError, match=r"holds a run \(pgmult\.resume goes on"):
        sample(run)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"")
    with pytest.raises(FileExistsError, match="this one holds other files"):
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


CREATOR = """
import sys, warnings
warnings.simplefilter("ignore")
import pgmult
from chain_models import Normal, values
seed = int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
try:
    found = pgmult.sample(
        Normal(), values(), draws=30, tune=0, chains=2, random_seed=seed, store=sys.argv[1],
        keep=["mean"], callback=lambda sweep: __import__("time").sleep(0.001),
    )
except (FileExistsError, BlockingIOError) as error:
    print("refused", type(error).__name__)
else:
    print("drew", found.attrs["random_seed"], found["mean"].tobytes().hex())
"""


@pytest.mark.slow
def test_two_creators_at_once(tmp_path):
    """One has the run, whole; the other is told, and is never given the draws of the first."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for attempt in range(5):
        path = tmp_path / f"run-{attempt}"
        children = [
            subprocess.Popen(
                [sys.executable, "-c", CREATOR, str(path), str(seed)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
            )
            for seed in range(2)
        ]  # fmt: skip
        for child in children:
            assert child.stdout.readline() == "ready\n"
        for child in children:
            child.stdin.write("\n")
            child.stdin.flush()
        said = [child.communicate(timeout=60)[0].split() for child in children]
        (winner,) = [words for words in said if words[0] == "drew"]
        (loser,) = [words for words in said if words[0] == "refused"]
        assert loser[1] in ("FileExistsError", "BlockingIOError")
        seed = said.index(winner)
        expected = sample(draws=30, tune=0, random_seed=seed, keep=["mean"])["mean"]
        assert winner[1:] == [str(seed), expected.tobytes().hex()]
        assert pgmult.load(path)["mean"].tobytes() == expected.tobytes()


def test_the_lock_is_held_from_the_look_to_the_end(tmp_path, monkeypatch):
    """A run that another process began between the first look and the lock is left alone."""
    lock, begun = sealed.locked, []

    def slowly(folder, *words):
        if not begun:
            begun.append(True)
            sample(folder)
        return lock(folder, *words)

    monkeypatch.setattr(sealed, "locked", slowly)
    with pytest.raises(FileExistsError, match="holds a run"):
        sample(tmp_path / "run", random_seed=1)
    assert pgmult.load(tmp_path / "run").attrs["random_seed"] == OPTIONS["random_seed"]


def test_unwritable_directories(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        sample(tmp_path / "file" / "run")
    (tmp_path / "run").mkdir(mode=0o500)
    if os.geteuid() == 0:  # whom no mode stops

        def refuse(*arguments, **more):
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(sealed, "open", refuse, raising=False)
    with pytest.raises(PermissionError, match=r"directory cannot be written to: Perm.*run"):
        sample(tmp_path / "run")


def test_begun_and_killed_before_the_data_was_written(run, whole):
    for chain in ("chain-0", "chain-1"):
        shutil.rmtree(run / chain)
        (run / chain).mkdir()
    (run / "inputs.npz").rename(run / "inputs.npz.tmp")
    with pytest.warns(UserWarning, match="no draws yet"):
        pgmult.load(run)
    with pytest.raises(FileNotFoundError, match="stopped before its data was written"):
        resume(run)
    assert same(sample(run), whole)


# A full disk


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB, where one can be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_is_full(small_disk, often):
    """The error names the file, what was committed is there, and with room the run goes on."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(150_000))
    with pytest.raises(OSError, match=r"No space left on device: '.*run/chain-0/") as caught:
        sample(small_disk / "run", chains=1)
    assert caught.value.errno == errno.ENOSPC
    assert not list((small_disk / "run").rglob("*.tmp"))
    expected = sample(chains=1)
    posterior = pgmult.load(small_disk / "run")
    kept = posterior.num_draws
    assert kept > 0
    np.testing.assert_array_equal(posterior["latent"], expected["latent"][:, :kept])
    ballast.unlink()
    moved = small_disk.parent / "moved"
    shutil.copytree(small_disk / "run", moved)
    assert same(resume(moved), expected)


def test_a_disk_too_full_to_begin(tmp_path, monkeypatch, whole):
    """Whichever write of the creation fails, the same call succeeds later."""
    for stage in range(3):
        left = [stage]

        def failing(handle, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", failing)
            with pytest.raises(OSError, match=r"No space left on device: '.*run"):
                sample(tmp_path / "run")
    assert same(sample(tmp_path / "run"), whole)


def test_a_disk_that_refuses(tmp_path, whole, monkeypatch):
    """Writes begin to fail in the middle of a run: what was committed before is readable."""
    written = []
    write = sealed.write

    def failing(path, content, **more):
        written.extend([path] if path.suffix == ".npy" else [])
        if len(written) > 150:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, content, **more)

    with monkeypatch.context() as patch:
        patch.setattr(sealed, "write", failing)
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
        ValueError, match=r"model must be that of the draws in .*, Normal\(scale=1.0\), got"
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
    rewrite_meta(run, lambda meta: meta.update(version="0.0.1"))
    with pytest.warns(UserWarning, match=r"begun by pgmult 0\.0\.1 and goes on with"):
        assert same(resume(run), whole)


def test_nothing_is_a_pickle(run):
    for path in run.rglob("*.np?"):
        np.load(path, allow_pickle=False)


class TestEvery:
    """Of large variables only every so manyth draw is kept."""

    KEEP: ClassVar[dict[str, int]] = {"mean": 1, "latent": 4}

    def same_but_fewer(self, run, whole):
        kept = whole["latent"][:, 3::4].astype(np.float32)
        np.testing.assert_array_equal(run["latent"], kept)
        np.testing.assert_array_equal(run["mean"], whole["mean"][:, : run.num_draws])
        assert run.every == {"latent": 4}
        both = run.together("mean", "latent")
        np.testing.assert_array_equal(both["mean"], whole["mean"][:, 3::4])
        np.testing.assert_array_equal(both["latent"], kept)

    def test_in_memory_and_on_disk(self, tmp_path, whole):
        for run in (sample(keep=self.KEEP), sample(tmp_path / "run", keep=self.KEEP)):
            self.same_but_fewer(run, whole)
            assert run.dims["latent"][:2] == ("chain", "every_4")
            assert run.whole().num_draws == 15
            assert "latent" not in run.convergence_problems()

    def test_in_one_piece_or_resumed(self, tmp_path, often, whole):
        sample(tmp_path / "run", keep=self.KEEP, draws=30)
        again = resume(tmp_path / "run", draws=60)
        self.same_but_fewer(again, whole)
        again.save(tmp_path / "saved")
        self.same_but_fewer(pgmult.load(tmp_path / "saved"), whole)

    def test_damage_costs_what_comes_after_it(self, tmp_path, often):
        path = tmp_path / "run"
        sample(path, keep=self.KEEP)
        part = next((path / "chain-0").glob("latent.000000009-*"))
        part.write_bytes(part.read_bytes()[:-1])
        with pytest.raises(ValueError, match="damaged"):
            pgmult.load(path)["latent"]
        with pytest.warns(UserWarning, match="undamaged"):
            assert pgmult.load(path, damaged="drop").num_draws == 39

    def test_damage_between_the_ends_of_other_files(self, tmp_path, whole):
        path = tmp_path / "run"
        sample(path, keep=self.KEEP, draws=30)
        resume(path, draws=60)
        part = next((path / "chain-0").glob("latent.000000007-*"))
        part.write_bytes(part.read_bytes()[:-1])
        with pytest.warns(UserWarning, match="undamaged"):
            left = pgmult.load(path, damaged="drop")
        assert left.num_draws == 31
        np.testing.assert_array_equal(left["mean"], whole["mean"][:, :31])
        assert left["latent"].shape[:2] == (len(whole["mean"]), 7)

    @pytest.mark.parametrize(
        ("keep", "message"),
        [({"latent": 0}, "at least 1"), ({"latent": 61}, "at most the 60 draws"), ({1: 2}, "keep")],
    )
    def test_refused(self, keep, message):
        with pytest.raises((ValueError, TypeError), match=message):
            sample(keep=keep)
