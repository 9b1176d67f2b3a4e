"""What a run of a choice model can be asked: its methods."""

from pgmult.core.family import Family, Verb

_POPULATION = ("mean",)

CHOICE = Family(
    "choice",
    {
        "tastes": Verb("pgmult.choice.answers:tastes", keeps=_POPULATION),
        "correlations": Verb("pgmult.choice.answers:correlations", keeps=_POPULATION),
        "worth": Verb("pgmult.choice.economics:worth", keeps=_POPULATION),
        "predict": Verb("pgmult.choice.answers:predict", keeps=_POPULATION),
        "effects": Verb("pgmult.choice.answers:effects", keeps=("tastes",)),
        "elasticities": Verb("pgmult.choice.economics:elasticities", keeps=("tastes",)),
        "surplus": Verb("pgmult.choice.economics:surplus", keeps=("tastes",)),
        "diversion": Verb("pgmult.choice.economics:diversion", keeps=("tastes",)),
        "importances": Verb("pgmult.choice.conjoint:importances", keeps=_POPULATION),
        "scores": Verb("pgmult.choice.conjoint:scores", keeps=_POPULATION),
        "marginal_means": Verb("pgmult.choice.conjoint:marginal_means", keeps=_POPULATION),
        "amce": Verb("pgmult.choice.conjoint:amce", keeps=_POPULATION),
        "compare": Verb("pgmult.choice.answers:compare", keeps=("tastes",)),
        "check": Verb("pgmult.choice.answers:check", keeps=("tastes",)),
        "report": Verb("pgmult.choice.reports:report", keeps=("tastes",)),
    },
)
