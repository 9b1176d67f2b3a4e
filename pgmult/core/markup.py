"""HTML in which text stays text: what is not made by `tag` is escaped.

Every page, table and drawing of this package is written with `tag`, so that a label, a file's name
or a text of the user cannot become a part of the page.

>>> tag("td", "a < b", tag("b", "c"), class_="number", hidden=True, title=None)
'<td class="number" hidden>a &lt; b<b>c</b></td>'
"""

import html
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_VOID = frozenset({"br", "input", "meta"})
_SHAPES = frozenset({"circle", "line", "path", "polygon", "polyline", "rect"})


class Markup(str):
    """HTML that is ready to stand in a page.

    Make it with `tag`. Call it directly for text that the package itself wrote, such as a style
    sheet, and for nothing else.
    """

    __slots__ = ()


class Leading(str):
    """A sentence of a verdict whose numbers lead to a section of the page.

    Attributes
    ----------
    to : str
        Title of the section, or its key.
    """

    to: str

    def __new__(cls, sentence: str, to: str) -> "Leading":
        """The sentence."""
        made = super().__new__(cls, sentence)
        made.to = to
        return made


def style_sheet(module: str, name: str) -> Markup:
    """The style sheet of this name beside a module, whose ``__file__`` is given."""
    return Markup(Path(module).with_name(name).read_text(encoding="utf-8"))


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """An element.

    Parameters
    ----------
    name : str
    *children : str, Markup, None, or iterables of these
        Text is escaped, markup stands as it is, None is left out.
    **attributes : object
        An underscore at the end of a name is dropped (``class_``), others become hyphens
        (``data_label``, ``aria_label``). True gives the name alone; None and False leave it out;
        floats are written with one digit.
    """
    written = ""
    for key, value in attributes.items():
        if value is not None and value is not False:
            written += f" {key.removesuffix('_').replace('_', '-')}"
            written += "" if value is True else f'="{_value(value)}"'
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    inside = joined(*children)
    if name in _SHAPES and not inside:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{inside}</{name}>")


def joined(*children: object) -> Markup:
    """Children of `tag` one after the other, without an element around them."""
    return Markup("".join(_each(children)))


def paragraphs(lines: Iterable[str]) -> Markup:
    """Each line a paragraph."""
    return joined(tag("p", line) for line in lines)


def _each(children: Iterable[object]) -> Iterable[str]:
    for child in children:
        if isinstance(child, Markup):
            yield child
        elif isinstance(child, str):
            yield html.escape(child)
        elif isinstance(child, Iterable):
            yield from _each(child)
        elif child is not None:
            yield html.escape(str(child))


def _value(value: object) -> str:
    text = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
    return html.escape(text)
