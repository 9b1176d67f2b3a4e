"""Regressions: multinomial logits with groups, proportional odds, and counts that scatter."""

import numpy as np

from tests.benchmarks.defaults.frame import Design, Truth
from tests.invariances.frame import Question

PARTIES, REGIONS = ("left", "none", "right"), tuple("abcdefgh")
AT = ("20", "50", "80")


def survey(rng):
    """400 answers; sex, age, and an effect of each of eight regions."""
    age, sex, region = (
        rng.choice([20, 35, 50, 65, 80], 400),
        rng.integers(2, size=400),
        rng.integers(8, size=400),
    )
    slopes, shifts, groups = (
        rng.normal(0, 0.02, 2),
        rng.normal(0, 0.5, 2),
        rng.normal(0, 0.5, (8, 2)),
    )
    levels = rng.normal(0, 0.4, 2)

    def probs(a, s, r):
        eta = (
            levels
            + slopes * (np.asarray(a)[:, None] - 50.0)
            + shifts * np.asarray(s)[:, None]
            + groups[r]
        )
        weights = np.exp(np.concatenate([np.zeros((len(eta), 1)), eta], axis=1))
        return weights / weights.sum(axis=1, keepdims=True)

    vote = [str(rng.choice(PARTIES, p=p)) for p in probs(age, sex, region)]
    table = {
        "vote": vote, "age": age.tolist(), "sex": ["fm"[s] for s in sex],
        "region": [REGIONS[r] for r in region],
    }  # fmt: skip
    truths = []
    effects = Question("effects", ("age", "--values", *AT))
    for value in AT:
        shares = probs(np.full(400, float(value)), sex, region).mean(axis=0)
        truths += [
            Truth("effects at values", effects, (value, party), float(share))
            for party, share in zip(PARTIES, shares, strict=True)
        ]
    men, women = (probs(age, np.full(400, s), region).mean(axis=0) for s in (1, 0))
    truths += [
        Truth(
            "differences", Question("comparisons", ("sex",)), ("sex", "m less f", party), float(d)
        )
        for party, d in zip(PARTIES, men - women, strict=True)
    ]
    cells = [(a, s, r) for a in (20, 35, 50, 65, 80) for s in range(2) for r in range(8)]
    a, s, r = map(np.array, zip(*cells, strict=True))
    people = rng.integers(10, 1000, len(cells))
    census = {
        "age": a.tolist(), "sex": ["fm"[x] for x in s], "region": [REGIONS[x] for x in r],
        "people": people.tolist(),
    }  # fmt: skip
    asked = Question("poststratify", ("census.csv", "--by", "region", "--weight", "people"))
    for k, name in enumerate(REGIONS):
        shares = np.average(probs(a, s, r)[r == k], axis=0, weights=people[r == k])
        truths += [
            Truth("poststratified shares", asked, (name, party), float(share))
            for party, share in zip(PARTIES, shares, strict=True)
        ]
    return {"survey.csv": table, "census.csv": census}, truths


ANSWERS = ("never", "rarely", "often", "always")


def shown(question_of_values, question_of_arms, probs, column, names, rows):
    """What is true of effects at three values and of a difference between arms, from probabilities.

    ``probs(**columns)`` gives those of all rows, some columns being set.
    """
    truths = []
    for value in ("-1", "0", "1"):
        shares = probs(x=np.full(rows, float(value))).mean(axis=0)
        truths += [
            Truth("effects at values", question_of_values, (value, name), float(share))
            for name, share in zip(names, shares, strict=True)
        ]
    gap = (probs(arm=np.ones(rows)) - probs(arm=np.zeros(rows))).mean(axis=0)
    key = ("arm", f"{column}")
    truths += [
        Truth("differences", question_of_arms, (*key, name), float(d))
        for name, d in zip(names, gap, strict=True)
    ]
    return truths


VALUES = Question("effects", ("x", "--values", "-1", "0", "1"))
ARMS = Question("comparisons", ("arm",))


def ordered(rng):
    """300 answers on a scale of four, by proportional odds."""
    x, arm = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], 300), rng.integers(2, size=300)
    slope, shift, gaps = rng.normal(0, 0.8), rng.normal(0, 0.6), rng.uniform(0.4, 1.5, 2)
    cuts = rng.normal(0, 0.7) + np.array([-gaps[0], 0.0, gaps[1]])

    def probs(x=x, arm=arm):
        scores = (slope * x + shift * arm)[:, None] - cuts
        above = np.pad(1.0 / (1.0 + np.exp(-scores)), ((0, 0), (1, 1)), constant_values=0.0)
        above[:, 0] = 1.0
        return above[:, :-1] - above[:, 1:]

    answer = []
    while len(set(answer)) < len(ANSWERS):
        answer = [str(rng.choice(ANSWERS, p=p)) for p in probs()]
    table = {"answer": answer, "x": x.tolist(), "arm": ["ab"[a] for a in arm]}
    return {"answers.csv": table}, shown(VALUES, ARMS, probs, "b less a", ANSWERS, 300)


def litters(rng):
    """60 rows of 5 to 40 counts in three categories, whose shares scatter."""
    x, arm = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], 60), rng.integers(2, size=60)
    slopes, shifts, levels = rng.normal(0, 0.5, (3, 3))
    size = np.exp(rng.normal(2.0, 0.7))

    def probs(x=x, arm=arm):
        weights = np.exp(levels + np.outer(x, slopes) + np.outer(arm, shifts))
        return weights / weights.sum(axis=1, keepdims=True)

    totals = rng.integers(5, 41, 60)
    counts = [
        rng.multinomial(n, rng.dirichlet(np.maximum(size * p, 1e-3)))
        for n, p in zip(totals, probs(), strict=True)
    ]
    columns = dict(zip(("dead", "ill", "well"), np.transpose(counts).tolist(), strict=True))
    table = columns | {"x": x.tolist(), "arm": ["ab"[a] for a in arm]}
    weights = totals / totals.mean()

    def weighted(**columns):  # averages are over observations
        return probs(**columns) * weights[:, None]

    return {"litters.csv": table}, shown(VALUES, ARMS, weighted, "b less a", list(columns), 60)


DESIGNS = [
    Design("multinomial logit", "regression", ("vote ~ sex + age + (1 | region)",), survey),
    Design("proportional odds", "regression", ("answer ~ x + arm", "--ordered", *ANSWERS), ordered),
    Design("Dirichlet-multinomial", "regression", ("c(dead, ill, well) ~ x + arm",), litters),
]
