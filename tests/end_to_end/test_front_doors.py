"""Every argument of every public entry, given a hundred odd values: right, or one clear sentence.

An odd value may be taken (many are fine where they stand), or refused by a ValueError, TypeError or
MemoryError of this package that names the argument. Anything else is a leak: another exception, one
from inside numpy or compiled code, a call that hangs, a process that dies.

::

    PYTHONPATH=tests python tests/end_to_end/test_front_doors.py fields topics  # print what leaks
"""

import json
import queue
import subprocess
import sys
import threading
from pathlib import Path

import front_doors
import pytest

import pgmult

HERE = Path(__file__).parents[1]
SECONDS = 120.0  # of one call; compilation takes much of the first

ROOMS = sorted(set(map(front_doors.room_of, front_doors.CALLS)))

# What users get and do not make: reading them is tested where they are made.
RESULTS = {
    "datasets": {
        "Table",
        "state_of_the_union",
        "us_states",
        "berkeley_admissions",
        "newborns",
        "seattle_rain",
        "travel_modes",
    },
    "choice": {"ChoiceRows", "MixedLogitState"},
    "fields": {"Calibration", "CountField", "FieldPredictions"},
    "regression": {"AdditiveRows", "LeaveOneOut"},
    "sequences": {"Forecast", "Imputed", "Sequences", "StepProbs", "PredictsSteps"},
    "topics": {
        "CompletionScore",
        "TopicStart",
        "Corpus",
        "DocumentTopics",
        "FoldedIn",
        "NewDocuments",
        "PairCorrelation",
        "RunMatches",
        "StructuredCorpus",
        "TimedCorpus",
        "TopWord",
        "TopicCorrelations",
        "Content",
        "TopicShares",
        "GroupWords",
        "Quote",
        "Quotes",
        "TopicChoice",
        "TopicStability",
        "Candidate",
    },
    "testing": {"Verdict"},
    "variational": {"Fit", "GaussianRows", "Site"},
}


class Worker:
    """A process that makes a range of calls; a call that hangs costs the process, not the rest."""

    def __init__(self, first, last):
        command = [sys.executable, str(HERE / "front_doors.py"), str(first), str(last)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(None)

    def outcomes(self, first):
        """(number, outcome) of each call; the last may be that of a hang or a crash."""
        begun, patience = first, 120.0  # the first line waits for imports and what is drawn once
        while True:
            try:
                line = self._lines.get(timeout=patience)
            except queue.Empty:
                self._process.kill()
                self._process.wait()
                yield begun, f"leak: took more than {patience:.0f} s"
                return
            if line is None:
                code = self._process.wait()
                if code != 0:
                    yield begun, f"leak: the process died with code {code}"
                return
            message = json.loads(line)
            if "begins" in message:
                begun = message["begins"]
                patience = 120.0 if begun == first else SECONDS
            else:
                yield message["number"], message["outcome"]


def outcomes_of(room):
    """Every call of the entries of a room, and what came of it."""
    calls = front_doors.all_calls()
    numbers = [i for i, (name, _, _) in enumerate(calls) if front_doors.room_of(name) == room]
    first, last, found = numbers[0], numbers[-1] + 1, {}
    while first < last:
        for number, outcome in Worker(first, last).outcomes(first):
            found[number] = outcome
            first = number + 1
    return {calls[number]: outcome for number, outcome in found.items()}


def leaks_of(outcomes):
    """What was neither taken nor refused, in words."""
    return [
        f"{name}({argument}={label}): {outcome}"
        for (name, argument, label), outcome in outcomes.items()
        if outcome not in ("ok", "refused")
    ]


def test_every_public_entry_is_called():
    """A new name at a front door is added to the table, or to what is only got."""
    called = {name.split(".")[1] for name in front_doors.CALLS if "." in name}
    for room, results in RESULTS.items():
        family = getattr(pgmult, room)
        modules = [family, *(getattr(family, name) for name in front_doors.ROOMS.get(room, ()))]
        public = {
            name for module in modules for name in module.__all__ if callable(getattr(module, name))
        }
        assert public - called - results == set(), room


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")  # runs are short on purpose
@pytest.mark.parametrize("room", ROOMS)
def test_no_odd_value_leaks(room):
    assert leaks_of(outcomes_of(room)) == []


def main(rooms):
    """Print what leaks in some rooms, or in all, and how many calls there were."""
    for room in rooms or ROOMS:
        outcomes = outcomes_of(room)
        leaks = leaks_of(outcomes)
        print(*leaks, sep="\n")
        taken = list(outcomes.values()).count("ok")
        refused = len(outcomes) - taken - len(leaks)
        print(
            f"{room}: {len(outcomes)} calls, {taken} taken, {refused} refused, {len(leaks)} leaked"
        )


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="backslashreplace")
    main(sys.argv[1:])
