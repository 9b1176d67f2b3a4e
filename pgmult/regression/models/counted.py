"""What regressions of counted rows share: their data, and the rows' probabilities."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from pgmult.core.typing import FloatArray, ObservedRows
from pgmult.regression.data import CountedRows, as_counted_rows, require_counted_rows

__all__ = ["CountedModel"]


class CountedModel(ABC):
    """A link of predictors that are linear in the covariates."""

    __slots__ = ()

    @abstractmethod
    def link(self, data: CountedRows) -> Any:
        """The link from predictors to probabilities."""

    @abstractmethod
    def predictors(self, weights: FloatArray, data: CountedRows) -> FloatArray:
        """Of all rows, ``(num_rows, num_outputs)``."""

    def as_data(self, data: Any) -> CountedRows:
        """Counted rows, or (covariates, outcomes) as `as_counted_rows` takes them."""
        if isinstance(data, tuple) and len(data) == 2:
            return as_counted_rows(*data)
        return require_counted_rows(data)

    def probs(self, state: Any, data: CountedRows) -> FloatArray:
        """Probabilities of the categories in each row, ``(num_rows, num_categories)``."""
        probs: FloatArray = self.link(data).probs(self.predictors(state.weights, data))
        return probs

    def observed_rows(self, data: CountedRows) -> ObservedRows:
        """The counts.

        Raises
        ------
        ValueError
            If rows have weights that are not whole.
        """
        return data.observed()

    def row_probs(self, draw: Mapping[str, Any], data: CountedRows) -> FloatArray:
        """Of ``weights``."""
        if "weights" not in draw:
            raise ValueError("the posterior must have kept weights (keep=)")
        probs: FloatArray = self.link(data).probs(self.predictors(draw["weights"], data))
        return probs
