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
# # Your own model
#
# What do people order in forty cafés? Each café has shares of its own; cafés resemble each other;
# what sells well together in one does in others. No model in pgmult says just that, so we
# write one: some thirty lines, sampled in exact blocks.
#
# A model is a frozen dataclass of hyperparameters. Its state and its data are frozen dataclasses
# of plain arrays. Five methods make it complete:
#
# | method | what it does |
# |---|---|
# | `prior(rng, data)` | a state from the prior; it may use totals and covariates, never counts |
# | `simulate(rng, state, data)` | data from a state |
# | `init(rng, data)` | where a chain starts |
# | `step(rng, state, data)` | one sweep: a new state |
# | `log_likelihood(state, data)` | of the data given the state |
#
# That is all that `pgmult.sample` needs to run it in parallel chains, to store, resume and watch
# it; and because it can draw from its prior, `pgmult.testing.check_model` can look for the bug in
# its sweep.

# %%
# %matplotlib inline
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np

import pgmult

DRINKS = ["espresso", "latte", "tea", "juice", "water"]


@dataclass(frozen=True, slots=True, eq=False)
class Orders:
    """Data."""

    counts: np.ndarray  # (num_cafes, num_drinks)


@dataclass(frozen=True, slots=True, eq=False)
class OrdersState:
    """A point of the chain."""

    psi: np.ndarray  # (num_cafes, num_drinks - 1)
    mu: np.ndarray  # (num_drinks - 1,)
    Sigma: np.ndarray  # (num_drinks - 1, num_drinks - 1)


# %% [markdown]
# ## The model
#
# The *link* turns counts into a Gaussian potential: `augment` draws the Pólya-gamma variables. A
# Gaussian *prior* has one verb, `condition`: on a potential, or on draws from it. So the sweep is
# three lines, each of them an exact draw of a whole block.


# %%
@dataclass(frozen=True, slots=True, eq=False)
class CafeShares:
    """y_c ~ Multinomial(N_c, sticks(psi_c)), psi_c ~ N(mu, Sigma), (mu, Sigma) ~ NIW."""

    across: pgmult.NormalInverseWishart

    # names of axes for summaries; `probs` below is a method, kept along with the state
    dims: ClassVar = {"probs": ("cafe", "drink"), "mu": ("stick",), "Sigma": ("stick", "stick")}

    def link(self, data):
        return pgmult.StickBreaking()

    def prior(self, rng, data):
        mu, Sigma = self.across.sample(rng)
        psi = pgmult.MvNormal(np.tile(mu, (len(data.counts), 1)), Sigma).sample(rng)
        return OrdersState(psi, mu, Sigma)

    def simulate(self, rng, state, data):
        totals = data.counts.sum(axis=1)
        return Orders(self.link(data).simulate(rng, state.psi, totals))

    def init(self, rng, data):
        return self.step(rng, self.prior(rng, data), data)

    def step(self, rng, state, data):
        seen = self.link(data).augment(rng, state.psi, data.counts)
        psi = pgmult.MvNormal(state.mu, state.Sigma).condition(seen).sample(rng)
        mu, Sigma = self.across.condition(psi).sample(rng)
        return OrdersState(psi, mu, Sigma)

    def log_likelihood(self, state, data):
        return float(self.link(data).log_likelihood(state.psi, data.counts).sum())

    def probs(self, state, data):
        return self.link(data).probs(state.psi)


def model_of(num_drinks):
    """Cafés' logits differ by about 1."""
    n = num_drinks - 1
    return CafeShares(
        pgmult.NormalInverseWishart(np.zeros(n), strength=0.2, dof=n + 4.0, scale=3.0 * np.eye(n))
    )


# %% [markdown]
# ## Is it right?
#
# Before any data: does the sweep leave the law of the model as it is? `check_model` compares
# statistics of states from the prior with those of states that go through the sweep and new data
# (the joint distribution test of Geweke, 2004), on data so small that this takes seconds.

# %%
tiny = Orders(np.array([[3, 1, 0], [0, 2, 4], [1, 1, 1]]))
print(pgmult.testing.check_model(model_of(3), tiny, random_seed=0))

# %% [markdown]
# A test is worth what it refuses. Here is the same model with a slip that is easily made and
# hard to see in any trace: the mean and the covariance are learned from the states *before* this
# sweep's draw, and the new ones are kept.


# %%
def stale(self, rng, state, data):
    seen = self.link(data).augment(rng, state.psi, data.counts)
    psi = pgmult.MvNormal(state.mu, state.Sigma).condition(seen).sample(rng)
    mu, Sigma = self.across.condition(state.psi).sample(rng)
    return OrdersState(psi, mu, Sigma)


broken = pgmult.testing.mutant(model_of(3), step=stale)
try:
    print(pgmult.testing.check_model(broken, tiny, random_seed=0))
except AssertionError as refusal:
    print(str(refusal)[:400])

# %% [markdown]
# ## Sampling
#
# Forty cafés, made up so that the truth is known; some of them have told us of only a handful of
# orders.

# %%
rng = np.random.default_rng(3)
model, orders = model_of(len(DRINKS)), rng.integers(2, 60, size=40)
blank = Orders(np.outer(orders, [1, 0, 0, 0, 0]))
truth = model.prior(rng, blank)
data = model.simulate(rng, truth, blank)
posterior = pgmult.sample(
    model, data, draws=1000, tune=500, chains=2, thin=4, random_seed=1, progressbar=False
)
posterior.summary(["mu", "Sigma"])

# %% [markdown]
# What the cafés learn from each other shows where little is known: a point is a café's share of a
# drink; grey is the share of its own orders, with nothing borrowed.

# %%
shares = model.probs(truth, data)
fitted = posterior["probs"].mean(axis=(0, 1))
alone = data.counts / data.counts.sum(axis=1, keepdims=True)
few = np.argsort(orders)[:12]
figure, axes = plt.subplots(figsize=(4.5, 4.5))
axes.plot([0, 1], [0, 1], color="0.7", linewidth=0.8)
axes.plot(shares[few].ravel(), alone[few].ravel(), "x", color="0.6", label="its own orders")
for k, drink in enumerate(DRINKS):
    axes.plot(shares[few, k], fitted[few, k], "o", markersize=5, label=drink)
axes.set(xlabel="true share", ylabel="estimated share", title="The twelve smallest cafés")
axes.legend(frameon=False)
plt.close(figure)
figure

# %%
low, high = np.quantile(posterior["probs"], [0.05, 0.95], axis=(0, 1))
print(f"mean error of a share: {np.abs(fitted - shares).mean():.3f} with the others,")
print(f"                       {np.abs(alone - shares).mean():.3f} alone;")
print(f"{np.mean((low < shares) & (shares < high)):.0%} of true shares are in their 90 % intervals")

# %% [markdown]
# `examples/own_model.py` is the next step: votes that go along with those of neighbouring areas, a
# Gaussian Markov random field over a map in the place of `MvNormal`.
