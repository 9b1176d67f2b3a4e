"""Public names that are loaded when first used.

A package states what it offers once, in the ``__init__.pyi`` beside its ``__init__.py``, where type
checkers and editors read it, too::

    # pgmult/topics/__init__.pyi
    from pgmult.topics.models.lda import LDA as LDA

    # pgmult/topics/__init__.py
    __getattr__, __dir__, __all__ = public_names(__name__, __file__)
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def optional(module: str, needs: str, extra: str, package: str = "") -> Any:
    """A module that needs an optional package; an error says how to install that.

    Parameters
    ----------
    module : str
    needs : str
        What needs which package, in words.
    extra : str
        The extra of this package that brings it.
    package : str, optional
        The package, where it is not that of the module.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != (package or module.partition(".")[0]):
            raise
        raise ImportError(f"{needs}: pip install 'pgmult[{extra}]'") from error


def public_names(
    package: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, from its stub.

    Parameters
    ----------
    package, file : str
        ``__name__`` and ``__file__`` of its ``__init__.py``.
    """
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    nodes = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    origins = {alias.name: node.module or "" for node in nodes for alias in node.names}
    names = sorted(origins)

    def load(name: str) -> Any:
        if name not in origins:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        origin = origins[name]
        if origin == package:
            return import_module(f"{package}.{name}")
        needs = f"{package}.{name} needs scikit-learn 1.6 or later"
        value = getattr(optional(origin, needs, "sklearn", "sklearn"), name, None)
        if value is None:
            value = import_module(f"{origin}.{name}")
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: names, names
