"""Regressions: multinomial logits with groups."""

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


DESIGNS = [
    Design("multinomial logit", "regression", ("vote ~ sex + age + (1 | region)",), survey),
]
