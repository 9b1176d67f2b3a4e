"""Options of a question, from the signature and the docstring of the function that answers it.

>>> def effects(run, column: str, *, step: float | None = None, probability: float = 0.9):
...     '''Effects.
...
...     Parameters
...     ----------
...     column : str
...         A column of the table. More is said here.
...     step : float, optional
...         Size of the change.
...     '''
>>> import argparse
>>> from pgmult.cli.shared import arguments_of
>>> parser = argparse.ArgumentParser()
>>> options = options_of(effects, first=["column"])
>>> for option in options:
...     _ = option.add(parser)
>>> arguments_of(options, parser.parse_args(["age", "--step", "2"]))
{'column': 'age', 'step': 2.0, 'probability': 0.9}
"""

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pgmult.cli import shared

_RUN = ("run", "other", "data", "names")  # parameters that the command line fills in by itself
_COLUMNS = ("column", "variable", "by", "groups", "weight", "occasion", "attribute", "per")
_ALWAYS = {
    "probability": "Probability of the intervals",
    "max_characters": "Cut longer texts at a word, after N characters",
    "max_draws": "Use at most N draws, evenly spread over the chains",
    "measure": "Measure of the comparison",
    "scope": "Take groups, such as authors, that are not set for new ones, or for those of the"
    " documents",
    "steps": "Number of steps ahead",
    "topic": "Show these topics only",
}
"""Help for parameters that all commands describe alike, whatever the docstring says."""


def options_of(
    function: Callable[..., object], *, first: Sequence[str] = (), required: Sequence[str] = (),
    only: Sequence[str] | None = None, skip: Sequence[str] = (),
    names: Mapping[str, str] | None = None, defaults: Mapping[str, object] | None = None,
) -> list[shared.Option]:  # fmt: skip
    """Make an option for each parameter of a verb that a command line can give.

    Parameters
    ----------
    function : callable
        A verb, which takes a run first.
    first : sequence of str
        Parameters that are given by position.
    required : sequence of str
        Parameters that must be given although they have a default.
    only, skip : sequence of str
        Parameters that become options (all by default), and those that do not.
    names : mapping from a parameter to the name of its option
    defaults : mapping from a parameter to a value
        Defaults that differ from those of the function.
    """
    texts = described(function)
    options, reads_tables = [], False
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if name in (*_RUN, *skip) or (only is not None and name not in only):
            continue
        kind, text = texts.get(name, ("", ""))
        if name in ("at", "random_seed"):
            options.append(shared.AT if name == "at" else shared.SEED)
            continue
        is_required = name in required or parameter.default is inspect.Parameter.empty
        default = None if is_required else (defaults or {}).get(name, parameter.default)
        how = _how(name, kind, parameter.annotation)
        if how is None:
            continue
        text = _plain(name, text)
        if default not in (None, False) and "default" not in text:
            text += f" (default: {default})"
        how |= {"help": text.replace("%", "%%"), "to": name}
        flag = (names or {}).get(name, name).replace("_", "-")
        if name not in first:
            flag = f"--{flag}"
            how |= {"required": True} if is_required else {"default": default}
            if how.get("nargs") == "+" and default is None:
                how["action"] = "extend"  # an option that is repeated adds to its values
        elif not is_required:
            how |= {"nargs": "?", "default": default}
        reads_tables |= "read" in how
        options.append(shared.option(flag, **how))
    return options + [shared.TABLE] * reads_tables


def described(function: Callable[..., object]) -> dict[str, tuple[str, str]]:
    """Return the type and the first sentence of each parameter in a numpydoc docstring.

    Parameters that are described "as in" another function have what its docstring says.
    """
    text = (inspect.getdoc(function) or "").partition("Parameters\n----------\n")[2]
    text = re.split(r"\n\n\w+\n---", text)[0]
    entries = re.findall(r"^(\w[\w, ]*) : ([^\n]*)((?:\n(?:    [^\n]*)?)*)", text, re.MULTILINE)
    module, described_there = sys.modules[function.__module__], {}
    for names, kind, body in entries:
        sentence = re.split(r"[.;:](?:\s|$)", " ".join(body.split()))[0]
        other = re.match(r"as in `(\w+)`", kind)
        referenced = {} if other is None else described(getattr(module, other[1]))
        for name in re.split(r",\s*", names.strip()):
            described_there[name] = referenced.get(name, (kind, sentence))
    return described_there


def _plain(name: str, text: str) -> str:
    """Help of a parameter: imperative, without marks of code and names that only Python has."""
    if name in _ALWAYS:
        return _ALWAYS[name]
    text = text.replace("`new`", "the table")
    text = re.sub(r"^Whether (to |(the )?\w+ may (?=have))", "", text)
    text = re.sub(r"^(An?|The) (?=\w)", "", re.sub(r"^have ", "allow ", text))
    text = (text[:1].upper() + text[1:]).replace("One of the formula", "Column of the formula")
    return re.sub(r"`+\"?([^`\"]*)\"?`+", r"\1", text)


def _how(name: str, kind: str, annotation: object) -> dict[str, Any] | None:
    """What `shared.option` must know of a parameter; None if it takes no text."""
    if re.search(r"\btable\b", kind):
        return {"read": shared.read_table, "type": Path, "metavar": "TABLE"}
    is_union = get_origin(annotation) in (Union, UnionType)
    kinds: tuple[Any, ...] = get_args(annotation) if is_union else (annotation,)
    if bool in kinds:
        return {"action": "store_true"}
    origins = [get_origin(one) for one in kinds]
    if Literal in origins:
        return {"choices": get_args(kinds[origins.index(Literal)])}
    inside = get_args(kinds[origins.index(Sequence)])[0] if Sequence in origins else None
    several = {} if inside is None else {"nargs": "+"}
    if inside in (Any, object):
        return {"type": shared.value_of, "metavar": "VALUE", **several}
    if name == "probability":
        return {"type": shared.share, "metavar": "P", **several}
    if float in kinds or inside is float:
        return {"type": float, "metavar": "X", **several}
    if int in kinds or inside is int:
        return {"type": shared.at_least(0 if several else 1), "metavar": "N", **several}
    if str in kinds:
        return {"metavar": "COLUMN" if name in _COLUMNS else name.upper(), **several}
    return None
