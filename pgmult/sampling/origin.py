"""What a posterior knows of where its draws come from: its model, its link and its data's hash.

Draws alone do not say how psi becomes probabilities, nor of which data they are. Whatever reads a
posterior asks its origin, and refuses draws that have none rather than guess.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pgmult.core.typing import Linked
from pgmult.sampling.codec import decode, encode, fingerprint

__all__ = ["Origin"]


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
    find_data : callable or None
        Gives the data where they are at hand: in the process that sampled, and in a run directory.
    """

    model: Any
    link: Any
    data_hash: str | None
    find_data: Callable[[], Any] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, model: Any, data: Any) -> "Origin":
        """The origin of draws from the posterior of `model` given `data`, in the model's type."""
        link = model.link(data) if isinstance(model, Linked) else None
        try:
            data_hash = fingerprint(data)
        except TypeError:  # data of a type that no file holds
            data_hash = None
        return cls(model, link, data_hash, partial(_itself, data))

    def encoded(self) -> dict[str, Any]:
        """As JSON's types, for a run directory."""
        return {
            "model": encode(self.model, place="model"),
            "link": encode(self.link, place="link"),
            "data_hash": self.data_hash,
        }

    @classmethod
    def decoded(
        cls,
        tree: Mapping[str, Any],
        modules: Collection[str] = (),
        find_data: Callable[[], Any] | None = None,
    ) -> "Origin":
        """What was encoded; `modules` may hold classes besides those of pgmult."""
        model, link = (decode(tree[name], modules=modules) for name in ("model", "link"))
        return cls(model, link, tree["data_hash"], find_data)


def _itself(data: Any) -> Any:
    return data
