"""From ``speeches.csv`` to figures: what party and time do to what presidents speak of.

Run it with ``python examples/topics_prevalence.py FOLDER``; figures and the run go to that folder,
or to a temporary one. The speeches are the State of the Union messages that ship with pgmult.
"""

import csv
import sys
import tempfile
from pathlib import Path

import numpy as np

import pgmult
from pgmult.topics import StructuralTopics


def write_speeches(path):
    """The messages as a table of texts; the order of words in a piece is not kept."""
    corpus = pgmult.datasets.state_of_the_union()
    columns = corpus.table.columns
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", *columns])
        for d, row in enumerate(zip(*columns.values(), strict=True)):
            entries = slice(corpus.indptr[d], corpus.indptr[d + 1])
            words = np.repeat(corpus.vocabulary[corpus.words[entries]], corpus.counts[entries])
            writer.writerow([" ".join(words), *row])


folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
folder.mkdir(exist_ok=True)
write_speeches(folder / "speeches.csv")

# ------------------------------------------------------------ what you would write begins here
table = pgmult.read(folder / "speeches.csv")  # other columns kept
corpus = table.corpus("text", min_documents=15)
data = corpus.with_covariates("~ party * s(year) + (1 | president)", content="~ party")
print(corpus.table.losses)
run = pgmult.sample(
    StructuralTopics(12), data, draws=100, tune=200, thin=2, chains=2, random_seed=1,
    store=folder / "run", keep=(*StructuralTopics(12).default_keep, "theta"),
)  # fmt: skip
e = run.effects("party", at={"year": 2000})
print(e)  # topic, words, party, mean, sd, 90 %
e.difference("party", "Republican", "Democratic").plot().figure.savefig(folder / "party.svg")
run.effects("year", by="party").at(topic=3).plot().figure.savefig(folder / "topic3.svg")
print(run.content().words("Republican", "Democratic", topic=3))
print(run.quotes(topic=3))
# ------------------------------------------------------------ and ends here

print(f"Figures and the run: {folder}")
farms = next(k for k, topic in enumerate(pgmult.topics.top_words(run, 15))
             if "farm" in {word.word for word in topic})  # fmt: skip
fall = run.effects("year", at={"year": [1950, 2020]}).difference("year", 2020, 1950)
assert fall.upper[farms] < 0.0, "presidents speak less of farms and prices than they did"
