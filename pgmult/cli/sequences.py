"""``pgmult sequences`` and ``pgmult demo sequences``: symbols, words or counts step by step."""

import argparse
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from pgmult.cli.jobs import (
    Job,
    add_demo,
    add_fit,
    add_json,
    add_resume,
    add_run,
    add_table,
    add_writing,
    complete,
    drawn,
    finish,
    load_run,
    run_facts,
    sample_job,
    tell,
    write_table,
)
from pgmult.cli.shared import REPORT, at_least

__all__ = ["add_sequences", "add_sequences_demo"]

_FAMILY = "sequences"
_FASTA = (".fa", ".fasta", ".fna", ".faa", ".ffn")
_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def add_sequences(commands: Any) -> None:
    """``pgmult sequences`` with its actions."""
    sequences = commands.add_parser(
        "sequences", help="symbols whose probabilities move from step to step (linear dynamics)",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  pgmult sequences fit visits.csv --symbol state --sequence patient --time day \\\n"
        "    --every day --hold-out 14 --out run\n"
        "  pgmult sequences fit genes.fasta --out run\n"
        "  pgmult sequences forecast run --steps 14 --out ahead.csv",
    )  # fmt: skip
    actions = sequences.add_subparsers(required=True, metavar="ACTION")
    fit = add_fit(
        actions, "sample the dynamics behind a tidy table, a FASTA file or a text",
        draws=400, tune=400,
    )  # fmt: skip
    fit.set_defaults(command=_fit)
    fit.add_argument(
        "data", type=Path, metavar="DATA",
        help="a table (.csv, .tsv, .jsonl) with --symbol, a FASTA file (.fa, .fasta, .fna, .faa) or"
        " a text (.txt) with --units",
    )  # fmt: skip
    fit.add_argument("--symbol", metavar="COLUMN", help="of a table")
    fit.add_argument("--sequence", metavar="COLUMN", help="default: all rows are of one sequence")
    fit.add_argument("--time", metavar="COLUMN", help="default: every row is a step")
    fit.add_argument(
        "--every", metavar="TIME",
        help="how long a step is, where --time has dates: year, month, week, day, 2h, 5min, 15s",
    )  # fmt: skip
    fit.add_argument("--count", metavar="COLUMN", help="default: a row is one observation")
    fit.add_argument("--units", choices=["words", "characters"], help="what a step of a text is")
    fit.add_argument(
        "--each", choices=["line", "file"], default="line",
        help="what a sequence of a text is (default: a line)",
    )  # fmt: skip
    fit.add_argument(
        "--max-symbols", type=at_least(2), metavar="K",
        help="keep the most frequent ones; the steps of others are missing",
    )  # fmt: skip
    fit.add_argument("--state-dim", type=at_least(1), default=4, metavar="D", help="default: 4")
    fit.add_argument(
        "--hold-out", type=at_least(1), metavar="STEPS", help="hide the last so many, score them"
    )
    add_table(fit)
    resume = add_resume(actions)
    resume.set_defaults(command=_resume)
    show = actions.add_parser("show", help="print what a run found")
    show.set_defaults(command=_show)
    add_run(show)
    add_json(show)
    report = actions.add_parser("report", help="write the page of a run anew")
    report.set_defaults(command=_report)
    add_run(report)
    report.add_argument("--out", type=Path, metavar="PAGE", help="default: RUN/report.html")
    forecast = actions.add_parser("forecast", help="what comes after the last step, with intervals")
    forecast.set_defaults(command=_forecast)
    add_run(forecast)
    forecast.add_argument("--steps", type=at_least(1), required=True, metavar="N")
    forecast.add_argument("--seed", type=at_least(0), default=0, metavar="N")
    add_writing(forecast)
    export = actions.add_parser("export", help="probabilities at all steps as a tidy table")
    export.set_defaults(command=_export)
    add_run(export)
    add_writing(export)
    compare = actions.add_parser("compare", help="two runs of the same sequences")
    compare.set_defaults(command=_compare)
    compare.add_argument("first", type=Path, metavar="RUN")
    compare.add_argument("second", type=Path, metavar="RUN")
    add_json(compare)


def _fit(options: argparse.Namespace) -> int:
    from pgmult.sequences.models.lds import MultinomialLDS
    from pgmult.sequences.report import data_in_words

    data, kind = _read(options)
    if options.max_symbols is not None and options.max_symbols < data.num_symbols:
        data = _most_frequent(data, options.max_symbols)
    held_out = {}
    if options.hold_out is not None:
        data, later = data.split(-options.hold_out)
        held_out = {
            name: getattr(later, name) for name in ("offsets", "indptr", "symbols", "counts")
        }
    notes = {
        "title": options.title or f"Sequences in {options.data.name}",
        "source": f"{options.data} ({kind})",
        "model": f"probabilities driven by a linear Gaussian state of {options.state_dim}"
        " dimensions",
    }
    job = Job(_FAMILY, notes, held_out)
    if not options.json:
        print(f"{notes['source']}: {data_in_words(data)}", flush=True)
    model = MultinomialLDS(options.state_dim)
    keep = (*model.default_keep, "states")
    posterior = sample_job(options, model, data, keep, job)
    report = None if posterior is None else _reported(posterior, data, job)
    return finish(options, options.out, _FAMILY, posterior, report)


def _read(options: argparse.Namespace) -> tuple[Any, str]:
    """Sequences of a file, and what kind of file it is by its name."""
    from pgmult.core.labels import warn_of_look_alikes
    from pgmult.datasets.fasta import read_fasta
    from pgmult.datasets.tables import read
    from pgmult.sequences.data.sequences import as_sequences
    from pgmult.sequences.data.tables import from_long

    suffix = Path(options.data.name.lower().removesuffix(".gz")).suffix
    given = {
        "symbol": options.symbol, "sequence": options.sequence, "time": options.time,
        "every": options.every, "count": options.count, "delimiter": options.delimiter,
    }  # fmt: skip
    for_others = [f"--{name}" for name, value in given.items() if value is not None]
    if suffix in _TABLES:
        if options.symbol is None:
            raise ValueError(f"{options.data} is a table: say which column is --symbol")
        if options.units is not None:
            raise ValueError(f"{options.data} is a table: --units is for texts")
        mark = given.pop("delimiter")
        table = read(options.data, delimiter=mark, encoding=options.encoding).columns
        needed = {f"--{name}": given[name] for name in ("symbol", "sequence", "time", "count")}
        complete(
            options.data, table, needed,
            "fill in the value, or leave out the row (steps without a row are missing)",
        )  # fmt: skip
        return from_long(table, **given), "table"
    if for_others:
        raise ValueError(f"{options.data} is no table: {for_others[0]} is for tables")
    if suffix in _FASTA:
        if options.units is not None:
            raise ValueError(f"{options.data} is a FASTA file: --units is for texts")
        found = read_fasta(options.data)
        data = as_sequences(list(found.values()), names=list(found))
        symbols = sorted(set("".join(found.values())))
        warn_of_look_alikes(symbols, f"{options.data} (soft-masked?)")
        if "N" in symbols and set(symbols) <= set("ACGTUNacgtun") and options.max_symbols is None:
            warnings.warn(
                f"{options.data} has N, for bases that are not known, and N is a symbol like the"
                f" others here: --max-symbols {data.num_symbols - 1} makes its steps missing, if it"
                " is the rarest",
                stacklevel=2,
            )
        return data, "FASTA"
    if suffix != ".txt":
        raise ValueError(
            f"{options.data}: the name must end in .csv, .tsv, .jsonl (tables), .fa, .fasta, .fna,"
            " .faa (FASTA) or .txt (text), which says how it is read"
        )
    if options.units is None:
        raise ValueError(f"{options.data} is a text: say --units words or --units characters")
    return _read_text(options), "text"


def _read_text(options: argparse.Namespace) -> Any:
    from pgmult.datasets.files import lines_of, read_file
    from pgmult.sequences.data.sequences import as_sequences

    text = read_file(options.data, options.encoding)
    pieces = (
        {options.data.name: " ".join(text.split())}
        if options.each == "file"
        else {f"line {n}": line for n, line in enumerate(lines_of(text), start=1) if line.strip()}
    )
    units = {
        name: _WORD.findall(piece.lower()) if options.units == "words" else list(piece)
        for name, piece in pieces.items()
    }
    units = {name: steps for name, steps in units.items() if steps}
    if not units:
        raise ValueError(f"{options.data}: there are no {options.units} in it")
    return as_sequences(list(units.values()), names=list(units))


def _most_frequent(data: Any, most: int) -> Any:
    """The sequences with the steps of all but the most frequent symbols missing."""
    from dataclasses import replace

    import numpy as np
    import scipy.sparse

    from pgmult.sequences.data.sequences import as_sequences

    kept = np.sort(data.order[:most])
    counts = scipy.sparse.csr_array(data.to_csr()[:, kept])
    parts = [
        counts[first:last] for first, last in zip(data.offsets[:-1], data.offsets[1:], strict=True)
    ]
    alphabet = None if data.alphabet is None else data.alphabet[kept].tolist()
    found = as_sequences(parts, alphabet=alphabet, names=data.names)
    return replace(found, starts=data.starts, every=data.every)


def _resume(options: argparse.Namespace) -> int:
    posterior, data, job = drawn(options, _FAMILY)
    report = None if posterior is None else _reported(posterior, data, job)
    return finish(options, options.run, _FAMILY, posterior, report)


def _show(options: argparse.Namespace) -> int:
    tell(options, _reported(*load_run(options.run, _FAMILY)))
    return 0


def _report(options: argparse.Namespace) -> int:
    from pgmult.core.reports import as_html

    page = options.out or options.run / REPORT
    page.write_text(as_html(_reported(*load_run(options.run, _FAMILY))), encoding="utf-8")
    print(page)
    return 0


def _reported(posterior: Any, data: Any, job: Job) -> Any:
    from pgmult.sequences.report import sequence_report
    from pgmult.sequences.scores import ngrams
    from pgmult.sequences.scores.one_step import one_step_ahead

    later, scores = _later(data, job), {}
    if later is not None:
        scores = {
            "this model": one_step_ahead(posterior, later, after=data, pooling="average"),
            "the symbol before": ngrams.bigram(data, later, continues=True),
            "shares alone": ngrams.unigram(data, later),
        }
    return sequence_report(
        posterior, data, title=job.notes["title"],
        facts={**run_facts(posterior), "source": job.notes["source"], "model": job.notes["model"]},
        held_out=later, scores=scores,
    )  # fmt: skip


def _later(data: Any, job: Job) -> Any:
    """How the sequences went on, if that was held out."""
    return replace(data, **job.held_out) if job.held_out else None


def _forecast(options: argparse.Namespace) -> int:
    from pgmult.sequences.forecasts import forecast

    posterior, data, _ = load_run(options.run, _FAMILY)
    found = forecast(posterior, data, options.steps, random_seed=options.seed)
    write_table(found.to_columns(), options.out, options.json)
    return 0


def _export(options: argparse.Namespace) -> int:
    from pgmult.sequences.forecasts import StepProbs

    posterior, data, _ = load_run(options.run, _FAMILY)
    write_table(StepProbs.of(posterior, data).to_columns(), options.out, options.json)
    return 0


def _compare(options: argparse.Namespace) -> int:
    from pgmult.core.reports import Report
    from pgmult.sequences.scores.one_step import one_step_ahead

    scores, names = [], [str(options.first), str(options.second)]
    for run in (options.first, options.second):
        posterior, data, job = load_run(run, _FAMILY)
        later = _later(data, job)
        if later is None:
            raise ValueError(f"{run} held nothing out: fit both runs with the same --hold-out")
        scores.append(one_step_ahead(posterior, later, after=data, pooling="average"))
    gain = scores[0].gain_over(scores[1])
    sure = abs(gain.mean) > 2 * gain.standard_error
    word = "no better" if not sure else "better" if gain.mean > 0 else "worse"
    sentences = [
        f"One step ahead, the first tells what neither was shown {word} than the second: {gain}.",
        *(f"{name}: {score}." for name, score in zip(names, scores, strict=True)),
    ]
    tell(options, Report(" and ".join(names), sentences))
    return 0


# --------------------------------------------------------------------------- the demonstration


_OWN = (
    "Your own sequences, a row a step:\n"
    "  pgmult sequences fit visits.csv --symbol state --sequence patient --time day \\\n"
    "    --every day --state-dim 4 --out run"
)


def add_sequences_demo(demos: Any) -> None:
    """``pgmult demo sequences``."""
    what = "year books of the weather, simulated: the truth is known"
    add_demo(demos, "sequences", what, _run_demo, _OWN, draws=400, tune=300)


def _run_demo() -> Any:
    from pgmult.cli.demo_sequences import run_demo

    return run_demo
