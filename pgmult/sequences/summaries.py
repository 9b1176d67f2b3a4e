r"""Along which axes the probabilities of symbols move, whatever the basis of the states.

The states of a linear dynamical system are known up to a change of basis, which differs between
draws; the probabilities they make are not. `latent_axes` finds the directions in which these move
most, by weighted log-ratio analysis (Greenacre and Lewi 2009): with p_tk the probability of symbol
k at step t, w_k its mean over steps, and log p centred over steps and, with weights w, over
symbols,

    log p_tk  ~  steps' level + symbols' level + sum_a scores_ta effects_ak,

the best such approximation in squares weighted by w, scores of unit variance and uncorrelated.
One unit of score multiplies the odds of symbols by exp(effects).

>>> import numpy as np
>>> from pgmult.sequences import StepProbs, as_sequences
>>> x = np.sin(np.arange(50))
>>> p = np.exp(np.outer(x, [1.0, -1.0, 0.0]))
>>> p /= p.sum(axis=1, keepdims=True)
>>> data = as_sequences(np.rint(100 * p).astype(int))
>>> found = latent_axes(StepProbs(p, p[None], np.array([0.5]), x[None, :, None], data), num_axes=1)
>>> round(abs(float(np.corrcoef(found.scores[:, 0], x)[0, 1])), 6)
1.0
"""

from dataclasses import dataclass

import numpy as np

from pgmult.core.arguments import as_kind, as_probability
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_positive_int
from pgmult.sequences.forecasts import StepProbs

__all__ = ["LatentAxes", "latent_axes"]


@dataclass(frozen=True, slots=True, eq=False)
class LatentAxes:
    """Directions in which probabilities of symbols move, the one that moves them most first.

    Attributes
    ----------
    scores : array, ``(num_steps, num_axes)``
        Where each step stands; mean 0 and variance 1.
    lower, upper : array, ``(num_steps, num_axes)``
        Of an interval over draws: of the linear function of each draw's states that is nearest to
        the scores.
    effects : array, ``(num_axes, num_symbols)``
        Change of the log of each symbol's probability, relative to others, by a unit of score.
    weights : array, ``(num_symbols,)``
        Mean probabilities: how much each symbol counted.
    shares : array, ``(num_axes,)``
        Of the weighted variance of log probabilities that each axis tells.
    probability : float
        Of the interval.
    """

    scores: FloatArray
    lower: FloatArray
    upper: FloatArray
    effects: FloatArray
    weights: FloatArray
    shares: FloatArray
    probability: float


def latent_axes(probs: StepProbs, num_axes: int = 2, probability: float = 0.9) -> LatentAxes:
    """The axes of smoothed or filtered probabilities.

    Parameters
    ----------
    probs : StepProbs
        From `pgmult.sequences.smooth` or `pgmult.sequences.filter_sequences`.
    num_axes : int
        At most the dimension of the states.
    probability : float
        Of the intervals over draws.

    Raises
    ------
    ValueError
        If there are more axes than dimensions of the states or directions of movement.
    """
    num_axes = as_positive_int(num_axes, "num_axes")
    probability = as_probability(probability, "probability")
    as_kind(probs, "probs", StepProbs)
    num_states = probs.state_mean.shape[2]
    if num_axes > num_states:
        raise ValueError(f"num_axes must be at most the {num_states} dimensions of the states")
    weights = probs.mean.mean(axis=0)
    logs = np.log(np.maximum(probs.mean, np.finfo(np.float64).tiny))
    logs -= logs.mean(axis=0)
    logs -= (logs @ weights)[:, None]
    left, size, right = np.linalg.svd(logs * np.sqrt(weights), full_matrices=False)
    if len(size) < num_axes or size[num_axes - 1] <= 1e-10 * size[0] or size[0] == 0.0:
        raise ValueError(f"the probabilities do not move in {num_axes} directions")
    spread = np.sqrt(len(logs))
    scores = left[:, :num_axes] * spread
    effects = (size[:num_axes, None] / spread) * right[:num_axes] / np.sqrt(weights)
    longest = np.abs(right[:num_axes]).argmax(axis=1)
    sign = np.sign(right[np.arange(num_axes), longest])
    scores, effects = scores * sign, effects * sign[:, None]
    by_draw = np.array([_nearest(states, scores) for states in probs.state_mean])
    tail = 0.5 * (1.0 - probability)
    lower, upper = np.quantile(by_draw, [tail, 1.0 - tail], axis=0)
    shares = size[:num_axes] ** 2 / (size**2).sum()
    return LatentAxes(scores, lower, upper, effects, weights, shares, probability)


def _nearest(states: FloatArray, scores: FloatArray) -> FloatArray:
    """The affine function of states that fits scores best, in least squares."""
    design = np.column_stack([np.ones(len(states)), states])
    return np.asarray(design @ np.linalg.lstsq(design, scores, rcond=None)[0])
