r"""States given everything else by particle Gibbs with ancestor sampling.

For linear Gaussian states seen through a link (`pgmult.priors.state_space`). A conditional
particle filter keeps the present path of each sequence as one of its particles; a new path is drawn
from its particles and their ancestors. The law of the states given the data and the parameters is
left invariant for any number of particles (Andrieu, Doucet and Holenstein 2010); because the
present path is offered other ancestors at every step, in proportion to their weights times the
transition density, the new path leaves it soon with few particles (Lindsten, Jordan and Schön
2014, "Particle Gibbs with ancestor sampling", algorithm 2). Particles look ahead to the step's
counts: see `pgmult.compiled.particles`.

How much moved is the diagnostic: a step's state is new unless the path kept the old one there. Few
moves call for more particles. Noise that is small beside the states' spread makes ancestors
sticky, since few particles lie where the old path could have come from.
"""

import numpy as np

from pgmult._validate import as_positive_int, new_key
from pgmult.compiled import particles
from pgmult.compiled._rows import over_rows
from pgmult.compiled.linalg import invert_lower
from pgmult.priors.state_space import StateSpaceDraw, StateSpaceDraws, sorted_entries
from pgmult.sequences import Sequences
from pgmult.typing import FloatArray

__all__ = ["sample_paths"]

_BLIND_SHARE = 0.1  # of particles that follow the transition alone, whatever is seen


def sample_paths(
    rng: np.random.Generator,
    draw: StateSpaceDraw,
    data: Sequences,
    states: FloatArray,
    num_particles: int,
) -> tuple[FloatArray, FloatArray]:
    """One update of every sequence's path.

    Parameters
    ----------
    rng : numpy.random.Generator
    draw : StateSpaceDraw
        The parameters.
    data : Sequences
    states : array, ``(num_steps, D)``
        The present paths.
    num_particles : int
        >= 2, the present path included.

    Returns
    -------
    states : array, ``(num_steps, D)``
    moved : array, ``(num_sequences,)``
        The share of each sequence's steps at which the new path is not the old one.

    Raises
    ------
    ValueError
        If the draw, the states and the data do not agree in shape, or the draw is not a model.
    FloatingPointError
        If no particle has a finite weight.

    Notes
    -----
    O(num_particles D (K + D)) a step, with sticks K the place of the last symbol seen. Memory is
    O(num_particles D) a step of the longest sequence. Sequences run on all the threads of the
    enclosing chain.
    """
    size = as_positive_int(num_particles, "num_particles", minimum=2)
    softmax, *stacked = StateSpaceDraws.of([draw], data)
    parameters = [array[0] for array in stacked]
    shape = (data.num_steps, draw.state_dim)
    if np.shape(states) != shape:
        raise ValueError(f"states must have shape {shape}, got {np.shape(states)}")
    root = parameters[1]
    new, moved = np.empty(shape), np.empty(data.num_sequences)
    statuses = over_rows(
        particles.conditional_rows, data.num_sequences, new_key(rng), size, _BLIND_SHARE, softmax,
        data.offsets, *sorted_entries(data, draw), *parameters, invert_lower(root),
        np.ascontiguousarray(states, np.float64), new, moved, grain=1,
    )  # fmt: skip
    failed = [status - 1 for status in statuses if status]
    if failed:
        raise FloatingPointError(f"no particle has a finite weight at step {min(failed)}")
    return new, moved / data.lengths
