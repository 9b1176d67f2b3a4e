"""What a run of a regression can be asked: its methods."""

from pgmult.core.family import Family, Verb

__all__ = ["REGRESSION"]

_ADDITIVE = ("AdditiveRegression",)

REGRESSION = Family(
    "regression",
    {
        "predict": Verb("pgmult.regression.answers:predict", _ADDITIVE, ("weights",)),
        "poststratify": Verb("pgmult.regression.answers:poststratify", _ADDITIVE, ("weights",)),
        "effects": Verb("pgmult.regression.answers:effects", _ADDITIVE, ("weights",)),
        "compare": Verb("pgmult.regression.answers:compare", _ADDITIVE, ("weights",)),
        "report": Verb("pgmult.regression.reports:report", _ADDITIVE, ("weights",)),
    },
)
