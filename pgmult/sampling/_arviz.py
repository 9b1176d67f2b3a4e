"""The one place that knows how ArviZ's releases differ.

ArviZ 0.x (Python 3.11 and later) makes an `arviz.InferenceData` from one keyword a group; ArviZ
1.x (Python 3.12 and later) makes an `xarray.DataTree` from a mapping of groups.
"""

import json
import math
import warnings
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy

from pgmult.core.lazy import optional
from pgmult.core.machine import available_memory
from pgmult.core.typing import Array, PredictsRows, PredictsRowsInTurn
from pgmult.sampling.draws import Draws

_STATS = {"log_likelihood": "total_log_likelihood"}
"""ArviZ keeps the name log_likelihood for one value an observation."""


def to_arviz(posterior: Draws, data: object, random_seed: int) -> Any:
    """See `Posterior.to_arviz`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # 0.23 announces 1.x when imported
        arviz = optional("arviz", "to_arviz needs ArviZ", "arviz")
    posterior = posterior.whole()
    stats = {_STATS.get(name, name): values for name, values in posterior.sample_stats.items()}
    groups: dict[str, Any] = {"posterior": dict(posterior), "sample_stats": stats}
    coords = dict(posterior.coords)
    dims = {}
    for name, (_, _, *axes) in posterior.dims.items():
        dims[name] = _distinct(axes)
        coords |= {new: coords[old] for new, old in zip(dims[name], axes, strict=True)}
    new_groups = int(arviz.__version__.split(".")[0]) >= 1
    of_rows = {} if data is None else _of_rows(posterior, data, random_seed)
    labels: Any = {"coords": coords, "dims": dims}
    made = arviz.from_dict(groups, **labels) if new_groups else arviz.from_dict(**groups, **labels)
    made["posterior"].attrs.update(_flat(posterior.attrs))
    for name, variables in of_rows.items():
        dataset = _dataset(variables, coords, with_draws=name in _DRAWN)
        if new_groups:
            import xarray

            made[name] = xarray.DataTree(dataset)
        else:
            made.add_groups({name: dataset})
    return made


_DRAWN = ("log_likelihood", "posterior_predictive")


def _of_rows(
    posterior: Draws, data: object, random_seed: int
) -> dict[str, dict[str, tuple[tuple[str, ...], Array]]]:
    """The groups that are made from the data: each a mapping from variable to (dims, array)."""
    model = posterior.model
    if not isinstance(model, PredictsRows | PredictsRowsInTurn):
        name = type(model).__name__
        raise TypeError(f"data must be left out of a run of {name}: they are no multinomial rows")
    if not posterior.is_of(data):
        raise ValueError("data must be those that the posterior was sampled from, got other ones")
    rows = model.observed_rows(data)
    shape = posterior.num_chains, posterior.num_draws
    draws = math.prod(shape)
    full = np.flatnonzero(rows.counts.sum(axis=1) > 0)
    room, needed = available_memory(), 8.0 * draws * len(full)
    if needed > room:
        raise MemoryError(
            f"the log likelihoods of {len(full):,} rows take {needed / 1e9:.3g} GB, and"
            f" {room / 1e9:.3g} GB of memory are available (pass fewer draws)"
        )
    predicts = needed + 8.0 * draws * rows.counts.size < room
    if not predicts:
        what = f"{draws:,} draws of {rows.counts.size:,} counts do not fit into memory"
        warnings.warn(f"posterior_predictive is left out: {what}", stacklevel=4)
    log_likelihood = np.empty((draws, len(full)))
    replicated = np.empty((draws if predicts else 0, *rows.counts.shape), dtype=np.int64)
    counts, totals = rows.counts[full], rows.counts.sum(axis=1)
    coefficient = gammaln(totals[full] + 1.0) - gammaln(counts + 1.0).sum(axis=1)
    rng = np.random.default_rng(random_seed)
    variables = {name: posterior.stack(name) for name in posterior}
    for i in range(draws):
        draw = {name: values[i] for name, values in variables.items()}
        if isinstance(model, PredictsRows):
            probs = model.row_probs(draw, data)
            scores = np.asarray(xlogy(counts, probs[full]).sum(axis=1))
            if predicts:
                replicated[i] = rng.multinomial(totals, probs / probs.sum(axis=1, keepdims=True))
        else:
            scores = model.log_predictive(draw, data)[full]
            if predicts:
                replicated[i] = model.replicate(rng, draw, data)
        log_likelihood[i] = coefficient + scores
    row, category = rows.dims
    full_rows = f"seen_{row}" if len(full) < len(rows.counts) else row
    groups: dict[str, dict[str, Any]] = {
        "log_likelihood": {"counts": ((full_rows,), log_likelihood.reshape(*shape, -1))},
        "observed_data": {"counts": ((row, category), rows.counts)},
        "constant_data": dict(rows.constants),
    }
    if full_rows != row:
        groups["constant_data"] |= {f"{full_rows}s": ((full_rows,), full)}
    if predicts:
        drawn = replicated.reshape(*shape, *rows.counts.shape)
        groups["posterior_predictive"] = {"counts": ((row, category), drawn)}
    return groups


def _dataset(variables: Mapping[str, Any], coords: Mapping[str, Any], *, with_draws: bool) -> Any:
    import xarray

    first = ("chain", "draw") if with_draws else ()
    values = {name: ((*first, *dims), array) for name, (dims, array) in variables.items()}
    pairs = (zip(dims, array.shape, strict=True) for dims, array in values.values())
    sizes = dict(chain.from_iterable(pairs))
    named = {dim: coords.get(dim, ()) for dim in sizes}
    labels = {d: x if len(x) == sizes[d] else np.arange(sizes[d]) for d, x in named.items()}
    return xarray.Dataset(values, labels)


def _flat(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes that the file formats of xarray take: what is nested becomes JSON."""
    return {name: json.dumps(x) if _is_nested(x) else x for name, x in attrs.items()}


def _is_nested(value: object) -> bool:
    inside = value if isinstance(value, list | tuple) else ()
    return isinstance(value, Mapping) or any(isinstance(v, Mapping | list) for v in inside)


def _distinct(axes: list[str]) -> list[str]:
    """Axis names without repeats, which xarray does not take: topic, topic_2."""
    counts = [axes[:i].count(axis) for i, axis in enumerate(axes)]
    return [f"{axis}_{n + 1}" if n else axis for axis, n in zip(axes, counts, strict=True)]
