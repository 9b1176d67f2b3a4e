"""Guesses of ``pgmult FILE``: outcomes and terms of small tables like those that people have."""

import datetime

import numpy as np
import pytest

import pgmult
from pgmult.cli.guesses import Guesses, in_order
from pgmult.cli.kinds import ColumnGuess, columns_of

N = 240


def draw(seed, labels, size=N):
    return np.random.default_rng(seed).choice(np.array(labels), size).tolist()


def commands(tmp_path, columns):
    table = pgmult.read(columns)
    jobs = Guesses(tmp_path / "t.csv", columns_of(table), []).jobs()
    return {j.title: [" ".join(c.replace("\\\n", " ").split()) for c in j.commands] for j in jobs}


def people(visits=4):
    return [i // visits + 1 for i in range(N)]


def each(values, visits=4):
    """One value for all rows of a person."""
    return [values[i // visits % len(values)] for i in range(N)]


TABLES = {
    "the first label, not a trait": (
        {"partic": draw(0, ["not.work", "parttime", "fulltime"]), "hincome": [*range(20)] * 12,
         "children": draw(1, ["absent", "present"]), "region": draw(2, ["BC", "ON", "QC"])},
        "partic ~ children + region + s(hincome)", "region ~",
    ),
    "an answer on a scale, after demographics": (
        {"gender": draw(0, ["f", "m"]), "age": [18 + i % 60 for i in range(N)],
         "satisfaction": draw(1, [1, 2, 3, 4, 5])},
        "satisfaction ~ gender + s(age)", "gender ~",
    ),
    "counts of cells": (
        {"Sat": ["Low", "Medium", "High"] * 80, "Infl": draw(0, ["Low", "Medium", "High"]),
         "Type": draw(1, ["Tower", "Terrace"]), "Freq": [i % 40 + 1 for i in range(N)]},
        "'Sat ~ Infl + Type' --weight Freq --ordered Low Medium High", "Type ~",
    ),
    "yes and no as 1 and 0, first of all": (
        {"low": draw(0, [0, 1]), "age": [15 + i % 30 for i in range(N)],
         "race": draw(1, ["black", "white", "other"]), "ht": draw(2, [0, 1])},
        "low ~ race + s(age) + ht", "race ~",
    ),
    "ids pool, and what is the same of a person is no outcome": (
        {"id": people(), "trt": each(["placebo", "drug"]), "sex": each(["f", "m", "m"]),
         "visit": [i % 4 for i in range(N)], "edema": draw(0, ["no", "some", "much"])},
        "edema ~ trt + sex + (1 | id) + visit", "s(id)",
    ),
    "successes and trials": (
        {"herd": [i % 15 + 1 for i in range(N)], "incidence": [i % 5 for i in range(N)],
         "size": [8 + i % 20 for i in range(N)], "period": draw(0, [1, 2, 3, 4])},
        "p(incidence, size) ~ (1 | herd)", "sequences",
    ),
    "two columns of counts": (
        {"education": [i % 20 for i in range(42)], "sex": draw(0, ["f", "m"], 42),
         "agree": draw(1, [*range(40)], 42), "disagree": draw(2, [*range(40)], 42)},
        "c(agree, disagree) ~ sex", "sex ~",
    ),
    "percentages and a sample size": (
        {"date": [datetime.date(2016, 1, 1) + datetime.timedelta(i) for i in range(N)],
         "org": draw(0, ["A", "B", "C", "D", "E", "F"]), "samplesize": [900 + i for i in range(N)],
         "pct_left": [48.5] * 120 + [49.5] * 120, "pct_right": [44.0] * 120 + [41.0] * 120},
        "'c(pct_left, pct_right) ~ (1 | org) + s(date)' --weight samplesize", "org ~",
    ),
    "two labels alone": (
        {"site": draw(0, ["desert", "valley"]), "sunlight": draw(1, ["sun", "shade", "partial"])},
        "sunlight ~ site", "site ~",
    ),
    "months are a cycle, ranks of a taxonomy say each other": (
        {"month": [i % 12 + 1 for i in range(N)], "genus": ["G" + "abcd"[i % 4] for i in range(N)],
         "species": [f"s{i % 8}" for i in range(N)], "plot_type": draw(0, ["open", "fenced"])},
        "cc(month, df=4, lower_bound=0.5, upper_bound=12.5)", "(1 | genus)",
    ),
    "what gives the outcome away is left out": (
        {"status": draw(0, ["dead", "alive"]), "age": [i % 50 for i in range(N)],
         "died": [1 if s == "dead" else 0 for s in draw(0, ["dead", "alive"])]},
        "status ~ s(age)", "+ died",
    ),
    "a sum of other columns is left out": (
        {"vote": draw(0, ["L", "R", "C"]), "a": draw(1, [0, 1, 2]), "b": draw(2, [0, 1, 2]),
         "total": [a + b for a, b in zip(draw(1, [0, 1, 2]), draw(2, [0, 1, 2]), strict=True)]},
        "vote ~ a + b", "s(total)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_what_a_person_would_ask(tmp_path, name):
    columns, inside, outside = TABLES[name]
    every = [one for job in commands(tmp_path, columns).values() for one in job]
    assert inside in " ".join(every)
    assert not any(outside in one for one in every)


def test_several_outcomes_are_listed_where_names_do_not_decide(tmp_path):
    columns = {"age": draw(0, [*range(9)]), "hair": draw(1, [*"abc"]), "eye": draw(2, [*"def"])}
    found = commands(tmp_path, columns)["Regression"]
    assert {one.split("'")[1].split(" ~")[0] for one in found} == {"hair", "eye"}


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        (["High", "Low", "Medium"], ["Low", "Medium", "High"]),
        (["agree", "disagree", "neutral"], ["disagree", "neutral", "agree"]),
        (["red", "green", "blue"], []),
    ],
)
def test_known_orders_of_labels(labels, wanted):
    assert in_order(ColumnGuess("answer", "labels", labels)) == wanted


def test_shares_of_a_sample_are_rounded_to_counts():
    table = {"x": [0, 1, 1], "n": [1000, 200, 10], "a": [48.5, 50.2, 30.0], "b": [40.0, 45, 70]}
    with pytest.warns(UserWarning, match="shares of 'n': counts are rounded"):
        rows = pgmult.read(table).rows("c(a, b) ~ x", weights="n")
    assert dict(zip(rows.categories.tolist(), rows.counts.sum(axis=0).tolist(), strict=True)) == {
        "a": 485 + 100 + 3, "b": 400 + 90 + 7,
    }  # fmt: skip


def test_a_conjoint_is_a_choice_by_its_labels(tmp_path):
    """Positions of profiles and traits of respondents are no attributes; codes are labels."""
    chosen = [int(k == (i // 2 * 7 // 3) % 2) for i in range(N) for k in [i % 2]]
    table = {
        "respondent": [f"r{i}" for i in people(10)], "task": [i // 2 % 5 + 1 for i in range(N)],
        "profile": [i % 2 + 1 for i in range(N)], "party": each(["left", "right"], 10),
        "colour": draw(5, ["red", "blue", "green"]), "plan": draw(6, [1, 2, 3, 4]),
        "chosen": chosen,
    }  # fmt: skip
    (command,) = commands(tmp_path, table)["Choice"]
    assert "'chosen ~ colour + C(plan)'" in command  # five tastes, five choices a respondent
    assert "--occasion respondent task" in command
    left = [int(k == 0) for k in range(2)] * (N // 2)
    (command,) = commands(tmp_path, {"left": left} | table)["Choice"]
    assert "'chosen ~ " in command  # and not the place of a profile, which is one of two, too
    del table["plan"]
    (command,) = commands(tmp_path, table)["Choice"]
    assert "'chosen ~ colour + (colour | respondent)'" in command
    assert "--occasion task" in command
