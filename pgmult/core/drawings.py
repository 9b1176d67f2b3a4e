"""Small figures as inline SVG: lines with bands, tiles of a map; legends stand beside as text.

Colours are named by number in `DRAWING_STYLE`, for light and dark screens; a category keeps its
number, and with it its colour, in every figure of a page.
"""

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pgmult.core.tables import as_dates, as_years, date_text
from pgmult.core.typing import ArrayLike, FloatArray

__all__ = [
    "DRAWING_STYLE", "LIGHT", "US_TILES", "Line", "date_ticks", "line_chart", "panels", "tile_map",
]  # fmt: skip

LIGHT = (
    "#2a6f97", "#c8553d", "#4f7a4e", "#8457a8", "#96740a", "#1d2538", "#0b8a83", "#b0407f",
)  # fmt: skip
NUM_COLOURS = len(LIGHT)
_DARK = (
    "#6cb4dd", "#f08a70", "#9fcf95", "#c9aede", "#e0b93a", "#f4f1ea", "#5fd0c5", "#ee8fc4",
)  # fmt: skip
_DASHES = ("", "6 3", "2 3", "8 3 2 3")  # of the 9th colour on

DRAWING_STYLE = (
    ":root { " + " ".join(f"--c{i}: {c};" for i, c in enumerate(LIGHT)) + " }\n"
    "@media (prefers-color-scheme: dark) { :root { "
    + " ".join(f"--c{i}: {c};" for i, c in enumerate(_DARK))
    + " } }\n"
    + "".join(f".c{i} {{ --c: var(--c{i}); }}\n" for i in range(NUM_COLOURS))
    + """svg.drawing { width: min(100%, 46em); height: auto; display: block; }
svg.drawing text { font: 11px system-ui, sans-serif; fill: var(--soft, #595959); }
svg.drawing .axis { stroke: var(--line, #bbb); fill: none; } svg.drawing .end { text-anchor: end; }
svg.drawing .middle { text-anchor: middle; } svg.drawing .gap { fill: var(--line, #bbb);
  fill-opacity: .3; } svg.drawing .divider { stroke: var(--soft, #595959); stroke-dasharray: 2 3; }
svg.drawing .mean { stroke: var(--c); fill: none; stroke-width: 1.8; }
svg.drawing .band { fill: var(--c); fill-opacity: .2; } svg.drawing .dot { fill: var(--c); }
svg.drawing .truth { stroke: var(--c); fill: none; stroke-width: 1.3; stroke-dasharray: 1.5 3; }
svg.drawing .rug { stroke: var(--c); }
svg.tiles { width: min(100%, 38em); height: auto; display: block; }
svg.tiles rect { fill: var(--c0); } svg.tiles rect.none { fill: var(--line, #bbb);
  fill-opacity: .25; } svg.tiles text { font: 9px system-ui, sans-serif; text-anchor: middle;
  fill: var(--ink, #1c1c1c); } svg.tiles text.small { font-size: 8px; }
ul.legend { list-style: none; padding: 0; margin: .3em 0 0; display: flex; flex-wrap: wrap;
  gap: .1em 1.2em; font-size: .9em; }
ul.legend svg { width: 1.8em; height: .8em; margin-right: .4em; vertical-align: baseline; }
.neutral { --c: var(--soft, #595959); }
ul.legend .band { fill: var(--c); fill-opacity: .3; } ul.legend .mean { stroke: var(--c);
  stroke-width: 2; } ul.legend .dot { fill: var(--c); } ul.legend .truth { stroke: var(--c, #777);
  stroke-dasharray: 1.5 3; stroke-width: 1.5; } ul.legend .gap { fill: var(--line, #bbb);
  fill-opacity: .5; }
ul.legend .divider { stroke: var(--soft, #595959); stroke-width: 2; stroke-dasharray: 2 3; }
figure { margin: 1em 0; } figcaption { font-weight: 600; margin: 0 0 .4em; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26em), 1fr));
  gap: 0 2em; }
"""
)

_TILES = """
AK .  .  .  .  .  .  .  .  .  ME
.  .  .  .  .  .  .  .  .  VT NH
WA ID MT ND MN IL WI MI NY RI MA
OR NV WY SD IA IN OH PA NJ CT .
CA UT CO NE MO KY WV VA MD DE .
.  AZ NM KS AR TN NC SC DC .  .
.  .  .  OK LA MS AL GA .  .  .
HI .  .  TX .  .  .  .  FL .  .
"""
US_TILES = {
    state: (row, column)
    for row, line in enumerate(_TILES.split("\n")[1:-1])
    for column, state in enumerate(line.split())
    if state != "."
}
"""Where each of the United States lies, about: row and column of a square."""


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One category in a figure.

    Attributes
    ----------
    name : str
    colour : int
        The category's number.
    x, mean : arrays, ``(n,)``
        A nan breaks the line.
    lower, upper : arrays, ``(n,)``, optional
        Of a band.
    points : pair of arrays, optional
        Where, and what was observed.
    truth : array, ``(n,)``, optional
        Where it is known: dotted.
    rug : array, optional
        Where it was seen: ticks below the axis.
    """

    name: str
    colour: int
    x: FloatArray
    mean: FloatArray
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    points: tuple[FloatArray, FloatArray] | None = None
    truth: FloatArray | None = None
    rug: FloatArray | None = None


_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 480.0, 230.0, 42.0, 10.0, 8.0, 36.0
_RUG = 6.0


def line_chart(
    lines: Sequence[Line],
    *,
    label: str,
    x_label: str,
    y_label: str = "probability",
    caption: str = "",
    band: str = "",
    points: str = "observed share",
    gaps: Sequence[tuple[float, float]] = (),
    divider: float | None = None,
    tell: Callable[[float], str] | None = None,
    ticks: Sequence[tuple[float, str]] | None = None,
) -> str:
    """A figure of lines over one axis, with a legend below.

    Parameters
    ----------
    lines : sequence of Line
    label : str
        What the figure shows, for those who do not see it.
    x_label, y_label, caption : str
    band, points : str
        What the bands and the points are, in the legend.
    gaps : pairs of float
        Stretches without data, shaded.
    divider : float, optional
        Where a dotted line stands: what is to the right of it lies ahead.
    tell : function, optional
        What to write at a place of the lower axis: dates.
    ticks : pairs of place and text, optional
        Of the lower axis, where round numbers are not what is wanted: `date_ticks`.
    """
    xs = np.concatenate([line.x for line in lines])
    low, high = float(xs.min()), float(xs.max())
    high = high if high > low else low + 1.0
    tops = [_largest(line) for line in lines]
    top = 1.06 * max(max(tops), 1e-9)
    rug = _RUG * sum(line.rug is not None for line in lines)
    height = _HEIGHT + rug
    right, floor = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def at(x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
        across = _LEFT + 6.0 + (np.asarray(x) - low) / (high - low) * (right - _LEFT - 12.0)
        return across, floor - np.asarray(y) / top * (floor - _TOP)

    parts = []
    for start, end in gaps:
        (x1, x2), _ = at(np.clip([start, end], low, high), [0.0, 0.0])
        parts.append(
            f'<rect class="gap" x="{x1:.1f}" y="{_TOP}" width="{max(x2 - x1, 1.0):.1f}"'
            f' height="{floor - _TOP}"/>'
        )
    for tick in _ticks(0.0, top, 5):
        _, y = at(low, tick)
        parts.append(f'<path class="axis" d="M{_LEFT} {y:.1f}h{right - _LEFT}" opacity=".45"/>')
        parts.append(f'<text class="end" x="{_LEFT - 5}" y="{y + 4:.1f}">{tick:.4g}</text>')
    if ticks is None:
        whole = bool((xs == np.round(xs)).all())
        round_ones = _ticks(low, high, 7 if tell is None else 4, whole=whole)
        ticks = [(tick, (tell or _number)(tick)) for tick in round_ones]
    for tick, words in ticks:
        x, _ = at(tick, 0.0)
        parts.append(f'<path class="axis" d="M{x:.1f} {floor}v4"/>')
        parts.append(
            f'<text class="middle" x="{x:.1f}" y="{floor + rug + 15:.0f}">'
            f"{html.escape(words)}</text>"
        )
    parts.append(f'<path class="axis" d="M{_LEFT} {floor}H{right}"/>')
    if divider is not None:
        x, _ = at(divider, 0.0)
        parts.append(f'<path class="divider" d="M{x:.1f} {_TOP}V{floor}"/>')
    level = floor + 5.0
    for line in lines:
        parts.append(f'<g class="c{line.colour % NUM_COLOURS}">{_line_parts(line, at)}')
        if line.rug is not None:
            marks = "".join(f"M{x:.1f} {level}v4" for x in at(line.rug, 0.0 * line.rug)[0])
            parts.append(f'<path class="rug" d="{marks}"/>')
            level += _RUG
        parts.append("</g>")
    parts.append(
        f'<text class="middle" x="{(_LEFT + right) / 2}" y="{height - 5:.0f}">'
        f"{html.escape(x_label)}</text>"
    )
    svg = (
        f'<svg class="drawing" role="img" aria-label="{html.escape(label)}"'
        f' viewBox="0 0 {_WIDTH:.0f} {height:.0f}">{"".join(parts)}</svg>'
    )
    keys = [
        _key(f"c{line.colour % NUM_COLOURS}", _swatch("mean", line.colour), line.name)
        for line in lines
    ]
    if band and any(line.lower is not None for line in lines):
        keys.append(_key("neutral", '<rect class="band" width="30" height="14"/>', band))
    if any(line.points is not None for line in lines):
        keys.append(_key("neutral", '<circle class="dot" cx="15" cy="7" r="4"/>', points))
    if any(line.truth is not None for line in lines):
        keys.append(_key("neutral", '<path class="truth" d="M0 7H30"/>', "the truth"))
    if any(line.rug is not None for line in lines):
        keys.append(_key("neutral", "<path class='mean' d='M10 2v10M18 2v10'/>", "seen here"))
    if gaps:
        keys.append(_key("", '<rect class="gap" width="30" height="14"/>', "no data"))
    if divider is not None:
        keys.append(_key("", '<path class="divider" d="M15 0V14"/>', "the last that was seen"))
    return _figure(svg, f"{caption}: {y_label}" if caption else y_label, keys)


def tile_map(
    values: Mapping[str, tuple[float, float, float]],
    *,
    label: str,
    caption: str = "",
    top: float | None = None,
) -> str:
    """One square for each of the United States: the deeper its colour, the larger its number.

    Parameters
    ----------
    values : mapping from postal code to (mean, lower, upper)
        Under the mean stands the half width of the interval.
    label, caption : str
    top : float, optional
        The number of the deepest colour; by default the largest.
    """
    top = max(mean for mean, _, _ in values.values()) if top is None else top
    parts = []
    for state, (row, column) in US_TILES.items():
        x, y, found = 34 * column, 34 * row, values.get(state)
        if found is None:
            parts.append(f'<rect class="none" x="{x}" y="{y}" width="32" height="32"/>')
            parts.append(f'<text x="{x + 16}" y="{y + 20}">{state}</text>')
            continue
        mean, lower, upper = found
        depth = 0.06 + 0.49 * min(1.0, mean / max(top, 1e-300))
        parts.append(
            f'<g><title>{state}: {mean:.3f} [{lower:.3f}, {upper:.3f}]</title><rect x="{x}"'
            f' y="{y}" width="32" height="32" style="fill-opacity:{depth:.2f}"/>'
            f'<text x="{x + 16}" y="{y + 9}">{state}</text>'
            f'<text x="{x + 16}" y="{y + 19}">{_short(mean)}</text>'
            f'<text class="small" x="{x + 16}" y="{y + 28}">±{_short((upper - lower) / 2)}</text>'
            "</g>"
        )
    width, height = 34 * 11 - 2, 34 * 8 - 2
    svg = (
        f'<svg class="tiles" role="img" aria-label="{html.escape(label)}"'
        f' viewBox="0 0 {width} {height}">{"".join(parts)}</svg>'
    )
    return _figure(svg, caption, [])


def panels(figures: Sequence[str]) -> str:
    """Several figures, beside each other where the screen is wide."""
    return figures[0] if len(figures) == 1 else f'<div class="panels">{"".join(figures)}</div>'


def _figure(svg: str, caption: str, keys: Sequence[str]) -> str:
    legend = f'<ul class="legend">{"".join(keys)}</ul>' if keys else ""
    return f"<figure><figcaption>{html.escape(caption)}</figcaption>{svg}{legend}</figure>"


def _key(colour: str, swatch: str, name: str) -> str:
    return (
        f'<li class="{colour}"><svg viewBox="0 0 30 14" aria-hidden="true">{swatch}</svg>'
        f"{html.escape(name)}</li>"
    )


def _swatch(kind: str, colour: int) -> str:
    return f'<path class="{kind}" d="M0 7H30"{_dash(colour)}/>'


def _dash(colour: int) -> str:
    dash = _DASHES[colour // NUM_COLOURS % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _line_parts(line: Line, at: Callable[..., tuple[FloatArray, FloatArray]]) -> str:
    parts = []
    for piece in _pieces(line.mean):
        x = line.x[piece]
        if line.lower is not None and line.upper is not None:
            there = _path(*at(x, line.upper[piece]))
            back = _path(*(way[::-1] for way in at(x, line.lower[piece])))
            parts.append(f'<path class="band" d="{there}L{back[1:]}Z"/>')
    for piece in _pieces(line.mean):
        d = _path(*at(line.x[piece], line.mean[piece]))
        parts.append(f'<path class="mean" d="{d}"{_dash(line.colour)}/>')
    if line.truth is not None:
        for piece in _pieces(line.truth):
            d = _path(*at(line.x[piece], line.truth[piece]))
            parts.append(f'<path class="truth" d="{d}"/>')
    if line.points is not None:
        seen = zip(*at(*line.points), strict=True)
        parts += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="1.8"/>' for x, y in seen]
    return "".join(parts)


def _pieces(values: FloatArray) -> list[slice]:
    """Stretches without nan."""
    there = np.concatenate([[False], ~np.isnan(values), [False]])
    edges = np.flatnonzero(np.diff(there.astype(np.int8)))
    return [slice(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def _path(x: FloatArray, y: FloatArray) -> str:
    places = [f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True)]
    if len(places) == 1:
        places *= 2
    return "M" + "L".join(places)


def _largest(line: Line) -> float:
    found = [line.mean, line.upper, line.truth, None if line.points is None else line.points[1]]
    values = [float(np.nanmax(v)) for v in found if v is not None and np.isfinite(v).any()]
    return max(values, default=0.0)


def _ticks(low: float, high: float, most: int, whole: bool = False) -> list[float]:
    """Round numbers from `low` to `high`, about so many at most."""
    raw = (high - low) / most
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * m for m in (1.0, 2.0, 5.0, 10.0) if size * m >= raw)
    step = max(step, 1.0) if whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


_DATE_STEPS = (
    ("m", 1), ("m", 5), ("m", 15), ("h", 1), ("h", 3), ("h", 6), ("h", 12), ("D", 1), ("D", 2),
    ("D", 7), ("D", 14), ("M", 1), ("M", 3), ("M", 6),
)  # fmt: skip


def date_ticks(low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
    """Where to write which dates on an axis of years: at most so many, or whole years.

    >>> [date for _, date in date_ticks(2019.9, 2020.3)]
    ['2019-12', '2020-01', '2020-02', '2020-03', '2020-04']
    >>> [date for _, date in date_ticks(1985.5, 2010.5)]
    ['1990', '1995', '2000', '2005', '2010']
    """
    first, last = as_dates(np.array([low, high]))
    for unit, count in _DATE_STEPS:
        start, stop = (
            date.astype(f"datetime64[{unit}]").astype(np.int64) for date in (first, last)
        )
        if (stop - start) // count > most:
            continue
        steps = np.arange(-(-start // count) * count, stop + 1, count)
        dates = steps.astype(f"datetime64[{unit}]")
        places = as_years(dates)
        ticks = [
            (float(x), date_text(date.astype("datetime64[m]") if unit == "h" else date))
            for x, date in zip(places, dates, strict=True)
            if low <= x <= high
        ]
        if len(ticks) > 1:
            return [(x, text.replace("T", " ")) for x, text in ticks]
    return [(year, f"{year:.0f}") for year in _ticks(low, high, most + 2, whole=True)]


def _number(x: float) -> str:
    return f"{x:.0f}" if x == round(x) else f"{x:.4g}"


def _short(x: float) -> str:
    """Such as .027: without the zero that every probability begins with."""
    text = f"{x:.3f}" if x < 0.1 else f"{x:.2f}"
    return text.removeprefix("0")
