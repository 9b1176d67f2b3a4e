"""What a question about a run returns: a table, a figure, draws, and a section of a page.

Every verb of a family (`pgmult.core.family`) that asks for numbers returns an `Answer`. A class of
answers states its `table`, its `figure` and its `draws`; the rest follows.

>>> import numpy as np
>>> from pgmult.core.estimands import Estimand
>>> shares = Estimand(np.array([[0.2, 0.8], [0.4, 0.6]]), ("name",), {"name": ["Ada", "Ben"]})
>>> isinstance(shares, Answer), shares.draws.shape, type(shares.figure()).__name__
(True, (2, 2), 'Forest')
>>> shares.section("Shares").title
'Shares'
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from pgmult.core.figures.base import Axes, Figure
from pgmult.core.reports import Section
from pgmult.core.tabled import Table
from pgmult.core.typing import FloatArray

if TYPE_CHECKING:
    from pandas import DataFrame


class Answer(ABC):
    """The answer to a question about a run; print it for its table.

    Attributes
    ----------
    draws : array, ``(num_draws, ...)``
        Posterior draws behind the numbers. Scores have the contributions of the units that their
        standard error is made of, checks the replicated statistics.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # a field of most answers, which a property would give a default

        @property
        def draws(self) -> FloatArray:
            """The draws behind the numbers, ``(num_draws, ...)``."""

    @abstractmethod
    def table(self) -> Table:
        """Return the numbers as a table."""

    def figure(self, *arguments: Any, **options: Any) -> Figure:
        """Return the figure that shows the numbers best."""
        raise NotImplementedError(f"{type(self).__name__} has no figure")

    def plot(self, axes: Axes | None = None, **options: object) -> Axes:
        """Draw the figure with matplotlib.

        Parameters
        ----------
        axes : matplotlib Axes, optional
            Axes to draw on; new ones by default.
        **options
            Options of `figure`.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        return self.figure(**options).plot(axes)

    def section(self, title: str = "", note: str = "", **options: object) -> Section:
        """Return a section of a page.

        Parameters
        ----------
        title, note : str
        **options
            Options of `figure`.
        """
        return Section(title, note, table=self.table(), figures=[self.figure(**options)])

    def to_dataframe(self) -> "DataFrame":
        """Return the numbers of the table as a pandas data frame.

        Raises
        ------
        ImportError
            If pandas is missing.
        """
        return self.table().to_dataframe()

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()
