"""Held-out scores of models that were given the same processor time.

Sweeps of different models cost differently, and elapsed time depends on what else the machine does.
So each chain runs in one thread until it has used a given processor time, which includes its start
but not its scoring. The draws of the last part of that time are averaged.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from pgmult.compiled.rows import row_threads
from pgmult.core.machine import as_cores
from pgmult.core.typing import Model, data_of
from pgmult.sampling.chains import Sweep
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.scores.completion import CompletionScore, DocumentCompletion


class TimedScore(NamedTuple):
    """How well a model predicts after some seconds.

    Attributes
    ----------
    seconds : float
        Of a processor, for each chain.
    sweeps : tuple of int
        That each chain made in them.
    score : CompletionScore
        Over the draws of the last part of the seconds, of all chains together.
    """

    seconds: float
    sweeps: tuple[int, ...]
    score: CompletionScore


def completion_by_seconds(
    model: Model[Any, Any],
    data: Any,
    held_out: Corpus,
    seconds: Sequence[float],
    *,
    chains: int = 1,
    burn_in: float = 0.5,
    every: int = 1,
    cores: int | None = None,
    random_seed: int = 0,
) -> list[TimedScore]:
    """Run chains for some seconds of a processor each, and score held-out tokens on the way.

    Parameters
    ----------
    model : Model
    data : object
        The training corpus, or what the model takes.
    held_out : Corpus
        Tokens to score; row d belongs to the document in row d of the training corpus.
    seconds : sequence of float
        Ascending: at each of them, the score over draws made since `burn_in` of it.
    chains : int
    burn_in : float from 0 to 0.99
        Share of the seconds whose draws are left out.
    every : int
        Sweeps from one score to the next. The time of scoring does not count.
    cores : int, optional
        Chains that run at a time; all processors if left out.
    random_seed : int

    Returns
    -------
    list of TimedScore
        Of the marks at which every chain had a draw. Seconds depend on the machine, and so do
        scores. What compiles on the way counts: run a model on a small corpus first.
    """
    marks = list(seconds)
    seeds = np.random.SeedSequence(random_seed).spawn(chains)
    data = data_of(model, data)
    windows = [DocumentCompletion(held_out, every=1) for _ in marks]
    sweeps = [[0] * chains for _ in marks]

    def run(chain: int) -> None:
        rng = np.random.default_rng(seeds[chain])
        passed, count = 0.0, 0
        with row_threads(1):
            began = time.thread_time()
            state = model.init(rng, data)
            passed = time.thread_time() - began
            while passed < marks[-1]:
                began = time.thread_time()
                state = model.step(rng, state, data)
                passed += time.thread_time() - began
                count += 1
                for place, (mark, window) in enumerate(zip(marks, windows, strict=True)):
                    if passed <= mark:
                        sweeps[place][chain] = count
                    if count % every == 0 and burn_in * mark < passed <= mark:
                        window(Sweep(chain, count, False, state, model, data))

    with ThreadPoolExecutor(min(chains, as_cores(cores))) as pool:
        list(pool.map(run, range(chains)))
    return [
        TimedScore(mark, tuple(made), window.score())
        for mark, made, window in zip(marks, sweeps, windows, strict=True)
        if window.num_chains == chains
    ]
