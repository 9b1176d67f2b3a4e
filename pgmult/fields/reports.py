"""Report on a run of a field: the leading categories, how they change, and with what certainty.

`report` computes everything once; `pgmult.core.reports` shows it on a terminal and on a page.
Figures and changes run along the first input column that does not name places; the others are taken
as the place.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pgmult.core.arguments import as_kind, as_mapping, as_path
from pgmult.core.comparison import Comparison, as_comparison
from pgmult.core.figures.lines import Line, Lines, date_ticks
from pgmult.core.figures.tiles import US_TILES, Tiles
from pgmult.core.labels import as_looked_at
from pgmult.core.markup import Leading
from pgmult.core.reports import Interval, Report, Section, check_section
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.core.validate import as_positive_int, as_simplex
from pgmult.fields.checks import check
from pgmult.fields.covariances import Covariance
from pgmult.fields.data import CountField
from pgmult.fields.predictions import FieldPredictions, own_data, predict
from pgmult.fields.rivals import axis_and_places, compare, plain
from pgmult.sampling.convergence import chains_in_words
from pgmult.sampling.posterior import Posterior

_MOST_LINES, _MOST_PANELS, _MOST_MAPS, _MOST_ROWS = 6, 4, 3, 60
_FEW = 5  # places named in a sentence
_CELLS = 2**25  # draws of probabilities held at once


def report(
    run: Posterior,
    page: str | os.PathLike[str] | None = None,
    *,
    data: CountField | None = None,
    title: str = "A field of counts",
    facts: Mapping[str, str] | None = None,
    held_out: ArrayLike | None = None,
    comparison: Comparison | bool = True,
    truth: ArrayLike | None = None,
    tiles: Mapping[str, str] | None = None,
    probability: float = 0.9,
    max_draws: int = 400,
    random_seed: int = 0,
) -> Report:
    """Summarise a run of a field in sentences, tables and figures.

    Parameters
    ----------
    run : Posterior
        That kept ``psi``, or ``pi`` and, with new inputs, ``pi_new``.
    page : path, optional
        Where to write it as an HTML page.
    data : CountField, optional
        The data of the run, needed only if it was saved without them.
    title : str
    facts : mapping from str to str, optional
    held_out : int array, ``(num_rows, num_categories)``, optional
        Counts of rows that were not in the fit: these rows are empty in the data, and all others
        are zero here.
    comparison : Comparison or bool
        Comparison with simple models: the result of `compare`, True to compute it, False to leave
        it out.
    truth : array, ``(num_rows + num_new, num_categories)``, optional
        The probabilities, where they are known.
    tiles : mapping from a place's name to a postal code of the United States, optional
        Needed for places that are not named by their code. A map is drawn if all places are states.
    probability : float
        Of the intervals.
    max_draws : int
    random_seed : int
        Of what is simulated to check intervals.

    Raises
    ------
    ValueError
        If the data are not those of the run, or a variable was not kept.
    """
    as_kind(title, "title", str)
    place = None if page is None else as_path(page, "page")
    facts = as_mapping(facts, "facts")
    comparison = as_comparison(comparison)
    data = own_data(run, data)
    budget = max(20, _CELLS // max(1, (data.num_rows + data.num_new) * data.num_categories))
    used = min(as_positive_int(max_draws, "max_draws"), budget)
    every = predict(run, data=data, max_draws=used, probability=probability)
    pi = every.draws
    known = None if truth is None else as_simplex(truth, "truth")
    if known is not None and known.shape != pi.shape[1:]:
        raise ValueError(f"truth must have shape {pi.shape[1:]}, got {known.shape}")
    grid = _Grid.of(data, every, known)
    sections = [
        grid.changes(),
        *grid.figures(),
        *grid.maps(as_mapping(tiles, "tiles")),
        grid.leaders(),
        grid.ahead(),
    ]
    hidden = None if held_out is None else data.held_out(held_out)
    if comparison is True:
        told = hidden if hidden is not None and hidden.any() else None
        comparison = compare(run, data=data, held_out=told)
    verdict = [] if comparison is False else [*comparison.sentences]
    moved = [Leading(sentence, "What changed") for sentence in grid.moved()]
    verdict += [*moved, grid.lead(), *grid.unseen()]
    if hidden is not None:
        sentences = _held_out(every.rows(np.arange(data.num_rows)), hidden, random_seed)
        verdict += sentences[:1]
        sections.append(Section("Counts that were held out", sentences=sentences))
    if comparison is not False:
        sections.append(comparison.section())
    fit = check(run, data=data, max_draws=used, random_seed=random_seed)
    verdict.append(fit.verdict)
    sections.append(check_section(fit))
    if known is not None:
        verdict.append(_against_truth(grid, known))
    sections.append(_learned(run, data, probability))
    chains, *details = chains_in_words(run, _parts(run))
    sections.append(Section("Diagnostics", sentences=[chains, *details]))
    verdict.append(chains)
    return Report(title, verdict, sections, {"data": data_in_words(data), **facts}).save(place)


def hyperparameter_names(covariance: Covariance, data: CountField) -> list[str]:
    """The covariance's free parameters in words, by the columns that they act on, with units."""
    width = data.inputs.shape[1]
    columns = (
        [f"input {i + 1}" for i in range(width)]
        if data.input_names is None
        else data.input_names.tolist()
    )
    told = {} if data.columns is None else data.columns
    names = []
    for leaf in covariance.leaves():
        acts = range(width) if leaf.active is None else leaf.active
        own, of = type(leaf).__name__, _whole_columns([columns[i] for i in acts])
        for name in leaf.param_names:
            words = {"var": "variance", "length_scale": "length scale"}.get(name, name)
            unit = ""
            if name == "length_scale":
                dates = of in told and told[of].dtype.kind == "M"
                unit = ", in km" if own == "GreatCircle" else ", in years" if dates else ""
            names.append(f"{words}{f' of {of}' if of else ''}{unit} ({own})")
    return names


def _whole_columns(names: list[str]) -> str:
    """Coordinates of a place, "state 1" and "state 2", are the state's."""
    whole = [
        name.rpartition(" ")[0] if name.endswith((" 1", " 2", " 3")) else name for name in names
    ]
    return ", ".join(dict.fromkeys(whole))


# --------------------------------------------------------------------------- rows by axis and place


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """Probabilities of rows, by where they stand along an axis and at which place."""

    data: CountField
    axis: str
    x: FloatArray
    told: NDArray[Any]
    place: IntArray
    places: list[str]
    pi: FloatArray
    mean: FloatArray
    lower: FloatArray
    upper: FloatArray
    names: list[str]
    probability: float
    truth: FloatArray | None

    @classmethod
    def of(cls, data: CountField, found: FieldPredictions, truth: FloatArray | None) -> "_Grid":
        pi = found.draws
        columns = found.columns_of("row")
        axis, x, places, place = axis_and_places(data, columns, pi.shape[1])
        told = np.asarray(columns.get(axis, np.zeros(pi.shape[1])))
        lower, upper = found.interval()
        names = np.arange(pi.shape[2]) if data.categories is None else data.categories
        return cls(
            data, axis, x, told, place, places, pi, found.mean, lower, upper,
            [str(n) for n in names], found.probability, truth,
        )  # fmt: skip

    @property
    def percent(self) -> str:
        return f"{round(100 * self.probability)} % interval"

    def _common(self) -> tuple[float, float]:
        """First and last of the axis among the values at which most places stand."""
        values, at = np.unique(self.x, return_inverse=True)
        pairs = np.unique(np.stack([at, self.place]), axis=1)
        most = np.bincount(pairs[0], minlength=len(values))
        whole = np.ones(len(values), dtype=np.bool_)  # all categories were counted
        whole[at[~self.counted.all(axis=1)]] = False
        kept = whole if np.count_nonzero(whole) > 1 else np.ones_like(whole)
        shared = values[kept & (most == most[kept].max())]
        return float(shared[0]), float(shared[-1])

    @property
    def counted(self) -> BoolArray:
        """Of each row the categories that were counted, all of them at new inputs."""
        found = np.ones(self.mean.shape, dtype=np.bool_)
        if self.data.counted is not None:
            found[: self.data.num_rows] = self.data.counted
        return found

    def _rows_at(self, x: float) -> dict[int, int]:
        """The row of each place there."""
        rows = np.flatnonzero(self.x == x)
        return {int(self.place[r]): int(r) for r in rows[::-1]}

    def _ends(self) -> tuple[list[int], list[int]]:
        """Rows of the places that stand at both ends of the axis."""
        start, end = (self._rows_at(x) for x in self._common())
        both = sorted(set(start) & set(end)) if self._common()[0] < self._common()[1] else []
        return [start[p] for p in both], [end[p] for p in both]

    def _changes(self) -> list[tuple[int, FloatArray, FloatArray, FloatArray]]:
        """Of each category its shares at either end and their difference, draws over places."""
        first, last = self._ends()
        if not len(first):
            return []
        start, end = (self.pi[:, rows].mean(axis=1) for rows in (first, last))
        return [
            (k, start[:, k], end[:, k], end[:, k] - start[:, k]) for k in range(len(self.names))
        ]

    def _interval(self, draws: FloatArray, form: str = ".2f") -> Interval:
        tail = 0.5 * (1.0 - self.probability)
        lower, upper = np.quantile(draws, [tail, 1.0 - tail])
        return Interval(float(draws.mean()), float(lower), float(upper), form)

    def _span(self) -> tuple[str, str]:
        start, end = (plain(self.told[np.flatnonzero(self.x == x)[0]]) for x in self._common())
        return start, end

    def moved(self) -> list[str]:
        """What rose and what fell, in a sentence each."""
        changes = self._changes()
        if not changes:
            return []
        start, end = self._span()
        num_places = len(self._ends()[0])
        over = f" (mean over {num_places} places)" if num_places > 1 else ""
        ordered = sorted(changes, key=lambda change: float(change[3].mean()))
        sentences = []
        for (k, a, b, change), word, sign in (
            (ordered[-1], "rose", 1.0),
            (ordered[0], "fell", -1.0),
        ):
            sure = float((sign * change > 0.0).mean())
            if sure < 0.9:
                continue
            sentences.append(
                f"From {self.axis} {start} to {end}{over} {self.names[k]} {word} most: from"
                f" {a.mean():.2f} to {b.mean():.2f}, a change of"
                f" {self._interval(change, '+.2f')} ({self.percent})."
            )
        return sentences or [
            f"From {self.axis} {start} to {end}{over} no category rose or fell for sure."
        ]

    def lead(self) -> str:
        """How many places have a clear first."""
        rows = self._last_rows()
        first = np.array(
            [np.bincount(self.pi[:, r].argmax(axis=1), minlength=len(self.names)) for r in rows]
        ) / len(self.pi)
        best, sure = first.argmax(axis=1), first.max(axis=1)
        end = f" at {self.axis} {self._span()[1]}" if self.axis else ""
        if len(rows) == 1:
            who, cell = self.names[best[0]], self._cell(int(rows[0]), int(best[0]))
            return f"Most probable{end}: {who}, {cell} ({self.percent}); {_how_sure(sure[0])}."
        leader, size = np.bincount(best).argmax(), len(rows)
        number, clear = np.count_nonzero(best == leader), np.count_nonzero(sure > 0.95)
        where = f"all {size} places" if number == size else f"{number} of {size} places"
        at = "nowhere" if clear == 0 else "everywhere" if clear == size else f"at {clear} of {size}"
        is_first = "is the first" if at == "nowhere" else "the first is"
        return (
            f"Most probable{end}: {self.names[leader]} at {where};"
            f" {at} {is_first} more than 95 % sure."
        )

    def unseen(self) -> list[str]:
        """Places of rows without a count."""
        n = self.data.num_rows
        totals = np.bincount(self.place[:n], self.data.totals, minlength=len(self.places))
        there = np.bincount(self.place[:n], minlength=len(self.places)) > 0
        names = [self.places[p] for p in np.flatnonzero(there & (totals == 0))]
        said = []
        if not self.counted.all():
            some = [self.names[k] for k in np.flatnonzero(~self.counted.all(axis=0))]
            who = ", ".join(some) if len(some) <= _FEW else f"{len(some)} categories"
            said = [
                f"Not everywhere counted: {who}; probabilities there are those of the others, given"
                " that it is one of them."
            ]
        if not names:
            return said
        who = ", ".join(names) if len(names) <= _FEW else f"{len(names)} places"
        no_count = f"No count was seen at {who}: what is said of it comes from other places alone."
        return [*said, no_count]

    def _last_rows(self) -> IntArray:
        return np.array(sorted(self._rows_at(self._common()[1]).values()))

    def changes(self) -> Section:
        changes = sorted(self._changes(), key=lambda change: -float(change[3].mean()))
        if not changes:
            return Section("What changed")
        start, end = self._span()
        rows = [  # five columns fit a narrow page where one of them has an interval
            (
                self.names[k],
                f"{a.mean():.2f}",
                f"{b.mean():.2f}",
                self._interval(d, "+.2f"),
                f"{(d > 0.0).mean():.2f}",
            )
            for k, a, b, d in changes
        ]
        whole = self.counted.all()
        until = "" if whole else f", as far as all categories were counted: from {start} to {end}"
        return Section(
            "What changed",
            f"Mean probability of each category over places at the ends of {self.axis}{until}; and"
            f" its change [{self.percent}].",
            head=("category", start, end, "change", "P(rose)"),
            rows=rows,
            shown=12,
        )

    def leaders(self) -> Section:
        """Who leads at the end of the axis."""
        where = f" at {self.axis} {self._span()[1]}" if self.axis else ""
        rows = self._last_rows()
        by_name = rows[np.argsort(self.place[rows], kind="stable")]
        return self._table(f"The most probable categories{where}", by_name)

    def ahead(self) -> Section:
        """The new inputs."""
        new = np.arange(self.data.num_rows, self.pi.shape[1])[:_MOST_ROWS]
        return self._table("At the new inputs", new, named=True)

    def _table(self, title: str, rows: IntArray, *, named: bool = False) -> Section:
        n, cells = self.data.num_rows, []
        names = self.data.new_names
        for r in rows:
            first = np.bincount(self.pi[:, r].argmax(axis=1), minlength=len(self.names))
            who = self.places[self.place[r]] or "everywhere"
            if named and names is not None:
                who = str(names[r - n])
            for k in np.argsort(-self.mean[r], kind="stable")[:3]:
                cell = self._cell(int(r), int(k))
                truth = () if self.truth is None else (f"{self.truth[r, k]:.2f}",)
                cells.append((who, self.names[k], cell, f"{first[k] / len(self.pi):.2f}", *truth))
        head = ("input" if named else "place", "category", "probability", "P(first)")
        return Section(
            title,
            f"Probability, posterior mean [{self.percent}], and that of being the first.",
            head=head if self.truth is None else (*head, "truth"),
            rows=cells,
            shown=12,
        )

    def _cell(self, row: int, k: int) -> Interval:
        mean, lower, upper = (float(v[row, k]) for v in (self.mean, self.lower, self.upper))
        return Interval(mean, lower, upper)

    def _main(self) -> list[int]:
        """The most frequent categories."""
        order = np.argsort(-self.data.counts.sum(axis=0), kind="stable")
        return [int(k) for k in order[:_MOST_LINES]]

    def figures(self) -> list[Section]:
        """A panel for each of a few places: probabilities along the axis, with observed shares."""
        if not self.axis or len(np.unique(self.x)) < 2:
            return []
        n = self.data.num_rows
        totals = np.bincount(self.place[:n], self.data.totals, minlength=len(self.places))
        chosen = np.sort(np.argsort(-totals, kind="stable")[:_MOST_PANELS])
        which = (
            f"; the {len(chosen)} places with most counts" if len(self.places) > len(chosen) else ""
        )
        what = (
            "all categories" if len(self.names) <= _MOST_LINES else "the most frequent categories"
        )
        return [
            Section(
                f"Probabilities along {self.axis}",
                f"Posterior means of {what}{which}.",
                figures=[self._panel(int(p)) for p in chosen],
                shown=0,
            )
        ]

    def _panel(self, p: int) -> Lines:
        n = self.data.num_rows
        rows = np.flatnonzero(self.place == p)
        rows = rows[np.argsort(self.x[rows], kind="stable")]
        seen = rows[rows < n]
        totals = self.data.totals[seen]
        full, x = seen[totals > 0], self.x[rows]
        step = float(np.median(np.diff(np.unique(self.x)))) if len(np.unique(self.x)) > 1 else 1.0
        gaps = [(self.x[r] - step / 2, self.x[r] + step / 2) for r in seen[totals == 0]]
        gaps += _skipped(self.x[seen], step)
        ahead = rows[(rows >= n) & (self.x[rows] > self.x[:n].max())]
        lines = []
        for number, k in enumerate(self._main()):
            there = np.where(self.counted[:, k], 1.0, np.nan)  # a line has a gap elsewhere
            told = full[self.counted[full, k]]
            lines.append(
                Line(
                    self.names[k],
                    number,
                    x,
                    self.mean[rows, k] * there[rows],
                    [(self.lower[rows, k] * there[rows], self.upper[rows, k] * there[rows])],
                    (self.x[told], self.data.counts[told, k] / self.data.totals[told]),
                    None if self.truth is None else self.truth[rows, k],
                )
            )
        name = self.places[p]
        return Lines(
            lines,
            label=f"probabilities along {self.axis}{f' at {name}' if name else ''}",
            x_label=self.axis,
            caption=name,
            band=self.percent,
            gaps=gaps,
            divider=float(self.x[:n].max() + step / 2) if len(ahead) else None,
            ticks=date_ticks(x.min(), x.max()) if self.told.dtype.kind == "M" else None,
        )

    def maps(self, tiles: Mapping[str, Any]) -> list[Section]:
        """The last of the axis on a map of the United States, where that is what places are."""
        known = {as_looked_at(name): code for name, code in tiles.items()}
        codes = [known.get(as_looked_at(name), name) for name in self.places]
        if len(codes) < 2 or not set(codes) <= set(US_TILES):
            return []
        here = [(codes[self.place[r]], r) for r in self._last_rows()]
        maps = []
        for k in self._main()[:_MOST_MAPS]:
            values = {
                code: (float(self.mean[r, k]), float(self.lower[r, k]), float(self.upper[r, k]))
                for code, r in here
            }
            maps.append(Tiles(values, label=f"map of {self.names[k]}", caption=self.names[k]))
        end = f" at {self.axis} {self._span()[1]}" if self.axis else ""
        which = "" if len(maps) == len(self.names) else " of the most frequent categories"
        text = (
            f"Probabilities{which}, and half the widths of their {self.percent}s; shades are of"
            " each map by itself."
        )
        return [Section(f"The map{end}", text, figures=maps, shown=0)]


def _skipped(x: FloatArray, step: float) -> list[tuple[float, float]]:
    """Stretches in which steps of a regular axis are left out."""
    x = np.unique(x)
    wide = np.flatnonzero(np.diff(x) > 1.5 * step)
    few = 4 * len(wide) < len(x)  # of many such steps the axis is made
    return [(x[i] + step / 2, x[i + 1] - step / 2) for i in wide] if few else []


def _how_sure(share: float) -> str:
    """That something is the first, by the share of draws in which it is."""
    if share > 0.995:
        return "that it is the first is all but certain"
    return f"it is the first with probability {share:.2f}"


def data_in_words(data: CountField) -> str:
    """How many counts of how many categories, where."""
    text = (
        f"{int(data.counts.sum()):,} counts of {data.num_categories:,} categories at"
        f" {data.num_rows:,} inputs"
    )
    if empty := np.count_nonzero(data.totals == 0):
        text += f", {empty:,} of them empty"
    if data.counted is not None:
        missing = data.num_rows - data.counted.sum(axis=0)
        names = range(data.num_categories) if data.categories is None else data.categories
        said = [f"{name} at {n:,}" for name, n in zip(names, missing, strict=True) if n]
        text += f", not counted {', '.join(said)} of them"
    return text + (f"; {data.num_new:,} new inputs" if data.num_new else "")


def _held_out(rows: FieldPredictions, hidden: IntArray, random_seed: int) -> list[str]:
    """Do intervals hold what was hidden?"""
    those = np.flatnonzero(hidden.sum(axis=1) > 0)
    if not len(those):
        return ["No counts were held out."]
    counts = hidden[those]
    fit = rows.rows(those).calibration(counts, least=0.0, random_seed=random_seed)
    return [
        f"Intervals of the {int(counts.sum()):,} counts at {len(those):,} inputs that were held out"
        f" {_in_a_sentence(fit.verdict)}.",
        f"{fit.in_words}, of {fit.num_cells:,} cells.",
    ]


def _in_a_sentence(verdict: str) -> str:
    """A calibration's verdict, "These hold: ..." or "Too narrow: ...", of the intervals."""
    if verdict.startswith("These hold"):
        return verdict.removeprefix("These ")
    return f"are {verdict[0].lower()}{verdict[1:]}"


def _against_truth(grid: _Grid, truth: FloatArray) -> str:
    inside = float(((grid.lower <= truth) & (truth <= grid.upper)).mean())
    error = float(np.abs(grid.mean - truth).mean())
    return (
        f"The truth is known here: the {grid.percent}s hold {100 * inside:.0f} % of the true"
        f" probabilities,"
        f" and a mean is {error:.3f} off on average."
    )


def _parts(posterior: Posterior) -> dict[str, str]:
    """What chains must agree on, what matters most first."""
    parts = {"probabilities": "psi" if "psi" in posterior else "pi"}
    if "hyperparameters" in posterior:
        parts["covariance's parameters"] = "hyperparameters"
    return parts


def _learned(posterior: Posterior, data: CountField, probability: float) -> Section:
    if "hyperparameters" not in posterior or not np.size(posterior["hyperparameters"]):
        return Section("What the model learned")
    values = np.asarray(posterior["hyperparameters"])
    names = hyperparameter_names(posterior.model.law(data), data)
    tail = 0.5 * (1.0 - probability)
    own = posterior.coords.get("covariance", np.arange(values.shape[2]))
    rows = []
    for c in range(values.shape[2]):
        for j, name in enumerate(names):
            draws = values[:, :, c, j]
            lower, upper = np.quantile(draws, [tail, 1.0 - tail])
            whose = "" if values.shape[2] == 1 else f", {own[c]}"
            form = ",.0f" if upper >= 1000.0 else ".3g"
            rows.append(
                (name + whose, Interval(float(draws.mean()), float(lower), float(upper), form))
            )
    scatter = any(name.endswith("(White)") for name in names)
    return Section(
        "What the model learned",
        "Length scales are in the units of the inputs: over such a distance probabilities forget"
        " where they were. Variances are of log odds"
        + ("; (White) is that by which inputs differ for themselves. " if scatter else ". ")
        + f"Posterior mean [{round(100 * probability)} % interval].",
        head=("parameter", "value"),
        rows=rows,
        shown=12,
    )
