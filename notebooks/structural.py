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
# # A structural topic model: what covariates do to topics and to their words
#
# The State of the Union messages from 1946 to 2026, cut into pieces of 200 words, ship with
# pgmult as counts. Of each piece we know the year, the party and the president. We ask what party
# and time do to what presidents speak of, how sure that is, and whether the parties say the same
# thing in other words.

# %%
# %matplotlib inline
import warnings

import pgmult
from pgmult.topics import StructuralTopics, content, effects, topic_stability

corpus = pgmult.datasets.state_of_the_union()
print(corpus.table)

# %% [markdown]
# Your own texts come from a table, a text a row, with all other columns kept beside them:
#
# ```python
# table = pgmult.read("speeches.csv")
# corpus = table.corpus("text", min_documents=15, ngrams=2)
# print(corpus.table.losses)  # how many words and documents were lost, and to what
# ```
#
# ## The model in two formulas
#
# *Prevalence*, how much is said of a topic, depends on party, on a smooth curve over the years
# that may differ by party, and on the president: pieces of one president are not independent
# evidence about parties, and without ``(1 | president)`` intervals would be far too short.
# *Content*, the words it is said in, may differ by party.

# %%
data = corpus.with_covariates("~ party * s(year) + (1 | president)", content="~ party")
model = StructuralTopics(num_topics=12)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", pgmult.ConvergenceWarning)  # we look ourselves, below
    run = pgmult.sample(
        model,
        data,
        draws=100,
        tune=200,
        thin=2,
        chains=2,
        random_seed=1,
        progressbar=False,
        keep=(*model.default_keep, "theta"),
    )
topic_stability(run)

# %% [markdown]
# Effects are averaged over all draws of all chains, each topic over the chains that found it.
#
# ## What party does
#
# The difference between the parties in a message of the year 2000, by a president whom we have
# not met. There are 14 presidents, seven of each party: expect wide intervals.

# %%
in_2000 = effects(run, "party", at={"year": 2000})
by_party = in_2000.difference("party", "Republican", "Democratic")
by_party

# %%
by_party.plot().figure

# %% [markdown]
# For these presidents, rather than for presidents in general, `scope="documents"` keeps the
# effects of those in the data. Which question is yours is for you to say.

# %%
here = effects(run, "party", scope="documents")
here.difference("party", "Republican", "Democratic").plot().figure

# %% [markdown]
# ## What time does

# %%
over_time = effects(run, "year", by="party")
over_time.at(topic=1).plot().figure

# %% [markdown]
# ## The same topic in other words
#
# Of each topic, the words that tell the parties apart, with intervals. A group that hardly uses a
# topic shows its prior: how many words of the topic each group has is printed with it.

# %%
words = content(run)
words

# %%
words.words("Republican", "Democratic", topic=11).plot().figure

# %% [markdown]
# ## New documents
#
# Words are found by name, covariates are coded as they were, a president may be new, and what the
# run does not know is told.

# %%
new = pgmult.read(
    {
        "text": ["the price of wheat and the income of our farmers", "astronauts on the moon"],
        "year": [1955, 1969],
        "party": ["Republican", "Republican"],
        "president": ["Dwight D. Eisenhower", "somebody new"],
    }
)
found = run.predict(new.corpus("text"), new_levels=True)
print(found)
for name, mean in zip(found.topics.documents, found.topics.mean, strict=True):
    best = mean.argmax()
    print(f"document {name}: {mean[best]:.2f} of {in_2000.names[best]}")

# %% [markdown]
# ## How many topics?
#
# `search_num_topics(data, [6, 12, 24])` fits each to the same words and scores the same held-out
# ones, with these covariates; its table shows coherence and exclusivity beside the
# scores. And from the shell, the same job and its page with all of this:
#
# ```bash
# pgmult topics fit speeches.csv --column text --prevalence "~ party * s(year) + (1 | president)" \
#     --content "~ party" --topics 12 --out run
# pgmult topics effects run party --at year=2000 \
#     --difference Republican Democratic --figure party.svg
# ```
