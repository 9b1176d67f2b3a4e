r"""The concentration of words in topics, learned from the counts with the topics summed out.

Topics are Dirichlet rows; given the topics of the tokens, topic k has n_kv tokens of word v::

    log eta ~ N(log 0.1, 1),    topics_k ~ Dir(eta, ..., eta),    n_k ~ Multinomial(topics_k)

    p(n | eta) = prod_k  Gamma(V eta) / Gamma(V eta + n_k)  prod_v  Gamma(eta + n_kv) / Gamma(eta)

Eta moves by a slice on log eta under its prior times p(n | eta), and then topics are drawn given
the counts and the new eta: together one exact update of both. Given the topics as well, eta could
hardly move, since thousands of their probabilities determine it. Cells without tokens have a factor
of 1, and equal counts one in common, so that the density takes a gamma function for each different
count.

The prior is centred at the value of Griffiths and Steyvers (2004), "Finding scientific topics", and
90 % of it lies between 0.02 and 0.5: from many narrow topics to few broad ones. Thousands of cells
outweigh it.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> counts = rng.multinomial(1000, rng.dirichlet(np.full(500, 0.3), size=4))
>>> draws = [0.1]
>>> for _ in range(100):
...     draws.append(sample_concentration(rng, None, draws[-1], counts))
>>> round(float(np.mean(draws[20:])), 1)
0.3
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import gammaln

from pgmult.core.typing import BoolArray, FloatArray, Generator, IntArray
from pgmult.sampling.moves import slice_sample

CENTRE = 0.1
"""The median of the prior: where chains begin, and what fits that learn nothing take."""

_SPREAD = 1.0  # standard deviation of log eta
_MANY = 1_000_000  # tokens of a cell up to which counts are counted in a table
_WIDTH = 0.2  # of the first interval of a slice


def log_evidence(counts: IntArray) -> Callable[[float], float]:
    """Log p(counts | eta) as a function of eta, without the multinomial coefficients."""
    totals, num_words, cells = counts.sum(axis=1), counts.shape[1], counts.ravel("K")
    if cells.max(initial=0) < _MANY:
        every = np.bincount(cells, minlength=1)
        every[0] = 0
        values, times = np.flatnonzero(every), every[every > 0]
    else:
        values, times = np.unique(cells[cells > 0], return_counts=True)

    def value(eta: float) -> float:
        rise = times @ (gammaln(eta + values) - gammaln(eta))
        eta_sum = num_words * eta
        return float(rise - np.sum(gammaln(eta_sum + totals) - gammaln(eta_sum)))

    return value


def start_concentration(fixed: float | None) -> float:
    """Eta where a chain begins: `fixed`, where that is given."""
    return CENTRE if fixed is None else fixed


def prior_concentration(rng: Generator, fixed: float | None) -> float:
    """Eta from its prior: `fixed`, where that is given."""
    return CENTRE * math.exp(_SPREAD * rng.standard_normal()) if fixed is None else fixed


def sample_concentration(
    rng: Generator, fixed: float | None, eta: float, counts: IntArray
) -> float:
    """Eta given the counts of words in topics: `fixed`, where that is given. O(K V).

    Parameters
    ----------
    fixed : float or None
    eta : float
        The concentration of the sweep before.
    counts : int64 array, ``(num_topics, num_words)``
    """
    if fixed is not None:
        return fixed
    evidence = log_evidence(counts)

    def log_density(log_eta: FloatArray, active: BoolArray) -> FloatArray:
        prior = -0.5 * ((log_eta - math.log(CENTRE)) / _SPREAD) ** 2
        return np.asarray(prior + evidence(math.exp(log_eta[0])))

    return float(np.exp(slice_sample(rng, log_density, np.log([eta]), _WIDTH)[0]))
