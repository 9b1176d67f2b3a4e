r"""The axes along which probabilities of symbols vary, whatever the basis of the states.

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
>>> found = latent_axes(StepProbs(p, p[None], np.array([0.5]), data, x[None, :, None]), num_axes=1)
>>> round(abs(float(np.corrcoef(found.scores[:, 0], x)[0, 1])), 6)
1.0
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pgmult.core.arguments import as_kind, as_probability
from pgmult.core.figures.base import BLUE, RED, clean, new_figure
from pgmult.core.figures.lines import Line, Lines
from pgmult.core.typing import FloatArray
from pgmult.core.validate import as_positive_int
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.figures import axis_of, gaps_of, labels_of, name_of, steps_of
from pgmult.sequences.forecasts import StepProbs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Axes = Figure = Any


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
        Of the weighted variance of log probabilities that each axis explains.
    probability : float
        Of the interval.
    sequences : Sequences
        Whose steps these are.
    """

    scores: FloatArray
    lower: FloatArray
    upper: FloatArray
    effects: FloatArray
    weights: FloatArray
    shares: FloatArray
    probability: float
    sequences: Sequences

    def figure(self, *, sequence: int = 0) -> Lines:
        """Where a sequence stands on each axis, with intervals over draws."""
        data, steps = self.sequences, steps_of(self.sequences, sequence)
        x = np.arange(steps.stop - steps.start, dtype=np.float64)
        lines = [
            Line(
                f"axis {a} ({100.0 * share:.0f} % of variance)", a, x, self.scores[steps, a],
                [(self.lower[steps, a], self.upper[steps, a])],
            )
            for a, share in enumerate(self.shares)
        ]  # fmt: skip
        return Lines(
            lines, label=f"latent axes along {name_of(data, sequence)}", y_label="score",
            caption=name_of(data, sequence), from_zero=False, gaps=gaps_of(data.totals[steps]),
            **axis_of(data, sequence),
        )  # fmt: skip

    def plot(self, axes: Axes | None = None, *, sequence: int = 0) -> Axes:
        """The `figure`, drawn with matplotlib."""
        return self.figure(sequence=sequence).plot(axes)

    def plot_words(self, *, num_words: int = 8) -> Figure:
        """One panel per axis: by how much one unit of score multiplies the odds of symbols.

        The symbols shown at either end, at most so many, are those that count most on it, by effect
        and frequency.
        """
        num_words = as_positive_int(num_words, "num_words")
        panels = []
        for effects in self.effects:
            pull = np.sqrt(self.weights) * effects
            order = np.argsort(-pull, kind="stable")
            high = [k for k in order[:num_words] if pull[k] > 0.0]
            low = [k for k in order[::-1][:num_words] if pull[k] < 0.0]
            panels.append([*high, *low[::-1]])
        figure = new_figure(2.9 * len(panels), 0.7 + 0.16 * max(map(len, panels)))
        names = labels_of(self.sequences)
        drawn = figure.subplots(1, len(panels), squeeze=False)[0]
        for a, (axes, shown) in enumerate(zip(drawn, panels, strict=True)):
            factors = np.exp(self.effects[a, shown])
            colours = [RED if factor > 1.0 else BLUE for factor in factors]
            axes.barh(range(len(shown)), factors - 1.0, left=1.0, color=colours, height=0.72)
            axes.axvline(1.0, color="0.3", linewidth=0.8)
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(lambda x, _: f"×{x:g}")
            axes.minorticks_off()
            axes.set_yticks(range(len(shown)), [names[k] for k in shown], fontsize=7)
            axes.tick_params(axis="y", length=0)
            axes.tick_params(axis="x", labelsize=7)
            axes.invert_yaxis()
            axes.set_title(f"axis {a}", fontsize=8)
            clean(axes)
        return figure


def latent_axes(probs: StepProbs, num_axes: int = 2, probability: float = 0.9) -> LatentAxes:
    """The axes of smoothed or filtered probabilities.

    Parameters
    ----------
    probs : StepProbs
        From `pgmult.sequences.predict` or `pgmult.sequences.filter_sequences`.
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
    return LatentAxes(scores, lower, upper, effects, weights, shares, probability, probs.sequences)


def _nearest(states: FloatArray, scores: FloatArray) -> FloatArray:
    """The affine function of states that fits scores best, in least squares."""
    design = np.column_stack([np.ones(len(states)), states])
    return np.asarray(design @ np.linalg.lstsq(design, scores, rcond=None)[0])
