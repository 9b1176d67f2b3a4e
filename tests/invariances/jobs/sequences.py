"""Sequences: careers of sixty people, by a Markov chain and by hidden states."""

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
    shuffled_columns,
    with_column,
    with_rows,
)

STATES = {"school": "z", "work": "y", "retired": "x"}
MATRIX = np.array([[0.7, 0.3, 0.0], [0.0, 0.85, 0.15], [0.0, 0.0, 1.0]])


def careers():
    """Nobody leaves retirement."""
    rng = np.random.default_rng(7)
    rows = []
    for person in range(60):
        state = 0
        for year in range(2000, 2012):
            rows.append((f"p{person:02}", year, list(STATES)[state]))
            state = int(rng.choice(3, p=MATRIX[state]))
    return dict(zip(("person", "year", "state"), map(list, zip(*rows, strict=True)), strict=True))


def as_wide(name, table):
    """A row for each person, a column for each year."""
    years = sorted(set(table["year"]))
    cells = {(p, y): s for p, y, s in zip(*table.values(), strict=True)}
    people = sorted(set(table["person"]))
    states = {f"y{year}": [cells.get((p, year)) for p in people] for year in years}
    return {"person": people, **states}


def as_spells(name, table):
    """A row for each spell, with its first and its last year."""
    spells = []
    for person, year, state in sorted(zip(*table.values(), strict=True)):
        if spells and spells[-1][0] == person and spells[-1][3] == state:
            spells[-1][2] = year
        else:
            spells.append([person, year, year, state])
    columns = map(list, zip(*spells, strict=True))
    return dict(zip(("person", "begin", "end", "state"), columns, strict=True))


NOBODY = [("zz", year, None) for year in (2003, 2004, 2005)]
LONG = ("--symbol", "state", "--sequence", "person", "--time", "year", "--every", "1")
SEQUENCE = ("--sequence", "person")
FORMS = (
    Variation(
        "horizons", "a row for each person", tables=as_wide, tolerance=0.0, first_only=True,
        fit=lambda words: ["--wide", "y2000:y2011", *SEQUENCE, *words[len(LONG) :]],
        verbs=("forecast", "transitions", "states", "fit"),
    ),
    Variation(
        "horizons", "a row for each spell", tables=as_spells, tolerance=0.0, first_only=True,
        fit=lambda words: [
            "--symbol", "state", *SEQUENCE, "--begin", "begin", "--end", "end", *words[len(LONG) :]
        ],
        verbs=("forecast", "transitions", "states", "fit"),
    ),
)  # fmt: skip
FROM_0 = Variation(
    "units", "years from 0 on",
    tables=lambda name, t: changed(t, year=[year - 2000 for year in t["year"]]),
    back=lambda question, key, centre, sd: (
        key if question.verb not in ("forecast", "predict", "export")
        else (*key[:2], f"{int(key[2]) + 2000}", key[3]), centre, sd
    ),
)  # fmt: skip
UNIT = "tests/unit/sequences"
ALL = f"{UNIT}/test_markov.py::TestAgainstAllCompletions"
FOLLOWS = f"{UNIT}/test_transitions.py::test_what_follows_is_what_simulation_finds"

PRINTED = "a printed score of the probabilities that forecast and predict are held to"

MARKOV = Job(
    "sequences",
    {"careers.csv": careers},
    (*LONG, "--model", "markov"),
    (
        Question("forecast", ("--steps", "3")),
        Question("effects", ("sequence",)),
        Question("transitions"),
        Question("transitions", ("--occupancy", "4"), id="occupancy"),
        Question("predict", ("careers.csv",)),
        Question("export"),
        Question("check"),
    ),
    (
        longer(default=400),
        other_seed(),
        reversed_rows(),
        in_form("stata.dta"),
        shuffled_columns(tolerance=0.0),
        renamed("state", STATES),
        FROM_0,
        Variation(
            "aggregation", "a count of one in every row", tolerance=0.0,
            tables=lambda name, t: changed(t, n=[1] * len(t["year"])),
            fit=lambda words: [*words, "--count", "n"],
            verbs=("forecast", "transitions", "predict", "export", "fit", "report"),
        ),
        Variation(
            "aggregation", "a weight of one for everybody", tolerance=0.0, first_only=True,
            tables=lambda name, t: changed(t, w=[1] * len(t["year"])),
            fit=lambda words: [*words, "--weight", "w"],
        ),
        with_column("note", lambda n: ["x"] * n, tolerance=0.0),
        Variation(
            "besides", "a person without observations", tables=with_rows(*NOBODY),
            fit=lambda words: [*words, "--drop-incomplete"], first_only=True,
            verbs=("forecast", "transitions"),
        ),
        Variation(
            "missing", "unknown beside what is known", tolerance=0.0, first_only=True,
            tables=with_rows(("p00", 2001, None), ("p07", 2005, None)),
            fit=lambda words: [*words, "--drop-incomplete"], verbs=("forecast", "transitions"),
        ),
        Variation(
            "horizons", "six steps for three", tolerance=0.0, verbs=("forecast",),
            arguments=lambda words: ["6" if word == "3" else word for word in words],
        ),
        *FORMS,
    ),
    tests={
        ("missing", "fit"): f"{UNIT}/test_markov.py::test_waves_at_irregular_years_give_powers_of_"
        "the_matrix",
        ("missing", "forecast"): f"{ALL}::test_steps_ahead",
        ("missing", "predict"): f"{ALL}::test_missing_symbols_given_all_others",
        ("missing", "export"): f"{ALL}::test_missing_symbols_given_all_others",
        ("missing", "effects"): f"{ALL}::test_missing_symbols_given_all_others",
        ("missing", "compare"): f"{ALL}::test_one_step_ahead",
        ("missing", "check"): "tests/statistical/sequences/test_markov_chain.py",
        ("missing", "report"): f"{UNIT}/test_markov.py::test_people_who_were_lost_do_not_begin_"
        "anew",
        ("horizons", "predict"): f"{UNIT}/test_own_answers.py::test_smoothed_probabilities",
        ("horizons", "export"): f"{UNIT}/test_own_answers.py::test_smoothed_probabilities",
        ("brute_force", "transitions"): FOLLOWS,
        ("brute_force", "forecast"): f"{ALL}::test_steps_ahead",
        ("brute_force", "predict"): f"{ALL}::test_missing_symbols_given_all_others",
        ("brute_force", "export"): f"{ALL}::test_missing_symbols_given_all_others",
        ("brute_force", "compare"): f"{UNIT}/test_rivals.py::test_leave_one_out_of_a_markov_chain_"
        "is_its_dirichlet_law",
        ("brute_force", "fit"): f"{ALL}::test_log_likelihood",
        ("power", "check"): f"{UNIT}/test_markov.py::test_checks_see_visits_of_a_fixed_length",
    },
    reasons={
        ("files", "*"): "a file becomes one table for all jobs: tests of the readers",
        ("aggregation", "*"): "steps follow each other: rows of a step are added up as counts",
        ("brute_force", "check"): "replicated statistics are simulations",
        ("brute_force", "effects"): "averages, by the one average over rows, of what export has",
        ("brute_force", "report"): "its numbers are those of the other answers",
        ("horizons", "*"): "nothing is asked over a horizon",
        ("longer", "compare"): PRINTED,
        ("seeds", "compare"): PRINTED,
        ("order", "compare"): PRINTED,
        ("units", "compare"): PRINTED,
        ("besides", "compare"): PRINTED,
        ("outside", "*"): "the field's standard models, Markov chains and hidden Markov models, are"
        " these models; benchmarks have their coverage at the defaults",
        ("power", "*"): "only a check says that data look like the model's",
    },
)  # fmt: skip

HIDDEN = Job(
    "sequences",
    {"careers.csv": careers},
    (*LONG, "--model", "hmm", "--states", "2"),
    (Question("states"), Question("transitions", ("--durations",))),
    (
        longer(default=400),
        other_seed(),
        FROM_0,
        shuffled_columns(tolerance=0.0),
        with_column("note", lambda n: ["x"] * n, tolerance=0.0),
        *FORMS,
    ),
    tests={
        ("missing", "states"): f"{UNIT}/test_hmm.py",
        ("brute_force", "states"): f"{UNIT}/test_transitions.py::test_durations_are_of_visits",
    },
)

JOBS = [MARKOV, HIDDEN]
