"""Every argument of every public entry, given a hundred odd values: right, or one clear sentence.

An odd value may be taken (many are fine where they stand), or refused by a ValueError, TypeError or
MemoryError of this package that names the argument. Anything else is a leak: another exception, one
from inside numpy or compiled code, a call that hangs, a process that dies.
"""

import itertools
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
SECONDS = 20.0  # of one call; compilation takes some of the first
WORKERS = 2

# What users get and do not make: reading them is tested where they are made.
RESULTS = {
    "datasets": {"Source", "TextOptions", "associated_press", "us_names"},
    "fields": {"CountField", "Coverage", "FieldPredictions"},
    "mixtures": {"Alignments"},
    "regression": {"CountedRows", "LabelledRows"},
    "sequences": {
        "Forecast",
        "Imputed",
        "LatentAxes",
        "SequenceScore",
        "Sequences",
        "StepProbs",
        "PredictsSteps",
        "VectorSequences",
    },
    "topics": {
        "AlignedTopics",
        "CTMFit",
        "CompletionScore",
        "Corpus",
        "CorrelationGraph",
        "DocumentScore",
        "DocumentTopics",
        "FoldedIn",
        "HeldOutScore",
        "PairCorrelation",
        "RunMatches",
        "StructuredCorpus",
        "TimedCorpus",
        "TopDocument",
        "TopWord",
        "TopicCorrelations",
        "TopicDraw",
        "TopicMatches",
        "TopicReport",
        "Candidate",
    },
    "testing": {"Verdict"},
    "variational": {
        "CollapsedFit",
        "CollapsedProblem",
        "Fit",
        "GaussianRows",
        "NonconjugateFit",
        "NonconjugateModel",
        "RegressionFit",
        "Site",
        "SiteFit",
    },
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
        for line in self._process.stdout:
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


def make_calls(first, last, found):
    """All outcomes of a range, from as many processes as it takes."""
    while first < last:
        for number, outcome in Worker(first, last).outcomes(first):
            found[number] = outcome
            first = number + 1
        if first >= last or (first not in found and number + 1 == first and outcome == "ok"):
            return


def test_every_public_entry_is_called():
    """A new name at a front door is added to the table, or to what is only got."""
    called = {name.split(".")[1] for name in front_doors.CALLS if "." in name}
    for room, results in RESULTS.items():
        public = set(getattr(pgmult, room).__all__)
        callables = {name for name in public if callable(getattr(getattr(pgmult, room), name))}
        assert callables - called - results == set(), room


@pytest.mark.slow
def test_no_odd_value_leaks():
    calls = front_doors.all_calls()
    found = {}
    bounds = [len(calls) * i // WORKERS for i in range(WORKERS + 1)]
    threads = [
        threading.Thread(target=make_calls, args=(first, last, found))
        for first, last in itertools.pairwise(bounds)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(calls)
    leaks = [
        f"{name}({argument}={label}): {found[number]}"
        for number, (name, argument, label) in enumerate(calls)
        if found[number] not in ("ok", "refused")
    ]
    kinds = [sum(outcome == kind for outcome in found.values()) for kind in ("ok", "refused")]
    print(f"{len(calls)} calls: {kinds[0]} taken, {kinds[1]} refused, {len(leaks)} leaked")
    assert leaks == []
