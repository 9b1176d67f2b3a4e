"""Report on a run of a field: the leading categories, how they change, and with what certainty.

`report` computes everything once; `pgmult.core.reports` shows it on a terminal and on a page.
Figures and changes run along an axis: see `pgmult.fields.grid`.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pgmult.core.arguments import as_kind, as_mapping, as_path
from pgmult.core.comparison import Comparison, as_comparison
from pgmult.core.figures.lines import Line, Lines, date_ticks
from pgmult.core.figures.tiles import US_TILES, Tiles
from pgmult.core.labels import as_looked_at
from pgmult.core.markup import Leading
from pgmult.core.reports import Report, Section
from pgmult.core.tabled import probability_text
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int, as_simplex
from pgmult.fields.checks import check
from pgmult.fields.covariances import Covariance
from pgmult.fields.data import CountField
from pgmult.fields.grid import Grid
from pgmult.fields.predictions import FieldPredictions, own_data, predict
from pgmult.fields.rivals import compare
from pgmult.fields.tables import plain
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
    grid = Grid.of(data, every)
    true_probs = None if truth is None else as_simplex(truth, "truth")
    if true_probs is not None and true_probs.shape != grid.mean.shape:
        raise ValueError(f"truth must have shape {grid.mean.shape}, got {true_probs.shape}")
    changes = _Changes.of(grid)
    sections = [] if changes is None else [changes.section()]
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
        comparison = as_kind(compare(run, data=data, held_out=held), "comparison", Comparison)
    verdict = [] if comparison is False else [*comparison.sentences]
    moved = [] if changes is None else changes.sentences()
    verdict += [Leading(sentence, "What changed") for sentence in moved]
    verdict += [_lead(grid), *_unseen(grid)]
    if hidden is not None:
        sentences = _held_out(every.rows(np.arange(data.num_rows)), hidden, random_seed)
        verdict += sentences[:1]
        sections.append(Section("Counts that were held out", sentences=sentences))
    if comparison is not False:
        sections.append(comparison.section())
    fit = check(run, data=data, max_draws=used, random_seed=random_seed)
    verdict.append(fit.verdict)
    sections.append(fit.section())
    if true_probs is not None:
        verdict.append(_against_truth(grid, true_probs))
    sections.append(_learned(run, grid))
    parts = {"probabilities": "psi" if "psi" in run else "pi"}  # what matters most first
    if "hyperparameters" in run:
        parts["covariance's parameters"] = "hyperparameters"
    chains, *details = chains_in_words(run, parts)
    sections.append(Section("Diagnostics", sentences=[chains, *details]))
    verdict.append(chains)
    return Report(title, verdict, sections, {"data": data_in_words(data), **facts}).save(place)


def hyperparameter_names(covariance: Covariance, data: CountField) -> list[str]:
    """The covariance's free parameters in words, by the columns that they act on, with units."""
    columns = data.input_labels
    tables = {} if data.columns is None else data.columns
    names = []
    for leaf in covariance.leaves():
        acts = range(len(columns)) if leaf.active is None else leaf.active
        family, of = type(leaf).__name__, _whole_columns([columns[i] for i in acts])
        for name in leaf.param_names:
            words = {"var": "variance", "length_scale": "length scale"}.get(name, name)
            unit = ""
            if name == "length_scale":
                dates = of in tables and tables[of].dtype.kind == "M"
                unit = ", in km" if family == "GreatCircle" else ", in years" if dates else ""
            names.append(f"{words}{f' of {of}' if of else ''}{unit} ({family})")
    return names


def _whole_columns(names: list[str]) -> str:
    """Coordinates of a place, "state 1" and "state 2", are the state's."""
    columns = [
        name.rpartition(" ")[0] if name.endswith((" 1", " 2", " 3")) else name for name in names
    ]
    return ", ".join(dict.fromkeys(columns))


# --------------------------------------------------------------------------- what moved, who leads


@dataclass(frozen=True, slots=True)
class _Changes:
    """Shares at both ends of an axis: draws of means over the places with rows at both.

    A place weighs as much as it has counts, at both ends alike.
    """

    grid: Grid
    first: FloatArray
    last: FloatArray
    span: tuple[str, str]
    num_places: int

    @classmethod
    def of(cls, grid: Grid) -> "_Changes | None":
        """None where there is one end only."""
        start, end = grid.ends
        both = sorted(set(start) & set(end))
        rows = [start[p] for p in both], [end[p] for p in both]
        if not both or grid.x[rows[0][0]] == grid.x[rows[1][0]]:
            return None
        weights = np.maximum(grid.totals[both], 1.0)
        weights = weights / weights.sum()
        first, last = (
            np.einsum("dpk,p->dk", grid.predictions.draws[:, its], weights) for its in rows
        )
        span = plain(grid.along[rows[0][0]]), plain(grid.along[rows[1][0]])
        return cls(grid, first, last, span, len(both))

    @property
    def _order(self) -> list[int]:
        """Categories, what rose most first."""
        rise = (self.last - self.first).mean(axis=0)
        return [int(k) for k in np.argsort(-rise, kind="stable")]

    def sentences(self) -> list[str]:
        """Name the categories that rose and fell most."""
        grid, (start, end), order = self.grid, self.span, self._order
        places = f" (mean over {self.num_places} places, weighted by their counts)"
        over = places if self.num_places > 1 else ""
        span = f"From {grid.axis} {start} to {end}{over}"
        said = []
        for k, word, sign in ((order[0], "rose", 1.0), (order[-1], "fell", -1.0)):
            first, last = self.first[:, k], self.last[:, k]
            if (sign * (last - first) > 0.0).mean() > 0.95:  # its 90 % interval is on one side
                said.append(
                    f"{span} {grid.names[k]} {word} most: from {first.mean():.2f} to"
                    f" {last.mean():.2f}, a change of {grid.interval(last - first, '+.2f')}"
                    f" ({grid.percent})."
                )
        return said or [f"{span} no category clearly rose or fell."]

    def section(self) -> Section:
        """All categories."""
        grid, (start, end) = self.grid, self.span
        rows = [  # five columns fit a narrow page where one of them has an interval
            (
                grid.names[k],
                f"{self.first[:, k].mean():.2f}",
                f"{self.last[:, k].mean():.2f}",
                grid.interval(self.last[:, k] - self.first[:, k], "+.2f"),
                probability_text((self.last[:, k] > self.first[:, k]).mean()),
            )
            for k in self._order
        ]
        complete = grid.counted.all()
        until = (
            "" if complete else f", as far as all categories were counted: from {start} to {end}"
        )
        mean = "Mean probability, over places weighted by their counts,"
        mean = mean if self.num_places > 1 else "Mean probability"
        return Section(
            "What changed",
            f"{mean} of each category at the ends of {grid.axis}{until}; and its change"
            f" [{grid.percent}].",
            head=("category", start, end, "change", "P(rose)"),
            rows=rows,
            shown=12,
        )


def _lead(grid: Grid) -> str:
    """Say at how many places one category is clearly the most probable."""
    rows, end = grid.last, grid.end
    firsts = grid.firsts(rows)
    best, sure = firsts.argmax(axis=1), firsts.max(axis=1)
    if len(rows) == 1:
        who, cell = grid.names[best[0]], grid.cell(int(rows[0]), int(best[0]))
        how = f"it is the first with probability {sure[0]:.2f}"
        if sure[0] > 0.995:
            how = "that it is the first is all but certain"
        return f"Most probable{end}: {who}, {cell} ({grid.percent}); {how}."
    leader, size = np.bincount(best).argmax(), len(rows)
    number, clear = np.count_nonzero(best == leader), np.count_nonzero(sure > 0.95)
    where = f"all {size} places" if number == size else f"{number} of {size} places"
    at = "nowhere" if clear == 0 else "everywhere" if clear == size else f"at {clear} of {size}"
    is_first = "is the first" if at == "nowhere" else "the first is"
    return (
        f"Most probable{end}: {grid.names[leader]} at {where}; {at} {is_first} more than 95 % sure."
    )


def _unseen(grid: Grid) -> list[str]:
    """Name categories that were not counted everywhere, and places without a count."""
    said = []
    if not grid.counted.all():
        partly = [grid.names[k] for k in np.flatnonzero(~grid.counted.all(axis=0))]
        said.append(
            f"Not everywhere counted: {_few(partly, 'categories')}; probabilities there are those"
            " of the others, given that it is one of them."
        )
    observed = np.unique(grid.place[: grid.data.num_rows])
    if names := [grid.places[p] for p in observed if grid.totals[p] == 0]:
        said.append(
            f"No counts at {_few(names, 'places')}: predictions there come from other places alone."
        )
    return said


def _few(names: list[str], what: str) -> str:
    return ", ".join(names) if len(names) <= _FEW else f"{len(names)} {what}"


def _table(
    grid: Grid,
    title: str,
    what: str,
    rows: IntArray,
    names: Sequence[str] | NDArray[np.str_] | None = None,
) -> Section:
    """The leading categories of some rows, which are called by their places where unnamed."""
    if names is None:
        names = [grid.places[p] or "everywhere" for p in grid.place[rows]]
    cells = []
    for r, name, first in zip(rows, names, grid.firsts(rows), strict=False):
        for k in np.argsort(-grid.mean[r], kind="stable")[:3]:
            cells.append(
                (name, grid.names[k], grid.cell(int(r), int(k)), probability_text(first[k]))
            )
    return Section(
        title,
        f"Probability, posterior mean [{grid.percent}], and that of being the first.",
        head=(what, "category", "probability", "P(first)"),
        rows=cells,
        shown=12,
    )


# --------------------------------------------------------------------------- figures


def _main(grid: Grid) -> list[int]:
    """The most frequent categories."""
    order = np.argsort(-grid.data.counts.sum(axis=0), kind="stable")
    return [int(k) for k in order[:_MOST_LINES]]


def _figures(grid: Grid, truth: FloatArray | None) -> list[Section]:
    """A panel for each of a few places: probabilities along the axis, with observed shares."""
    if not grid.axis or len(np.unique(grid.x)) < 2:
        return []
    chosen = np.sort(np.argsort(-grid.totals, kind="stable")[:_MOST_PANELS])
    is_subset = len(grid.places) > len(chosen)
    which = f"; the {len(chosen)} places with most counts" if is_subset else ""
    few = len(grid.names) <= _MOST_LINES
    what = "all categories" if few else "the most frequent categories"
    return [
        Section(
            f"Probabilities along {grid.axis}",
            f"Posterior means of {what}{which}.",
            figures=[_panel(grid, int(p), truth) for p in chosen],
            shown=0,
        )
    ]


def _panel(grid: Grid, p: int, truth: FloatArray | None) -> Lines:
    data, n = grid.data, grid.data.num_rows
    rows = np.flatnonzero(grid.place == p)
    rows = rows[np.argsort(grid.x[rows], kind="stable")]
    observed = rows[rows < n]
    totals = data.totals[observed]
    full, x = observed[totals > 0], grid.x[rows]
    step = float(np.median(np.diff(np.unique(grid.x))))
    gaps = [(grid.x[r] - step / 2, grid.x[r] + step / 2) for r in observed[totals == 0]]
    gaps += _skipped(grid.x[observed], step)
    is_ahead = ((rows >= n) & (x > grid.x[:n].max())).any()
    visible = np.where(grid.counted, 1.0, np.nan)  # a line has a gap elsewhere
    mean, low, high = (
        values[rows] * visible[rows] for values in (grid.mean, grid.lower, grid.upper)
    )
    lines = []
    for number, k in enumerate(_main(grid)):
        drawn = full[grid.counted[full, k]]
        points = grid.x[drawn], data.counts[drawn, k] / data.totals[drawn]
        band, true_line = (low[:, k], high[:, k]), None if truth is None else truth[rows, k]
        lines.append(Line(grid.names[k], number, x, mean[:, k], [band], points, truth=true_line))
    name = grid.places[p]
    return Lines(
        lines,
        label=f"probabilities along {grid.axis}{f' at {name}' if name else ''}",
        x_label=grid.axis,
        caption=name,
        band=grid.percent,
        gaps=gaps,
        divider=float(grid.x[:n].max() + step / 2) if is_ahead else None,
        ticks=date_ticks(x.min(), x.max()) if grid.along.dtype.kind == "M" else None,
    )


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
    text = (
        f"Probabilities{which}, and half the widths of their {grid.percent}s; shades are of"
        " each map by itself."
    )
    return [Section(f"The map{grid.end}", text, figures=maps, shown=0)]


def _skipped(x: FloatArray, step: float) -> list[tuple[float, float]]:
    """Stretches in which steps of a regular axis are left out."""
    x = np.unique(x)
    wide = np.flatnonzero(np.diff(x) > 1.5 * step)
    few = 4 * len(wide) < len(x)  # of many such steps the axis is made
    return [(x[i] + step / 2, x[i + 1] - step / 2) for i in wide] if few else []


def data_in_words(data: CountField) -> str:
    """Describe the data: numbers of counts, categories and inputs."""
    text = (
        f"{int(data.counts.sum()):,} counts of {data.num_categories:,} categories at"
        f" {data.num_rows:,} inputs"
    )
    if empty := np.count_nonzero(data.totals == 0):
        text += f", {empty:,} of them empty"
    if data.counted is not None:
        missing = data.num_rows - data.counted.sum(axis=0)
        pairs = zip(data.category_labels, missing, strict=True)
        said = [f"{name} at {n:,}" for name, n in pairs if n]
        text += f", not counted {', '.join(said)} of them"
    return text + (f"; {data.num_new:,} new inputs" if data.num_new else "")


def _held_out(rows: FieldPredictions, hidden: IntArray, random_seed: int) -> list[str]:
    """Do intervals hold what was hidden?"""
    indices = np.flatnonzero(hidden.sum(axis=1) > 0)
    if not len(indices):
        return ["No counts were held out."]
    counts = hidden[indices]
    fit = rows.rows(indices).calibration(counts, least=0.0, random_seed=random_seed)
    said = f"are {fit.verdict[0].lower()}{fit.verdict[1:]}"  # "too narrow: ..."
    return [
        f"Intervals of the {int(counts.sum()):,} counts at {len(indices):,} inputs that were held"
        f" out {said}.",
        f"{fit.in_words}, of {fit.num_cells:,} cells.",
    ]


def _against_truth(grid: Grid, truth: FloatArray) -> str:
    inside = float(((grid.lower <= truth) & (truth <= grid.upper)).mean())
    error = float(np.abs(grid.mean - truth).mean())
    return (
        f"The truth is known here: the {grid.percent}s hold {100 * inside:.0f} % of the true"
        f" probabilities, and a mean is {error:.3f} off on average."
    )


def _learned(posterior: Posterior, grid: Grid) -> Section:
    if "hyperparameters" not in posterior or not np.size(posterior["hyperparameters"]):
        return Section("What the model learned")
    values = np.asarray(posterior["hyperparameters"])
    names = hyperparameter_names(posterior.model.full_covariance(grid.data), grid.data)
    labels = posterior.coords.get("covariance", np.arange(values.shape[2]))
    rows = []
    for c in range(values.shape[2]):
        for j, name in enumerate(names):
            draws = values[:, :, c, j]
            whose = "" if values.shape[2] == 1 else f", {labels[c]}"
            value = grid.interval(draws)
            form = ",.0f" if value.upper >= 100.0 else "#.3g"
            rows.append((name + whose, value._replace(form=form)))
    scatter = any(name.endswith("(White)") for name in names)
    return Section(
        "What the model learned",
        "Length scales are in the units of the inputs: the distance over which probabilities are"
        " similar. Variances are of log odds"
        + ("; (White) is that of independent effects of the inputs. " if scatter else ". ")
        + f"Posterior mean [{grid.percent}].",
        head=("parameter", "value"),
        rows=rows,
        shown=12,
    )
