"""Linear Gaussian states seen through a link: one point of such a model, for particle methods.

    x_first ~ N(initial_mean + drive_first, initial_cov),
    x_t     ~ N(transition x_{t-1} + drive_t, noise_cov),      drive_t = input_weights u_t
    counts_t ~ Multinomial(total_t, pi(offset + emission_weights u_t + loadings x_t))

where pi breaks sticks in some order of the symbols, or is the softmax. Inputs drive states from a
sequence's second step on, and its first as well where it continues another. With loadings all zero
the states say nothing:

>>> import numpy as np
>>> draw = StateSpaceDraw(
...     transition=0.9 * np.eye(1), noise_cov=np.eye(1), initial_mean=np.zeros(1),
...     initial_cov=np.eye(1), loadings=np.zeros((2, 1)), offset=np.zeros(2),
... )
>>> draw.state_dim, draw.num_symbols
(1, 3)
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_finite, as_spd
from pgmult.priors.gaussian import lower_cholesky
from pgmult.sequences.data.sequences import Sequences

__all__ = ["StateSpaceDraw", "StateSpaceDraws", "sorted_entries"]


class StateSpaceDraw(NamedTuple):
    """The parameters of one draw.

    Attributes
    ----------
    transition : array, ``(D, D)``
    noise_cov : array, ``(D, D)``
    initial_mean : array, ``(D,)`` or ``(num_sequences, D)``
        The latter where sequences start from different places.
    initial_cov : array, ``(D, D)``
    loadings : array, ``(K - 1, D)`` for sticks, ``(K, D)`` for the softmax
    offset : array, ``(K - 1,)`` or ``(K,)``
    input_weights : array, ``(D, num_inputs)``, or None
        Of the inputs in the states' drive.
    emission_weights : array, ``(K - 1 or K, num_inputs)``, or None
        Of the inputs in the link's argument.
    link : "stick_breaking" or "softmax"
    order : int array, ``(K,)``, or None
        Stick k breaks for symbol ``order[k]``; by default the data's `symbol_order`.
    continues : bool
        Whether the inputs of first steps drive their states: see `continued`.
    """

    transition: FloatArray
    noise_cov: FloatArray
    initial_mean: FloatArray
    initial_cov: FloatArray
    loadings: FloatArray
    offset: FloatArray
    input_weights: FloatArray | None = None
    emission_weights: FloatArray | None = None
    link: Literal["stick_breaking", "softmax"] = "stick_breaking"
    order: IntArray | None = None
    continues: bool = False

    @property
    def state_dim(self) -> int:
        """Size of a state, D."""
        return len(self.transition)

    @property
    def num_symbols(self) -> int:
        """K."""
        return len(self.offset) + (self.link == "stick_breaking")

    def continued(self, last_states: FloatArray) -> "StateSpaceDraw":
        """The same draw for sequences that go on where others ended.

        `last_states`, ``(num_sequences, D)`` or ``(D,)``, are the states of the step before each
        sequence's first.
        """
        mean = np.einsum("...d,ed->...e", np.asarray(last_states, np.float64), self.transition)
        return self._replace(initial_mean=mean, initial_cov=self.noise_cov, continues=True)


def sorted_entries(
    data: Sequences, draw: StateSpaceDraw
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Steps' entries as compiled code takes them: indptr, positions, counts, inputs.

    Positions are sticks (a symbol's place in the order), or symbols for the softmax, increasing
    within a step.
    """
    place = np.arange(data.num_symbols)
    if draw.link == "stick_breaking":
        order = data.symbol_order if draw.order is None else np.asarray(draw.order)
        place = np.empty(data.num_symbols, np.int64)
        place[order] = np.arange(data.num_symbols)
    positions = place[data.symbols]
    step = np.repeat(np.arange(data.num_steps), np.diff(data.indptr))
    increasing = np.lexsort((positions, step))
    inputs = np.zeros((data.num_steps, 0)) if data.inputs is None else data.inputs
    return (
        np.asarray(data.indptr, np.int64),
        np.ascontiguousarray(positions[increasing]),
        np.asarray(data.counts, np.int64)[increasing],
        np.ascontiguousarray(inputs, np.float64),
    )


class StateSpaceDraws(NamedTuple):
    """Many draws as arrays with a leading axis; roots of covariances, columns of loadings."""

    softmax: bool
    transition: FloatArray
    root: FloatArray
    initial_mean: FloatArray
    initial_root: FloatArray
    loadings: FloatArray
    columns: FloatArray
    offset: FloatArray
    input_weights: FloatArray
    emission_weights: FloatArray

    @classmethod
    def of(cls, draws: Sequence[StateSpaceDraw], data: Sequences) -> "StateSpaceDraws":
        """Check draws against the data they are for, and stack them.

        Raises
        ------
        ValueError
            If there is none, shapes do not agree with the first draw's or the data's, numbers are
            not finite or a covariance is not positive definite.
        """
        if not draws:
            raise ValueError("draws must hold at least one draw, got none")
        first = draws[0]
        if first.link not in ("stick_breaking", "softmax"):
            raise ValueError(f'link must be "stick_breaking" or "softmax", got {first.link!r}')
        if first.num_symbols != data.num_symbols:
            raise ValueError(
                f"the draws are of {first.num_symbols} symbols, the data of {data.num_symbols}"
            )
        if first.order is not None and not np.array_equal(
            np.sort(first.order), np.arange(data.num_symbols)
        ):
            raise ValueError(f"order must be a permutation of 0, ..., {data.num_symbols - 1}")
        for s, draw in enumerate(draws):
            if (draw.link, draw.continues) != (first.link, first.continues) or not np.array_equal(
                first.order if first.order is not None else [],
                draw.order if draw.order is not None else [],
            ):
                raise ValueError(f"all draws must agree in link and order, draw {s} does not")
        n, D, U = len(first.offset), first.state_dim, data.num_inputs
        starts = (data.num_sequences, D)

        def stack(name: str, shape: tuple[int, ...], absent: bool = False) -> FloatArray:
            arrays: list[Any] = [getattr(draw, name) for draw in draws]
            if absent:
                arrays = [np.zeros(shape) if array is None else array for array in arrays]
            for s, array in enumerate(arrays):
                wrong = np.shape(array) != shape
                if wrong and not (name == "initial_mean" and np.shape(array) == starts):
                    raise ValueError(
                        f"{name} must have shape {shape}, got {np.shape(array)} in draw {s}"
                        + (" (do the data lack inputs?)" if absent and U == 0 else "")
                    )
            if name == "initial_mean":
                arrays = [np.broadcast_to(array, starts) for array in arrays]
            return as_finite(np.array(arrays), name)

        def roots(name: str) -> FloatArray:
            covs = as_spd(stack(name, (D, D)), name, D)
            return np.array([lower_cholesky(cov) for cov in covs])

        initial_mean, input_weights = (
            stack("initial_mean", (D,)),
            stack("input_weights", (D, U), True),
        )
        if data.inputs is not None and first.continues:
            arriving = data.inputs[data.offsets[:-1]]
            initial_mean = initial_mean + np.einsum("qu,sdu->sqd", arriving, input_weights)
        loadings = stack("loadings", (n, D))
        return cls(
            first.link == "softmax",
            stack("transition", (D, D)),
            roots("noise_cov"),
            initial_mean,
            roots("initial_cov"),
            loadings,
            np.ascontiguousarray(np.swapaxes(loadings, 1, 2)),
            stack("offset", (n,)),
            input_weights,
            stack("emission_weights", (n, U), absent=True),
        )
