"""Names of newborns: both sources, every way they can be broken, and thinning."""

import csv
import zipfile

import numpy as np
import pytest
from scipy.stats import chisquare, multivariate_hypergeom

from examples.papers.linderman2015 import newborns as names
from examples.papers.linderman2015.newborns import thin, us_names


@pytest.fixture
def local(monkeypatch, shared_data):
    folder = shared_data("names")
    monkeypatch.setenv("PGMULT_DATA", str(folder.parent))
    return folder


@pytest.fixture
def archive(monkeypatch, tmp_path):
    """``archive(lines by state)`` stands for the public file."""

    def make(lines):
        path = tmp_path / "namesbystate.zip"
        with zipfile.ZipFile(path, "w") as file:
            for state in names._STATES:
                file.writestr(f"{state}.TXT", "\r\n".join(lines.get(state, [])))
        monkeypatch.delenv("PGMULT_DATA", raising=False)
        monkeypatch.setattr(names, "download", lambda url, name: path)
        monkeypatch.setattr(names, "_LISTED", {"M": 132})  # births in LINES until 2014
        return path

    return make


LINES = {
    "AK": ["AK,M,1910,John,5", "AK,M,2013,Liam,30", "AK,M,2014,Noah,50"],
    "CA": ["CA,M,2013,Liam,7", "CA,M,2012,John,40", "CA,M,2015,Aiden,60", "CA,F,2012,Mary,0"],
}


class TestLocalFolder:
    def test_shape_and_content(self, local):
        boys = us_names("M", 100)
        assert boys.counts.shape == (105, 51, 100)
        assert boys.names[:3].tolist() == ["James", "John", "Robert"]
        assert us_names("F", 2).names.tolist() == ["Mary", "Patricia"]
        ranked = boys.counts[boys.years <= 2013].sum(axis=(0, 1))
        assert np.all(np.diff(ranked) <= 0)

    def test_places_are_those_of_the_table(self, local):
        boys = us_names(top=2)
        with open(local / "state_latlon.csv", encoding="utf-8") as file:
            rows = {row["state"]: row for row in csv.DictReader(file)}
        assert boys.states.tolist() == sorted(rows)
        expected = [[float(rows[s][k]) for k in ("latitude", "longitude")] for s in boys.states]
        np.testing.assert_array_equal(boys.places, expected)

    def test_take(self, local):
        boys = us_names("M", 3, years=range(2010, 2012), states=["TX", "AK"])
        assert (boys.years.tolist(), boys.states.tolist()) == ([2010, 2011], ["TX", "AK"])
        everything = us_names("M", 3)
        row = everything.years.tolist().index(2011)
        column = everything.states.tolist().index("TX")
        np.testing.assert_array_equal(boys.counts[1, 0], everything.counts[row, column])
        inputs = boys.inputs()
        np.testing.assert_array_equal(inputs[:, 0], [2010, 2010, 2011, 2011])
        np.testing.assert_array_equal(inputs[2, 1:], everything.places[column])

    def test_bad_choices(self, local):
        with pytest.raises(ValueError, match="states must be known, got 'XX'"):
            us_names(states=["CA", "XX"])
        with pytest.raises(ValueError, match=r"years must be known, got 1900 .*: there are 1910"):
            us_names(years=[1900])
        with pytest.raises(TypeError, match="states must be a sequence of codes, got 'CA'"):
            us_names(states="CA")
        with pytest.raises(ValueError, match="top must be at most 200"):
            us_names(top=201)
        with pytest.raises(ValueError, match="sex must be one of M, F"):
            us_names("X")

    def test_another_file_is_refused(self, monkeypatch, tmp_path):
        (tmp_path / "names").mkdir()
        (tmp_path / "names" / "ssa_names_by_state.npz").write_bytes(b"something else")
        monkeypatch.setenv("PGMULT_DATA", str(tmp_path))
        with pytest.raises(ValueError, match="not the expected counts of names"):
            us_names()


class TestPublicFile:
    def test_is_read(self, archive):
        archive(LINES)
        boys = us_names("M", 2)
        assert boys.names.tolist() == ["John", "Liam"], "not Noah: 2014 does not count"
        assert boys.counts.sum() == 5 + 30 + 7 + 40
        california = boys.take([2012, 2013], ["CA"])
        np.testing.assert_array_equal(california.counts[:, 0], [[40, 0], [0, 7]])

    @pytest.mark.parametrize(
        "lines",
        [
            {"AK": "AK,M,1910,John,5"},  # the other states are missing
            *[
                dict.fromkeys(names._STATES, "") | {"AK": line}
                for line in ("CA,M,1910,John,5", "AK,M,1910,5", "AK,M,1910,John,five")
            ],
            None,
        ],
    )
    def test_other_files_are_refused(self, archive, lines):
        path = archive(LINES)
        if lines is None:
            path.write_text("<html>moved</html>", encoding="utf-8")
        else:
            with zipfile.ZipFile(path, "w") as file:
                for state, line in lines.items():
                    file.writestr(f"{state}.TXT", line)
        with pytest.raises(ValueError, match="not the expected archive"):
            us_names()

    def test_other_counts_are_refused(self, archive, monkeypatch):
        archive(LINES)
        monkeypatch.setattr(names, "_LISTED", {"M": 1000})
        with pytest.raises(ValueError, match="132 births, expected about 1,000"):
            us_names()


class TestThin:
    def test_law(self):
        draws = thin(np.tile([3, 2, 1], (6000, 1)), 2, random_seed=0)
        kinds, seen = np.unique(draws, axis=0, return_counts=True)
        expected = 6000 * multivariate_hypergeom.pmf(kinds, [3, 2, 1], 2)
        assert expected.sum() == pytest.approx(6000)
        assert chisquare(seen, expected).pvalue > 1e-4

    def test_small_rows_stay(self):
        counts = np.array([[[0, 0], [1, 2]], [[30, 30], [25, 25]]])
        thinned = thin(counts, 50, random_seed=0)
        np.testing.assert_array_equal(thinned.sum(axis=-1), [[0, 3], [50, 50]])
        np.testing.assert_array_equal(thinned[[0, 1], [1, 1]], counts[[0, 1], [1, 1]])

    def test_same_seed_same_counts(self):
        first, second = (thin([[90, 80]], 50, random_seed=1) for _ in range(2))
        np.testing.assert_array_equal(first, second)
