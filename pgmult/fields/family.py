"""Methods of a run of a field, and the actions of ``pgmult fields``."""

from pgmult.core.family import Family, Verb

_PROBS = ("psi", "pi")

FIELDS = Family(
    "fields",
    {
        "predict": Verb("pgmult.fields.predictions:predict", keeps=(*_PROBS, "pi_new")),
        "effects": Verb("pgmult.fields.predictions:effects", keeps=_PROBS),
        "check": Verb("pgmult.fields.checks:check", keeps=_PROBS),
        "compare": Verb("pgmult.fields.rivals:compare", keeps=_PROBS),
        "report": Verb("pgmult.fields.reports:report", keeps=_PROBS),
    },
)
