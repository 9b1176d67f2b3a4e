"""Draw the pictures of the README and of the pages: ``python -m docs.pictures [NAME ...]``.

Minutes of a processor. The corpus is the documentation of numpy and scipy, the weather that of
Seattle, and the names of newborns, downloaded once, those of the paper of Linderman, Johnson and
Adams.
"""

import re
import sys
import warnings
from pathlib import Path

import numpy as np

import pgmult
from examples.papers.docstrings import demo_corpus
from examples.papers.linderman2015.newborns import us_names
from pgmult.cli.demos import rain_by_week
from pgmult.core.figures.base import new_figure
from pgmult.core.figures.tiles import US_TILES
from pgmult.datasets import state_of_the_union, us_states
from pgmult.fields import MultinomialGP
from pgmult.fields.covariances import GreatCircle, Matern
from pgmult.regression import AdditiveRegression
from pgmult.sequences import MultinomialLDS
from pgmult.topics import CorrelatedTopics, top_words, topic_correlations
from pgmult.topics.plots import top_word_bars
from pgmult.topics.summaries import topic_labels

HERE = Path(__file__).parent / "pictures"
FEW = {"chains": 2, "random_seed": 1, "progressbar": False}


def save(figure, name):
    """A picture with a white ground, as dark pages show it."""
    figure.savefig(HERE / f"{name}.png", dpi=110, facecolor="white")


def topics():
    """Words of topics, and which go together."""
    posterior = pgmult.sample(
        CorrelatedTopics(num_topics=16), demo_corpus(), draws=150, tune=400, thin=2, **FEW
    )
    words = top_words(posterior, 7)
    labels = topic_labels(words, 2)
    largest = np.argsort(-posterior["topic_shares"].mean(axis=(0, 1)))[:8]
    correlations = topic_correlations(posterior).excess()
    save(top_word_bars([words[k] for k in largest], [labels[k] for k in largest]), "topics")
    save(correlations.plot().figure, "topic-correlations")


def fields():
    """Shares of names over years and states, and in a year that was not seen."""
    names = us_names("F", 6, years=range(1960, 2011))
    years, states, count = len(names.years), len(names.states), len(names.names)
    table = {
        "year": np.repeat(names.years, states * count),
        "state": np.tile(np.repeat(names.states, count), years),
        "name": np.tile(names.names, years * states),
        "n": names.counts.ravel(),
    }
    some = np.isin(table["year"], range(1960, 2011, 5))
    ahead = {"year": [*range(1960, 2016), *[2015] * states], "state": [*["CA"] * 56, *names.states]}
    counted = pgmult.read({key: column[some] for key, column in table.items()})
    data = counted.field(
        ["year", "state"], "name", count="n", places={"state": us_states()}, new_inputs=ahead
    )
    law = 1.0 * Matern(1.5, 10.0, active=[0]) * GreatCircle(1000.0, 1, 2)
    posterior = pgmult.sample(
        MultinomialGP(law, overdispersion=0.02), data, draws=100, tune=100, keep=["pi_new"], **FEW
    )
    found = posterior.predict(inputs="new")
    here = data.columns["state"] == "CA"
    figure = new_figure(11.0, 4.0)
    left, right = figure.subplots(1, 2, width_ratios=[1.0, 1.15])
    counts = data.counts[here]
    shares = counts / counts.sum(axis=1, keepdims=True)
    california = found.rows(np.arange(56)).at(state="CA")
    california.plot(
        left, along="year", only=list(names.names[:4]),
        observed=(data.columns["year"][here], shares),
    )  # fmt: skip
    left.set_title("California: points seen, bands 90 %", fontsize=9)
    left.legend(frameon=False, fontsize=8, loc="upper left")
    last = found.rows(np.arange(56, 56 + states)).at(category="Elizabeth")
    numbers = zip(last.mean, last.lower, last.upper, strict=True)
    map_of_states(right, dict(zip(names.states, numbers, strict=True)))
    right.set_title("share of Elizabeth, 2015, not seen", fontsize=9)
    save(figure, "names")


def map_of_states(axes, values):
    """A square for each state: the mean, half the width of its interval; less known ones, paler."""
    height, width = np.max(list(US_TILES.values()), axis=0) + 1
    table, halves = np.full((2, height, width), np.nan)
    for state, (mean, lower, upper) in values.items():
        table[US_TILES[state]], halves[US_TILES[state]] = mean, (upper - lower) / 2
    image = axes.imshow(table, cmap="viridis", vmin=0.0)
    paler = np.clip(np.nan_to_num(halves) / np.nanmax(table), 0.0, 0.5)
    image.set_alpha(1.0 - paler)
    for state, (row, column) in US_TILES.items():
        mean, half = table[row, column], halves[row, column]
        colour = image.cmap(image.norm(mean))[:3] if state in values else (0.9, 0.9, 0.9)
        red, green, blue = (1.0 - (1.0 - paler[row, column]) * (1.0 - c) for c in colour)
        ink = "black" if 0.3 * red + 0.6 * green + 0.1 * blue > 0.5 else "white"
        told = f"\n{mean:.3f}\n±{half:.3f}".replace("0.", ".") if state in values else ""
        axes.text(column, row, state + told, ha="center", va="center", fontsize=7, color=ink)
    axes.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
    axes.spines[:].set_visible(False)
    axes.figure.colorbar(image, ax=axes, shrink=0.6).outline.set_visible(False)


def sequences():
    """Rain in Seattle: probabilities along the weeks, and what comes next."""
    data, _ = rain_by_week().split(-12)
    model = MultinomialLDS(state_dim=2)
    posterior = pgmult.sample(
        model, data, draws=400, tune=300, keep=[*model.default_keep, "states"], **FEW
    )
    past = posterior.predict()
    ahead = posterior.forecast(12, levels=(0.05, 0.25, 0.75, 0.95))
    figure = new_figure(11.0, 3.4)
    left, right = figure.subplots(1, 2, width_ratios=[1.4, 1.0])
    past.plot(left)
    ahead.plot(right, symbols=3, history=past, last=24)
    save(figure, "weather")


def survey():
    """Shares by state from a survey that reached few people in most states, beside the truth."""
    rng, states = np.random.default_rng(3), np.array(list("ABCDEFGHIJKLMNOPQRST"))
    support, size = (
        0.5 * rng.standard_normal(len(states)),
        rng.permutation(np.geomspace(3, 120, 20)),
    )

    def share(state, age):
        return 1.0 / (1.0 + np.exp(0.6 - support[state] - 0.02 * (age - 50.0)))

    state = np.repeat(np.arange(len(states)), np.round(size).astype(np.int64))
    ages = np.arange(18, 90)
    age = rng.choice(ages, len(state), p=(90 - ages) / np.sum(90 - ages))  # few of the old
    vote = np.where(rng.random(len(state)) < share(state, age), "yes", "no")
    rows = pgmult.read({"vote": vote, "age": age, "state": states[state]}).rows(
        "vote ~ age + (1 | state)"
    )
    run = pgmult.sample(AdditiveRegression(), rows, **FEW)
    census = {
        "state": states.repeat(len(ages)),
        "age": np.tile(ages, len(states)),
        "people": np.ones(len(ages) * len(states)),
    }
    found = run.poststratify(census, by="state", weight="people").at(category="yes")
    truth = np.array([share(k, ages).mean() for k in range(len(states))])
    raw = np.array([np.mean(vote[state == k] == "yes") for k in range(len(states))])
    lower, upper = found.interval(0.9)
    order = np.argsort(truth)
    at, figure = np.arange(len(states)), new_figure(11.0, 3.6)
    axes = figure.subplots()
    axes.vlines(at, lower[order], upper[order], color="#2a6f97", lw=5, alpha=0.35, label="90 %")
    axes.plot(at, found.mean[order], "o", color="#2a6f97", label="pgmult")
    axes.plot(at, raw[order], "x", color="#bc4b51", label="share of those asked")
    axes.plot(at, truth[order], "_", color="black", ms=13, label="truth")
    asked = np.bincount(state)[order]
    axes.set_xticks(at, [f"{name}\n{n}" for name, n in zip(states[order], asked, strict=True)])
    axes.set_ylabel("share who say yes")
    axes.set_xlabel("state, and how many were asked there, few of them old")
    axes.legend(frameon=False, fontsize=9, ncols=4, loc="upper left")
    save(figure, "survey")


def stability():
    """How probably another chain finds each topic."""
    run = pgmult.sample(
        CorrelatedTopics(12), state_of_the_union(), draws=100, tune=150, chains=4, random_seed=1,
        progressbar=False,
    )  # fmt: skip
    found = run.stability()
    again = found.found_again
    order = np.argsort(-again, kind="stable")
    figure = new_figure(9.0, 3.8)
    axes = figure.subplots()
    colours = np.where(again < 0.5, "#bc4b51", np.where(again < 0.9, "#e09f3e", "#2a6f97"))
    axes.barh(range(len(order)), 100 * again[order], color=colours[order])
    axes.set_yticks(range(len(order)), [found.names[k] for k in order], fontsize=9)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("probability that one more chain finds the topic, %")
    save(figure, "stability")


def coverage():
    """The table of coverage on the page of benchmarks, as bars."""
    page = (HERE.parent / "benchmarks.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (\.\d+) \| (\.\d+) \| (\.\d+) \|$", page, re.MULTILINE)
    names = {
        "with `(1 \\| author)`": "authors in the formula",
        "without": "authors left out",
        "regressions on draws, as R's stm has it": "regressions on draws",
    }
    figure = new_figure(9.0, 3.2)
    axes, levels = figure.subplots(), np.array([0.5, 0.8, 0.9])
    axes.hlines(levels, np.arange(3) - 0.42, np.arange(3) + 0.42, color="black", lw=1.5)
    colours = ("#2a6f97", "#e09f3e", "#bc4b51")
    for place, (name, *shares) in enumerate(row for row in rows if row[0] in names):
        at = np.arange(3) + 0.26 * (place - 1)
        axes.bar(at, list(map(float, shares)), 0.24, color=colours[place], label=names[name])
    axes.set_xticks(np.arange(3), [f"{100 * level:.0f} % intervals" for level in levels])
    axes.set_ylabel("hold the truth (line: should)")
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    save(figure, "coverage")


DRAWN = {draw.__name__: draw for draw in (sequences, fields, topics, survey, stability, coverage)}

if __name__ == "__main__":
    warnings.simplefilter("ignore", pgmult.ConvergenceWarning)
    for name in sys.argv[1:] or DRAWN:
        DRAWN[name]()
