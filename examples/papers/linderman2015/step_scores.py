r"""Scores of forecasters of sequences step by step, and mixtures of draws of whole sequences.

Every forecaster is judged by log p(x_t | x_<t) of test steps it was not trained on. S draws make
one forecaster in either of two ways: `pgmult.sequences.one_step_ahead` averages their probabilities
at every step, p(x_t | x_<t) = 1/S sum_s p_s(x_t | x_<t); `mix_draws` makes them the components of
one mixture of whole sequences, weighted by how well they predicted the sequence's steps so far:

    p(x_1:t) = 1/S sum_s p_s(x_1:t),       log p(x_t | x_<t) its increments.

That is Bayes' rule over draws; over hundreds of steps a few draws take all the weight.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from pgmult.core.scores import Gain, Score
from pgmult.core.typing import FloatArray, IntArray
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.scores.one_step import blocks_of


@dataclass(frozen=True, slots=True, eq=False)
class SequenceScore:
    """Log probabilities of test steps, each given the steps before it.

    Attributes
    ----------
    method : str
        Name of the forecaster.
    log_predictive : array, ``(num_observed_steps,)``
        Of all observations of a step; missing steps are left out.
    totals : int array, ``(num_observed_steps,)``
        Observations of each step.
    sequence : int array, ``(num_observed_steps,)``
        The sequence each step is of.
    """

    method: str
    log_predictive: FloatArray
    totals: IntArray
    sequence: IntArray

    @classmethod
    def of_steps(cls, method: str, log_predictive: FloatArray, test: Sequences) -> "SequenceScore":
        """The score whose log predictive of *all* steps of `test` is given, ``(num_steps,)``."""
        totals = test.totals
        seen = totals > 0
        sequence = np.repeat(np.arange(test.num_sequences), test.lengths)
        return cls(method, log_predictive[seen], totals[seen], sequence[seen])

    @property
    def by_block(self) -> Score:
        """The same by blocks of steps, as `pgmult.sequences.one_step_ahead` has it."""
        return Score.of_draws(
            self.log_predictive[None, None], self.totals, unit=blocks_of(self.sequence),
            left_out=False,
        )  # fmt: skip

    @property
    def mean(self) -> float:
        """Nats per observation."""
        return float(self.log_predictive.sum() / self.totals.sum())

    def gain_over(self, reference: "SequenceScore") -> Gain:
        """Mean difference to another score of the same steps, paired.

        Raises
        ------
        ValueError
            If the other score is of other steps.
        """
        same = np.array_equal(self.sequence, reference.sequence)
        if not (same and np.array_equal(self.totals, reference.totals)):
            raise ValueError(
                f"the scores must be of the same steps: {self.method} has"
                f" {len(self.totals)} observed steps, {reference.method} {len(reference.totals)}"
            )
        return self.by_block.gain_over(reference.by_block)


def mix_draws(by_draw: FloatArray, offsets: IntArray) -> FloatArray:
    """One forecaster's log predictive from that of S draws, as a mixture of whole sequences.

    Parameters
    ----------
    by_draw : array, ``(num_draws, num_steps)``
        Log p_s(x_t | x_<t), 0 at missing steps.
    offsets : int64 array, ``(num_sequences + 1,)``

    Returns
    -------
    array, ``(num_steps,)``
        A step that no draw with any weight left holds possible is -inf; the steps of its sequence
        after it are averaged.
    """
    average = logsumexp(by_draw, axis=0) - np.log(len(by_draw))
    mixed = np.empty(by_draw.shape[1])
    for first, last in itertools.pairwise(offsets):
        joint = logsumexp(np.cumsum(by_draw[:, first:last], axis=1), axis=0)
        before = np.concatenate([[np.log(len(by_draw))], joint[:-1]])
        gone = np.isneginf(before)
        with np.errstate(invalid="ignore"):
            mixed[first:last] = np.where(gone, average[first:last], joint - before)
    return mixed
