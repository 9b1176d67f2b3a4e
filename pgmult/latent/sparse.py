"""Sparse matrices as plain arrays, so that models, data and states can be stored and compared."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pgmult.core.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class SparseMatrix:
    """Compressed rows: row i has `values` ``[indptr[i]:indptr[i + 1]]`` at these columns.

    Attributes
    ----------
    indptr : int64 array, ``(num_rows + 1,)``
    columns : int64 array, ``(num_entries,)``
    values : array, ``(num_entries,)``
    num_columns : int
    """

    indptr: IntArray
    columns: IntArray
    values: FloatArray
    num_columns: int

    @classmethod
    def of(cls, matrix: Any) -> "SparseMatrix":
        """Convert an array or a scipy.sparse array."""
        rows = sparse.csr_array(matrix, dtype=np.float64)
        rows.sum_duplicates()
        indptr, columns = (np.asarray(x, dtype=np.int64) for x in (rows.indptr, rows.indices))
        return cls(indptr, columns, rows.data, int(rows.shape[1]))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.indptr) - 1, self.num_columns

    def array(self) -> Any:
        """A scipy.sparse array."""
        return sparse.csr_array((self.values, self.columns, self.indptr), shape=self.shape)
