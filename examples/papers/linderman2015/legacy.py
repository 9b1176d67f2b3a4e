"""The score of sequences that the paper published, kept to compare with its figures.

The log of the mean over draws of the *joint* probability of all test steps, which continue the
training sequences, minus a baseline, by observation. Its forecasts are not filtered:

* hidden Markov models: p(test | train) exactly, step by step;
* state-space models: states simulated forward from the last one, `num_simulations` paths (the
  paper: 1000 for DNA, 1 for texts), p(test | states) averaged over paths;
* the Gaussian LDS: the share of simulated vectors (the paper: 10) in which a symbol is largest,
  clipped at 1e-8 and normalised; steps multiplied.

The baseline is the training mean, clipped at 1e-8 and normalised, so that every symbol that was not
seen in training costs it 18.4 nats: the score mostly says how unseen symbols were smoothed. Use
`pgmult.sequences.one_step_ahead`.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from examples.papers.linderman2015.gaussian_lds import (
    GaussianLDS,
    GaussianLDSState,
    filtered,
    law_of_states,
)
from examples.papers.linderman2015.vectors import as_vector_sequences
from pgmult.sequences.posteriors import HasStateSpace, draws_of, state_space_draws
from pgmult.sequences.scores.one_step import joined

FLOOR = 1e-8


class LegacyScore(NamedTuple):
    """See the module's docstring.

    Attributes
    ----------
    method : str
    score : float
        (log p^(test) - baseline) / observations, nats an observation.
    log_probability : float
        log p^(test), of all test steps jointly.
    baseline : float
        Log probability of the test steps under the training mean, clipped at 1e-8.
    """

    method: str
    score: float
    log_probability: float
    baseline: float


def legacy_score(posterior, train, test, *, num_simulations=1, max_draws=1000, random_seed=0):
    """The paper's score; it kept the later half of its draws, so tune as long as you draw."""
    whole, tested = joined(train, test)
    rng, model = np.random.default_rng(random_seed), posterior.model
    if isinstance(model, GaussianLDS):
        draws = draws_of(posterior, model.predictive_variables, max_draws)
        shares = [shares_of_the_largest(rng, model, draw, train, test, num_simulations)
                  for draw in draws]  # fmt: skip
        joint = [log_probability(log_probs, test) for log_probs in shares]
        how = "shares of the largest of simulated vectors"
    elif isinstance(model, HasStateSpace):
        joint = [
            logsumexp([log_probability(simulated_log_probs(rng, point, test), test)
                       for _ in range(num_simulations)]) - np.log(num_simulations)
            for point in state_space_draws(posterior, max_draws, continued=True)
        ]  # fmt: skip
        how = f"{num_simulations} forward simulations a draw"
    else:
        draws = draws_of(posterior, model.predictive_variables, max_draws)
        joint = [model.log_predictive(draw, whole)[tested].sum() for draw in draws]
        how = "exact"
    total = float(logsumexp(joint) - np.log(len(joint)))
    baseline = clipped_log_probability(train, test)
    name = f"{type(model).__name__}, legacy joint score, {how}"
    return LegacyScore(name, (total - baseline) / float(test.counts.sum()), total, baseline)


def frequencies(data):
    return np.bincount(data.symbols, data.counts, minlength=data.num_symbols)


def clipped_log_probability(train, test):
    """The paper's baseline: the training mean, clipped at 1e-8."""
    probs = np.maximum(frequencies(train) / frequencies(train).sum(), FLOOR)
    return float(test.counts @ np.log(probs / probs.sum())[test.symbols])


def log_probability(log_probs, test):
    """Of all observations, given log probabilities ``(num_steps, num_symbols)``."""
    step = np.repeat(np.arange(test.num_steps), np.diff(test.indptr))
    return float(test.counts @ log_probs[step, test.symbols])


def simulated_log_probs(rng, draw, test):
    """Log probabilities of symbols along one simulated path of states."""
    root, first_root = np.linalg.cholesky(draw.noise_cov), np.linalg.cholesky(draw.initial_cov)
    drive = draw.drive(test.inputs, test.num_steps)
    starts = np.broadcast_to(draw.initial_mean, (test.num_sequences, draw.state_dim))
    noise = rng.standard_normal((test.num_steps, draw.state_dim))
    x = np.empty_like(noise)
    for s in range(test.num_sequences):
        for t in range(test.offsets[s], test.offsets[s + 1]):
            if t == test.offsets[s]:
                x[t] = starts[s] + first_root @ noise[t]
            else:
                x[t] = draw.transition @ x[t - 1] + root @ noise[t]
            x[t] += drive[t]
    return draw.link.log_probs(draw.psi(x, test.inputs))


def shares_of_the_largest(rng, model, draw, train, test, num_simulations):
    """The paper's forecasts of raw vectors, ``(num_test_steps, n)``, logs.

    Vectors are simulated forward from the last state of each training sequence. The probability of
    a symbol is the share of simulations in which its coordinate is the largest, clipped at 1e-8
    and normalised.
    """
    state = GaussianLDSState(*(draw[name] for name in model.predictive_variables))
    means, covs, _ = filtered(law_of_states(state, as_vector_sequences(train)))
    root = np.linalg.cholesky(state.noise_cov)
    shares = np.zeros((test.num_steps, test.num_symbols))
    for s, last in enumerate(train.offsets[1:] - 1):
        last_root = np.linalg.cholesky(covs[last])
        for _ in range(num_simulations):
            x = means[last] + last_root @ rng.standard_normal(model.state_dim)
            for t in range(test.offsets[s], test.offsets[s + 1]):
                x = state.transition @ x + root @ rng.standard_normal(model.state_dim)
                noise = np.sqrt(state.emission_var) * rng.standard_normal(test.num_symbols)
                shares[t, np.argmax(state.offset + state.loadings @ x + noise)] += 1.0
    probs = np.maximum(shares / num_simulations, FLOOR)
    return np.log(probs / probs.sum(axis=1, keepdims=True))
