"""Agreement of chains on topics, and the probability that another chain finds each.

The posterior of a topic model has many modes, and chains with different starts stay in different
ones. Most topics of one mode occur in the others as well. Convergence is therefore judged topic by
topic rather than by the log likelihood. Each topic of the best chain is matched to those of the
other chains, and counts as found there at a total variation distance of at most 0.5. More draws do
not change this; more chains give more evidence.

What a reader wants to know is whether *another* run would find the topic. With d its mean distance
to the counterparts in the C - 1 other chains, none counting as more than 0.7, the probability that
one more chain has it is::

    logit p = 7.9 - 15.4 d + (6.4 d - 3.0) / (C - 1)

by a regression on runs of several corpora, each of which was predicted well by the others
(``tests/benchmarks/stability.py``).

Chains that were started from one shared state agree by construction; the headline says so, and only
drift within that mode can be seen.

>>> import numpy as np
>>> from pgmult import Posterior
>>> first = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
>>> draws = Posterior({"topics": np.stack([first, first[::-1]])[:, None]})
>>> found = topic_stability(draws)
>>> found.headline, found.found_again.round(2).tolist()
('2 of 2 topics were found by both chains', [0.99, 0.99])
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from pgmult.core.answers import Answer
from pgmult.core.figures.forest import Forest
from pgmult.core.tabled import Column, Table, percent
from pgmult.core.typing import BoolArray, FloatArray, IntArray
from pgmult.sampling.labels import LabelMatches
from pgmult.sampling.posterior import Posterior
from pgmult.topics.runs import most_probable, names_along, topic_places
from pgmult.topics.summaries.matching import match_topics, mean_topics

LIKELY = 0.5
"""Topics that another chain finds with less probability are not shown in full."""

_ODDS = np.array([[7.9, -3.0], [-15.4, 6.4]])  # of 1 and d, times 1 and 1 / (C - 1)
FAR = 0.7
"""Topics at this distance or beyond have nothing to do with each other."""

_SURE = 0.9
_WORDS = 4  # that name a topic in the table


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TopicStability(Answer):
    """Topics of the best chain, and how far other chains found them; print it for a table.

    Attributes
    ----------
    matches : LabelMatches
        The topic of every chain that goes with each, and how far it is.
    names : list of str
        The most probable words of each topic.
    given_one_mode : bool
        Whether the chains were started from one shared state.
    draws : array, ``(num_draws, topic)``
        Shares of all tokens, chain after chain; nan where a chain did not find a topic, and no
        draws where shares were not kept.
    """

    matches: LabelMatches
    names: list[str]
    given_one_mode: bool
    draws: FloatArray

    @property
    def shares(self) -> FloatArray | None:
        """Mean share of all tokens, over the chains that found the topic, ``(topic,)``."""
        return np.asarray(np.nanmean(self.draws, axis=0)) if len(self.draws) else None

    @property
    def chains(self) -> IntArray:
        """Number of chains that found each topic, ``(topic,)``, the described chain included."""
        return np.asarray(self.matches.found.sum(axis=0), dtype=np.int64)

    @property
    def mean_distance(self) -> FloatArray:
        """Mean total variation distance to the counterparts in other chains, ``(topic,)``."""
        return np.asarray(_others(self.matches).mean(axis=0))

    @property
    def worst_distance(self) -> FloatArray:
        """The largest of them, ``(topic,)``."""
        return np.asarray(_others(self.matches).max(axis=0))

    @property
    def found_again(self) -> FloatArray:
        """Probability that one more chain, from another start, has each topic, ``(topic,)``.

        Calibrated on corpora of several kinds (docs, *What can I trust?*); nan where nothing is
        known of it, with one chain or one shared start.
        """
        if len(self.matches.order) == 1 or self.given_one_mode:
            return np.full(len(self.names), np.nan)
        level, slope = _ODDS @ [1.0, 1.0 / (len(self.matches.order) - 1)]
        near = np.minimum(_others(self.matches), FAR).mean(axis=0)
        return np.asarray(expit(level + slope * near))

    @property
    def is_likely(self) -> BoolArray:
        """True where another chain would probably find the topic, ``(topic,)``."""
        return ~(self.found_again < LIKELY)

    @property
    def headline(self) -> str:
        """The main result in words, such as "16 of 20 topics were found by all 4 chains"."""
        text = self.matches.headline("topics")
        return f"given one mode, {text}" if self.given_one_mode else text

    @property
    def breakdown(self) -> str:
        """Number of topics that another chain is expected to find; empty with one chain."""
        again = self.found_again
        if np.isnan(again).any():
            return ""
        sure = f"{(again >= _SURE).sum()} with a probability of {100 * _SURE:.0f} % or more"
        return f"one more chain would find about {again.sum():.0f} of them, {sure}"

    def take(self, topics: IntArray) -> "TopicStability":
        """The same of some topics, given by their numbers, in this order."""
        old, rows = self.matches, topic_places(topics, len(self.names))
        matches = replace(old, order=old.order[:, rows], distance=old.distance[:, rows])
        names = [self.names[k] for k in rows]
        return replace(self, matches=matches, names=names, draws=self.draws[:, rows])

    def table(self) -> Table:
        """One row per topic, the largest first."""
        shares, chains = self.shares, len(self.matches.order)
        order = np.arange(len(self.names)) if shares is None else np.argsort(-shares, kind="stable")
        columns = [Column("topic", order + 1, "topic")]
        if shares is not None:
            columns.append(Column("share", shares[order], "share", lambda x: f"{percent(x)} %"))
        columns += [
            Column("chains", self.chains[order], "chains", f"{{}} of {chains}".format),
            Column("mean_distance", self.mean_distance[order], "TV mean", "{:.2f}".format),
            Column("worst_distance", self.worst_distance[order], "TV worst", "{:.2f}".format),
            Column("again", self.found_again[order], "found again", _percentage),
            Column("words", [self.names[k] for k in order], "words"),
        ]
        more = f" ({self.breakdown})" if self.breakdown else ""
        head = f"{self.headline}{more}; those of chain {self.matches.reference + 1}:"
        return Table(head, columns)

    def figure(self, names: Sequence[str] | None = None) -> Forest:
        """Distances of topics to their counterparts in other chains, the stablest at the top.

        Parameters
        ----------
        names : sequence of str, optional
            Of the topics; their numbers and most probable words if left out.
        """
        if names is None:
            names = [f"{k} {words}" for k, words in enumerate(self.names, 1)]
        order = np.argsort(self.mean_distance, kind="stable")
        others = _others(self.matches)[:, order]
        again, limit = self.found_again[order], self.matches.limit
        kinds = (again < _SURE).astype(int) + (again < LIKELY)  # 0 where nothing is known
        sayings = (f"{100 * _SURE:.0f} % or more", "in between", f"below {100 * LIKELY:.0f} %")
        return Forest(
            labels=[names[k] for k in order], mean=others, lower=others, upper=others,
            colours=np.broadcast_to(np.array(_COLOURS)[kinds], others.shape), line=limit,
            span=(0.0, 1.0),
            legend={
                _COLOURS[kind]: f"found again: {sayings[kind]} ({(kinds == kind).sum()})"
                for kind in np.unique(kinds) if not np.isnan(again).any()
            },
            ticks=[(t, f"{t:g}") for t in (0.0, 0.5, 1.0)], name="topic",
            x_label="total variation distance to the other chains",
            caption=f"{self.headline[:1].upper()}{self.headline[1:]}. Each point is another chain's"
            " counterpart of a topic: its total variation distance, 0 the same, 1 no word in"
            f" common. Beyond {limit:g} (the line) there is none.",
            cells=[Column("", [_percentage(p) for p in again], "again")],
            texts=[", ".join(f"{x:.2f}" for x in column) for column in others.T],
        )  # fmt: skip


_COLOURS = (0, 4, 1)


def _percentage(probability: float) -> str:
    """Format a probability in percent, never as 0 or 100."""
    if np.isnan(probability):
        return ""
    return f"{min(max(100.0 * probability, 1.0), 99.0):.0f} %"


def _others(matches: LabelMatches) -> FloatArray:
    """Distances in all chains but the reference; nan with one chain."""
    if len(matches.distance) == 1:
        return np.full_like(matches.distance, np.nan)
    return np.delete(matches.distance, matches.reference, axis=0)


def topic_stability(run: Posterior) -> TopicStability:
    """Match the topics of all chains and count, for each topic, the chains that found it.

    Parameters
    ----------
    run : Posterior
        With ``topics``.

    Returns
    -------
    TopicStability
        Two topics are the same if their mean word probabilities are at most 0.5 apart in total
        variation.
    """
    matches = match_topics(run)
    means = mean_topics(run, matches.reference + 1, max_draws=100)
    words = names_along(run, "word", means.shape[-1])
    draws = np.empty((0, len(means)))
    if "topic_shares" in run:
        chains = zip(run["topic_shares"], matches.order, matches.found, strict=True)
        draws = np.concatenate([np.where(found, x[:, order], np.nan) for x, order, found in chains])
    names = [" ".join(words[j] for j in row) for row in most_probable(means, _WORDS)]
    return TopicStability(matches, names, run.attrs.get("starts") == "shared", draws)
