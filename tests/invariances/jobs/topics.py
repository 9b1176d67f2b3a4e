"""Topics: three hundred texts of two topics, by party."""

import numpy as np
from invariances.frame import (
    Job,
    Question,
    shuffled_columns,
    with_column,
)

WORDS = (
    ["tax", "budget", "spend", "debt", "bank", "money", "trade", "job", "wage", "price"],
    ["war", "army", "peace", "treaty", "ally", "soldier", "border", "weapon", "navy", "attack"],
)


def texts():
    """Forty words each; party R speaks of war more often."""
    rng = np.random.default_rng(13)
    rows = []
    for text in range(300):
        party = "DR"[text % 2]
        share = 1.0 / (1.0 + np.exp(-rng.normal(0.5 if party == "R" else -0.5, 0.8)))
        topic = (rng.random(40) < share).astype(int)
        rows.append((" ".join(WORDS[k][rng.integers(10)] for k in topic), party))
    return dict(zip(("text", "party"), map(list, zip(*rows, strict=True)), strict=True))


def by_theme(labels):
    """A topic by its theme, which its first words show, instead of its number and words."""
    _, words, *others = labels
    return ("war" if any(word in WORDS[1] for word in words.split()) else "money", *others)


PARTY = Job(
    "topics",
    {"speeches.csv": texts},
    ("--column", "text", "--topics", "2", "--prevalence", "~ party", "--min-documents", "1"),
    (Question("effects", ("party",)), Question("shares", ("party",))),
    (
        shuffled_columns(tolerance=0.0),
        with_column("note", lambda n: ["x"] * n, tolerance=0.0),
    ),
    key=by_theme,
    reasons={
        ("files", "*"): "a file becomes one table for all jobs: tests of the readers",
        ("horizons", "*"): "nothing is asked over a horizon",
        ("units", "shares"): "values of the column only name groups of documents",
        ("aggregation", "shares"): "a document has no weight",
        ("missing", "shares"): "averages are over the documents that there are",
        ("brute_force", "shares"): "averages of documents: tests/unit/topics/test_documents.py",
        ("outside", "shares"): "coverage of documents' shares: tests/benchmarks/defaults",
        ("power", "shares"): "it says nothing of fit",
    },
)  # fmt: skip

JOBS = [PARTY]
