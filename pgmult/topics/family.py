"""The verbs of a run of a topic model: its methods, and the actions of ``pgmult topics``."""

from pgmult.core.family import Family, Verb

_SHARES = ("theta", "psi")
_HINT = "name it in keep=, at the command line --keep-theta"
_WITH_COVARIATES = ("StructuralTopics",)
_SUMMARIES = "pgmult.topics.summaries"

TOPICS = Family(
    "topics",
    {
        "predict": Verb(
            "pgmult.topics.fits.new_documents:predict", ("CorrelatedTopics", *_WITH_COVARIATES)
        ),
        "refit": Verb("pgmult.topics.fits.refitting:refit", keeps=("topics",)),
        "effects": Verb(f"{_SUMMARIES}.effects:effects", _WITH_COVARIATES),
        "content": Verb(f"{_SUMMARIES}.content:content", keeps=("group_topics",)),
        "check": Verb(f"{_SUMMARIES}.checks:check", keeps=_SHARES, hint=_HINT),
        "compare": Verb(f"{_SUMMARIES}.matching:compare", keeps=("topics",)),
        "report": Verb("pgmult.topics.reports:report", keeps=("topics",)),
        "export": Verb("pgmult.topics.exports:export", keeps=("topics",)),
        "topics": Verb(f"{_SUMMARIES}.words:top_words", keeps=("topics",)),
        "stability": Verb(f"{_SUMMARIES}.stability:topic_stability", keeps=("topics",)),
        "correlations": Verb(f"{_SUMMARIES}.correlations:topic_correlations", keeps=("Sigma",)),
        "documents": Verb(f"{_SUMMARIES}.documents:document_topics", keeps=_SHARES, hint=_HINT),
        "shares": Verb(f"{_SUMMARIES}.documents:shares", keeps=_SHARES, hint=_HINT),
        "quotes": Verb(f"{_SUMMARIES}.documents:quotes", keeps=_SHARES, hint=_HINT),
        "keywords": Verb(f"{_SUMMARIES}.words:keywords", keeps=("keyword_shares",)),
        "merge": Verb(f"{_SUMMARIES}.merging:merge", keeps=("topics",)),
        "variance_shares": Verb(f"{_SUMMARIES}.effects:variance_shares", _WITH_COVARIATES),
    },
    takes_parts=True,
)
