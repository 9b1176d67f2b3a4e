"""Effects of covariates in other documents than those that the topics were found in.

The topics of a run are held, draw by draw, and the rest of a structural topic model is sampled for
the new documents: z, psi, coefficients, Sigma, effects of authors. So the new documents, with
columns and a formula of their own, inform the effects of covariates and do not change the topics;
intervals include the uncertainty of the topics. The run itself needs no covariates.

The answer is a posterior of `StructuralTopics` given the new documents: ask it for ``effects``.

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(0.5, size=(40, 30))
>>> run = pgmult.sample(
...     pgmult.topics.CorrelatedTopics(num_topics=3), pgmult.topics.as_corpus(counts[:20]),
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> new = pgmult.topics.with_covariates(counts[20:], {"party": ["D", "R"] * 10}, "~ party")
>>> found = refit(run, new)
>>> found.effects("party").mean.shape
(2, 3)
"""

from dataclasses import replace
from typing import Any

import numpy as np

from pgmult.core.arguments import as_kind, as_repeats, as_seed
from pgmult.core.typing import Generator, traits_of, variable
from pgmult.core.validate import as_positive_int
from pgmult.sampling.blocks import Asks, Sums, step
from pgmult.sampling.origin import Origin
from pgmult.sampling.posterior import Posterior
from pgmult.topics.data.corpus import StructuredCorpus
from pgmult.topics.fits.new_documents import align_words
from pgmult.topics.models.structural import StructuralTopics, StructuralTopicsState
from pgmult.topics.runs import as_unmerged, of_chain, share_of_draws, spread
from pgmult.topics.starts.searches import Searched
from pgmult.topics.updates.allocation import allocate_tokens
from pgmult.topics.updates.collapsed import Allocation

_KEPT = "coefficients", "effects", "effect_variances", "mu", "Sigma", "theta", "topic_shares"


def refit(
    run: Posterior, corpus: StructuredCorpus, *, max_draws: int = 200, sweeps: int = 5,
    warm_up: int = 100, random_seed: int = 0,
) -> Posterior:  # fmt: skip
    """Sample a structural topic model of new documents, the topics being those of a run.

    Parameters
    ----------
    run : Posterior
        Of any topic model, with ``topics``; not of one whose words vary by group or time.
    corpus : StructuredCorpus
        The new documents, with covariates: ``corpus.with_covariates("~ party")``. Words are found
        by their names.
    max_draws : int
        Draws of topics, evenly spread over chains; there are as many draws of the rest.
    sweeps : int
        Gibbs sweeps at each of them.
    warm_up : int
        Sweeps more at the first of a chain.
    random_seed : int

    Returns
    -------
    Posterior
        Of `StructuralTopics`, with the chains of the run.

    Raises
    ------
    ValueError
        If words cannot be found by name, or words vary by group.

    Notes
    -----
    Costs what as many sweeps of `StructuralTopics` do. The topics are not updated by the new
    documents, and so this is no posterior of both corpora together ("cut" inference).
    """
    as_unmerged(run)
    hint = "make it with corpus.with_covariates(formula)"
    new = as_kind(corpus, "corpus", StructuredCorpus, hint)
    if "topics" not in run or run["topics"].ndim != 4 or "group_topics" in run:
        raise ValueError("run must have kept topics, of words that do not vary by group")
    if new.content is not None:
        raise ValueError("corpus must have no content=: topics are those of the run")
    sweeps, warm_up = as_repeats(sweeps, "sweeps"), as_repeats(warm_up, "warm_up", minimum=0)
    num_topics, num_words = run["topics"].shape[-2:]
    words, _, _ = align_words(new, run.coords.get("word"), num_words)
    data = words.extended(StructuredCorpus, design=new.design, content=None)
    model = StructuralTopics(num_topics)
    share = share_of_draws(as_positive_int(max_draws, "max_draws"), run.num_chains)
    rng = np.random.default_rng(as_seed(random_seed))
    names = [name for name in _KEPT if name not in model.absent(data)]
    stored: dict[str, list[Any]] = {name: [] for name in ("log_likelihood", *names, "topics")}
    even = np.full((data.num_documents, num_topics), 1.0 / num_topics)
    for chain in range(run.num_chains):
        kept = of_chain(run, chain, "topics")["topics"]
        kept = kept[spread(len(kept), share)]
        topics = np.asarray(kept, dtype=np.float64)
        # tokens at the topics that their words suggest, and the rest drawn given them
        topic_counts, word_counts = allocate_tokens(rng, data, even, topics[0])
        at = Allocation(np.empty(0, dtype=np.int64), topic_counts, word_counts.T)
        start = Searched(at, np.full(num_topics, 0.1), model.start_concentration())
        state = model.from_allocation(rng, start, data)
        for i, held in enumerate(topics):
            state = replace(state, topics=held)
            for _ in range(sweeps + (warm_up if i == 0 else 0)):
                state = held_step(model, rng, state, data)
            stored["log_likelihood"].append(model.log_likelihood(state, data))
            for name in names:
                stored[name].append(variable(model, state, data, name))
        stored["topics"].extend(kept)
    lead = run.num_chains, -1
    draws = {n: np.reshape(of, (*lead, *np.shape(of[0]))) for n, of in stored.items()}
    stats = {"log_likelihood": draws.pop("log_likelihood")}
    return Posterior(
        draws, dims={name: model.dims[name] for name in draws},
        coords={"chain": run.coords["chain"], **model.coords(data)}, sample_stats=stats,
        attrs={"model": type(model).__name__}, label_dims=traits_of(model).label_dims,
        origin=Origin.of(model, data),
    )  # fmt: skip


def held_step(
    model: StructuralTopics, rng: Generator, state: StructuralTopicsState, data: StructuredCorpus
) -> StructuralTopicsState:
    """One sweep over all but the topics."""

    def shared_step(
        rng: Generator, state: StructuralTopicsState, sums: Sums, data: StructuredCorpus, ask: Asks
    ) -> StructuralTopicsState:
        return replace(state, **model.psi_mean.given(rng, state, sums, data))

    moved: StructuralTopicsState = step(model, rng, state, data, shared_step)
    return moved
