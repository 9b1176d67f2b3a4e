"""What a newcomer waits for: seconds to the first draw of each family, and what compiles meanwhile.

    python -m tests.benchmarks.cold_start [FAMILY ...] [--functions 15]
    python -m tests.benchmarks.cold_start [FAMILY ...] --record
    python -m tests.benchmarks.cold_start --command "regression fit survey.csv 'vote ~ s(age)'"

Each family runs in processes of its own on tiny data: with an empty cache of machine code, again
with what that left there, and with an empty cache and other processes that compile too. CPU seconds
of compiling are by function, without those that it calls, and for sequences those of a page are
among them. ``--record`` writes which functions each family calls first, for
`pgmult.compiled.ahead`. ``--command`` times a command line to its first page and to its end, with
an empty cache and with what that left there; ``--out`` is added. For a processor without AVX-512
set ``NUMBA_CPU_NAME=haswell`` and ``NUMBA_CPU_FEATURES=+avx2,+fma,+bmi,+bmi2,+popcnt``.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np
from numba.core import event, types
from numba.core.dispatcher import Dispatcher

from pgmult.compiled import ahead
from pgmult.compiled.ahead import as_type
from pgmult.core.typing import traits_of


def _topics() -> tuple[Any, Any]:
    from pgmult.topics import CorrelatedTopics, as_corpus

    return CorrelatedTopics(3), as_corpus(np.random.default_rng(0).poisson(2.0, size=(8, 12)))


def _structural() -> tuple[Any, Any]:
    from pgmult.topics import StructuralTopics, with_covariates

    counts = np.random.default_rng(0).poisson(2.0, size=(8, 12))
    columns = {"x": np.arange(8.0), "who": ["a", "b"] * 4, "whose": list("ccddeeff")}
    return StructuralTopics(3), with_covariates(
        counts, columns, "~ who + s(x) + (1 | whose)", content="~ who"
    )


def _dynamic() -> tuple[Any, Any]:
    from pgmult.topics import DynamicTopics, as_timed_corpus

    counts = np.random.default_rng(0).poisson(2.0, size=(8, 12))
    return DynamicTopics(3), as_timed_corpus(counts, np.arange(8) // 4)


def _lds() -> tuple[Any, Any]:
    from pgmult.sequences import MultinomialLDS, as_sequences

    return MultinomialLDS(2), as_sequences(["abcabcab", "bca"])


def _hmm() -> tuple[Any, Any]:
    from pgmult.sequences import MultinomialHMM, as_sequences

    return MultinomialHMM(2), as_sequences(["abcabcab", "bca"])


def _trend() -> tuple[Any, Any]:
    from pgmult.sequences import MultinomialTrend, as_sequences

    return MultinomialTrend(8), as_sequences([np.random.default_rng(0).poisson(9.0, size=(8, 3))])


def _field(structure: str) -> tuple[Any, Any]:
    from pgmult.fields import MultinomialGP, as_field
    from pgmult.fields.covariances import Matern

    counts = np.random.default_rng(0).poisson(2.0, size=(6, 3))
    data = as_field(np.arange(6.0), counts, new_inputs=[6.0])
    return MultinomialGP(Matern(1.5), structure=structure), data


def _table() -> tuple[Any, Any]:
    from pgmult.fields import MultinomialGP, as_field
    from pgmult.fields.covariances import Matern

    counts = np.random.default_rng(0).poisson(2.0, size=(6, 3))
    places = np.array([[t, s] for t in range(3) for s in range(2)], dtype=float)
    covariance = Matern(1.5, active=[0]) * Matern(0.5, active=[1])
    data = as_field(places, counts, new_inputs=[[3.0, 0.0]])
    return MultinomialGP(covariance, overdispersion=0.05, structure="separable"), data


def _choice() -> tuple[Any, Any]:
    import pgmult
    from pgmult.choice import MixedLogit

    rng = np.random.default_rng(0)
    table = {
        "who": np.arange(60) // 6, "trip": np.arange(60) // 3, "taken": np.arange(60) % 3 == 0,
        "x": rng.normal(size=60), "z": rng.normal(size=60),
    }  # fmt: skip
    data = pgmult.read(table).choices("taken ~ x + z + (x + z | who)", occasion="trip")
    return MixedLogit(), data


def _additive() -> tuple[Any, Any]:
    import pgmult
    from pgmult.regression import AdditiveRegression

    rng = np.random.default_rng(0)
    table = {"y": rng.choice(["a", "b", "c"], size=60), "x": rng.normal(size=60)}
    table["g"] = np.arange(60) % 25  # many levels: both forms of factors are used
    return AdditiveRegression(), pgmult.read(table).rows("y ~ x + (1 | g)")


FAMILIES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "topics": _topics,
    "structural": _structural,
    "dynamic": _dynamic,
    "lds": _lds,
    "hmm": _hmm,
    "trend": _trend,
    "dense": lambda: _field("dense"),
    "separable": _table,
    "state_space": lambda: _field("state_space"),
    "additive": _additive,
    "choice": _choice,
}


_PAGES = ("lds", "hmm")  # whose reports compile more than draws do
_READ_LONG = ("topics", "structural", "dynamic")  # others compile while their data are read


class _Compilations(event.Listener):  # type: ignore[misc]
    """CPU seconds of each function's own compilation; what was called from Python, and took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.times: dict[str, int] = defaultdict(int)
        self.called: list[tuple[str, list[Any]]] = []
        self.took: list[float] = []
        self._open: list[list[float]] = []

    def on_start(self, event: Any) -> None:
        if not self._open:
            function = event.data["dispatcher"].py_func
            place = f"{function.__module__}:{function.__qualname__}"
            self.called.append((place, [_written(kind) for kind in event.data["args"]]))
        self._open.append([process_time(), 0.0])

    def on_end(self, event: Any) -> None:
        began, callees = self._open.pop()
        took = process_time() - began
        name = event.data["dispatcher"].__name__
        self.seconds[name] += took - callees
        self.times[name] += 1
        if self._open:
            self._open[-1][1] += took
        else:
            self.took.append(took)


def _written(kind: Any) -> Any:
    """A type as `pgmult.compiled.ahead.as_type` reads it."""
    if isinstance(kind, types.NamedTuple | types.NamedUniTuple):
        name = f"{kind.instance_class.__module__}:{kind.instance_class.__qualname__}"
        return [name, *map(_written, kind.types)]
    if isinstance(kind, types.BaseTuple):
        return ["tuple", *map(_written, kind.types)]
    if not isinstance(kind, types.Array):
        return str(kind)
    written = f"{kind.dtype} {kind.ndim}{kind.layout}"
    if as_type(written) != kind:
        raise TypeError(f"no way to write {kind}: see pgmult.compiled.ahead.as_type")
    return written


def _first_draw(family: str) -> dict[str, Any]:
    import pgmult

    model, data = FAMILIES[family]()
    listener = _Compilations()
    wall, cpu = perf_counter(), process_time()
    states = ["states"] if "states" in model.dims else []
    with event.install_listener("numba:compile", listener):
        posterior = pgmult.sample(
            model, data, draws=20, tune=1, chains=1, random_seed=0, progressbar=False,
            keep=[*traits_of(model).default_keep, *(states if family in _PAGES else ())],
        )  # fmt: skip
        wall, cpu, drawn = perf_counter() - wall, process_time() - cpu, len(listener.called)
        if family in _PAGES:
            posterior.report()
    return {
        "wall": wall,
        "cpu": cpu,
        "drawn": drawn,
        "set": traits_of(model).kernel_set,
        "called": listener.called,
        "took": listener.took,
        "loaded": _loaded(),
        "draws": posterior.sample_stats["log_likelihood"].ravel().tolist(),
        "functions": sorted(
            ((seconds, name, listener.times[name]) for name, seconds in listener.seconds.items()),
            reverse=True,
        ),
    }


def _loaded() -> list[tuple[str, list[Any]]]:
    """Every compiled function that is in memory; with a warm cache, those called from Python."""
    modules = [module for name, module in sys.modules.items() if name.startswith("pgmult")]
    functions = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Dispatcher)
    }
    return [
        (f"{f.py_func.__module__}:{f.py_func.__qualname__}", [_written(kind) for kind in kinds])
        for f in functions
        for kinds in f.signatures
    ]


def in_process(family: str, folder: str, processes: str) -> dict[str, Any]:
    """The first draw of a new process that keeps its machine code in `folder`."""
    environment = os.environ | {"PGMULT_CACHE_DIR": folder, "PGMULT_COMPILE_AHEAD": processes}
    command = [sys.executable, "-W", "ignore", "-m", __spec__.name, family, "--inside"]
    return dict(json.loads(subprocess.check_output(command, env=environment, text=True)))


def record(families: list[str]) -> None:
    """Write what each family calls first, for `pgmult.compiled.ahead`."""
    path = Path(ahead.__file__).with_name("kernels.json")
    sets = json.loads(path.read_text(encoding="utf-8"))
    for family in families:
        with tempfile.TemporaryDirectory() as folder:
            cold = in_process(family, folder, "0")
            warm = in_process(family, folder, "0")
        called, drawn = cold["called"], cold["drawn"]
        others = [one for one in warm["loaded"] if one not in called]  # called by the first, too
        # others begin at the end: with what is met last, or takes longest; pages come last
        took = cold["took"][:drawn] if family in _READ_LONG else np.arange(drawn)
        drawing = [called[i] for i in np.argsort(took, kind="stable")]
        sets[warm["set"]] = sorted(others) + called[drawn:] + drawing
    lines = [
        f" {json.dumps(name)}: [\n  " + ",\n  ".join(map(json.dumps, called)) + "\n ]"
        for name, called in sets.items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def time_command(words: list[str]) -> None:
    """Times a command, start and pages included, and weighs what it leaves.

    Printed are seconds of the clock until there is a page, and until the command ends; seconds of
    processors; and megabytes of the run's folder and of memory.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PGMULT_CACHE_DIR": folder}
        for cache in ("cold", "warm"):
            out, first = Path(folder) / cache, None
            wall = perf_counter()
            process = subprocess.Popen(
                [sys.executable, "-m", "pgmult", *words, "--quiet", "--out", str(out)],
                env=environment, stdout=subprocess.DEVNULL,
            )  # fmt: skip
            ended, status = 0, 0
            while not ended:
                sleep(0.05)
                ended, status, used = os.wait4(process.pid, os.WNOHANG)
                if first is None and (out / "report.html").exists():
                    first = perf_counter() - wall
            wall = perf_counter() - wall
            if status:
                raise SystemExit(f"the command failed: pgmult {shlex.join(words)}")
            size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
            print(
                f"{cache}: a page after {first or wall:.1f} s of the clock, done after {wall:.1f};"
                f" {used.ru_utime + used.ru_stime:.1f} s of processors; {size / 1e6:.1f} MB on"
                f" disk, {used.ru_maxrss / 1e3:.0f} MB of memory",
                flush=True,
            )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--functions", type=int, default=0)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--command", type=shlex.split, metavar="WORDS")
    options = parser.parse_args()
    if options.command:
        time_command(options.command)
        return
    families = options.families or list(FAMILIES)
    if options.inside:
        print(json.dumps(_first_draw(families[0])))
        return
    if options.record:
        record(families)
        return
    print(
        f"{'family':12} {'one process':>12} {'cpu':>6} {'compiled':>9}"
        f" {'several':>8} {'cpu':>6} {'warm':>6}"
    )
    for family in families:
        with tempfile.TemporaryDirectory() as folder:
            alone = in_process(family, folder, "0")
            warm = in_process(family, folder, "0")
        with tempfile.TemporaryDirectory() as folder:
            several = in_process(family, folder, "1")
        count = sum(times for _, _, times in alone["functions"])
        print(
            f"{family:12} {alone['wall']:12.1f} {alone['cpu']:6.1f} {count:9}"
            f" {several['wall']:8.1f} {several['cpu']:6.1f} {warm['wall']:6.2f}"
        )
        for seconds, name, times in alone["functions"][: options.functions]:
            print(f"    {seconds:5.2f} s  {name} x {times}")


if __name__ == "__main__":
    main()
