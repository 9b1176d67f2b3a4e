"""The baseline that nothing moves: every new place has the shares of the last."""

import warnings
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from pgmult.core.arguments import as_kind
from pgmult.core.parameters import Checked, Positive, whole
from pgmult.core.typing import FloatArray, IntArray
from pgmult.fields.data import CountField, smoothed_shares

__all__ = ["Static"]


@dataclass(frozen=True, slots=True, eq=False)
class Static(Checked):
    """Each place's last observed shares, carried forward.

    Parameters
    ----------
    time : int
        The column of the inputs that is time; the others say which place it is.
    pseudo_count : float
        Added to every count, so that no probability is 0.
    """

    time: Annotated[int, whole(minimum=0)] = 0
    pseudo_count: Positive = 1.0

    def predict_probs(self, data: Any) -> FloatArray:
        """Probabilities at the new inputs, ``(num_new_inputs, K)``.

        Rows are nan where a new input's place has no counts at its time or before, with a warning
        that names them.

        Raises
        ------
        ValueError
            If no new input has any.
        """
        data = as_kind(data, "data", CountField, "make one with as_field")
        if self.time >= data.inputs.shape[1]:
            raise ValueError(
                f"time must be a column of the inputs, of which there are"
                f" {data.inputs.shape[1]}, got {self.time}"
            )
        counts = data.site_counts()
        last = np.array(
            [self._last(data.sites, counts, new) for new in data.new_inputs], dtype=np.int64
        )
        unknown = np.flatnonzero(last < 0)
        if len(unknown):
            where = data.new_inputs[unknown[0]].tolist()
            said = f"no counts at the place of the new input {where} or before its time"
            if len(unknown) == len(last):
                raise ValueError(said)
            warnings.warn(
                f"{said}, and of {len(unknown)} of {len(last)} new inputs: their rows are nan",
                stacklevel=2,
            )
        shares = smoothed_shares(counts[last], self.pseudo_count)
        shares[unknown] = np.nan
        return shares

    def _last(self, sites: FloatArray, counts: IntArray, new: FloatArray) -> int:
        """The site of the last counts at the place of a new input, or -1."""
        same = np.delete(sites == new, self.time, axis=1).all(axis=1)
        times = sites[:, self.time]
        found = np.flatnonzero(same & (times <= new[self.time]) & (counts.sum(axis=1) > 0))
        return int(found[np.argmax(times[found])]) if len(found) else -1
