"""The draws of a run in memory: what `pgmult.sampling.store` does on disk."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pgmult.core.machine import available_memory
from pgmult.core.typing import AnyArray, Array, traits_of
from pgmult.sampling.plan import Plan
from pgmult.sampling.posterior import Posterior
from pgmult.sampling.store import LOG_LIKELIHOOD, Settings, rectangle


class Memory:
    """Draws in memory, ``(chain, draw, ...)``."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self._lock = threading.Lock()
        self.arrays: dict[str, AnyArray] = {}

    def chain(self, number: int) -> "ChainMemory":
        """Where a chain's draws go."""
        return ChainMemory(self, number)

    def allocate(self, values: Mapping[str, Array]) -> None:
        """Make room for all draws, given one of each variable."""
        chains, draws, every = self.settings.chains, self.settings.draws, self.settings.every
        with self._lock:
            if self.arrays:
                return
            lengths = {name: draws // every.get(name, 1) for name in values}
            sizes = {name: x.nbytes * chains * lengths[name] for name, x in values.items()}
            needed, most, available = sum(sizes.values()), max(sizes.values()), available_memory()
            if needed > available:
                largest = max(sizes, key=lambda name: sizes[name])
                total, alone, room = (f"{n / 1e9:.3g} GB" for n in (needed, most, available))
                raise MemoryError(
                    f"the draws to keep take {total}, {largest} alone {alone}, and {room} of memory"
                    " are available (keep= and thin= keep fewer, store= writes them to disk)"
                )
            self.arrays = {
                name: np.empty((chains, lengths[name], *x.shape), x.dtype)
                for name, x in values.items()
            }

    def posterior(
        self, plan: Plan, kept: list[int], seconds: Sequence[float], attrs: dict[str, object]
    ) -> Posterior:
        """The posterior of the most draws that form an array, as many of each of its chains.

        Parameters
        ----------
        plan : Plan
        kept : list of int
            Draws of each chain.
        seconds : sequence of float
            That each chain took.
        attrs : dict
            More attributes of the posterior.
        """
        chains, num_draws = rectangle(kept)
        is_whole = chains == list(range(len(chains)))
        chosen: Any = slice(len(chains)) if is_whole else chains  # a slice copies nothing
        every = self.settings.every
        lengths = {name: num_draws // every.get(name, 1) for name in self.arrays}
        arrays = {name: array[chosen, : lengths[name]] for name, array in self.arrays.items()}
        stats = {LOG_LIKELIHOOD: arrays.pop(LOG_LIKELIHOOD)}
        return Posterior(
            arrays, dims={name: plan.model.dims[name] for name in arrays}, sample_stats=stats,
            coords={"chain": np.array(chains), **plan.coords}, origin=plan.origin, every=every,
            attrs=plan.attrs() | attrs | {"seconds": [seconds[i] for i in chains]},
            label_dims=traits_of(plan.model).label_dims,
        )  # fmt: skip


class ChainMemory:
    """One chain's share of the draws in memory."""

    place = None

    def __init__(self, memory: Memory, number: int):
        self._memory, self._number, self._kept = memory, number, 0

    def begin(self, values: Mapping[str, Array]) -> None:
        """Make room, if no other chain has."""
        self._memory.allocate(values)

    def append(self, values: Mapping[str, AnyArray]) -> None:
        """Take one draw of every variable that is kept of it."""
        every = self._memory.settings.every
        for name, value in values.items():
            self._memory.arrays[name][self._number, self._kept // every.get(name, 1)] = value
        self._kept += 1

    def due(self) -> bool:
        """Never: there is nothing to write."""
        return False

    def commit(self, checkpoint: Mapping[str, object]) -> None:
        """Nothing to do: the draws are where they belong."""
