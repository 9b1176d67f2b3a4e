r"""One-step-ahead scores of sequences, averaged over posterior draws.

Every forecaster of sequences is judged by log p(x_t | x_<t) of steps, nats per observation, without
multinomial coefficients. Draws make one forecaster with equal weights at every step:
p(x_t | x_<t) = 1/S sum_s p_s(x_t | x_<t). Adjacent steps are correlated, so the units of a score
are blocks of them: whole sequences where there are many, else equal segments.

* A model that `pgmult.sequences.posteriors.HasStateSpace` goes through a particle filter
  (`pgmult.sequences.scores.particle_filter`);
* of others `pgmult.sequences.posteriors.PredictsSteps` asks exact probabilities (`MultinomialHMM`,
  by its forward filter).

>>> import numpy as np, pgmult
>>> from pgmult.sequences import MarkovChain
>>> train = pgmult.sequences.as_sequences(["GATTACAGATTACAGATTACA" * 3])
>>> test = pgmult.sequences.as_sequences(["GATTACAGATTACA"])
>>> few = dict(draws=20, tune=20, chains=1, random_seed=0, progressbar=False)
>>> scores = [
...     one_step_ahead(pgmult.sample(MarkovChain(order), train, **few), test, after=train)
...     for order in (2, 1)
... ]
>>> scores[0].gain_over(scores[1]).mean > 0.0
True
"""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array, vstack

from pgmult.core.arguments import as_seed, under_name
from pgmult.core.scores import Score
from pgmult.core.typing import FloatArray, IntArray
from pgmult.formulas.design import joined_designs
from pgmult.sampling.posterior import Posterior
from pgmult.sequences.data.sequences import Sequences, with_rows
from pgmult.sequences.posteriors import PredictsSteps, draws_of, sequences_of, state_space_draws
from pgmult.sequences.scores.particle_filter import particle_filter

_PARTICLES = 200  # at each step, under each draw
_BLOCKS = 25  # of all steps, for standard errors


def blocks_of(sequence: IntArray) -> IntArray:
    """The block that each step is in: about `_BLOCKS` segments, none across two sequences."""
    _, first, lengths = np.unique(sequence, return_index=True, return_counts=True)
    pieces = np.rint(_BLOCKS * lengths / len(sequence)).astype(np.int64).clip(1, lengths)
    place = np.arange(len(sequence)) - np.repeat(first, lengths)
    within = place * np.repeat(pieces, lengths) // np.repeat(lengths, lengths)
    return np.asarray(np.repeat(np.cumsum(pieces) - pieces, lengths) + within)


def joined(train: Sequences, test: Sequences) -> tuple[Sequences, IntArray]:
    """Each training sequence with its continuation, and the positions of the test steps in it.

    Raises
    ------
    ValueError
        If there are not as many test sequences as training ones, or symbols or inputs differ.
    """
    check_continued(train, test)
    both = np.concatenate([train.sequence_of_step, test.sequence_of_step])
    order = np.argsort(both, kind="stable")
    rows = csr_array(vstack([train.to_csr(), test.to_csr()], format="csr")[order])
    inputs = None
    if train.inputs is not None and test.inputs is not None:
        inputs = np.concatenate([train.inputs, test.inputs])[order]
    known = train.known
    if known.size:
        known = np.append(known, test.known if test.known.size else np.full(test.num_steps, -1))
        known = known[order]
    continued = replace(
        with_rows(train, rows), offsets=train.offsets + test.offsets, inputs=inputs, known=known
    )
    if train.design is not None and test.design is not None:
        continued = continued.with_design(joined_designs(train.design, test.design, order))
    return continued, np.flatnonzero(order >= train.num_steps)


def check_continued(train: Sequences, test: Sequences) -> None:
    """Refuse sequences that are not as many, or have other inputs."""
    if train.num_sequences != test.num_sequences or train.num_inputs != test.num_inputs:
        raise ValueError(
            "test must continue the training sequences one by one, with as many inputs: there are"
            f" {train.num_sequences} training and {test.num_sequences} test sequences, of"
            f" {train.num_inputs} and {test.num_inputs} inputs"
        )


# --------------------------------------------------------------------------- posteriors


def by_draw(
    run: Posterior, test: Sequences, after: Sequences | None, max_draws: int,
    num_particles: int, random_seed: int,
) -> FloatArray:  # fmt: skip
    """Log p(x_t | x_<t, draw) of all steps, ``(num_chains, num_draws, num_steps)``.

    Test sequence s goes on where sequence s of `after`, which the posterior is of, ended; without
    `after`, all are new.
    """
    model = run.model
    if isinstance(model, PredictsSteps):
        predicted, tested = (test, slice(None)) if after is None else joined(after, test)
        draws = draws_of(run, model.predictive_variables, max_draws)
        log_p = np.array([model.log_predictive(draw, predicted)[tested] for draw in draws])
    else:
        if after is not None:
            check_continued(after, test)
        points = state_space_draws(run, max_draws, test, continued=after is not None)
        rng = np.random.default_rng(random_seed)
        log_p = particle_filter(rng, points, test, num_particles).log_predictive
    return log_p.reshape(run.num_chains, -1, test.num_steps)


def scored(log_p: FloatArray, test: Sequences, left_out: bool) -> Score:
    """The score of `by_draw`, by blocks of steps; each step without itself, or as it is."""
    seen = test.totals > 0
    block = blocks_of(test.sequence_of_step[seen])
    return Score.of_draws(log_p[:, :, seen], test.totals[seen], unit=block, left_out=left_out)


def one_step_ahead(
    run: Posterior, test: object, *, after: object = None, max_draws: int = 100,
    random_seed: int = 0,
) -> Score:  # fmt: skip
    """Score a posterior of any sequence model on test sequences.

    Parameters
    ----------
    run : Posterior
        Must hold what forecasts depend on, and ``last_states`` too where sequences continue and
        the model needs a particle filter.
    test : Sequences, or what the model takes
        Of the posterior's symbols.
    after : Sequences, or what the model takes, optional
        The sequences that the posterior was sampled from, where test sequence s goes on where
        training sequence s ended; without, all test sequences are new ones.
    max_draws : int
        As many of each chain; one at least.
    random_seed : int
        Of the particle filter, where one is used.

    Returns
    -------
    Score
        ``mean`` is in nats an observation; ``gain_over`` compares two.

    Raises
    ------
    ValueError
        If the posterior does not know its model, a variable was not kept, or the sequences do not
        go together.
    TypeError
        If the model is neither kind of forecaster.
    """
    with under_name("test", of="data"):
        test = sequences_of(run, test)
    before = None
    if after is not None:
        with under_name("after", of="data"):
            before = sequences_of(run, after)
            if not run.is_of(after):
                raise ValueError("data must be the sequences that the run was sampled from")
    log_p = by_draw(run, test, before, max_draws, _PARTICLES, as_seed(random_seed))
    return scored(log_p, test, left_out=False)
