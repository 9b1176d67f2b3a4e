"""From a CSV of texts to a figure of topics: ``text``, a row a document."""

import pgmult
from pgmult.datasets import read_corpus
from pgmult.topics import CorrelatedTopics, top_words
from pgmult.topics.plots import top_word_bars

corpus = read_corpus("articles.csv", column="text", min_documents=5, max_document_share=0.25)
model = CorrelatedTopics(num_topics=12)
posterior = pgmult.sample(model, corpus, draws=200, tune=400, chains=2, random_seed=1)
top_word_bars(top_words(posterior, 6)).savefig("topics.png", dpi=150)
