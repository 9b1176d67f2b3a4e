"""Held-out scores of topic models, each named by its method.

*Document completion* (Wallach et al. 2009, section 5.1): some tokens of a test document join the
training corpus, the others are scored by p(w) = sum_k theta_k topics_kw averaged over posterior
draws. Both halves see the same theta, so no second inference is needed and models of any kind are
compared on the same tokens, paired by document.

A draw of theta and topics is noisier than their mean given the topics z of all tokens, and a chain
that draws them should not score worse than one that integrates them out. Given z they are
independent, so every state of a chain is scored by

    p(w | z) = sum_k E[theta_k | z] E[topics_kw | z]

whatever the model: exactly where these means are known (Dirichlet), else by `INNER` draws of theta
of the scored documents alone. Words that drift over time are taken as drawn.

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(0.5, size=(20, 30))
>>> corpus = pgmult.topics.as_corpus(counts)
>>> training, held_out = pgmult.topics.split_tokens(corpus, documents=5)
>>> completion = pgmult.topics.scores.DocumentCompletion(held_out)
>>> posterior = pgmult.sample(
...     pgmult.topics.CorrelatedTopics(num_topics=3), training, draws=10, tune=10, chains=1,
...     random_seed=0, progressbar=False, callback=completion,
... )
>>> bool(completion.log_predictive < 0)
True
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pgmult.core.arguments import as_kind, brief
from pgmult.core.scores import Score, mean_by_token
from pgmult.core.typing import FloatArray, Generator, variable
from pgmult.core.validate import as_nonnegative, as_positive_int
from pgmult.topics.data.corpus import Corpus
from pgmult.topics.updates.allocation import AllocatedTopics, word_probs

if TYPE_CHECKING:
    from pgmult.sampling.chains import Sweep

INNER = 16
"""Draws of theta given the tokens' topics, at most, where their mean is not known."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class CompletionScore(Score):
    """Log probabilities of held-out tokens, by document: see `pgmult.core.scores.Score`.

    Attributes
    ----------
    num_draws : int
        Posterior draws averaged over.
    """

    num_draws: int = 1

    @property
    def log_predictive(self) -> float:
        """Mean log probability of a token, nats."""
        return self.mean

    @property
    def standard_error(self) -> float:
        """Standard error of `log_predictive` over documents; compare models by `gain_over`."""
        return mean_by_token(self.by_unit, self.totals)[1]

    @property
    def chains(self) -> FloatArray:
        """`log_predictive` of each chain, ``(num_chains,)``.

        Averaging chains predicts better than most chains do where their modes differ.
        """
        sums = self.by_unit[None] if self.by_chain is None else self.by_chain
        return np.asarray(sums.sum(axis=1) / self.totals.sum())

    def __str__(self) -> str:
        return f"{self.log_predictive:.3f} ± {self.standard_error:.3f} nats a token"

    __repr__ = __str__


def _check_tokens(held_out: Corpus, name: str = "held_out") -> None:
    as_kind(held_out, name, Corpus, "make one with as_corpus or split_tokens")
    if held_out.num_tokens == 0:
        raise ValueError(f"{name} has no tokens to score")


def _score(held_out: Corpus, by_chain: Sequence[FloatArray], num_draws: int) -> CompletionScore:
    """The score of each chain's mean probability of every entry, all chains counting alike."""
    sums = [_by_document(held_out, probs) for probs in by_chain]
    pooled = sums[0] if len(sums) == 1 else _by_document(held_out, np.mean(by_chain, axis=0))
    return CompletionScore(pooled, held_out.totals, np.stack(sums), num_draws=num_draws)


def _by_document(held_out: Corpus, probs: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        entries = np.concatenate([[0.0], np.cumsum(held_out.counts * np.log(probs))])
    return np.asarray(np.diff(entries[held_out.indptr]))


def completion_score(draws: Iterable[Any], held_out: Corpus) -> CompletionScore:
    """The score of given theta and topics, p(w) averaged over them.

    Parameters
    ----------
    draws : iterable of pairs of arrays
        theta, ``(num_documents, num_topics)``, of the documents of `held_out`, inferred from their
        other tokens; and topics, ``(num_topics, num_words)``. One pair of posterior means is the
        score of a variational fit.
    held_out : Corpus
        Tokens to score.

    Raises
    ------
    ValueError
        If shapes do not agree, or there is nothing to score or to score it by.
    """
    _check_tokens(held_out)
    if not isinstance(draws, Iterable) or getattr(draws, "ndim", 1) == 0:
        raise TypeError(f"draws must be pairs of theta and topics, got {brief(draws)}")
    expected = (held_out.num_documents, held_out.num_words)
    total, count = np.zeros(len(held_out.words)), 0
    for pair in draws:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise TypeError(f"draws must be pairs of theta and topics, got {brief(pair)}")
        theta, topics = (as_nonnegative(array, "an array of draws") for array in pair)
        got = f"shapes {theta.shape}, {topics.shape}"
        if theta.ndim != 2 or topics.ndim != 2:
            raise ValueError(f"draws must be matrices theta and topics, got {got}")
        if (len(theta), topics.shape[1]) != expected or theta.shape[1] != len(topics):
            raise ValueError(f"theta @ topics must be {expected} like held_out, got {got}")
        total += word_probs(held_out, theta, topics)
        count += 1
    if count == 0:
        raise ValueError("draws must hold at least one pair of theta and topics")
    return _score(held_out, [total / count], count)


class DocumentCompletion:
    """Scores held-out tokens while a chain runs: pass it as ``callback=`` of `pgmult.sample`.

    Parameters
    ----------
    held_out : Corpus
        Tokens to score; row d belongs to the document in row d of the training corpus.
    every : int
        Sweeps from one average to the next, after tuning.

    Raises
    ------
    ValueError
        If `held_out` has no tokens, or on the first call if its shape is not the training corpus's.
    """

    def __init__(self, held_out: Corpus, *, every: int = 5) -> None:
        _check_tokens(held_out)
        self.held_out = held_out
        self.every = as_positive_int(every, "every")
        self._rows = np.flatnonzero(held_out.totals)
        self._filled = held_out[self._rows]
        self._sums: dict[int, FloatArray] = {}
        self._draws: dict[int, int] = {}

    def __call__(self, sweep: "Sweep") -> None:
        """Add one state of a chain to the average."""
        if sweep.tuning or sweep.index % self.every:
            return
        data = sweep.data
        expected = (data.num_documents, data.num_words)
        got = (self.held_out.num_documents, self.held_out.num_words)
        if got != expected:
            raise ValueError(f"held_out must be {expected} like the training data, got {got}")
        count = self._draws.get(sweep.chain, 0)
        probs = self._predicted(sweep, np.random.default_rng([sweep.chain, count]))
        self._sums[sweep.chain] = self._sums.get(sweep.chain, 0.0) + probs
        self._draws[sweep.chain] = count + 1

    def _predicted(self, sweep: "Sweep", rng: Generator) -> FloatArray:
        """The probability of each entry's word given the topics of all tokens."""
        model, state, data = sweep.model, sweep.state, sweep.data
        rows, held_out = self._rows, self._filled
        if not isinstance(model, AllocatedTopics):  # of another library
            theta = variable(model, state, data, "theta")[rows]
            return word_probs(held_out, theta, variable(model, state, data, "topics"))
        draws = min(INNER, max(1, data.num_documents // len(rows)))  # no more than a sweep's
        theta = model.mean_theta(rng, state, data, rows, draws)
        topics = model.mean_topics(state, data)
        if topics.shape[1] != data.num_words:  # of several versions
            held_out = data[rows].by_version(held_out)
        return word_probs(held_out, theta, topics)

    def score(self, chain: int | None = None) -> CompletionScore:
        """The score over all chains' draws, or those of one, given by its number from 1."""
        chains = sorted(self._sums)
        if chains and chain is not None:
            chains = [as_positive_int(chain, "chain", maximum=max(chains) + 1) - 1]
        if not chains or chains[0] not in self._sums:
            raise ValueError(f"no draws yet: every={self.every} counts what follows tuning")
        draws = sum(self._draws[c] for c in chains)
        return _score(self.held_out, [self._sums[c] / self._draws[c] for c in chains], draws)

    @property
    def num_chains(self) -> int:
        """Chains that have a draw."""
        return len(self._sums)

    @property
    def num_draws(self) -> int:
        """Draws averaged over so far, all chains together."""
        return sum(self._draws.values())

    @property
    def log_predictive(self) -> float:
        """Mean log probability of a held-out token, nats, over all chains' draws."""
        return self.score().log_predictive


def unigram_log_predictive(training: Corpus, held_out: Corpus) -> CompletionScore:
    """The score of one word distribution for all documents: training frequencies plus one."""
    as_kind(training, "training", Corpus, "make one with as_corpus or split_tokens")
    _check_tokens(held_out)
    size = training.num_words
    if size != held_out.num_words:
        raise ValueError(f"held_out must have the {size} words of training, got {held_out!r}")
    frequencies = np.bincount(training.words, training.counts, minlength=size) + 1.0
    return _score(held_out, [(frequencies / frequencies.sum())[held_out.words]], 1)
