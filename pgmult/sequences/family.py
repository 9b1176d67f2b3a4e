"""What a run of sequences can be asked: its methods, and the actions of ``pgmult sequences``."""

from pgmult.core.family import Family, Verb

_ALL = ("MultinomialLDS", "MultinomialHMM", "MarkovChain", "MultinomialTrend")
_REPORTED = ("states", "emission", "rows", "psi")

SEQUENCES = Family(
    "sequences",
    {
        "predict": Verb("pgmult.sequences.forecasts:predict", models=_ALL),
        "forecast": Verb("pgmult.sequences.forecasts:forecast", models=_ALL),
        "impute": Verb("pgmult.sequences.forecasts:impute", models=("MultinomialLDS",)),
        "states": Verb("pgmult.sequences.states:states", models=("MultinomialHMM",)),
        "transitions": Verb(
            "pgmult.sequences.transitions:transitions", models=("MultinomialHMM", "MarkovChain")
        ),
        "effects": Verb("pgmult.sequences.input_effects:effects", models=_ALL, keeps=_REPORTED),
        "check": Verb("pgmult.sequences.checks:check", models=_ALL, keeps=_REPORTED),
        "compare": Verb("pgmult.sequences.scores.rivals:compare"),
        "report": Verb("pgmult.sequences.reports:report", models=_ALL, keeps=_REPORTED),
    },
)
