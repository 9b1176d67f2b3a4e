"""Fields: shares of three names over years and two places."""

import numpy as np
from invariances.frame import (
    Job,
    Question,
    Variation,
    changed,
    in_form,
    longer,
    other_seed,
    renamed,
    reversed_rows,
    rows_of,
    shuffled_columns,
    with_column,
)

NAMES = {"Ada": "z", "Ben": "y", "Cy": "x"}
PLACES = ("New York", "Texas")


def counts():
    """40 children a year and place; Ada rises."""
    rng = np.random.default_rng(5)
    rows = []
    for year in range(2000, 2012):
        for place in PLACES:
            rise = 0.03 * (year - 2000) * (1.0 if place == "New York" else 0.5)
            n = rng.multinomial(40, [0.2 + rise, 0.5 - rise, 0.3])
            rows += [(year, place, name, int(k)) for name, k in zip(NAMES, n, strict=True)]
    return dict(
        zip(("year", "place", "name", "n"), map(list, zip(*rows, strict=True)), strict=True)
    )


def later():
    """A year between, and one after the last."""
    return {"year": [2005, 2012], "place": ["New York", "Texas"]}


def shift(years, scale=1):
    """Years from another origin, or in other units, in every table and in the answers."""

    def back(question, key, centre, sd):
        first = (
            f"{float(key[0]) / scale - years:g}" if key[0].replace(".", "").isdigit() else key[0]
        )
        return (first, *key[1:]), centre, sd

    return {
        "tables": lambda name, t: changed(t, year=[(year + years) * scale for year in t["year"]]),
        "back": back,
    }  # fmt: skip


def with_totals(name, table):
    """Rows of a category that is the sum of the others."""
    if name != "names.csv":
        return table
    sums = {}
    for year, place, n in zip(table["year"], table["place"], table["n"], strict=True):
        sums[year, place] = sums.get((year, place), 0) + n
    more = {
        "year": [year for year, _ in sums], "place": [place for _, place in sums],
        "name": ["Total"] * len(sums), "n": [*sums.values()],
    }  # fmt: skip
    return {column: values + more[column] for column, values in table.items()}


def as_wide(name, table):
    """A column for each category, and one of their sums."""
    if name != "names.csv":
        return table
    rows = {}
    for year, place, label, n in zip(*table.values(), strict=True):
        rows.setdefault((year, place), {})[label] = n
    wide = {"year": [year for year, _ in rows], "place": [place for _, place in rows]}
    wide |= {label: [counts[label] for counts in rows.values()] for label in NAMES}
    return wide | {"total": [sum(counts.values()) for counts in rows.values()]}


def by_columns(words):
    """The command of a wide table."""
    at = words.index("--category")
    return [*words[:at], "--wide", *NAMES, "total", *words[at + 4 :]]


def with_more(name, table):
    """More inputs to predict at, far ahead and at another place."""
    if name != "later.csv":
        return table
    return {"year": table["year"] + [2016, 2003], "place": table["place"] + ["Texas", "Ohio"]}


def unobserved(name, table):
    """Rows without a count at a year that has none, one for each name and place."""
    if name != "names.csv":
        return table
    more = {
        "year": [2014] * 6, "place": [*PLACES] * 3, "name": [n for n in NAMES for _ in PLACES],
        "n": [0] * 6,
    }  # fmt: skip
    return {column: values + more[column] for column, values in table.items()}


QUESTIONS = (
    Question("predict", ("later.csv",)),
    Question("effects", ("year",)),
    Question("export"),
    Question("check"),
)
PRINTED = "a printed score of the probabilities that predict and export are held to"
RIVALS = "tests/unit/fields/test_rivals.py::test_rivals_are_the_same_for_the_same_table"
OUTSIDE = "tests/statistical/fields/test_outside.py"

SHARES = Job(
    "fields",
    {"names.csv": counts, "later.csv": later},
    ("--inputs", "year", "place", "--places", "us-states", "--category", "name", "--count", "n"),
    QUESTIONS,
    (
        longer(),
        other_seed(),
        reversed_rows(verbs=("predict", "effects", "check")),
        in_form("semicolons.csv"),
        shuffled_columns(tolerance=0.0),
        renamed("name", NAMES, verbs=("predict", "effects", "check")),
        Variation("units", "years from 0 on", **shift(-2000)),
        Variation("units", "years as months", **shift(0, 12)),
        Variation(
            "aggregation", "two rows for each count",
            tables=lambda name, t: (
                t if name != "names.csv" else
                changed(rows_of(t, [i for i in range(len(t["n"])) for _ in range(2)]),
                        n=[k for n in t["n"] for k in (n // 2, n - n // 2)])
            ),
            tolerance=0.0,
        ),
        with_column("note", lambda n: ["x"] * n, tolerance=0.0),
        Variation("besides", "rows of totals", tables=with_totals, tolerance=0.0),
        Variation("files", "a column a category", tables=as_wide, fit=by_columns, tolerance=0.0),
        Variation("horizons", "more inputs asked", tables=with_more, verbs=("predict",)),
        Variation(
            "horizons", "inputs that the fit knows of",
            fit=lambda words: [*words, "--at", "later.csv"],
        ),
        Variation("missing", "a year without counts", tables=unobserved),
    ),
    tests={
        ("brute_force", "effects"): "tests/unit/fields/test_field_effects.py",
        ("brute_force", "predict"): "tests/unit/fields/test_separable.py",
        ("brute_force", "compare"): "tests/unit/fields/test_left_out.py",
        **dict.fromkeys(
            ((relation, "compare") for relation in
             ("order", "units", "aggregation", "besides", "missing")),
            RIVALS,
        ),
        **dict.fromkeys((("outside", verb) for verb in ("fit", "export", "predict")), OUTSIDE),
    },
    reasons={
        ("files", "*"): "a file becomes one table for all jobs: tests of the readers",
        ("horizons", "compare"): "compares predictions of the rows that were counted",
        ("brute_force", "*"): "shows predictions, which have a cell",
        ("power", "check"): "a table of how often defects are seen: tests/benchmarks/power.py",
        **dict.fromkeys((("power", verb) for verb in ("fit", "report")), "its words are check's"),
        ("power", "*"): "says nothing of the fit",
        ("outside", "check"): "a table of how often defects are seen: tests/benchmarks/power.py",
        ("outside", "compare"): "scores counts, of which nothing but counts is known",
        ("outside", "*"): "its numbers are those of export, which has a cell",
        **dict.fromkeys(
            ((relation, "compare") for relation in ("longer", "seeds")), PRINTED
        ),
    },
)  # fmt: skip

JOBS = [SHARES]
