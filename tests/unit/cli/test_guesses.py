"""Guesses of ``pgmult FILE``: outcomes and terms of small tables like those that people have."""

import csv
import datetime
import shlex
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import pgmult
from pgmult.cli import commands as cli
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
    "labels that are all there wherever was counted": (
        {"day": [i // 3 for i in range(N)], "lake": ["west"] * 60 + ["east", "east", "east"] * 60,
         "group": ["diatoms", "greens", "blues"] * 80, "n": [i % 40 + 1 for i in range(N)]},
        "'group ~ lake + s(day)' --weight n", "--time",
    ),
    "weights and strata of a survey": (
        {"vote": draw(0, ["no", "yes", "abstain"]), "psu": [9 + i for i in range(N)],
         "stratum": [i % 30 for i in range(N)], "region": draw(2, ["east", "west"]),
         "dweight": [0.99 + i % 21 / 1000 for i in range(N)],
         "pspwght": [0.5 + i % 21 / 20 for i in range(N)]},
        "'vote ~ region' --weight pspwght", "stratum",
    ),
    "none of these has a column and no attributes": (
        {"task": [i // 3 for i in range(N)], "alt": [i % 3 + 1 for i in range(N)],
         "price": [None if i % 3 == 2 else i * 7 % 11 for i in range(N)],
         "no_choice": [int(i % 3 == 2) for i in range(N)],
         "choice": [int(i * 7 // 3 % 3 == i % 3) for i in range(N)]},
        "'choice ~ price' --occasion task --alternative alt --price price --none 3", "no_choice",
    ),
    "what newborns weigh is no count": (
        {"Plural": draw(0, [1, 2, 3]), "Premie": draw(1, [0, 1]), "mother": draw(2, ["a", "b"]),
         "BirthWeightOz": [i % 60 + 80 for i in range(N)]},
        "'Premie ~ mother + Plural + s(BirthWeightOz)", "--weight",
    ),
    "coordinates of a grid": (
        {"x": [i // 3 % 8 for i in range(N)], "y": [i // 24 for i in range(N)],
         "species": ["ash", "elm", "oak"] * 80, "n": [i % 40 + 1 for i in range(N)]},
        "--inputs x y --category species --count n", "x ~",
    ),
    "a number of something else is no count of rows": (
        {"loan_status": draw(0, ["Current", "Late", "Paid"]), "term": draw(1, ["long", "short"]),
         "total_credit_lines": [i % 40 + 1 for i in range(N)]},
        "loan_status ~ term", "--weight",
    ),
    "a column that a fifth of the rows lack is used": (
        {"survived": draw(0, ["no", "yes"]), "sex": draw(1, ["female", "male"]),
         "age": [None if i % 5 == 0 else i % 60 for i in range(N)]},
        "'survived ~ sex + s(age)' --drop-incomplete", "sex ~",
    ),
    "a column that one label of the outcome alone has is left out": (
        {"taxa": ["rodent"] * 200 + ["bird"] * 20 + ["reptile"] * 20,
         "weight": [i * 7 % 50 + 10 if i < 200 else None for i in range(N)],
         "plot": draw(0, ["a", "b", "c"])},
        "'taxa ~ plot'", "weight)",
    ),
    "measures of hours and days, mostly missing, are no categories": (
        {"relax": [None if i % 3 == 0 else i % 20 for i in range(N)],
         "days": [None if i % 3 == 0 else i % 30 for i in range(N)],
         "work": [None if i % 3 == 0 else i % 70 for i in range(N)],
         "degree": draw(0, ["BA", "HS", "MA"]), "grass": draw(1, ["LEGAL", "NOT LEGAL"])},
        "grass ~ degree", "c(",
    ),
    "measures named alike are no counts of categories": (
        {"inlf": draw(0, [0, 1]), "hushrs": [i * 7 % 50 for i in range(N)],
         "husage": [30 + i % 30 for i in range(N)], "huseduc": [i % 17 for i in range(N)]},
        "inlf ~ s(hushrs) + s(husage) + s(huseduc)", "c(",
    ),
    "what a label denies may be a trait": (
        {"lowbirthweight": draw(0, ["low", "not low"]),
         "gained": draw(3, [0.5 * x for x in range(45)]),
         "mother": draw(1, ["white", "not white"])},
        "lowbirthweight ~ mother + s(gained)", "mother ~",
    ),
    "votes beside measures are no counts of rows": (
        {"Drama": draw(0, [0, 1]), "votes": draw(1, [*range(5, 90)]),
         "rating": draw(2, [x / 9 for x in range(90)]), "r1": draw(3, [x / 9 for x in range(90)]),
         "r2": draw(4, [x / 9 for x in range(90)])},
        "Drama ~ s(votes)", "--weight",
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
    "counts of parties without their total, a deviation for each row": (
        {"town": [f"T{i}" for i in range(60)], "region": draw(0, [*"NSEW"], 60),
         "eligible": [900 + 7 * i for i in range(60)], "left": [90 + 3 * i for i in range(60)],
         "green": [40 + i for i in range(60)], "right": [120 + 2 * i for i in range(60)]},
        "c(left, green, right) ~ region + (1 | town)", "c(eligible",
    ),
    "counts of categories by year": (
        {"year": [1960 + i for i in range(40)], "oak": [20 + i % 9 for i in range(40)],
         "beech": [30 + i % 7 for i in range(40)], "pine": [2 + i % 6 for i in range(40)]},
        "--inputs year --wide oak beech pine", "birch ~",
    ),
    "counts of two categories by year": (
        {"year": [1950 + i for i in range(40)], "girls": [1000 + i % 9 for i in range(40)],
         "boys": [1050 + i % 7 for i in range(40)]},
        "'c(girls, boys) ~ s(year)'", "sequences",
    ),
    "categories and their total": (
        {"blue": [50 + i % 9 for i in range(40)], "red": [40 + i % 7 for i in range(40)],
         "grey": [3 + i % 6 for i in range(40)],
         "total": [93 + i % 9 + i % 7 + i % 6 for i in range(40)]},
        "'c(blue, red, grey) ~ 1'", "p(",
    ),
    "cases and controls that match are no choices": (
        {"age": draw(0, [*range(30)]), "smoker": draw(1, [0, 1]),
         "case": [int(i % 3 == 0) for i in range(N)], "set": [i // 3 for i in range(N)]},
        "case ~", "choice",
    ),
    "counts alone": (
        {"oak": [20 + i % 9 for i in range(40)], "beech": [30 + i % 7 for i in range(40)],
         "pine": [12 + i % 6 for i in range(40)]},
        "'c(oak, beech, pine) ~ 1'", "sequences",
    ),
    "trials that are always the same": (
        {"species": draw(0, ["A", "B"]), "temp": draw(1, [10, 15, 20]),
         "deaths": [i % 14 for i in range(N)], "n": [20] * N},
        "p(deaths, n) ~ species", "c(",
    ),
    "answers of several questions are no counts": (
        {"vote": draw(0, ["L", "R"]), "trust": draw(1, [*range(1, 7)]),
         "pride": draw(2, [*range(1, 7)]), "prayer": draw(3, [*range(1, 7)])},
        "vote ~", "c(trust",
    ),
    "a class of people is no outcome": (
        {"class": draw(0, ["1st", "2nd", "3rd"]), "age": [i % 60 for i in range(N)],
         "survived": draw(1, ["no", "yes"])},
        "'survived ~ class + s(age)' --out run-regression", "'class ~ survived + age'",
    ),
    "items of a battery take one place": (
        {"JobSatisfaction": draw(0, ["Low", "Medium", "High"]),
         "HomeSatisfaction": draw(1, ["Low", "Medium", "High"]),
         "TownSatisfaction": draw(2, ["Low", "Medium", "High"]),
         "Attrition": draw(3, ["Yes", "No"])},
        "'Attrition ~", "'TownSatisfaction ~",
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
    "a part and its total": (
        {"site": draw(0, ["a", "b"]), "ovigerous": [i % 9 for i in range(N)],
         "females": [i % 9 + i % 7 + 1 for i in range(N)]},
        "'p(ovigerous, females) ~ site'", "c(",
    ),
    "categories and their sum under another name": (
        {"yA": [20 + i % 9 for i in range(N)], "yB": [20 + i % 7 for i in range(N)],
         "yC": [20 + i % 5 for i in range(N)],
         "points": [60 + i % 9 + i % 7 + i % 5 for i in range(N)],
         "x": [i / 7 % 5 for i in range(N)]},
        "'c(yA, yB, yC) ~ s(x)'", "points",
    ),
    "a total of votes is no weight of their counts": (
        {"GORE": [900 + i % 90 for i in range(N)], "BUSH": [800 + i % 70 for i in range(N)],
         "NADER": [20 + i % 9 for i in range(N)], "x": [i / 7 % 5 for i in range(N)],
         "total votes": [1720 + i % 90 + i % 70 + i % 9 for i in range(N)]},
        "'c(GORE, BUSH, NADER) ~ s(x)'", "--weight",
    ),
    "an age that differs in each row": (
        {"age": [7 * i + i % 3 for i in range(N)], "pine": [60 + i % 9 for i in range(N)],
         "oak": [30 + i % 7 for i in range(N)], "grass": [10 + i % 5 for i in range(N)]},
        "'c(pine, oak, grass) ~ s(age)'", "~ 1",
    ),
    "faces are no counts": (
        {"throw": [*range(1, N + 1)], "face": draw(0, [1, 2, 3, 4, 5, 6])},
        "'face ~ 1'", "--ordered",
    ),
    "codes of classes have no order": (
        {"x": [i / 7 % 5 for i in range(N)], "label": draw(0, [0, 1, 2])},
        "'label ~ s(x)'", "--ordered",
    ),
    "a table with many questions of a kind is about them": (
        {"size": draw(9, [*range(1, 11)]),
         **{x: draw(i, [-1, 0, 1])
            for i, x in enumerate(["natarms", "natcity", "natdrug", "nateduc", "natroad"])}},
        "natroad ~", "natcity ~",
    ),
    "numbers of cells, whatever they are called": (
        {"region": each(["N", "S", "E", "W"], 60), "week": [i // 4 % 15 for i in range(N)],
         "variant": ["Alpha", "Delta", "BA.1", "BA.2"] * 60,
         "sequences": [i * 7 % 90 for i in range(N)]},
        "'variant ~ region + s(week)' --weight sequences", "s(sequences)",
    ),
    "successes and trials beside a treatment": (
        {"arm": ["A", "B"] * 8, "week": [i // 2 for i in range(16)],
         "visitors": [900 + i * 37 % 99 for i in range(16)], "sales": [90 + i for i in range(16)]},
        "p(sales, visitors) ~ arm + s(week)", "arm ~",
    ),
    "counts of few rows do not imply their treatment": (
        {"study": [*"AABBCCDDEEFF"], "arm": ["x", "y"] * 6, "n": [100] * 12,
         "none": [40 + i for i in range(12)], "mild": [20 + 3 * i % 7 for i in range(12)],
         "severe": [40 - i - 3 * i % 7 for i in range(12)]},
        "c(none, mild, severe) ~ arm + (1 | study)", "--weight",
    ),
    "waves of an answer are steps": (
        {"voter": [f"v{i}" for i in range(N)], "sex": draw(9, ["f", "m"]),
         **{f"w{k}_vote": draw(k, ["A", "B", "C"]) for k in (1, 2, 3, 4)}},
        "--wide w1_vote:w4_vote --sequence voter", "w1_vote ~",
    ),
    "clicks of those sent": (
        {"segment": ["new", "old"] * 6, "sent": [900 + i * 37 % 99 for i in range(12)],
         "opened": [300 + i * 7 % 50 for i in range(12)],
         "clicked": [20 + i // 2 for i in range(12)]},
        "'p(clicked, sent) ~ segment'", "clicked ~",
    ),
    "goals say who won": (
        {"home": draw(0, [*"ABCDEFGHIJKLMN"]), "away": draw(1, [*"ABCDEFGHIJKLMN"]),
         "goals": draw(2, [0, 1, 2, 3]), "against": draw(3, [0, 1, 2, 3]),
         "won": ["HDA"[(a <= b) + (a < b)] for a, b in
                 zip(draw(2, [0, 1, 2, 3]), draw(3, [0, 1, 2, 3]), strict=True)]},
        "'won ~ (1 | home) + (1 | away)'", "home ~",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_what_a_person_would_ask(tmp_path, name):
    columns, inside, outside = TABLES[name]
    every = [one for job in commands(tmp_path, columns).values() for one in job]
    assert inside in " ".join(every)
    assert not any(outside in one for one in every)


def test_a_table_is_called_after_what_it_is_about():
    table = {"affairs": draw(0, [0, 1, 2, 7, 12]), "sex": draw(1, ["f", "m"]),
             "rating": draw(2, [1, 2, 3, 4, 5])}  # fmt: skip
    (job,) = Guesses(Path("Affairs.csv"), columns_of(pgmult.read(table)), []).jobs()
    assert "'affairs ~ sex + s(rating)'" in job.commands[0]


def test_one_winner_of_all_rows_is_no_choice(tmp_path):
    table = {"winner": [i == 7 for i in range(50)], "from": [1] * 50,
             "spam": draw(0, [0, 1], 50), "size": [i % 9 for i in range(50)]}  # fmt: skip
    assert list(commands(tmp_path, table)) == ["Regression"]


def test_labels_that_name_the_rows_of_a_time_are_no_categories_of_a_field(tmp_path):
    table = {"country": [f"c{i % 12}" for i in range(120)], "continent": ["A", "B", "B"] * 40,
             "year": [1950 + i // 12 for i in range(120)]}  # fmt: skip
    assert "Fields" not in commands(tmp_path, table)


def test_other_forms_of_the_outcome_are_no_terms(tmp_path):
    shares = [20 + i % 40 for i in range(N)]
    table = {"state": draw(0, [*"ABCDEFGH"]), "samplesize": [900 + i % 50 for i in range(N)],
             "raw_left": shares, "raw_right": [100 - x for x in shares],
             "adjusted_left": [x * 0.9 for x in shares]}  # fmt: skip
    (command,) = commands(tmp_path, table)["Regression"]
    assert "c(raw_left, raw_right) ~ (1 | state)'" in command
    assert "--weight samplesize" in command


def test_shares_without_a_sample_say_what_is_missing(tmp_path):
    left = [30.0 + i % 13 for i in range(40)]
    table = {"year": [1960 + i for i in range(40)], "left": left, "right": [60 - x for x in left],
             "green": [40.0] * 40}  # fmt: skip
    (sentence,) = Guesses(tmp_path, columns_of(pgmult.read(table)), []).lacking()
    assert "'left', 'right' and 'green' are shares" in sentence
    assert not Guesses(tmp_path, columns_of(pgmult.read(table | {"n": [900] * 40})), []).lacking()


@pytest.mark.parametrize("with_counts", [True, False])
def test_rows_that_are_words_of_documents_are_topics(tmp_path, monkeypatch, with_counts):
    """Each printed command reads as many words of as many documents as there are."""
    monkeypatch.chdir(tmp_path)
    words = [a + b for a in ("war", "tax", "trade", "farm", "school", "sea") for b in "abcdefghij"]
    times = np.random.default_rng(0).poisson(1.0, size=(20, len(words)))
    where = [(i, j) for i, j in zip(*times.nonzero(), strict=True)
             for _ in range(1 if with_counts else times[i, j])]  # fmt: skip
    columns = {"speech": [f"s {i}" for i, _ in where], "year": [1900 + i for i, _ in where],
               "word": [words[j] for _, j in where]}  # fmt: skip
    columns |= {"n": [int(times[i, j]) for i, j in where]} if with_counts else {}
    with open("t.csv", "w", newline="") as file:
        csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])
    found = commands(Path(), columns)
    assert [*found] == ["Topics"]
    assert "~ s(year)" in found["Topics"][1]
    for command in found["Topics"]:
        options = cli._parser().parse_args(shlex.split(command)[1:])
        options.draws = 4
        corpus = cli.TOPICS.job(options).data
        assert (corpus.num_documents, corpus.num_tokens) == (20, times.sum())


def test_a_column_for_each_word_is_topics(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    times = np.random.default_rng(0).poisson(0.4, size=(20, 40))
    times[8:, [9, 18, 27]] = 0  # rare words, whatever they are called
    columns = {"doc_id": [f"text{i}" for i in range(20)],
               **{{9: "size", 18: "income", 27: "age"}[j] if j in (9, 18, 27)
                  else f"word{chr(97 + j // 20)}{chr(97 + j % 20)}": x.tolist()
                  for j, x in enumerate(times.T)}}  # fmt: skip
    with open("t.csv", "w", newline="") as file:
        csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])
    found = commands(Path(), columns)
    assert [*found] == ["Topics"]
    options = cli._parser().parse_args(shlex.split(found["Topics"][0])[1:])
    options.draws = 4
    corpus = cli.TOPICS.job(options).data
    assert (corpus.num_documents, corpus.num_tokens) == (20, times.sum())
    assert corpus.names.tolist() == columns["doc_id"]


@pytest.mark.parametrize(
    ("first", "wide"),
    [({"doc_id": [f"d{i}" for i in range(30)]}, 6), ({"sample": [f"s{i}" for i in range(30)]}, 24)],
)
def test_columns_that_are_words_of_documents_are_topics(tmp_path, monkeypatch, first, wide):
    rng = np.random.default_rng(0)
    words = {f"w{c}": rng.poisson(1 + i % 3, 30).tolist() for i, c in enumerate("abcdefgh" * 3)}
    words = {f"{w}{i}x": x for i, (w, x) in enumerate([*words.items()] * 3)}
    words = dict([*words.items()][:wide])
    table = {**first, "party": ["L", "R"] * 15, **words}
    with open(tmp_path / "t.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([list(table), *zip(*table.values(), strict=True)])
    monkeypatch.chdir(tmp_path)
    plain, structured = commands(Path(), table)["Topics"]
    assert "--prevalence '~ party'" in structured
    options = cli._parser().parse_args(shlex.split(plain)[1:])
    corpus = pgmult.read("t.csv").corpus(wide=options.wide, names=options.names)
    assert corpus.num_tokens == sum(map(sum, words.values()))


def test_texts_of_a_survey_count_by_its_weights(tmp_path):
    rng = np.random.default_rng(0)
    words = [f"{a}{b}ing" for a in "bcdfgh" for b in "aeiou"]
    weights = rng.lognormal(-0.1, 0.4, 60)
    table = {
        "answer": [" ".join(rng.choice(words, 14)) for _ in range(60)],
        "party": ["L", "R"] * 30, "weight": (weights / weights.mean()).round(3).tolist(),
    }  # fmt: skip
    plain, structured = commands(tmp_path, table)["Topics"]
    assert "--weight" not in plain
    assert "--prevalence '~ party' --weight weight" in " ".join(structured.split())


def test_answers_of_a_battery_are_no_words(tmp_path):
    table = {f"{c}{d}": draw(i, [0, 1, 2, 3, 4], 60) for i, (c, d) in enumerate(
        (c, d) for c in "abcde" for d in "vwxyz")}  # fmt: skip
    assert "Topics" not in commands(tmp_path, {"doc": [f"d{i}" for i in range(60)]} | table)
    patients = {"ID": [*range(4, 64)], "Survive": draw(0, [0, 1], 60), "Age": [*range(20, 80)]}
    patients |= {
        x: draw(i, [*range(60, 90 + 9 * i)], 60) for i, x in enumerate(["Pulse", "BP", "X"])
    }
    assert "Topics" not in commands(tmp_path, patients)


def test_tables_of_samples_by_species_are_turned_round(tmp_path):
    counts = np.random.default_rng(0).poisson(9, (12, 40))
    samples = {f"Sample_{i}": row.tolist() for i, row in enumerate(counts)}
    guesses = Guesses(
        tmp_path, columns_of(pgmult.read({"OTU": [f"o{i}" for i in range(40)]} | samples)), []
    )
    assert not guesses.jobs()
    assert "exchange rows and columns" in guesses.lacking()[0]


def test_shares_in_rows_count_for_their_part_of_a_sample(tmp_path):
    polls = {"pollster": [f"p{i // 6}" for i in range(60)], "day": [i // 3 for i in range(60)],
             "sample_size": [900 + i // 3 for i in range(60)],
             "candidate": ["L", "R", "other"] * 20,
             "pct": [x for i in range(20) for x in (40 + i % 5, 50 - i % 5, 10.0)]}  # fmt: skip
    weight = "round(pct * sample_size / 100)"
    (command,) = commands(tmp_path, polls)["Regression"]
    assert "'candidate ~ (1 | pollster) + s(day)'" in command
    assert f"--weight '{weight}'" in command
    table = pgmult.read(polls)
    rows = table.rows("candidate ~ s(day)", weights=weight)
    exact = pgmult.read(polls | {"n": np.round(table["pct"] * table["sample_size"] / 100.0)})
    other = exact.rows("candidate ~ s(day)", weights="n")
    np.testing.assert_array_equal(rows.counts, other.counts)
    del polls["sample_size"]
    guesses = Guesses(tmp_path / "t.csv", columns_of(pgmult.read(polls)), [])
    assert not guesses.jobs()
    assert "'pct' are shares of 'candidate'" in guesses.lacking()[0]


def test_people_and_days_are_sequences_together(tmp_path):
    rows = [(who, day, slot) for who in range(12) for day in (1, 2) for slot in range(20)]
    diary = dict(zip(("person", "day", "slot"), map(list, zip(*rows, strict=True)), strict=True))
    commands_of = commands(tmp_path, diary | {"does": draw(3, ["work", "rest", "eat"], len(rows))})
    (command,) = commands_of["Sequences"]
    assert "--symbol does --sequence person --sequence day --time slot" in " ".join(command.split())


def test_letters_are_for_a_fasta_file(tmp_path):
    cells = ["".join(draw(i, [*"ACGT"], 60)) for i in range(20)]
    table = columns_of(pgmult.read({"id": [f"s{i}" for i in range(20)], "dna": cells}))
    assert "FASTA" in Guesses(tmp_path, table, []).lacking()[0]


def test_events_at_uneven_times_follow_each_other(tmp_path):
    start, rng = datetime.datetime(2024, 3, 1, 9), np.random.default_rng(0)
    apart = 1 + rng.exponential(60, N).astype(int)
    times = [start + datetime.timedelta(seconds=int(s)) for s in apart.cumsum()]
    table = {"user": [f"u{i}" for i in people(12)], "page": draw(0, ["home", "cart", "search"])}
    (command,) = commands(tmp_path, table | {"time": times})["Sequences"]
    assert "--symbol page --sequence user --model auto" in command
    even = [start + datetime.timedelta(minutes=i % 12) for i in range(N)]
    (command,) = commands(tmp_path, table | {"time": even})["Sequences"]
    assert "--time time --every 1min" in command


def test_columns_left_out_are_named():
    table = {"vote": draw(0, ["left", "right"]), "sex": draw(1, ["f", "m"]),
             "income": [None if i % 3 else i for i in range(N)]}  # fmt: skip
    job = Guesses(Path("t.csv"), columns_of(pgmult.read(table)), []).jobs()[0]
    assert job.why.endswith(
        "Left out: 'income', which lacks values in a quarter of the rows or more."
    )


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


def careers(people=40, years=8):
    """Careers that begin in school, change now and then, and do not leave the last state."""
    rng = np.random.default_rng(3)
    steps = rng.random((people, years)) < 0.3
    return np.array(["school", "work", "retired"])[np.minimum(steps.cumsum(axis=1), 2)]


def as_wide(states):
    return {
        "id": [10 * i + 7 for i in range(len(states))],
        "sex": [*"fm"] * (len(states) // 2),
        **{f"y{2000 + t}": column.tolist() for t, column in enumerate(states.T)},
    }


def as_spells(states, first="begin", last="end", date=False):
    rows = []
    for i, row in enumerate(states):
        edges = [0, *(np.flatnonzero(row[1:] != row[:-1]) + 1), len(row)]
        rows += [(10 * i + 7, a + 2000, b + 1999 + date, row[a]) for a, b in pairwise(edges)]
    whose, begin, end, state = map(list, zip(*rows, strict=True))
    if date:
        begin, end = ([datetime.date(int(year), 1, 1) for year in x] for x in (begin, end))
    return {"id": whose, first: begin, last: end, "state": state}


def sequences_read(tmp_path, monkeypatch, columns):
    """Observations of a step in order, as the first printed command reads them."""
    monkeypatch.chdir(tmp_path)
    with open("t.csv", "w", newline="") as file:
        csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])
    title, (command, *_) = next(iter(commands(Path(), columns).items()))
    assert title == "Sequences"
    options = cli._parser().parse_args(shlex.split(command)[1:])
    data = cli.SEQUENCES.job(options).data
    return data.alphabet[data.symbols].tolist(), data.offsets.tolist()


@pytest.mark.parametrize(
    "table",
    [as_wide, as_spells, lambda x: as_spells(x, "start", "stop"),
     lambda x: as_spells(x, "from", "to", date=True)],
    ids=["a column a year", "spells", "other names", "dates"],
)  # fmt: skip
def test_rows_that_are_sequences_or_spells_are_read_as_such(tmp_path, monkeypatch, table):
    states = careers()
    symbols, indptr = sequences_read(tmp_path, monkeypatch, table(states))
    assert symbols == states.ravel().tolist()
    assert indptr == [*range(0, states.size + 1, states.shape[1])]


@pytest.mark.parametrize(
    ("names", "wide"),
    [
        (["Nov.93", "Dec.93", "Jan.94"], "--wide Nov.93:Jan.94"),
        (["y1", "y2", "y3"], "--wide y1:y3"),
        (["V1", "V2", "V3"], ""),
        (["q1", "q2", "q3"], ""),
        (["event_1", "event_2", "event_3"], "--wide event_1:event_3"),
    ],
)
def test_columns_are_times_by_their_names(tmp_path, names, wide):
    table = {"trt": draw(9, [0, 1]), **{x: draw(i, [1, 2, 3]) for i, x in enumerate(names)}}
    every = commands(tmp_path, table)
    assert (wide in every["Sequences"][0]) if wide else "Sequences" not in every


@pytest.mark.parametrize("names", ["V{}", "y200{}", "event_{}"])
def test_the_same_labels_in_each_numbered_column_are_steps(tmp_path, names):
    steps = {names.format(t): x.tolist() for t, x in enumerate(careers().T)}
    table = {"id": [*range(40)], **steps, "vote": draw(0, ["left", "right"], 40)}
    every = commands(tmp_path, steps if names == "V{}" else table)
    assert list(every) == ["Sequences"]
    assert f"--wide {names.format(0)}:{names.format(7)}" in every["Sequences"][0]


def test_answers_to_questions_are_no_steps(tmp_path):
    table = {f"V{i}": draw(i, ["disagree", "neutral", "agree"]) for i in range(8)}
    assert list(commands(tmp_path, table)) == ["Regression"]


def test_tasks_are_numbered_within_respondents(tmp_path):
    first = draw(0, [0, 1], 120)
    table = {"resp": [i // 8 + 1 for i in range(N)], "task": [i // 2 % 4 + 1 for i in range(N)],
             "job": draw(1, ["nurse", "cook"]), "origin": draw(2, ["here", "there"]),
             "chosen": [x for one in first for x in (one, 1 - one)]}  # fmt: skip
    (command,) = commands(tmp_path, table)["Choice"]
    assert "'chosen ~ job + origin + (job + origin | resp)' --occasion task" in command


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"taken": [0, 1, 0] * 80, "price": [i % 17 for i in range(N)]},
         "Rows that follow each other have one 1 in 'taken'"),
        ({"year": [2000 + i // 60 for i in range(N)], "month": [i % 12 + 1 for i in range(N)],
          "day": [i % 28 + 1 for i in range(N)], "state": draw(0, ["calm", "storm"])},
         "'year', 'month' and 'day' are one time in several columns"),
    ],
)  # fmt: skip
def test_what_a_job_lacks_is_said(tmp_path, table, sentence):
    guesses = Guesses(tmp_path / "t.csv", columns_of(pgmult.read(table)), [])
    assert any(one.startswith(sentence) for one in guesses.lacking())
    assert "Choice" not in [job.title for job in guesses.jobs()]


def test_a_field_says_which_places_it_adds_up(tmp_path):
    cells = [(r, y, p) for r in "NSEW" for y in range(2000, 2012) for p in ("left", "right")]
    region, year, party = map(list, zip(*cells, strict=True))
    table = {"region": region, "year": year, "party": party, "n": [i % 9 + 3 for i in range(96)]}
    jobs = Guesses(tmp_path / "t.csv", columns_of(pgmult.read(table)), []).jobs()
    (why,) = (job.why for job in jobs if job.title == "Fields")
    assert "Rows of all 'region' are added up" in why


def test_spells_that_overlap_are_none(tmp_path):
    table = as_spells(careers())
    table["end"] = [year + 3 for year in table["end"]]
    assert "Sequences" not in commands(tmp_path, table)


def test_each_command_has_a_folder_for_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run-regression").mkdir()
    columns = {"age": draw(0, [*range(9)]), "hair": draw(1, [*"abc"]), "eye": draw(2, [*"def"])}
    every = [one.split("--out ")[1] for one in commands(tmp_path, columns)["Regression"]]
    assert every == ["run-regression-2", "run-regression-3"]


def test_fractions_are_no_counts_without_a_sample_size():
    table = {"x": [0, 1, 1], "a": [48.5, 50.2, 30.0], "b": [40.0, 45.0, 70.0]}
    with pytest.raises(ValueError, match="non-negative integers, got 48"):
        pgmult.read(table).rows("c(a, b) ~ x")


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
    (command,) = commands(tmp_path, {"brandA": left} | table)["Choice"]
    assert "'chosen ~ " in command  # and not the place of a profile, which is one of two, too
    del table["plan"]
    (command,) = commands(tmp_path, table)["Choice"]
    assert "'chosen ~ colour + (colour | respondent)'" in command
    assert "--occasion task" in command
    available = [max(one, int(i % 6 > 0)) for i, one in enumerate(chosen)]
    (command,) = commands(tmp_path, {"av": available} | table)["Choice"]
    assert "'chosen ~ colour + (colour | respondent)'" in command
    assert "--available av" in command
    table["chosen"] = ["yes" if one else "no" for one in chosen]
    (in_words,) = commands(tmp_path, {"av": available} | table)["Choice"]
    assert in_words == command


def test_a_dummy_of_a_year_is_neither_a_choice_nor_an_outcome(tmp_path):
    states, years = [i // 2 for i in range(N)], [1987 + 3 * (i % 2) for i in range(N)]
    table = {
        "state": [f"s{i}" for i in states], "year": years, "d90": [i % 2 for i in range(N)],
        "births": draw(0, [2.5, 3.5, 4.25, 6.5, 7.125]), "income": draw(1, [1.5, 2.25, 3.5, 9.0]),
    }  # fmt: skip
    assert commands(tmp_path, table) == {}


def test_scores_that_add_up_are_no_trials(tmp_path):
    first, second = ([400 + 7 * x for x in draw(s, [*range(20)])] for s in (0, 1))
    table = {
        "takers": draw(2, [*range(4, 80)]), "verbal": first, "math": second,
        "total": [a + b for a, b in zip(first, second, strict=True)],
    }  # fmt: skip
    assert commands(tmp_path, table) == {}


def test_columns_of_many_kinds_are_no_words(tmp_path):
    marks = {f"d{i}": draw(i, [0, 1]) for i in range(14)}
    amounts = {f"t{i}": draw(20 + i, [*range(1, 900)]) for i in range(12)}
    assert "Topics" not in commands(tmp_path, marks | amounts)


def test_quarters_are_times_of_a_field(tmp_path):
    table = {
        "quarter": [f"{1990 + i // 8} Q{i // 2 % 4 + 1}" for i in range(N)],
        "origin": ["NZ", "UK"] * (N // 2), "n": draw(0, [*range(90, 400)]),
    }  # fmt: skip
    (command,) = commands(tmp_path, table)["Fields"]
    assert "--inputs quarter --category origin --count n" in command


def test_a_file_may_be_called_after_its_outcome(tmp_path):
    table = {"stroke": draw(0, ["no", "yes"]), "age": draw(1, [*range(30)])}
    table |= {"smoker": draw(2, ["no", "yes"]), "hypertension": draw(3, [0, 1])}
    jobs = Guesses(tmp_path / "first_stroke.csv", columns_of(pgmult.read(table)), []).jobs()
    assert "'stroke ~ " in jobs[0].commands[0]


def test_a_table_without_an_outcome_has_no_job_and_says_what_it_lacks(tmp_path, capsys):
    numbers = {"speed": [4 + i % 19 for i in range(N)], "dist": [2 + i * 7 % 90 for i in range(N)]}
    trial = {
        "age": [20.5 + i * 11 % 60 for i in range(N)], "treatment": ["placebo", "drug"] * (N // 2),
        "size": [0.5 + i * 7 % 90 for i in range(N)],
    }  # fmt: skip
    for table, advice in ((numbers, "make them labels"), (trial, "left of a formula")):
        assert not commands(tmp_path, table)
        lines = [
            ",".join(table),
            *(",".join(map(str, row)) for row in zip(*table.values(), strict=True)),
        ]
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
        assert cli.main([str(tmp_path / "t.csv")]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert "No job fits this table" in out
        assert advice in out
    events = {"spray": draw(1, ["A", "B", "C"]), "count": [i * 7 % 23 for i in range(N)]}
    (command,) = commands(tmp_path, events)["Regression"]
    assert "'count ~ spray' --family negative_binomial" in command


@pytest.mark.parametrize("name", ["OnTime", "on_time", "ontime"])
@pytest.mark.parametrize("labels", [(0, 1), ("no", "yes")])
def test_what_came_on_time_is_an_outcome(tmp_path, name, labels):
    table = {"carrier": draw(1, ["A", "B", "C"]), name: draw(2, labels)}
    command, *_ = commands(tmp_path, table)["Regression"]
    assert f"'{name} ~ carrier'" in command


def test_a_time_that_never_repeats_says_nothing_of_choices(tmp_path):
    """Travel times differ in all rows, so that any column follows from them."""
    rng = np.random.default_rng(0)
    table = {
        "trip": [i // 3 for i in range(N)], "mode": ["car", "bus", "train"] * (N // 3),
        "time": rng.uniform(10.0, 90.0, N).tolist(), "cost": rng.uniform(1.0, 9.0, N).tolist(),
        "choice": [int(i % 3 == (i // 3) * 7 % 5 % 3) for i in range(N)],
    }  # fmt: skip
    (command,) = commands(tmp_path, table)["Choice"]
    assert "--occasion trip" in command
