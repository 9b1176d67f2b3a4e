"""Figures of words of topics and of traces of chains.

Results have a method ``plot``: ``effects(run, "party").plot()``.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pgmult.core.figures.base import BLUE, clean, new_figure
from pgmult.core.figures.lines import Line, Lines
from pgmult.topics.summaries.words import TopWord

if TYPE_CHECKING:
    from matplotlib.figure import Figure
else:
    Figure = Any

__all__ = ["top_word_bars", "trace"]


def top_word_bars(
    words: Sequence[Sequence[TopWord]], titles: Sequence[str] | None = None, *, num_columns: int = 4
) -> Figure:
    """A panel a topic: the probabilities of its top words, with two posterior sd each way.

    Parameters
    ----------
    words : lists of TopWord
        As from `pgmult.topics.summaries.words.top_words`.
    titles : sequence of str, optional
        One a topic; ``topic 1`` and so on by default.
    num_columns : int
    """
    num_columns = min(num_columns, len(words))
    num_rows = -(-len(words) // num_columns)
    height = 0.45 + 0.16 * max(map(len, words))
    figure = new_figure(2.4 * num_columns, height * num_rows)
    right = max(word.mean + 2.0 * word.sd for topic in words for word in topic)
    panels = figure.subplots(num_rows, num_columns, squeeze=False, sharex=True).ravel()
    for k, (axes, topic) in enumerate(zip(panels, words, strict=False)):
        places = range(len(topic))
        means = [word.mean for word in topic]
        bars = [2.0 * word.sd for word in topic]
        axes.barh(places, means, color=BLUE, height=0.72)
        axes.errorbar(means, places, xerr=bars, fmt="none", ecolor="0.25", elinewidth=0.8)
        axes.set_yticks(places, [word.word for word in topic], fontsize=7)
        axes.invert_yaxis()
        axes.set_xlim(0.0, 1.03 * right)
        axes.tick_params(axis="x", labelsize=6)
        axes.tick_params(axis="y", length=0)
        axes.set_title(titles[k] if titles is not None else f"topic {k + 1}", fontsize=8)
        clean(axes)
    for axes in panels[len(words) :]:
        axes.set_visible(False)
    return figure


def trace(log_likelihood: ArrayLike) -> Lines:
    """The log likelihood of the kept draws, a line a chain.

    Parameters
    ----------
    log_likelihood : array, ``(chain, draw)``
        As in ``posterior.sample_stats["log_likelihood"]``.
    """
    chains = np.asarray(log_likelihood, dtype=np.float64)
    if chains.ndim != 2:
        raise ValueError(f"log_likelihood must be (chain, draw), got shape {chains.shape}")
    numbers = np.arange(chains.shape[1], dtype=np.float64)
    finite = np.where(np.isfinite(chains), chains, np.nan)
    lines = [
        Line(f"chain {c}" if len(chains) > 1 else "", c - 1, numbers, values)
        for c, values in enumerate(finite, 1)
    ]
    title, what = "log likelihood of the draws", "log likelihood"
    return Lines(lines, title, "draw", y_label=what, from_zero=False)
