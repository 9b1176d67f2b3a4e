"""``pgmult FILE``: what it sees in a table, and commands that can be pasted as they are."""

import csv
import datetime
import re
from collections import Counter

import numpy as np
import pytest
from printed_commands import BASH, FEW, commands_in, pasted

import pgmult
from pgmult.cli import commands as cli
from pgmult.cli.kinds import kind_of

HOSTILE = [
    "$(touch hacked)", "`touch hacked`", "it's \"here\"", "a b", "!history", "größe", "名前", "*",
    "a;b", "--help", "-n", "line\nbreak", "\x1b[31mred", "", "class", "True", "c(x)", "\\", "~",
]  # fmt: skip


def look(capsys, *arguments):
    """Exit code, output and error output of ``pgmult FILE``."""
    try:
        code = cli.main([str(argument) for argument in arguments])
    except SystemExit as stop:  # argparse
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def written(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    return path


def commands(capsys, *arguments):
    """The suggested commands of each job."""
    code, out, errors = look(capsys, *arguments, "--json")
    assert (code, errors) == (0, "")
    return commands_in(out)


def survey(folder, num_rows=60, name="survey.csv"):
    rng = np.random.default_rng(0)
    rows = [
        [i, rng.choice(["left", "right"]), rng.choice(["f", "m"]), 18 + i % 50, f"R{i % 7}"]
        for i in range(num_rows)
    ]
    rows[3][3] = "n/a"
    rows[5][1] = ""
    return written(folder / name, [["id", "vote", "sex", "age", "region"], *rows])


def names(folder):
    rng = np.random.default_rng(0)
    rows = [
        [year, state, name, n]
        for year in range(1990, 1996)
        for state in ("NY", "TX")
        for name, n in zip("ABC", rng.integers(0, 40, 3).tolist(), strict=True)
    ]
    return written(folder / "names.csv", [["year", "state", "name", "n"], *rows])


def visits(folder):
    rng = np.random.default_rng(0)
    first = datetime.date(2024, 1, 1)
    rows = [
        [who, first + datetime.timedelta(weeks=week), rng.choice(["well", "ill"])]
        for who in ("p1", "p2")
        for week in range(12)
        if (who, week) != ("p1", 5)
    ]
    return written(folder / "visits.csv", [["patient", "day", "state"], *rows])


def articles(folder):
    rng = np.random.default_rng(0)
    words = [f"word{letter}" for letter in "abcdefghijkl"]
    rows = [[" ".join(rng.choice(words, 12)), 1950 + i, "RD"[i % 2]] for i in range(40)]
    return written(folder / "articles.csv", [["body", "year", "party"], *rows])


def trips(folder):
    rng = np.random.default_rng(0)
    rows = [
        [trip // 3, trip, way, *np.round(rng.uniform(1, 9, 2), 2).tolist(), int(way == trip % 3)]
        for trip in range(24)
        for way in range(3)
    ]
    return written(folder / "trips.csv", [["who", "trip", "way", "price", "hours", "taken"], *rows])


TABLES = {
    "Regression": survey,
    "Fields": names,
    "Sequences": visits,
    "Topics": articles,
    "Choice": trips,
}


class TestWhatIsSeen:
    def test_kinds_gaps_and_remarks(self, capsys, tmp_path):
        code, out, errors = look(capsys, survey(tmp_path))
        assert (code, errors) == (0, "")
        assert "survey.csv: 60 rows, 5 columns" in out
        lines = {line.split()[0]: " ".join(line.split()) for line in out.splitlines() if line}
        assert lines["vote"].startswith("vote labels 1 2: ")
        assert lines["age"] == "age whole numbers 1 18 to 67, 50 different"
        assert "age has 'n/a', which may stand for a missing value" in " ".join(out.split())

    def test_numbers_and_dates_in_other_forms(self, capsys, tmp_path):
        rows = [
            ["1,200", "3,14", "31/12/1999", "a", "Left"],
            ["2,300", "2,5", "1.2.2000", "b", "left"],
        ]
        table = written(tmp_path / "t.csv", [["euro", "pi", "when", "x", "vote"], *rows])
        out = " ".join(look(capsys, table)[1].split())
        assert "euro whole numbers 1200 to 2300" in out
        assert "pi is read as text, such as '3,14': write numbers with a decimal point" in out
        assert "when is read as text, such as '31/12/1999': write dates as" in out
        assert "vote has 'Left' and 'left', which are read as two labels" in out

    def test_a_label_that_means_nothing_stays_a_label(self, capsys, tmp_path):
        rows = [[["none", "left", "right"][i % 3], i % 10] for i in range(30)]
        table = written(tmp_path / "t.csv", [["vote", "x"], *rows])
        (command,) = commands(capsys, table)["Regression"]
        assert "--na-values" not in command

    def test_texts_fasta_and_folders(self, capsys, tmp_path):
        (tmp_path / "a.txt").write_text("Some words here\nand more\n")
        (tmp_path / "g.fa").write_text(">one\nACGT\n")
        assert set(commands(capsys, tmp_path / "a.txt")) == {"Topics", "Sequences"}
        assert set(commands(capsys, tmp_path / "g.fa")) == {"Sequences"}
        assert set(commands(capsys, tmp_path)) == {"Topics"}

    def test_choices_among_alternatives(self, capsys, tmp_path):
        (command,) = commands(capsys, trips(tmp_path))["Choice"]
        assert "'taken ~ way + price + hours'" in command  # too few trips for tastes that differ
        assert "--occasion who trip" in command

    def test_choices_numbered_by_person_with_names_of_alternatives(self, capsys, tmp_path):
        ways = ("bus", "car", "foot")
        rows = [
            [who, trip, way, 1.5 * trip + len(way), str(way == ways[(who + trip) % 3]).upper()]
            for who in range(4) for trip in range(5) for way in ways
        ]  # fmt: skip
        table = written(tmp_path / "t.csv", [["who", "trip", "mode", "price", "chosen"], *rows])
        (command,) = commands(capsys, table)["Choice"]
        assert "'chosen ~ price + (price | who)'" in command  # bus, car and foot tell its steps
        assert "--occasion trip" in command
        assert "--alternative mode" in command
        rows = [[*row[:3], row[3] + row[0] * len(row[2]), row[4]] for row in rows]
        table = written(tmp_path / "t.csv", [["who", "trip", "mode", "price", "chosen"], *rows])
        (command,) = commands(capsys, table)["Choice"]
        assert "'chosen ~ price + (mode + price | who) | 1'" in command
        assert "--price price" in command

    def test_labels_that_every_occasion_has_are_the_alternatives(self, capsys, tmp_path):
        parties = ("left", "right", "nobody")
        rows = [
            [i, party, int(party == parties[i * i % 7 % 3]), i % 2, 20 + i % 11]
            for i in range(40) for party in parties
        ]  # fmt: skip
        head = ["case", "party", "chosen", "female", "age"]
        (command,) = commands(capsys, written(tmp_path / "t.csv", [head, *rows]))["Choice"]
        assert "'chosen ~ 1 | female + age'" in command
        assert "--alternative party" in command

    def test_choices_in_columns_of_alternatives(self, capsys, tmp_path):
        rows = [[i + 1, ("bus", "car")[i % 2], i % 7, 2 + i % 5, 20 + i % 9] for i in range(30)]
        rows = [[*row, row[3] if row[1] == "car" else row[2]] for row in rows]
        head = ["rownames", "mode", "price_bus", "price_car", "income", "paid"]
        (command,) = commands(capsys, written(tmp_path / "t.csv", [head, *rows]))["Choice"]
        assert "'mode ~ price | income'" in command
        assert "--wide 'price=price_{}'" in command
        table = written(tmp_path / "t.csv", [["n", "mode", "pbus", "pcar", "age", "price"], *rows])
        (command,) = commands(capsys, table)["Choice"]
        assert "--wide 'price=p{}' --price price" in command

    def test_choices_with_columns_of_the_chooser(self, capsys, tmp_path):
        ways = ("bus", "car", "foot")
        rows = [
            [
                trip, way, (1 + trip % 7) * len(way), ("no", "yes")[way == ways[trip % 3]],
                20 + trip % 4,
            ]
            for trip in range(20) for way in ways
        ]  # fmt: skip
        head = ["trip", "mode", "price", "choice", "income"]
        (command,) = commands(capsys, written(tmp_path / "t.csv", [head, *rows]))["Choice"]
        assert "'choice ~ price | income'" in command
        assert "--alternative mode" in command
        rows = [[*row[:2], row[0] + len(row[1]), *row[3:]] for row in rows]
        (command,) = commands(capsys, written(tmp_path / "t.csv", [head, *rows]))["Choice"]
        assert "'choice ~ price | 0 + income'" in command  # constants would tell the price

    @pytest.mark.parametrize(
        ("names", "labels", "pattern"),
        [
            (["id", "choice", "pf1", "pf2"], [1, 2], "pf=pf{}"),
            (["id", "choice", "price1", "price2"], ["choice1", "choice2"], "price=price{}"),
            (["id", "choice", "price.a", "price.b"], ["a", "b"], "price=price.{}"),
            (["id", "choice", "a.price", "b.price"], ["a", "b"], "price={}.price"),
        ],
    )
    def test_columns_of_published_tables(self, capsys, tmp_path, names, labels, pattern):
        rows = [[i // 6, labels[i % 2], 2 + i % 7, 3 + i % 5] for i in range(60)]
        (command,) = commands(capsys, written(tmp_path / "t.csv", [names, *rows]))["Choice"]
        name = pattern.partition("=")[0]
        expected = f"choice ~ {name} + ({name} | id)"
        if "a" in labels:  # alternatives with names have constants
            expected = f"choice ~ {name} + (alternative + {name} | id) | 1"
        assert f"'{expected}'" in command
        assert f"--wide '{pattern}'" in command

    def test_the_outcome_is_what_is_called_so_even_with_gaps(self, capsys, tmp_path):
        rows = [
            ["yn"[i % 2] if i % 5 else "", "ab"[i // 2 % 2], 18 + i % 50, 900] for i in range(60)
        ]
        table = written(tmp_path / "t.csv", [["vote", "sex", "age", "population"], *rows])
        (command,) = commands(capsys, table)["Regression"]
        assert "'vote ~ sex + s(age)'" in command
        assert "--drop-incomplete" in command
        assert "--weight" not in command  # people who live somewhere are no respondents

    def test_columns_beside_symbols_may_act_on_them(self, capsys, tmp_path):
        rows = [[i // 12, i % 12, "ab"[i % 2], 0.1 * (i % 7)] for i in range(60)]
        table = written(tmp_path / "t.csv", [["animal", "step", "state", "heat"], *rows])
        plain, acting = commands(capsys, table)["Sequences"]
        assert "--inputs" not in plain
        assert "--model auto" in plain
        words = " ".join(acting.split()).replace("\\ ", "")
        assert "--model hmm --states 2,3,4 --inputs '~ heat + (1 | animal)'" in words

    def test_codes_of_behaviour_are_symbols_and_animals_are_no_outcome(self, capsys, tmp_path):
        rows = [[f"00{i // 20}", i % 20, [1, 2, 9][i % 3]] for i in range(60)]
        table = written(tmp_path / "t.csv", [["animal", "time", "behaviour"], *rows])
        found = commands(capsys, table)
        assert next(iter(found)) == "Sequences"
        assert all("animal ~" not in command for each in found.values() for command in each)
        assert "--symbol behaviour --sequence animal --time time" in found["Sequences"][0]

    def test_counts_side_by_side(self, capsys, tmp_path):
        rows = [[2000 + i // 3, ["TX", "CA", "NY"][i % 3], 5 + i, 50 - i, 2 * i] for i in range(36)]
        table = written(
            tmp_path / "t.csv", [["year", "state", "=Ann", "Bob <b>", "Zo\u00eb"], *rows]
        )
        (command,) = commands(capsys, table)["Regression"]
        assert "'c(`=Ann`, `Bob <b>`, Zo\u00eb) ~ (1 | state) + s(year)'" in command

    def test_no_job(self, capsys, tmp_path):
        code, out, _ = look(capsys, written(tmp_path / "t.csv", [["x", "y"], [1.5, 2.5], [2.5, 3]]))
        assert code == 0
        assert "No job fits this table" in out

    def test_a_file_that_is_not_there_or_cannot_be_read(self, capsys, tmp_path):
        for name, said in (("no.csv", "no such file"), ("./no", "no such file")):
            code, out, errors = look(capsys, name)
            assert (code, out, errors.count("\n")) == (2, "", 1)
            assert said in errors
        (tmp_path / "e.csv").write_text("a,b\n")
        assert "the table has no rows" in look(capsys, tmp_path / "e.csv")[2]

    def test_commands_stay_commands(self, capsys, tmp_path, monkeypatch):
        (tmp_path / "topics").mkdir()
        monkeypatch.chdir(tmp_path)
        assert look(capsys, "topics", "show", "no-run")[0] == 2
        assert "invalid choice" in look(capsys, "nonsense")[2]


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
class TestCommands:
    @pytest.mark.parametrize(
        "job",
        [
            pytest.param(job, marks=pytest.mark.slow) if job == "Sequences" else job
            for job in TABLES
        ],
    )
    def test_they_run(self, capsys, tmp_path, monkeypatch, job):
        if BASH is None:
            pytest.skip("there is no bash")
        monkeypatch.chdir(tmp_path)
        found = commands(capsys, TABLES[job](tmp_path).name)
        for command in found[job]:
            folder = command.split("--out ")[1].split()[0]
            code, _, errors = look(capsys, *pasted(command, tmp_path), *FEW)
            assert (code, errors) == (0, "")
            assert (tmp_path / folder / "report.html").exists()

    @pytest.mark.parametrize(
        ("header", "row", "job", "inside", "outside"),
        [
            pytest.param(
                ["species", "plot", "month", "year", "weight"],
                lambda i: ["abc"[i % 3], f"P{i % 6}", i % 12, 1990 + i // 9, i % 40 or ""],
                "Fields", "--inputs year", "weight", id="grams, and a year beside a month",
            ),
            pytest.param(
                ["source", "at", "likes_count", "replies_count"],
                lambda i: ["xy"[i % 2], datetime.date(2024, 1, 1 + i % 28), i % 17, i % 13],
                "Regression", "s(at)", "--weight", id="two counts are of something else",
            ),
            pytest.param(
                ["vote", "economy_household", "age"],
                lambda i: ["LCD"[i % 3], i % 5, 18 + i % 60],
                "Regression", "s(economy_household)", "(1 |", id="a scale is no household",
            ),
            pytest.param(
                ["idcode", "year", "union", "wage"],
                lambda i: [i // 4, 68 + i % 4, int(i % 3 == 0), round(i**0.5, 2)],
                "Regression", "union ~ (1 | idcode) + year + s(wage)", "s(id",
                id="yes and no as 1 and 0",
            ),
            pytest.param(
                ["my_id", "my_hid", "choice", "price_a", "price_b"],
                lambda i: [i % 20, i // 20, "ab"[i % 2], i % 7, i % 5],
                "Choice", "(alternative + price | my_hid)", "my_id",
                id="people, not their occasions",
            ),
        ],
    )  # fmt: skip
    def test_columns_are_taken_for_what_they_are(
        self, capsys, tmp_path, header, row, job, inside, outside
    ):
        table = written(tmp_path / "t.csv", [header, *([*row(i)] for i in range(200))])
        command = " ".join(commands(capsys, table)[job][0].replace("\\\n", " ").split())
        assert inside in command
        assert outside not in command

    def test_columns_that_are_left_out_of_a_formula_are_counted(self, capsys, tmp_path):
        rows = [["ab"[i % 2], *((i * k) % 31 for k in range(1, 9))] for i in range(60)]
        table = written(tmp_path / "t.csv", [["vote", *"pqrstuvw"], *rows])
        _, out, _ = look(capsys, table)
        assert "depend on 6 of 8 other columns." in out

    def test_steps_are_as_long_as_the_dates_are_apart(self, capsys, tmp_path):
        (command,) = commands(capsys, visits(tmp_path))["Sequences"]
        assert "--every week" in command
        start = datetime.datetime(2024, 1, 1)
        for seconds, every in ((5400, "90min"), (7200, "2h"), (7, "7s")):
            places = [*range(10), 10 + (every == "90min") / 3]
            times = [start + datetime.timedelta(seconds=seconds * place) for place in places]
            rows = [[time, "ab"[i % 2]] for i, time in enumerate(times)]
            table = written(tmp_path / "t.csv", [["time", "state"], *rows])
            (command,) = commands(capsys, table)["Sequences"]
            assert f"--every {every} " in command

    def test_numbers_that_are_dates_or_far_apart_get_the_length_of_a_step(self, capsys, tmp_path):
        rng = np.random.default_rng(0)
        erratic = np.cumsum(np.exp(rng.normal(5.0, 1.0, 40)).astype(int) + 1)
        cases = {
            "every day": [20240110 + i for i in range(20)],
            "every 10min": [1706659200 + 600 * i for i in range(20)],
            "every 600": [600 * i for i in range(20)],
            "every 4": [1900 + 4 * i for i in range(20)],
            "time at --model": [*range(20)],
        }
        for wanted, times in cases.items():
            rows = [[t, "ab"[i % 2]] for i, t in enumerate(times)]
            table = written(tmp_path / "t.csv", [["at", "state"], *rows])
            (command,) = commands(capsys, table)["Sequences"]
            assert wanted in " ".join(command.replace("\\", " ").split())
        rows = [[t, "ab"[i % 2]] for i, t in enumerate(erratic)]
        table = written(tmp_path / "t.csv", [["at", "state"], *rows])
        for command in commands(capsys, table).get("Sequences", []):
            every = re.search(r"--every (\d+)", command)[1]
            data = pgmult.read(table).sequences("state", time="at", every=every)
            assert 2 * (data.totals == 0).sum() <= data.num_steps

    @pytest.mark.skipif(BASH is None, reason="there is no bash")
    @pytest.mark.parametrize("job", TABLES)
    @pytest.mark.slow
    def test_no_name_is_anything_but_a_name(self, capsys, tmp_path, job):
        """Each hostile name stands for every column once, with the names after it beside it."""
        lines = TABLES[job](tmp_path).read_text(encoding="utf-8").splitlines()
        header, *rows = csv.reader(lines)
        parser, table = cli._parser(), tmp_path / "-odd $(touch hacked).csv"
        for first in range(len(HOSTILE)):
            place = first % len(header)
            named = list(header)
            for i in range(2):
                named[(place + i) % len(header)] = HOSTILE[(first + i) % len(HOSTILE)]
            written(table, [named, *rows])
            code, out, _ = look(capsys, table)
            assert code == 0
            assert "\x1b" not in out
            for command in [one for each in commands(capsys, table).values() for one in each]:
                words = pasted(command, tmp_path)
                options = parser.parse_args(words)
                assert not (tmp_path / "hacked").exists()
                assert str(options.table if "table" in options else words[2]) == str(table)
                columns = [getattr(options, o, None) for o in ("category", "symbol", "column")]
                assert {c for c in columns if c is not None} <= set(named)


@pytest.mark.parametrize("states", [["TX", "OH"], ["District Of Columbia", "new  york"]])
def test_states_are_known_whatever_their_capitals_and_blanks(states):
    assert kind_of(Counter(states), dates=False) == "US states"
    assert kind_of(Counter([*states, "Bavaria"]), dates=False) != "US states"


def test_a_code_na_is_pointed_out(tmp_path, capsys):
    rows = "".join(f"{['NA', 'DE', 'FR'][i % 3]},{'LR'[i % 2]}\n" for i in range(120))
    (tmp_path / "t.csv").write_text(f"country,vote\n{rows}")
    assert cli.main([str(tmp_path / "t.csv")]) == 0
    assert "add --na-values ''" in " ".join(capsys.readouterr().out.split())
