"""Effects of covariates on the prevalence of topics: expected shares and their differences.

What a coefficient does to the share of a topic depends on the coefficients of other topics. So an
effect is read from the expected shares of topics, E[theta | x], at settings of one covariate, and
from their differences. For a draw of (B, u, Sigma, rho) and rows x of the other covariates,

    E[theta | setting] = mean over rows x of  E[link(B' x(setting) + u + eps)],  eps ~ N(0, Sigma),

all other columns as in the documents. With random effects u of authors, ``scope`` says whose: those
of *new* authors, drawn from the prior N(0, rho Sigma) along with eps, which describes the
population; or those of the authors of *these documents*, as estimated from their texts. Intervals
are over all draws of all chains, their topics matched.

>>> import numpy as np, pgmult
>>> rng = np.random.default_rng(0)
>>> counts = rng.poisson(0.5, size=(20, 30))
>>> data = pgmult.topics.with_covariates(counts, {"year": np.arange(20), "party": ["D", "R"] * 10})
>>> posterior = pgmult.sample(
...     pgmult.topics.StructuralTopics(num_topics=3), data,
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> found = effects(posterior, "party")
>>> found.mean.shape, found.labels["party"]
((2, 3), ['D', 'R'])
>>> bool(np.isclose(found.difference("party", "R", "D").mean.sum(), 0.0))
True
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

import numpy as np

from pgmult.core.arguments import (
    as_probability,
    as_repeats,
    as_seed,
)
from pgmult.core.estimands import Estimand, are_numbers
from pgmult.core.tabled import (
    Table,
)
from pgmult.core.typing import FloatArray, IntArray
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import StructuredCorpus
from pgmult.topics.draws import (
    as_draws,
    as_topic_numbers,
    data_of_run,
    names_along,
    of_chain,
    prior_at,
    regression_variables,
    share_of_draws,
    spread,
    telling,
)
from pgmult.topics.summaries.matching import (
    aligned_chains,
    best_chain,
    mean_topics,
    scope_of,
)
from pgmult.topics.summaries.settings import lay_out

_NAME_WORDS = 3


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TopicShares(Estimand):
    """Posterior of shares of topics, or of their differences, topics along the last axis.

    An entry is nan for a topic that the draw's chain did not find. Printed topic by topic.

    Attributes
    ----------
    draws, axes, labels, caption, probability, is_difference, is_ratio, term, contrast
        As in `pgmult.core.estimands.Estimand`.
    """

    @property
    def names(self) -> list[str]:
        """Number and telling words of each topic."""
        return list(self.columns_of("topic")["words"])

    def take(self, topics: Sequence[int] | IntArray) -> Self:
        """The same of some topics, in another order."""
        rows = as_topic_numbers(topics, len(self.names))
        words = [self.names[k] for k in rows]
        numbers = [self.columns_of("topic")["topic"][k] for k in rows]
        labels = {**self.labels, "topic": {"topic": numbers, "words": words}}
        return replace(self, draws=self.draws[..., rows], labels=labels)

    def _with(
        self, draws: FloatArray, axes: tuple[str, ...], labels: Any, caption: str
    ) -> Estimand:
        plain = Estimand._with(self, draws, axes, labels, caption)
        if axes[-1:] != ("topic",):
            return plain
        return TopicShares(**{each.name: getattr(plain, each.name) for each in fields(plain)})

    def table(self, probability: float | None = None) -> Table:
        """Mean, sd and interval of every entry, topic by topic."""
        made = Estimand.table(_by_topic(self, self.labels["topic"]), probability)
        heads = {"topic": "", "words": "topic"}  # words begin with the number
        parts = [replace(part, head=heads.get(part.name, part.head)) for part in made.parts]
        return replace(made, parts=parts)

    def figure(self, *arguments: Any, **options: Any) -> Any:
        """Curves where there are numbers or dates, or points, a row for each topic.

        In groups, curves are those of the largest topic; those of another: ``.at(topic=3)``.
        """
        along = [v for axis in self.axes[:-1] for v in self.columns_of(axis).values()]
        if not (arguments or options or any(map(are_numbers, along))):
            return _by_topic(self, self.names).points()
        if len(along) == 1:
            named = replace(self, labels={**self.labels, "topic": self.names})
            return named.curves(*arguments, **options)
        sizes = np.nanmean(self.mean.reshape(-1, len(self.names)), axis=0)
        number = self.columns_of("topic")["topic"][int(sizes.argmax())]
        return self.at(topic=number).curves(*arguments, **options)


def _by_topic(found: TopicShares, topics: Any) -> Estimand:
    """With topics along the first axis."""
    return Estimand(
        np.moveaxis(found.draws, -1, 1), ("topic", *found.axes[:-1]),
        {**found.labels, "topic": topics}, caption=found.caption, probability=found.probability,
        is_difference=found.is_difference, term=found.term, contrast=found.contrast,
    )  # fmt: skip


def effects(
    posterior: Posterior,
    variable: str,
    *,
    at: Mapping[str, Any] | None = None,
    by: str | None = None,
    scope: Literal["population", "documents"] = "population",
    data: StructuredCorpus | None = None,
    chain: int | None = None,
    num_simulated: int = 1000,
    max_draws: int = 1000,
    probability: float = 0.9,
    random_seed: int = 0,
) -> TopicShares:
    """Expected shares of topics at settings of a covariate, over all draws of all chains.

    For each draw, theta = link(psi) is averaged over rows of the other covariates and over psi,
    simulated around the mean of each. All draws and all settings share the same rows and the same
    standard normals, in pairs of opposite sign, so that Monte Carlo error hardly touches intervals
    and differences.

    Parameters
    ----------
    posterior : Posterior
        Of `pgmult.topics.StructuralTopics`, with ``coefficients`` and ``Sigma``, and with
        ``effects`` and ``effect_variances`` where there are any.
    variable : str
        A column that prevalence depends on: its labels are the settings, or 25 values between the
        smallest and largest number. Columns that neither it nor `by` nor `at` sets are averaged
        over, as they are in the documents.
    at : mapping from column to value, optional
        Values at which to hold other columns; for `variable` and `by`, a list of the values to
        take.
    by : str, optional
        Another column: `variable`'s settings for each of its labels, or for the 10, 50 and 90 %
        quantiles of a number.
    scope : {"population", "documents"}
        Whether authors (and other groups of random terms) that are not set are new ones, or those
        of the documents; the same where the formula has no such term.
    data : StructuredCorpus, optional
        What the model was fitted to; needed only where `posterior` was saved without it.
    chain : int, optional
        One chain alone. If left out, chains are aligned topic by topic with the best one, and each
        topic's draws are those of the chains that found it.
    num_simulated : int
        Documents that are simulated for each setting and draw, about.
    max_draws : int
        Draws to use at most, evenly spread over chains.
    probability : float in (0, 1)
    random_seed : int

    Returns
    -------
    TopicShares
        Axes `by`, if given, `variable` and topic. Costs O(draws settings
        num_simulated num_topics).

    Raises
    ------
    ValueError
        If there is no such column or value, `data` are not the posterior's, or the posterior does
        not know its model.
    """
    probability = as_probability(probability, "probability")
    num_simulated = as_repeats(num_simulated, "num_simulated", minimum=2)
    data = structured_data(posterior, data)
    link = posterior.link
    names = regression_variables(posterior, data)
    as_draws(posterior, *names)
    rng = np.random.default_rng(as_seed(random_seed))
    layout = lay_out(
        data, variable, at=at, by=by, scope=scope, num_rows=num_simulated // 2, rng=rng,
    )  # fmt: skip
    design, weights = layout.design, layout.weights
    sizes, num_rows = [len(values) for values in layout.values.values()], len(weights)
    size = math.prod(sizes)
    chains = aligned_chains(posterior, chain, "coefficients")
    sticks = posterior["coefficients"].shape[-1]
    pairs = math.ceil(0.5 * num_simulated / num_rows)
    half = rng.standard_normal((num_rows, pairs, sticks))
    noise = np.concatenate([half, -half], axis=1)
    share = weights / (weights.sum() * noise.shape[1])
    rows, expected = np.arange(num_rows), []
    for one in chains:
        draws = dict(zip(names, of_chain(posterior, one.chain, *names), strict=True))
        for i in spread(len(draws["Sigma"]), share_of_draws(max_draws, len(chains))):
            means, which, covariances = prior_at(draws, int(i), design)
            roots = np.linalg.cholesky(covariances)
            scattered = np.stack([noise @ root.T for root in roots])
            shares = np.stack(
                [
                    np.einsum("r,rmk->k", share, link.probs(m[:, None] + scattered[c, rows]))
                    for m, c in zip(
                        means.reshape(size, num_rows, sticks),
                        which.reshape(size, num_rows),
                        strict=True,
                    )
                ]
            )
            expected.append(one.place(shares))
    labels: dict[str, Any] = {
        **layout.values,
        "topic": topic_labels_of(topic_names(posterior, chain)),
    }
    return TopicShares(
        np.stack(expected).reshape(len(expected), *sizes, -1), (*labels,), labels,
        caption=f"{layout.about} Intervals: {scope_of(chains)}.", probability=probability,
    )  # fmt: skip


def variance_shares(
    posterior: Posterior, *, data: StructuredCorpus | None = None, probability: float = 0.9
) -> Estimand:
    """The share of documents' variance, given the covariates, that goes with each random term.

    The share of a term is rho_j / (1 + sum of all rho), of the variance of every coordinate of psi
    alike: for ``(1 | author)`` the correlation of two documents of one author that share nothing
    else, for a curve what its bends add at the average document. All draws of all chains are taken:
    how topics are numbered makes no difference.

    Parameters
    ----------
    posterior : Posterior
        Of `pgmult.topics.StructuralTopics` and a formula with random terms.
    data : StructuredCorpus, optional
        What the model was fitted to; needed only where `posterior` was saved without it.
    probability : float in (0, 1)
        Of the interval.
    """
    probability = as_probability(probability, "probability")
    terms = structured_data(posterior, data).design.terms
    if not terms:
        raise ValueError(
            "posterior must be of a formula with random terms, such as (1 | author), got"
            f" {', '.join(structured_data(posterior, data).design.names)}"
        )
    as_draws(posterior, "effect_variances")
    sizes = np.asarray(posterior.stack("effect_variances"), dtype=np.float64)
    shares = sizes / (1.0 + sizes.sum(axis=1, keepdims=True))
    groups = [term.kind == "group" for term in terms]
    titles = [f"({term.name})" if it else term.name for term, it in zip(terms, groups, strict=True)]
    levels = [f"{term.size:,}" if it else "" for term, it in zip(terms, groups, strict=True)]
    return Estimand(
        shares, ("term",), {"term": {"term": titles, "levels": levels}},
        caption="How much of what documents differ in goes with each author (or other group) and"
        " with the bends of curves, the straight-line effects of covariates aside, over all"
        " chains.",
        probability=probability,
    )  # fmt: skip


def topic_labels_of(names: Sequence[str]) -> dict[str, Sequence[Any]]:
    """Labels of an axis of all topics."""
    return {"topic": range(len(names)), "words": names}


def structured_data(posterior: Posterior, data: Any = None) -> StructuredCorpus:
    """The covariates that a posterior was sampled with: its own data, or those given."""
    own: object = as_draws(posterior).data if data is None else data
    if data is None and not isinstance(own, StructuredCorpus):
        raise ValueError(
            "posterior must be of data with covariates, got one of"
            f" {type(posterior.model).__name__} given a {type(own).__name__} (make the data"
            " with pgmult.topics.with_covariates)"
        )
    return data_of_run(posterior, data, StructuredCorpus, "make one with with_covariates")


def topic_names(posterior: Posterior, chain: int | None) -> list[str]:
    """Number and telling words of the topics of one chain, the best if none is given.

    Before the words of a topic with keywords stands what these were called.
    """
    if "topics" not in posterior:
        count = len(posterior.coords["topic"]) if "topic" in posterior.coords else None
        if count is None:
            count = posterior.model.num_topics
        return [f"topic {k}" for k in range(count)]
    means = mean_topics(posterior, best_chain(posterior) if chain is None else chain, max_draws=100)
    words, best = names_along(posterior, "word", means.shape[-1]), telling(means, _NAME_WORDS)
    given = [f"{name}: " for name in posterior.coords.get("keyword_topic", [])]
    told = [" ".join(words[j] for j in row) for row in best]
    return [f"{k} {''.join(given[k : k + 1])}{of}" for k, of in enumerate(told)]
