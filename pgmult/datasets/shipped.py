"""Tables of real data that ship with the package, all of them in the public domain."""

from pathlib import Path

from pgmult.datasets.tables import DataTable, read


def berkeley_admissions() -> DataTable:
    """Applicants to the six largest departments of the University of California, Berkeley, 1973.

    24 rows: ``department``, ``sex``, ``decision`` and how many ``applicants``, 4,526 in all. More
    of the men were admitted than of the women; within departments that is not so.

    Figures of Bickel, Hammel and O'Connell, "Sex bias in graduate admissions: data from Berkeley",
    Science 187 (1975), 398-404.

    >>> int(berkeley_admissions()["applicants"].sum())
    4526
    """
    return _shipped("berkeley_admissions")


def newborns() -> DataTable:
    """Newborn girls with six names, by state of the United States, every fifth year, 1960 to 2010.

    3,366 rows: ``year``, ``state`` (its postal code), ``name`` and ``births``, 1,140,442 in all; 0
    stands for fewer than 5, too. Counts of the Social Security Administration ("Baby Names from
    Social Security Card Applications - Data by State and District of Columbia").

    >>> newborns()
    DataTable(3,366 rows, columns: year, state, name, births)
    """
    wide = _shipped("newborns")
    names = [name for name in wide if name not in ("year", "state")]
    long = {name: wide[name].repeat(len(names)) for name in ("year", "state")}
    births = [n for row in zip(*(wide[name].tolist() for name in names), strict=True) for n in row]
    return read({**long, "name": names * len(wide), "births": births})


def seattle_rain() -> DataTable:
    """Rain in Seattle by day, 2012 to 2015.

    1,461 rows: ``day``, and how many ``millimetres`` fell. Measurements of the National Oceanic and
    Atmospheric Administration, as the package ``vega_datasets`` has them.

    >>> len(seattle_rain())
    1461
    """
    return _shipped("seattle_rain")


def travel_modes() -> DataTable:
    """How 210 travellers between Sydney, Canberra and Melbourne went in 1987, and could have gone.

    840 rows, four ways to go for each ``traveller``: ``by`` plane, train, bus or car; whether it
    was ``taken``, yes or no; minutes of ``waiting`` at terminals and of ``travelling``; ``price``
    in dollars of Australia; household ``income`` in thousands of dollars, and how many there were
    in the ``party``. Those who did not go by car were asked more often than they are frequent.

    Greene and Hensher (1997), in LIMDEP's manual; in the public domain as the package
    ``statsmodels`` says.

    >>> len(travel_modes())
    840
    """
    return _shipped("travel_modes")


def _shipped(name: str) -> DataTable:
    return read(Path(__file__).with_name(f"{name}.csv"))
