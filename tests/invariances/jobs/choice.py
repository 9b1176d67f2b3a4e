"""Choices: forty people choose among three ways to travel, five times each."""

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

MODES = {"bus": "z", "car": "y", "train": "x"}


def trips():
    """Prices, hours, and incomes that make prices matter less."""
    rng = np.random.default_rng(9)
    rows = []
    for person in range(40):
        income = int(rng.choice([20, 40, 60, 80]))
        for trip in range(5):
            price, time = rng.uniform(2, 20, 3).round(1), rng.uniform(0.5, 5, 3).round(1)
            utility = -(0.25 - 0.002 * income) * price - 0.5 * time + [0.0, 0.6, 0.3]
            taken = int(np.argmax(utility + rng.gumbel(size=3)))
            rows += [
                (f"p{person:02}", f"t{person:02}{trip}", mode, float(price[k]), float(time[k]),
                 income, int(k == taken))
                for k, mode in enumerate(MODES)
            ]  # fmt: skip
    names = ("person", "trip", "mode", "price", "time", "income", "taken")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def dearer():
    """The same trips with fares a tenth higher."""
    table = trips()
    return table | {"price": [1.1 * price for price in table["price"]]}


QUESTIONS = (
    Question("tastes"),
    Question("worth", ("price",)),
    Question("elasticities", ("price", "--by", "mode")),
    Question("worth", ("price", "--at", "income=20,80"), id="worth at incomes"),
    Question("predict", ("trips.csv",)),
    Question("simulate", ("dearer.csv", "--by", "mode")),
    Question("effects", ("price", "--at", "mode=bus")),
    Question("surplus", ("dearer.csv", "--by", "income")),
    Question("diversion"),
    Question("importances"),
    Question("scores", ("mode",)),
    Question("marginal-means"),
    Question("amce"),
    Question("check"),
    Question("export"),
)
DERIVED = (
    "worth", "elasticities", "simulate", "surplus", "diversion", "importances", "scores",
    "marginal-means", "amce",
)  # fmt: skip
OF_ANY_ORDER = (*DERIVED, "tastes", "effects", "check")
OF_NO_BASE = ("elasticities", "simulate", "surplus", "diversion", "importances", "scores")
BY_BRUTE_FORCE = {
    "worth": "economics.py::test_worth_is_the_ratio_of_what_changes_of_columns_do",
    "elasticities": "economics.py::test_an_elasticity_is_what_a_percent_does",
    "surplus": "economics.py::test_surplus_is_the_change_of_the_expected_maximum",
    "diversion": "economics.py::test_diversion_is_what_leaving_an_alternative_out_does",
    "effects": "choice.py::test_effects_are_shares_with_a_column_set",
    "scores": "choice.py::test_best_and_worst_are_a_choice_and_one_of_the_other_sign",
    "simulate": "economics.py::test_new_people_are_integrated_out",
    "predict": "choice.py::test_shares_are_those_of_choices_where_the_model_is_saturated",
    "marginal-means": "choice.py::test_marginal_means_and_amces_are_as_least_squares_has_them",
    "amce": "choice.py::test_marginal_means_and_amces_are_as_least_squares_has_them",
    "compare": "choice.py::test_people_are_left_out_by_the_integral_over_the_population",
}
OUTSIDE = {
    "fit": "choice.py::test_estimates_are_as_published",
    "tastes": "choice.py::test_estimates_are_as_published",
    "worth": "economics.py::test_worth_is_as_published_of_trips_by_train",
}
WITHOUT_PRICE = [
    ("p00", "later", "bus", 3.0, 1.0, 40, 0), ("p00", "later", "car", None, 1.0, 40, 1),
    ("p00", "later", "train", 2.0, 2.0, 40, 0),
]  # fmt: skip
FIT = ("taken ~ mode + price + time + price:income", "--occasion", "trip", "--alternative", "mode")
BY_TWO_RUNS = "takes two runs; each is held by check"


def minutes():
    """Hours as minutes: what is in units of an hour is a sixtieth."""

    def back(question, key, centre, sd):
        scale = 60.0 if "time" in key and question.verb in ("tastes", "worth", "amce") else 1.0
        return key, scale * centre, scale * sd

    return Variation(
        "units", "hours as minutes", back=back,
        tables=lambda name, t: changed(t, time=[60.0 * hours for hours in t["time"]]),
    )  # fmt: skip


PLAIN = Job(
    "choice",
    {"trips.csv": trips, "dearer.csv": dearer},
    FIT,
    QUESTIONS,
    (
        longer(default=300),
        other_seed(),
        reversed_rows(verbs=OF_ANY_ORDER),
        in_form("book.xlsx"),
        shuffled_columns(verbs=(*OF_ANY_ORDER, "fit", "report", "predict", "export")),
        renamed("mode", MODES, verbs=OF_NO_BASE),
        minutes(),
        with_column("note", lambda n: ["x"] * n, tolerance=0.0),
        Variation(
            "missing", "an occasion with a gap is left out whole", tolerance=0.0, first_only=True,
            tables=with_rows(*WITHOUT_PRICE), fit=lambda words: [*words, "--drop-incomplete"],
        ),
    ),
    tests={
        ("brute_force", verb): f"tests/unit/choice/test_{test}"
        for verb, test in BY_BRUTE_FORCE.items()
    } | {("outside", verb): f"tests/unit/choice/test_{test}" for verb, test in OUTSIDE.items()} | {
        ("outside", verb): "tests/benchmarks/defaults/choice.py"
        for verb in ("elasticities", "surplus", "diversion")
    } | {
        ("power", "check"):
        "tests/unit/choice/test_choice.py::test_labels_coded_as_numbers_are_found_by_the_check"
    },
    reasons={
        ("files", "*"): "a file becomes one table for all jobs: tests of the readers",
        ("horizons", "*"): "nothing is asked over a horizon",
        ("power", "*"): "speaks of no agreement with the data, which only check and the page do",
        ("outside", "*"): "by the same probabilities as elasticities, which are held to it",
        ("brute_force", "*"): "a sum over draws of the run, which the others check",
        ("aggregation", "*"): "weights enter the likelihood and averages alone: the others",
        **{
            (relation, "compare"): BY_TWO_RUNS
            for relation in ("longer", "seeds", "order", "units", "besides", "missing")
        },
    },
)  # fmt: skip


def thrice():
    """Each of a hundred trips three times."""
    table = {name: values[:300] * 3 for name, values in trips().items()}
    copies = [f"{trip} {i // 300}" for i, trip in enumerate(table["trip"])]
    return table | {"trip": copies, "n": [1] * 900}


NOT_WEIGHTED = ("predict", "check", "export", "surplus")  # asked otherwise, or of the rows
WEIGHTED = Job(
    "choice",
    {"trips.csv": thrice, "dearer.csv": lambda: rows_of(dearer(), range(30))},
    (*FIT, "--weight", "n"),
    (
        Question("predict", ("dearer.csv",)),
        *(each for each in QUESTIONS if each.verb not in NOT_WEIGHTED),
    ),
    (
        Variation(
            "aggregation", "a weight of 3 for three trips",
            tables=lambda name, table: rows_of(table, range(300)) | {"n": [3] * 300},
            first_only=True,
        ),
    ),
)  # fmt: skip

JOBS = [PLAIN, WEIGHTED]
