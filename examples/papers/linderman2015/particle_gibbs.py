r"""States given everything else by particle Gibbs with ancestor sampling.

For linear Gaussian states seen through a link (`pgmult.sequences.priors.state_space`). A
conditional particle filter keeps the present path as one of its particles; a new path is drawn from
its particles and their ancestors, and where ancestors are drawn again the present path is offered
new ones as well. That leaves the law of the states given the data and the parameters invariant for
any number of particles (Andrieu, Doucet and Holenstein 2010; Lindsten, Jordan and Schön 2014,
"Particle Gibbs with ancestor sampling", algorithm 2).

Of many steps the earlier ones would seldom move: paths coalesce, and with ten state dimensions no
particle but the old path's own ancestor is likely to have led to its next state. So sequences are
cut into blocks at random places, and every other block moves given the states around it (Singh,
Lindsten and Moulines 2017, "Blocking strategies and stability of particle Gibbs samplers"), by
particles that look ahead to the block's end: see `compiled.particle_blocks`. Their
weights are nearly equal, so a new path is nearly an independent draw of a block.
"""

import numpy as np

from examples.papers.linderman2015.compiled import particle_blocks
from pgmult.compiled.rows import over_rows
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.core.validate import new_key
from pgmult.priors.gaussian import lower_cholesky
from pgmult.sequences.compiled.particles import Parameters, ParticleSteps
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.priors.state_space import StateSpaceDraw

_BLIND_SHARE = 0.05  # of particles that follow the transition alone, whatever is seen


def sample_paths(
    rng: np.random.Generator,
    draw: StateSpaceDraw,
    data: Sequences,
    states: FloatArray,
    num_particles: int,
    block_length: int = 20,
) -> tuple[FloatArray, FloatArray]:
    """One update of every sequence's path.

    Parameters
    ----------
    rng : numpy.random.Generator
    draw : StateSpaceDraw
        The parameters.
    data : Sequences
    states : array, ``(num_steps, D)``
        Where the chain is.
    num_particles : int
        >= 2, the present path included: about 1 / num_particles of the blocks stay.
    block_length : int
        Steps of a block; where blocks begin is random. Sequences that are shorter are one or two.

    Returns
    -------
    states : array, ``(num_steps, D)``
    moved : array, ``(num_sequences,)``
        The share of each sequence's steps at which the new path is not the old one.

    Raises
    ------
    ValueError
        If the states and the data do not agree in shape.
    FloatingPointError
        If no particle has a finite weight.

    Notes
    -----
    O(num_particles D (K + D) + D**2 (K + D)) per step. Every other block runs on all the threads of
    the enclosing chain, then the ones between.
    """
    shape = (data.num_steps, draw.state_dim)
    if states.shape != shape:
        raise ValueError(f"states must have shape {shape}, got {states.shape}")
    steps, parameters = _arrays(draw, data)
    new = np.array(states)
    share = np.zeros(data.num_sequences)
    shift = int(rng.integers(block_length))
    starts, stops, sequences, odd = _blocks(data, block_length, shift)
    for chosen in (~odd, odd):
        moved = np.zeros(np.count_nonzero(chosen))
        statuses = over_rows(
            particle_blocks.conditional_blocks, len(moved), new_key(rng), num_particles,
            _BLIND_SHARE, starts[chosen], stops[chosen], sequences[chosen], steps, parameters, new,
            moved, grain=1,
        )  # fmt: skip
        failed = [status - 1 for status in statuses if status]
        if failed:
            raise FloatingPointError(f"no particle has a finite weight at step {min(failed)}")
        np.add.at(share, sequences[chosen], moved)
    return new, share / data.lengths


def _arrays(draw: StateSpaceDraw, data: Sequences) -> tuple[ParticleSteps, Parameters]:
    """A draw without inputs, and data, as compiled code takes them."""
    D, n = draw.state_dim, len(draw.offset)
    parameters = Parameters(
        draw.transition[None],
        lower_cholesky(draw.noise_cov)[None],
        np.tile(draw.initial_mean, (1, data.num_sequences, 1)),
        lower_cholesky(draw.initial_cov)[None],
        draw.loadings[None],
        draw.loadings.T.copy()[None],
        draw.offset[None],
        np.zeros((1, D, 0)),
        np.zeros((1, n, 0)),
    )
    entries = data.symbols.astype(np.int64), data.counts.astype(np.int64)
    steps = ParticleSteps(data.offsets, data.indptr, *entries, np.zeros((data.num_steps, 0)))
    return steps, parameters


def _blocks(
    data: Sequences, length: int, shift: int
) -> tuple[IntArray, IntArray, IntArray, BoolArray]:
    """Cut sequences into blocks: starts, stops, sequences, and whether a block's place is odd."""
    cuts = [
        np.concatenate([[low], np.arange(low + 1 + shift, high, length), [high]])
        for low, high in zip(data.offsets[:-1], data.offsets[1:], strict=True)
    ]
    counts = np.array([len(cut) - 1 for cut in cuts])
    place = np.concatenate([np.arange(count) for count in counts])
    return (
        np.concatenate([cut[:-1] for cut in cuts]),
        np.concatenate([cut[1:] for cut in cuts]),
        np.repeat(np.arange(len(cuts)), counts),
        place % 2 == 1,
    )
