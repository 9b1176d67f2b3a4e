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
# # Coming from stm
#
# You know R's package stm (Roberts, Stewart and Tingley, 2019) and have its script before you. This
# page goes through one, with the State of the Union messages from 1946 to 2026 that ship with
# pgmult: R above, Python below. A table of all functions is at the end.
#
# Three things are different, and all else follows from them:
#
# * **stm finds one mode, pgmult samples.** `stm()` returns a point and the curvature around it;
#   here chains draw the topics, too, so that the uncertainty of words is in all intervals. There
#   is no spectral start: chains start from searches of their own, and what they agree on is told.
# * **Documents of one author are not independent.** A term `(1 | president)` says so. In a
#   simulation with ten documents by each of twenty authors, 80 % intervals of an effect hold the
#   truth 81 % of the time with it, and 41 % by `estimateEffect`'s way, a regression on draws
#   (`python tests/benchmarks/structural_coverage.py --replicates 200`).
# * **Content is a hierarchy, not sparse log-linear (SAGE).** Each group's words of a topic are a
#   draw around the topic's; how far groups differ is learned, topic by topic.
#
# ## Read
#
# ```r
# processed <- textProcessor(speeches$text, metadata = speeches)
# out <- prepDocuments(processed$documents, processed$vocab, processed$meta, lower.thresh = 15)
# plotRemoved(processed$documents, lower.thresh = seq(1, 100, by = 10))
# ```

# %%
# %matplotlib inline
import warnings

import pgmult
from pgmult.topics import (
    StructuralTopics,
    content,
    effects,
    top_words,
    topic_correlations,
    topic_stability,
)
from pgmult.topics.summaries import exclusivity, mean_topics, strongest_pairs, topic_labels

few = {
    "text": [
        "We shall keep the peace and defend freedom.",
        "Taxes must fall, and freedom grow.",
        "Peace!",
    ],
    "party": ["D", "R", "D"],
}
table = pgmult.read(few)  # or the name of a CSV file, or a data frame
print(table.corpus("text", min_documents=2).table.losses)

corpus = pgmult.datasets.state_of_the_union()
corpus

# %% [markdown]
# Words are not stemmed; `min_documents=` is `lower.thresh`, and `losses` says what went. Documents
# without a word stay as empty rows, so that columns keep their rows.
#
# ## Fit
#
# ```r
# fit <- stm(out$documents, out$vocab, K = 10, prevalence = ~ party * s(year),
#            content = ~ party, data = out$meta, init.type = "Spectral")
# ```

# %%
data = corpus.with_covariates("~ party * s(year) + (1 | president)", content="~ party")
model = StructuralTopics(num_topics=10)
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
# `s(year)` is a smooth curve in both. In stm it is a B-spline of ten columns; here it is penalised,
# and how much it bends is learned. `selectModel` and `multiSTM` compare fits that found different
# modes: here that is what the table says, chain beside chain.
#
# ## Read topics
#
# ```r
# labelTopics(fit, n = 6)
# sageLabels(fit)
# findThoughts(fit, texts = texts, topics = 3, n = 2)
# ```

# %%
by_probability, by_frex = top_words(run, 5), top_words(run, 5, by="frex")
for k, (most, best) in enumerate(zip(by_probability, by_frex, strict=True), 1):
    print(f"topic {k}: " + " ".join(word.word for word in most))
    print("   FREX: " + " ".join(word.word for word in best))

# %%
content(run).table(4)

# %%
for document in run.quotes(4, 2).quotes[0]:
    print(f"{document.mean:.2f} [{document.lower:.2f}, {document.upper:.2f}]  {document.document}")

# %% [markdown]
# With your own texts, `quotes(run, topic=3)` prints them. Topics count from 1, as in stm.
#
# ## Effects
#
# ```r
# prep <- estimateEffect(1:10 ~ party * s(year), fit, metadata = out$meta)
# plot(prep, "party", method = "difference", cov.value1 = "Republican", cov.value2 = "Democratic",
#      moderator = "year", moderator.value = 2000)
# plot(prep, "year", method = "continuous", topics = 3, moderator = "party",
#      moderator.value = "Republican")
# ```

# %%
in_2000 = effects(run, "party", at={"year": 2000})
by_party = in_2000.difference("party", "Republican", "Democratic")
by_party

# %%
by_party.plot().figure

# %%
effects(run, "year", by="party").at(topic=4).plot().figure

# %% [markdown]
# There is no second model: the regression is part of the one that was sampled, in shares that stay
# between 0 and 1. `effects` answers for presidents in general, hence the wide intervals;
# `scope="documents"` for those who spoke. `method = "pointestimate"` is `effects(run, "party")`.
#
# ```r
# plot(fit, type = "perspectives", topics = 3)
# ```

# %%
content(run).words("Republican", "Democratic", topic=4).plot().figure

# %% [markdown]
# ## Correlations
#
# ```r
# plot(topicCorr(fit))
# ```

# %%
labels = topic_labels(by_probability)
for sign in strongest_pairs(topic_correlations(run).excess(), 2):
    for pair in sign:
        interval = f"[{pair.lower:+.2f}, {pair.upper:+.2f}]"
        print(f"{pair.mean:+.2f} {interval}  {labels[pair.first]}  |  {labels[pair.second]}")

# %% [markdown]
# ## Judge
#
# ```r
# topicQuality(fit, out$documents)
# checkResiduals(fit, out$documents)
# searchK(out$documents, out$vocab, K = c(5, 10, 20), prevalence = ~ party, data = out$meta)
# ```

# %%
exclusive = exclusivity(mean_topics(run))
for k in (0, 1, 2):
    print(f"topic {k}: exclusivity {exclusive[k]:.1f}")
run.check()

# %% [markdown]
# stm asks whether residuals are more dispersed than independent words would be; here replicates of
# the model are compared with the data, draw by draw. `search_num_topics(data, [5, 10, 20])` is
# `searchK`.
#
# ## Function by function
#
# | stm | pgmult |
# |---|---|
# | `textProcessor`, `prepDocuments` | `pgmult.read(...).corpus(text, min_documents=)` |
# | `readCorpus` | `as_corpus` |
# | `plotRemoved` | `corpus.table.losses` |
# | `stm(prevalence=)` | `with_covariates("~ ...")`, then `sample(StructuralTopics(K), data)` |
# | `stm(content=)` | `with_covariates(..., content="~ ...")`; combinations by `a:b` |
# | `s`, `bs`, `ns` | `s(x)` penalised; `bs`, `cr`, `cs`, `cc`, `poly` as they stand |
# | – | `(1 \| author)`: authors, schools, crossed too; `variance_shares` |
# | `selectModel`, `manyTopics`, `multiSTM` | `chains=`, `topic_stability`; `run.compare(other)` |
# | `init.type` | `find_start` |
# | `searchK` | `search_num_topics`, scores paired by document |
# | `labelTopics` | `top_words(run, by="probability" \| "frex")` |
# | `sageLabels` | `content(run).table()` |
# | `findThoughts`, `plotQuote` | `quotes` |
# | `estimateEffect`, its `summary` | `effects(...)`, `.table()`, `.to_dataframe()` |
# | `plot.estimateEffect` | `effects(...).plot()`, `.difference("party", "R", "D").plot()` |
# | `plot.STM` | `run.report("page.html")`; `top_word_bars`; `document_topics` |
# | `plot.STM(type = "perspectives")` | `content(run).words(...).plot()` |
# | `topicCorr`, its `plot` | `topic_correlations`, `.excess()`, `.plot()` |
# | `topicQuality`, `semanticCoherence`, `exclusivity` | `npmi`, `exclusivity` |
# | `checkResiduals` | `run.check()` |
# | `permutationTest` | none: intervals of `effects`, with `(1 \| author)` where authors differ |
# | `make.heldout`, `eval.heldout` | `split_tokens`, `DocumentCompletion` |
# | `alignCorpus`, `fitNewDocuments` | `run.predict(new)`; its draws by `fold_in` |
# | `estimateEffect` of new documents | `run.refit(new.with_covariates("~ x")).effects("x")` |
# | `thetaPosterior` | `run["theta"]` with `keep=(*model.default_keep, "theta")` |
# | `toLDAvis`, `writeLdac` | `run.report("page.html")`, `export(run, folder)` |
# | `cloud` | none; `top_word_bars` shows how sure words are |
# | `topicLasso` | none: `run["theta"]` in a regression, averaged over draws |
# | – | keywords of topics: `keywords={...}` |
