"""What a posterior says: words, coherence, documents, correlations, topics matched.

The labels of topics are arbitrary, and so is the order of sticks on which `Sigma` lives. So words
are summarised within a chain, correlations are those of *simulated* topic proportions, and chains
and runs are compared topic by topic after the best matching of their mean topics.

>>> import numpy as np
>>> from pgmult.topics import top_words
>>> draws = {"topics": np.tile([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], (1, 5, 1, 1))}
>>> [[(word, round(mean, 2)) for word, mean, sd in topic] for topic in top_words(draws, 2)]
[[('0', 0.7), ('1', 0.2)], [('2', 0.8), ('0', 0.1)]]
"""
