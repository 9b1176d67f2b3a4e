"""Covariances from scikit-learn's kernel objects."""

from typing import Any

from pgmult.fields.covariances.base import Constant, Covariance
from pgmult.fields.covariances.families import (
    Linear,
    Matern,
    Periodic,
    RationalQuadratic,
    SquaredExponential,
    White,
)


def from_sklearn(kernel: Any) -> Covariance:
    """The same covariance as a scikit-learn kernel object; bounds "fixed" become fixed parameters.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        RBF, Matern (nu 0.5, 1.5, 2.5 or inf), RationalQuadratic, ExpSineSquared (of one column),
        DotProduct, ConstantKernel, WhiteKernel, and their sums and products.

    Raises
    ------
    TypeError
        For any other object.

    Notes
    -----
    A WhiteKernel is 0 between two sets of inputs even where they coincide; `White` is a function
    of the inputs and is not.
    """
    kind = type(kernel).__name__
    if not type(kernel).__module__.startswith("sklearn.gaussian_process.kernels"):
        raise TypeError(
            f"kernel must be a kernel of scikit-learn to become a covariance, got {kind}"
        )
    if kind == "Sum":
        return from_sklearn(kernel.k1) + from_sklearn(kernel.k2)
    if kind == "Product":
        return from_sklearn(kernel.k1) * from_sklearn(kernel.k2)
    fixed = {h.name for h in kernel.hyperparameters if h.fixed}

    def renamed(**names: str) -> tuple[str, ...]:
        return tuple(ours for theirs, ours in names.items() if theirs in fixed)

    if kind == "ConstantKernel":
        return Constant(kernel.constant_value, fixed=renamed(constant_value="var"))
    if kind == "WhiteKernel":
        return White(kernel.noise_level, fixed=renamed(noise_level="var"))
    if kind == "DotProduct":
        slopes = Linear(1.0, fixed=("var",))
        if kernel.sigma_0 == 0.0:
            return slopes
        return slopes + Constant(kernel.sigma_0**2, fixed=renamed(sigma_0="var"))
    scales = renamed(length_scale="length_scale")
    if kind == "RBF" or (kind == "Matern" and kernel.nu == float("inf")):
        return SquaredExponential(kernel.length_scale, fixed=scales)
    if kind == "Matern":
        return Matern(kernel.nu, kernel.length_scale, fixed=scales)
    if kind == "RationalQuadratic":
        both = renamed(length_scale="length_scale", alpha="alpha")
        return RationalQuadratic(kernel.alpha, kernel.length_scale, fixed=both)
    if kind == "ExpSineSquared":
        both = renamed(length_scale="length_scale", periodicity="period")
        return Periodic(kernel.periodicity, kernel.length_scale, fixed=both)
    raise TypeError(
        f"the kernel {kind} of scikit-learn is not supported (RBF, Matern, RationalQuadratic,"
        " ExpSineSquared, DotProduct, ConstantKernel, WhiteKernel, sums and products are)"
    )
