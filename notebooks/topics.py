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
# # A correlated topic model, from text to uncertainty
#
# The State of the Union messages from 1946 to 2026, cut into pieces of 200 words, ship with pgmult
# as counts. We hold some words out, sample the model, look at what it found, and ask whether to
# believe it.

# %%
# %matplotlib inline
import warnings

import matplotlib.pyplot as plt

import pgmult
from pgmult.topics import top_words, topic_correlations, topic_stability
from pgmult.topics.scores.completion import unigram_log_predictive
from pgmult.topics.summaries import strongest_pairs, topic_labels

corpus = pgmult.datasets.state_of_the_union()
training, held_out = pgmult.topics.split_tokens(corpus, documents=corpus.num_documents // 10)
corpus

# %% [markdown]
# ## Sampling
#
# Chains run in parallel threads. Every sweep draws, in exact blocks, the topic of every word, the
# topics, each document's Gaussian vector as a whole, and their mean and covariance. The callback
# scores the held-out words by document completion as the chains run.
#
# Chains of a topic model rest in modes of their own and seldom find all of the same topics;
# `pgmult.sample` says so in a warning. Here we look at that ourselves.

# %%
completion = pgmult.topics.scores.DocumentCompletion(held_out)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", pgmult.ConvergenceWarning)
    posterior = pgmult.sample(
        pgmult.topics.CorrelatedTopics(num_topics=12),
        training,
        draws=200,
        tune=300,
        chains=2,
        random_seed=0,
        progressbar=False,
        callback=completion,
    )
posterior

# %% [markdown]
# ## Topics
#
# First, which topics did both chains find? Then, posterior means and standard deviations of the
# most probable words, each topic over the chains that found it.

# %%
topic_stability(posterior)

# %%
words = top_words(posterior, num_words=6)
for topic in words:
    print(", ".join(f"{w.word} {w.mean:.3f} ± {w.sd:.3f}" for w in topic))

# %% [markdown]
# ## Which topics go together
#
# The covariance of the model lives on sticks and depends on their order. What is meaningful is the
# correlation of topic proportions over documents, on proportions simulated from the posterior, less
# what shares that sum to one show anyway.

# %%
correlations = topic_correlations(posterior).excess()
labels = topic_labels(words)
for pairs in strongest_pairs(correlations, 3):
    for pair in pairs:
        print(f"{pair}  {labels[pair.first]}  |  {labels[pair.second]}")

# %%
correlations.plot().figure

# %% [markdown]
# ## Should we believe it?
#
# Each chain should look settled within its mode; that chains differ in level says that their modes
# do, not which topics they share.

# %%
posterior.summary("effective_topics")

# %%
figure, axes = plt.subplots(figsize=(6, 2.5), layout="constrained")
axes.plot(posterior.sample_stats["log_likelihood"].T)
axes.set(xlabel="draw", ylabel="log likelihood")
# %%
print("correlated topics:", completion.score())
print("unigram          :", unigram_log_predictive(training, held_out))
