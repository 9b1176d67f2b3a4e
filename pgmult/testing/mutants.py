"""Deliberately broken models, that a test must refuse."""

import copy
from collections.abc import Callable
from typing import Any

from pgmult.core.arguments import brief

# --------------------------------------------------------------------------- mutants


def mutant(original: object, **attributes: object) -> Any:
    """A copy of a model (or a link, or a prior) with some methods or constants replaced.

    >>> from fractions import Fraction
    >>> mutant(Fraction(1, 2), __abs__=lambda self: -self).__abs__()
    Fraction(-1, 2)
    """
    kind = type(original)
    if callable(original) or (not hasattr(original, "__dict__") and not hasattr(kind, "__slots__")):
        raise TypeError(f"original must be of a class made in Python, got {brief(original)}")
    broken = type(f"Broken{kind.__name__}", (kind,), {"__slots__": (), **attributes})
    try:
        clone = copy.copy(original)
    except TypeError as error:
        raise TypeError(f"original must be a value that can be copied: {error}") from None
    object.__setattr__(clone, "__class__", broken)
    return clone


def rejects(check: Callable[..., object], *arguments: object, **options: object) -> str:
    """Assert that a check raises AssertionError; the error's message.

    Any other exception is passed on: a mutant that crashes has not been rejected.
    """
    if not callable(check):
        raise TypeError(f"check must be a function, got {brief(check)}")
    try:
        check(*arguments, **options)
    except AssertionError as error:
        return str(error)
    raise AssertionError(f"{getattr(check, '__name__', check)} did not reject the mutant")
