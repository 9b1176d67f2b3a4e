"""Figures of topic posteriors; the numbers come from `pgmult.topics.summaries`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pgmult.core.arguments import as_kind
from pgmult.core.figures.base import BLUE, CYCLE, RED, axes_or_new, clean, new_figure
from pgmult.core.tabled import wrapped
from pgmult.core.validate import as_positive_int
from pgmult.topics.draws import as_topic_numbers
from pgmult.topics.scores.selection import TopicChoice
from pgmult.topics.summaries.content import GroupWords
from pgmult.topics.summaries.correlations import (
    TopicCorrelations,
    correlation_graph,
    similar_together,
)
from pgmult.topics.summaries.effects import Difference, Effects
from pgmult.topics.summaries.stability import TopicStability
from pgmult.topics.summaries.words import TopWord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Axes = Figure = Any

__all__ = [
    "curve",
    "curves",
    "forest",
    "held_out_curve",
    "log_likelihood_trace",
    "perspectives",
    "score_by_num_topics",
    "stability",
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


def forest(found: Effects | Difference, axes: Axes | None = None) -> Axes:
    """Each topic's expected shares, or how they differ, as points with intervals.

    Of numbers that a curve goes along, the lowest and the highest. An interval that excludes zero
    has a filled point, where it is one of differences.

    Parameters
    ----------
    found : Effects or Difference
        From `pgmult.topics.effects` or `pgmult.topics.difference`. Topics stand in the order of
        their differences, or of their shares.
    axes : matplotlib Axes, optional
    """
    if isinstance(found, Difference):
        rows, labels, name = np.arange(len(found.groups)), [str(g) for g in found.groups], found.by
    else:
        as_kind(found, "found", Effects, "or a Difference: see pgmult.topics.effects")
        rows, labels = found.ends, [found.setting_texts[i] for i in found.ends]
        name = found.variable if found.by is None else None
    mean, lower, upper = (100.0 * x[rows] for x in (found.mean, found.lower, found.upper))
    order = np.argsort(mean[-1], kind="stable")
    step = min(0.18, 0.6 / len(rows))
    axes = axes_or_new(axes, 6.4, 1.3 + len(order) * max(0.22, 0.13 * len(rows)))
    is_difference = isinstance(found, Difference)
    if is_difference:
        axes.axvline(0.0, color="0.6", linewidth=0.8)
    for g, label in enumerate(labels):
        color = CYCLE[g % len(CYCLE)]
        places = np.arange(len(order)) + step * (0.5 * (len(rows) - 1) - g)
        middle, low, high = (x[g][order] for x in (mean, lower, upper))
        axes.hlines(places, low, high, color=color, linewidth=1.4)
        sure = (low > 0.0) | (high < 0.0) if is_difference else np.ones(len(order), dtype=np.bool_)
        for fill, here in ((color, sure), ("white", ~sure)):
            axes.plot(
                middle[here], places[here], "o", markersize=4.5, color=color, markerfacecolor=fill
            )
        axes.plot([], [], "o-", color=color, markersize=4.5, linewidth=1.4, label=label)
    axes.set_yticks(range(len(order)), [found.names[k] for k in order], fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.6, len(order) - 0.4)
    axes.set_xlabel("difference, percentage points" if is_difference else "expected share, %")
    if len(labels) > 1:
        _legend(axes, name)
    _say(axes, found.caption, labels=found.names)
    clean(axes)
    return axes


def curve(found: Effects, topic: int, axes: Axes | None = None) -> Axes:
    """The expected share of a topic along a number, with a band, a line for each group.

    Parameters
    ----------
    found : Effects
        From `pgmult.topics.effects` of a column of numbers, or `pgmult.topics.shares_over_time`.
    topic : int
    axes : matplotlib Axes, optional

    Raises
    ------
    ValueError
        If the variable's values are labels, or there is no such topic.
    """
    as_kind(found, "found", Effects, "see pgmult.topics.effects")
    topic = as_positive_int(topic, "topic", minimum=0, maximum=len(found.names) - 1)
    values = found.numbers
    axes = axes_or_new(axes, 5.6, 3.2)
    mean, lower, upper = (100.0 * x[:, topic] for x in (found.mean, found.lower, found.upper))
    for g, (label, rows) in enumerate(found.groups.items()):
        color, x = CYCLE[g % len(CYCLE)], values[rows]
        axes.fill_between(x, lower[rows], upper[rows], color=color, alpha=0.18, linewidth=0)
        axes.plot(x, mean[rows], color=color, linewidth=1.6, label=label)
    axes.set_ylim(bottom=0.0)
    axes.margins(x=0.0)
    axes.set_xlabel(str(found.variable))
    axes.set_ylabel("share, %")
    if found.by is not None:
        _legend(axes, found.by)
    _say(axes, found.caption, f"topic {found.names[topic]}")
    clean(axes)
    return axes


def curves(found: Effects, topics: Sequence[int] | None = None, *, num_columns: int = 4) -> Figure:
    """A small panel a topic: its `curve`.

    Parameters
    ----------
    found : Effects
    topics : sequence of int, optional
        All topics if left out.
    num_columns : int
    """
    as_kind(found, "found", Effects, "see pgmult.topics.effects")
    size = len(found.names)
    numbers = as_topic_numbers(range(size) if topics is None else topics, size).tolist()
    if not numbers:
        raise ValueError("topics must be at least one number of a topic, got none")
    num_columns = min(as_positive_int(num_columns, "num_columns"), len(numbers))
    num_rows = -(-len(numbers) // num_columns)
    lines = wrapped(found.caption, int(32 * num_columns))
    figure = new_figure(2.5 * num_columns, 1.8 * num_rows + 0.3 + 0.15 * len(lines))
    panels = figure.subplots(num_rows, num_columns, squeeze=False, sharex=True).ravel()
    for i, (axes, topic) in enumerate(zip(panels, numbers, strict=False)):
        curve(found, topic, axes)
        axes.set_title(found.names[topic], fontsize=8, loc="left")
        axes.tick_params(labelsize=7)
        axes.set_ylabel("share, %" if i % num_columns == 0 else "", fontsize=8)
        axes.set_xlabel(str(found.variable) if i + num_columns >= len(numbers) else "", fontsize=8)
        legend = axes.get_legend()
        if legend is not None and i + 1 != min(num_columns, len(numbers)):
            legend.remove()
    for axes in panels[len(numbers) :]:
        axes.set_visible(False)
    figure.suptitle("\n".join(lines), fontsize=7, x=0.01, ha="left")
    return figure


def perspectives(found: GroupWords, axes: Axes | None = None) -> Axes:
    """The words that two groups use most differently in a topic, by the ratio of probabilities.

    Points are the larger the more probable the word is; lines are intervals. All is grey where one
    of the groups has too few tokens of the topic to tell.

    Parameters
    ----------
    found : GroupWords
        From `Content.words`.
    axes : matplotlib Axes, optional
    """
    as_kind(found, "found", GroupWords, "see pgmult.topics.content")
    order = np.argsort(found.log_ratio, kind="stable")
    axes = axes_or_new(axes, 5.6, 1.2 + 0.19 * len(order))
    colors = [
        "0.6" if found.is_faint else CYCLE[sorted(found.groups).index(group)]
        for group in (found.groups[1], found.groups[0])
    ]
    limit = 1.05 * min(8.0, float(np.abs([found.log_ratio_lower, found.log_ratio_upper]).max()))
    sizes = 12.0 + 90.0 * found.probs.max(axis=0) / found.probs.max()
    axes.axvline(0.0, color="0.6", linewidth=0.8)
    for place, j in enumerate(order):
        color = colors[int(found.log_ratio[j] > 0.0)]
        low, high = found.log_ratio_lower[j], found.log_ratio_upper[j]
        axes.hlines(place, max(low, -limit), min(high, limit), color=color, linewidth=1.2)
        at = float(np.clip(found.log_ratio[j], -limit, limit))
        marker = "o" if abs(at) < limit else "<" if at < 0.0 else ">"  # beyond the axis
        axes.scatter(at, place, s=sizes[j], color=color, marker=marker, zorder=3, clip_on=False)
    axes.set_yticks(range(len(order)), [found.words[j] for j in order], fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(-limit, limit)
    ticks = np.arange(-int(limit), int(limit) + 1, max(1, int(limit) // 3))
    names = ["same" if t == 0 else f"{2 ** abs(int(t))} x" for t in ticks]
    axes.set_xticks(ticks, names, fontsize=8)
    first, second = found.groups
    axes.set_xlabel(
        f"times as probable: to the left by {second}, to the right by {first}", fontsize=8
    )
    _say(axes, found.caption, labels=found.words)
    clean(axes)
    return axes


def stability(found: TopicStability, axes: Axes | None = None) -> Axes:
    """How far each topic's counterparts in the other chains are, a point a chain.

    Parameters
    ----------
    found : TopicStability
        From `pgmult.topics.topic_stability`; the stablest topics stand at the top.
    axes : matplotlib Axes, optional
    """
    as_kind(found, "found", TopicStability, "see pgmult.topics.topic_stability")
    others = np.delete(found.matches.distance, found.matches.reference, axis=0)
    order = np.argsort(-found.mean_distance, kind="stable")
    axes = axes_or_new(axes, 6.0, 1.3 + 0.2 * len(order))
    colors = {"stable": BLUE, "varies": CYCLE[4], "one chain only": RED}
    verdicts = [found.verdicts[k] for k in order]
    for verdict, color in colors.items():
        rows = [place for place, one in enumerate(verdicts) if one == verdict]
        if rows:
            x = others[:, order[rows]]
            axes.hlines(
                rows, 0.0, x.max(axis=0, initial=0.0), color=color, linewidth=0.6, alpha=0.5
            )
            axes.plot(
                x.ravel(), np.tile(rows, len(x)), "o", color=color, markersize=4,
                label=f"{verdict} ({len(rows)})",
            )  # fmt: skip
    axes.axvline(found.matches.limit, color="0.6", linewidth=0.8, linestyle="--")
    names = [f"{k} {found.names[k]}" for k in order]
    axes.set_yticks(range(len(order)), names, fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel("total variation distance to the other chains", fontsize=8)
    _legend(axes, None)
    limit = f"Beyond {found.matches.limit:g} (dashed) there is no counterpart."
    _say(axes, f"{_first_upper(found.headline)}. {limit}", labels=names)
    clean(axes)
    return axes


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _legend(axes: Axes, title: str | None) -> None:
    """Beside the axes, where it hides nothing."""
    axes.legend(
        frameon=False, fontsize=8, title=title, title_fontsize=8, loc="upper left",
        bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0,
    )  # fmt: skip


def _say(axes: Axes, caption: str, title: str = "", labels: Sequence[str] = ()) -> None:
    """A title, and what the figure shows in small letters, above it; beside labels to the left."""
    figure = axes.get_figure(root=True)
    inches = 6.0 if figure is None else figure.get_figwidth()
    place = axes.get_subplotspec()
    if place is not None:
        inches /= place.get_gridspec().ncols
    inches -= 0.065 * max(map(len, labels), default=0)
    lines = wrapped(caption, max(30, int(15.0 * inches)))
    axes.set_title("\n".join([*([title] if title else []), *lines]), fontsize=7, loc="left")
