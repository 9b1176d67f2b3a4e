"""Topics that belong together, read as one.

A model with many topics often divides a subject among several. Merged, their shares are summed in
every draw, and words are averaged, each topic weighted by its share in that draw: so intervals
include how uncertain it is which of them a word belongs to.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pgmult.core.arguments import as_mapping
from pgmult.core.typing import FloatArray, IntArray
from pgmult.sampling.posterior import Posterior
from pgmult.topics.runs import MERGED, as_draws, topic_places
from pgmult.topics.summaries.matching import match_topics

_SUMMED = ("topic_shares", "theta", "group_tokens")  # over the topics, which are the last axis
_WORDS = {"topics": "topic_shares", "group_topics": "group_tokens"}  # and what weights them
_OF_MODEL = ("coefficients", "effects", "effect_variances", "Sigma")  # stay as they were drawn
_AXES = {"topic": "model_topic", "other_topic": "other_model_topic"}


def merge(run: Posterior, groups: Mapping[str, Sequence[int]]) -> Posterior:
    """Return the run with some topics united: words, shares, effects, documents and its report.

    Parameters
    ----------
    run : Posterior
        With ``topics`` and ``topic_shares``.
    groups : mapping from str to sequence of int
        A name and the numbers of the topics that it unites: ``{"economy": [3, 7]}``. One number
        only names a topic.

    Returns
    -------
    Posterior
        United topics come first, the others follow in their order, with new numbers. Chains are
        matched topic by topic beforehand. The run answers what needs no more than shares and words;
        of a structural topic model also `effects`.

    Raises
    ------
    ValueError
        If a number is not that of a topic, occurs twice, or the topics are united already or drift.
    """
    as_draws(run, "topics", "topic_shares")
    if MERGED in run.attrs:
        raise ValueError("run must be of unmerged topics: name all groups in one call")
    if "time" in run.dims["topics"]:
        raise ValueError("run must have topics that are the same at all times")
    size = run["topic_shares"].shape[-1]
    named = {}
    for name, group in as_mapping(groups, "groups").items():
        topics = [group] if isinstance(group, int | np.integer) else group
        named[str(name)] = topic_places(topics, size, f"groups[{name!r}]").tolist()
    listed = [k for group in named.values() for k in group]
    if not listed or not all(named.values()) or len(set(listed)) < len(listed):
        raise ValueError(f"groups must name topics, each once, got {dict(groups)!r}")
    others = [k for k in range(size) if k not in listed]
    members = [*named.values(), *([k] for k in others)]
    if len(members) < 2:
        raise ValueError("groups must leave two topics at least, got all topics in one group")
    matrix = np.array([[float(k in group) for group in members] for k in range(size)])
    orders = match_topics(run).order
    sources = {name: name for name in _SUMMED if name in run}
    if "psi" in run:
        sources.setdefault("theta", "psi")
    draws, dims, every = dict[str, Any](), dict[str, tuple[str, ...]](), dict[str, int]()
    for name, source in sources.items():
        values = run[source] if name == source else run.link.probs(run[source])
        draws[name] = np.stack([of[..., o] for of, o in zip(values, orders, strict=True)]) @ matrix
        dims[name], every[name] = (*run.dims[source][2:-1], "topic"), run.every.get(source, 1)
    for name, beside in _WORDS.items():
        if name in run:
            both, dims[name] = run.together(name, beside), run.dims[name][2:]
            every[name] = run.every.get(name, 1) * run.steps(name, beside)[name]
            chains = zip(both[name], both[beside], orders, strict=True)
            averaged = [_averaged(*of_chain, members) for of_chain in chains]
            draws[name] = np.stack(averaged).astype(run[name].dtype)
    for name in _OF_MODEL if "coefficients" in run else ():
        if name in run:
            axes = run.dims[name][2:]
            draws[name] = np.stack([_ordered(run[name][c], axes, o) for c, o in enumerate(orders)])
            dims[name] = tuple(_AXES.get(axis, axis) for axis in axes)
    used = {axis for of in dims.values() for axis in of}
    labels = {axis: run.coords[axis] for axis in used - {"topic", *_AXES.values()}}
    keywords = enumerate(run.coords.get("keyword_topic", ()))
    labels["keyword_topic"] = np.array([*named, *(str(of) for k, of in keywords if k in others)])
    every = {name: apart for name, apart in every.items() if apart > 1}
    return Posterior(
        draws, dims=dims, coords={"chain": run.coords["chain"], **labels},
        sample_stats=run.sample_stats, attrs={**run.attrs, MERGED: members},
        label_dims=run.label_dims | set(_AXES.values()), origin=run.origin, every=every,
    )  # fmt: skip


def _ordered(draws: FloatArray, axes: Sequence[str], order: IntArray) -> FloatArray:
    """Draws of one chain with its topics in the order of the best one."""
    for place, axis in enumerate(axes, 1):
        if axis in _AXES:
            draws = np.take(draws, order, axis=place)
    return np.asarray(draws)


def _averaged(
    words: FloatArray, sizes: IntArray, order: IntArray, members: Sequence[Sequence[int]]
) -> FloatArray:
    """Words of united topics, ``(draw, ..., topic, word)``, each weighted by its size."""
    words = np.take(words, order, axis=-2)
    weights = np.take(np.asarray(sizes, dtype=np.float64), order, axis=-1) + 1e-12
    united = []
    for group in members:
        total = np.einsum("...k,...kv->...v", weights[..., group], words[..., group, :])
        united.append(total / weights[..., group].sum(axis=-1)[..., None])
    return np.stack(united, axis=-2)
