"""``pgmult sequences``: symbols, words or counts step by step."""

import argparse
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgmult.cli import shared
from pgmult.cli.actions import CHECK, Question, Room, effects_question
from pgmult.cli.previews import page_of_brief_run
from pgmult.cli.runs import Job, StoredRun
from pgmult.sequences.family import SEQUENCES

if TYPE_CHECKING:
    from pgmult.core.typing import BoolArray
    from pgmult.sequences.data.sequences import Sequences

_FASTA = (".fa", ".fasta", ".fna", ".faa", ".ffn")
_HELD_OUT, _INPUT = ("offsets", "indptr", "symbols", "counts"), "input "
_BRIEF = 20  # draws that the page of a brief run is of
_MOST_BYTES = 160_000_000  # of states that are stored
_ONE_COLUMN = ("time", "begin", "end", "count", "weight", "known")
_COLUMNS = ("symbol", "sequence", *_ONE_COLUMN, "wide", "every", "week_start")


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


def _add_fit(fit: argparse.ArgumentParser) -> None:
    _add_data(fit)
    shared.add_options(
        fit, _FIT, state_dim={"type": _numbers(1)}, states={"type": _numbers(2)},
        forbid={"nargs": 2, "metavar": ("FROM", "TO")},
    )  # fmt: skip


def _numbers(least: int) -> Callable[[str], tuple[int, ...]]:
    """A type of option: "3", or "2,3,4"."""
    return lambda text: tuple(shared.at_least(least)(word) for word in text.split(","))


class _Column(argparse.Action):
    """Stores a column, or a list where an option may be repeated; refuses a second one of others.

    The first would be forgotten otherwise.
    """

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        before = getattr(namespace, self.dest)
        if before is not None and self.dest in _ONE_COLUMN:
            parser.error(f"{option} takes one column, got {before} and {values}")
        setattr(namespace, self.dest, values if before is None else [*_listed(before), values])


def _add_data(fit: argparse.ArgumentParser, **more: object) -> None:
    columns = {name: {"action": _Column} for name in ("symbol", "sequence", *_ONE_COLUMN)}
    shared.add_options(fit, _DATA, data=more, each={"default": None}, **columns)
    shared.TABLE.add(fit)
    shared.GAPS.add(fit)


def _job(options: argparse.Namespace) -> Job:
    if options.model is None:
        options.model = "hmm" if isinstance(options.symbol, list) or options.known else "lds"
    if options.model in ("lds", "auto"):  # "auto" reads and tries the rest meanwhile
        shared.begin_compiling("MultinomialLDS", options)
    from pgmult.formulas.design import table_of
    from pgmult.sequences.data.sequences import few_of
    from pgmult.sequences.reports import data_in_words
    from pgmult.sequences.scores.rivals import held_by

    data, kind, subject = _read(options, _formula(options))
    if data.channels and (options.symbols or options.max_symbols):
        raise ValueError("--symbols and --max-symbols are for one --symbol, not for several")
    if options.symbols is not None:
        wanted = [symbol.strip() for symbol in options.symbols.split(",")]
        if unknown := sorted(set(wanted) - set(data.alphabet.tolist())):
            names = few_of(data.alphabet)
            raise ValueError(f"--symbols must be of the data, {names}, got {unknown[0]!r}")
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
        data = data.last(options.memory)
        options.compares = False  # see MultinomialTrend
    title, source = f"{subject} in {options.data.name}", f"{options.data} ({kind})"
    notes = {"title": options.title or title, "source": source}
    model, notes["model"] = _model(options, data, notes)
    if options.model == "auto" and (taken := held_by(model, data)) is not data:
        data, notes["model"] = taken, f"{notes['model']}, which looks at no inputs"
    keep = dict.fromkeys(model.default_keep, 1)  # as many states of all steps as fit
    if "states" in model.dims:
        width = model.state_dim + (data.num_symbols - 1) * model.is_noisy(data)
        every = shared.kept_every({"states": data.num_steps * width}, _MOST_BYTES, options)
        keep |= dict.fromkeys(("states", "noise"), every)
    elif "psi" in model.dims:
        size = 2 * data.num_steps * (data.num_symbols - 1)
        every = shared.kept_every({"psi": size}, _MOST_BYTES, options)
        keep |= dict.fromkeys(model.predictive_variables, every)
    return Job(model, data, keep, notes, held_out, f"{source}: {data_in_words(data)}")


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
        first = next(iter(parts))
        raise ValueError(f"--{first} is for --model hmm, in place of --inputs and --act-on")
    terms = (formula.partition("~")[2].strip() for formula in parts.values())
    return f"~ {' + '.join(term for term in terms if term)}"


def _model(options: argparse.Namespace, data: Any, notes: dict[str, str]) -> tuple[Any, str]:
    """The model that was asked for, and what it is in words; by brief runs, if there are several.

    These have a page of the first of them, with these notes.
    """
    from pgmult.sequences.models import lds, markov, mixed_markov, trend
    from pgmult.sequences.scores.rivals import best_model, held_by

    allowed = _allowed(options, data)
    chain = "a Markov chain of order"
    models = {
        "markov": (markov.MarkovChain(1, allowed=allowed), f"{chain} 1"),
        "markov2": (markov.MarkovChain(2, allowed=allowed), f"{chain} 2"),
        **_hidden(options, data),
    }
    if options.model == "markov" and data.design is not None:
        mixed = mixed_markov.MixedMarkovChain(data.num_symbols, allowed=allowed)
        models["markov"] = mixed, f"{chain} 1 whose transitions depend on {options.inputs}"
    dims = options.state_dim or (lds.usual_state_dim(data),)
    for size in dims:
        words = f"probabilities driven by a linear Gaussian state of {size} dimensions"
        models["lds" if len(dims) == 1 else f"lds {size}"] = lds.MultinomialLDS(size), words
    if options.model == "trend":
        memory = max(3, int(data.lengths.max()))
        return trend.MultinomialTrend(memory), "levels with damped slopes, for each symbol"
    asked = [name for name in models if options.model in ("auto", name, name.partition(" ")[0])]
    if len(asked) == 1:
        return models[asked[0]]
    able = {name: models[name][0] for name in asked if held_by(models[name][0], data) is not None}
    if not options.json:
        print(f"Brief runs compare {', '.join(able)}", flush=True)

    def report(posterior: Any) -> Any:
        return StoredRun(options.out, posterior, notes).report(max_draws=_BRIEF)

    def write_page(name: str, run: Any) -> None:
        if name == next(iter(able)):
            page_of_brief_run(options.out / shared.PAGE, report, run, models[name][1])

    name, scores = best_model(data, able, options.seed, callback=write_page)
    if not options.json:
        print(f"{scores.table().text(shared.width())}\n", flush=True)
    return models[name][0], f"{models[name][1]}, the best of {len(able)} by brief runs"


def _allowed(options: argparse.Namespace, data: Any) -> "BoolArray | None":
    """Return which transitions are possible; None if all are."""
    import numpy as np

    from pgmult.core.arguments import as_choice
    from pgmult.sequences.reports import pair_counts

    if not options.forbid and not options.only_observed:
        return None
    if options.model not in ("markov", "markov2"):
        raise ValueError("--forbid and --only-observed are for --model markov and markov2")
    names = data.alphabet.tolist()
    stays = np.eye(len(names), dtype=np.bool_)
    allowed = np.ones_like(stays)
    if options.only_observed:
        allowed = stays | (pair_counts(data, np.arange(len(names))) > 0)
    for pair in options.forbid:
        before, after = (
            slice(None) if name == "*" else names.index(as_choice(name, "--forbid", names))
            for name in pair
        )
        allowed[before, after] &= stays[before, after] & ("*" in pair)
    return allowed


def _hidden(options: argparse.Namespace, data: "Sequences") -> dict[str, tuple[Any, str]]:
    """Hidden Markov models of the numbers of states that were asked for."""
    from pgmult.sequences.models import hmm, mixed_hmm

    models: dict[str, tuple[Any, str]] = {}
    make: Any = hmm.MultinomialHMM
    numbers = options.states or (8 if data.state_names is None else max(2, len(data.state_names)),)
    parts, depends = _parts(options), ""
    if data.design is not None:
        where = "transitions and emissions" if options.act_on == "both" else options.act_on
        formulas = (parts or {where: options.inputs}).items()
        depends = " whose " + " and ".join(f"{of} depend on {by}" for of, by in formulas)
        make = partial(mixed_hmm.MixedHMM, inputs=parts or options.act_on)
    for states in numbers:
        name = "hmm" if len(numbers) == 1 else f"hmm {states}"
        words = f"a hidden Markov model of {states} states{depends}"
        models[name] = make(states, stickiness=None), words
    return models


def _read(options: argparse.Namespace, inputs: object = None) -> tuple[Any, str, str]:
    """Sequences of a file, what kind of file it is by its name, and what they are of."""
    from pgmult.core.labels import warn_of_look_alikes
    from pgmult.datasets.fasta import read_fasta
    from pgmult.sequences.data.sequences import as_sequences

    path, suffix, is_table = options.data, _suffix(options.data), _is_table(options.data)
    chosen = {name: value for name in _COLUMNS if (value := getattr(options, name)) is not None}
    if inputs is not None:
        chosen["inputs"] = inputs
    if options.units is not None and (is_table or suffix in _FASTA):
        kind = "table" if is_table else "FASTA file"
        raise ValueError(f"{path} is a {kind}: --units is for texts")
    if is_table:
        if options.symbol is None and options.wide is None:
            wide = "--wide, which are the times of a row that is a sequence"
            raise ValueError(f"{path} is a table: say which column is --symbol, or {wide}")
        table, left_out = shared.read_table(path, options), ""
        if options.wide is None:
            table, left_out = _without_gaps(table, inputs, options)
        titles = [shared.titled(table, name) for name in _listed(options.symbol)]
        subject = ", ".join(titles) or "Sequences"
        return table.sequences(**chosen), ", ".join(filter(None, ("table", left_out))), subject
    asked = [*chosen, *["delimiter"] * (options.delimiter is not None)]
    if asked:
        raise ValueError(f"{path} is no table: --{asked[0].replace('_', '-')} is for tables")
    if suffix in _FASTA:
        entries = read_fasta(path)
        data = as_sequences(list(entries.values()), names=list(entries))
        symbols = sorted(set("".join(entries.values())))
        warn_of_look_alikes(symbols, f"{path} (soft-masked?)")
        if "N" in symbols and set(symbols) <= set("ACGTUNacgtun") and options.max_symbols is None:
            hint = f"--max-symbols {data.num_symbols - 1} makes it missing, if it is the rarest"
            said = f"{path} has N, for unknown bases, and N is a symbol like the others"
            warnings.warn(f"{said}: {hint}", stacklevel=2)
        return data, "FASTA", "Sequences"
    if suffix != ".txt":
        kinds = ".csv, .tsv, .jsonl (tables), .fa, .fasta, .fna, .faa (FASTA) or .txt (text)"
        raise ValueError(f"{path}: the name must end in {kinds}, which says how it is read")
    if options.units is None:
        raise ValueError(f"{path} is a text: say --units words or --units characters")
    return _read_text(options), "text", "Sequences"


def _without_gaps(table: Any, inputs: Any, options: argparse.Namespace) -> tuple[Any, str]:
    """A table whose gaps are refused or are missing steps, without rows of no sequence or time."""
    from pgmult.core.tables import exact_array
    from pgmult.formulas.language import parse

    def of(*names: str) -> dict[str, str]:
        return {f"--{name} {one}": one for name in names for one in _listed(getattr(options, name))}

    what = "fill in the value"
    table, left_out = shared.complete(table, of("sequence", "time", "begin", "end"), options, what)
    if not options.drop_incomplete:
        shared.complete(table, of("symbol", "count"), options, what, "make such steps missing ones")
    if not options.drop_incomplete or len(_listed(options.symbol)) > 1:
        return table, left_out  # a gap in one of several channels is missing there alone
    formula = inputs if inputs is None or isinstance(inputs, str) else inputs.formula
    names = [options.symbol, options.count, *(parse(formula).columns if formula else ())]
    present = [name for name in dict.fromkeys(names) if name in table.cells]
    holed = [name for name in present if table.missing(name).any()]
    if not holed:
        return table, left_out
    unknown, listed = table.missing(*holed), " or ".join(map(repr, holed))

    def filled(name: str, gaps: object, value: object) -> Any:
        values = table.cells[name].values.astype(object)
        values[gaps] = value
        return table.cells[name]._replace(values=exact_array(values))

    cells = dict(table.cells) | {options.symbol: filled(options.symbol, unknown, None)}
    if options.count in holed:
        cells[options.count] = filled(options.count, table.missing(options.count), 0)
    rows = "1 row is" if unknown.sum() == 1 else f"{unknown.sum():,} rows are"
    said = f"{rows} of missing steps, without a value of {listed}"
    return replace(table, cells=cells), "; ".join(filter(None, (left_out, said)))


def _listed(named: Any) -> list[str]:
    """The columns that an option names, which may be repeated."""
    if named is None:
        return []
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
    pieces = {f"line {n}": line for n, line in enumerate(lines_of(text), start=1) if line.strip()}
    if options.each == "file":
        pieces = {options.data.name: " ".join(text.split())}
    split: Callable[[str], Sequence[str]] = split_words if options.units == "words" else normal_form
    units = {name: steps for name, piece in pieces.items() if (steps := split(piece))}
    if not units:
        raise ValueError(f"{options.data}: there are no {options.units} in it")
    return as_sequences(list(units.values()), names=list(units))


def _of_symbols(data: Any, wanted: list[str]) -> Any:
    """The sequences with these symbols alone, in this order; the steps of others are missing."""
    import scipy.sparse

    from pgmult.sequences.data.sequences import as_sequences

    names = data.alphabet.tolist()
    columns = [names.index(symbol) if symbol in names else len(names) for symbol in wanted]
    nothing = scipy.sparse.csr_array((data.num_steps, 1), dtype=data.counts.dtype)
    counts = scipy.sparse.csr_array(scipy.sparse.hstack([data.to_csr(), nothing]))[:, columns]
    fewer = as_sequences([counts], alphabet=wanted)
    symbols = ("indptr", "symbols", "counts", "num_symbols", "order", "alphabet")
    return replace(data, **{name: getattr(fewer, name) for name in symbols})


def _new(run: StoredRun, options: argparse.Namespace) -> Any:
    """Sequences of another file, of the run's symbols."""
    of_tables, of_others = [*_COLUMNS, "delimiter"], ["units", "weight", "known"]
    shared.unfollow(options, of_others if _is_table(options.data) else of_tables)
    new = _read(options, run.data.design)[0]
    symbols = run.data.alphabet.tolist()
    if unknown := sorted(set(new.alphabet.tolist()) - set(symbols)):
        others = f"{len(unknown)} symbols that are not in the run, such as {unknown[0]!r}"
        warnings.warn(f"{options.data} has {others}: their steps are missing", stacklevel=2)
    return replace(_of_symbols(new, symbols), channels=run.data.channels)


def _levels(probability: float, options: argparse.Namespace) -> tuple[float, float, float]:
    """Levels of quantiles: the median, and the ends of an interval."""
    beside = 0.5 - 0.5 * probability
    return (round(beside, 9), 0.5, round(1.0 - beside, 9))


_LEVELS = shared.option(
    "--probability", to="levels", read=_levels, type=shared.share, default=0.9, metavar="P",
    help="Probability of the intervals (default: 0.9)",
)  # fmt: skip


def _later(run: StoredRun) -> Any:
    """How the sequences went on, if that was held out."""
    from pgmult.sequences.scores.rivals import bare

    if not run.held_out:
        return None
    cells = dict(run.held_out)
    later = replace(bare(run.data), **{name: cells.pop(name) for name in _HELD_OUT})
    if run.data.design is None:
        return later
    inputs = {name.removeprefix(_INPUT): column for name, column in cells.items()}
    design = run.data.design.like(inputs, new_levels=True, num_rows=later.num_steps)
    return later.with_design(design)


def _forecast(run: StoredRun, options: argparse.Namespace, arguments: dict[str, object]) -> object:
    ahead = run.ask("forecast", **arguments)
    return ahead.next_change() if options.next_change else ahead


def _states(run: StoredRun, options: argparse.Namespace, arguments: dict[str, object]) -> object:
    new = [] if options.data is None else [_new(run, options)]
    answer = run.ask("states", *new, **arguments)
    return answer.steps() if options.steps or new else answer


def _transitions(run: StoredRun, options: argparse.Namespace, arguments: dict[str, Any]) -> object:
    moves = run.ask("transitions", **arguments)
    answer = moves.durations() if options.durations else moves.estimand
    answer = moves.reach() if options.ever else answer
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


_FORECAST = "--next-change  Show how long the symbol observed last continues, and what comes then"
_STATES = "--steps  Show the most probable path of states, and probabilities, at each step"
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
    recipe=shared.Recipe(_COLUMNS, (*shared.READING, "units", "each")),
    report=lambda run, options: run.report(held_out=_later(run)),
    questions=(
        Question(
            "predict", "Predict probabilities at the steps of other sequences",
            [shared.Option(_add_data), _LEVELS], only=["filtered", "random_seed"],
            ask=lambda run, options, arguments: run.ask("predict", _new(run, options), **arguments),
            tidy=True,
        ),
        Question(
            "forecast", "Forecast the steps after the last one",
            [shared.asides(_FORECAST)], only=["steps", "inputs", "random_seed"],
            names={"inputs": "future"}, ask=_forecast, tidy=True,
        ),
        Question(
            "states", "Show the hidden states of hmm, and when they are occupied",
            [shared.Option(partial(_add_data, nargs="?")), shared.asides(_STATES)], ask=_states,
        ),
        Question(
            "transitions", "Show probabilities of the next symbol or state, given the present one",
            [shared.DIFFERENCE, shared.asides(_TRANSITIONS)],
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
