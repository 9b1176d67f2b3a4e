"""``pgmult fields``: counts of categories at places and times."""

import argparse
import re
from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pgmult.cli import shared
from pgmult.cli.actions import CHECK, Question, Room, effects_question
from pgmult.cli.runs import Job, StoredRun
from pgmult.fields.family import FIELDS

if TYPE_CHECKING:
    from pgmult.datasets.tables import DataTable

_STATES, _STATES_REACH = "us-states", 1000.0  # km: of the length scale's prior median
_OTHER = "(other)"
# words in the names of columns whose whole numbers are labels
_LABELS = re.compile(
    "plot|site|id|block|station|subject|patient|unit|region|district|county|precinct|ward|tract"
    "|zone|area|code|fip|zip|patch|tank|pen|nest|quadrat|transect|sample|replicate|treatment|group"
    "|school|village|state|province|constituency|trap|pond|lake|colony|cage|herd|farm|field|house"
    "|household|hospital|clinic|hive|family|litter|tree|person|participant|individual|animal|user"
)


_FIT = f"""
TABLE  File of a table, such as names.csv or names.xlsx
--inputs COLUMN...!  Columns of times and places: numbers, dates (1999-12-31) or names of places
--category COLUMN  Column of the categories
--count COLUMN  Column of counts, or an expression, such as "round(share * n / 100)" (default: a row
    is one observation)
--wide COLUMN...  Columns of counts, one for each category, in place of --category and --count
--places WHERE*  Locations of the places that an input names: us-states, or a table with a column of
    the names (of the input's name, or its first column) and columns lat and lon (degrees) or x and
    y; COLUMN=WHERE if several inputs are names
--coordinates COLUMN...  Columns of coordinates of places (default: lat and lon, or x and y)
--absent zero|not-counted  Meaning of a category without a row at some inputs (default: not counted
    if no place has it in a year and counts were to be expected, else 0)
--at TABLE  Table of further inputs to predict at
--max-categories K>=2  Use the K - 1 most frequent categories, and {_OTHER} for all others
--length-scale COLUMN=X*  Prior median of an input's length scale (default: a third of its range)
--overdispersion X  Variance of independent noise at every input; 0 for none (default: 0.05)
--structure auto|dense|state_space|separable  Algorithm of the Gaussian processes; auto takes an
    exact one (default: auto)
--hold-out INPUTS  Hold out a share of the inputs, such as 0.1, or those from a value on, such as
    year=2000, and score them
"""


def _add_fit(fit: argparse.ArgumentParser) -> None:
    none: dict[str, object] = {"default": []}
    shared.add_options(fit, _FIT, wide=none, coordinates=none)
    shared.TABLE.add(fit)
    shared.GAPS.add(fit)


def _job(options: argparse.Namespace) -> Job:
    from pgmult.core.tables import rows_in_words
    from pgmult.datasets.states import us_states
    from pgmult.fields.models.multinomial_gp import MultinomialGP
    from pgmult.fields.reports import data_in_words
    from pgmult.fields.tables import read_field

    if bool(options.wide) == bool(options.category):
        raise ValueError("say which column is the --category, or which ones are --wide counts")
    table, left_out = _without_gaps(shared.read_table(options.table, options), options)
    table = table.computed(options.count, "count")
    columns = table.columns
    lengths = _lengths(options.length_scale)
    places = _places(options, columns)
    numbers = {
        name: columns[name] for name in options.inputs
        if name in columns and name not in {*places, *lengths} and columns[name].dtype.kind in "iuf"
    }  # fmt: skip
    lines = _lines(numbers, options.inputs[0])
    if options.category is not None and options.max_categories is not None:
        table = _merged(table, options.category, options.count, options.max_categories)
    new = None if options.at is None else shared.read_table(options.at, options)
    at = {name: located.at for name, located in places.items()}
    absent = options.absent.replace("-", " ") if options.absent else None
    with rows_in_words(table):
        data, guess, zeros, totals = read_field(
            table, inputs=options.inputs, category=options.category, count=options.count,
            wide=options.wide, new_inputs=new, places=at, absent=absent,
        )  # fmt: skip
    hidden = {}
    if options.hold_out is not None:
        data, hidden["counts"] = _hide(data, options.hold_out, options.seed)
    states = [name for name, where in at.items() if where == us_states()]
    lengths = dict.fromkeys(states, _STATES_REACH) | lengths
    covariance, words = _covariance(data, options.inputs, places, lengths)
    model = MultinomialGP(covariance, options.structure, overdispersion=options.overdispersion)
    what = shared.titled(table, options.category) if options.category else "shares"
    notes = {
        "title": options.title or f"{what} in {options.table.name}",
        "source": str(options.table),
        "places": at,
        "states": states,
        "model": f"Gaussian processes of {words}, overdispersion {options.overdispersion:g}",
    }
    notices = [
        f"{options.table}: {data_in_words(data)}", left_out, *lines, totals,
        guess and f"{guess} (--absent zero or not-counted says so)",
        zeros and f"{zeros} (--absent not-counted if they could not be)",
    ]  # fmt: skip
    return Job(model, data, model.default_keep, notes, hidden, "\n".join(filter(None, notices)))


def _without_gaps(table: "DataTable", options: argparse.Namespace) -> tuple["DataTable", str]:
    """The table without gaps, and what was left out of it."""
    needed = {"--category": options.category} | {f"--inputs {n}": n for n in options.inputs}
    names = shared.columns_in(options.count, table)
    of_counts = {"--count" if n == options.count else f"--count {n}": n for n in names}
    if options.drop_incomplete:
        counts = {f"--wide {n}": n for n in options.wide or ()}
        return shared.complete(table, {**of_counts, **counts, **needed}, options, "")
    shared.complete(table, of_counts, options, "write 0 where nothing was counted")
    return shared.complete(table, needed, options, "fill in the value")


def _report(run: StoredRun, options: argparse.Namespace | None) -> object:
    from pgmult.datasets.states import us_states

    codes = {at: name for name, at in us_states().items() if len(name) == 2}
    tiles = {name: codes[at] for name, at in us_states().items() if run.notes.get("states")}
    return run.report(held_out=run.held_out.get("counts"), tiles=tiles)


def _predict(run: StoredRun, options: argparse.Namespace, arguments: dict[str, Any]) -> object:
    arguments["places"], new = run.notes.get("places"), arguments.pop("new")
    return shared.predict_complete(run, new, [*(run.data.columns or ())], options, arguments)


def _rivals(run: StoredRun) -> Any:
    return run.ask("compare", held_out=run.held_out.get("counts"))


def _compare(first: StoredRun, second: StoredRun, options: argparse.Namespace) -> object:
    import numpy as np

    hidden, other = first.held_out.get("counts"), second.held_out.get("counts", ())
    held_out = hidden if hidden is not None and np.array_equal(hidden, other) else None
    names = str(first.path), str(second.path)
    return first.ask("compare", second.posterior, held_out=held_out, names=names)


def _lengths(texts: Sequence[str]) -> dict[str, float]:
    numbers = {}
    for text in texts:
        name, mark, value = text.rpartition("=")
        number = shared.value_of(value)
        if not mark or not isinstance(number, int | float) or not number > 0.0:
            raise ValueError(f"--length-scale must be COLUMN=X with X above 0, got {text!r}")
        numbers[name] = float(number)
    return numbers


def _places(options: argparse.Namespace, table: Mapping[str, Any]) -> dict[str, Any]:
    """Read the `pgmult.fields.places.Places` of each column of names."""
    from pgmult.core.dates import dates_of
    from pgmult.datasets.states import us_states
    from pgmult.fields.places import Places, places_of

    inputs = options.inputs
    texts = [name for name in inputs if name in table and table[name].dtype.kind in "UO"]
    named = [name for name in texts if dates_of(table[name]) is None]
    located = {text.rpartition("=")[0] for text in options.places}
    for name in named:
        _refuse_other_dates(name, table[name].tolist(), located)
    places: dict[str, Any] = {}
    for text in options.places:
        column, mark, where = text.rpartition("=")
        if not mark:
            if len(named) != 1:
                raise ValueError(
                    f"--places {where} must say of which column, --places COLUMN={where}: columns"
                    f" of names among the inputs are {', '.join(named) or 'none'}"
                )
            column = named[0]
        if column not in inputs:
            raise ValueError(f"--places must be of one of the inputs, got {column!r}")
        if where == _STATES:
            places[column] = Places(us_states(), on_sphere=True)
        else:
            table_of = shared.read_table(where, options)
            places[column] = places_of(table_of, column, options.coordinates, where)
    if missing := [name for name in named if name not in places]:
        raise ValueError(
            f"the input {missing[0]!r} has names: if they are places, say where they are with"
            f" --places {missing[0]}=us-states or --places {missing[0]}=TABLE; a factor such as a"
            f" treatment takes a regression (pgmult regression fit {options.table} with"
            f" {missing[0]} in the formula), or a field for each of its values"
        )
    return places


def _refuse_other_dates(name: str, cells: Sequence[str], located: Collection[str]) -> None:
    """Refuse a column that would be numbers or dates, were they all written as such."""
    from pgmult.datasets.columns import is_number_or_date

    if name in located or 2 * sum(not cell[:1].isdigit() for cell in cells) > len(cells):
        return  # names of places
    row = next((row for row, cell in enumerate(cells, 1) if not is_number_or_date(cell)), 1)
    raise ValueError(
        f"the input {name!r} must be numbers, or dates such as 1999-12-31, in every row, got"
        f" {cells[row - 1]!r} in row {row:,} below the header (names of places take"
        f" --places {name}=TABLE)"
    )


def _lines(numbers: Mapping[str, Any], first: str) -> list[str]:
    """Say which inputs after the first, of whole numbers without a gap, are taken for lines.

    Numbers that are names of places are refused, unless a length scale says that they are not.
    """
    import numpy as np

    notes = []
    for name, column in numbers.items():
        words = {word.rstrip("s0123456789") for word in re.split(r"[^a-z0-9]+", name.lower())}
        if any(map(_LABELS.fullmatch, words)) and (column % 1 == 0).all():
            raise ValueError(
                f"the input {name!r} has numbers that look like names, such as {column[0]:g}: say"
                f" where they are with --places {name}=TABLE, or --length-scale {name}=X on a line"
            )
        values = np.unique(column)
        if name != first and values[0] in (0, 1) and (np.diff(values) == 1).all():
            ends = f"from {values[0]:g} to {values[-1]:g}"
            notes.append(
                f"{name} is taken for a line on which neighbours are alike, {ends} (--places"
                f" {name}=TABLE says where names are, --length-scale {name}=X that it is a line)"
            )
    return notes


def _merged(table: Any, category: str, count: str | None, most: int) -> Any:
    """The table with all but the most frequent categories under one name."""
    import numpy as np

    from pgmult.core.labels import labels_of, numbered
    from pgmult.core.tables import exact

    columns = table.columns
    if category not in columns or (count is not None and count not in columns):
        return table  # `table.field` says what is wrong
    labels, which = numbered(labels_of(columns[category], category))
    if len(labels) <= most:
        return table
    number = np.ones(len(which)) if count is None else columns[count].astype(np.float64)
    first = np.argsort(-np.bincount(which, number), kind="stable")[: most - 1]
    names = np.where(np.isin(np.arange(len(labels)), first), labels.astype(object), _OTHER)
    merged = exact(names[which].astype(np.str_), category)
    return replace(table, cells=ChainMap({category: merged}, table.cells))


def _hide(data: Any, which: str, seed: int) -> tuple[Any, Any]:
    """The data without the counts at some inputs, and those counts."""
    import numpy as np

    column, mark, value = which.rpartition("=")
    values: Any = data.columns.get(column) if mark else None
    if mark and (values is None or values.dtype.kind not in "ifM"):
        raise ValueError(f"--hold-out must name an input of numbers or dates, got {column!r}")
    try:
        if mark:
            hidden = values >= np.array([value]).astype(values.dtype)[0]
        else:
            hidden = np.random.default_rng(seed).random(data.num_rows) < shared.share(value)
    except (ValueError, argparse.ArgumentTypeError) as error:
        wrong = f"{which} must have a value of {column}" if mark else f"{error}, or be COLUMN=VALUE"
        raise ValueError(f"--hold-out {wrong}") from None
    full = data.totals > 0
    number = np.count_nonzero(hidden & full)
    if number in (0, np.count_nonzero(full)):
        hint = f"hide some of the {data.num_rows} inputs and leave some, it hides {number}"
        raise ValueError(f"--hold-out {which} must {hint}")
    counts = np.where(hidden[:, None], data.counts, 0)
    return data.with_counts(data.counts - counts), counts


def _covariance(
    data: Any, inputs: Sequence[str], places: Mapping[str, Any], lengths: Mapping[str, float]
) -> tuple[Any, str]:
    """Rough in every input, and the rougher in space: what real counts need; and so in words."""
    import numpy as np

    from pgmult.fields.covariances import GreatCircle, Matern
    from pgmult.fields.places import degrees_among, spread_in_km

    if unknown := [name for name in lengths if name not in inputs]:
        raise ValueError(f"--length-scale must be of one of the inputs, got {unknown[0]!r}")
    names = data.input_names.tolist()
    degrees = degrees_among(name for name in inputs if data.columns[name].dtype.kind in "if")
    product: Any = 1.0
    words = []
    for name in inputs:
        if name in degrees[1:]:
            continue  # together with the latitude
        together = degrees if name in degrees else [name]
        active = [
            i for one in together for i, column in enumerate(names)
            if one in (column, column.rpartition(" ")[0])
        ]  # fmt: skip
        points = data.sites[:, active]
        chosen = next((lengths[one] for one in together if one in lengths), None)
        if name in degrees or (name in places and places[name].on_sphere):
            length = chosen or spread_in_km(points) / 3.0 or 1.0
            product *= GreatCircle(length, *active)
            words.append(f"{' and '.join(together)} (exponential, about {length:,.0f} km)")
        else:
            length = chosen or (float(np.ptp(points, axis=0).max()) or 1.0) / 3.0
            smoothness = 0.5 if name in places else 1.5
            product *= Matern(smoothness, length_scale=length, active=active)
            years = " years" if data.columns[name].dtype.kind == "M" else ""
            words.append(f"{name} (Matern {smoothness:g}, about {length:.3g}{years})")
    return product, " and ".join(words)


ROOM = Room(
    FIELDS,
    "Shares of categories over time and space (Gaussian processes)",
    "  pgmult fields fit names.csv --inputs year state --places us-states \\\n"
    "    --category name --count n --hold-out 0.1 --out run\n"
    "  pgmult fields predict run elsewhere.csv --out probabilities.csv",
    "the probabilities behind a tidy table of counts",
    draws=400, tune=25, add_fit=_add_fit, job=_job, report=_report, compare=_compare,
    rivals=_rivals,
    questions=(
        Question(
            "predict", "Predict probabilities at other inputs", [shared.GAPS], first=["new"],
            required=["new"], skip=["inputs", "places"], defaults={"max_draws": 200},
            ask=_predict, tidy=True,
        ),
        effects_question("Average shares of the categories at each value of an input"),
        Question(
            "export", "Write the probabilities at all inputs as a table", verb="predict",
            only=["probability"], tidy=True,
        ),
        CHECK,
    ),
)  # fmt: skip
