"""What a run of a regression can be asked: its methods."""

from pgmult.core.family import Family, Verb

_WORDS = {
    "answers": "predict poststratify effects comparisons contrasts groups variance_shares",
    "scores": "check loo compare",
    "reports": "report",
}

_VERBS = {
    word: Verb(f"pgmult.regression.{module}:{word}", ("AdditiveRegression",), ("weights",))
    for module, words in _WORDS.items()
    for word in words.split()
}

REGRESSION = Family("regression", _VERBS)
