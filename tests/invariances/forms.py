"""Forms of files in which one table is written."""

import csv
import gzip
import io
import json
import zipfile


def text_of(table, mark=",", decimal="."):
    """The table as text with a header; None is an empty cell."""

    def cell(value):
        return repr(value).replace(".", decimal) if isinstance(value, float) else value

    file = io.StringIO()
    writer = csv.writer(file, delimiter=mark, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(map(cell, row) for row in zip(*table.values(), strict=True))
    return file.getvalue()


def rows_of(table):
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def as_workbook(path, table):
    import openpyxl

    book = openpyxl.Workbook()
    for row in (list(table), *zip(*table.values(), strict=True)):
        book.active.append(row)
    book.save(path)


def as_archive(path, table):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("table.csv", text_of(table))


def frame_of(table):
    import pandas

    return pandas.DataFrame({name: pandas.array(cells).to_numpy() for name, cells in table.items()})


def as_spss(path, table):
    import pyreadstat

    pyreadstat.write_sav(frame_of(table), path)


def as_stata(path, table):
    import pyreadstat

    pyreadstat.write_dta(frame_of(table), path)


def as_r(path, table):
    import pyreadr

    pyreadr.write_rds(str(path), frame_of(table))


def as_parquet(path, table):
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(table), path)


def encoded(encoding, **how):
    return lambda path, table: path.write_bytes(text_of(table, **how).encode(encoding))


FORMS = {
    "semicolons.csv": encoded("utf-8", mark=";", decimal=","),
    "utf-16.csv": encoded("utf-16"),
    "latin-1.csv": encoded("latin-1"),
    "tabs.txt": encoded("utf-8", mark="\t"),
    "zipped.csv.gz": lambda path, table: path.write_bytes(gzip.compress(text_of(table).encode())),
    "rows.json": lambda path, table: path.write_text(json.dumps(rows_of(table))),
    "rows.jsonl": lambda path, table: path.write_text("\n".join(map(json.dumps, rows_of(table)))),
    "archive.zip": as_archive,
    "table.parquet": as_parquet,
    "book.xlsx": as_workbook,
    "spss.sav": as_spss,
    "stata.dta": as_stata,
    "r.rds": as_r,
}
"""What writes a table, by the name of the file."""
