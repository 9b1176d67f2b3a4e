"""Where the states of the United States are."""

import csv
from functools import cache
from pathlib import Path


def us_states() -> dict[str, tuple[float, float]]:
    """Latitude and longitude in degrees of the middle of each state, by postal code and by name.

    For `DataTable.field`.

    >>> us_states()["TX"] == us_states()["Texas"]
    True
    """
    rows = _rows()
    return {row[key]: (float(row["latitude"]), float(row["longitude"]))
            for key in ("code", "name") for row in rows}  # fmt: skip


@cache
def _rows() -> list[dict[str, str]]:
    with Path(__file__).with_name("us_states.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
