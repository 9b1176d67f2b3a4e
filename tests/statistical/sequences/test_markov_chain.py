"""The sampler of Markov chains is right, and the harness refuses it when broken."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult.sequences import MarkovChain, as_sequences
from pgmult.sequences.models import markov
from pgmult.sequences.models.markov import ChainSampler, contexts_of, steps_of
from pgmult.testing import check_geweke, check_model, check_sbc, mutant, rejects

pytestmark = pytest.mark.slow

# Symbols, rows of counts and missing steps, first and last ones among them.
SEQUENCES = as_sequences(
    [
        np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 2, 3], [0, 0, 0], [2, 0, 0], [0, 1, 0]]),
        np.array([[0, 1, 0], [0, 0, 1], [0, 4, 0], [1, 0, 0]]),
        np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 0]]),
    ]
)
ONE = MarkovChain(order=1, concentration=1.5, strength_shape=3.0, strength_rate=1.0)
TWO = replace(ONE, order=2)
FORBIDDEN = replace(TWO, allowed=np.array([[1, 1, 1], [1, 0, 1], [0, 1, 1]]))


def repeats(state, data):
    """Whether symbols repeat: a statistic of the data alone."""
    table = data.to_csr().toarray()
    return float((table[1:] * table[:-1]).sum())


def kept(state, data):
    """Probability of a symbol after itself, over symbols."""
    return float(np.trace(state.rows[1:4]))


STATISTICS = {
    "no context": lambda state, data: state.rows[0],
    "rows after one": lambda state, data: state.rows[1:5],
    "rows at the end": lambda state, data: state.rows[-6:],
    "strengths": lambda state, data: np.log(state.strengths),
    "kept": kept,
    "repeats": repeats,
    "log likelihood": ONE.log_likelihood,
}


def statistics(model):
    return {**STATISTICS, "log likelihood": model.log_likelihood}


@pytest.mark.parametrize(
    "model", [ONE, TWO, FORBIDDEN], ids=["order 1", "order 2", "forbidden transitions"]
)
def test_markov_chains(model):
    check_model(model, SEQUENCES, statistics=statistics(model), replicates=400)


def test_markov_chains_reach_the_posterior():
    told = {"log likelihood": TWO.log_likelihood, "kept": kept}
    check_sbc(TWO, SEQUENCES, told, tune=10, thin=2, replicates=60)


def with_tables(tables):
    """A sweep whose tables are others."""

    def step(self, rng, state, data):
        right, markov._tables = markov._tables, tables
        try:
            return TWO.step(rng, state, data)
        finally:
            markov._tables = right

    return mutant(TWO, step=step)


def with_sampler(model=TWO, **methods):
    """A chain whose sampler has other methods."""
    return mutant(
        model, sampler=lambda self, data: type("Broken", (ChainSampler,), methods)(model, data)
    )


def forgets_what_follows(self, rng, state):
    """Missing symbols, drawn forward, without a look at the symbols after the gap."""
    filled, rows = self.data.to_csr().toarray().argmax(axis=1), state.rows[-16:]
    last = np.array([np.flatnonzero(self.data.totals[a:b]).max() + a for a, b in PAIRS])
    for (first, _), end in zip(PAIRS, last, strict=True):
        for t in range(first, end + 1):
            if self.data.totals[t] == 0:
                context = contexts_of(filled, self.data, 2)[t]
                filled[t] = rng.choice(3, p=rows[context] / rows[context].sum())
    filled[np.concatenate([np.arange(e + 1, b) for (_, b), e in zip(PAIRS, last, strict=True)])] = 3
    return filled


PAIRS = [*zip(SEQUENCES.offsets[:-1], SEQUENCES.offsets[1:], strict=True)]
CUT = np.unique(np.append(SEQUENCES.offsets, np.arange(0, 16, 2)))

BROKEN = {
    "a table for every customer": with_tables(lambda rng, taken, weight: taken),
    "one table a cell": with_tables(lambda rng, taken, weight: np.minimum(taken, 1.0)),
    "rows that forget the counts": with_sampler(
        counts=lambda self, symbols: 0.0 * ChainSampler.counts(self, symbols)
    ),
    "the prior of strengths twice": mutant(
        TWO, sampler=lambda self, data: ChainSampler(replace(TWO, strength_rate=2.0), data)
    ),
    "a shorter context than it says": with_sampler(
        counts=lambda self, symbols: ChainSampler(TWO, replace(self.data, offsets=CUT)).counts(
            symbols
        )
    ),
    "a gap that begins anew": with_sampler(
        filled=lambda self, rng, state: steps_of(self.data, 2).main
    ),
    "missing symbols without what follows": with_sampler(filled=forgets_what_follows),
    "restricted contexts that open tables": with_sampler(
        FORBIDDEN, is_restricted=lambda self, context, level: np.zeros(len(context), dtype=bool)
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_geweke_refuses_broken_markov_chains(kind):
    rejects(check_geweke, BROKEN[kind], SEQUENCES, statistics=statistics(TWO), replicates=800)
