r"""Baselines for topic models: latent Dirichlet allocation, and frequencies of words.

A word that is left out of a document changes which topics the others are of, more than importance
sampling over draws given everything can undo. So a tenth of the words of some documents is held out
of a second, short run of the model, and of one of LDA with as many topics and sweeps, both from
starts of their own, and predicted from the rest
(`pgmult.topics.scores.completion.DocumentCompletion`). The run itself has seen all words.
"""

import warnings
from typing import Any

import numpy as np

from pgmult.core.arguments import as_seed
from pgmult.core.comparison import Comparison
from pgmult.core.scores import Score
from pgmult.sampling.diagnostics import ConvergenceWarning
from pgmult.sampling.driver import sample
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import Corpus, split_tokens
from pgmult.topics.models.lda import LDA
from pgmult.topics.scores.completion import DocumentCompletion, unigram_log_predictive

_CHAINS = 2  # of the short runs
_FEWEST, _MOST, _SHARE = 60, 200, 0.04  # their sweeps, and of those of the run
_SEEN, _DOCUMENTS = 0.9, 1000  # of a document, and how many lose the rest
_MOST_TOKENS = 2_000_000  # of the short runs
_FREQUENCIES, _LDA = "word frequencies", "LDA"
_ADVICE = {
    _FREQUENCIES: "say which words are frequent: these texts show no topics to this model",
    _LDA: "take pgmult.topics.LDA, which is simpler, if words are to be predicted",
}


def compare_with_rivals(run: Posterior, *, random_seed: int = 0) -> Comparison:
    """Does a topic model predict words better than LDA and word frequencies do?

    Parameters
    ----------
    run : Posterior
        That knows its model and its data.
    random_seed : int
        Of the choice and of the short runs.

    Raises
    ------
    ValueError
        If no document has ten words.
    """
    seed = as_seed(random_seed)
    data: Corpus = run.data
    if data.num_tokens > _MOST_TOKENS:  # then some documents, at random
        size = max(1, int(data.num_documents * _MOST_TOKENS / data.num_tokens))
        shuffled = np.random.default_rng(seed).permutation(data.num_documents)
        data = data[np.sort(shuffled[:size])]
    several = np.flatnonzero(data.totals >= 10)
    if not len(several):
        raise ValueError("there must be a document of ten words or more to hold some out of it")
    rows = np.random.default_rng(seed).permutation(several)[:_DOCUMENTS].tolist()
    training, held_out = split_tokens(data, rows, _SEEN, random_seed=seed)
    sweeps = _sweeps(run)
    scores: dict[str, Score] = {"the model": _second(run.model, training, held_out, sweeps, seed)}
    scores[_FREQUENCIES] = unigram_log_predictive(training, held_out)
    if not isinstance(run.model, LDA):
        lda, plain = LDA(run.model.num_topics), training.bare
        scores[_LDA] = _second(lda, plain, held_out.bare, sweeps, seed)
    words = f"A tenth of the words of {len(rows):,} documents, {held_out.num_tokens:,} in all,"
    short = f"was held out of short second runs, {_CHAINS} chains of {sweeps} sweeps each"
    how = f"{words} {short}, and predicted from the rest; the run itself has seen all words."
    return Comparison.of(scores, "a word", how, _ADVICE)


def _sweeps(run: Posterior) -> int:
    """Draws and sweeps of a short chain: a small share of those of the run."""
    attrs = run.attrs
    made = attrs.get("tune", 0) + attrs.get("draws", run.num_draws) * attrs.get("thin", 1)
    return int(np.clip(_SHARE * run.num_chains * made, _FEWEST, _MOST))


def _second(model: Any, training: Corpus, held_out: Corpus, sweeps: int, seed: int) -> Score:
    """Score a short run on held-out words, averaged over its last third."""
    score, draws = DocumentCompletion(held_out, every=2), sweeps // 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        sample(
            model, training, keep=(), draws=draws, tune=sweeps - draws, chains=_CHAINS,
            random_seed=seed, progressbar=False, callback=score,
        )  # fmt: skip
    return score.score()
