"""Recognise the price among attributes by its name."""

import re
from collections.abc import Iterable

_WORDS = r"price", r"cost", r"(?<!wel)(?<!war)fare", r"toll", r"\bfees?\b", r"\brents?\b"


def price_among(names: Iterable[str]) -> str | None:
    """The first name that contains price, else cost, fare, toll, or has the word fee or rent.

    >>> price_among(["wait", "vcost", "gcost"])
    'vcost'
    """
    words = {name: re.sub(r"[\W\d_]+", " ", name.lower()) for name in names}
    return next((name for word in _WORDS for name in words if re.search(word, words[name])), None)
