"""Algorithms of Gaussian fields: named by the user, or chosen and logged.

============================  ===================================  ================================
structure                     covariance                           a draw of one column costs
============================  ===================================  ================================
``"dense"``                   any                                  O(n^3)
``"state_space"``             Matérn and white of one input, sums  O(n)
                              of them
``"separable"``               a product of functions of different  O(rows * columns *
                              inputs, plus `White` of all inputs   (rows + columns))
                              (overdispersion)
``"auto"``                    dense where inputs are few, else separable where they are most cells
                              of a table, else the state space if it fits, else dense
============================  ===================================  ================================

All are exact: they draw from the same distribution. A separable field has its own sampler, for the
inputs as cells of a table (`pgmult.fields.updates.table_sticks`); the others are made here.
"""

import logging
from functools import cache
from typing import Literal

from pgmult.core.typing import FloatArray
from pgmult.fields.covariances import Covariance
from pgmult.fields.priors.dense import GaussianProcess
from pgmult.fields.priors.field import Field
from pgmult.fields.priors.separable import CellTable
from pgmult.fields.priors.state_space import StateSpaceProcess

Structure = Literal["dense", "state_space", "separable", "auto"]

_log = logging.getLogger("pgmult")
DENSE = 500  # inputs for which a dense draw takes milliseconds; "auto" takes it up to here
_SPARSEST = 2  # cells of a table for each input
_LARGEST_DENSE = 5000  # for which a column's matrix takes 200 MB


def make_field(structure: Structure, covariance: Covariance, inputs: FloatArray) -> Field:
    """A Gaussian field by the named structure.

    Parameters
    ----------
    structure : str
        "dense", "state_space" or "auto", which takes one that fits and logs which and why.
    covariance : Covariance
    inputs : array, ``(n, num_input_columns)``

    Raises
    ------
    ValueError
        If the structure does not fit the covariance and the inputs.
    """
    if structure == "auto":
        structure, why = _chosen(covariance, inputs)
        _log_choice(f"structure='auto' took {structure!r}: {why}")
    kinds = {"dense": GaussianProcess, "state_space": StateSpaceProcess}
    return kinds[structure](covariance, inputs)


def _chosen(covariance: Covariance, inputs: FloatArray) -> tuple[Structure, str]:
    """The structure that fits, and why."""
    n = len(inputs)
    if n <= DENSE:
        return "dense", f"{n} inputs are few"
    try:
        StateSpaceProcess(covariance, inputs)
    except ValueError as refusal:
        if n > _LARGEST_DENSE:
            raise ValueError(
                f"no structure fits {n} inputs (separable: most cells of a table, and a product of"
                f" functions of its sides; state_space: {refusal}); name structure='dense', which"
                " takes 8 n^2 bytes a thread and O(n^3) time a column"
            ) from None
        return "dense", f"state_space: {refusal}"
    return "state_space", "it is exact for this covariance"


def find_table(structure: Structure, covariance: Covariance, sites: FloatArray) -> CellTable | None:
    """The table of distinct inputs where the structure is a separable one; None where it is not.

    Raises
    ------
    ValueError
        If the structure is named and does not fit.
    """
    if structure == "separable":
        return CellTable.of(covariance, sites)
    if structure != "auto" or len(sites) <= DENSE:
        return None
    try:
        table = CellTable.of(covariance, sites)
    except ValueError as refusal:
        _log_choice(f"structure='auto' did not take 'separable': {refusal}")
        return None
    if len(table.sites) > _SPARSEST * len(sites):
        return None
    _log_choice("structure='auto' took 'separable': the inputs are cells of a table")
    return table


@cache
def _log_choice(choice: str) -> None:
    """Once a process: a sampler makes the same choice in every sweep."""
    _log.info(choice)
