"""What a run of a choice model can be asked: its methods."""

from pgmult.core.family import Family, Verb

_POPULATION = ("mean",)

CHOICE = Family(
    "choice",
    {
        "tastes": Verb("pgmult.choice.answers:tastes", keeps=_POPULATION),
        "worth": Verb("pgmult.choice.answers:worth", keeps=_POPULATION),
        "predict": Verb("pgmult.choice.answers:predict", keeps=_POPULATION),
        "effects": Verb("pgmult.choice.answers:effects", keeps=_POPULATION),
        "elasticities": Verb("pgmult.choice.answers:elasticities", keeps=_POPULATION),
        "compare": Verb("pgmult.choice.answers:compare", keeps=_POPULATION),
        "check": Verb("pgmult.choice.answers:check", keeps=("tastes", "coefficients")),
        "report": Verb("pgmult.choice.answers:report", keeps=_POPULATION),
    },
)
