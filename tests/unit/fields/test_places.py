"""Places by name: which columns are coordinates, names that look alike, degrees, far ones."""

import warnings

import numpy as np
import pytest

import pgmult
from pgmult.cli import commands as cli
from pgmult.cli.runs import StoredRun
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import GreatCircle, Matern
from pgmult.fields.family import FIELDS
from pgmult.fields.places import degrees_among, places_of, spread_in_km
from pgmult.fields.tables import field_of, with_table

pytestmark = pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")  # short on purpose
FEW = ["--draws", "6", "--tune", "3", "--chains", "2", "--quiet", "--count", "n"]
TOWNS = {"town": ["Ulm", "Bonn"], "lat": [48.4, 50.7], "lon": [10.0, 7.1]}


@pytest.mark.parametrize(
    ("columns", "coordinates", "expected"),
    [
        ({**TOWNS, "population": [126_000, 331_000]}, (), ([48.4, 10.0], True)),
        ({**TOWNS, "Land": ["BW", "NW"], "x": [1, 2], "y": [3, 4]}, (), ([48.4, 10.0], True)),
        ({"id": [1, 2], "Latitude": [48.4, 50.7], " LONG ": [10, 7], "town": ["Ulm", "Bonn"]}, (),
         ([48.4, 10.0], True)),
        ({"town": ["Ulm", "Bonn"], "y": [2, 5], "x": [1, 4], "n": [7, 8]}, (), ([1.0, 2.0], False)),
        ({"town": ["Ulm", "Bonn"], "north": [2, 5], "east": [1, 4]}, (), ([2.0, 1.0], False)),
        ({"town": ["Ulm", "Bonn"], "km": [2, 5]}, (), ([2.0], False)),
        ({**TOWNS, "height": [478, 60]}, ("height",), ([478.0], False)),
        ({**TOWNS, "height": [478, 60]}, ("lon", "lat"), ([48.4, 10.0], True)),
        ({**TOWNS, "height": [478, 60]}, ("lat", "lon", "height"), ([48.4, 10.0, 478.0], False)),
        ({"town": ["Ulm", "Bonn", "ULM"], "x": [1, 4, 1], "y": [2, 5, 2]}, (), ([1.0, 2.0], False)),
    ],
)  # fmt: skip
def test_columns_of_coordinates(columns, coordinates, expected):
    found = places_of(columns, "town", coordinates)
    assert (list(found.at["Ulm"]), found.on_sphere) == expected


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"town": ["Ulm", "Bonn"], "e": [1, 2], "n": [3, 4], "size": [5, 6]},
         "in one or two others, got 'e', 'n', 'size' .coordinates says which"),
        ({"town": ["Ulm", "Bonn"]}, "got none"),
        ({"town": ["Ulm", "Bonn"], "lat": ["48 N", "50 N"], "lon": [10, 7]}, "text in 'lat'"),
        ({"town": ["Ulm", "Bonn", "ulm "], "lat": [48.4, 50, 47], "lon": [10, 7, 10]},
         "one place of a name, got 'ulm ' at 48.4, 10 in row 1 below the header and at 47, 10 in"
         " row 3"),
        ({"town": ["Ulm", "Reno"], "lat": [10.0, -119.8], "lon": [48.4, 39.5]},
         "latitude must be from -90 to 90 degrees, got -119.8 in row 2 below the header of .*are"
         " latitude and longitude swapped"),
        ({"town": ["Ulm", "Bonn"], "lat": [48, 50], "lon": [10, 361_000]},
         "longitude must be from -360 to 360 degrees, got 361000 in row 2"),
    ],
)  # fmt: skip
def test_tables_of_places_that_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        places_of(columns, "town")


def test_degrees_and_distances():
    assert degrees_among(["year", "LAT", "Longitude"]) == ["LAT", "Longitude"]
    assert degrees_among(["lat", "latitude", "lon"]) == []
    quarter = np.pi / 2 * 6371.0088
    assert spread_in_km([[0, 0], [0, 10], [0, 90]]) == pytest.approx(quarter)
    assert spread_in_km([[0, 179], [0, -179]]) == pytest.approx(quarter / 45)
    assert spread_in_km([[3, 4]]) == 0.0
    with pytest.raises(ValueError, match="longitude must be from -360 to 360 degrees, got 5000"):
        GreatCircle().cov([[0.0, 1.0], [0.0, 5000.0]])
    with pytest.raises(ValueError, match=r"got 500000 at row 0 .coordinates in metres"):
        GreatCircle().cov([[5e5, 4e6]])
    with pytest.raises(ValueError, match=r"latitude .* got 120 at row 1 .are latitude and long"):
        GreatCircle().cov([[48.0, 9.0], [120.0, 9.0]])


NAMES = {"state": ["District Of Columbia", " new  york", "TX"], "name": ["a", "b", "a"]}


def test_names_are_found_whatever_their_capitals_and_blanks():
    data = field_of(
        NAMES, inputs="state", category="name", places={"state": pgmult.datasets.us_states()}
    )
    known = pgmult.datasets.us_states()
    expected = {known["DC"], known["NY"], known["TX"]}
    assert {tuple(x) for x in data.inputs} == expected
    new = with_table(data, {"state": ["DISTRICT OF COLUMBIA", "New York"]})
    assert new.new_inputs.tolist() == [list(known["DC"]), list(known["NY"])]
    assert with_table(data, {"state": ["tx"]}, {"state": known}).new_inputs.tolist() == [
        list(known["TX"])
    ]


def test_names_that_could_be_two_places_are_refused():
    known = {"Bonn": (1.0, 2.0), "BONN": (3.0, 4.0), "Ulm": (5.0, 6.0)}
    table = {"town": ["bonn", "Ulm"], "name": ["a", "b"]}
    with pytest.raises(ValueError, match="got 'bonn' at row 0"):
        field_of(table, inputs="town", category="name", places={"town": known})
    table["town"][0] = "BONN"
    data = field_of(table, inputs="town", category="name", places={"town": known})
    assert data.inputs.tolist() == [[3.0, 4.0], [5.0, 6.0]]


def test_two_names_at_one_point_are_told():
    table = {"town": ["Ulm", "Neu-Ulm", "Bonn"], "name": ["a", "b", "a"]}
    known = {"Ulm": (48.4, 10.0), "Neu-Ulm": (48.4, 10.0), "Bonn": (50.7, 7.1)}
    with pytest.warns(UserWarning, match="'Ulm' and 'Neu-Ulm' of 'town' lie at one point"):
        data = field_of(table, inputs="town", category="name", places={"town": known})
    assert data.counts.tolist() == [[1, 1], [1, 0]]


# --------------------------------------------------------------------------- at the command line


def told(capsys, *arguments):
    code = cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def write(path, head, rows):
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def fit(capsys, folder, counts, places, *more):
    """A run of towns at the command line, and what was said."""
    given = ["fields", "fit", counts, "--category", "name", "--out", folder / "run", *FEW, *more]
    return told(capsys, *given, *([] if places is None else ["--places", places]))


@pytest.fixture
def counts(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        (year, town, name, rng.integers(5, 30))
        for year in range(2000, 2004) for town in ("Ulm", "Bonn", "Kiel") for name in "ab"
    ]  # fmt: skip
    return write(tmp_path / "counts.csv", "year,town,name,n", rows)


PEOPLE = [("Ulm", 48.4, 10.0, 126_000), ("Bonn", 50.7, 7.1, 331_000), ("Kiel", 54.3, 10.1, 247_000)]


def test_what_lives_at_a_place_is_no_coordinate(capsys, tmp_path, counts):
    places = write(tmp_path / "towns.csv", "town,lat,lon,population", PEOPLE)
    code, _, _ = fit(capsys, tmp_path, counts, places, "--inputs", "year", "town")
    assert code == 0
    run = StoredRun.open(tmp_path / "run", FIELDS)
    assert run.posterior.data.inputs.shape[1] == 3
    assert "town (exponential, about 219 km)" in run.notes["model"], "a third of Ulm to Kiel"
    ask = write(tmp_path / "ask.csv", "year,town", [(2004, "ULM"), (2004, "kiel")])
    assert told(capsys, "fields", "predict", tmp_path / "run", ask)[0] == 0


@pytest.mark.parametrize(
    ("head", "rows", "message"),
    [
        ("town,lat,lon", [*(row[:3] for row in PEOPLE), ("Ulm", 44.4, 10.0)],
         "must have one place of a name, got 'Ulm'"),
        ("town,lat,lon", [(a, c * 10, b) for a, b, c, _ in PEOPLE], "swapped?"),
        ("town,east,north,population", PEOPLE, "got 'east', 'north', 'population'"),
    ],
)  # fmt: skip
def test_tables_that_the_command_refuses(capsys, tmp_path, counts, head, rows, message):
    places = write(tmp_path / "towns.csv", head, rows)
    code, out, errors = fit(capsys, tmp_path, counts, places, "--inputs", "year", "town")
    assert (code, out) == (2, "")
    assert message in errors


def test_coordinates_can_be_named(capsys, tmp_path, counts):
    places = write(tmp_path / "towns.csv", "town,east,north,population", PEOPLE)
    more = ["--inputs", "year", "town", "--coordinates", "east", "north"]
    assert fit(capsys, tmp_path, counts, places, *more)[0] == 0
    assert StoredRun.open(tmp_path / "run", FIELDS).posterior.data.inputs.shape[1] == 3


@pytest.mark.parametrize("by_name", [True, False])
def test_islands_on_either_side_of_180_degrees_are_neighbours(capsys, tmp_path, by_name):
    """Counts at 179.5 and far away tell of -179.5 as of a place 100 km off."""
    at = {"west": (0.0, 179.5), "east": (0.0, -179.5), "far": (40.0, 20.0), "other": (-40.0, 90.0)}
    shares = {"west": 900, "far": 100, "other": 100}
    key = (lambda p: (p,)) if by_name else (lambda p: at[p])
    head = "island" if by_name else "lat,lon"
    rows = [(*key(p), "a", n) for p, n in shares.items()]
    rows += [(*key(p), "b", 1000 - n) for p, n in shares.items()]
    table = write(tmp_path / "counts.csv", f"{head},name,n", rows)
    places = write(tmp_path / "islands.csv", "island,lat,lon", [(p, *x) for p, x in at.items()])
    more = ["--inputs", *head.split(","), "--draws", "80", "--tune", "40"]
    assert fit(capsys, tmp_path, table, places if by_name else None, *more)[0] == 0
    words = "island (exp" if by_name else "lat and lon (exp"
    run = StoredRun.open(tmp_path / "run", FIELDS)
    assert words in run.notes["model"]
    assert run.posterior.data.input_names is not None
    found = run.posterior.predict(np.array([at["east"], at["other"]]), random_seed=0).mean
    assert found[0, 0] > 0.6
    assert found[1, 0] < 0.2


@pytest.mark.filterwarnings("always::UserWarning")
def test_kilometres_asked_of_metres_are_told(capsys, tmp_path):
    rng = np.random.default_rng(1)
    at = rng.uniform([500_000, 5_400_000], [600_000, 5_500_000], size=(12, 2)).round()
    rows = [(*x, name, rng.integers(5, 30)) for x in at for name in "ab"]
    table = write(tmp_path / "counts.csv", "x,y,name,n", rows)
    assert fit(capsys, tmp_path, table, None, "--inputs", "x", "y")[0] == 0
    posterior = StoredRun.open(tmp_path / "run", FIELDS).posterior
    with pytest.warns(UserWarning, match="12 of 12 new inputs are so far from the data .* units"):
        posterior.predict(at / 1000.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior.predict(at + 1.0)
    ask = write(tmp_path / "ask.csv", "x,y", [(510, 5_450), (550_000, 5_450_000)])
    code, _, errors = told(capsys, "fields", "predict", tmp_path / "run", ask)
    assert code == 0
    assert "pgmult: warning: 1 of 2 new inputs are so far" in errors
    assert "row 0 at x 510, y 5450 for one" in errors


def test_nothing_is_far_where_a_part_is_remembered_everywhere():
    data = as_field(np.arange(6.0), [[3, 5]] * 6)
    model = MultinomialGP(Matern(1.5, 2.0) + Matern(1.5, 1e6, fixed="length_scale"))
    run = pgmult.sample(
        model, data, draws=5, tune=5, chains=1, random_seed=0, progressbar=False,
        keep=["psi", "beta", "hyperparameters"],
    )  # fmt: skip
    run.predict([[1000.0]])


def test_numbers_that_are_names_are_refused_unless_they_are_said_to_be_distances(capsys, tmp_path):
    """Plots 1 to 6 are no line: neighbours in number need not be neighbours in space."""
    rows = [
        (year, plot, name, 5 + plot) for year in (1, 2, 3) for plot in range(1, 7) for name in "ab"
    ]
    counts = write(tmp_path / "counts.csv", "year,plot,name,n", rows)
    asked = ["--count", "n", "--inputs", "year", "plot"]
    code, _, said = fit(capsys, tmp_path, counts, None, *asked)
    assert code
    assert "the input 'plot' has numbers that look like names, such as 1" in said
    assert "--places plot=TABLE" in said
    assert "--length-scale plot=X" in said
    assert not (tmp_path / "run").exists()
    code, _, said = fit(capsys, tmp_path, counts, None, *asked, "--length-scale", "plot=2")
    assert not code, said


def test_numbers_that_are_names_are_places_where_a_table_locates_them(capsys, tmp_path):
    rows = [(year, plot, name, 4) for year in (1, 2, 3) for plot in (1, 2, 10) for name in "ab"]
    counts = write(tmp_path / "counts.csv", "year,plot,name,n", rows)
    places = write(tmp_path / "plots.csv", "plot,x,y", [(1, 0, 0), (10, 5, 1), (2, 3, 3)])
    asked = ["--count", "n", "--inputs", "year", "plot"]
    code, _, said = fit(capsys, tmp_path, counts, f"plot={places}", *asked)
    assert not code, said
