"""Draw the pictures of the README and of the gallery: ``python docs/pictures.py``.

Minutes of a processor. The corpus is the documentation of numpy and scipy, the weather is made up,
and the names of newborns are those of `pgmult.datasets.us_names`, which downloads them once.
"""

import warnings
from pathlib import Path

import numpy as np

import pgmult
from pgmult.cli.demo_sequences import simulated
from pgmult.core.figures.base import new_figure
from pgmult.core.figures.tiles import Tiles
from pgmult.datasets import demo_corpus, us_names, us_states
from pgmult.fields import MultinomialGP
from pgmult.fields.covariances import GreatCircle, Matern
from pgmult.sequences import MultinomialLDS, latent_axes
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
    save(correlations.graph(labels).plot().figure, "topic-graph")


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
    ahead = {
        "year": [*range(1960, 2016), *[2015] * states],
        "state": [*["CA"] * 56, *names.states],
    }
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
    tiles = Tiles(
        dict(zip(names.states, numbers, strict=True)), "share of Elizabeth, 2015, not seen"
    )
    tiles.plot(right)
    save(figure, "names")


def sequences():
    """The weather: probabilities along a book, what comes next, and what moves them."""
    whole, _ = simulated(np.random.default_rng(0))
    data, _ = whole.split(-12)
    model = MultinomialLDS(state_dim=4)
    posterior = pgmult.sample(
        model, data, draws=400, tune=300, keep=[*model.default_keep, "states"], **FEW
    )
    past = posterior.predict()
    ahead = posterior.forecast(12, levels=(0.05, 0.25, 0.75, 0.95))
    figure = new_figure(11.0, 3.4)
    left, right = figure.subplots(1, 2, width_ratios=[1.4, 1.0])
    past.plot(left)
    ahead.plot(right, symbols=4, history=past, last=24)
    save(figure, "weather")
    found = latent_axes(past, 2)
    save(found.plot().figure, "latent-axes")
    save(found.plot_words(), "axis-words")


if __name__ == "__main__":
    warnings.simplefilter("ignore", pgmult.ConvergenceWarning)
    for draw in (sequences, fields, topics):
        draw()
