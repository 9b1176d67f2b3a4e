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
# # Counts in space and time
#
# Names of newborns, in nine regions and thirty years. We make them up here, so that the truth is
# known; the last three years are hidden and predicted.

# %%
# %matplotlib inline
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import pgmult
from pgmult.fields import MultinomialGP, as_field
from pgmult.fields.covariances import Matern, SquaredExponential

NAMES = ["Ada", "Ben", "Cleo", "Dan", "Eve"]
PEAKS = np.array([1988.0, 1997.0, 2006.0, 2015.0, 2024.0])


def true_probs(year, east):
    """Names have their peaks one after the other, in the east eight years before the west."""
    scores = -0.5 * ((year + 4.0 * (east - 2.0))[:, None] - PEAKS) ** 2 / 9.0**2
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


rng = np.random.default_rng(1)
grid = np.meshgrid(np.arange(1990.0, 2020.0), [0.0, 1.0, 2.0], [0.0, 1.0, 2.0])
year, east, north = (axis.ravel() for axis in grid)
inputs = pd.DataFrame({"year": year, "east": east, "north": north})
truth = true_probs(year, east)
counts = pd.DataFrame(rng.multinomial(rng.poisson(60, len(truth)), truth), columns=NAMES)
inputs.join(counts).sample(4, random_state=0)

# %% [markdown]
# ## The model
#
# Probabilities move smoothly over the years (a Matérn covariance) and over the map (a squared
# exponential). Variances and length scales are learned. With more than some five hundred inputs,
# `structure="auto"` takes a way of computing that is cheaper, and as exact.

# %%
seen = (inputs["year"] < 2017).to_numpy()
over_years = Matern(1.5, length_scale=10.0, active=[0])
over_map = SquaredExponential(2.0, active=[1, 2])
data = as_field(inputs[seen], counts[seen], new_inputs=inputs[~seen])
posterior = pgmult.sample(
    MultinomialGP(1.0 * over_years * over_map),
    data,
    draws=250,
    tune=250,
    chains=2,
    thin=2,
    random_seed=1,
    progressbar=False,
)
posterior

# %% [markdown]
# ## Predictions
#
# How often does a 90 % interval hold a probability of the hidden years?

# %%
found = posterior.predict(inputs="new")
mean, (lower, upper) = found.mean, found.interval(0.9)
hidden = truth[~seen]
print(f"{((lower < hidden) & (hidden < upper)).mean():.0%} hold the truth")
print(f"mean error of a probability: {np.abs(mean - hidden).mean():.3f}")

# %% [markdown]
# One region: shares of newborns that were seen, and the three years ahead. Dotted: the truth.

# %%
middle = ((inputs["east"] == 1) & (inputs["north"] == 1)).to_numpy()
shares = counts.div(counts.sum(axis=1), axis=0)
ahead = inputs["year"][~seen & middle]
rows = middle[~seen]
figure, axes = plt.subplots(figsize=(7, 3.5))
for k, name in enumerate(NAMES):
    colour = f"C{k}"
    axes.plot(inputs["year"][middle & seen], shares[name][middle & seen], ".", c=colour, alpha=0.4)
    axes.fill_between(ahead, lower[rows, k], upper[rows, k], color=colour, alpha=0.3)
    axes.plot(ahead, mean[rows, k], color=colour, label=name)
    axes.plot(inputs["year"][middle], truth[middle, k], ":", color=colour, linewidth=0.8)
axes.set(xlabel="year", ylabel="share of newborns")
axes.legend(ncols=5, loc="upper center", frameon=False)
plt.close(figure)
figure

# %% [markdown]
# Which name will be first there, and how sure is that?

# %%
first = found.rank_probabilities(1)[rows]
pd.DataFrame(first, columns=NAMES, index=ahead.astype(int)).round(2)
