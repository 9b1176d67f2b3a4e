"""Words of a topic by group of documents: content covariates, with intervals.

With phi_{gk} the words of topic k in group g, two groups are compared word by word: the posterior
of both probabilities, of their ratio, and of which is larger. In a group with few tokens of a topic
the prior dominates phi_{gk} and makes the groups look alike. So the number of tokens is always
reported, and fewer than 50 are marked.

Distances between groups are not reported: computed draw by draw they are biased upwards, most where
tokens are few.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmult.core.answers import Answer
from pgmult.core.arguments import as_choice, as_probability
from pgmult.core.estimands import Estimand
from pgmult.core.figures.forest import GREY, Forest
from pgmult.core.tabled import Column, Table, probability_text, with_interval
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_positive_int
from pgmult.sampling.posterior import Posterior
from pgmult.topics import runs
from pgmult.topics.data.corpus import StructuredCorpus
from pgmult.topics.summaries.effects import structured_data, topic_names, with_draws_column
from pgmult.topics.summaries.matching import AlignedChain, aligned_chains, placed_draws, scope_of

FEW_TOKENS = 50
"""A group with fewer tokens of a topic has too little data on its words."""

_PER = 1000.0  # words of text, per which probabilities are given


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class GroupWords(Estimand):
    """A topic's words that two groups use most differently; print it for a table.

    Its draws are the probabilities of the words, by group and word: those of the first group, most
    characteristic first, then those of the second.

    Attributes
    ----------
    draws, axes, labels, caption, probability
        As in `pgmult.core.estimands.Estimand`.
    tokens : (float, float)
        Tokens of the topic in each group, posterior mean.
    name : str
        Number and telling words of the topic.
    scope : str
        What intervals are over: draws within one chain, or over the chains that found the topic.
    num_chains : int
        Whose draws these are, as many of each.
    """

    tokens: tuple[float, float]
    name: str
    scope: str
    num_chains: int

    @property
    def words(self) -> list[str]:
        """The words."""
        return list(self.labels["word"])

    @property
    def groups(self) -> tuple[str, str]:
        """Labels of the two groups."""
        first, second = self.labels["group"]
        return first, second

    @property
    def log_ratio(self) -> Estimand:
        """Logarithm to base 2 of the first group's probability over the second's, by word."""
        first, second = np.log2(np.maximum(self.draws, np.finfo(np.float64).tiny)).swapaxes(0, 1)
        words = {"word": self.labels["word"]}
        return Estimand(first - second, ("word",), words, probability=self.probability)

    @property
    def worth(self) -> FloatArray:
        """Effective draws of the ratio of each word, ``(word,)``."""
        return runs.independent_draws(self.log_ratio.draws, self.num_chains)

    @property
    def is_faint(self) -> bool:
        """True where either group has fewer than `FEW_TOKENS` tokens of the topic."""
        return min(self.tokens) < FEW_TOKENS

    def table(self) -> Table:
        """Each word in a thousand of either group, the ratio, and which is larger."""
        level = self.probability
        columns = [Column("word", self.words, "word")]
        bounds, ratio = self.interval(), self.log_ratio
        for g, group in enumerate(self.groups):
            values = self.mean[g], *bounds[:, g]
            columns += with_interval(group, values, f"{group}, in 1,000", level, _of_thousand)
        ratios = ratio.quantile(0.5), *ratio.interval()
        columns += with_interval("log2_ratio", ratios, "ratio", level, _ratio)
        which = f"P({self.groups[0]} > {self.groups[1]})"
        columns.append(Column("p_first", ratio.p_above(), which, probability_text))
        if self.is_faint:
            return Table(self.caption, columns, [True] * len(self.words))
        return with_draws_column(Table(self.caption, columns), self.worth)

    def figure(self, limit: float | None = None) -> Forest:
        """The words by the ratio of their probabilities, grey where this is too uncertain.

        Parameters
        ----------
        limit : float, optional
            Logarithms of ratios beyond it are drawn at the edge; by default about the largest.
        """
        ratio = self.log_ratio
        middle, (low, high) = ratio.quantile(0.5), ratio.interval()
        if limit is None:
            limit = 1.05 * min(8.0, float(np.abs([low, high]).max(initial=1.0)))
        order = np.argsort(-middle, kind="stable")
        mean, (first, second) = self.mean[:, order], self.groups
        middle, low, high = (x[order] for x in (middle, low, high))
        ends = zip(middle, low, high, strict=True)
        colours = np.where((middle > 0.0) == (first < second), 0, 1)
        colours[self.is_faint | (self.worth[order] < runs.FEW_DRAWS)] = GREY
        step = max(1, int(limit) // 2)
        ticks = [t for t in range(-int(limit), int(limit) + 1) if t % step == 0]
        pairs = zip(self.groups, mean, strict=True)
        return Forest(
            labels=[self.words[j] for j in order], mean=middle[None], lower=low[None],
            upper=high[None], colours=colours[None],
            sizes=0.6 + 4.5 * mean.max(axis=0) / mean.max(initial=1e-300),
            span=(-limit, limit), name="word", caption=self.caption,
            ticks=[(float(t), f"{2 ** abs(t)}x" if t else "same") for t in ticks],
            x_label=f"times as probable: to the left by {second}, to the right by {first}",
            cells=[Column("", [f"{_PER * x:.1f}" for x in of], group) for group, of in pairs],
            texts=[f"{2**m:.2g} times [{2**a:.2g}, {2**b:.2g}]" for m, a, b in ends],
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Content(Answer):
    """Words of topics by group of documents; printed as a table of each group's leading words.

    Attributes
    ----------
    groups : list of str
    names : list of str
        Number and telling words of each topic.
    words : list of str
        The vocabulary.
    mean : array, ``(group, topic, word)``
        Posterior mean of the groups' word probabilities.
    draws : array, ``(num_draws, group, topic)``
        Tokens of each topic in each group.
    scope : str
        What intervals are over: draws within one chain, or over the chains that found a topic.
    """

    groups: list[str]
    names: list[str]
    vocabulary: list[str]
    mean: FloatArray
    draws: FloatArray
    scope: str
    run: Posterior
    chains: list[AlignedChain]
    max_draws: int

    @property
    def tokens(self) -> FloatArray:
        """Tokens of each topic in each group, posterior mean, ``(group, topic)``."""
        return np.asarray(np.nanmean(self.draws, axis=0))

    def figure(self) -> Any:
        """Draw the shares of topics in the tokens of each group."""
        shares = np.moveaxis(self.draws / np.nansum(self.draws, axis=2, keepdims=True), 1, 2)
        labels = {"topic": self.names, "group": self.groups}
        caption = f"Shares of topics in the tokens of each group, 90 % intervals {self.scope}."
        return Estimand(shares, ("topic", "group"), labels, caption=caption).figure()

    def words(
        self, first: str, second: str, *, topic: int, num_words: int = 10, probability: float = 0.9
    ) -> GroupWords:
        """The words of a topic that two groups use most differently.

        Parameters
        ----------
        first, second : str
            Labels of groups.
        topic : int
        num_words : int
            Of each group, at most: those whose probability is most above the other's, on average,
            and more likely so than not, and that stand in the group once or more.
        probability : float in (0, 1)
            Of the intervals.
        """
        return self.compare(first, second, [topic], num_words, probability)[0]

    def compare(
        self, first: str, second: str, topics: Sequence[int] | IntArray, num_words: int = 10,
        probability: float = 0.9,
    ) -> list[GroupWords]:  # fmt: skip
        """Compare two groups as `words` does, for several topics in one pass over the draws."""
        asked = {"first": first, "second": second}
        pair = np.array([self.groups.index(as_choice(g, n, self.groups)) for n, g in asked.items()])
        if first == second:
            raise ValueError(f"second must be another group than first, got {second!r} for both")
        count = min(as_positive_int(num_words, "num_words"), len(self.vocabulary) // 2)
        numbers = runs.topic_places(topics, len(self.names))
        probability = as_probability(probability, "probability")
        gaps = self.mean[pair[0]] - self.mean[pair[1]]
        order = np.argsort(-gaps[numbers], axis=1, kind="stable")
        chosen = np.concatenate([order[:, :count], order[:, : -count - 1 : -1]], axis=1)
        side = np.repeat([0, 1], count)  # the group that a word is to stand for
        sign = 1.0 - 2.0 * side
        phis = placed_draws(self.run, "group_topics", self.chains, self.max_draws, axis=1)
        draws = np.stack([phi[pair[:, None, None], numbers[:, None], chosen] for phi in phis])
        compared = []
        for i, k in enumerate(numbers.tolist()):
            tokens = one, other = self.tokens[pair, k].tolist()
            is_found = ~np.isnan(draws[:, 0, i, 0])
            of_topic, words = draws[is_found, :, i], chosen[i]
            likely = (sign * (of_topic[:, 0] - of_topic[:, 1]) > 0.0).mean(axis=0) > 0.5
            expected = self.mean[pair[side], k, words] * np.where(side, other, one)
            is_used = likely & (sign * gaps[k, words] > 0.0) & (expected >= 1.0)
            used = [self.vocabulary[j] for j in words[is_used]]
            counts = f"{one:,.0f} of {first} and {other:,.0f} of {second}"
            few = f"; fewer than {FEW_TOKENS} say hardly anything" * (min(tokens) < FEW_TOKENS)
            apart = f"that {first} and {second} use most differently"
            interval = f"Posterior mean and {100 * probability:g} % interval, {self.scope}."
            said = f"Tokens of the topic: {counts}{few}. {interval}"
            caption = f"Words of topic {self.names[k]} {apart}. {said}"
            num_chains = int(is_found.reshape(len(self.chains), -1)[:, 0].sum())
            compared.append(GroupWords(
                of_topic[:, :, is_used], ("group", "word"),
                {"group": (first, second), "word": used}, caption=caption, probability=probability,
                tokens=(one, other), name=self.names[k], scope=self.scope, num_chains=num_chains,
            ))  # fmt: skip
        return compared

    def table(self, num_words: int = 6) -> Table:
        """Tokens of every topic in every group, and the words that the group uses most above all.

        A word's lead is its probability in the group less that in the groups' average, in which a
        group counts by its tokens of the topic.
        """
        count = as_positive_int(num_words, "num_words")
        weights = self.tokens / np.maximum(self.tokens.sum(axis=0), 1e-300)
        average = np.einsum("gk,gkv->kv", weights, self.mean)
        topics, groups = (of.ravel() for of in np.indices((len(self.names), len(self.groups))))
        leads = (self.mean - average)[groups, topics]
        best = np.argsort(-leads, axis=1, kind="stable")[:, :count]
        tokens, words = self.tokens[groups, topics], [self.names[k] for k in topics]
        leading = [" ".join(self.vocabulary[j] for j in row) for row in best]
        caption = (
            "Words of each topic that a group uses most above the average of all groups, and how"
            f" many tokens of it the group has. In parentheses: fewer than {FEW_TOKENS}, which say"
            " hardly anything."
        )
        columns = [
            Column("topic", topics + 1), Column("words", words),
            Column("group", [self.groups[g] for g in groups], "group"), Column("", words, "topic"),
            Column("tokens", tokens, "tokens", "{:,.0f}".format),
            Column("leading", leading, "words that lead in the group"),
        ]  # fmt: skip
        return Table(caption, columns, [n < FEW_TOKENS for n in tokens])


def content(
    run: Posterior, data: StructuredCorpus | None = None, *, chain: int | None = None,
    max_draws: int = 100,
) -> Content:  # fmt: skip
    """Words of topics by group of documents.

    Parameters
    ----------
    run : Posterior
        Of `pgmult.topics.StructuralTopics` and data with content covariates, with ``group_topics``
        and ``group_tokens``.
    data : StructuredCorpus, optional
        What the model was fitted to; needed only where `run` was saved without it.
    chain : int, optional
        One chain alone, by its number from 1. If left out, chains are aligned topic by topic
        with the best one, and each topic's draws are those of the chains that found it.
    max_draws : int
        Draws to use at most, evenly spread over chains.

    Raises
    ------
    ValueError
        If the data have no content covariates, or the variables were not kept.
    """
    data = structured_data(run, data)
    if data.content is None:
        hint = "name them in content= of pgmult.topics.with_covariates"
        raise ValueError(f"run must be of data with content covariates, got none ({hint})")
    varied, counted = "group_topics", "group_tokens"
    runs.as_draws(run, varied, counted)
    max_draws = as_positive_int(max_draws, "max_draws")
    chains = aligned_chains(run, chain, varied)
    mean = runs.mean_of(placed_draws(run, varied, chains, max_draws, axis=1))
    tokens = [one.place(n) for one in chains for n in runs.each_draw(run, counted, one.chain)]
    return Content(
        [str(label) for label in data.content.labels], topic_names(run, chain),
        runs.names_along(run, "word", mean.shape[-1]), mean, np.stack(tokens),
        scope_of(chains), run, chains, max_draws,
    )  # fmt: skip


def _of_thousand(x: float) -> str:
    return f"{_PER * x:.2f}" if _PER * x < 9.995 else f"{_PER * x:.1f}"


def _ratio(log_ratio: float) -> str:
    """Such as 3.2, or 1/3.2; beyond a thousand not told apart."""
    size = 2.0 ** min(abs(float(log_ratio)), 10.0)
    text = ">999" if size > 999 else f"{size:.1f}" if size < 9.95 else f"{size:.0f}"
    return text if log_ratio >= 0 or text == "1.0" else f"1/{text}".replace("1/>", "<1/")
