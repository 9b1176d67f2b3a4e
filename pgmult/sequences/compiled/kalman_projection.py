"""Potentials of states from diagonal potentials of what is linear in them.

With psi = offset + C x, the potential sum_k (-J_k psi_k**2 / 2 + h_k psi_k) of a step is, in x,

    precision  sum_k J_k c_k c_k'    and linear term    sum_k (h_k - J_k offset_k) c_k,

c_k the rows of C. All steps together make two matrix products, of J with the packed outer products
c_k c_k' and of h - J offset with C. Tiles of eight steps by sixteen columns stay in registers.
"""

import numpy as np

from pgmult.compiled.jit import jit
from pgmult.compiled.simd import WIDTH, add_product, load, splat, store

TILE = 8  # steps
_PANEL = 2 * WIDTH  # columns


@jit
def _panels(table):
    """A table ``(n, m)`` cut into panels of columns, row after row of each, zeros beyond m."""
    n, m = table.shape
    out = np.zeros((m + _PANEL - 1) // _PANEL * n * _PANEL)
    for k in range(n):
        for j in range(m):
            out[(j // _PANEL * n + k) * _PANEL + j % _PANEL] = table[k, j]
    return out


@jit
def _tile(w0, w1, w2, w3, w4, w5, w6, w7, panels, panel, out):
    """Eight rows of weights times one panel; `out` is (8, 16), flat."""
    n = len(w0)
    x00, x01, x10, x11 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    x20, x21, x30, x31 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    x40, x41, x50, x51 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    x60, x61, x70, x71 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    place = panel * n * _PANEL
    for k in range(n):
        left, right = load(panels, place), load(panels, place + WIDTH)
        place += _PANEL
        w = splat(w0[k])
        x00, x01 = add_product(x00, w, left), add_product(x01, w, right)
        w = splat(w1[k])
        x10, x11 = add_product(x10, w, left), add_product(x11, w, right)
        w = splat(w2[k])
        x20, x21 = add_product(x20, w, left), add_product(x21, w, right)
        w = splat(w3[k])
        x30, x31 = add_product(x30, w, left), add_product(x31, w, right)
        w = splat(w4[k])
        x40, x41 = add_product(x40, w, left), add_product(x41, w, right)
        w = splat(w5[k])
        x50, x51 = add_product(x50, w, left), add_product(x51, w, right)
        w = splat(w6[k])
        x60, x61 = add_product(x60, w, left), add_product(x61, w, right)
        w = splat(w7[k])
        x70, x71 = add_product(x70, w, left), add_product(x71, w, right)
    store(out, 0 * WIDTH, x00)
    store(out, 1 * WIDTH, x01)
    store(out, 2 * WIDTH, x10)
    store(out, 3 * WIDTH, x11)
    store(out, 4 * WIDTH, x20)
    store(out, 5 * WIDTH, x21)
    store(out, 6 * WIDTH, x30)
    store(out, 7 * WIDTH, x31)
    store(out, 8 * WIDTH, x40)
    store(out, 9 * WIDTH, x41)
    store(out, 10 * WIDTH, x50)
    store(out, 11 * WIDTH, x51)
    store(out, 12 * WIDTH, x60)
    store(out, 13 * WIDTH, x61)
    store(out, 14 * WIDTH, x70)
    store(out, 15 * WIDTH, x71)


@jit
def project_potentials(worker, start, stop, J, h, loadings, offset, precision, linear):
    """Fill `precision`, ``(num_steps, D, D)``, and `linear`, ``(num_steps, D)``.

    A piece is a range of tiles of eight steps.
    """
    n, D = loadings.shape
    num_steps = len(linear)
    pairs = D * (D + 1) // 2
    table = np.empty((n, pairs))
    for k in range(n):
        column = 0
        for i in range(D):
            for j in range(i + 1):
                table[k, column] = loadings[k, i] * loadings[k, j]
                column += 1
    products, rows = _panels(table), _panels(loadings)
    pulls = np.zeros((TILE, n))
    block = np.empty(TILE * _PANEL)
    packed = np.empty((TILE, (pairs + _PANEL - 1) // _PANEL * _PANEL))
    for tile in range(start, stop):
        first = tile * TILE
        width = min(TILE, num_steps - first)
        # a short tile repeats its last step
        w0, w1 = J[first], J[first + min(1, width - 1)]
        w2, w3 = J[first + min(2, width - 1)], J[first + min(3, width - 1)]
        w4, w5 = J[first + min(4, width - 1)], J[first + min(5, width - 1)]
        w6, w7 = J[first + min(6, width - 1)], J[first + min(7, width - 1)]
        for panel in range(packed.shape[1] // _PANEL):
            _tile(w0, w1, w2, w3, w4, w5, w6, w7, products, panel, block)
            for r in range(width):
                for c in range(_PANEL):
                    packed[r, panel * _PANEL + c] = block[r * _PANEL + c]
        for r in range(width):
            column = 0
            for i in range(D):
                for j in range(i + 1):
                    precision[first + r, i, j] = packed[r, column]
                    precision[first + r, j, i] = packed[r, column]
                    column += 1
            for k in range(n):
                pulls[r, k] = h[first + r, k] - J[first + r, k] * offset[k]
        for panel in range((D + _PANEL - 1) // _PANEL):
            _tile(
                pulls[0], pulls[1], pulls[2], pulls[3], pulls[4], pulls[5], pulls[6], pulls[7],
                rows, panel, block,
            )  # fmt: skip
            for r in range(width):
                for c in range(panel * _PANEL, min(D, (panel + 1) * _PANEL)):
                    linear[first + r, c] = block[r * _PANEL + c - panel * _PANEL]
    return 0
