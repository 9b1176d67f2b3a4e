"""Topics: structural topic models whose truth has a softmax, or sticks, for a link."""

import csv
from collections import Counter
from functools import partial

import numpy as np

from pgmult.links import LogisticNormal, StickBreaking
from tests.benchmarks.defaults.frame import Design, Truth
from tests.invariances.frame import Question

NUM_WORDS, NUM_NEW = 300, 20
AT = ("-1", "0", "1")
LETTERS = "abcdefghijkl"


def speeches(rng, *, link, num_topics, num_texts, length):
    """Texts of two parties, and a number x; shares of topics depend on both.

    A word begins with the letter of the topic that has the largest share of it: so rows of answers,
    which name topics by words, are matched with truths.
    """
    size = num_topics - isinstance(link, StickBreaking)
    topics = rng.dirichlet(np.full(NUM_WORDS, 0.1), num_topics)
    owners = topics.argmax(axis=0)
    words = [LETTERS[k] + _letters(j) for j, k in enumerate(owners)]
    centre, shift, slope = 0.4 * rng.standard_normal((3, size))
    if isinstance(link, StickBreaking):
        centre = centre + link.inverse(np.full(num_topics, 1.0 / num_topics))
    spread = 0.8

    def shares(party, x):
        """Expected shares of topics, over documents of the population."""
        noise = spread * np.random.default_rng(0).standard_normal((40_000, size))
        return link.probs(centre + shift * party + slope * x + noise).mean(axis=0)

    def draw(count):
        party, x = rng.integers(2, size=count), rng.normal(size=count).round(2)
        psi = centre + np.outer(party, shift) + np.outer(x, slope)
        theta = link.probs(psi + spread * rng.standard_normal(psi.shape))
        tokens = [rng.choice(NUM_WORDS, length, p=row @ topics) for row in theta]
        table = {
            "text": [" ".join(words[j] for j in row) for row in tokens],
            "party": ["DR"[p] for p in party], "x": x.tolist(),
        }  # fmt: skip
        return table, theta, party, x

    table, _, party, x = draw(num_texts)
    new, new_theta, _, _ = draw(NUM_NEW)
    curve = Question("effects", ("x", "--at", f"x={','.join(AT)}"))
    gap = Question("effects", ("party", "--difference", "R", "D"))
    documents = Question("predict", ("new.csv", "--column", "text"))
    levels = Question("effects", ("party",))
    grid = np.quantile(x, np.linspace(0.02, 0.98, 25))
    by_party = [np.mean([shares(p, at) for at in grid], axis=0) for p in (0, 1)]
    share = party.mean()
    at_values = np.array([[shares(p, float(at)) for at in AT] for p in (0, 1)])
    truths = []
    for k in range(num_topics):
        letter = LETTERS[k]
        truths += [
            Truth("effects at values", curve, (letter, at),
                  float(share * at_values[1, i, k] + (1 - share) * at_values[0, i, k]))
            for i, at in enumerate(AT)
        ]  # fmt: skip
        truths += [
            Truth("shares by party", levels, (letter, "DR"[p]), float(by_party[p][k]))
            for p in (0, 1)
        ]
        truths.append(Truth("differences", gap, (letter,), float(by_party[1][k] - by_party[0][k])))
        truths += [
            Truth("documents' shares", documents, (letter, str(d + 1)), float(new_theta[d, k]))
            for d in range(NUM_NEW)
        ]
    return {"speeches.csv": table, "new.csv": new}, truths


def _letters(number):
    """A word of three letters for a number."""
    return "".join(chr(97 + number // 26**i % 26) for i in range(3))


def rows_of_answer(file):
    """Mean, sd and ends by topic, called by the letter that most of its words begin with."""
    head, *rows = csv.reader(file)
    if head[0] == "document":
        return _rows_of_documents(head, rows)
    mean, words = head.index("mean"), head.index("words")
    return {
        (_letter(row[words]), *row[words + 1 : mean]): tuple(map(float, row[mean : mean + 4]))
        for row in rows
    }


def _rows_of_documents(head, rows):
    answers = {}
    for row in rows:
        cells = dict(zip(head, row, strict=True))
        for name, value in cells.items():
            topic = name.removeprefix("topic ")
            number = topic.split()[0]
            if name != topic and not name.endswith((" lower", " upper")):
                low, high = (float(cells[f"topic {number} {end}"]) for end in ("lower", "upper"))
                answers[_letter(topic), cells["document"]] = (
                    float(value), (high - low) / 3.29, low, high
                )  # fmt: skip
    return answers


def _letter(name):
    """The letter that most words of a topic begin with: they follow its number."""
    return Counter(word[0] for word in name.split()[1:]).most_common(1)[0][0]


DESIGNS = [
    Design(
        f"{name}, {num_topics} topics, {num_texts} texts of {length} words", "topics",
        ("--column", "text", "--topics", str(num_topics), "--prevalence", "~ party + x",
         "--no-compare"),
        partial(speeches, link=link, num_topics=num_topics, num_texts=num_texts, length=length),
        rows_of_answer,
    )
    for name, link, num_topics, num_texts, length in (
        ("softmax", LogisticNormal(), 2, 300, 40),
        ("softmax", LogisticNormal(), 5, 600, 60),
        ("sticks", StickBreaking(), 4, 400, 40),
        ("softmax", LogisticNormal(), 12, 2000, 100),
    )
]  # fmt: skip
