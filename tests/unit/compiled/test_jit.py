"""The cache of machine code: fresh after an edit, warm in a second process, private, optional."""

import ast
import errno
import gc
import json
import os
import pickle
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numba
import pytest

import pgmult
from pgmult.compiled import jit

DECORATOR = Path(jit.__file__)
COMPILED = [p for p in Path(pgmult.__file__).parent.rglob("*.py") if p.parent.name == "compiled"]
slow = partial(pytest.param, marks=pytest.mark.slow)
HELPER = """
from .jit import jit

@jit
def helper(x):
    return x + {number}
"""
CALLER = """
from .jit import jit
from .helper import helper

@jit
def caller(x):
    return 2 * helper(x)
"""
REPORT = """
import json
from copied.compiled import jit
from copied.compiled.caller import caller
answer = caller(1)
print(json.dumps({
    "answer": answer,
    "hits": sum(caller.stats.cache_hits.values()) if hasattr(caller, "stats") else None,
    "folder": str(jit.cache_directory()),
}))
"""


@pytest.fixture
def package(tmp_path):
    """A package of its own with the decorator, a helper and a caller in another file."""
    compiled = tmp_path / "site" / "copied" / "compiled"
    compiled.mkdir(parents=True)
    (compiled.parent / "__init__.py").touch()
    (compiled / "__init__.py").touch()
    shutil.copy(DECORATOR, compiled)
    (compiled / "helper.py").write_text(HELPER.format(number=1))
    (compiled / "caller.py").write_text(CALLER)
    return compiled


def run(package, script=REPORT, /, **environment):
    """The answer and the cache hits of a caller in a fresh interpreter."""
    inherited = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "SYSTEMROOT")}
    finished = subprocess.run(
        [sys.executable, "-c", script],
        cwd=package.parents[1],
        env={**inherited, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    return json.loads(finished.stdout)


@pytest.mark.slow
def test_the_second_process_is_warm_and_an_edited_helper_is_seen(package, tmp_path):
    cache = str(tmp_path / "cache")
    cold = run(package, PGMULT_CACHE_DIR=cache)
    assert (cold["answer"], cold["hits"]) == (4, 0)
    assert Path(cold["folder"]).parent == tmp_path / "cache"
    warm = run(package, PGMULT_CACHE_DIR=cache)
    assert (warm["answer"], warm["hits"]) == (4, 1)

    (package / "helper.py").write_text(HELPER.format(number=10))
    edited = run(package, PGMULT_CACHE_DIR=cache)
    assert (edited["answer"], edited["hits"]) == (22, 0)


@pytest.mark.slow
def test_without_the_hash_an_edited_helper_would_not_be_seen(package, tmp_path):
    decorator = (package / "jit.py").read_text()
    assert "return digest.hexdigest()[:16]" in decorator
    stale = decorator.replace("return digest.hexdigest()[:16]", "return 'constant'")
    (package / "jit.py").write_text(stale)
    cache = str(tmp_path / "cache")
    assert run(package, PGMULT_CACHE_DIR=cache)["answer"] == 4
    (package / "helper.py").write_text(HELPER.format(number=10))
    assert run(package, PGMULT_CACHE_DIR=cache)["answer"] == 4


@pytest.mark.slow
def test_an_edit_costs_only_what_depends_on_it(package, tmp_path):
    cache = str(tmp_path / "cache")
    run(package, PGMULT_CACHE_DIR=cache)
    (package / "stranger.py").write_text(HELPER.format(number=5))
    assert run(package, PGMULT_CACHE_DIR=cache)["hits"] == 1


@pytest.mark.parametrize(
    "statement",
    [
        "from copied.compiled.helper import helper",
        slow("from copied.compiled.helper import (\n    helper,  # the one\n)"),
        slow("from copied.compiled import helper as place\nhelper = place.helper"),
        slow("from copied.compiled import (\n    helper as h,\n)\nhelper = h.helper"),
    ],
)
@pytest.mark.slow
def test_a_helper_in_another_folder_is_seen(package, tmp_path, statement):
    """A family's compiled code stands on the folder that all share."""
    family = package.parent / "family" / "compiled"
    family.mkdir(parents=True)
    (family.parent / "__init__.py").touch()
    (family / "__init__.py").touch()
    caller = CALLER.replace("from .helper import helper", statement)
    caller = caller.replace("from .jit", "from copied.compiled.jit")
    (family / "caller.py").write_text(caller)
    cache = {"PGMULT_CACHE_DIR": str(tmp_path / "cache")}
    script = REPORT.replace("copied.compiled.caller", "copied.family.compiled.caller")
    assert run(package, script, **cache)["answer"] == 4
    assert run(package, script, **cache)["hits"] == 1
    (package / "helper.py").write_text(HELPER.format(number=10))
    edited = run(package, script, **cache)
    assert (edited["answer"], edited["hits"]) == (22, 0)


@pytest.mark.parametrize(
    "path", COMPILED, ids=lambda path: f"{path.parent.parent.name}-{path.stem}"
)
def test_the_hash_follows_every_import(path):
    """Written in a way that the hash does not see, an import would leave stale machine code."""
    root = Path(pgmult.__file__).parents[1]
    expected = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith("pgmult") for alias in node.names)
        if not isinstance(node, ast.ImportFrom):
            continue
        module = node.module or ""
        if not node.level and not module.startswith("pgmult"):
            continue
        place = (path.parent if node.level else root).joinpath(*filter(None, module.split(".")))
        wanted = [place.with_suffix(".py"), *(place / f"{a.name}.py" for a in node.names)]
        expected |= {file for file in wanted if file.is_file()}
    assert set(jit.imported_files(path)) == expected


@pytest.mark.slow
def test_a_read_only_install_without_a_writable_home(package, tmp_path):
    for folder in (package, package.parent):
        folder.chmod(0o555)
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o700)
    before = sorted(package.rglob("*"))
    for hits in (0, 1):
        report = run(package, HOME=os.devnull, TMPDIR=str(scratch))
        assert (report["answer"], report["hits"]) == (4, hits)
        assert Path(report["folder"]).parents[1] == scratch
    assert sorted(package.rglob("*")) == before


@pytest.mark.slow
def test_nowhere_to_write(package):
    """Compiled in memory, and not a word."""
    report = run(package, HOME=os.devnull, PGMULT_CACHE_DIR=os.path.join(os.devnull, "cache"))
    assert report == {"answer": 4, "hits": 0, "folder": "None"}


@pytest.mark.slow
def test_the_cache_can_be_switched_off(package, tmp_path):
    for _ in range(2):
        report = run(package, PGMULT_CACHE="0", PGMULT_CACHE_DIR=str(tmp_path / "cache"))
        assert report == {"answer": 4, "hits": 0, "folder": "None"}
    assert not (tmp_path / "cache").exists()


@pytest.mark.slow
def test_without_compilation_the_functions_are_plain_python(package, tmp_path):
    report = run(package, NUMBA_DISABLE_JIT="1", PGMULT_CACHE_DIR=str(tmp_path / "cache"))
    assert (report["answer"], report["hits"]) == (4, None)


# ------------------------------------------------------------------ which folders are trusted


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """The real decorator's functions, forgetful and pointed at a folder of this test."""
    monkeypatch.delenv("PGMULT_CACHE", raising=False)
    monkeypatch.setenv("PGMULT_CACHE_DIR", str(tmp_path / "cache"))
    jit.cache_directory.cache_clear()
    yield tmp_path / "cache"
    jit.cache_directory.cache_clear()


def test_a_new_folder_is_private(fresh):
    folder = jit.cache_directory()
    assert folder.parent == fresh
    if os.name == "posix":
        assert [f.stat().st_mode & 0o777 for f in (fresh, folder)] == [0o700, 0o700]
    assert f"py{sys.version_info.major}{sys.version_info.minor}-numba" in folder.name


@pytest.mark.skipif(os.name != "posix", reason="permission bits are of Unix")
@pytest.mark.parametrize("mode", [0o770, 0o720, 0o707, 0o702])
@pytest.mark.parametrize("level", ["root", "folder"])
def test_a_folder_that_others_may_write_is_refused(fresh, mode, level):
    folder = jit.cache_directory()
    (fresh if level == "root" else folder).chmod(mode)
    jit.cache_directory.cache_clear()
    assert jit.cache_directory() is None


@pytest.mark.skipif(os.name != "posix", reason="owners are of Unix")
def test_a_folder_of_somebody_else_is_refused(fresh, monkeypatch):
    assert jit.cache_directory() is not None
    jit.cache_directory.cache_clear()
    monkeypatch.setattr(os, "getuid", lambda: fresh.stat().st_uid + 1)
    assert jit.cache_directory() is None


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_a_link_to_somewhere_else_is_refused(fresh, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    fresh.symlink_to(tmp_path / "elsewhere")
    assert jit.cache_directory() is None


def test_a_file_in_the_way_is_not_an_error(fresh):
    fresh.write_text("not a folder")
    assert jit.cache_directory() is None


def test_a_refused_home_falls_back_to_the_temporary_folder(fresh, monkeypatch, tmp_path):
    monkeypatch.delenv("PGMULT_CACHE_DIR")
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, os.path.join(os.devnull, "cache"))
    monkeypatch.setattr(jit.tempfile, "gettempdir", lambda: str(tmp_path))
    assert jit.cache_directory().parent.parent == tmp_path


def test_no_temporary_folder_either(fresh, monkeypatch):
    def no_folder():
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.delenv("PGMULT_CACHE_DIR")
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, os.path.join(os.devnull, "cache"))
    monkeypatch.setattr(jit.tempfile, "gettempdir", no_folder)
    assert jit.cache_directory() is None


@pytest.mark.skipif(jit.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_full_disk_costs_the_cache_and_not_the_result(fresh, monkeypatch):
    def full(self, sig, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(jit.FunctionCache, "save_overload", full)
    assert jit.jit(lambda x: 3 * x)(2) == 6
    assert list(jit.cache_directory().iterdir()) == []


@pytest.mark.skipif(jit.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("entry", [b"", b"not a pickle", b"cpgmult.compiled.jit\nRenamed\n."])
def test_an_entry_that_is_damaged_or_of_another_version_is_compiled_anew(fresh, entry):
    def triple(x):
        return 3 * x

    assert jit.jit(triple)(2) == 6
    (index,) = jit.cache_directory().glob("*.nbi")
    index.write_bytes(pickle.dumps(numba.__version__) + entry)
    assert jit.jit(triple)(2) == 6
    again = jit.jit(triple)
    assert (again(2), sum(again.stats.cache_hits.values())) == (6, 1)


INTERRUPTED = """
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent may ignore it
import numpy as np
from pgmult.compiled.jit import jit

@jit
def total(x):
    return x.size + x.sum()

left = int(sys.argv[1])

def count(*where):  # calls and returns, of whichever thread compiles
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGINT)

threading.setprofile(count)
sys.setprofile(count)
try:
    total(np.ones(3))
except KeyboardInterrupt:
    print("interrupted")
sys.setprofile(None)
threading.setprofile(None)
print(total(np.ones(3)), total(np.ones(3, np.float32)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", [100_000, 118_000, 120_000, 122_000, 400_000])
def test_an_interrupted_compilation_leaves_a_compiler_that_works(moment):
    """One of these moments lies where numba fills its tables; elsewhere it may swallow Ctrl-C."""
    environment = os.environ | {"PGMULT_CACHE": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("NUMBA_DISABLE_JIT", None)
    finished = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(moment)],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.split() == ["interrupted", "6.0", "6.0"]


def test_errors_of_the_compiler_come_through():
    @jit.jit
    def wrong(x):
        return x.nowhere

    if hasattr(wrong, "signatures"):
        with pytest.raises(numba.core.errors.TypingError, match="nowhere"):
            wrong(1.0)


def test_garbage_is_looked_for_seldom_while_something_compiles_and_as_before_then():
    before = gc.get_threshold()
    with jit.collecting_seldom():
        with jit.collecting_seldom():
            assert gc.get_threshold()[0] > before[0]
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before


def test_a_collector_that_is_switched_off_stays_off():
    before = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with jit.collecting_seldom():
            assert gc.get_threshold()[0] == 0
        assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)
