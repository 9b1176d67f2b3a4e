"""Run directories at the command line: sampled, resumed, opened, with their notes.

Beside draws and data a run directory has ``job.json``, the options of the command that the model
does not know (title, columns, places), ``held-out.npz``, counts that the model was not shown, and
``comparison.json``, how it did beside its rivals.
A run that was sampled in Python has neither, and answers all the same.
"""

import argparse
import errno
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgmult.cli.previews import Previews
from pgmult.cli.shared import PAGE, running, silence_reported_warnings
from pgmult.core.family import Family, family_of

if TYPE_CHECKING:
    from pgmult.core.comparison import Comparison
    from pgmult.sampling.chains import Sweep

_NOTES, _HELD_OUT, _COMPARISON = "job.json", "held-out.npz", "comparison.json"


@dataclass(frozen=True)
class Job:
    """A model and its data, as the options of ``fit`` describe them.

    Attributes
    ----------
    model, data : object
    keep : tuple of str, or mapping from str to int
        Variables to keep, or of each every how manyth draw.
    notes : mapping
        What is written beside the draws: at least ``title`` and ``source``; strings, numbers, lists
        and mappings of these.
    held_out : mapping from name to array
        Counts that the model is not shown.
    note : str
        Description of what was read.
    """

    model: Any
    data: object
    keep: tuple[str, ...] | Mapping[str, int]
    notes: Mapping[str, Any]
    held_out: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def write(self, run: Path, family: str) -> None:
        """Held-out counts first: where the notes are, everything is."""
        from pgmult.core import sealed

        if self.held_out:
            sealed.write_npz(run / _HELD_OUT, self.held_out, sealed.seed_of(_HELD_OUT))
        _write_json(run / _NOTES, {"family": family, **self.notes})


@dataclass(frozen=True)
class StoredRun:
    """A run directory of a family.

    Attributes
    ----------
    path : Path
    posterior : Posterior
    notes : mapping
        Empty for a run that was sampled in Python.
    """

    path: Path
    posterior: Any
    notes: Mapping[str, Any]

    @classmethod
    def open(cls, path: Path, family: Family) -> "StoredRun":
        """The run in a directory.

        Raises
        ------
        FileNotFoundError, ValueError
            If there is none, it is of another family, damaged, or has no draws yet.
        """
        from pgmult.sampling.posterior import load

        notes = _notes(_existing(path), family)
        posterior = load(path)
        run_family = family_of(posterior.model)
        if run_family is not family:
            whose = "a model of its own" if run_family is None else run_family.name
            raise ValueError(f"{path} is a run of {whose}, not of {family.name}")
        if posterior.num_draws == 0:
            raise ValueError(f"{path} has no draws yet")
        return cls(path, posterior, notes)

    @cached_property
    def held_out(self) -> dict[str, Any]:
        """Counts that the model was not shown; empty if there are none."""
        from pgmult.core import sealed

        place = self.path / _HELD_OUT
        if not self.notes or not place.exists():
            return {}
        with sealed.reading(place):
            return sealed.read_npz(place, sealed.seed_of(_HELD_OUT))

    @cached_property
    def data(self) -> Any:
        """What the model was shown; None for draws that were saved without it."""
        try:
            return self.posterior.data
        except ValueError:
            return None

    @property
    def comparison(self) -> "Comparison | bool":
        """How the run did beside its rivals, if that was found and is of these draws; or False."""
        from pgmult.core import sealed
        from pgmult.sampling.codec import decode

        place = self.path / _COMPARISON
        if not place.exists():
            return False
        with sealed.reading(place):
            record = json.loads(place.read_text(encoding="utf-8"))
            comparison: Comparison = decode(record["comparison"])
        return comparison if record["draws"] == self.posterior.num_draws else False

    def keep_comparison(self, comparison: "Comparison") -> None:
        """Write how the run did beside its rivals."""
        from pgmult.sampling.codec import encode

        record = {"draws": self.posterior.num_draws, "comparison": encode(comparison)}
        _write_json(self.path / _COMPARISON, record)

    @property
    def title(self) -> str:
        """Title of the report."""
        return str(self.notes.get("title", self.path))

    @property
    def facts(self) -> dict[str, str]:
        """Facts of the run, in words: how it was sampled, and what the notes say."""
        from pgmult.core.reports import run_in_words

        notes = {name: str(self.notes[name]) for name in ("source", "model") if name in self.notes}
        return {"run": run_in_words(self.posterior, self.notes.get("waited")), **notes}

    def after(self, seconds: float) -> "StoredRun":
        """Return the run with a note of how long its user waited, which is stored, too."""
        if not self.notes:
            return self
        family = family_of(self.posterior.model)
        notes = {**self.notes, "waited": round(self.notes.get("waited", 0.0) + seconds, 1)}
        _write_json(self.path / _NOTES, {"family": family.name if family else "", **notes})
        return replace(self, notes=notes)

    @property
    def is_unfinished(self) -> bool:
        """Whether there are fewer draws than were asked for."""
        attrs = self.posterior.attrs
        return "until" not in attrs and bool(self.posterior.num_draws < attrs.get("draws", 0))

    def ask(self, word: str, *arguments: Any, **options: Any) -> Any:
        """The answer of the run's family to a word.

        Raises
        ------
        ValueError
            If this run cannot answer.
        """
        self.must_answer(word)
        return getattr(self.posterior, word)(*arguments, **options)

    def report(self, **more: object) -> Any:
        """The family's report, with the notes and an earlier comparison."""
        usual = {"title": self.title, "facts": self.facts, "comparison": self.comparison}
        return self.ask("report", **usual | more)

    def must_answer(self, word: str) -> None:
        """Refuse a word that the run cannot answer."""
        run_family = family_of(self.posterior.model)
        why = "unknown" if run_family is None else run_family.verbs[word].refusal(self.posterior)
        if why:
            raise ValueError(f"{self.path} cannot answer {word!r}: {why}")


def _existing(run: Path) -> Path:
    if not run.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such run directory", str(run))
    return run


def _write_json(path: Path, content: object) -> None:
    from pgmult.core import sealed

    text = json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    sealed.write(path, text.encode())


def _notes(run: Path, family: Family) -> dict[str, object]:
    from pgmult.core import sealed

    place = run / _NOTES
    if not place.exists():
        if not (run / "meta.json").exists():
            what = f"{run} is not a run of pgmult {family.name} fit"
            raise ValueError(f"{what}, or was ended before its first sweep")
        return {}
    with sealed.reading(place):
        notes = json.loads(place.read_text(encoding="utf-8"))
        family_name = notes.pop("family")
        if not {"title", "source"} <= notes.keys():
            raise ValueError("it lacks a title or a source")
    if family_name != family.name:
        raise ValueError(f"{run} is a run of pgmult {family_name}: see pgmult {family_name} --help")
    return dict(notes)


def refuse_held(run: Path, family: Family) -> None:
    """Refuse to begin a run where there is one.

    Raises
    ------
    FileExistsError
    """
    if (run / "inputs.npz").exists():
        advice = f"continue it by pgmult {family.name} resume, or name another directory"
        raise FileExistsError(errno.EEXIST, f"the directory holds a run ({advice})", str(run))


def sampled(
    options: argparse.Namespace, family: Family, job: Job, report: Callable[[StoredRun], Any]
) -> StoredRun | None:
    """Sample into a new run directory; None after Ctrl-C before a draw was kept.

    Provisional pages are written meanwhile, of what `report` makes of a run.
    """
    from pgmult.sampling.driver import sample

    silence_reported_warnings()
    path = options.out
    made = job.model, job.data, job.keep
    pages = Previews(path, path / PAGE, lambda run: report(StoredRun(path, run, job.notes)), *made)

    def note(sweep: "Sweep") -> None:
        if not pages.has_begun:
            job.write(path, family.name)
        pages(sweep)

    with suppress(KeyboardInterrupt), pages:
        run = sample(
            job.model, job.data, keep=job.keep, thin=options.thin, callback=note,
            until=options.until, cluster=getattr(options, "cluster", None),
            starts=getattr(options, "starts", "independent"), **running(options),
        )  # fmt: skip
        return StoredRun(path, run, job.notes)
    return None


def resumed(
    options: argparse.Namespace, family: Family, report: Callable[[StoredRun], Any]
) -> StoredRun | None:
    """Go on with a run; None after Ctrl-C before a draw was kept. `report` is as for `sampled`."""
    from pgmult.sampling.driver import resume
    from pgmult.sampling.store import RunReader

    path = _existing(options.run)
    notes, until = _notes(path, family), options.until
    has_goal = until is not None or options.draws is not None
    if not has_goal and "until" not in RunReader(path).meta["attrs"]:
        until = notes.get("until")  # the goal that it was begun with, and has not reached
    silence_reported_warnings()
    pages = Previews(path, path / PAGE, lambda run: report(StoredRun(path, run, notes)))
    with suppress(KeyboardInterrupt), pages:
        run = resume(
            path, draws=options.draws, cores=options.cores, progressbar=not options.quiet,
            until=until, cluster=getattr(options, "cluster", None),
        )  # fmt: skip
        return StoredRun(path, run, notes)
    return None
