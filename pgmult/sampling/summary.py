"""Mean, spread and diagnostics of every entry of a posterior, as a table."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from pgmult.core.answers import Answer
from pgmult.core.arguments import as_choice, as_strings
from pgmult.core.figures.forest import Forest
from pgmult.core.markup import joined, paragraphs
from pgmult.core.tabled import Column, Table
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling import diagnostics
from pgmult.sampling.draws import Draws

_PRINTED_ROWS = 20  # of one variable, when a summary is printed


def summarise(
    draws: Draws, var_names: str | Sequence[str] | None, max_entries: int | None
) -> "Summary":
    """See `pgmult.sampling.posterior.Posterior.summary`."""
    if max_entries is not None:
        max_entries = as_positive_int(max_entries, "max_entries")
    names = [*draws, *draws.sample_stats]
    if var_names is not None:
        chosen = as_strings([var_names] if isinstance(var_names, str) else var_names, "var_names")
        names = [as_choice(name, "var_names", names) for name in chosen]
    rows, owners, notes = list[str](), list[str](), list[str]()
    entries: list[FloatArray] = []
    for name in names:
        labels, values, note = draws.entries(name, max_entries)
        notes += [note] if note else []
        if not labels:
            continue
        groups = {"": values}
        if draws.num_chains > 1 and draws.is_labelled(name):
            chains = draws.coords["chain"]
            groups = {f" chain {c}": x for c, x in zip(chains, values[:, None], strict=True)}
        for which, group in groups.items():
            rows += [f"{label}{which}" for label in labels]
            owners += [name] * len(labels)
            entries.append(group)
    if draws.num_draws < diagnostics.MIN_DRAWS:
        notes.append(f"{draws.num_draws} draws a chain are too few for diagnostics")
    pieces = [_columns(group) for group in entries]
    table = {c: np.concatenate([np.empty(0), *(x[c] for x in pieces)]) for c in _COLUMNS}
    return Summary(tuple(rows), tuple(owners), table, tuple(notes), tuple(entries))


_COLUMNS = ("mean", "sd", "5%", "95%", "mcse_mean", "ess_bulk", "ess_tail", "r_hat")


def _columns(draws: FloatArray) -> dict[str, FloatArray]:
    nothing = np.full(draws.shape[2], np.nan)
    columns = dict.fromkeys(_COLUMNS, nothing)
    if draws.shape[1] > 0:
        low, high = np.quantile(draws, [0.05, 0.95], axis=(0, 1))
        columns |= {"mean": draws.mean(axis=(0, 1)), "5%": low, "95%": high}
    if draws.shape[0] * draws.shape[1] > 1:
        columns["sd"] = draws.std(axis=(0, 1), ddof=1)
    if draws.shape[1] >= diagnostics.MIN_DRAWS:
        columns |= {name: getattr(diagnostics, name)(draws) for name in _COLUMNS[4:]}
    return columns


@dataclass(frozen=True, eq=False)
class Summary(Answer):
    """A table of statistics, one row per entry; printing it shows at most 20 rows per variable.

    Attributes
    ----------
    rows : tuple of str
        ``name[labels]`` of each row.
    variables : tuple of str
        The variable each row belongs to.
    columns : dict from str to array, ``(rows,)``
        mean, sd, 5%, 95%, mcse_mean, ess_bulk, ess_tail, r_hat; nan where undefined.
    notes : tuple of str
        What was left out, and why.
    entries : tuple of arrays, ``(chain, draw, entry)``
        The draws of the rows, a variable or its part from one chain each.
    """

    rows: tuple[str, ...]
    variables: tuple[str, ...]
    columns: dict[str, FloatArray]
    notes: tuple[str, ...]
    entries: tuple[FloatArray, ...]

    @property
    def draws(self) -> FloatArray:
        """The draws, ``(num_draws, rows)``; nan after the last of a row that has fewer."""
        size = max((x.shape[0] * x.shape[1] for x in self.entries), default=0)
        columns = [np.full((size, x.shape[2]), np.nan) for x in self.entries]
        for column, x in zip(columns, self.entries, strict=True):
            column[: x.shape[0] * x.shape[1]] = x.reshape(-1, x.shape[2])
        return np.concatenate([np.empty((size, 0)), *columns], axis=1)

    def figure(self) -> Forest:
        """Return means and 90 % intervals of the rows that are printed."""
        shown, _ = self._shown()
        mean, lower, upper = (self.columns[name][shown][None] for name in ("mean", "5%", "95%"))
        return Forest(
            labels=[self.rows[i] for i in shown], mean=mean, lower=lower, upper=upper,
            name="entry", x_label="mean and 90 % interval",
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> FloatArray:
        return self.columns[column]

    def _shown(self) -> tuple[list[int], list[str]]:
        """Rows that are printed, and a note on those that are not."""
        shown, counts = list[int](), Counter[str]()
        for i, name in enumerate(self.variables):
            counts[name] += 1
            if counts[name] <= _PRINTED_ROWS:
                shown.append(i)
        hidden = {name: count - _PRINTED_ROWS for name, count in counts.items()}
        words = "more rows in .columns and .to_dataframe()"
        return shown, [*self.notes, *(f"{n}: {k:,} {words}" for n, k in hidden.items() if k > 0)]

    def table(self) -> Table:
        """All rows."""
        return self._table(range(len(self)))

    def _table(self, rows: Sequence[int]) -> Table:
        entries = Column("entry", [self.rows[i] for i in rows], "entry")
        numbers = {name: values[list(rows)] for name, values in self.columns.items()}
        return Table(
            "", [entries, *(Column(n, x, n, partial(_cell, n)) for n, x in numbers.items())]
        )

    def _repr_html_(self) -> str:
        shown, notes = self._shown()
        return joined(self._table(shown).html(), paragraphs(notes))

    def __repr__(self) -> str:
        shown, notes = self._shown()
        return "\n".join([self._table(shown).text(), *(f"({note})" for note in notes)])


def _cell(column: str, value: float) -> str:
    if np.isnan(value):
        return "-"
    if column.startswith("ess"):
        return f"{value:.0f}"
    return f"{value:.3f}" if column == "r_hat" else f"{value:.4g}"
