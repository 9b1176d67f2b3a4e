"""Write one page a family from what its package states as public, grouped by room."""

import importlib
import types
from pathlib import Path

FAMILIES = {
    "pgmult": "Sampling and building blocks",
    "pgmult.topics": "Topics",
    "pgmult.sequences": "Sequences",
    "pgmult.fields": "Counts in space and time",
    "pgmult.regression": "Regressions",
    "pgmult.choice": "Choices among alternatives",
    "pgmult.variational": "Variational approximations",
    "pgmult.testing": "Testing samplers",
    "pgmult.datasets": "Data",
    "pgmult.polya_gamma": "The Pólya-gamma distribution",
}
ROOMS = {
    "data": "Data",
    "models": "Models, for `pgmult.sample`",
    "fits": "Fits without sampling",
    "priors": "Priors",
    "links": "Links",
    "sampling": "Sampling",
    "starts": "Starts",
    "answers": "Ask a run",
    "predictions": "Ask a run",
    "forecasts": "Ask a run",
    "effects": "Ask a run",
    "checks": "Ask a run",
    "posteriors": "Ask a run",
    "summaries": "Ask a run",
    "exports": "Ask a run",
    "report": "Ask a run",
    "reports": "Ask a run",
    "tables": "Data",
    "corpus": "Data",
    "states": "Data that ship or are downloaded",
    "messages": "Data that ship or are downloaded",
    "readers": "Files",
    "fasta": "Files",
    "packing": "Files",
    "text": "Words of texts",
    "scores": "Scores",
    "estimators": "Estimators in scikit-learn's manner",
    "estimator": "Estimators in scikit-learn's manner",
    "core": "Protocols and potentials",
}
HEAD = """{title}
{line}

.. currentmodule:: {package}

"""
TABLE = """.. autosummary::
   :toctree: generated

   {names}

"""


def rooms_of(package: str) -> dict[str, list[str]]:
    """Public names of a package, by the room that they come from."""
    module = importlib.import_module(package)
    rooms: dict[str, list[str]] = {}
    for name in module.__all__:
        value = getattr(module, name)
        if name.startswith("_") or value is None:
            continue
        if isinstance(value, types.ModuleType):
            if value.__name__ in FAMILIES:
                continue
            listed = [each for each in value.__all__ if not _is_alias(getattr(value, each))]
            rooms[f"``{value.__name__}``"] = listed
            continue
        home = getattr(value, "__module__", package).removeprefix(package + ".")
        room = ROOMS.get(home.split(".")[0], "")
        rooms.setdefault(room, []).append(name)
    return rooms


def _is_alias(value: object) -> bool:
    """Is it a name of a type made of others, which has no page of its own?"""
    return isinstance(value, types.GenericAlias | types.UnionType)


def page(package: str, title: str) -> str:
    """The page of one family."""
    text = HEAD.format(title=title, line="=" * len(title), package=package)
    rooms = rooms_of(package)
    order = list(dict.fromkeys(ROOMS.values()))
    for room in sorted(rooms, key=lambda room: order.index(room) if room in order else len(order)):
        if room or len(rooms) > 1:
            heading = room or "More"
            text += f"{heading}\n{'-' * len(heading)}\n\n"
        where = room.strip("`") if room.startswith("``") else package
        text += f".. currentmodule:: {where}\n\n"
        text += TABLE.format(names="\n   ".join(sorted(rooms[room], key=str.lower)))
    return text


def write(folder: Path) -> None:
    """All pages, where they changed."""
    folder.mkdir(exist_ok=True)
    for package, title in FAMILIES.items():
        path = folder / f"{package.removeprefix('pgmult.')}.rst"
        text = page(package, title)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
