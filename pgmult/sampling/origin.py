"""What is known of where draws come from: their model, and the data that they are given.

Draws alone do not say which link turns psi into probabilities, nor which data they belong to.
Functions that need this ask the origin, and raise an error if there is none.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pgmult.core.typing import Linked
from pgmult.sampling.codec import encode, fingerprint
from pgmult.sampling.store import RunReader


@dataclass(frozen=True, eq=False)
class Origin:
    """The model that draws are of, and the data it was given.

    Attributes
    ----------
    model : Model
    link : Link or None
        ``model.link(data)``; None where the model has no link.
    data_hash : str or None
        Of the data's encoding: see `pgmult.sampling.codec.fingerprint`. None where the data cannot
        be encoded.
    find_inputs : callable or None
        Returns a mapping with the "data" where they are available: in the process that sampled, and
        in a run directory.
    """

    model: Any
    link: Any
    data_hash: str | None
    find_inputs: Callable[[], Mapping[str, Any]] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, model: Any, data: Any) -> "Origin":
        """The origin of draws from the posterior of `model` given `data`, in the model's type."""
        is_linked = isinstance(model, Linked) and not isinstance(model.link, str)
        link = model.link(data) if is_linked else None
        try:
            data_hash = fingerprint(data)
        except TypeError:  # data of a type that no file holds
            data_hash = None
        return cls(model, link, data_hash, partial(dict, data=data))

    def encoded(self) -> dict[str, object]:
        """The origin in types that JSON has, for a run directory."""
        both = {name: encode(getattr(self, name), place=name) for name in ("model", "link")}
        return {**both, "data_hash": self.data_hash}

    @classmethod
    def stored(cls, run: RunReader, model: object) -> "Origin | None":
        """Origin of the draws in a run directory; None where it cannot be decoded.

        `model` is theirs where its class is not of pgmult, or None.
        """
        recorded = run.meta.get("model")
        if recorded is None or (model is None and not recorded["$class"].startswith("pgmult.")):
            return None
        model, find = stored_model(run, model), partial(run.inputs, "data")
        return cls(model, run.decoded("link"), run.meta["data_hash"], find)


def stored_model(run: RunReader, model: object) -> Any:
    """The model of the draws in a run directory; one that is given must be that.

    Raises
    ------
    ValueError
        If it is another.
    """
    if model is None:
        return run.decoded("model")
    tree = json.loads(json.dumps(encode(model, place="model")))
    if tree != run.meta["model"]:
        wanted = f"that of the draws in {run.path}, {run.meta['attrs'].get('model')}"
        raise ValueError(f"model must be {wanted}, got {model!r}")
    return model
