"""Scalar states seen through a link, filtered and smoothed on a grid."""

import numpy as np

from pgmult import LogisticNormal, StickBreaking
from pgmult.sequences import as_sequences
from pgmult.sequences.priors.state_space import StateSpaceDraw

LINKS = {"stick_breaking": StickBreaking([0, 2, 3, 1]), "softmax": LogisticNormal()}


def make_draw(link="stick_breaking", inputs=0, symbols=4, depth=1, seed=0, **changes):
    """Parameters of a state-space model."""
    rng = np.random.default_rng(seed)
    link = LINKS[link] if isinstance(link, str) else link
    rows = symbols - isinstance(link, StickBreaking)
    draw = StateSpaceDraw(
        transition=0.9 * np.eye(depth),
        noise_cov=0.5 * np.eye(depth),
        initial_mean=np.full(depth, 0.3),
        initial_cov=1.5 * np.eye(depth),
        loadings=1.5 * rng.normal(size=(rows, depth)),
        offset=rng.normal(size=rows),
        link=link,
    )
    if inputs:
        draw = draw._replace(
            input_weights=rng.normal(size=(depth, inputs)),
            emission_weights=rng.normal(size=(rows, inputs)),
        )
    return draw._replace(**changes)


def make_data(total=1, copies=1, inputs=0, steps=9):
    """Two sequences, and copies of them; the third step is missing."""
    rng = np.random.default_rng(1)
    counts = rng.multinomial(total, [0.4, 0.1, 0.3, 0.2], size=steps)
    counts[2] = 0
    u = np.tile(rng.normal(size=(steps, inputs)), (copies, 1)) if inputs else None
    return as_sequences(copies * [counts[:6], counts[6:]], inputs=u)


class GridStates:
    """Exact to the grid's resolution: sums over 1,201 places for integrals over x.

    Attributes
    ----------
    log_predictive : array, ``(num_steps,)``
        log p(counts_t | counts before), without the multinomial coefficient; 0 at missing steps.
    mean, var : arrays, ``(num_steps,)``
        Of each state given all counts.
    product : array, ``(num_steps,)``
        E[x_{t-1} x_t] given all counts; nan at first steps.
    """

    def __init__(self, draw, data, reach=11.0, places=1201):
        x = np.linspace(-reach, reach, places)
        width = x[1] - x[0]
        A, Q = draw.transition[0, 0], draw.noise_cov[0, 0]
        counts = data.to_csr().toarray()
        self.log_predictive, self.mean, self.var, self.product = np.full((4, data.num_steps), 0.0)
        for q in range(data.num_sequences):
            steps = range(data.offsets[q], data.offsets[q + 1])
            likelihood, jumps, filtered = [], [], []
            for t in steps:
                psi, drive = draw.offset + x[:, None] * draw.loadings[:, 0], 0.0
                if data.inputs is not None:
                    psi = psi + draw.emission_weights @ data.inputs[t]
                    drive = (draw.input_weights @ data.inputs[t])[0]
                likelihood.append(np.exp(np.log(draw.link.probs(psi)) @ counts[t]))
                jumps.append(normal(x[:, None] - A * x - drive, Q) * width)
                if t == steps[0]:
                    start = np.broadcast_to(draw.initial_mean, (data.num_sequences, 1))[q, 0]
                    start += drive if draw.continues else 0.0
                    before = normal(x - start, draw.initial_cov[0, 0])
                else:
                    before = jumps[-1] @ filtered[-1]
                here = before * likelihood[-1]
                if counts[t].any():
                    self.log_predictive[t] = np.log(here.sum() * width)
                filtered.append(here / (here.sum() * width))
            future = np.ones(places)
            for i in range(len(filtered) - 1, -1, -1):
                t = steps[i]
                weight = filtered[i] * future
                weight /= weight.sum()
                self.mean[t] = weight @ x
                self.var[t] = weight @ (x - self.mean[t]) ** 2
                self.product[t] = np.nan
                if i > 0:
                    joint = filtered[i - 1] * jumps[i] * (likelihood[i] * future)[:, None]
                    self.product[t] = x @ joint @ x / joint.sum()
                    future = jumps[i].T @ (likelihood[i] * future)
                    future /= future.max()


def normal(difference, var):
    return np.exp(-0.5 * difference**2 / var) / np.sqrt(2.0 * np.pi * var)
