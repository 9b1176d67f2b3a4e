"""Imports go down only, and `import pgmult` is light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pgmult"

# From the ground up; a name is a module or a package of pgmult. Modules may import their own floor.
FLOORS = [
    {"compiled"},
    {"_machine", "_validate", "polya_gamma", "potentials", "typing"}
    | {"alignments", "corpus", "counted_rows", "covariates", "fields", "labelled_rows", "sequences"}
    | {"links", "priors", "updates"},
    {"models"},
    {"inference", "posterior", "diagnostics", "summaries", "store", "heldout", "selection"}
    | {"_arviz", "_codec", "forecasts", "predictions"},
    {"testing", "estimators", "distributed", "datasets", "plots", "report", "demo", "cli"},
]
FLOOR = {name: floor for floor, names in enumerate(FLOORS) for name in names}
OPTIONAL = {"arviz", "arviz_base", "distributed", "matplotlib", "pandas", "polyagamma", "pooch"}
OPTIONAL |= {"formulaic", "pypolyagamma", "sklearn", "xarray"}


FACES = {"estimators": {"sklearn"}}  # folders of classes that are of an optional package


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree, module, is_package):
    """(imported module or name, whether it runs when the module is imported) of each import."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    late = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    typing_only = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.unparse(branch.test)
        for node in ast.walk(branch)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{origin}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            yield name, id(node) not in late


def violations(source, module, is_package=False):
    """What an import in `source` breaks, in words."""
    found = []
    own = module.split(".")[1] if "." in module else ""
    for name, early in imports(ast.parse(source), module, is_package):
        parts = name.split(".")
        if parts[0] == "numba" and own != "compiled":
            found.append(f"{module} imports numba")
        if parts[0] in OPTIONAL - FACES.get(own, set()) and early:
            found.append(f"{module} imports the optional {parts[0]} at module level")
        if parts[0] != "pgmult" or not own:
            continue
        if len(parts) < 2 or parts[1] not in FLOOR:
            if name != "pgmult.__version__":  # the whole package, or a name defined who knows where
                found.append(f"{module} imports {name}, which has no floor")
            continue
        if FLOOR[parts[1]] > FLOOR[own]:
            found.append(f"{module} imports {name}, upstairs")
        if own == parts[1] == "models" and not is_package:
            found.append(f"{module} imports {name}, another model")
    return found


def modules():
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", modules(), ids=module_name)
def test_imports_go_down(path):
    module = module_name(path)
    assert module == "pgmult" or module.split(".")[1] in FLOOR, f"{module} has no floor"
    source = path.read_text(encoding="utf-8")
    assert violations(source, module, path.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("source", "module", "what"),
    [
        ("import numba", "pgmult.priors.gaussian", "imports numba"),
        ("def f():\n    from numba import njit", "pgmult.testing", "imports numba"),
        ("import pandas as pd", "pgmult.posterior", "optional pandas at module level"),
        ("try:\n    import arviz\nexcept ImportError: pass", "pgmult._arviz", "optional arviz"),
        ("from pgmult.models import topics", "pgmult.links.stick_breaking", "upstairs"),
        ("def f():\n    import pgmult.inference.gibbs", "pgmult.models.lda", "upstairs"),
        ("from ..models import lda", "pgmult.priors.gaussian", "upstairs"),
        ("from pgmult import models", "pgmult.priors.gaussian", "upstairs"),
        ("from pgmult import StickBreaking", "pgmult.models.lda", "no floor"),
        ("from .lda import LDA", "pgmult.models.topics", "another model"),
        ("from pgmult.models import lda", "pgmult.models.topics", "another model"),
        ("import pgmult", "pgmult.models.topics", "no floor"),
    ],
)
def test_the_rules_have_teeth(source, module, what):
    assert any(what in found for found in violations(source, module))


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("import numba", "pgmult.compiled._jit"),
        ("from .streams import normal", "pgmult.compiled.tokens"),
        ("from pgmult.compiled import sticks", "pgmult.links.stick_breaking"),
        ("from pgmult import polya_gamma", "pgmult.links.stick_breaking"),
        ("def f():\n    import matplotlib.pyplot", "pgmult.plots"),
        ("if TYPE_CHECKING:\n    from pgmult.models.lda import LDA", "pgmult.models.topics"),
        ("from pgmult.models.topics import CorrelatedTopics", "pgmult.cli"),
        ("from sklearn.base import BaseEstimator", "pgmult.estimators"),
    ],
)
def test_the_rules_allow_what_is_right(source, module):
    assert violations(source, module) == []


def modules_after(statement):
    """Names of the modules that a fresh interpreter holds after a statement."""
    script = f"import sys\n{statement}\nprint(*sorted(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(run.stdout.split())


def test_import_pgmult_is_light():
    loaded = modules_after("import pgmult; dir(pgmult)")
    assert "pgmult" in loaded
    assert not {"numba", "scipy", "llvmlite"} & loaded


def test_no_module_loads_an_optional_package_when_imported():
    names = [module_name(path) for path in modules()]
    plain = [name for name in names if name.split(".")[1:2] not in [[face] for face in FACES]]
    assert not OPTIONAL & modules_after(f"import {', '.join(plain)}")


def test_every_public_name_loads():
    import pgmult

    for name in pgmult.__all__:
        assert getattr(pgmult, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = pgmult.nonsense
