"""What models compile at first: the lists, and that other processes leave it on disk."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba import types
from numba.core.dispatcher import Dispatcher

from pgmult.compiled import ahead
from pgmult.compiled.ahead import as_type, compiling_ahead, kernels
from pgmult.compiled.jit import cache_directory
from tests.benchmarks.cold_start import FAMILIES, in_process

SETS = json.loads(Path(ahead.__file__).with_name("kernels.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kernel_set", sorted(SETS))
def test_every_kernel_of_a_list_is_there(kernel_set):
    for function, signature in kernels(kernel_set):
        assert isinstance(function, Dispatcher)
        assert len(signature) == function.py_func.__code__.co_argcount


def test_types_are_read_as_they_are_written():
    assert as_type("int64") == types.int64
    assert as_type("float64 2C") == types.Array(types.float64, 2, "C")
    kind = as_type(["pgmult.sequences.compiled.dynamics:ScaleParameters", "float64", "float64 1C"])
    assert kind.instance_class.__name__ == "ScaleParameters"
    assert kind.types == (types.float64, types.Array(types.float64, 1, "C"))


def test_a_model_without_a_list_has_nothing_to_compile(monkeypatch):
    monkeypatch.setattr(ahead.subprocess, "Popen", lambda *_, **how: pytest.fail("nothing to do"))
    with compiling_ahead("a model of one's own", cores=4):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_lists_name_what_a_first_draw_calls(family):
    folder = str(cache_directory().parent)
    warm = in_process(family, folder, "0")
    if warm["called"]:  # whatever was not on disk yet
        warm = in_process(family, folder, "0")
    assert warm["called"] == []
    assert sorted(map(json.dumps, warm["loaded"])) == sorted(map(json.dumps, SETS[warm["set"]]))


@pytest.mark.slow
def test_another_process_leaves_what_is_needed_on_disk_and_changes_no_draw(tmp_path):
    before, beside = str(tmp_path / "before"), str(tmp_path / "beside")
    program = "from pgmult.compiled.ahead import _help; _help('MultinomialHMM', 0, 1)"
    environment = os.environ | {"PGMULT_CACHE_DIR": before}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    alone = in_process("hmm", before, "0")
    assert alone["called"] == []
    assert in_process("hmm", beside, "1")["draws"] == alone["draws"]
