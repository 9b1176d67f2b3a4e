"""Provisional pages of a run while it goes on: soon after it has begun, then ever again.

The first is made of what the chains' last sweeps were, while they are still tuned; later ones of
the draws that are stored. Making them takes at most about a tenth of the time; chains wait for the
first, which beside them took five times as long. Where brief runs choose the model first, there is
a page of the first of them.
"""

import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgmult.core.reports import Report
    from pgmult.sampling.chains import Sweep
    from pgmult.sampling.posterior import Posterior

_FIRST, _FEWEST_SECONDS = 4.0, 15.0  # after the first sweep; between pages
_BREAK = 10.0  # times as long as a page took until the next is begun
_LAST, _FEWEST = 20, 8  # sweeps of a chain that the first page is of, and the fewest
_FEWEST_STORED = 20  # draws of a chain that later pages are of
_MOST_BYTES = 2**28  # of states that are held for the first page


class Previews:
    """Writes provisional pages in a thread of its own, within a ``with`` block.

    Parameters
    ----------
    run : path
        The run directory.
    page : path
    report : callable
        Makes the report of a posterior.
    model, data : optional
        Without them, as where a run goes on, pages are of stored draws alone.
    keep : sequence of str
        Variables that the report may need.

    Attributes
    ----------
    has_begun : bool
        Whether there was a sweep, or draws from the beginning.
    """

    def __init__(
        self, run: Path, page: Path, report: Callable[["Posterior"], "Report"], model: Any = None,
        data: object = None, keep: Any = (),
    ):  # fmt: skip
        self._run, self._page, self._report = run, page, report
        self._model, self._data, self._keep = model, data, tuple(keep)
        self._states: dict[int, deque[Any]] | None = None if model is None else {}
        self.has_begun = model is None
        self._ended, self._go_on = threading.Event(), threading.Event()
        self._go_on.set()
        self._thread = threading.Thread(target=self._work, name="pgmult-page", daemon=True)

    def __enter__(self) -> "Previews":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def __call__(self, sweep: "Sweep") -> None:
        """After every sweep: a callback of `pgmult.sample`."""
        self.has_begun = True
        states = self._states  # the last of each chain, until draws are stored
        if states is not None and sweep.chain not in states:
            most = _MOST_BYTES // (4 * max(1, _nbytes(sweep.state)))
            if most < _FEWEST or any(array is None for array in _parts(sweep.state)):
                self._states = states = None  # too large, or its rows are elsewhere
            else:
                states[sweep.chain] = deque(maxlen=min(_LAST, most))
        if states is not None:
            states[sweep.chain].append(sweep.state)
        self._go_on.wait()

    def _work(self) -> None:
        pause, is_first = _FIRST, True
        while not self._ended.wait(0.5):
            if not self.has_begun:
                continue
            if self._ended.wait(pause):
                return
            began, made = time.monotonic(), False
            if is_first:
                self._go_on.clear()
            with suppress(Exception), warnings.catch_warnings():  # a page of few draws is a favour
                warnings.simplefilter("ignore")
                made = self._write()
            self._go_on.set()
            is_first = is_first and not made
            pause = max(0.0 if is_first else _FEWEST_SECONDS, _BREAK * (time.monotonic() - began))

    def _write(self) -> bool:
        """Make a page of what there is; False if that is not enough."""
        posterior, of_what = self._stored(), "draws"
        if posterior is None:
            posterior, of_what = self._last(), "sweeps of tuning"
        if posterior is None:
            return self._states is None  # there is nothing to wait for but draws
        _write_provisional(self._page, self._report, posterior, of_what)
        return True

    def _stored(self) -> "Posterior | None":
        """The draws on disk, if they are enough."""
        from pgmult.sampling.posterior import load

        if not (self._run / "inputs.npz").exists():
            return None
        run = load(self._run)
        if run.num_draws < _FEWEST_STORED:
            return None
        self._states = None
        return run

    def _last(self) -> "Posterior | None":
        """What the chains' last sweeps were."""
        import numpy as np

        from pgmult.core.typing import absent_of, coords_of, traits_of, variable
        from pgmult.sampling.origin import Origin
        from pgmult.sampling.posterior import Posterior

        model, data = self._model, self._data
        held = sorted((self._states or {}).copy().items())
        chains = {c: list(states) for c, states in held if len(states) >= _FEWEST}
        if not chains:
            return None
        size = min(map(len, chains.values()))

        def values(of_state: Callable[[Any], Any]) -> Any:
            return np.array([[*map(of_state, states[-size:])] for states in chains.values()])

        absent = absent_of(model, data)
        keep = [name for name in self._keep if name not in absent]
        return Posterior(
            {n: values(partial(variable, model, data=data, name=n)) for n in keep},
            dims={name: model.dims[name] for name in keep},
            coords={"chain": np.array([*chains]), **coords_of(model, data)},
            sample_stats={"log_likelihood": values(lambda s: model.log_likelihood(s, data))},
            label_dims=traits_of(model).label_dims,
            origin=Origin.of(model, data),
        )


def page_of_brief_run(
    page: Path, report: Callable[["Posterior"], "Report"], posterior: "Posterior", name: str
) -> None:
    """Write a page of the first of several models that brief runs choose between.

    Parameters
    ----------
    page : path
    report : callable
        Makes the report of a posterior.
    posterior : Posterior
    name : str
        What the model is called.
    """
    with suppress(Exception), warnings.catch_warnings():  # a page of few draws is a favour
        warnings.simplefilter("ignore")
        page.parent.mkdir(parents=True, exist_ok=True)
        of_what = f"draws of {name}, the first of the models that are tried"
        _write_provisional(page, report, posterior, of_what)


def _write_provisional(
    page: Path, report: Callable[["Posterior"], "Report"], posterior: "Posterior", of_what: str
) -> None:
    """Write a page that says of what it is."""
    from pgmult.core import sealed

    size, now = f"{posterior.num_chains} x {posterior.num_draws}", time.strftime("%H:%M:%S")
    notice = f"Provisional: {size} {of_what}, at {now}, while the run goes on. Load this page again"
    notice += " for a newer one; what it says of chains is of so few as these."
    sealed.write(page, replace(report(posterior), notice=notice).html().encode(), sync=False)


def _parts(state: object) -> list[Any]:
    return [getattr(state, f.name) for f in fields(state)] if is_dataclass(state) else []


def _nbytes(state: object) -> int:
    """Bytes of the arrays of a state."""
    inside = _parts(state)
    return int(getattr(state, "nbytes", 0)) + sum(map(_nbytes, inside))
