"""Regression: answers by age, sex and region, and counts of successes."""

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
    with_rows,
)

AGES, SEXES, REGIONS = (20, 35, 50, 65, 80), ("f", "m"), ("north", "south", "east", "west")
BACKWARDS = {"north": "d", "south": "c", "east": "b", "west": "a"}
PARTIES = {"left": "z left", "none": "m none", "right": "a right"}


def survey():
    """300 answers by a multinomial logit, so that no order of categories is the right one."""
    rng = np.random.default_rng(3)
    age, sex, region = (rng.choice(values, 300) for values in (AGES, SEXES, REGIONS))
    scores = np.stack(
        [0.0 * age, 0.03 * (age - 50.0) + 0.4 * (sex == "f"), 0.5 - 0.02 * (age - 50.0)], axis=1
    )
    scores[:, 2] += 0.6 * (region == "north")
    probs = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    vote = [str(rng.choice(list(PARTIES), p=p)) for p in probs]
    return {"vote": vote, "age": age.tolist(), "sex": sex.tolist(), "region": region.tolist()}


def census():
    """Each cell of age, sex and region, and how many people it has."""
    grid = [(a, s, r) for a in AGES for s in SEXES for r in REGIONS]
    people = [100 + 7 * i for i in range(len(grid))]
    columns = dict(zip(("age", "sex", "region"), map(list, zip(*grid, strict=True)), strict=True))
    return columns | {"people": people}


def asked():
    """Two people, asked for one by one."""
    return {"age": [35, 65], "sex": ["f", "m"], "region": ["north", "west"]}


def months(shift=0, scale=1.0):
    """Ages as months, or from another origin, in every table and in the questions' values."""

    def values(table):
        return changed(table, age=[(a + shift) * scale for a in table["age"]])

    def number(text):
        return f"{(float(text) + shift) * scale:g}"

    def back(question, key, centre, sd):
        if question.verb in ("effects", "export"):
            key = (f"{float(key[0]) / scale - shift:g}", *key[1:])
        return key, centre, sd

    return {
        "tables": lambda name, table: values(table) if "age" in table else table,
        "arguments": lambda words: [number(w) if w.isdigit() else w for w in words],
        "back": back,
    }


QUESTIONS = (
    Question("effects", ("age", "--values", "20", "50", "80")),
    Question("comparisons", ("sex",)),
    Question("contrasts", ("sex",)),
    Question("predict", ("asked.csv",)),
    Question("poststratify", ("census.csv", "--by", "region", "--weight", "people")),
    Question("groups"),
    Question("variance-shares"),
    Question("export"),
    Question("check"),
    Question("loo"),
)
GAPS = [(None, 35, "f", "north"), ("left", 50, None, "south"), ("right", 80, "m", None)]
IN_PROBABILITIES = ("effects", "comparisons", "contrasts", "poststratify", "variance-shares")
BY_LABELS = (*IN_PROBABILITIES, "predict", "groups", "loo")

WITH_RIVALS = "longer", "seeds", "order", "units", "aggregation", "besides", "missing"
BY_BRUTE_FORCE = (
    ("additive", "test_shares_are_weighted_means_over_cells", ("poststratify", "predict")),
    ("additive", "test_effects_are_averages_over_respondents", ("effects",)),
    ("answers", "test_ratios_and_odds_ratios_are_those_of_average_probabilities", ("comparisons",)),
    ("additive", "test_contrasts_are_differences_of_log_odds", ("contrasts",)),
    ("additive", "test_effects_of_groups_are_differences_from_their_mean_in_order", ("groups",)),
    ("additive", "test_shares_of_variance_add_up", ("variance-shares",)),
    ("additive", "test_scores_are_those_of_arviz", ("loo", "compare")),
)

ANSWERS = Job(
    "regression",
    {"survey.csv": survey, "census.csv": census, "asked.csv": asked},
    ("vote ~ sex * age + (1 | region)",),
    QUESTIONS,
    (
        longer(),
        other_seed(),
        reversed_rows(verbs=(*BY_LABELS, "check", "export", "fit", "report")),
        in_form("spss.sav"),
        shuffled_columns(tolerance=0.0, verbs=BY_LABELS),
        renamed("region", BACKWARDS, verbs=(*BY_LABELS, "export")),
        renamed("vote", PARTIES, verbs=(*BY_LABELS, "export")),
        Variation("units", "ages in months", **months(scale=12.0)),
        Variation("units", "ages from 2000 on", **months(shift=2000)),
        with_column("id", lambda n: list(range(n)), tolerance=0.0),
        with_column("wave", lambda n: ["one"] * n, tolerance=0.0),
        Variation(
            "missing", "rows with gaps are left out", tolerance=0.0, first_only=True,
            tables=with_rows(*GAPS), fit=lambda words: [*words, "--drop-incomplete"],
        ),
    ),
    tests={
        ("brute_force", verb): f"tests/unit/regression/test_{file}.py::{test}"
        for file, test, verbs in BY_BRUTE_FORCE
        for verb in verbs
    } | {
        ("outside", verb): "tests/invariances/test_outside.py"
        for verb in ("fit", "effects", "comparisons", "predict", "export", "poststratify", "check")
    } | {("power", "check"): "test_additive.py::test_checks_see_what_a_model_leaves_out"},
    reasons={
        ("files", "*"): "a file becomes one table for all jobs: tests of the readers",
        ("horizons", "*"): "nothing is asked over a horizon",
        ("power", "*"): "speaks of no agreement with the data, which only check and the page do",
        ("outside", "contrasts"): "log odds of one link are no constants of another",
        ("outside", "groups"): "differences of the averages that effects are held to",
        ("outside", "variance-shares"): "shares of terms are those of the link that is fitted",
        ("outside", "report"): "shows effects and comparisons, which have cells",
        **dict.fromkeys(
            (("outside", verb) for verb in ("loo", "compare")),
            "scores the probabilities that predict is held to",
        ),
        ("brute_force", "check"): "replicated statistics are simulations",
        ("brute_force", "export"): "what predict says of the data's rows",
        ("brute_force", "*"): "shows effects and comparisons, which are held to it",
        **dict.fromkeys(
            ((relation, "compare") for relation in WITH_RIVALS),
            "prints the sum that loo has in these cells, beside those of shares in the data",
        ),
    },
)  # fmt: skip


def thrice():
    """Each of a hundred answers three times."""
    return {name: values[:100] * 3 for name, values in survey().items()}


WEIGHTED = Job(
    "regression",
    {"survey.csv": thrice, "census.csv": census, "asked.csv": asked},
    ("vote ~ sex + age + (1 | region)",),
    QUESTIONS,
    (
        Variation(
            "aggregation", "a weight of 3 for three rows",
            tables=lambda name, table: (
                table if name != "survey.csv" else rows_of(table, range(100)) | {"n": [3] * 100}
            ),
            fit=lambda words: [*words, "--weight", "n"],
        ),
    ),
)  # fmt: skip

LOGARITHM = Job(
    "regression",
    {"survey.csv": survey, "census.csv": census, "asked.csv": asked},
    ("vote ~ sex + log(age) + (1 | region)",),
    QUESTIONS,
    (Variation("units", "ages in months, in a logarithm", **months(scale=12.0)),),
)  # fmt: skip

JOBS = [ANSWERS, WEIGHTED, LOGARITHM]
