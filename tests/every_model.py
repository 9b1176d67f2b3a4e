"""Every model of the package on small data: what all of them must do is tested on this list.

`MODELS` maps a name to a function that makes a model and its data.
"""

import numpy as np

import pgmult
from pgmult import choice, fields, regression, sequences, topics
from pgmult.fields.covariances import GreatCircle, Matern, SquaredExponential
from pgmult.priors import HalfT

__all__ = ["MODELS"]

RNG = np.random.default_rng(7)
WORDS = RNG.poisson(0.6, size=(70, 40))
TABLE = {"year": np.arange(70), "party": ["D", "R"] * 35, "who": [f"m{i % 7}" for i in range(70)]}
X = RNG.normal(size=(60, 3))
Y2, Y3 = np.arange(60) % 2, np.arange(60) % 3
GROUPS = np.arange(60) % 5
EVENTS = RNG.poisson(2.0, size=60)
TIMES = np.arange(24.0)
SERIES = RNG.multinomial(30, [0.5, 0.3, 0.15, 0.05], size=24)
PLACES = np.stack([np.repeat(np.arange(8.0), 5), np.tile(np.arange(5.0), 8)], axis=1)
CELLS = RNG.multinomial(25, [0.5, 0.3, 0.2], size=40)
SPEECH = ["ABBABCABCCAB" * 4, "BABACCBA" * 5, "CAB" * 9]
WALKS = {"who": np.arange(60) // 15, "x": X[:, 0], "does": np.array(list("abc"))[Y3]}


def structured(formula, **more):
    return topics.with_covariates(WORDS, TABLE, formula, **more)


def timed(*vocabulary):
    return topics.as_timed_corpus(WORDS, np.arange(70) // 14, *vocabulary)


def series(**more):
    return fields.as_field(TIMES, SERIES, new_inputs=[24.0, 26.0], **more)


def cells():
    return fields.as_field(PLACES, CELLS, new_inputs=[[3.0, 9.0]])


def trips(formula="taken ~ x + z + (x + z | who)", **more):
    table = {
        "who": np.arange(60) // 6, "trip": np.arange(60) // 3, "x": X[:, 0], "z": X[:, 1],
        "taken": np.arange(60) % 3 == 0,
    }  # fmt: skip
    return choice.choices_of(formula, table, occasion="trip", **more)


def symbols():
    return sequences.as_sequences(SPEECH)


def steps():
    return sequences.as_sequences([SERIES, SERIES[:9]])


MODELS = {
    "CorrelatedTopics": lambda: (topics.CorrelatedTopics(5), topics.as_corpus(WORDS)),
    "LogisticNormalTopics": lambda: (topics.LogisticNormalTopics(4), topics.as_corpus(WORDS)),
    "LDA": lambda: (topics.LDA(4), topics.as_corpus(WORDS)),
    "StructuralTopics": lambda: (topics.StructuralTopics(4), structured("~ party * s(year)")),
    "StructuralTopics effects": lambda: (
        topics.StructuralTopics(4),
        structured("~ year + (1 | who)", content="~ party"),
    ),
    "DynamicTopics": lambda: (topics.DynamicTopics(3), timed()),
    "StructuralTopics keywords": lambda: (
        topics.StructuralTopics(4, keywords={"one": ["word 3", "word 5"]}),
        topics.with_covariates(
            topics.as_corpus(WORDS, [f"word {v}" for v in range(40)]),
            TABLE,
            "~ s(year) + (1 | who) + (1 | party)",
            content="~ party",
        ),
    ),
    "LDA fixed alpha": lambda: (topics.LDA(4, alpha=0.5), topics.as_corpus(WORDS)),
    "AdditiveRegression": lambda: (
        regression.AdditiveRegression(link="stick_breaking"),
        pgmult.read({"y": np.array(["a", "b", "c"])[Y3], "x": X[:, 0], "g": GROUPS}).rows(
            "y ~ x + s(x) + (1 | g)"
        ),
    ),
    "AdditiveRegression events": lambda: (
        regression.AdditiveRegression(priors={"(x | g)": HalfT(3, 0.5)}),
        pgmult.read({"y": EVENTS, "x": X[:, 0], "g": GROUPS}).rows(
            "y ~ (x | g) + gp(x, k=5)", family="negative_binomial"
        ),
    ),
    "AdditiveRegression ordered": lambda: (
        regression.AdditiveRegression(),
        pgmult.read({"y": np.array(["a", "b", "c"])[Y3], "x": X[:, 0], "g": GROUPS}).rows(
            "y ~ x + (1 | g)", ordered=["c", "a", "b"]
        ),
    ),
    "AdditiveRegression scatter": lambda: (
        regression.AdditiveRegression(),
        pgmult.read({"a": Y3 + 3, "b": Y2 * 2, "x": X[:, 0]}).rows("c(a, b) ~ x"),
    ),
    "AdditiveRegression fixed": lambda: (
        regression.AdditiveRegression(),
        pgmult.read({"y": np.array(["a", "b", "c"])[Y3], "x": X[:, 0]}).rows("y ~ x"),
    ),
    "AdditiveRegression softmax": lambda: (
        regression.AdditiveRegression(),
        pgmult.read({"y": np.array(["a", "b", "c"])[Y3], "t": Y2, "g": GROUPS}).rows(
            "y ~ rw(t) + (1 | g)"
        ),
    ),
    "MixedLogit": lambda: (choice.MixedLogit(), trips()),
    "MixedLogit signs": lambda: (
        choice.MixedLogit(),
        trips("taken ~ x + z + (x || who)", signs={"x": -1}),
    ),
    "MultinomialGP": lambda: (fields.MultinomialGP(Matern(1.5, 5.0)), series()),
    "MultinomialGP overdispersed": lambda: (
        fields.MultinomialGP(0.5 * Matern(0.5, 5.0), overdispersion=0.05, mean="linear"),
        series(),
    ),
    "MultinomialGP smooth": lambda: (fields.MultinomialGP(0.5 * SquaredExponential(4.0)), series()),
    "MultinomialGP own": lambda: (
        fields.MultinomialGP(0.5 * Matern(1.5, 4.0), shared=False),
        series(),
    ),
    "MultinomialGP state_space": lambda: (
        fields.MultinomialGP(0.5 * Matern(1.5, 4.0), structure="state_space"),
        series(),
    ),
    "MultinomialGP separable": lambda: (
        fields.MultinomialGP(
            Matern(1.5, 4.0, active=(0,)) * Matern(0.5, 2.0, active=(1,)),
            overdispersion=0.05,
            structure="separable",
        ),
        cells(),
    ),
    "MultinomialGP sphere": lambda: (
        fields.MultinomialGP(0.5 * GreatCircle(2000.0)),
        fields.as_field(PLACES * 5.0, CELLS),
    ),
    "MultinomialLDS": lambda: (sequences.MultinomialLDS(state_dim=2), symbols()),
    "MultinomialLDS inputs": lambda: (
        sequences.MultinomialLDS(2, inputs="dynamics"),
        sequences.as_sequences(
            [SERIES, SERIES[:9]], inputs=np.random.default_rng(1).standard_normal((33, 2))
        ),
    ),
    "MultinomialLDS overdispersed": lambda: (
        sequences.MultinomialLDS(state_dim=2, overdispersion=True),
        steps(),
    ),
    "MultinomialLDS counts": lambda: (sequences.MultinomialLDS(state_dim=2), steps()),
    "MultinomialTrend": lambda: (sequences.MultinomialTrend(memory=12), steps()),
    "MarkovChain": lambda: (sequences.MarkovChain(order=2), symbols()),
    "MultinomialHMM": lambda: (sequences.MultinomialHMM(num_states=3), symbols()),
    "MultinomialHMM sticky": lambda: (
        sequences.MultinomialHMM(3, stickiness=None, start_tries=2, start_sweeps=2),
        symbols(),
    ),
    "MixedMarkovChain": lambda: (
        sequences.MixedMarkovChain(3),
        pgmult.read(WALKS).sequences("does", sequence="who", inputs="~ x + (1 | who)"),
    ),
    "MixedHMM": lambda: (
        sequences.MixedHMM(2, inputs="both"),
        pgmult.read(WALKS).sequences("does", sequence="who", inputs="~ x + (1 | who)"),
    ),
}
