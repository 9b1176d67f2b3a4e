"""The annotations reach whoever uses the package: a small program of theirs is checked by mypy."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pgmult

PROGRAM = """
import numpy as np
import pgmult
from pgmult.topics import LDA, as_corpus

posterior = pgmult.sample(LDA(3), as_corpus(np.eye(4, dtype=int)), draws=5, random_seed=0)
reveal_type(posterior)
reveal_type(posterior["topics"])
reveal_type(pgmult.load("run").summary().rows)
pgmult.sample(LDA(3), as_corpus(np.eye(4)), draws="five")
posterior.nowhere
"""


def test_the_package_says_that_it_is_typed():
    assert (Path(pgmult.__file__).parent / "py.typed").is_file()


@pytest.mark.slow
def test_a_users_program_is_checked(tmp_path):
    """Revealed types are those of the package, and its two mistakes are the only ones found."""
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=cache"]
    installed = {"PYTHONPATH": str(Path(pgmult.__file__).parents[1])}  # believed for py.typed alone
    checked = subprocess.run(
        [*command, "program.py"], cwd=tmp_path, env=os.environ | installed,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    notes = [line.split("note: ")[1] for line in checked.stdout.splitlines() if "note: Rev" in line]
    assert notes[0] == 'Revealed type is "pgmult.sampling.posterior.Posterior"', checked.stdout
    assert "ndarray" in notes[1]
    assert notes[2].replace("builtins.", "") == 'Revealed type is "tuple[str, ...]"'
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    assert len(errors) == 2, checked.stdout
    assert "[arg-type]" in errors[0]
    assert "[attr-defined]" in errors[1]
