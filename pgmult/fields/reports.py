"""Report on a run of a field: the leading categories, how they change, and with what certainty.

`report` computes everything once; `pgmult.core.reports` shows it on a terminal and on a page.
Figures and changes run along an axis: see `Grid`.
"""

import os
import re
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from pgmult.core.arguments import as_kind, as_mapping, as_path
from pgmult.core.comparison import Comparison, as_comparison
from pgmult.core.figures.lines import Line, Lines, date_ticks
from pgmult.core.figures.tiles import US_TILES, Tiles
from pgmult.core.labels import as_looked_at
from pgmult.core.markup import Leading
from pgmult.core.reports import Interval, Report, Section
from pgmult.core.tabled import probability_text
from pgmult.core.typing import Array, FloatArray, IntArray
from pgmult.core.validate import as_positive_int, as_simplex
from pgmult.fields.checks import check
from pgmult.fields.covariances import Covariance
from pgmult.fields.data import CountField
from pgmult.fields.predictions import FieldPredictions, own_data, predict
from pgmult.fields.rivals import compare
from pgmult.fields.tables import axis_and_places, plain
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
        The probabilities, where they are known: of a demonstration.
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
    grid = Grid(data, every)
    true_probs = None if truth is None else as_simplex(truth, "truth")
    if true_probs is not None and true_probs.shape != grid.mean.shape:
        raise ValueError(f"truth must have shape {grid.mean.shape}, got {true_probs.shape}")
    moved, sections = _changes(grid)
    sections += [*_figures(grid, true_probs), *_maps(grid, as_mapping(tiles, "tiles"))]
    by_name = grid.last[np.argsort(grid.place[grid.last], kind="stable")]
    new_rows = np.arange(data.num_rows, len(grid.x))[:_MOST_ROWS]
    sections += [
        _table(grid, f"The most probable categories{grid.end}", "place", by_name),
        _table(grid, "At the new inputs", "input", new_rows, data.new_names),
    ]
    hidden = None if held_out is None else data.held_out(held_out)
    if comparison is True:
        held = hidden if hidden is not None and hidden.any() else None
        comparison = compare(run, data=data, held_out=held)
    covered = [] if hidden is None else _held_out(every, hidden, random_seed)
    fit = check(run, data=data, max_draws=used, random_seed=random_seed)
    parts = {"probabilities": "psi" if "psi" in run else "pi"}  # what matters most first
    if "hyperparameters" in run:
        parts["covariance's parameters"] = "hyperparameters"
    chains = chains_in_words(run, parts)
    true = [] if true_probs is None else [_against_truth(grid, true_probs)]
    verdict = [] if comparison is False else [*comparison.sentences]
    verdict += [Leading(sentence, "What changed") for sentence in moved]
    verdict += [_lead(grid), *_unseen(grid), *covered[:1], fit.verdict, *true, chains[0]]
    sections.append(Section("Counts that were held out", sentences=covered))
    sections += [] if comparison is False else [comparison.section()]
    sections += [fit.section(), _learned(run, grid), Section("Diagnostics", sentences=chains)]
    return Report(title, verdict, sections, {"data": data_in_words(data), **facts}).save(place)


# --------------------------------------------------------------------------- where rows stand


class Grid:
    """Probabilities of rows, by where they stand along an axis and at which place.

    The axis is the first input of numbers or dates, and the other inputs are the place.

    Parameters
    ----------
    data : CountField
    predictions : FieldPredictions
        At the inputs of the counts, and after them at the new ones.

    Attributes
    ----------
    names : list of str
        Of the categories.
    percent : str
        Name of the intervals, such as 90 % interval.
    mean, lower, upper : arrays, ``(num_rows, num_categories)``
        Of the draws, and the ends of their intervals.
    axis : str
        The column; empty if there is none.
    x, along : arrays, ``(num_rows,)``
        The axis as numbers, and as the table has it.
    place : int array, ``(num_rows,)``
    places : list of str
    counted : bool array, ``(num_rows, num_categories)``
        The categories that were counted in each row, all of them at new inputs.
    """

    def __init__(self, data: CountField, predictions: FieldPredictions):
        self.data, self.predictions, self.names = data, predictions, data.category_labels
        self.percent = f"{round(100 * predictions.probability)} % interval"
        self.mean, (self.lower, self.upper) = predictions.mean, predictions.interval()
        size, columns = len(self.mean), predictions.columns_of("row")
        self.axis, self.x, self.places, self.place = axis_and_places(data, columns, size)
        self.along = np.asarray(columns.get(self.axis, np.zeros(size)))
        new = np.ones((data.num_new, data.num_categories), dtype=np.bool_)
        self.counted = np.concatenate([data.was_counted, new])

    @cached_property
    def ends(self) -> tuple[dict[int, int], dict[int, int]]:
        """The row of each place at the first and the last of the axis where most places stand."""
        values, at = np.unique(self.x, return_inverse=True)
        most = np.bincount(np.unique(np.stack([at, self.place]), axis=1)[0], minlength=len(values))
        partly = at[~self.counted.all(axis=1)]
        complete = ~np.isin(np.arange(len(values)), partly)  # all categories were counted
        usable = complete if np.count_nonzero(complete) > 1 else np.ones_like(complete)
        shared = np.flatnonzero(usable & (most == most[usable].max()))
        first, last = (
            {int(self.place[r]): int(r) for r in np.flatnonzero(at == end)[::-1]}
            for end in shared[[0, -1]]
        )
        return first, last

    @property
    def last(self) -> IntArray:
        """The rows at the last of the axis."""
        return np.array(sorted(self.ends[1].values()))

    @property
    def end(self) -> str:
        """Words for the last value of the axis, such as " at year 2010"."""
        return f" at {self.axis} {plain(self.along[self.last[0]])}" if self.axis else ""

    @cached_property
    def totals(self) -> IntArray:
        """Counts of each place."""
        place = self.place[: self.data.num_rows]
        return np.bincount(place, self.data.totals, minlength=len(self.places)).astype(np.int64)

    def interval(self, draws: FloatArray, form: str = ".2f") -> Interval:
        """Mean and interval of draws of a number."""
        tail = 0.5 * (1.0 - self.predictions.probability)
        lower, upper = np.quantile(draws, [tail, 1.0 - tail])
        return Interval(draws.mean(), lower, upper, form)

    def cell(self, row: int, k: int) -> Interval:
        """The probability of a category in a row."""
        return Interval(self.mean[row, k], self.lower[row, k], self.upper[row, k])

    def firsts(self, rows: IntArray) -> FloatArray:
        """Probabilities of being the most probable category, ``(len(rows), num_categories)``."""
        best, size = self.predictions.draws[:, rows].argmax(axis=2), len(self.names)
        return np.array([np.bincount(row, minlength=size) for row in best.T]) / len(best)


# --------------------------------------------------------------------------- what the model learned


def hyperparameter_names(covariance: Covariance, data: CountField) -> list[str]:
    """The covariance's free parameters in words, by the columns that they act on, with units."""
    columns, tables, names = data.input_labels, data.columns or {}, []
    for leaf in covariance.leaves():
        acts = range(len(columns)) if leaf.active is None else leaf.active
        # coordinates of a place, "state 1" and "state 2", are the state's
        of = ", ".join(dict.fromkeys(re.sub(" [123]$", "", columns[i]) for i in acts))
        family = type(leaf).__name__
        for name in leaf.param_names:
            words = {"var": "variance", "length_scale": "length scale"}.get(name, name)
            words += f" of {of}" if of else ""
            if name == "length_scale":
                dates = of in tables and tables[of].dtype.kind == "M"
                words += ", in km" if family == "GreatCircle" else ", in years" if dates else ""
            names.append(f"{words} ({family})")
    return names


# --------------------------------------------------------------------------- what moved, who leads


def _changes(grid: Grid) -> tuple[list[str], list[Section]]:
    """What rose and fell most, and all categories, between the ends of the axis if it has two.

    Shares are means over the places with rows at both ends. A place weighs as much as it has
    counts, at both ends alike.
    """
    ends = grid.ends
    both = sorted(ends[0].keys() & ends[1])
    rows = [[end[p] for p in both] for end in ends]
    if not both or grid.x[rows[0][0]] == grid.x[rows[1][0]]:
        return [], []
    weights = np.maximum(grid.totals[both], 1.0)
    draws = grid.predictions.draws
    first, last = (np.einsum("dpk,p->dk", draws[:, its], weights / weights.sum()) for its in rows)
    start, end = (plain(grid.along[its[0]]) for its in rows)
    change = last - first
    order = [int(k) for k in np.argsort(-change.mean(axis=0), kind="stable")]
    cells = [  # five columns fit a narrow page where one of them has an interval
        (name, f"{a.mean():.2f}", f"{b.mean():.2f}", grid.interval(b - a, "+.2f"),
         probability_text((b > a).mean()))
        for name, a, b in zip(grid.names, first.T, last.T, strict=True)
    ]  # fmt: skip
    over = f" (mean over {len(both)} places, weighted by their counts)" if len(both) > 1 else ""
    span = f"From {grid.axis} {start} to {end}{over}"
    said = []
    for k, word, sign in ((order[0], "rose", 1.0), (order[-1], "fell", -1.0)):
        if (sign * change[:, k] > 0.0).mean() > 0.95:  # its 90 % interval is on one side
            name, before, after, rise, _ = cells[k]
            how = f"from {before} to {after}, a change of {rise} ({grid.percent})"
            said.append(f"{span} {name} {word} most: {how}.")
    until = "" if grid.counted.all() else f", as far as all were counted: from {start} to {end}"
    over = ", over places weighted by their counts," if len(both) > 1 else ""
    note = f"Mean probability{over} of each category at the ends of {grid.axis}{until}; and its"
    section = Section(
        "What changed", f"{note} change [{grid.percent}].", rows=[cells[k] for k in order],
        head=("category", start, end, "change", "P(rose)"), shown=12,
    )  # fmt: skip
    return said or [f"{span} no category clearly rose or fell."], [section]


def _lead(grid: Grid) -> str:
    """Say at how many places one category is clearly the most probable."""
    rows, end = grid.last, grid.end
    firsts = grid.firsts(rows)
    best, sure = firsts.argmax(axis=1), firsts.max(axis=1)
    if len(rows) == 1:
        how = f"it is the first with probability {sure[0]:.2f}"
        how = "that it is the first is all but certain" if sure[0] > 0.995 else how
        cell = grid.cell(int(rows[0]), int(best[0]))
        return f"Most probable{end}: {grid.names[best[0]]}, {cell} ({grid.percent}); {how}."
    leader, size = np.bincount(best).argmax(), len(rows)
    number, clear = np.count_nonzero(best == leader), np.count_nonzero(sure > 0.95)
    where = f"all {size} places" if number == size else f"{number} of {size} places"
    at = {0: "nowhere is the first", size: "everywhere the first is"}
    sureness = at.get(int(clear), f"at {clear} of {size} the first is")
    return f"Most probable{end}: {grid.names[leader]} at {where}; {sureness} more than 95 % sure."


def _unseen(grid: Grid) -> list[str]:
    """Name categories that were not counted everywhere, and places without a count."""

    def few(names: list[str], what: str) -> str:
        return ", ".join(names) if len(names) <= _FEW else f"{len(names)} {what}"

    said = []
    if partly := [grid.names[k] for k in np.flatnonzero(~grid.counted.all(axis=0))]:
        those = "probabilities there are those given that it is another"
        said.append(f"Not everywhere counted: {few(partly, 'categories')}; {those}.")
    observed = np.unique(grid.place[: grid.data.num_rows])
    if names := [grid.places[p] for p in observed if grid.totals[p] == 0]:
        where = few(names, "places")
        said.append(f"No counts at {where}: predictions there come from other places alone.")
    return said


def _table(
    grid: Grid, title: str, what: str, rows: IntArray, names: Sequence[str] | Array | None = None
) -> Section:
    """The leading categories of some rows, which are called by their places where unnamed."""
    if names is None:
        names = [grid.places[p] or "everywhere" for p in grid.place[rows]]
    cells = [
        (name, grid.names[k], grid.cell(int(r), int(k)), probability_text(first[k]))
        for r, name, first in zip(rows, names, grid.firsts(rows), strict=False)
        for k in np.argsort(-grid.mean[r], kind="stable")[:3]
    ]
    note = f"Probability, posterior mean [{grid.percent}], and that of being the first."
    head = (what, "category", "probability", "P(first)")
    return Section(title, note, head=head, rows=cells, shown=12)


# --------------------------------------------------------------------------- figures


def _main(grid: Grid) -> list[int]:
    """The most frequent categories."""
    return [*map(int, np.argsort(-grid.data.counts.sum(axis=0), kind="stable")[:_MOST_LINES])]


def _figures(grid: Grid, truth: FloatArray | None) -> list[Section]:
    """A panel for each of a few places: probabilities along the axis, with observed shares."""
    if not grid.axis or len(np.unique(grid.x)) < 2:
        return []
    chosen = np.sort(np.argsort(-grid.totals, kind="stable")[:_MOST_PANELS])
    which = f"; the {len(chosen)} places with most counts" if len(grid.places) > len(chosen) else ""
    few = len(grid.names) <= _MOST_LINES
    note = f"Posterior means of {'all' if few else 'the most frequent'} categories{which}."
    panels = [_panel(grid, int(p), truth) for p in chosen]
    return [Section(f"Probabilities along {grid.axis}", note, figures=panels, shown=0)]


def _panel(grid: Grid, p: int, truth: FloatArray | None) -> Lines:
    data, n = grid.data, grid.data.num_rows
    rows = np.flatnonzero(grid.place == p)
    rows = rows[np.argsort(grid.x[rows], kind="stable")]
    observed, x = rows[rows < n], grid.x[rows]
    is_empty = data.totals[observed] == 0
    full = observed[~is_empty]
    step = float(np.median(np.diff(np.unique(grid.x))))
    gaps = [(at - step / 2, at + step / 2) for at in grid.x[observed[is_empty]]]
    is_ahead = ((rows >= n) & (x > grid.x[:n].max())).any()
    visible = np.where(grid.counted, 1.0, np.nan)  # a line has a gap elsewhere
    mean, low, high = ((values * visible)[rows] for values in (grid.mean, grid.lower, grid.upper))
    lines = []
    for number, k in enumerate(_main(grid)):
        drawn = full[grid.counted[full, k]]
        points = grid.x[drawn], data.counts[drawn, k] / data.totals[drawn]
        band, true_line = (low[:, k], high[:, k]), None if truth is None else truth[rows, k]
        lines.append(Line(grid.names[k], number, x, mean[:, k], [band], points, truth=true_line))
    name = grid.places[p]
    return Lines(
        lines, label=f"probabilities along {grid.axis}{f' at {name}' if name else ''}",
        x_label=grid.axis, caption=name, band=grid.percent,
        gaps=gaps + _skipped(grid.x[observed], step),
        divider=float(grid.x[:n].max() + step / 2) if is_ahead else None,
        ticks=date_ticks(x.min(), x.max()) if grid.along.dtype.kind == "M" else None,
    )  # fmt: skip


def _maps(grid: Grid, tiles: Mapping[str, str]) -> list[Section]:
    """The last of the axis on a map of the United States, where that is what places are."""
    postal = {as_looked_at(name): code for name, code in tiles.items()}
    codes = [postal.get(as_looked_at(name), name) for name in grid.places]
    if len(codes) < 2 or not set(codes) <= set(US_TILES):
        return []
    maps = []
    for k in _main(grid)[:_MOST_MAPS]:
        values = {codes[grid.place[r]]: grid.cell(int(r), k)[:3] for r in grid.last}
        maps.append(Tiles(values, label=f"map of {grid.names[k]}", caption=grid.names[k]))
    which = "" if len(maps) == len(grid.names) else " of the most frequent categories"
    note = f"Probabilities{which}, and half the widths of their {grid.percent}s; shades are of"
    return [Section(f"The map{grid.end}", f"{note} each map by itself.", figures=maps, shown=0)]


def _skipped(x: FloatArray, step: float) -> list[tuple[float, float]]:
    """Stretches in which steps of a regular axis are left out."""
    x = np.unique(x)
    wide = np.flatnonzero(np.diff(x) > 1.5 * step)
    few = 4 * len(wide) < len(x)  # of many such steps the axis is made
    return [(x[i] + step / 2, x[i + 1] - step / 2) for i in wide] if few else []


def data_in_words(data: CountField) -> str:
    """Describe the data: numbers of counts, categories and inputs."""
    text = f"{data.counts.sum():,} counts of {data.num_categories:,} categories"
    text += f" at {data.num_rows:,} inputs"
    if empty := np.count_nonzero(data.totals == 0):
        text += f", {empty:,} of them empty"
    missing = (~data.was_counted).sum(axis=0)
    if missing.any():
        pairs = zip(data.category_labels, missing, strict=True)
        text += f", not counted {', '.join(f'{name} at {n:,}' for name, n in pairs if n)} of them"
    return text + (f"; {data.num_new:,} new inputs" if data.num_new else "")


def _held_out(every: FieldPredictions, hidden: IntArray, random_seed: int) -> list[str]:
    """Do intervals hold what was hidden?"""
    indices = np.flatnonzero(hidden.sum(axis=1) > 0)
    if not len(indices):
        return ["No counts were held out."]
    fit = every.rows(indices).calibration(hidden[indices], least=0.0, random_seed=random_seed)
    said = f"are {fit.verdict[0].lower()}{fit.verdict[1:]}"  # "too narrow: ..."
    held = f"Intervals of the {hidden.sum():,} counts at {len(indices):,} inputs that were held out"
    return [f"{held} {said}.", f"{fit.in_words}, of {fit.num_cells:,} cells."]


def _against_truth(grid: Grid, truth: FloatArray) -> str:
    inside = 100 * ((grid.lower <= truth) & (truth <= grid.upper)).mean()
    off = f"a mean is {np.abs(grid.mean - truth).mean():.3f} off on average"
    held = f"the {grid.percent}s hold {inside:.0f} % of the true probabilities"
    return f"The truth is known here: {held}, and {off}."


def _learned(run: Posterior, grid: Grid) -> Section:
    title = "What the model learned"
    if "hyperparameters" not in run or not np.size(run["hyperparameters"]):
        return Section(title)
    values = np.asarray(run["hyperparameters"])
    names = hyperparameter_names(run.model.full_covariance(grid.data), grid.data)
    labels = run.coords.get("covariance", np.arange(values.shape[2]))
    rows = []
    for c, j in np.ndindex(values.shape[2:]):
        whose = "" if values.shape[2] == 1 else f", {labels[c]}"
        value = grid.interval(values[:, :, c, j])
        form = ",.0f" if value.upper >= 100.0 else "#.3g"
        rows.append((names[j] + whose, value._replace(form=form)))
    is_white = any(name.endswith("(White)") for name in names)
    white = "; (White) is that of independent effects of the inputs" if is_white else ""
    scales = "Length scales are distances over which probabilities are similar, in units of inputs"
    note = f"{scales}. Variances are of log odds{white}. Posterior mean [{grid.percent}]."
    return Section(title, note, head=("parameter", "value"), rows=rows, shown=12)
