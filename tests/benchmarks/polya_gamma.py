"""Pólya-gamma draws beside polyagamma's: right or wrong, and how fast.

Run from the repository's root, with the package polyagamma installed::

    python -m tests.benchmarks.polya_gamma correctness [--size 2000000]
    python -m tests.benchmarks.polya_gamma speed [--repeats 7]
    python -m tests.benchmarks.polya_gamma threads

`correctness` prints, for each (b, c), z-scores of the mean and the variance and the
Kolmogorov-Smirnov p-value; `speed` nanoseconds a draw on one thread, all samplers in turn for each
cell, the best of the repeats; `threads` the speed-up of two threads. The share of these draws in a
topic model's sweep is part of ``tests/benchmarks/topics.py parts``.

polyagamma 2.0.2 is wrong where b < 4 is not an integer (mean by 1 %, variance by 5 %), for
4 < b < 10 (variance by 1 %), for 10 <= b <= 50 with abs(c) > 25 (2.75 times the mean) and for
abs(c) > 150; above b = 50 it draws a normal variable. pypolyagamma has nearly no variance where
13 < b <= 170 and b abs(c) > 710, and draws a normal variable above b = 170.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from polyagamma import random_polyagamma

from pgmult import polya_gamma
from pgmult.compiled.rows import row_threads
from tests.oracle.polya_gamma import discrepancies

SHAPES = (1, 2, 3, 5, 10, 20, 50, 100, 1000, 10_000, 0.5, 3.7)
TILTS = (0.0, 0.1, 1.0, 3.0, 10.0, 50.0)
MORE_SHAPES = (4, 8, 9, 170, 171, 7000, 10**6, 0.05, 0.95, 1.3, 2.01, 7.9)

Sampler = Callable[[np.random.Generator, np.ndarray, np.ndarray], np.ndarray]


def ours(rng, b, c):
    return polya_gamma.sample(rng, b, c)


def theirs(rng, b, c):
    return random_polyagamma(b, c, random_state=rng)


def their_devroye(rng, b, c):
    return random_polyagamma(b, c, method="devroye", random_state=rng)


SAMPLERS: dict[str, Sampler] = {"pgmult": ours, "polyagamma": theirs, "devroye": their_devroye}


def applies(name: str, b: float) -> bool:
    """Whether a sampler takes b at a bearable cost: devroye's is proportional to it."""
    return name != "devroye" or (b == int(b) and b <= 1000)


def correctness(size: int) -> None:
    rng = np.random.default_rng(1)
    print(f"{size} draws a cell: z of the mean, z of the variance, p of the distance")
    print(f"{'b':>9} {'c':>5}  " + "  ".join(f"{name:^26}" for name in SAMPLERS))
    scores: dict[str, list[tuple[float, float, float]]] = {name: [] for name in SAMPLERS}
    for b in SHAPES + MORE_SHAPES:
        for c in TILTS:
            cells = []
            for name, sampler in SAMPLERS.items():
                if not applies(name, b) or (name == "devroye" and b > 20):
                    cells.append(f"{'-':^26}")
                    continue
                draws = sampler(rng, np.full(size, float(b)), np.full(size, c))
                score = discrepancies(draws, float(b), c)
                scores[name].append(score)
                cells.append(f"{score[0]:9.3g} {score[1]:9.3g} {score[2]:6.3f}")
            print(f"{b:>9g} {c:>5g}  " + "  ".join(cells), flush=True)
    for name, rows in scores.items():
        z_mean, z_var, p = np.array(rows).T
        print(
            f"{name}: {len(rows)} cells; |z| > 3 for {np.mean(np.abs(z_mean) > 3):.3f} of the means"
            f" and {np.mean(np.abs(z_var) > 3):.3f} of the variances (chance 0.003);"
            f" p < 0.01 for {np.mean(p < 0.01):.3f} (chance 0.010); smallest p {p.min():.2g}"
        )


def nanoseconds(sampler: Sampler, b: float, c: float, size: int) -> float:
    rng = np.random.default_rng(2)
    shapes, tilts = np.full(size, float(b)), np.full(size, c)
    start = time.perf_counter()
    sampler(rng, shapes, tilts)
    return (time.perf_counter() - start) / size * 1e9


def speed(repeats: int) -> None:
    print("nanoseconds a draw, one thread: pgmult / polyagamma / polyagamma's devroye")
    print(f"{'b':>7} " + " ".join(f"{f'c = {c:g}':^21}" for c in TILTS))
    for b in SHAPES:
        cells = []
        for c in TILTS:
            best = dict.fromkeys(SAMPLERS, np.inf)
            for _ in range(repeats):
                for name, sampler in SAMPLERS.items():
                    if applies(name, b):
                        size = 100_000 if name == "pgmult" else max(500, int(20_000 / max(b, 1)))
                        best[name] = min(best[name], nanoseconds(sampler, b, c, size))
            cells.append(" / ".join(f"{t:.0f}" if t < np.inf else "-" for t in best.values()))
        print(f"{b:>7g} " + " ".join(f"{cell:^21}" for cell in cells), flush=True)


def threads(repeats: int) -> None:
    print("speed-up of two threads, 2 million draws: best of the repeats")
    for b, c in [(1, 1.0), (3, 1.0), (20, 1.0), (10, 10.0), (10_000, 1.0), (3.7, 1.0)]:
        best = [np.inf, np.inf]
        for _ in range(repeats):
            for count in (1, 2):
                with row_threads(count):
                    best[count - 1] = min(best[count - 1], nanoseconds(ours, b, c, 2_000_000))
        print(
            f"b = {b:g}, c = {c:g}: {best[0]:.1f} ns and {best[1]:.1f} ns, {best[0] / best[1]:.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=["correctness", "speed", "threads"])
    parser.add_argument("--size", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.table == "correctness":
        correctness(arguments.size)
    elif arguments.table == "speed":
        speed(arguments.repeats)
    else:
        threads(arguments.repeats)


if __name__ == "__main__":
    main()
