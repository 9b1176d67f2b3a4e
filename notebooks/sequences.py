# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Sequences: what comes next?
#
# Each day of eight year books says *fog*, *rain*, *snow* or *sun*. There is a season of 24 days
# that nobody tells the model about. We know the true probabilities, because we make the weather
# here, so everything that the model says can be checked.

# %%
# %matplotlib inline
import numpy as np

import pgmult
from pgmult.sequences import MarkovChain, MultinomialLDS, as_sequences, one_step_ahead

WEATHER = ["fog", "rain", "snow", "sun"]


def true_probs(days):
    """Sun and snow take turns; fog comes in between; it rains all year round."""
    angle = 2 * np.pi * np.asarray(days) / 24
    scores = [1.5 * np.cos(2 * angle), 0 * angle, -2 * np.sin(angle), 2 * np.sin(angle)]
    weights = np.exp(np.column_stack(scores))
    return weights / weights.sum(axis=1, keepdims=True)


def year_book(rng, first_day, looked=0.9):
    """A symbol a day of 120 days; None where nobody looked."""
    days = [WEATHER[rng.choice(4, p=p)] for p in true_probs(first_day + np.arange(120))]
    return [day if rng.random() < looked else None for day in days]


rng = np.random.default_rng(0)
firsts = rng.integers(24, size=8)
books = [year_book(rng, first) for first in firsts]
print(books[0][:10])

# %% [markdown]
# ## The model
#
# A state of two numbers moves linearly, round and round where there is a season, and drives the
# probabilities. Days on which nobody looked cost nothing: they are filled in from both sides.

# %%
data = as_sequences(books, alphabet=WEATHER)
posterior = pgmult.sample(
    MultinomialLDS(state_dim=2),
    data,
    draws=300,
    tune=500,
    chains=2,
    thin=5,
    random_seed=1,
    progressbar=False,
)
posterior.summary(["eigenvalue_moduli", "amplitudes"])

# %% [markdown]
# The basis of the state is arbitrary, and every chain has its own; these do not depend on it. The
# moduli of the transition's eigenvalues say that the season neither grows nor dies. How far the
# state swings in the long run (`amplitudes`) is then hardly settled by books of 120 days: it mixes
# slowly, and the warning says so. Read such a number from longer runs; what comes next, below, is
# known far better.

# %% [markdown]
# ## The next twelve days, with intervals
#
# Bands are 50 and 90 % intervals of each probability. Dotted: the truth.

# %%
days = 12
ahead = posterior.forecast(days, levels=(0.05, 0.25, 0.75, 0.95), random_seed=2)
history = posterior.predict(data)
axes = ahead.plot(symbols=["sun", "snow"], history=history, last=48)
truth = np.array([true_probs(first + 120 + np.arange(days)) for first in firsts])
for name in ["sun", "snow"]:
    axes.plot(120 + np.arange(days), truth[0, :, WEATHER.index(name)], "k:")
axes.figure

# %% [markdown]
# How often does a 90 % interval hold the truth, over all books, days and symbols?

# %%
lower, upper = ahead.quantiles[0], ahead.quantiles[-1]
print(f"{((lower <= truth) & (truth <= upper)).mean():.0%}")

# %% [markdown]
# ## Is it any better than something simple?
#
# The next day of new books, beside a Markov chain and the shares of all days.

# %%
test = as_sequences([year_book(rng, first, looked=1.0) for first in (3, 11, 17)], alphabet=WEATHER)
chain = pgmult.sample(MarkovChain(order=1), data, draws=100, random_seed=1, progressbar=False)
shares = np.bincount(data.symbols) / len(data.symbols)
scores = {
    "linear dynamics": one_step_ahead(posterior, test, random_seed=3).mean,
    "given the day before": one_step_ahead(chain, test).mean,
    "always the same": np.log(shares[test.symbols]).mean(),
}
for name, score in scores.items():
    print(f"{name:>21}: {score:.3f} nats a day")
