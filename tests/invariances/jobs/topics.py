"""Topics: three hundred texts of two topics, by party and a number."""

import numpy as np
from invariances.frame import (
    Job,
    Question,
    Variation,
    changed,
    in_form,
    longer,
    other_seed,
    reversed_rows,
    rows_of,
    shuffled_columns,
    with_column,
)

WORDS = (
    ["tax", "budget", "spend", "debt", "bank", "money", "trade", "job", "wage", "price"],
    ["war", "army", "peace", "treaty", "ally", "soldier", "border", "weapon", "navy", "attack"],
)


def texts():
    """Forty words each; party R speaks of war more often, and so does who has a large x."""
    rng = np.random.default_rng(13)
    rows = []
    for text in range(300):
        party, x = "DR"[text % 2], round(float(rng.normal(2.0, 3.0)), 2)
        centre = (0.5 if party == "R" else -0.5) + 0.2 * (x - 2.0)
        share = 1.0 / (1.0 + np.exp(-rng.normal(centre, 0.8)))
        topic = (rng.random(40) < share).astype(int)
        rows.append((" ".join(WORDS[k][rng.integers(10)] for k in topic), party, x))
    return dict(zip(("text", "party", "x"), map(list, zip(*rows, strict=True)), strict=True))


def asked():
    """New texts, of values that the change of units names."""
    return rows_of(texts(), range(4)) | {"x": [0.0, 4.0, 0.0, 4.0]}


def by_theme(labels):
    """A topic by its theme, which its words show, instead of its number and words."""
    themed = []
    for label, following in zip(labels, (*labels[1:], ""), strict=True):
        words = set(label.split())
        themes = [theme for theme, of in zip(("money", "war"), WORDS, strict=True) if words & {*of}]
        if themes:
            themed.append(f"{label.rpartition(', ')[0]} {themes[0]}")
        elif not following.startswith(f"{label} "):  # a number that its words repeat
            themed.append(label)
    return tuple(themed)


FOLD = "unit/topics/test_fold_in"
PARTY = Job(
    "topics",
    {"speeches.csv": texts, "asked.csv": asked},
    ("--column", "text", "--topics", "2", "--prevalence", "~ party + x", "--min-documents", "1",
     "--no-compare", "--chains", "2", "--draws", "800"),
    (
        Question("effects", ("party",)),
        Question("effects", ("party", "--difference", "R", "D"), id="difference"),
        Question("effects", ("x", "--at", "x=0,4"), id="effects at values"),
        Question("shares", ("party",)),
        Question("predict", ("asked.csv",)),
    ),
    (
        longer(times=3, default=800),
        other_seed(),
        reversed_rows(),
        in_form("zipped.csv.gz"),
        shuffled_columns(tolerance=0.0, first_only=True),
        with_column("note", lambda n: ["x"] * n, tolerance=0.0, first_only=True),
        Variation(
            "units", "x in hundredths, from another origin",
            tables=lambda name, t: changed(t, x=[round(100.0 * x + 700.0, 6) for x in t["x"]]),
            arguments=lambda words: [word.replace("x=0,4", "x=700,1100") for word in words],
            back=lambda question, key, centre, sd: (
                tuple({"700": "0", "1100": "4"}.get(k, k) for k in key), centre, sd
            ),
        ),
    ),
    key=by_theme,
    tests={
        (relation, verb): f"tests/{file}.py::test_{test}"
        for relation, verb, file, test in (
            ("missing", "fit", "unit/topics/test_topics",
             "empty_documents_and_unused_words_are_kept"),
            ("brute_force", "effects", "unit/topics/test_effects",
             "effects_are_those_of_documents_drawn_one_by_one"),
            ("brute_force", "shares", "unit/topics/test_documents",
             "shares_by_a_column_are_averages_of_documents"),
            ("brute_force", "predict", FOLD, "proportions_follow_their_posterior"),
            ("outside", "effects", "statistical/topics/test_structural_topics",
             "intervals_of_a_known_effect_cover_it"),
            ("aggregation", "shares", "unit/topics/test_merging",
             "a_weight_of_three_counts_as_three_documents"),
            ("brute_force", "merge", "unit/topics/test_merging",
             "shares_and_effects_of_merged_topics_are_sums"),
            ("power", "check", "unit/topics/test_predictive_checks",
             "bursts_and_words_of_a_group_are_seen"),
            ("power", "compare", "unit/topics/test_topic_rivals",
             "topics_beat_word_frequencies_where_there_are_any"),
        )
    },
    reasons={
        ("longer", "*"): "an answer of the draws that effects and shares are held to",
        ("seeds", "*"): "an answer of the draws that effects and shares are held to",
        ("order", "*"): "the run is the same to the bit, or that of effects and shares",
        ("besides", "*"): "the run is the same to the bit",
        ("units", "*"): "only covariates have units, and effects show what they do",
        ("aggregation", "*"): "weights count in averages alone; half a document is another one",
        ("missing", "*"): "a text that is missing is a document without words",
        ("horizons", "*"): "nothing is asked over a horizon",
        ("brute_force", "*"): "means over draws as they are, no number derived from a coefficient",
        ("outside", "*"): "coverage from files with a known truth: tests/benchmarks/defaults",
        ("power", "*"): "it says nothing of fit",
        ("files", "*"): "a file becomes one table for all jobs: tests of the readers",
    },
)  # fmt: skip

JOBS = [PARTY]
