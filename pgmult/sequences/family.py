"""What a run of sequences can be asked: its methods, and the actions of ``pgmult sequences``."""

from pgmult.core.family import Family, Verb

__all__ = ["SEQUENCES"]

_SPACE = ("MultinomialLDS", "LogisticNormalLDS")

SEQUENCES = Family(
    "sequences",
    {
        "predict": Verb("pgmult.sequences.answers:predict", models=_SPACE, keeps=("states",)),
        "forecast": Verb("pgmult.sequences.answers:forecast", models=_SPACE),
        "impute": Verb("pgmult.sequences.answers:impute", models=("MultinomialLDS",)),
        "check": Verb("pgmult.sequences.answers:check", models=_SPACE, keeps=("states",)),
        "compare": Verb("pgmult.sequences.answers:compare"),
        "report": Verb(
            "pgmult.sequences.answers:report", models=("MultinomialLDS",), keeps=("states",)
        ),
    },
)
