"""Which algorithm a Gaussian field gets: named by the user, or chosen and logged.

============================  ===================================  ================================
structure                     covariance                           a draw of one column costs
============================  ===================================  ================================
``"dense"``                   any                                  O(n^3)
``"state_space"``             Matérn or white in time, times any   O(times * places^3)
                              of the places; sums of those
``"grid"``                    any of each axis, multiplied, on     O(n * (sum of axes' lengths)) an
                              (nearly) all points of a grid        iteration of conjugate gradients
``"inducing_points"``         any, *approximated*                  O(n * points^2)
``"auto"``                    the first exact one above that fits
============================  ===================================  ================================

All but ``"inducing_points"`` are exact: they draw from the same law.
"""

import logging
import math
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, get_args

from pgmult.core.arguments import as_choice
from pgmult.core.typing import ArrayLike
from pgmult.fields.covariances import Covariance
from pgmult.fields.inputs import as_inputs
from pgmult.fields.priors.dense import GaussianProcess
from pgmult.fields.priors.field import Field
from pgmult.fields.priors.grids import GridProcess
from pgmult.fields.priors.inducing_points import InducingProcess
from pgmult.fields.priors.space_time import SpaceTimeProcess

Structure = Literal["dense", "state_space", "grid", "inducing_points", "auto"]
STRUCTURES: tuple[Structure, ...] = get_args(Structure)

_log = logging.getLogger("pgmult")
_DENSE = 500  # inputs for which a dense draw takes milliseconds
_SPARSEST = 4  # points of a grid for each input
_LARGEST_DENSE = 5000  # for which a column's matrix takes 200 MB


def make_field(
    structure: Structure, covariance: Covariance, inputs: ArrayLike, prior_mean: ArrayLike = 0.0
) -> Field:
    """A Gaussian field by the named structure.

    Parameters
    ----------
    structure : str
        See the module. ``"auto"`` takes an exact structure and logs which and why; an approximation
        is never taken unless it is named.
    covariance : Covariance
    inputs : array, ``(n, num_input_columns)``
    prior_mean : float or array, ``(n,)`` or ``(n, num_columns)``

    Raises
    ------
    ValueError
        If the structure is unknown, or does not fit the covariance and the inputs.
    """
    as_choice(structure, "structure", STRUCTURES)
    if structure == "auto":
        return _choose(covariance, inputs, prior_mean)
    field: Field = _MAKERS[structure](covariance, inputs, prior_mean)
    return field


_MAKERS: Mapping[str, Any] = {
    "dense": GaussianProcess,
    "state_space": SpaceTimeProcess,
    "grid": GridProcess,
    "inducing_points": InducingProcess,
}


def _choose(covariance: Covariance, inputs: ArrayLike, prior_mean: ArrayLike) -> Field:
    """The first exact structure that fits, cheapest first."""
    n = len(as_inputs(inputs))
    if n <= _DENSE:
        _tell(f"structure='auto' took 'dense': {n} inputs are few")
        return make_field("dense", covariance, inputs, prior_mean)
    refusals = []
    exact: tuple[Structure, ...] = ("state_space", "grid")
    for structure in exact:
        try:
            field = make_field(structure, covariance, inputs, prior_mean)
        except ValueError as refusal:
            refusals.append(f"{structure}: {refusal}")
            continue
        if isinstance(field, GridProcess) and math.prod(field.grid_shape) > _SPARSEST * n:
            refusals.append(f"grid: {n} inputs fill little of {field.grid_shape} points")
            continue
        _tell(f"structure='auto' took '{structure}': it is exact for this covariance")
        return field
    if n <= _LARGEST_DENSE:
        _tell(f"structure='auto' took 'dense': {'; '.join(refusals)}")
        return make_field("dense", covariance, inputs, prior_mean)
    raise ValueError(
        f"no exact structure fits {n} inputs ({'; '.join(refusals)}); name one: 'dense' takes"
        " 8 n^2 bytes a thread and O(n^3) time a column, 'inducing_points' approximates"
    )


@cache
def _tell(choice: str) -> None:
    """Once a process: a sampler makes the same choice in every sweep."""
    _log.info(choice)
