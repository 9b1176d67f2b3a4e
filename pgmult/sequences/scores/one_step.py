r"""One-step-ahead scores of sequences, paired, and averaged over posterior draws.

Every forecaster of sequences is judged by log p(x_t | x_<t) of test steps it was not trained on,
nats per observation, without multinomial coefficients. S posterior draws make one forecaster in
either of two ways, each a probability distribution of the next step given those before it:

* ``"mixture"``: the draws are the components of one mixture of whole sequences, weighted by how
  well they predicted the sequence's steps so far:

      p(x_1:t) = 1/S sum_s p_s(x_1:t),       log p(x_t | x_<t) its increments.

  That is Bayes' rule over draws; over hundreds of steps a few draws take all the weight.
* ``"average"``: equal weights at every step, p(x_t | x_<t) = 1/S sum_s p_s(x_t | x_<t).

Adjacent steps are correlated, so standard errors are over blocks: whole sequences where there are
many, else equal segments of them. `one_step_ahead` scores the posterior of any sequence model:

* one that `pgmult.sequences.posteriors.PredictsSteps` is asked for exact probabilities
  (`MultinomialHMM`, by its forward filter);
* one that `pgmult.sequences.posteriors.HasStateSpace` goes through a particle filter
  (`pgmult.sequences.scores.particle_filter`).

>>> import numpy as np, pgmult
>>> from pgmult.sequences.scores.ngrams import unigram
>>> train = pgmult.sequences.as_sequences(["GATTACAGATTACAGATTACA" * 3])
>>> test = pgmult.sequences.as_sequences(["GATTACAGATTACA"])
>>> model = pgmult.sequences.MultinomialHMM(num_states=4)
>>> posterior = pgmult.sample(
...     model, train, draws=20, tune=20, chains=1, random_seed=0, progressbar=False
... )
>>> score = one_step_ahead(posterior, test, after=train)
>>> score.gain_over(unigram(train, test)).mean > 0.0
True
"""

import html
import itertools
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.special import logsumexp

from pgmult.core.arguments import as_choice, as_seed, under_name
from pgmult.core.scores import Gain, mean_by_token
from pgmult.core.typing import FloatArray, IntArray
from pgmult.formulas.design import joined_designs
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.posteriors import PredictsSteps, draws_of, sequences_of, state_space_draws
from pgmult.sequences.scores.particle_filter import particle_log_predictive

_BLOCKS = 25  # of all steps, for standard errors


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
    num_draws : int
        Posterior draws that were averaged over; 1 for a single forecaster.
    """

    method: str
    log_predictive: FloatArray
    totals: IntArray
    sequence: IntArray
    num_draws: int = 1

    @classmethod
    def of_steps(
        cls, method: str, log_predictive: FloatArray, test: Sequences, num_draws: int = 1
    ) -> "SequenceScore":
        """The score whose log predictive of *all* steps of `test` is given, ``(num_steps,)``."""
        totals = test.totals
        seen = totals > 0
        sequence = np.repeat(np.arange(test.num_sequences), test.lengths)
        return cls(method, log_predictive[seen], totals[seen], sequence[seen], num_draws)

    @property
    def mean(self) -> float:
        """Nats per observation."""
        return float(self.log_predictive.sum() / self.totals.sum())

    @property
    def standard_error(self) -> float:
        """Of `mean`, over blocks of steps; compare forecasters by `gain_over`."""
        return self._gain(self.log_predictive).error

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
        return self._gain(self.log_predictive - reference.log_predictive)

    def _gain(self, by_step: FloatArray) -> Gain:
        blocks = blocks_of(self.sequence)
        sums = np.asarray(np.bincount(blocks, by_step), np.float64)
        return Gain(*mean_by_token(sums, np.bincount(blocks, self.totals).astype(np.int64)))

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(str(self))}</p>"

    def __str__(self) -> str:
        return (
            f"{self.mean:.4f} ± {self.standard_error:.4f} nats an observation ({self.method},"
            f" {self.num_draws} draw{'s' * (self.num_draws > 1)})"
        )

    __repr__ = __str__


def blocks_of(sequence: IntArray) -> IntArray:
    """Which block each step is in: about `_BLOCKS` segments, none across two sequences."""
    _, first, lengths = np.unique(sequence, return_index=True, return_counts=True)
    pieces = np.maximum(1, np.rint(_BLOCKS * lengths / len(sequence)).astype(np.int64))
    place = np.arange(len(sequence)) - np.repeat(first, lengths)
    within = place * np.repeat(pieces, lengths) // np.repeat(lengths, lengths)
    return np.asarray(np.repeat(np.cumsum(pieces) - pieces, lengths) + within)


def mix_draws(
    by_draw: FloatArray, offsets: IntArray, pooling: Literal["mixture", "average"] = "mixture"
) -> FloatArray:
    """One forecaster's log predictive from that of S draws.

    Parameters
    ----------
    by_draw : array, ``(num_draws, num_steps)``
        Log p_s(x_t | x_<t), 0 at missing steps.
    offsets : int64 array, ``(num_sequences + 1,)``
    pooling : {"mixture", "average"}
        See the module's docstring.

    Returns
    -------
    array, ``(num_steps,)``
        A step that no draw with any weight left holds possible is -inf; the steps of its sequence
        after it are averaged.
    """
    as_choice(pooling, "pooling", ("mixture", "average"))
    average = logsumexp(by_draw, axis=0) - np.log(len(by_draw))
    if pooling == "average":
        return np.asarray(average)
    mixed = np.empty(by_draw.shape[1])
    for first, last in itertools.pairwise(offsets):
        joint = logsumexp(np.cumsum(by_draw[:, first:last], axis=1), axis=0)
        before = np.concatenate([[np.log(len(by_draw))], joint[:-1]])
        gone = np.isneginf(before)
        with np.errstate(invalid="ignore"):
            mixed[first:last] = np.where(gone, average[first:last], joint - before)
    return mixed


def joined(train: Sequences, test: Sequences) -> tuple[Sequences, IntArray]:
    """Each training sequence with its continuation, and the positions of the test steps in it.

    Raises
    ------
    ValueError
        If there are not as many test sequences as training ones, or symbols or inputs differ.
    """
    if train.num_sequences != test.num_sequences:
        raise ValueError(
            "test must continue the training sequences one by one: there are"
            f" {train.num_sequences} training and {test.num_sequences} test sequences"
        )
    _check_alike(train, test)
    s = np.repeat(np.arange(train.num_sequences), train.lengths)
    r = np.repeat(np.arange(test.num_sequences), test.lengths)
    order = np.argsort(np.concatenate([s, r]), kind="stable")
    per_step = np.concatenate([np.diff(train.indptr), np.diff(test.indptr)])
    entries = np.argsort(
        np.concatenate([np.repeat(s, np.diff(train.indptr)), np.repeat(r, np.diff(test.indptr))]),
        kind="stable",
    )
    whole = replace(
        train,
        offsets=train.offsets + test.offsets,
        indptr=np.concatenate([[0], np.cumsum(per_step[order])]),
        symbols=np.concatenate([train.symbols, test.symbols])[entries],
        counts=np.concatenate([train.counts, test.counts])[entries],
        inputs=None
        if train.inputs is None or test.inputs is None
        else np.concatenate([train.inputs, test.inputs])[order],
    )
    if train.design is not None and test.design is not None:
        whole = whole.with_design(joined_designs(train.design, test.design, order))
    return whole, np.flatnonzero(order >= train.num_steps)


def _check_alike(train: Sequences, test: Sequences) -> None:
    if (train.num_symbols, train.num_inputs) != (test.num_symbols, test.num_inputs):
        raise ValueError(
            "test must have as many symbols and inputs as the training sequences: these have"
            f" {train.num_symbols} symbols and {train.num_inputs} inputs, the test sequences"
            f" {test.num_symbols} and {test.num_inputs}"
        )
    labels = [None if x.alphabet is None else x.alphabet.tolist() for x in (train, test)]
    if labels[0] != labels[1]:
        raise ValueError(
            "test and training sequences must number their symbols alike"
            " (give both the same alphabet=)"
        )


# --------------------------------------------------------------------------- posteriors


def one_step_ahead(
    posterior: Posterior,
    test: Any,
    *,
    after: Any = None,
    pooling: Literal["mixture", "average"] = "mixture",
    max_draws: int = 100,
    num_particles: int = 200,
    random_seed: int = 0,
) -> SequenceScore:
    """Score a posterior of any sequence model on test sequences.

    Parameters
    ----------
    posterior : Posterior
        Must hold what forecasts depend on, and ``last_states`` too where sequences continue and
        the model needs a particle filter.
    test : Sequences, or what the model takes
        Of the posterior's symbols.
    after : Sequences, or what the model takes, optional
        The sequences that the posterior was sampled from, where test sequence s goes on where
        training sequence s ended; without, all test sequences are new ones.
    pooling : {"mixture", "average"}
        How draws make one forecaster: see the module's docstring.
    max_draws : int
        Of all chains together; evenly spread.
    num_particles, random_seed
        Of the particle filter, where one is used.

    Returns
    -------
    SequenceScore

    Raises
    ------
    ValueError
        If the posterior does not know its model, a variable was not kept, or the sequences do not
        go together.
    TypeError
        If the model is neither kind of forecaster.
    """
    with under_name("test", of="data"):
        test = sequences_of(posterior, test)
    whole, tested = test, np.arange(test.num_steps)
    if after is not None:
        with under_name("after", of="data"):
            before = sequences_of(posterior, after)
            is_of = posterior.is_of(after)
        if not is_of:
            raise ValueError(
                "after must be the sequences that the posterior was sampled from, got others"
            )
        whole, tested = joined(before, test)
    model = posterior.model
    if isinstance(model, PredictsSteps):
        how, draws = "exact", draws_of(posterior, model.predictive_variables, max_draws)
        by_draw = np.array([model.log_predictive(draw, whole)[tested] for draw in draws])
    else:
        how = f"{num_particles} particles"
        points = state_space_draws(posterior, max_draws, test, continued=after is not None)
        rng = np.random.default_rng(as_seed(random_seed))
        by_draw = particle_log_predictive(rng, points, test, num_particles)
    name = f"{type(model).__name__}, one step ahead, {how}, {pooling} of draws"
    log_predictive = mix_draws(by_draw, test.offsets, pooling)
    return SequenceScore.of_steps(name, log_predictive, test, len(by_draw))
