"""The one place that knows how ArviZ's releases differ.

ArviZ 0.x (Python 3.11 and later) makes an `arviz.InferenceData` from one keyword a group; ArviZ
1.x (Python 3.12 and later) makes an `xarray.DataTree` from a mapping of groups.
"""

import json
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgmult.sampling.posterior import Posterior

__all__ = ["to_arviz"]

_STATS = {"log_likelihood": "total_log_likelihood"}
"""ArviZ keeps the name log_likelihood for one value an observation."""


def to_arviz(posterior: "Posterior") -> Any:
    """See `Posterior.to_arviz`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # 0.23 announces 1.x when imported
            import arviz
    except ImportError as error:
        raise ImportError("to_arviz needs ArviZ: pip install 'pgmult[arviz]'") from error
    stats = {_STATS.get(name, name): values for name, values in posterior.sample_stats.items()}
    groups: dict[str, Any] = {"posterior": dict(posterior), "sample_stats": stats}
    coords = dict(posterior.coords)
    dims = {}
    for name, (_, _, *axes) in posterior.dims.items():
        dims[name] = _distinct(axes)
        coords |= {new: coords[old] for new, old in zip(dims[name], axes, strict=True)}
    if int(arviz.__version__.split(".")[0]) >= 1:
        tree = arviz.from_dict(groups, coords=coords, dims=dims)
        tree["posterior"].attrs.update(_flat(posterior.attrs))
        return tree
    data = arviz.from_dict(**groups, coords=coords, dims=dims)
    data.posterior.attrs.update(_flat(posterior.attrs))
    return data


def _flat(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes that the file formats of xarray take: what is nested becomes JSON."""
    return {
        name: json.dumps(value) if _is_nested(value) else value for name, value in attrs.items()
    }


def _is_nested(value: Any) -> bool:
    inside = value if isinstance(value, list | tuple) else ()
    return isinstance(value, Mapping) or any(isinstance(v, Mapping | list) for v in inside)


def _distinct(axes: list[str]) -> list[str]:
    """Axis names without repeats, which xarray does not take: topic, topic_2."""
    return [
        axis if i == axes.index(axis) else f"{axis}_{axes[: i + 1].count(axis)}"
        for i, axis in enumerate(axes)
    ]
