"""A score of the past, kept to compare with its published figures."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from pgmult.core.typing import FloatArray
from pgmult.links import StickBreaking
from pgmult.sequences.data.sequences import Sequences
from pgmult.sequences.priors.state_space import StateSpaceDraw
from pgmult.sequences.scores.one_step import _draws, _state_space_draws, joined

__all__ = ["LegacyScore", "legacy_score"]
_LEGACY_FLOOR = 1e-8


class LegacyScore(NamedTuple):
    """The score of Linderman, Johnson and Adams (2015, Figure 4): see `legacy_score`.

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


def legacy_score(
    posterior: Mapping[str, NDArray[Any]],
    model: Any,
    train: Sequences,
    test: Sequences,
    *,
    num_simulations: int = 1,
    max_draws: int = 1000,
    random_seed: int = 0,
) -> LegacyScore:
    """The score that Linderman, Johnson and Adams (2015) published, for comparison with it only.

    The log of the mean over draws of the *joint* probability of all test steps, which continue
    the training sequences, minus a baseline, by observation. Its forecasts are not filtered:

    * hidden Markov models: p(test | train) exactly, step by step;
    * state-space models: states simulated forward from the last one, `num_simulations` paths
      (the paper: 1000 for DNA, 1 for texts), p(test | states) averaged over paths;
    * `GaussianLDS`: the share of simulated vectors (the paper: 10) in which a symbol is largest,
      clipped at 1e-8 and normalised; steps multiplied.

    The baseline is the training mean, clipped at 1e-8 and normalised, so that every symbol that
    was not seen in training costs it 18.4 nats: the score mostly says how unseen symbols were
    smoothed. Use `one_step_ahead`.

    Parameters
    ----------
    posterior, model, train, test
        As for `one_step_ahead`, with ``continues=True``. The paper kept the later half of its
        draws: so tune as long as you draw.
    num_simulations : int
    max_draws : int
    random_seed : int
        Of the simulations.
    """
    whole, tested = joined(train, test)
    rng = np.random.default_rng(random_seed)
    if hasattr(model, "legacy_log_probs"):
        draws = _draws(posterior, model.predictive_variables, max_draws)
        joint = np.array(
            [
                _log_probability(
                    model.legacy_log_probs(rng, draw, train, test, num_simulations), test
                )
                for draw in draws
            ]
        )
        how = "shares of the largest of simulated vectors"
    elif hasattr(model, "log_predictive"):
        draws = _draws(posterior, model.predictive_variables, max_draws)
        joint = np.array([model.log_predictive(draw, whole)[tested].sum() for draw in draws])
        how = "exact"
    else:
        points = _state_space_draws(posterior, model, train, test, True, max_draws)
        joint = np.array(
            [
                logsumexp(
                    [
                        _log_probability(_simulated_log_probs(rng, point, test), test)
                        for _ in range(num_simulations)
                    ]
                )
                - np.log(num_simulations)
                for point in points
            ]
        )
        how = f"{num_simulations} forward simulations a draw"
    log_probability = float(logsumexp(joint) - np.log(len(joint)))
    mean = np.bincount(train.symbols, train.counts, minlength=train.num_symbols)
    clipped = np.clip(mean / mean.sum(), _LEGACY_FLOOR, None)
    baseline = float(test.counts @ np.log(clipped / clipped.sum())[test.symbols])
    score = (log_probability - baseline) / float(test.counts.sum())
    name = f"{type(model).__name__}, legacy joint score, {how}"
    return LegacyScore(name, score, log_probability, baseline)


def _log_probability(log_probs: FloatArray, test: Sequences) -> float:
    """Of all observations, given log probabilities ``(num_steps, num_symbols)``."""
    step = np.repeat(np.arange(test.num_steps), np.diff(test.indptr))
    return float(test.counts @ log_probs[step, test.symbols])


def _simulated_log_probs(
    rng: np.random.Generator, draw: StateSpaceDraw, test: Sequences
) -> FloatArray:
    """Log probabilities of symbols along one simulated path of states."""
    D = draw.state_dim
    root, first_root = np.linalg.cholesky(draw.noise_cov), np.linalg.cholesky(draw.initial_cov)
    drive = np.zeros((test.num_steps, D))
    psi = np.tile(draw.offset, (test.num_steps, 1))
    if test.inputs is not None and draw.input_weights is not None:
        drive = test.inputs @ draw.input_weights.T
    if test.inputs is not None and draw.emission_weights is not None:
        psi += test.inputs @ draw.emission_weights.T
    starts = np.broadcast_to(draw.initial_mean, (test.num_sequences, D))
    noise = rng.standard_normal((test.num_steps, D))
    x = np.empty((test.num_steps, D))
    for s in range(test.num_sequences):
        for t in range(test.offsets[s], test.offsets[s + 1]):
            if t == test.offsets[s]:
                x[t] = starts[s] + first_root @ noise[t]
            else:
                x[t] = draw.transition @ x[t - 1] + root @ noise[t]
            x[t] += drive[t]
    psi += x @ draw.loadings.T
    if draw.link == "softmax":
        return np.asarray(psi - logsumexp(psi, axis=1, keepdims=True))
    order = test.symbol_order if draw.order is None else draw.order
    return StickBreaking(order).log_probs(psi)
