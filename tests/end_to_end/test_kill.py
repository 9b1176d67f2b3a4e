"""A run that is killed again and again, at random moments, is the run that was not.

As a script, this file is the process that gets killed: it begins or resumes the run in a
directory and prints a line for every commit.
"""

import os
import random
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from chain_models import Normal, same, values

import pgmult
from pgmult.sampling import store

SETTINGS = {"draws": 3000, "tune": 100, "chains": 3, "random_seed": 4, "keep": ["mean", "latent"]}
RUNS = 5
KILLS_A_RUN = 3


def begin_or_resume(path, share):
    """In a process of its own: spend a given share of time on commits."""
    store.FLUSH_SECONDS, store.FLUSH_SHARE = 0.0, share
    commit = store.ChainWriter.commit

    def reporting(writer, checkpoint):
        commit(writer, checkpoint)
        os.write(1, f"{writer._folder.name[-1]} {writer._kept}\n".encode())

    store.ChainWriter.commit = reporting
    warnings.simplefilter("ignore")
    begin, resume = pgmult.sample, pgmult.resume  # imported now
    os.write(1, b"ready\n")
    if (path / "inputs.npz").exists():
        resume(path, model=Normal(), data=values(), cores=2)
    else:
        begin(Normal(), values(), store=path, cores=2, **SETTINGS)


def killed_after(path, commits, seconds, share):
    """Run the process, kill it so many seconds after so many commits.

    Returns its exit code and what each chain had said to have committed.
    """
    command = [sys.executable, __file__, path, str(share)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), *sys.path]))
    }
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as child:
        assert child.stdout.readline() == b"ready\n"
        lines = [child.stdout.readline() for _ in range(commits)]
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.kill()
        committed = [0] * SETTINGS["chains"]
        for line in [*filter(None, lines), *child.stdout]:
            chain, kept = line.split()
            committed[int(chain)] = int(kept)
    return child.returncode, committed


@pytest.fixture(scope="module")
def unbroken():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pgmult.sample(Normal(), values(), **SETTINGS)


@pytest.mark.slow
def test_killed_runs_equal_the_unbroken_one(tmp_path, unbroken):
    seed = random.SystemRandom().randrange(2**32)
    print("moments drawn from seed", seed)  # which a failure shows
    moments = random.Random(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kills = unfinished = 0
        for i in range(RUNS):
            path = tmp_path / f"run-{i}"
            for _ in range(KILLS_A_RUN):
                code, committed = killed_after(
                    path,
                    commits=moments.randrange(10),
                    seconds=moments.uniform(0.0, 0.03),
                    share=moments.choice([0.5, 1e9]),
                )
                kills += code == -9
                if not (path / "meta.json").exists():
                    assert not any(committed)
                    continue
                posterior = pgmult.load(path)
                chains, draws = posterior.coords["chain"], posterior.num_draws
                unfinished += draws < SETTINGS["draws"] or len(chains) < SETTINGS["chains"]
                for name in posterior:
                    np.testing.assert_array_equal(posterior[name], unbroken[name][chains, :draws])
                kept = [store.RunReader(path).counters(c).kept for c in range(SETTINGS["chains"])]
                assert all(np.greater_equal(kept, committed)), (kept, committed)
            if not (path / "inputs.npz").exists():
                resumed = pgmult.sample(Normal(), values(), store=path, **SETTINGS)
            else:
                resumed = pgmult.resume(path, model=Normal(), data=values())
            assert same(resumed, unbroken)
            assert not list(path.rglob("*.tmp"))
    print(kills, "kills,", unfinished, "with draws or chains to go")
    assert kills >= 10
    assert unfinished >= 4


STAGES = [
    *(("write", i) for i in range(8)),
    *(("replace", i) for i in range(5)),
    *(("mkdir", i) for i in range(4)),
]
QUICK = [("write", 2), ("replace", 1)]


@pytest.mark.parametrize(
    ("act", "stage"),
    [pytest.param(*s, marks=[] if s in QUICK else pytest.mark.slow) for s in STAGES],
)
def test_killed_between_any_two_writes(tmp_path, unbroken, act, stage):
    """Kill half-way through a given file, or before one takes its name or a folder is made."""
    code = (
        "import io, os, signal, sys, warnings\n"
        "from pathlib import Path\n"
        "import pgmult\n"
        "from pgmult.core import sealed\n"
        "from pgmult.sampling import store\n"
        "from chain_models import Normal, values\n"
        "from test_kill import SETTINGS\n"
        "act, left = sys.argv[2], int(sys.argv[3])\n"
        "place = {'replace': os, 'mkdir': Path, 'write': sealed}[act]\n"
        "proper = getattr(place, act)\n"
        "def dying(path, *content, **options):\n"
        "    global left\n"
        "    left -= 1\n"
        "    if left < 0:\n"
        "        if act == 'write':\n"
        "            whole = content[0]\n"
        "            if callable(whole):\n"
        "                whole(buffer := io.BytesIO())\n"
        "                whole = buffer.getvalue()\n"
        "            path.with_name(path.name + '.0a.tmp').write_bytes(whole[: len(whole) // 2])\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    proper(path, *content, **options)\n"
        "setattr(place, act, dying)\n"
        "pgmult.sample(Normal(), values(), store=sys.argv[1], cores=1, **SETTINGS)\n"
    )
    here = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(here), *filter(None, sys.path)])}
    path = tmp_path / "run"
    dead = subprocess.run([sys.executable, "-c", code, path, act, str(stage)], env=environment)
    assert dead.returncode == -9
    assert act != "write" or list(path.rglob("*.tmp"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if (path / "meta.json").exists():
            pgmult.load(path)
        if (path / "inputs.npz").exists():
            resumed = pgmult.resume(path, model=Normal(), data=values())
        else:
            resumed = pgmult.sample(Normal(), values(), store=path, **SETTINGS)
    assert same(resumed, unbroken)
    assert not list(path.rglob("*.tmp"))


if __name__ == "__main__":
    begin_or_resume(Path(sys.argv[1]), float(sys.argv[2]))
