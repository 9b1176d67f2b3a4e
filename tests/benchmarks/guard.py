"""What every model draws, every fit finds and every command says, as hashes: before and after.

Run it before a change of structure and after it; nothing that it compares should move, unless the
change is one of a sampler, a fit or a text::

    PYTHONPATH=tests python -m tests.benchmarks.guard record before.json
    PYTHONPATH=tests python -m tests.benchmarks.guard check before.json [part of a name ...]

Hashes are of bits, so that both runs must be on one machine with one numpy, scipy and numba.
``draws`` are compared variable by variable. ``calls`` are the public entries of
``tests/front_doors.py``, each called once: a call is unchanged if every array that its result held
before is in its result after, wherever it stands; so containers may be rearranged. ``commands`` are
compared by what they print, seconds and folders left out.
"""

import contextlib
import dataclasses
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import pgmult

TABLES = {
    "names.csv": ["year,state,name,n"]
    + [
        f"{2000 + y},{s},{n},{5 + 3 * y + 7 * k + i}"
        for y in range(6)
        for i, s in enumerate(("NY", "TX", "WA"))
        for k, n in enumerate(("Ada", "Ben", "Cleo"))
    ],
    "visits.csv": ["patient,day,state,n"]
    + [
        f"p{p},2024-01-{d + 1:02d},{'abc'[(p + d * d) % 3]},{1 + (p * d) % 3}"
        for p in range(4)
        for d in range(12)
    ],
    "speeches.csv": ["text,party,year,who"]
    + [
        f"{' '.join(('ship sail wave harbour', 'field plough wheat barn')[d % 2].split()[i * d % 4] for i in range(1, 14))},{'NS'[d % 2]},{1900 + d},m{d % 6}"  # noqa: E501
        for d in range(40)
    ],
    "new.csv": ["year,state", "2006,NY", "2006,OR"],
}
FEW = "--draws 6 --tune 3 --chains 2 --quiet --seed 1"
COMMANDS = {
    "fields fit": "fields fit names.csv --inputs year state --places us-states --category name"
    f" --count n --hold-out year=2005 --out f {FEW}",
    "fields show": "fields show f --json",
    "fields predict": "fields predict f new.csv",
    "fields export": "fields export f",
    "sequences fit": "sequences fit visits.csv --symbol state --sequence patient --time day"
    f" --every day --count n --out s {FEW}",
    "sequences show": "sequences show s --json",
    "sequences forecast": "sequences forecast s --steps 3",
    "topics fit": "topics fit speeches.csv --column text --topics 3"
    f" --prevalence ~party*year+(1|who) --content ~party --out t {FEW}",
    "topics show": "topics show t",
    "topics effects": "topics effects t party --at year=1910 --difference N S",
    "topics content": "topics content t N S",
    "topics quotes": "topics quotes t --topic 1",
    "topics check": "topics check t",
    "demo fields": "demo fields --draws 4 --tune 4 --chains 2 --quiet --json",
    "demo sequences": "demo sequences --draws 4 --tune 4 --chains 2 --quiet --json",
}


def digest(array):
    """Hash of an array's numbers, whatever its memory order."""
    array = np.ascontiguousarray(array)
    kind = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(kind + array.tobytes()).hexdigest()[:16]


def draws(build):
    """Hashes of all variables that a model has, after some sweeps of two chains."""
    model, data = build()
    from pgmult.core.typing import absent_of, data_of

    names = [name for name in model.dims if name not in absent_of(model, data_of(model, data))]
    posterior = pgmult.sample(
        model, data, keep=names, draws=6, tune=6, chains=2, cores=1, random_seed=3,
        progressbar=False,
    )  # fmt: skip
    kept = {name: digest(posterior[name]) for name in names}
    return kept | {name: digest(x) for name, x in posterior.sample_stats.items() if name != "time"}


def arrays_in(value, seen, depth=0):
    """Hashes of the arrays of numbers that a value holds, however deep."""
    if id(value) in seen or depth > 8:
        return
    seen[id(value)] = value
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "iufb" and value.size > 1:
            yield digest(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from arrays_in(item, seen, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value[:200]:
            yield from arrays_in(item, seen, depth + 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from arrays_in(getattr(value, field.name, None), seen, depth + 1)
    elif hasattr(value, "get_params"):
        for name, item in sorted(vars(value).items()):
            if name.endswith("_"):
                yield from arrays_in(item, seen, depth + 1)


def call(name):
    """Hashes of the arrays in the result of a public entry, as a sorted list."""
    import front_doors

    function, arguments = front_doors.CALLS[name]
    return sorted(set(arrays_in(function()(**arguments()), {})))


def commands(folder):
    """What each command prints, without seconds and folders."""
    from pgmult.cli.commands import main as run

    for name, lines in TABLES.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    os.chdir(folder)
    for name, words in COMMANDS.items():
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            try:
                code = run(words.split())
            except SystemExit as stop:
                code = stop.code
        text = re.sub(r"[\d.]+ s\b", "S s", out.getvalue())
        yield (
            name,
            {
                "code": code,
                "text": text.replace(str(folder), ""),
                "errors": errors.getvalue()[:200] if code else "",
            },
        )


def results(wanted):
    """(name, hashes) of everything, or of what has one of the wanted words in its name."""

    def is_wanted(name):
        return not wanted or any(word in name for word in wanted)

    from every_model import MODELS

    for name, build in MODELS.items():
        if is_wanted(f"draws {name}"):
            yield f"draws {name}", lambda build=build: draws(build)
    import front_doors

    for name in front_doors.CALLS:
        if is_wanted(f"calls {name}"):
            yield f"calls {name}", lambda name=name: call(name)
    if is_wanted("commands"):
        with tempfile.TemporaryDirectory() as folder:
            for name, said in commands(Path(folder)):
                yield f"commands {name}", lambda said=said: said


def difference(before, after):
    """What a change lost, in words; nothing if nothing."""
    if isinstance(before, list):
        lost = sorted(set(before) - set(after))
        return f"{len(lost)} of {len(before)} arrays" if lost else ""
    if "text" in before:
        pairs = zip(before["text"].splitlines(), after["text"].splitlines(), strict=False)
        first = next((f"{a!r} is {b!r}" for a, b in pairs if a != b), "its length")
        return "" if before == after else first[:400]
    return ", ".join(name for name in before if before[name] != after.get(name))


def main(act, file, *wanted):
    """Record results in a file, or compare them with it."""
    warnings.simplefilter("ignore")
    file = Path(file).resolve()
    known = json.loads(file.read_text()) if act == "check" else {}
    found, changed = {}, 0
    for name, find in results(wanted):
        try:
            found[name] = find()
        except Exception as error:
            found[name] = {"failed": f"{type(error).__name__}: {error}"[:300]}
        lost = difference(known[name], found[name]) if name in known else ""
        if "failed" in found[name] and found[name] != known.get(name):
            lost = str(found[name])
        if lost:
            changed += 1
            print(f"CHANGED {name}: {lost}", flush=True)
    if act == "record":
        for name in [name for name in found if isinstance(found[name], list)]:
            if call(name.removeprefix("calls ")) != found[name]:  # drawn without a seed
                del found[name]
        file.write_text(json.dumps(found, indent=0))
        print(f"{len(found)} results recorded")
        return 0
    wanted_known = {name for name in known if not wanted or any(word in name for word in wanted)}
    for name in sorted(wanted_known - set(found)):
        twin = [other for other in set(found) - set(known) if found[other] == known[name]]
        if not twin:
            changed += 1
            print(f"GONE {name}")
    print(f"{len(found)} results, {changed} changed")
    return int(changed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
