"""``pgmult sequences``: symbols, words or counts step by step."""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pgmult.cli.actions import CHECK, Question, Room, effects_question
from pgmult.cli.previews import page_of_brief_run
from pgmult.cli.runs import Job, StoredRun
from pgmult.cli.shared import (
    PAGE,
    PROBABILITY,
    READING,
    SEED,
    TABLE,
    Option,
    Recipe,
    add_incomplete,
    add_table,
    aside,
    at_least,
    begin_compiling,
    complete,
    kept_every,
    option,
    read_table,
    share,
    table_option,
    unfollow,
    whole,
    width,
)
from pgmult.sequences.family import SEQUENCES

_FASTA = (".fa", ".fasta", ".fna", ".faa", ".ffn")
_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")
_HELD_OUT, _INPUT = ("offsets", "indptr", "symbols", "counts"), "input "
_BRIEF = 20  # draws that the page of a brief run is of
_MOST_BYTES = 160_000_000  # of states that are stored
_COLUMNS = ("symbol", "sequence", "time", "every", "week_start", "count")


def _add_fit(fit: argparse.ArgumentParser) -> None:
    _add_data(fit)
    told = "keep the most frequent ones; the steps of others are missing"
    fit.add_argument("--max-symbols", **whole(2, told=told, metavar="K"))
    fit.add_argument(
        "--model", choices=["lds", "hmm", "markov", "markov2", "auto"], default="lds",
        help="linear dynamics (default), hidden states, a Markov chain of order 1 or 2, or the best"
        " of these by brief runs",
    )  # fmt: skip
    fit.add_argument(
        "--state-dim", type=_numbers(1), metavar="D",
        help="of lds, or several, such as 2,4,8, of which brief runs find the best; default: one"
        " less than symbols, at most 4, or 10 where steps have many counts",
    )  # fmt: skip
    fit.add_argument(
        "--states", type=_numbers(2), default=(8,), metavar="M",
        help="of hmm, or several, such as 2,3,4, of which brief runs find the best; default: 8",
    )  # fmt: skip
    fit.add_argument(
        "--inputs", metavar="FORMULA",
        help='what acts on the steps: columns and groups, such as "~ temperature + (1 | animal)"',
    )  # fmt: skip
    fit.add_argument(
        "--act-on", choices=["transitions", "emissions", "both"], default="transitions",
        help="what inputs change in hmm (default: transitions)",
    )  # fmt: skip
    for part in ("transitions", "emissions"):
        fit.add_argument(
            f"--{part}", metavar="FORMULA",
            help=f"what acts on the {part} of hmm alone, in the place of --inputs and --act-on",
        )  # fmt: skip
    told = "hide the last so many, score them"
    fit.add_argument("--hold-out", **whole(1, told=told, metavar="STEPS"))


def _numbers(least: int) -> Callable[[str], tuple[int, ...]]:
    """A type of option: "3", or "2,3,4"."""

    def numbers(text: str) -> tuple[int, ...]:
        return tuple(at_least(least)(part) for part in text.split(","))

    return numbers


def _add_data(fit: argparse.ArgumentParser) -> None:
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
        help="how long a step is, where --time has dates: year, month, week, day, 2h, 5min, 15s;"
        " where it has numbers, how many make a step",
    )  # fmt: skip
    fit.add_argument(
        "--week-start", metavar="DAY", help="first day of a week, with --every week (monday)"
    )
    fit.add_argument("--count", metavar="COLUMN", help="default: a row is one observation")
    fit.add_argument("--units", choices=["words", "characters"], help="what a step of a text is")
    fit.add_argument(
        "--each", choices=["line", "file"],
        help="what a sequence of a text is (default: a line)",
    )  # fmt: skip
    add_table(fit)
    add_incomplete(fit)


def _job(options: argparse.Namespace) -> Job:
    if options.model in ("lds", "auto"):  # "auto" reads and tries the rest meanwhile
        begin_compiling("MultinomialLDS", options)
    from pgmult.formulas.design import table_of
    from pgmult.sequences.reports import data_in_words
    from pgmult.sequences.scores.rivals import held_by

    data, kind = _read(options, _formula(options))
    if options.max_symbols is not None and options.max_symbols < data.num_symbols:
        kept = sorted(data.order[: options.max_symbols].tolist())
        data = _of_symbols(data, data.alphabet[kept].tolist())
    held_out = {}
    if options.hold_out is not None:
        data, later = data.split(-options.hold_out)
        held_out = {name: getattr(later, name) for name in _HELD_OUT}
        if later.design is not None:
            held_out |= {f"{_INPUT}{name}": own for name, own in table_of(later.design).items()}
    notes = {
        "title": options.title or f"Sequences in {options.data.name}",
        "source": f"{options.data} ({kind})",
    }
    model, words = _model(options, data, notes)
    if options.model == "auto" and (taken := held_by(model, data)) is not data:
        data, words = taken, f"{words}, which looks at no inputs"
        held_out = {name: held_out[name] for name in _HELD_OUT if name in held_out}
    notes["model"] = words
    said = f"{notes['source']}: {data_in_words(data)}"
    return Job(model, data, _draws_kept(model, data, options), notes, held_out, said)


def _draws_kept(model: Any, data: Any, options: argparse.Namespace) -> dict[str, int]:
    """Every how manyth draw is kept of each variable; of the states of all steps as many as fit."""
    keep = dict.fromkeys(model.default_keep, 1)
    if "states" in model.dims:
        width = model.state_dim + (data.num_symbols - 1) * model.is_noisy(data)
        every = kept_every({"states": data.num_steps * width}, _MOST_BYTES, options)
        keep |= dict.fromkeys(("states", "noise"), every)
    return keep


def _parts(options: argparse.Namespace) -> dict[str, str]:
    """Formulas of transitions and of emissions by themselves."""
    given = {name: getattr(options, name) for name in ("transitions", "emissions")}
    return {name: formula for name, formula in given.items() if formula is not None}


def _formula(options: argparse.Namespace) -> str | None:
    """Of all inputs."""
    parts = _parts(options)
    if not parts:
        return None if options.inputs is None else str(options.inputs)
    if options.inputs is not None or options.model != "hmm":
        raise ValueError(
            f"--{next(iter(parts))} is for --model hmm, and takes the place of --inputs and"
            " --act-on, which say what acts on both"
        )
    terms = (formula.partition("~")[2].strip() for formula in parts.values())
    return f"~ {' + '.join(term for term in terms if term)}"


def _model(options: argparse.Namespace, data: Any, notes: dict[str, str]) -> tuple[Any, str]:
    """The model that was asked for, and what it is in words; by brief runs, if there are several.

    These have a page of the first of them, with these notes.
    """
    from pgmult.sequences.models.lds import MultinomialLDS, usual_state_dim
    from pgmult.sequences.models.markov import MarkovChain

    models = {
        "markov": (MarkovChain(1), "a Markov chain of order 1"),
        "markov2": (MarkovChain(2), "a Markov chain of order 2"),
        **_hidden(options, data),
    }
    dims = options.state_dim or (usual_state_dim(data),)
    for size in dims:
        told = f"probabilities driven by a linear Gaussian state of {size} dimensions"
        models["lds" if len(dims) == 1 else f"lds {size}"] = MultinomialLDS(size), told
    wanted = {
        name: told for name, told in models.items()
        if options.model in ("auto", name, name.partition(" ")[0])
    }  # fmt: skip
    if len(wanted) == 1:
        return next(iter(wanted.values()))
    from pgmult.sequences.scores.rivals import best_model, held_by

    able = {name: model for name, (model, _) in wanted.items() if held_by(model, data) is not None}
    if not options.json:
        print(f"Brief runs of {', '.join(able)}, to take the best", flush=True)

    def report(posterior: Any) -> Any:
        return StoredRun(options.out, posterior, notes).report(max_draws=_BRIEF)

    def tell(name: str, run: Any) -> None:
        if name == next(iter(able)):
            page_of_brief_run(options.out / PAGE, report, run, models[name][1])

    name, found = best_model(data, able, options.seed, callback=tell)
    if not options.json:
        print(f"{found.table().text(width())}\n", flush=True)
    return models[name][0], f"{models[name][1]}, the best of {len(able)} by brief runs"


def _hidden(options: argparse.Namespace, data: Any) -> dict[str, tuple[Any, str]]:
    """Hidden Markov models of the numbers of states that were asked for."""
    from pgmult.sequences.models.hmm import MultinomialHMM
    from pgmult.sequences.models.mixed_hmm import MixedHMM

    found: dict[str, tuple[Any, str]] = {}
    for states in options.states:
        told = f"a hidden Markov model of {states} states"
        model = MultinomialHMM(states, stickiness=None)
        if data.design is not None:
            parts = _parts(options)
            model = MixedHMM(states, stickiness=None, inputs=parts or options.act_on)
            where = "transitions and emissions" if options.act_on == "both" else options.act_on
            each = parts or {where: options.inputs}
            told += " whose " + " and ".join(f"{of} depend on {by}" for of, by in each.items())
        found["hmm" if len(options.states) == 1 else f"hmm {states}"] = model, told
    return found


def _read(options: argparse.Namespace, inputs: Any = None) -> tuple[Any, str]:
    """Sequences of a file, and what kind of file it is by its name."""
    from pgmult.core.labels import warn_of_look_alikes
    from pgmult.datasets.fasta import read_fasta
    from pgmult.sequences.data.sequences import as_sequences

    suffix = _suffix(options.data)
    given = {
        "symbol": options.symbol, "sequence": options.sequence, "time": options.time,
        "every": options.every, "count": options.count, "week_start": options.week_start,
    }  # fmt: skip
    told = {name: value for name, value in given.items() if value is not None}
    if suffix in _TABLES:
        if options.symbol is None:
            raise ValueError(f"{options.data} is a table: say which column is --symbol")
        if options.units is not None:
            raise ValueError(f"{options.data} is a table: --units is for texts")
        table = read_table(options.data, options)
        table, left_out = _without_gaps(table, given, inputs, options)
        if inputs is not None:
            told["inputs"] = inputs
        return table.sequences(**told), ", ".join(filter(None, ("table", left_out)))
    if inputs is not None:
        raise ValueError(f"{options.data} is no table: --inputs is for tables")
    if told or options.delimiter is not None:
        option = next(iter(told), "delimiter").replace("_", "-")
        raise ValueError(f"{options.data} is no table: --{option} is for tables")
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


def _without_gaps(
    table: Any, given: dict[str, str | None], inputs: Any, options: argparse.Namespace
) -> tuple[Any, str]:
    """A table whose gaps are refused, or are missing steps; rows of no known place are left out."""
    import numpy as np

    from pgmult.core.tables import Cells, exact_array
    from pgmult.formulas.language import parse

    def of(*names: str) -> dict[str, str | None]:
        return {f"--{name}": given[name] for name in names}

    what = "fill in the value"
    table, left_out = complete(table, of("sequence", "time"), options, what)
    if not options.drop_incomplete:
        complete(table, of("symbol", "count"), options, what, "make such steps missing ones")
        return table, left_out
    formula = inputs if inputs is None or isinstance(inputs, str) else inputs.formula
    used = [given["symbol"], given["count"], *(parse(formula).columns if formula else ())]
    holed = [
        name for name in dict.fromkeys(used) if name in table.cells and table.missing(name).any()
    ]
    if not holed:
        return table, left_out
    unknown, listed = table.missing(*holed), " or ".join(map(repr, holed))
    if unknown.all():
        raise ValueError(f"{table.source}: every row lacks a value of {listed}")

    def filled(name: str, gaps: Any, value: Any) -> Any:
        values = table.cells[name].values.astype(object)
        values[gaps] = value
        return Cells(exact_array(values))

    cells = {name: table.cells[name] for name in table.cells}
    cells[options.symbol] = filled(options.symbol, unknown, None)
    if options.count in holed:
        cells[options.count] = filled(options.count, table.missing(options.count), 0)
    steps = (
        "1 row is" if np.count_nonzero(unknown) == 1 else f"{np.count_nonzero(unknown):,} rows are"
    )
    said = f"{steps} of missing steps, without a value of {listed}"
    return replace(table, cells=cells), "; ".join(filter(None, (left_out, said)))


def _suffix(path: Path) -> str:
    """How its name ends, whether it is compressed or not."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _read_text(options: argparse.Namespace) -> Any:
    from pgmult.datasets.files import lines_of, read_file
    from pgmult.datasets.text import normal_form, split_words
    from pgmult.sequences.data.sequences import as_sequences

    text = read_file(options.data, options.encoding or "utf-8")
    pieces = (
        {options.data.name: " ".join(text.split())}
        if options.each == "file"
        else {f"line {n}": line for n, line in enumerate(lines_of(text), start=1) if line.strip()}
    )
    units = {
        name: split_words(piece) if options.units == "words" else list(normal_form(piece))
        for name, piece in pieces.items()
    }
    units = {name: steps for name, steps in units.items() if steps}
    if not units:
        raise ValueError(f"{options.data}: there are no {options.units} in it")
    return as_sequences(list(units.values()), names=list(units))


def _of_symbols(data: Any, wanted: list[str]) -> Any:
    """The sequences with these symbols alone, in this order; the steps of others are missing."""
    import numpy as np
    import scipy.sparse

    from pgmult.sequences.data.sequences import as_sequences

    own = {symbol: place for place, symbol in enumerate(data.alphabet.tolist())}
    pairs = [(own[symbol], column) for column, symbol in enumerate(wanted) if symbol in own]
    shape, ones = (len(own), len(wanted)), np.ones(len(pairs), dtype=np.int64)
    pick = scipy.sparse.csr_array((ones, tuple(zip(*pairs, strict=True)) or ((), ())), shape)
    counts = scipy.sparse.csr_array(data.to_csr() @ pick)
    parts = [counts[slice(*ends)] for ends in pairwise(data.offsets)]
    found = as_sequences(parts, alphabet=wanted, names=data.names)
    found = replace(found, starts=data.starts, every=data.every, keys=data.keys)
    return found if data.design is None else found.with_design(data.design)


def _predict(run: StoredRun, options: argparse.Namespace, told: dict[str, Any]) -> Any:
    is_table = _suffix(options.data) in _TABLES
    unfollow(options, ["units"] if is_table else [*_COLUMNS, "delimiter"])
    new, _ = _read(options, run.data.design)
    known = run.data.alphabet.tolist()
    if unknown := sorted(set(new.alphabet.tolist()) - set(known)):
        warnings.warn(
            f"{options.data} has {len(unknown)} symbols that the run does not know, such as"
            f" {unknown[0]!r}: their steps are missing",
            stacklevel=2,
        )
    return run.ask("predict", _of_symbols(new, known), **told)


def _levels(probability: float, options: argparse.Namespace) -> tuple[float, float, float]:
    """Of the quantiles: the median, and the ends of an interval."""
    beside = 0.5 - 0.5 * probability
    return (round(beside, 9), 0.5, round(1.0 - beside, 9))


_LEVELS = option(
    "--probability", to="levels", read=_levels, type=share, default=0.9, metavar="P",
    help="of intervals; default: 0.9",
)  # fmt: skip


def _add_new(parser: argparse.ArgumentParser) -> None:
    _add_data(parser)
    parser.set_defaults(max_symbols=None)


def _later(run: StoredRun) -> Any:
    """How the sequences went on, if that was held out."""
    if not run.held_out:
        return None
    counts = {name: run.held_out[name] for name in _HELD_OUT}
    later = replace(run.data, **counts, inputs=None, design=None)
    inputs = {
        name.removeprefix(_INPUT): column
        for name, column in run.held_out.items() if name not in _HELD_OUT
    }  # fmt: skip
    if not inputs:
        return later
    return later.with_design(
        run.data.design.like(inputs, new_levels=True, num_rows=later.num_steps)
    )


def _forecast(run: StoredRun, options: argparse.Namespace, told: dict[str, Any]) -> Any:
    found = run.ask("forecast", **told)
    return found.next_change() if options.next_change else found


def _states(run: StoredRun, options: argparse.Namespace, told: dict[str, Any]) -> Any:
    found = run.ask("states", **told)
    return found.steps() if options.steps else found


def _compare(first: StoredRun, second: StoredRun, options: argparse.Namespace) -> Any:
    later, other = (_later(run) for run in (first, second))
    names = str(first.path), str(second.path)
    if (later is None) != (other is None):
        without = names[later is not None]
        raise ValueError(f"{without} held nothing out: fit both runs with the same --hold-out")
    return first.ask("compare", second.posterior, held_out=later, names=names)


ROOM = Room(
    SEQUENCES,
    "symbols whose probabilities move from step to step (linear dynamics)",
    "  pgmult sequences fit visits.csv --symbol state --sequence patient --time day \\\n"
    "    --every day --hold-out 14 --out run\n"
    "  pgmult sequences fit genes.fasta --out run\n"
    "  pgmult sequences forecast run --steps 14 --out ahead.csv\n"
    "  pgmult sequences fit gps.csv --symbol does --sequence animal --time at --every 5min \\\n"
    '    --model hmm --states 2,3 --inputs "~ temperature + (1 | animal)" --out run\n'
    "  pgmult sequences effects run temperature",
    "the dynamics behind a tidy table, a FASTA file or a text",
    draws=400, tune=200, add_fit=_add_fit, job=_job, compare=_compare,
    recipe=Recipe(_COLUMNS, (*READING, "units", "each")),
    report=lambda run, options: run.report(held_out=_later(run)),
    questions=(
        Question(
            "predict", "probabilities at the steps of other sequences",
            (Option(_add_new), _LEVELS, SEED), ask=_predict, tidy=True,
        ),
        Question(
            "forecast", "what comes after the last step, with intervals",
            (
                option("--steps", type=at_least(1), required=True, metavar="N"),
                table_option(
                    "--future", "inputs of the steps ahead, with the columns of the formula, of"
                    " sequences and of times", to="inputs",
                ),
                TABLE,
                aside(
                    "--next-change", action="store_true",
                    help="how long each symbol seen last goes on, and what comes then",
                ),
                SEED,
            ),
            ask=_forecast, tidy=True,
        ),
        Question(
            "states", "what the hidden states of hmm are, with intervals, and when they are",
            (
                PROBABILITY,
                aside(
                    "--steps", action="store_true",
                    help="the most probable path of states, and probabilities, at each step",
                ),
            ),
            ask=_states,
        ),
        Question(
            "export", "probabilities at all steps as a tidy table", [_LEVELS], "predict",
            tidy=True,
        ),
        effects_question(
            "mean probabilities in each sequence, or by an input",
            "sequence, step or time, or an input of hmm",
        ),
        CHECK,
    ),
)  # fmt: skip
