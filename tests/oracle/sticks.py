"""Pólya-gamma variables of active sticks as a dense array."""

import numpy as np

from pgmult.compiled.simd import WIDTH


def dense_omega(active, omega):
    """Omega as an array ``(num_steps, num_sticks)``, zero where no observation reaches."""
    out = np.zeros((len(active.depths), active.num_sticks))
    for g in range(len(active.starts) - 1):
        steps = active.order[g * WIDTH : (g + 1) * WIDTH]
        lanes = omega[active.starts[g] * WIDTH : active.starts[g + 1] * WIDTH].reshape(-1, WIDTH)
        depth = active.depths[steps[0]]
        out[steps, :depth] = lanes[:depth, : len(steps)].T
    return out
