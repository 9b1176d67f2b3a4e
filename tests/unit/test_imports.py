"""Imports go down only, families stay apart, and `import pgmult` is light."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pgmult"

# From the ground up. A file imports from floors below, or from its own room.
FLOORS = [
    {"compiled"},
    {"core"},
    {"polya_gamma"},
    {"links", "priors"},
    {"sampling"},
    {"formulas"},
    {"variational"},
    {"latent"},
    {"topics", "sequences", "fields", "regression", "choice"},  # families of data
    {"testing", "datasets"},
    {"cli"},
    {"__main__"},
]
FLOOR = {name: floor for floor, names in enumerate(FLOORS) for name in names}
OPTIONAL = {"arviz", "arviz_base", "dask", "distributed", "formulaic", "matplotlib", "pandas"}
OPTIONAL |= {"pooch", "pyarrow", "sklearn", "xarray"}


def is_face(module):
    """May a module import scikit-learn? Estimators are its classes."""
    return module.split(".")[-1] in {"sklearn", "estimator"} or ".estimators" in module


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source, module, is_package):
    """(imported module or name, whether it runs when the module is imported) of each import."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    found, waiting = [], [(ast.parse(source), True)]
    while waiting:
        node, early = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += [(child, early) for child in node.orelse]
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, early) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            found += [(f"{origin}.{alias.name}", early) for alias in node.names]
        elif not isinstance(node, ast.expr) or isinstance(node, ast.Lambda):
            is_late = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            children = ast.iter_child_nodes(node)
            waiting += [(child, early and not is_late) for child in children]
    return found


@cache
def imports_of(path):
    """`imports` of a file of the package."""
    source = path.read_text(encoding="utf-8")
    return imports(source, module_name(path), path.name == "__init__.py")


def violations(imported, module):
    """What imports of a module break, in words."""
    found = []
    own = module.split(".")[1] if "." in module else ""
    for name, early in imported:
        parts = name.split(".")
        if parts[0] == "numba" and "compiled" not in module.split("."):
            found.append(f"{module} imports numba")
        allowed = {"sklearn"} if is_face(module) else set()
        if parts[0] in OPTIONAL - allowed and early:
            found.append(f"{module} imports the optional {parts[0]} at module level")
        if parts[0] != "pgmult" or not own:
            continue
        there = parts[1] if len(parts) > 1 else ""
        if there not in FLOOR:  # the whole package, or a name defined who knows where
            found.append(f"{module} imports {name}, which has no floor")
        elif there != own and FLOOR[there] > FLOOR[own]:
            found.append(f"{module} imports {name}, upstairs")
        elif there != own and FLOOR[there] == FLOOR[own]:
            found.append(f"{module} imports {name}, next door")
        elif "compiled" in module.split(".") and "compiled" not in parts:
            found.append(f"{module} imports {name}, which is not compiled")
        elif len(parts) == 3 and is_lazy(there) and not is_module(parts):
            found.append(f"{module} imports {name} from the shop window")
    return found


def is_lazy(room):
    """Does a room load its public names when they are used?"""
    return (PACKAGE / room / "__init__.pyi").exists()


def is_module(parts):
    """Is a dotted name a file or folder, rather than something in one?"""
    place = ROOT.joinpath(*parts)
    return place.is_dir() or place.with_suffix(".py").exists()


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def test_imports_go_down():
    found = []
    for path in modules():
        module = module_name(path)
        if module != "pgmult" and module.split(".")[1] not in FLOOR:
            found.append(f"{module} has no floor")
        found += violations(imports_of(path), module)
    assert found == []


def test_no_circle_of_imports():
    """Nor within a room: every file can be read after those that it imports."""
    names = {module_name(path) for path in modules()}
    above = {}
    for path in modules():
        module = module_name(path)
        found = {
            target
            for name, early in imports_of(path)
            for target in (name, name.rpartition(".")[0])
            if early and target in names and target not in (module, "pgmult")
        }
        above[module] = {name for name in found if not name.endswith("__init__")}
    while above:
        free = {module for module, needed in above.items() if not needed & above.keys()}
        assert free, f"imports go round in circles: {sorted(above)}"
        above = {module: needed for module, needed in above.items() if module not in free}


@pytest.mark.parametrize(
    ("source", "module", "what"),
    [
        ("import numba", "pgmult.priors.gaussian", "imports numba"),
        ("def f():\n    from numba import njit", "pgmult.testing.protocol", "imports numba"),
        ("import pandas as pd", "pgmult.sampling.posterior", "optional pandas at module level"),
        ("try:\n    import arviz\nexcept ImportError: pass", "pgmult.sampling._arviz", "optional"),
        ("import sklearn", "pgmult.topics.models.lda", "optional sklearn"),
        ("from pgmult.topics.models import lda", "pgmult.links.stick_breaking", "upstairs"),
        ("def f():\n    import pgmult.sampling.driver", "pgmult.core.validate", "upstairs"),
        ("from ..sampling import moves", "pgmult.priors.gaussian", "upstairs"),
        ("from pgmult.datasets import read_corpus", "pgmult.topics.models.lda", "upstairs"),
        ("from pgmult.fields.data import as_field", "pgmult.topics.models.lda", "next door"),
        ("from ...fields import data", "pgmult.topics.models.lda", "next door"),
        ("from pgmult.links.stick_breaking import x", "pgmult.priors.gaussian", "next door"),
        ("from pgmult import StickBreaking", "pgmult.topics.models.lda", "no floor"),
        ("import pgmult", "pgmult.topics.models.lda", "no floor"),
        ("from pgmult.topics import LDA", "pgmult.topics.estimator", "shop window"),
        ("from pgmult.sequences.data.sequences import x", "pgmult.sequences.compiled.hmm", "not c"),
    ],
)
def test_the_rules_have_teeth(source, module, what):
    imported = imports(source, module, is_package=False)
    assert any(what in found for found in violations(imported, module))


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("import numba", "pgmult.compiled.jit"),
        ("import numba", "pgmult.fields.compiled.innovations"),
        ("from .streams import normal", "pgmult.compiled.dirichlet"),
        ("from pgmult.compiled.streams import normal", "pgmult.topics.compiled.tokens"),
        ("from pgmult.compiled import sticks", "pgmult.links.stick_breaking"),
        ("from pgmult.polya_gamma import sample", "pgmult.links.stick_breaking"),
        ("def f():\n    import matplotlib.pyplot", "pgmult.topics.plots"),
        ("from pgmult.topics.models.lda import LDA", "pgmult.topics.models.structural"),
        ("from pgmult.topics.models.lda import LDA", "pgmult.cli.commands"),
        ("from sklearn.base import BaseEstimator", "pgmult.topics.estimator"),
        ("if TYPE_CHECKING:\n    from matplotlib.axes import Axes", "pgmult.core.figures"),
        ("from pgmult.sampling import diagnostics", "pgmult.topics.reports"),
    ],
)
def test_the_rules_allow_what_is_right(source, module):
    assert violations(imports(source, module, is_package=False), module) == []


def modules_after(statement):
    """Names of the modules that a fresh interpreter holds after a statement."""
    script = f"import sys\n{statement}\nprint(*sorted(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(run.stdout.split())


def test_import_pgmult_is_light():
    loaded = modules_after("import pgmult; dir(pgmult); pgmult.topics; pgmult.__version__")
    assert "pgmult" in loaded
    assert not {"numba", "scipy", "llvmlite"} & loaded


def test_no_module_loads_an_optional_package_when_imported():
    names = [module_name(path) for path in modules() if path.name != "__main__.py"]
    plain = [name for name in names if not is_face(name)]
    assert not OPTIONAL & modules_after(f"import {', '.join(plain)}")


@pytest.mark.parametrize("stub", sorted(PACKAGE.rglob("*.pyi")), ids=module_name)
def test_every_public_name_loads(stub):
    import importlib

    package = importlib.import_module(module_name(stub))
    assert package.__all__
    assert dir(package) == package.__all__
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = package.nonsense


def test_no_public_name_is_that_of_a_module_beside_it():
    """Importing the module would put it in the place of the name."""
    hidden = []
    for stub in PACKAGE.rglob("*.pyi"):
        beside = {path.stem for path in stub.parent.iterdir() if path.suffix in ("", ".py")}
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module != module_name(stub):
                hidden += [f"{stub}: {a.name}" for a in node.names if a.name in beside]
    assert hidden == []


def test_few_names_stand_at_the_root():
    import pgmult

    rooms = {"__version__", *FLOOR}
    assert len([name for name in pgmult.__all__ if name not in rooms]) <= 15


def test_names_are_offered_in_one_place():
    """The stub of a room, or ``__all__`` of a package or of a module that a stub names."""
    offered = set()
    for stub in PACKAGE.rglob("*.pyi"):
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom):
                offered |= {f"{node.module}.{alias.name}" for alias in node.names}
    lists = [path for path in modules() if "\n__all__ =" in path.read_text(encoding="utf-8")]
    inside = [path for path in lists if path.name != "__init__.py"]
    assert [name for name in map(module_name, inside) if name not in offered] == []
