"""HTML that escapes by construction."""

import pytest
from html_pages import parsed

from pgmult.core.markup import Markup, joined, tag

HOSTILE = "a<script>alert(1)</script>\"' & b"


@pytest.mark.parametrize(
    "page",
    [
        tag("p", HOSTILE),
        tag("p", [HOSTILE, [HOSTILE]]),
        tag("p", f"{tag('b', 'x')}{HOSTILE}"),  # a formatted string is text again
        tag("p", "x", title=HOSTILE, data_t=HOSTILE),
        joined(HOSTILE),
    ],
)
def test_text_and_attributes_cannot_become_markup(page):
    assert "<script" not in page
    parser = parsed(page)
    told = ["".join(parser.text), *dict(parser.attributes).values()]
    assert any(HOSTILE in text for text in told)


def test_markup_stands_as_it_is():
    assert tag("p", tag("b", "x"), Markup("<i>y</i>"), None, 3) == "<p><b>x</b><i>y</i>3</p>"
    assert isinstance(tag("p"), Markup)


def test_attributes_are_written_as_html_has_them():
    made = tag("input", type_="range", aria_label="size", hidden=True, checked=False, min=0.5)
    assert made == '<input type="range" aria-label="size" hidden min="0.5">'
    assert tag("circle", cx=1.26, r=2.0) == '<circle cx="1.3" r="2"/>'
