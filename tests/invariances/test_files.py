"""The same data in another form of file are the same to the bit."""

import pytest
from invariances.forms import FORMS
from invariances.frame import cells, hold, jobs, write

from pgmult import read


@pytest.mark.parametrize(("job", "variation"), cells("files"), ids=lambda each: each.name)
def test_files(job, variation, runs):
    hold(job, variation, runs)


@pytest.mark.parametrize("form", FORMS)
def test_forms_are_read_as_one_table(form, tmp_path):
    """The tables of all jobs, with letters of Europe, gaps and numbers above a thousand."""
    for number, job in enumerate(jobs()):
        table = dict(next(iter(job.tables.values()))())
        size = len(next(iter(table.values())))
        cycle = [(None, "Zoë", 1234.5, 7), ("é", "Ça", -0.125, None), ("b, c", "d", 3.0, 12345)]
        more = zip(*(cycle[i % 3] for i in range(size)), strict=True)
        table |= dict(zip(("note", "name_of", "amount", "times"), map(list, more), strict=True))
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder / "table.csv", table)
        FORMS[form](folder / form, table)
        expected, answer = read(folder / "table.csv"), read(folder / form)
        assert list(expected) == list(answer)
        for name in expected:
            columns = [[*map(str, each[name].tolist())] for each in (expected, answer)]
            assert columns[0] == columns[1], name
