"""What every fit without sampling answers, whatever it fitted and however."""

from typing import Protocol, runtime_checkable

__all__ = ["Fit"]


@runtime_checkable
class Fit(Protocol):
    """Where an approximation of a posterior ended.

    A fit that remembers its way has a ``history``, too: an array of the objective, one number an
    iteration, of which the last is `objective`.

    Attributes
    ----------
    method : str
        Which approximation it is, by the name that its function takes for it.
    objective : float
        What was climbed, at the result: the log evidence, bounded or approximated, over all rows
        and groups. Where parameters are point estimates their log prior density is in it, up to a
        constant.
    is_bound : bool
        Whether `objective` is a lower bound.
    converged : bool
        Whether the search ended by its tolerance, for every row and group of it.
    num_iterations : int
        Of the slowest row or group.
    """

    @property
    def method(self) -> str: ...  # noqa: D102

    @property
    def objective(self) -> float: ...  # noqa: D102

    @property
    def is_bound(self) -> bool: ...  # noqa: D102

    @property
    def converged(self) -> bool: ...  # noqa: D102

    @property
    def num_iterations(self) -> int: ...  # noqa: D102
