"""Figures of topic posteriors; the numbers come from `pgmult.topics.summaries`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pgmult.core.figures import BLUE, CYCLE, RED, clean, new_figure
from pgmult.topics.scores.selection import TopicChoice
from pgmult.topics.summaries.correlations import (
    TopicCorrelations,
    correlation_graph,
    similar_together,
)
from pgmult.topics.summaries.words import TopWord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Axes = Figure = Any

__all__ = [
    "held_out_curve",
    "log_likelihood_trace",
    "score_by_num_topics",
    "top_word_bars",
    "topic_correlation_graph",
    "topic_correlation_heatmap",
]


def topic_correlation_heatmap(
    correlations: TopicCorrelations, labels: Sequence[str], axes: Axes | None = None
) -> Axes:
    """The mean correlation matrix, similar topics side by side.

    A dot marks a cell whose interval contains zero.

    Parameters
    ----------
    correlations : TopicCorrelations
    labels : sequence of str
        One a topic.
    axes : matplotlib Axes, optional
    """
    num_topics = len(labels)
    cell = min(0.24, 14.0 / num_topics)  # inches
    if axes is None:
        side = 2.8 + cell * num_topics
        axes = new_figure(side + 0.6, side).add_subplot()
    order = similar_together(correlations)
    mean = correlations.mean[np.ix_(order, order)].copy()
    np.fill_diagonal(mean, np.nan)
    unsure = ((correlations.lower < 0.0) & (correlations.upper > 0.0))[np.ix_(order, order)]
    limit = max(0.05, float(np.nanmax(np.abs(mean), initial=0.0)))
    image = axes.imshow(mean, cmap="RdBu_r", vmin=-limit, vmax=limit)
    rows, columns = np.nonzero(unsure & ~np.isnan(mean))
    axes.plot(columns, rows, ".", color="0.45", markersize=2.5)
    names = [labels[k] for k in order]
    size = min(7.0, 50.0 * cell)  # points
    axes.set_xticks(range(num_topics), names, rotation=90, fontsize=size)
    axes.set_yticks(range(num_topics), names, fontsize=size)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    colorbar = axes.figure.colorbar(image, ax=axes, shrink=0.6)
    colorbar.ax.tick_params(labelsize=7)
    percent = round(100 * correlations.probability)
    axes.set_title(f"correlation over documents (dot: {percent} % interval contains 0)", fontsize=8)
    return axes


def topic_correlation_graph(
    correlations: TopicCorrelations,
    labels: Sequence[str],
    *,
    max_pairs: int | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Topics as points, joined where the interval of their correlation excludes zero.

    Positive correlations are red, negative ones blue and dashed; the stronger, the thicker.

    Parameters
    ----------
    correlations : TopicCorrelations
    labels : sequence of str
        One a topic.
    max_pairs : int, optional
        The strongest so many pairs of either sign are drawn; as many as topics if left out.
    axes : matplotlib Axes, optional
    """
    graph = correlation_graph(correlations, max_pairs)
    if axes is None:
        side = 4.0 + 0.5 * len(labels) ** 0.5
        axes = new_figure(1.4 * side, side).add_subplot()
    strongest = max((abs(pair.mean) for pair in graph.pairs), default=1.0)
    for pair in graph.pairs:
        x, y = graph.places[[pair.first, pair.second]].T
        strength = abs(pair.mean) / strongest
        color, style = (RED, "-") if pair.mean > 0.0 else (BLUE, (0, (3, 2)))
        axes.plot(x, y, color=color, linestyle=style, linewidth=0.3 + 3.0 * strength, alpha=0.4)
    axes.scatter(
        graph.places[:, 0], graph.places[:, 1], s=30, color="white", edgecolors="0.25", zorder=3
    )
    for label, (x, y) in zip(labels, graph.places, strict=True):
        axes.annotate(
            label, (x, y), (0, 6), textcoords="offset points", ha="center", fontsize=7, zorder=4
        )
    axes.margins(0.1)
    axes.set_axis_off()
    percent = round(100 * correlations.probability)
    axes.set_title(
        f"{len(graph.pairs)} of {graph.num_sure} correlations whose {percent} % interval excludes"
        " 0, the strongest of each sign",
        fontsize=8,
    )
    return axes


def top_word_bars(
    words: Sequence[Sequence[TopWord]],
    titles: Sequence[str] | None = None,
    *,
    num_columns: int = 4,
) -> Figure:
    """A panel a topic: the probabilities of its top words, with two posterior sd each way.

    Parameters
    ----------
    words : lists of TopWord
        As from `pgmult.topics.summaries.words.top_words`.
    titles : sequence of str, optional
        One a topic; ``topic 0`` and so on by default.
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
        axes.set_title(titles[k] if titles is not None else f"topic {k}", fontsize=8)
        clean(axes)
    for axes in panels[len(words) :]:
        axes.set_visible(False)
    return figure


def log_likelihood_trace(log_likelihood: ArrayLike, axes: Axes | None = None) -> Axes:
    """The log likelihood of the kept draws, a line a chain.

    Parameters
    ----------
    log_likelihood : array, ``(chain, draw)``
        As in ``posterior.sample_stats["log_likelihood"]``.
    axes : matplotlib Axes, optional
    """
    chains = np.asarray(log_likelihood)
    if chains.ndim != 2:
        raise ValueError(f"log_likelihood must be (chain, draw), got shape {chains.shape}")
    axes = new_figure(6.0, 2.4).add_subplot() if axes is None else axes
    for number, chain in enumerate(chains):
        color = CYCLE[number % len(CYCLE)]
        axes.plot(chain, color=color, linewidth=0.9, label=f"chain {number}")
    axes.set_xlabel("draw")
    axes.set_ylabel("log likelihood")
    if len(chains) > 1:
        axes.legend(frameon=False, fontsize=8)
    clean(axes)
    return axes


def held_out_curve(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]], axes: Axes | None = None
) -> Axes:
    """Held-out log predictive probability per token as sampling goes on.

    Parameters
    ----------
    curves : mapping from a name to ``(x, score)``
        `x` counts draws or seconds; one number as `score` is a level line, `x` then unused.
    axes : matplotlib Axes, optional
    """
    axes = new_figure(6.0, 2.4).add_subplot() if axes is None else axes
    for number, (name, (x, score)) in enumerate(curves.items()):
        color = CYCLE[number % len(CYCLE)]
        if np.ndim(score) == 0:
            axes.axhline(float(np.asarray(score)), color=color, linestyle="--", label=name)
        else:
            axes.plot(np.asarray(x), np.asarray(score), color=color, label=name)
    axes.set_ylabel("held-out log p\nper token")
    axes.legend(frameon=False, fontsize=8)
    clean(axes)
    return axes


def score_by_num_topics(choice: TopicChoice, axes: Axes | None = None) -> Axes:
    """Held-out score of each number of topics, the best one ringed.

    Bars are one standard error, paired by document, of the difference from the best.

    Parameters
    ----------
    choice : TopicChoice
        From `pgmult.topics.scores.selection.search_num_topics`.
    axes : matplotlib Axes, optional
    """
    axes = new_figure(4.8, 3.0).add_subplot() if axes is None else axes
    numbers = [candidate.num_topics for candidate in choice.candidates]
    scores = [candidate.log_predictive for candidate in choice.candidates]
    errors = [candidate.difference_error for candidate in choice.candidates]
    axes.errorbar(numbers, scores, yerr=errors, color=BLUE, marker="o", markersize=4, capsize=2)
    best = choice.best
    axes.plot(
        best.num_topics, best.log_predictive, "o", markersize=11, color=CYCLE[1],
        fillstyle="none", label=f"best: {best.num_topics}",
    )  # fmt: skip
    axes.set_xticks(numbers, [str(number) for number in numbers])
    axes.set_xlabel("number of topics")
    axes.set_ylabel("held-out log p\nper token")
    axes.legend(frameon=False, fontsize=8)
    clean(axes)
    return axes
