"""``pgmult sequences``: symbols, words or counts step by step."""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgmult.cli.actions import CHECK, Question, Room, effects_question
from pgmult.cli.previews import page_of_brief_run
from pgmult.cli.runs import Job, StoredRun
from pgmult.cli.shared import (
    DIFFERENCE,
    PAGE,
    READING,
    Option,
    Recipe,
    add_incomplete,
    add_options,
    add_table,
    asides,
    at_least,
    begin_compiling,
    complete,
    kept_every,
    option,
    read_table,
    share,
    titled,
    unfollow,
    width,
)
from pgmult.sequences.family import SEQUENCES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pgmult.core.typing import Model
    from pgmult.sequences.data.sequences import Sequences

_FASTA = (".fa", ".fasta", ".fna", ".faa", ".ffn")
_HELD_OUT, _INPUT = ("offsets", "indptr", "symbols", "counts"), "input "
_BRIEF = 20  # draws that the page of a brief run is of
_MOST_BYTES = 160_000_000  # of states that are stored
_COLUMNS = (
    "symbol", "sequence", "time", "begin", "end", "wide", "every", "week_start", "count", "weight",
    "known",
)  # fmt: skip


_DATA = """
DATA  Table (.csv, .tsv, .jsonl) with --symbol, FASTA file (.fa, .fasta, .fna, .faa) or text (.txt)
    with --units
--symbol COLUMN  Column of the symbols; repeat it for several channels, of --model hmm
--sequence COLUMN  Column that identifies the sequence (default: all rows belong to one); repeat it
    if several columns identify a sequence, such as a person and a day
--time COLUMN  Column of the steps: whole numbers or dates (default: every row is a step)
--begin COLUMN  Column of the first step of a spell, where a row is a spell, with --end
--end COLUMN  Column of the last step of a spell, or of the first one after it
--count COLUMN  Column of counts (default: a row is one observation)
--weight COLUMN  Column that says how much each sequence counts in averages over sequences;
    likelihoods are not weighted
--known COLUMN  Column of the hidden state of --model hmm, empty where it is not known: these steps
    are in that state, and states have these names
--wide COLUMNS  Columns of the times, where a row is a sequence: y2000:y2009, 'y*' or a,b,c
--every TIME  Length of a step, if times are dates: year, quarter, month, week, day, 2h, 5min, 15s;
    if they are numbers, how many make a step
--week-start DAY  First day of a week, with --every week (default: monday)
--units words|characters  Steps of a text
--each line|file  Sequences of a text (default: line)
"""
_FIT = """
--max-symbols K>=2  Keep the K most frequent symbols; steps of others are missing and summed out
--symbols A,B  Symbols in the order of tables and figures; steps of others are missing
--model lds|hmm|markov|markov2|trend|auto  Linear dynamics (default), hidden states (default for
    several --symbol, and with --known), a Markov chain of order 1 or 2, the best of these by brief
    runs, or levels with slopes, for forecasts of many counts a step
--memory STEPS>=3  Last steps of each sequence from which trend learns (default: 20)
--state-dim D  Dimensions of lds, or several numbers, such as 2,4,8, of which brief runs choose one
    (default: one less than symbols, at most 4, or 10 where steps have many counts)
--states M  Hidden states of hmm, or several numbers, such as 2,3,4, of which brief runs choose one
    (default: 8, or those of --known)
--inputs FORMULA  Formula of what acts on the steps, such as "~ temperature + (1 | animal)"
--act-on transitions|emissions|both  What inputs change in hmm (default: transitions)
--transitions FORMULA  Formula of what acts on the transitions of hmm alone, instead of --inputs
--emissions FORMULA  Formula of what acts on the emissions of hmm alone, instead of --inputs
--forbid SYMBOL*  Rule out a transition of markov or markov2; '*' is every other symbol, so that
    --forbid dead '*' makes nobody return; may be repeated
--only-observed  Rule out all transitions that do not occur in the data, of markov or markov2
--hold-out STEPS>=1  Leave the last steps out of the fit and score them
"""
_ONE_COLUMN = ("time", "begin", "end", "count", "weight", "known")


def _add_fit(fit: argparse.ArgumentParser) -> None:
    _add_data(fit)
    add_options(
        fit, _FIT, state_dim={"type": _numbers(1)}, states={"type": _numbers(2)},
        forbid={"nargs": 2, "metavar": ("FROM", "TO")},
    )  # fmt: skip


def _numbers(least: int) -> Callable[[str], tuple[int, ...]]:
    """A type of option: "3", or "2,3,4"."""

    def numbers(text: str) -> tuple[int, ...]:
        return tuple(at_least(least)(word) for word in text.split(","))

    return numbers


class _Several(argparse.Action):
    """Stores a column, or a list of several."""

    def __call__(
        self, parser: object, namespace: object, values: object, option: str | None = None
    ) -> None:
        before = getattr(namespace, self.dest) or []
        before = [before] if isinstance(before, str) else before
        setattr(namespace, self.dest, [*before, values] if before else values)


class _Once(argparse.Action):
    """Stores a value, and refuses a second one instead of forgetting the first."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(
                f"{option} takes one column, got {getattr(namespace, self.dest)} and {values}"
            )
        setattr(namespace, self.dest, values)


def _add_data(fit: argparse.ArgumentParser, **more: object) -> None:
    once = {name: {"action": _Once} for name in _ONE_COLUMN}
    add_options(
        fit,
        _DATA,
        data=more,
        symbol={"action": _Several},
        sequence={"action": _Several},
        each={"default": None},
        **once,
    )
    add_table(fit)
    add_incomplete(fit)


def _job(options: argparse.Namespace) -> Job:
    if options.model is None:
        options.model = "hmm" if isinstance(options.symbol, list) or options.known else "lds"
    if options.model in ("lds", "auto"):  # "auto" reads and tries the rest meanwhile
        begin_compiling("MultinomialLDS", options)
    from pgmult.formulas.design import table_of
    from pgmult.sequences.data.sequences import few_of
    from pgmult.sequences.models.trend import MultinomialTrend
    from pgmult.sequences.reports import data_in_words
    from pgmult.sequences.scores.rivals import held_by

    data, kind, subject = _read(options, _formula(options))
    if data.channels and (options.symbols or options.max_symbols):
        raise ValueError("--symbols and --max-symbols are for one --symbol, not for several")
    if options.symbols is not None:
        wanted = [symbol.strip() for symbol in options.symbols.split(",")]
        if unknown := sorted(set(wanted) - set(data.alphabet.tolist())):
            raise ValueError(
                f"--symbols must be of the data, {few_of(data.alphabet)}, got {unknown[0]!r}"
            )
        data = _of_symbols(data, wanted)
    if options.max_symbols is not None and options.max_symbols < data.num_symbols:
        frequent = sorted(data.order[: options.max_symbols].tolist())
        data = _of_symbols(data, data.alphabet[frequent].tolist())
    held_out = {}
    if options.hold_out is not None:
        data, later = data.split(-options.hold_out)
        held_out = {name: getattr(later, name) for name in _HELD_OUT}
        if later.design is not None:
            held_out |= {f"{_INPUT}{name}": cells for name, cells in table_of(later.design).items()}
    if options.model == "trend":
        data = data.last(options.memory or MultinomialTrend().memory)
        options.compares = False  # see MultinomialTrend
    notes = {
        "title": options.title or f"{subject} in {options.data.name}",
        "source": f"{options.data} ({kind})",
    }
    model, words = _model(options, data, notes)
    if options.model == "auto" and (taken := held_by(model, data)) is not data:
        data, words = taken, f"{words}, which looks at no inputs"
        held_out = {name: held_out[name] for name in _HELD_OUT if name in held_out}
    notes["model"] = words
    note = f"{notes['source']}: {data_in_words(data)}"
    return Job(model, data, _draws_kept(model, data, options), notes, held_out, note)


def _draws_kept(model: Any, data: Any, options: argparse.Namespace) -> dict[str, int]:
    """Thinning interval of each variable: as many states of all steps are stored as fit."""
    keep = dict.fromkeys(model.default_keep, 1)
    if "states" in model.dims:
        width = model.state_dim + (data.num_symbols - 1) * model.is_noisy(data)
        every = kept_every({"states": data.num_steps * width}, _MOST_BYTES, options)
        keep |= dict.fromkeys(("states", "noise"), every)
    elif "psi" in model.dims:
        size = 2 * data.num_steps * (data.num_symbols - 1)
        every = kept_every({"psi": size}, _MOST_BYTES, options)
        keep |= dict.fromkeys(model.predictive_variables, every)
    return keep


def _parts(options: argparse.Namespace) -> dict[str, str]:
    """Formulas of transitions and of emissions by themselves."""
    formulas = {name: getattr(options, name) for name in ("transitions", "emissions")}
    return {name: formula for name, formula in formulas.items() if formula is not None}


def _formula(options: argparse.Namespace) -> str | None:
    """The formula of all inputs."""
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


def _model(
    options: argparse.Namespace, data: "Sequences", notes: dict[str, str]
) -> tuple["Model[Sequences, Any]", str]:
    """The model that was asked for, and what it is in words; by brief runs, if there are several.

    These have a page of the first of them, with these notes.
    """
    from pgmult.sequences.models.lds import MultinomialLDS, usual_state_dim
    from pgmult.sequences.models.markov import MarkovChain
    from pgmult.sequences.models.mixed_markov import MixedMarkovChain
    from pgmult.sequences.models.trend import MultinomialTrend

    allowed = _allowed(options, data)
    models = {
        "markov": (MarkovChain(1, allowed=allowed), "a Markov chain of order 1"),
        "markov2": (MarkovChain(2, allowed=allowed), "a Markov chain of order 2"),
        **_hidden(options, data),
    }
    if options.model == "markov" and data.design is not None:
        words = f"a Markov chain of order 1 whose transitions depend on {options.inputs}"
        models["markov"] = MixedMarkovChain(data.num_symbols, allowed=allowed), words
    dims = options.state_dim or (usual_state_dim(data),)
    for size in dims:
        words = f"probabilities driven by a linear Gaussian state of {size} dimensions"
        models["lds" if len(dims) == 1 else f"lds {size}"] = MultinomialLDS(size), words
    if options.model == "trend":
        memory = max(3, int(data.lengths.max()))
        return MultinomialTrend(memory), "levels with damped slopes, for each symbol"
    wanted = {
        name: pair for name, pair in models.items()
        if options.model in ("auto", name, name.partition(" ")[0])
    }  # fmt: skip
    if len(wanted) == 1:
        return next(iter(wanted.values()))
    from pgmult.sequences.scores.rivals import best_model, held_by

    able = {name: model for name, (model, _) in wanted.items() if held_by(model, data) is not None}
    if not options.json:
        print(f"Brief runs compare {', '.join(able)}", flush=True)

    def report(posterior: Any) -> Any:
        return StoredRun(options.out, posterior, notes).report(max_draws=_BRIEF)

    def write_page(name: str, run: Any) -> None:
        if name == next(iter(able)):
            page_of_brief_run(options.out / PAGE, report, run, models[name][1])

    name, scores = best_model(data, able, options.seed, callback=write_page)
    if not options.json:
        print(f"{scores.table().text(width())}\n", flush=True)
    return models[name][0], f"{models[name][1]}, the best of {len(able)} by brief runs"


def _allowed(options: argparse.Namespace, data: Any) -> "NDArray[np.bool_] | None":
    """Return which transitions are possible; None if all are."""
    import numpy as np

    from pgmult.core.arguments import as_choice
    from pgmult.sequences.models.markov import steps_of

    if not options.forbid and not options.only_observed:
        return None
    if options.model not in ("markov", "markov2"):
        raise ValueError("--forbid and --only-observed are for --model markov and markov2")
    names = data.alphabet.tolist()
    stays = np.eye(len(names), dtype=np.bool_)
    allowed = np.ones_like(stays)
    if options.only_observed:
        steps, allowed = steps_of(data, 1), stays.copy()
        sure = ~steps.unsure & (steps.contexts < len(names)) & (steps.main < len(names))
        allowed[steps.contexts[sure], steps.main[sure]] = True
    for pair in options.forbid:
        rows, columns = (
            range(len(names)) if name == "*" else [names.index(as_choice(name, "--forbid", names))]
            for name in pair
        )
        ruled_out = np.zeros_like(stays)
        ruled_out[np.ix_(rows, columns)] = True
        allowed &= ~(ruled_out & ~stays if "*" in pair else ruled_out)
    return allowed


def _hidden(
    options: argparse.Namespace, data: "Sequences"
) -> dict[str, tuple["Model[Sequences, Any]", str]]:
    """Hidden Markov models of the numbers of states that were asked for."""
    from pgmult.sequences.models.hmm import MultinomialHMM
    from pgmult.sequences.models.mixed_hmm import MixedHMM

    models: dict[str, tuple[Any, str]] = {}
    numbers = options.states or (8 if data.state_names is None else max(2, len(data.state_names)),)
    for states in numbers:
        words = f"a hidden Markov model of {states} states"
        model = MultinomialHMM(states, stickiness=None)
        if data.design is not None:
            parts = _parts(options)
            model = MixedHMM(states, stickiness=None, inputs=parts or options.act_on)
            where = "transitions and emissions" if options.act_on == "both" else options.act_on
            formulas = parts or {where: options.inputs}
            words += " whose " + " and ".join(f"{of} depend on {by}" for of, by in formulas.items())
        models["hmm" if len(numbers) == 1 else f"hmm {states}"] = model, words
    return models


def _read(options: argparse.Namespace, inputs: object = None) -> tuple[Any, str, str]:
    """Sequences of a file, what kind of file it is by its name, and what they are of."""
    from pgmult.core.labels import warn_of_look_alikes
    from pgmult.datasets.fasta import read_fasta
    from pgmult.sequences.data.sequences import as_sequences

    suffix, is_table = _suffix(options.data), _is_table(options.data)
    columns = {name: getattr(options, name) for name in _COLUMNS}
    chosen = {name: value for name, value in columns.items() if value is not None}
    if is_table:
        if options.symbol is None and options.wide is None:
            raise ValueError(
                f"{options.data} is a table: say which column is --symbol, or --wide, which columns"
                " are the times of a row that is a sequence"
            )
        if options.units is not None:
            raise ValueError(f"{options.data} is a table: --units is for texts")
        table = read_table(options.data, options)
        left_out = ""
        if options.wide is None:
            table, left_out = _without_gaps(table, columns, inputs, options)
        if inputs is not None:
            chosen["inputs"] = inputs
        channels = _listed(options.symbol)
        subject = ", ".join(titled(table, name) for name in channels if name) or "Sequences"
        return table.sequences(**chosen), ", ".join(filter(None, ("table", left_out))), subject
    if inputs is not None:
        raise ValueError(f"{options.data} is no table: --inputs is for tables")
    if chosen or options.delimiter is not None:
        option = next(iter(chosen), "delimiter").replace("_", "-")
        raise ValueError(f"{options.data} is no table: --{option} is for tables")
    if suffix in _FASTA:
        if options.units is not None:
            raise ValueError(f"{options.data} is a FASTA file: --units is for texts")
        entries = read_fasta(options.data)
        data = as_sequences(list(entries.values()), names=list(entries))
        symbols = sorted(set("".join(entries.values())))
        warn_of_look_alikes(symbols, f"{options.data} (soft-masked?)")
        if "N" in symbols and set(symbols) <= set("ACGTUNacgtun") and options.max_symbols is None:
            warnings.warn(
                f"{options.data} has N, for unknown bases, and N is a symbol like the"
                f" others: --max-symbols {data.num_symbols - 1} makes its steps missing, if it"
                " is the rarest",
                stacklevel=2,
            )
        return data, "FASTA", "Sequences"
    if suffix != ".txt":
        raise ValueError(
            f"{options.data}: the name must end in .csv, .tsv, .jsonl (tables), .fa, .fasta, .fna,"
            " .faa (FASTA) or .txt (text), which says how it is read"
        )
    if options.units is None:
        raise ValueError(f"{options.data} is a text: say --units words or --units characters")
    return _read_text(options), "text", "Sequences"


def _without_gaps(
    table: Any, columns: dict[str, object], inputs: Any, options: argparse.Namespace
) -> tuple[Any, str]:
    """A table whose gaps are refused or are missing steps, without rows of no sequence or time."""
    import numpy as np

    from pgmult.core.tables import exact_array
    from pgmult.formulas.language import parse

    def of(*names: str) -> dict[str, str | None]:
        return {
            f"--{name} {one}" if isinstance(columns[name], list) else f"--{name}": one
            for name in names
            for one in _listed(columns[name])
        }

    what = "fill in the value"
    table, left_out = complete(table, of("sequence", "time", "begin", "end"), options, what)
    channels = _listed(options.symbol)
    if not options.drop_incomplete:
        observed = {**{f"--symbol {name}": name for name in channels}, **of("count")}
        complete(table, observed, options, what, "make such steps missing ones")
        return table, left_out
    if len(channels) > 1:  # a gap in one is missing there alone
        return table, left_out
    formula = inputs if inputs is None or isinstance(inputs, str) else inputs.formula
    used = [columns["symbol"], columns["count"], *(parse(formula).columns if formula else ())]
    holed = [
        name for name in dict.fromkeys(used) if name in table.cells and table.missing(name).any()
    ]
    if not holed:
        return table, left_out
    unknown, listed = table.missing(*holed), " or ".join(map(repr, holed))
    if unknown.all():
        raise ValueError(f"{table.source}: every row lacks a value of {listed}")

    def filled(name: str, gaps: object, value: object) -> Any:
        values = table.cells[name].values.astype(object)
        values[gaps] = value
        return table.cells[name]._replace(values=exact_array(values))

    cells = {name: table.cells[name] for name in table.cells}
    cells[options.symbol] = filled(options.symbol, unknown, None)
    if options.count in holed:
        cells[options.count] = filled(options.count, table.missing(options.count), 0)
    steps = (
        "1 row is" if np.count_nonzero(unknown) == 1 else f"{np.count_nonzero(unknown):,} rows are"
    )
    said = f"{steps} of missing steps, without a value of {listed}"
    return replace(table, cells=cells), "; ".join(filter(None, (left_out, said)))


def _listed(named: Any) -> list[str | None]:
    """The columns that an option names, which may be repeated."""
    return named if isinstance(named, list) else [named]


def _suffix(path: Path) -> str:
    """How its name ends, whether it is compressed or not."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _is_table(path: Path) -> bool:
    """Whether a path holds a table, or no such file but is named like one."""
    from pgmult.datasets.files import TABLES, is_table, local_path

    return is_table(local_path(path)) or _suffix(path) in TABLES


def _read_text(options: argparse.Namespace) -> "Sequences":
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


def _of_symbols(data: Any, wanted: list[str]) -> "Sequences":
    """The sequences with these symbols alone, in this order; the steps of others are missing."""
    import numpy as np
    import scipy.sparse

    from pgmult.sequences.data.sequences import as_sequences

    places = {symbol: place for place, symbol in enumerate(data.alphabet.tolist())}
    pairs = [(places[symbol], column) for column, symbol in enumerate(wanted) if symbol in places]
    shape = (len(places), len(wanted))
    pick = scipy.sparse.csr_array(
        (np.ones(len(pairs), dtype=np.int64), tuple(zip(*pairs, strict=True)) or ((), ())), shape
    )
    counts = scipy.sparse.csr_array(data.to_csr() @ pick)
    parts = [counts[slice(*ends)] for ends in pairwise(data.offsets)]
    fewer = as_sequences(parts, alphabet=wanted, names=data.names)
    same = {name: getattr(data, name) for name in (
        "starts", "every", "keys", "weights", "known", "state_names",
    )}  # fmt: skip
    fewer = replace(fewer, **same)
    return fewer if data.design is None else fewer.with_design(data.design)


def _new(run: StoredRun, options: argparse.Namespace) -> Any:
    """Sequences of another file, of the run's symbols."""
    is_table = _is_table(options.data)
    unfollow(options, ["units", "weight", "known"] if is_table else [*_COLUMNS, "delimiter"])
    new = _read(options, run.data.design)[0]
    symbols = run.data.alphabet.tolist()
    if unknown := sorted(set(new.alphabet.tolist()) - set(symbols)):
        warnings.warn(
            f"{options.data} has {len(unknown)} symbols that are not in the run, such as"
            f" {unknown[0]!r}: their steps are missing",
            stacklevel=2,
        )
    return replace(_of_symbols(new, symbols), channels=run.data.channels)


def _predict(run: StoredRun, options: argparse.Namespace, arguments: dict[str, object]) -> object:
    return run.ask("predict", _new(run, options), **arguments)


def _levels(probability: float, options: argparse.Namespace) -> tuple[float, float, float]:
    """Levels of quantiles: the median, and the ends of an interval."""
    beside = 0.5 - 0.5 * probability
    return (round(beside, 9), 0.5, round(1.0 - beside, 9))


_LEVELS = option(
    "--probability", to="levels", read=_levels, type=share, default=0.9, metavar="P",
    help="Probability of the intervals (default: 0.9)",
)  # fmt: skip


def _add_optional(parser: argparse.ArgumentParser) -> None:
    _add_data(parser, nargs="?")


def _later(run: StoredRun) -> Any:
    """How the sequences went on, if that was held out."""
    from pgmult.sequences.scores.rivals import bare

    if not run.held_out:
        return None
    counts = {name: run.held_out[name] for name in _HELD_OUT}
    later = replace(bare(run.data), **counts)
    inputs = {
        name.removeprefix(_INPUT): column
        for name, column in run.held_out.items() if name not in _HELD_OUT
    }  # fmt: skip
    if not inputs:
        return later
    return later.with_design(
        run.data.design.like(inputs, new_levels=True, num_rows=later.num_steps)
    )


def _forecast(run: StoredRun, options: argparse.Namespace, arguments: dict[str, object]) -> object:
    if run.data.design is not None and arguments.get("inputs") is None:
        raise ValueError(
            "this run has inputs: give those of the steps ahead by --future TABLE, a row for each"
            f" of {options.steps} steps of each sequence"
        )
    ahead = run.ask("forecast", **arguments)
    return ahead.next_change() if options.next_change else ahead


def _states(run: StoredRun, options: argparse.Namespace, arguments: dict[str, object]) -> object:
    if options.data is None:
        answer = run.ask("states", **arguments)
        return answer.steps() if options.steps else answer
    return run.ask("states", _new(run, options), **arguments).steps()


def _transitions(
    run: StoredRun, options: argparse.Namespace, arguments: dict[str, object]
) -> object:
    moves = run.ask("transitions", **arguments)
    answer = moves.estimand
    if options.durations:
        answer = moves.durations()
    if options.ever:
        answer = moves.reach()
    for name in ("reach", "occupancy", "time_in"):
        if (steps := getattr(options, name)) is not None:
            answer = getattr(moves, name)(steps)
    if options.difference is None:
        return answer
    if not moves.group:
        raise ValueError("--difference takes groups: name them by --by, or by values of --at")
    return answer.difference(moves.group, *options.difference)


def _compare(first: StoredRun, second: StoredRun, options: argparse.Namespace) -> object:
    later, other = (_later(run) for run in (first, second))
    names = str(first.path), str(second.path)
    if (later is None) != (other is None):
        without = names[later is not None]
        raise ValueError(f"{without} held nothing out: fit both runs with the same --hold-out")
    return first.ask("compare", second.posterior, held_out=later, names=names)


_TRANSITIONS = """
--durations  Show the mean number of steps of a visit
--reach N>=1  Show probabilities of reaching a symbol or state within N steps
--ever  Show probabilities of ever reaching a symbol or state
--occupancy N>=1  Show shares of symbols or states 0 to N steps ahead
--time-in N>=1  Show the expected number of steps in each symbol or state within N steps
"""

ROOM = Room(
    SEQUENCES,
    "Sequences of symbols, whose probabilities change from step to step",
    "  pgmult sequences fit visits.csv --symbol state --sequence patient --time day \\\n"
    "    --every day --hold-out 14 --out run\n"
    "  pgmult sequences fit genes.fasta --out run\n"
    "  pgmult sequences forecast run --steps 14 --out ahead.csv\n"
    "  pgmult sequences fit gps.csv --symbol does --sequence animal --time at --every 5min \\\n"
    '    --model hmm --states 2,3 --inputs "~ temperature + (1 | animal)" --out run\n'
    "  pgmult sequences effects run temperature\n"
    "  pgmult sequences fit careers.csv --wide y2000:y2009 --sequence id --model markov --out run\n"
    "  pgmult sequences transitions run --occupancy 10",
    "the dynamics behind a tidy table, a FASTA file or a text",
    draws=400, tune=200, add_fit=_add_fit, job=_job, compare=_compare,
    recipe=Recipe(_COLUMNS, (*READING, "units", "each")),
    report=lambda run, options: run.report(held_out=_later(run)),
    questions=(
        Question(
            "predict", "Predict probabilities at the steps of other sequences",
            [Option(_add_data), _LEVELS], only=["filtered", "random_seed"], ask=_predict,
            tidy=True,
        ),
        Question(
            "forecast", "Forecast the steps after the last one",
            [
                asides(
                    "--next-change  Show how long the symbol observed last continues, and what"
                    " comes then"
                )
            ],
            only=["steps", "inputs", "random_seed"], names={"inputs": "future"}, ask=_forecast,
            tidy=True,
        ),
        Question(
            "states", "Show the hidden states of hmm, and when they are occupied",
            [
                Option(_add_optional),
                asides(
                    "--steps  Show the most probable path of states, and probabilities, at each"
                    " step"
                ),
            ],
            ask=_states,
        ),
        Question(
            "transitions", "Show probabilities of the next symbol or state, given the present one",
            [DIFFERENCE, asides(_TRANSITIONS)],
            ask=_transitions,
        ),
        Question(
            "export", "Write the probabilities at all steps as a table", [_LEVELS], "predict",
            only=["filtered"], tidy=True,
        ),
        effects_question("Show mean probabilities in each sequence, or by an input"),
        CHECK,
    ),
)  # fmt: skip
