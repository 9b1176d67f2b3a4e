"""Are the derivatives that a user wrote those of the function? Finite differences, once."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np

from pgmult.core.typing import FloatArray, IntArray

_MOST_ROWS = 8
_STEPS = (1e-3, 1e-4)  # of the length on which f bends, or of 1
_LEAST_STEP = 1e-6  # of an argument
_SHARE = 1e-3  # by which a derivative may differ
_ROUNDING = 1e-14  # of a function's largest value
_REACH = 0.02  # of differences for traces, in standard deviations


@runtime_checkable
class RowObjectives(Protocol):
    """f_r(theta_r) for independent rows r, twice differentiable.

    Every method takes thetas, ``(num, n)``, and which rows they are of, an int64 array ``(num,)``.
    A value may be -inf or nan where f is not defined.
    """

    def value(self, theta: FloatArray, rows: IntArray) -> FloatArray:
        """``(num,)``."""

    def gradient(self, theta: FloatArray, rows: IntArray) -> FloatArray:
        """``(num, n)``."""

    def hessian(self, theta: FloatArray, rows: IntArray) -> FloatArray:
        """``(num, n, n)``."""


def _some_rows(num_rows: int) -> IntArray:
    """Choose at most eight rows, spread evenly: enough to notice a wrong formula."""
    return np.unique(np.linspace(0, num_rows - 1, min(num_rows, _MOST_ROWS)).astype(np.int64))


def check_derivatives(
    objectives: RowObjectives, theta: FloatArray, name: str = "objectives"
) -> None:
    """Refuse objectives whose answers have wrong shapes or whose derivatives are not theirs.

    A few rows are looked at. A derivative is refused where it differs from central differences by
    more than a thousandth, and by more than differences of two lengths differ from each other.

    Raises
    ------
    ValueError
        Which method, which entry, its value and what differences say.
    """
    rows = _some_rows(len(theta))
    point, n = theta[rows], theta.shape[1]
    shapes = {"value": (len(rows),), "gradient": (len(rows), n), "hessian": (len(rows), n, n)}
    answers: dict[str, FloatArray] = {}
    for method, shape in shapes.items():
        answers[method] = np.asarray(getattr(objectives, method)(point, rows))
        if answers[method].shape != shape:
            raise ValueError(
                f"{name}.{method} must return an array of shape {shape} for a start of {len(rows)}"
                f" rows of {n} numbers, got {answers[method].shape}"
            )
    length = _bends(answers["hessian"])
    for derivative, function in (("gradient", "value"), ("hessian", "gradient")):
        differences, doubt = _differences(getattr(objectives, function), point, length, rows)
        _refuse_unless_equal(
            answers[derivative], differences, doubt, rows, f"{name}.{derivative}", function
        )


def _bends(hessian: FloatArray) -> FloatArray:
    """How far f goes in each coordinate until its curvature matters, at most 1, ``(num, n)``."""
    curvature = np.abs(np.diagonal(hessian, axis1=1, axis2=2))
    return np.asarray(1.0 / np.sqrt(np.maximum(np.nan_to_num(curvature), 1.0)))


def _differences(
    function: Callable[[FloatArray, IntArray], FloatArray],
    theta: FloatArray,
    length: FloatArray,
    rows: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Finite differences, ``(num, ..., n)``, and how large their errors may be."""
    estimates = []
    for relative in _STEPS:
        step = np.maximum(relative * length, _LEAST_STEP * np.abs(theta))
        slopes = []
        for axis in range(theta.shape[1]):
            move = np.zeros_like(theta)
            move[:, axis] = step[:, axis]
            with np.errstate(all="ignore"):  # beyond the domain of f
                up, down = function(theta + move, rows), function(theta - move, rows)
                size = move[:, axis].reshape(-1, *(1,) * (np.ndim(up) - 1))
                slope = (up - down) / (2.0 * size)
                rounding = _ROUNDING * (np.abs(up) + np.abs(down)) / size
            slopes.append((slope, rounding))
        estimates.append([np.stack(column, axis=-1) for column in zip(*slopes, strict=True)])
    (wide, _), (narrow, rounding) = estimates
    with np.errstate(all="ignore"):
        return narrow, 10.0 * np.abs(wide - narrow) + rounding


def _refuse_unless_equal(
    answer: FloatArray, expected: FloatArray, doubt: FloatArray, rows: IntArray, name: str, of: str
) -> None:
    """Name the first entry of `answer` that is wrong, where differences say what is right."""
    is_finite = np.isfinite(expected) & np.isfinite(doubt)
    with np.errstate(all="ignore"):
        gap = np.abs(answer - expected)
        allowed = _SHARE * np.maximum(np.abs(answer), np.abs(expected)) + doubt
        axes = tuple(range(1, answer.ndim))
        allowed += 1e-6 * np.abs(np.where(is_finite, expected, 0.0)).max(axis=axes, keepdims=True)
        wrong = is_finite & ~(gap <= allowed)
    if not wrong.any():
        return
    row, *entry = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    at = (row, *entry)
    place = ", ".join(str(int(i)) for i in entry)
    raise ValueError(
        f"{name} must be the derivative of {of}: entry {place} of row {rows[row]} is"
        f" {answer[at]:.6g}, and finite differences give {expected[at]:.6g}"
    )


def trace_gradient(
    objectives: RowObjectives, theta: FloatArray, cov: FloatArray, rows: IntArray
) -> FloatArray:
    """The gradient of Tr(Hess f(theta) cov) by differences of gradients, ``(num, n)``.

    With cov = L L', the trace is the sum over columns l of L of the second derivative of f along l,
    so its gradient is that of the gradient: a five-point difference of steps 0.02 l, right to
    some 1e-8 where f changes on the scale of l. Costs 4 n + 1 gradients.
    """
    roots = np.linalg.cholesky(cov)
    centre = objectives.gradient(theta, rows)
    total = np.zeros_like(theta)
    for column in range(theta.shape[1]):
        step = _REACH * roots[:, :, column]
        near = objectives.gradient(theta + step, rows) + objectives.gradient(theta - step, rows)
        far = objectives.gradient(theta + 2.0 * step, rows)
        far = far + objectives.gradient(theta - 2.0 * step, rows)
        total += 16.0 * near - far - 30.0 * centre
    return total / (12.0 * _REACH**2)
