r"""One-step-ahead predictions of sequences by a particle filter, for given parameters.

Of a state-space model with multinomial emissions neither p(x_t | x_1, ..., x_{t-1}) nor the
filtered states have a closed form. Particles that look ahead estimate both: see
`pgmult.sequences.compiled.particles` for the proposal. The product of a sequence's predictive
probabilities is an unbiased estimate of its likelihood, so that its logarithm errs low, by about
half the variance of the estimate. Forward simulation of a single path errs much more, by the whole
spread of what it might have simulated.

>>> import numpy as np
>>> from pgmult import StickBreaking
>>> from pgmult.sequences import as_sequences
>>> from pgmult.sequences.priors.state_space import StateSpaceDraw
>>> data = as_sequences([[0, 0, 1, 1, 1]])
>>> draw = StateSpaceDraw(
...     transition=0.9 * np.eye(1), noise_cov=np.eye(1), initial_mean=np.zeros(1),
...     initial_cov=np.eye(1), loadings=np.ones((1, 1)), offset=np.zeros(1),
...     link=StickBreaking(),
... )
>>> found = particle_filter(np.random.default_rng(0), [draw], data, num_particles=2000)
>>> log_p = found.log_predictive
>>> log_p.shape, bool(abs(log_p[0, 0] - np.log(0.5)) < 0.01)
((1, 5), True)
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pgmult.compiled.rows import over_rows
from pgmult.core.arguments import as_repeats
from pgmult.core.typing import Generator
from pgmult.core.validate import keyed_generator, new_key
from pgmult.sequences.compiled import particles
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.priors.state_space import StateSpaceDraw, as_arrays

_BLIND_SHARE = 0.1  # of particles that follow the transition alone, whatever is seen


def own_keys(rng: Generator, data: Sequences) -> NDArray[np.uint64]:
    """A key of random streams for each sequence, ``(num_sequences, 2)``, by what it holds alone.

    What is found of a sequence so depends neither on the others nor on where it stands.
    """
    seed = new_key(rng).tobytes()
    keys = np.empty((data.num_sequences, 2), dtype=np.uint64)
    for q, (first, end) in enumerate(pairwise(data.offsets)):
        entries = slice(data.indptr[first], data.indptr[end])
        content = hashlib.blake2b(key=seed, digest_size=16)
        sizes = np.diff(data.indptr[first : end + 1])
        for numbers in (sizes, data.symbols[entries], data.counts[entries]):
            content.update(numbers.astype(np.int64).tobytes())
        if data.inputs is not None:  # columns of the others' groups are zero here
            inputs = data.inputs[first:end]
            content.update(np.ascontiguousarray(inputs[inputs != 0.0]).tobytes())
        keys[q] = np.frombuffer(content.digest(), dtype=np.uint64)
    return keys


def own_streams(keys: NDArray[np.uint64]) -> list[Generator]:
    """A stream of each sequence by its key; sequences of one key have one after the other.

    They have no number in common with what a key alone opens: `numpy.random.Philox` counts from 0.
    """
    copies, streams = Counter[bytes](), []
    for key in keys:
        copies[key.tobytes()] += 1
        streams.append(keyed_generator(key, [0, 0, 0, copies[key.tobytes()]]))
    return streams


def particle_filter(
    rng: Generator, draws: Sequence[StateSpaceDraw], data: Sequences, num_particles: int = 200, *,
    num_last: int = 0, num_paths: int = 0,
) -> particles.Filtered:  # fmt: skip
    """Filter every sequence under every draw.

    Random numbers of a sequence depend on it alone: see `own_keys`.

    Parameters
    ----------
    rng : numpy.random.Generator
    draws : sequence of StateSpaceDraw
        Of one link and order. `StateSpaceDraw.continued` makes sequences go on from given states.
    data : Sequences
        Symbols or counts; steps may be missing.
    num_particles : int
        >= 2.
    num_last, num_paths : int
        How many states of last steps, and paths of all states, to draw from their distributions.

    Returns
    -------
    Filtered

    Raises
    ------
    ValueError
        If draws and data do not agree in shape, or a draw is not a model.
    FloatingPointError
        If all particles are impossible or not finite: states have exploded.

    Notes
    -----
    O(num_particles D (K + D)) per step and draw; with sticks K is the place of the last symbol
    seen. Draws and sequences run on all the threads of `pgmult.compiled.rows.row_threads`, with the
    same result for any number.
    """
    size = as_repeats(num_particles, "num_particles", minimum=2)
    (steps, parameters), D = as_arrays(draws, data), draws[0].state_dim
    filtered = particles.Filtered(
        np.zeros((len(draws), data.num_steps)),
        np.empty((len(draws), data.num_sequences, num_last, D)),
        np.empty((len(draws), num_paths, data.num_steps, D)),
    )
    setting = own_keys(rng, data), size, max(1, round(_BLIND_SHARE * size)), steps, parameters
    rows = len(draws) * data.num_sequences
    statuses = over_rows(particles.filter_rows, rows, *setting, filtered, grain=1)
    if failed := [status - 1 for status in statuses if status]:
        raise FloatingPointError(
            f"no particle has a finite weight at step {min(failed)}"
            " (is the transition's largest eigenvalue far above 1?)"
        )
    return filtered
