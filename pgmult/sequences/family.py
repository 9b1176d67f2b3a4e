"""What a run of sequences can be asked: its methods, and the actions of ``pgmult sequences``."""

from pgmult.core.family import Family, Verb

_SPACE = ("MultinomialLDS", "LogisticNormalLDS")

SEQUENCES = Family(
    "sequences",
    {
        "predict": Verb("pgmult.sequences.forecasts:predict", models=_SPACE),
        "forecast": Verb("pgmult.sequences.forecasts:forecast", models=_SPACE),
        "impute": Verb("pgmult.sequences.forecasts:impute", models=("MultinomialLDS",)),
        "check": Verb("pgmult.sequences.checks:check", models=_SPACE, keeps=("states",)),
        "compare": Verb("pgmult.sequences.scores.one_step:compare"),
        "report": Verb(
            "pgmult.sequences.reports:report",
            models=("MultinomialLDS",),
            keeps=("states",),
        ),
    },
)
