"""What a run of a field can be asked: its methods, and the actions of ``pgmult fields``."""

from pgmult.core.family import Family, Verb

__all__ = ["FIELDS"]

_PROBS = ("psi", "pi")

FIELDS = Family(
    "fields",
    {
        "predict": Verb("pgmult.fields.answers:predict", keeps=_PROBS),
        "check": Verb("pgmult.fields.answers:check", keeps=_PROBS),
        "compare": Verb("pgmult.fields.answers:compare", keeps=_PROBS),
        "report": Verb("pgmult.fields.answers:report", keeps=_PROBS),
    },
)
