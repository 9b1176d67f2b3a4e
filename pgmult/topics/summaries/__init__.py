"""Summaries of a run: words, coherence, documents, correlations, matched topics.

The labels of topics are arbitrary, and so is the order of the sticks in `Sigma`; chains may be in
different modes. So chains are matched topic by topic, a topic's draws are pooled over the chains
that found it (or taken from one chain, where ``chain=`` is given), and correlations are those of
*simulated* topic proportions.

>>> import numpy as np
>>> from pgmult import Posterior
>>> from pgmult.topics import top_words
>>> run = Posterior({"topics": np.tile([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], (1, 5, 1, 1))})
>>> [[(word, round(mean, 2)) for word, mean, sd in topic] for topic in top_words(run, 2)]
[[('0', 0.7), ('1', 0.2)], [('2', 0.8), ('0', 0.1)]]
"""

from pgmult.core.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
