"""What a run of a regression can be asked: its methods."""

from pgmult.core.family import Family, Verb

_WORDS = {
    "answers": "predict poststratify effects comparisons contrasts groups variance_shares",
    "scores": "check loo compare",
    "reports": "report",
}

REGRESSION = Family(
    "regression",
    {
        word: Verb(f"pgmult.regression.{module}:{word}", ("AdditiveRegression",), ("weights",))
        for module, words in _WORDS.items()
        for word in words.split()
    },
)
