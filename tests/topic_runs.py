"""Posteriors of topic models that were never sampled, for tests of what is told from draws."""

from dataclasses import replace

import numpy as np

from pgmult import Posterior
from pgmult.sampling import Origin
from pgmult.topics import StructuralTopics, as_corpus, with_covariates
from pgmult.topics.data.documents import DocumentTable


def run_of(model, data=None, sample_stats=None, attrs=None, **draws):
    """Draws, ``(chain, draw, ...)``, with the axes and labels that a run of the model has."""
    return Posterior(
        draws, dims={name: axes for name, axes in model.dims.items() if name in draws},
        coords=None if data is None else model.coords(data), sample_stats=sample_stats,
        attrs=attrs, label_dims=model.label_dims, origin=Origin.of(model, data),
    )  # fmt: skip


def repeated(model, data=None, copies=1, **values):
    """A chain of equal draws."""
    draws = {
        name: np.broadcast_to(value, (1, copies, *np.shape(value)))
        for name, value in values.items()
    }
    return run_of(model, data, **draws)


def speeches(mark="", *, texts=True, effect=2.0, dates=False):
    """Two chains of 24 speeches by six authors of two parties; topic 1 is of party R.

    All words, names, texts, columns and labels end with the mark.
    """
    rng, num_words, num_topics, shape = np.random.default_rng(4), 12, 3, (2, 60)
    party, year, author = (f"{name}{mark}" for name in ("party", "year", "author"))
    table = {
        party: [f"{'DR'[d % 2]}{mark}" for d in range(24)],
        year: [f"{1990 + d}-03-01" if dates else 1990 + 30 * d / 23 for d in range(24)],
        author: [f"a{d % 6}{mark}" for d in range(24)],
    }
    corpus = as_corpus(
        rng.poisson(2.0, size=(24, num_words)), [f"w{j}<b>{mark}" for j in range(num_words)],
        [f"speech {d} & co{mark}" for d in range(24)],
    )  # fmt: skip
    if texts:
        kept = {"text": [f"What was <said> in {d}{mark}" for d in range(24)]}
        corpus = replace(corpus, table=DocumentTable.of(kept | table, text="text"))
    formula = f"~ `{party}` + `{year}` + (1 | `{author}`)"
    data = with_covariates(corpus, table, formula, content=f"~ `{party}`")
    base = rng.dirichlet(np.full(num_words, 0.2), size=num_topics)
    coefficients = np.array([[-0.8, 0.0, 0.0], [effect, 0.0, 0.0], [0.3, -0.5, 0.0]])
    by_group = [[rng.dirichlet(99 * row + 0.1) for row in base] for _ in range(4 * shape[1])]
    return run_of(
        StructuralTopics(num_topics), data,
        sample_stats={"log_likelihood": rng.normal(np.array([[1.0], [0.0]]), size=shape)},
        attrs={"draws": shape[1], "tune": 0, "random_seed": 0, "seconds": [1.0, 1.0]},
        coefficients=coefficients + 0.05 * rng.normal(size=(*shape, 3, 3)),
        effects=0.1 * rng.normal(size=(*shape, 6, 3)),
        effect_variances=np.full((*shape, 1), 0.1),
        Sigma=np.tile(0.5 * np.eye(3), (*shape, 1, 1)),
        mu=np.zeros((*shape, 3)),
        topics=np.tile(base, (*shape, 1, 1)),
        group_topics=np.reshape(by_group, (*shape, 2, num_topics, num_words)),
        group_tokens=np.tile([[400.0, 200.0, 20.0], [300.0, 100.0, 60.0]], (*shape, 1, 1)),
        topic_shares=np.tile([0.2, 0.5, 0.3], (*shape, 1)),
        theta=rng.dirichlet(np.ones(3), size=(*shape, 24)),
    )  # fmt: skip
