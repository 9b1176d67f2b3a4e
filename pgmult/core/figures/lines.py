"""Lines over one axis, with bands, points and the truth: probabilities along years or steps."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pgmult.core.figures import base
from pgmult.core.figures.base import Axes, Figure, TickText, key, stroke
from pgmult.core.markup import Markup, tag
from pgmult.core.tables import as_dates, as_years, date_text
from pgmult.core.typing import ArrayLike, FloatArray

Place = Callable[[ArrayLike], FloatArray]


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
    bands : sequence of pairs of arrays, ``(n,)``
        Lower and upper ends; the widest first.
    points : pair of arrays, optional
        Where, and what was observed.
    truth : array, ``(n,)``, optional
        Where it is known: dotted.
    rug : array, optional
        Where it was seen: ticks below the axis.
    spread : pair of arrays, optional
        Lower and upper ends of intervals of the points.
    """

    name: str
    colour: int
    x: FloatArray
    mean: FloatArray
    bands: Sequence[tuple[FloatArray, FloatArray]] = ()
    points: tuple[FloatArray, FloatArray] | None = None
    truth: FloatArray | None = None
    rug: FloatArray | None = None
    spread: tuple[FloatArray, FloatArray] | None = None

    @property
    def heights(self) -> Iterator[FloatArray]:
        """All finite numbers that are drawn."""
        ends = (end for band in self.bands for end in band)
        drawn = [self.mean, *ends, self.truth, *(self.points or ())[1:], *(self.spread or ())]
        return (values[np.isfinite(values)] for values in drawn if values is not None)


_SIZE = (480.0, 230.0)
_LEFT, _RIGHT, _TOP, _BOTTOM = 42.0, 10.0, 8.0, 36.0
_RUG, _LETTER = 6.0, 6.0  # height of a row of ticks; width of a letter, about
_LARGE = 1e4  # numbers that are written out, and not with an exponent


@dataclass(frozen=True, slots=True, eq=False)
class Lines(Figure):
    """A figure of lines.

    Attributes
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
    tick_text : function, optional
        What to write at a place of the lower axis: dates.
    ticks : pairs of place and text, optional
        Of the lower axis, where round numbers are not what is wanted: `date_ticks`.
    from_zero : bool
        Whether heights begin at 0, as those of probabilities do.
    size : pair of float
        Width and height on a page, where letters keep their size.
    has_legend : bool
        Whether lines and marks are explained; lines without a name are not, anyway.
    """

    lines: Sequence[Line]
    label: str
    x_label: str
    y_label: str = "probability"
    caption: str = ""
    band: str = ""
    points: str = "observed share"
    gaps: Sequence[tuple[float, float]] = ()
    divider: float | None = None
    tick_text: TickText | None = None
    ticks: Sequence[tuple[float, str]] | None = None
    from_zero: bool = True
    size: tuple[float, float] = _SIZE
    has_legend: bool = True

    def svg(self) -> Markup:
        """The figure as SVG."""
        low, high = self._span()
        bottom, top = self._heights()
        rug = _RUG * sum(line.rug is not None for line in self.lines)
        width, height = self.size
        right, floor = width - _RIGHT, height - _BOTTOM
        heights = base.round_ticks(bottom, top, max(3, round(height / 46)))
        written = [f"{y:,.0f}" if abs(y) >= _LARGE else f"{y:.4g}" for y in heights]
        left = max(_LEFT, _LETTER * max(map(len, written), default=0) + 8.0)

        def across(x: ArrayLike) -> FloatArray:
            return left + 6.0 + (np.asarray(x) - low) / (high - low) * (right - left - 12.0)

        def up(y: ArrayLike) -> FloatArray:
            return floor - (np.asarray(y) - bottom) / (top - bottom) * (floor - _TOP)

        parts = []
        for gap in self.gaps:
            x1, x2 = across(np.clip(gap, low, high)).tolist()
            size = {"width": max(x2 - x1, 1.0), "height": floor - _TOP}
            parts.append(tag("rect", class_="gap", x=x1, y=_TOP, **size))
        for y, mark in zip(up(heights).tolist(), written, strict=True):
            parts.append(stroke("axis", f"M{left:.0f} {y:.1f}h{right - left:.0f}", opacity=".45"))
            parts.append(base.words(mark, left - 5.0, y + 4.0, "end"))
        ticks = [(float(across(tick)), text) for tick, text in self._tick_texts(low, high)]
        parts += base.lower_axis(ticks, left, right, floor, self.x_label, rug)
        if self.divider is not None:
            x = float(across(self.divider))
            parts.append(stroke("divider", f"M{x:.1f} {_TOP:.0f}V{floor:.0f}"))
        level = floor + 5.0
        for line in self.lines:
            strokes = _line_parts(line, across, up)
            if line.rug is not None:
                marks = "".join(f"M{x:.1f} {level:.0f}v4" for x in across(line.rug))
                strokes.append(stroke("rug", marks))
                level += _RUG
            parts.append(tag("g", strokes, class_=base.class_of(line.colour)))
        caption = f"{self.caption}: {self.y_label}" if self.caption else self.y_label
        room, is_fixed = (width, height + rug), self.size != _SIZE
        return base.framed(parts, self.label, room, caption, self.keys(), is_fixed=is_fixed)

    def keys(self) -> list[Markup]:
        """What stands in the legend."""
        if not self.has_legend:
            return []

        def some(part: str) -> bool:
            return any(getattr(line, part) is not None for line in self.lines)

        block, dot = {"width": 30, "height": 14}, {"cx": 15, "cy": 7, "r": 4}
        has_bands = bool(self.band) and any(line.bands for line in self.lines)
        marks = [
            (has_bands, tag("rect", class_="band", **block), self.band),
            (some("points"), tag("circle", class_="dot", **dot), self.points),
            (some("truth"), stroke("truth", "M0 7H30"), "the truth"),
            (some("rug"), stroke("mean", "M10 2v10M18 2v10"), "seen here"),
            (bool(self.gaps), tag("rect", class_="gap", **block), "no data"),
            (self.divider is not None, stroke("divider", "M15 0V14"), "the last that was seen"),
        ]
        named = [line for line in self.lines if line.name]
        keys = [key(_mean_stroke("M0 7H30", n.colour), n.name, n.colour) for n in named]
        return keys + [key(mark, name) for is_drawn, mark, name in marks if is_drawn]

    def plot(self, axes: Axes | None = None) -> Axes:
        """The figure with matplotlib."""
        axes = base.axes_or_new(axes, 7.0, 3.2)
        for i, gap in enumerate(self.gaps):
            axes.axvspan(*gap, color="0.5", alpha=0.15, lw=0, label=None if i else "no data")
        level = 0
        for line in self.lines:
            colour, dashes = base.style_of(line.colour)
            for band in line.bands:
                axes.fill_between(line.x, *band, color=colour, alpha=0.2, lw=0)
            axes.plot(line.x, line.mean, ls=dashes, color=colour, lw=1.3, label=line.name)
            if line.truth is not None:
                axes.plot(line.x, line.truth, ":", color=colour, lw=1.2)
            if line.points is not None:
                axes.plot(*line.points, ".", color=colour, ms=4, alpha=0.7)
                if line.spread is not None:
                    axes.vlines(line.points[0], *line.spread, color=colour, lw=0.8)
            if line.rug is not None:
                level += 1
                below, depths = axes.get_xaxis_transform(), np.full(len(line.rug), -0.025 * level)
                how = {"color": colour, "ms": 4, "transform": below, "clip_on": False}
                axes.plot(line.rug, depths, "|", **how)  # type: ignore[arg-type]
        if level:
            axes.tick_params(axis="x", pad=3 + 3 * level)
        if self.divider is not None:
            axes.axvline(self.divider, color="0.4", lw=0.8, ls=":")
        if self.ticks is not None:
            axes.set_xticks(*zip(*self.ticks, strict=True))
        else:
            base.step_ticks(axes, self.tick_text, _are_whole(self.lines))
        if self.from_zero:
            axes.set_ylim(bottom=0.0)
        y_label = f"{self.y_label}, {self.band}" if self.band else self.y_label
        axes.set(xlabel=self.x_label, ylabel=y_label)
        has_legend = self.has_legend and any(line.name for line in self.lines)
        return base.finished(axes, self.caption, has_legend)

    def _span(self) -> tuple[float, float]:
        xs = np.concatenate([line.x for line in self.lines])
        low, high = float(xs.min()), float(xs.max())
        return low, high if high > low else low + 1.0

    def _heights(self) -> tuple[float, float]:
        values = np.concatenate([heights for line in self.lines for heights in line.heights])
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        if self.from_zero:
            return 0.0, 1.06 * max(high, 1e-9)
        spread = high - low
        return (low - 0.03 * spread, high + 0.03 * spread) if spread > 0.0 else (low - 1, low + 1)

    def _tick_texts(self, low: float, high: float) -> Sequence[tuple[float, str]]:
        if self.ticks:  # as many as have room
            places, texts = zip(*self.ticks, strict=True)
            apart = min(np.diff(places), default=high - low) / (high - low)
            room = max(1.0, (self.size[0] - _LEFT - _RIGHT) * float(apart))
            return self.ticks[:: math.ceil(_LETTER * (max(map(len, texts)) + 1) / room)]
        tick_text = self.tick_text or _number
        most = base.MOST_TICKS[self.tick_text is None] * self.size[0] / _SIZE[0]
        at = base.round_ticks(low, high, max(3, round(most)), whole=_are_whole(self.lines))
        return [(x, tick_text(x)) for x in at]


def _line_parts(line: Line, across: Place, up: Place) -> list[Markup]:
    parts, x = [], across(line.x)
    for lower, upper in line.bands:
        for piece in _pieces(line.mean):
            edge = _path(x[piece], up(upper[piece]))
            back = _path(x[piece][::-1], up(lower[piece])[::-1])
            parts.append(stroke("band", f"{edge}L{back[1:]}Z"))
    for piece in _pieces(line.mean):
        parts.append(_mean_stroke(_path(x[piece], up(line.mean[piece])), line.colour))
    if line.truth is not None:
        pieces = _pieces(line.truth)
        parts += [stroke("truth", _path(x[piece], up(line.truth[piece]))) for piece in pieces]
    if line.points is not None:
        places = across(line.points[0]).tolist()
        for cx, cy in zip(places, up(line.points[1]).tolist(), strict=True):
            parts.append(tag("circle", class_="dot", cx=cx, cy=cy, r=1.8))
        if line.spread is not None:
            for cx, low, high in zip(places, *map(up, line.spread), strict=True):
                parts.append(stroke("rug", f"M{cx:.1f} {low:.1f}V{high:.1f}"))
    return parts


def _mean_stroke(d: str, colour: int) -> Markup:
    return stroke("mean", d, stroke_dasharray=base.dashes_of(colour))


def _pieces(values: FloatArray) -> list[slice]:
    """Stretches without nan."""
    is_drawn = np.concatenate([[False], ~np.isnan(values), [False]])
    edges = np.flatnonzero(np.diff(is_drawn.astype(np.int8)))
    return [slice(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def _path(x: FloatArray, y: FloatArray) -> str:
    places = [f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True)]
    if len(places) == 1:
        places *= 2
    return "M" + "L".join(places)


def _are_whole(lines: Sequence[Line]) -> bool:
    return all(bool((line.x == np.round(line.x)).all()) for line in lines)


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
        kind = f"datetime64[{unit}]"
        start, stop = (date.astype(kind).astype(np.int64) for date in (first, last))
        if (stop - start) // count > most:
            continue
        dates = np.arange(-(-start // count) * count, stop + 1, count).astype(kind)
        shown = dates.astype("datetime64[m]") if unit == "h" else dates
        places = zip(as_years(dates).tolist(), map(date_text, shown), strict=True)
        ticks = [(x, text) for x, text in places if low <= x <= high]
        if len(ticks) > 1:
            return [(x, text.replace("T", " ")) for x, text in ticks]
    return [(year, f"{year:.0f}") for year in base.round_ticks(low, high, most + 2, whole=True)]


def _number(x: float) -> str:
    return f"{x:.0f}" if x == round(x) else f"{x:.4g}"
