"""Many scalar Gaussian chains: normalisers and draws given potentials, slices given counts.

Chain (r, i) runs over times t = 0, ..., T - 1::

    x_t = centre_i + d_t, d_0 ~ N(0, initial_var_r), d_t ~ N(persistence d_{t-1}, innovation_var_r)

times exp(-J x_t**2 / 2 + h x_t) at every time, which may be 1 (J = h = 0). The filter goes forwards
over means and variances and divides by 1 + variance J alone, so nothing cancels and nothing is
special about a time without observation; draws come back, each from T standard normal numbers that
a chain and its variances tell again. `LANES` neighbouring chains of a row go side by side, so the
recursions vectorise. O(T) a chain.
"""

import math

import numpy as np

from pgmult.compiled.ellipse import open_bracket, shrink_bracket
from pgmult.compiled.jit import jit
from pgmult.compiled.streams import exponential, gamma, normal, open_stream
from pgmult.compiled.vectors import exp_minus, log1p

LANES = 64
_FACTORS = 4  # of the normaliser for one logarithm; each would have to pass 1e75 to overflow
DOF = 8.0  # of the Student-t that chains are sliced around
_FURTHEST = 100.0  # of a predicted logit, where its counts are weighed


@jit
def _filter_time(
    J, h, centre, pull, mean_before, var_before, step_var, mean, var, exponent, product, count
):  # fmt: skip
    """Means and variances of deviations given one time's potential, too, and twice its evidence."""
    for i in range(count):
        before, spread = pull * mean_before[i], pull * pull * var_before[i] + step_var
        precision, c = J[i], centre[i]
        linear = h[i] - precision * c
        growth = 1.0 + spread * precision
        shrink = 1.0 / growth
        exponent[i] += c * (linear + h[i]) + shrink * (
            linear * (2.0 * before + spread * linear) - precision * before * before
        )
        product[i] *= growth
        mean[i], var[i] = shrink * (before + spread * linear), shrink * spread


@jit
def _filter(r, here, count, J, h, centre, persistence, initial_var, step_var, mean, var):
    """Log normaliser of neighbouring chains; means and variances given all up to each time."""
    num_times = J.shape[1]
    centre = centre[here]
    exponent, product = np.zeros(LANES), np.ones(LANES)
    for t in range(num_times):
        earlier, pull, spread = t - 1, persistence, step_var
        if t == 0:
            earlier, pull, spread = 0, 0.0, initial_var
        _filter_time(
            J[r, t, here], h[r, t, here], centre, pull, mean[earlier], var[earlier], spread,
            mean[t], var[t], exponent, product, count,
        )  # fmt: skip
        if t % _FACTORS == _FACTORS - 1 or t == num_times - 1:
            for i in range(count):
                exponent[i] -= math.log(product[i])
                product[i] = 1.0
    return 0.5 * exponent[:count].sum()


@jit
def _look_back(persistence, step_var, mean, var, gain, count):
    """Of d_t given d_{t+1}: the mean where that is 0, the standard deviation, and the slope.

    In the place of its mean and variance given all up to t.
    """
    for i in range(count):
        share = 1.0 / (1.0 + persistence * persistence * var[i] / step_var)
        gain[i] = persistence * var[i] / step_var * share
        mean[i] *= share
        var[i] = math.sqrt(var[i] * share)


@jit
def _look_back_all(persistence, step_var, mean, var, gain, count):
    """`_look_back` of all times; at the last there is nothing to come back from."""
    last = mean.shape[0] - 1
    for t in range(last):
        _look_back(persistence, step_var, mean[t], var[t], gain[t], count)
    _look_back(0.0, 1.0, mean[last], var[last], gain[last], count)


@jit
def log_normalizers(
    worker, start, stop, J, h, centre, persistence, initial_var, innovation_var, out
):
    """out[r] = log of the integral of the prior times the potential, over all chains of row r.

    `J` and `h` are (num_rows, num_times, num_chains).
    """
    _, num_times, num_chains = J.shape
    mean, var = np.zeros((num_times, LANES)), np.zeros((num_times, LANES))
    for r in range(start, stop):
        out[r] = 0.0
        for first in range(0, num_chains, LANES):
            count = min(LANES, num_chains - first)
            here = slice(first, first + count)
            out[r] += _filter(
                r, here, count, J, h, centre, persistence, initial_var[r], innovation_var[r], mean,
                var,
            )  # fmt: skip


@jit
def _place(middle, sd, gain, noise, later, out, count):
    """Deviations of one time, from those of the time after."""
    for i in range(count):
        out[i] = middle[i] + sd[i] * noise[i] + gain[i] * later[i]


@jit
def place_chains(
    worker, start, stop, J, h, centre, persistence, initial_var, innovation_var, noise, out
):
    """The draw of chains that standard normal `noise` makes, (num_rows, num_times, num_chains)."""
    _, num_times, num_chains = J.shape
    room = (num_times, LANES)
    mean, var, gain, placed = np.zeros(room), np.zeros(room), np.empty(room), np.zeros(room)
    for r in range(start, stop):
        for first in range(0, num_chains, LANES):
            count = min(LANES, num_chains - first)
            here = slice(first, first + count)
            _filter(
                r, here, count, J, h, centre, persistence, initial_var[r], innovation_var[r], mean,
                var,
            )  # fmt: skip
            _look_back_all(persistence, innovation_var[r], mean, var, gain, count)
            for t in range(num_times - 1, -1, -1):
                later = placed[min(t + 1, num_times - 1)]
                _place(mean[t], var[t], gain[t], noise[r, t, here], later, placed[t], count)
                for i in range(count):
                    out[r, t, first + i] = centre[first + i] + placed[t, i]


@jit
def noise_of_chains(
    worker, start, stop, J, h, centre, persistence, initial_var, innovation_var, x, noise
):
    """The standard normal numbers from which `place_chains` makes x."""
    _, num_times, num_chains = J.shape
    room = (num_times, LANES)
    mean, var, gain = np.zeros(room), np.zeros(room), np.empty(room)
    for r in range(start, stop):
        for first in range(0, num_chains, LANES):
            count = min(LANES, num_chains - first)
            here = slice(first, first + count)
            _filter(
                r, here, count, J, h, centre, persistence, initial_var[r], innovation_var[r], mean,
                var,
            )  # fmt: skip
            _look_back_all(persistence, innovation_var[r], mean, var, gain, count)
            for t in range(num_times):
                later = min(t + 1, num_times - 1)  # of no weight at the last time
                for i in range(count):
                    c = centre[first + i]
                    step = x[r, t, first + i] - c - mean[t, i]
                    step -= gain[t, i] * (x[r, later, first + i] - c)
                    noise[r, t, first + i] = step / var[t, i]


@jit(reassociate=True)
def _log_binomials(taken, reaching, centre, placed, count):
    """Log likelihood of `taken` out of `reaching` at logits centre + placed, up to a constant."""
    total = 0.0
    for i in range(count):
        psi = centre[i] + placed[i]
        softplus = max(psi, 0.0) + log1p(exp_minus(abs(psi)))
        total += taken[i] * psi - reaching[i] * softplus
    return total


@jit
def log_densities(
    worker, start, stop, active, J, h, centre, persistence, initial_var, innovation_var, noise,
    taken, reaching, out,
):  # fmt: skip
    """out[r] = log normaliser of row r, and the log likelihood of counts where `noise` places it.

    Logits x have binomial counts, `taken` of `reaching`. Rows that are not `active` keep their
    value.
    """
    _, num_times, num_chains = J.shape
    room = (num_times, LANES)
    mean, var, gain, placed = np.zeros(room), np.zeros(room), np.empty(room), np.zeros(room)
    for r in range(start, stop):
        if not active[r]:
            continue
        out[r] = 0.0
        for first in range(0, num_chains, LANES):
            count = min(LANES, num_chains - first)
            here = slice(first, first + count)
            out[r] += _filter(
                r, here, count, J, h, centre, persistence, initial_var[r], innovation_var[r], mean,
                var,
            )  # fmt: skip
            _look_back_all(persistence, innovation_var[r], mean, var, gain, count)
            for t in range(num_times - 1, -1, -1):
                later = placed[min(t + 1, num_times - 1)]
                _place(mean[t], var[t], gain[t], noise[r, t, here], later, placed[t], count)
                out[r] += _log_binomials(
                    taken[r, t, here], reaching[r, t, here], centre[here], placed[t], count
                )


@jit
def normal_rows(worker, start, stop, key, out):
    """Standard normal numbers, a stream for each row."""
    for r in range(start, stop):
        state = open_stream(key, r)
        flat = out[r].reshape(-1)
        for i in range(flat.size):
            flat[i], state = normal(state)


@jit
def _weigh(predicted, precision, taken, reaching, J, ratio, count):
    """What binomial counts add to predictions of their logits, of this mean and precision.

    A prediction is matched by the logit of a Beta(a, b), a = (1 + o) precision and b = a / o for
    odds o, to which the counts are added: log(a / b), 1 / a + 1 / b are mean and variance before
    and after. `J` is by how much the precision grows, the logarithm of `ratio` that of the mean.
    """
    for i in range(count):
        odds = exp_minus(-min(max(predicted[i], -_FURTHEST), _FURTHEST))
        a, y, z = (1.0 + odds) * precision[i], taken[i], reaching[i] - taken[i]
        J[i] = (a * (z * odds * odds + y) + y * z * (1.0 + odds) * odds) / (
            (1.0 + odds) * (a * (1.0 + odds) + (y + z) * odds)
        )
        ratio[i] = (a + y) / (a + z * odds)


@jit
def _predict(centre, pull, mean, var, step_var, predicted, precision, count):
    """Means and precisions of logits, from the deviations of the time before."""
    for i in range(count):
        predicted[i] = centre[i] + pull * mean[i]
        precision[i] = 1.0 / (pull * pull * var[i] + step_var)


@jit
def _update(predicted, precision, centre, J, growth, mean, var, h, count):
    """Deviations given counts as well, and the linear part h of the potential with J."""
    for i in range(count):
        mean[i] = predicted[i] - centre[i] + growth[i]
        var[i] = 1.0 / (precision[i] + J[i])
        h[i] = J[i] * predicted[i] + growth[i] * (precision[i] + J[i])


@jit
def _base(
    taken, reaching, centre, persistence, initial_var, step_var, width, J, h, mean, var
):  # fmt: skip
    """A Gaussian near the law of chains given counts: its potential, and its filter.

    One forward pass of a dynamic generalised linear model (West, Harrison and Migon 1985). It
    depends on counts and variances alone, not on where the chains are.
    """
    predicted, precision, ratio = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for t in range(taken.shape[0]):
        earlier, pull, spread = t - 1, persistence, step_var
        if t == 0:
            earlier, pull, spread = 0, 0.0, initial_var
        _predict(centre, pull, mean[earlier], var[earlier], spread, predicted, precision, width)
        _weigh(predicted, precision, taken[t], reaching[t], J[t], ratio, width)
        for i in range(width):
            ratio[i] = math.log(ratio[i])
        _update(predicted, precision, centre, J[t], ratio, mean[t], var[t], h[t], width)


@jit
def _rotate(middle, along, across, cos, sin, out, count):
    """Points of ellipses."""
    for i in range(count):
        out[i] = middle[i] + along[i] * cos[i] + across[i] * sin[i]


@jit
def _add_corrections(psi, slope, curvature, trials, value, count):
    """Add log likelihoods of one time less what the base has of them."""
    for i in range(count):
        softplus = max(psi[i], 0.0) + log1p(exp_minus(abs(psi[i])))
        value[i] += (slope[i] + 0.5 * curvature[i] * psi[i]) * psi[i] - trials[i] * softplus


@jit
def _come_back(mean, sd, gain, noise, later, later_step, middle, step, count):
    """Means of one time and steps away from them, from those of the time after."""
    for i in range(count):
        middle[i] = mean[i] + gain[i] * later[i]
        step[i] = sd[i] * noise[i] + gain[i] * later_step[i]


@jit
def _add_inner(a, b, a_before, b_before, pull, weight, J, out, count):
    """Add one time's part of a' precision b."""
    for i in range(count):
        out[i] += J[i] * a[i] * b[i]
        out[i] += weight * (a[i] - pull * a_before[i]) * (b[i] - pull * b_before[i])


@jit
def slice_chains(
    worker, start, stop, key, taken, reaching, centre, persistence, initial_var, innovation_var, x
):
    """Move each chain of `x`, in place: an elliptical slice around a Gaussian.

    Leaves the prior times the likelihood of `taken` out of `reaching`, of logit x, as it is.
    See `pgmult.sampling.moves.slice_around`; the base is a Student-t of `DOF` degrees of freedom.
    Chains that have been placed make room for those that have not.
    """
    _, num_times, num_chains = x.shape
    room = (num_times, LANES)
    mean, var, J, h = np.zeros(room), np.zeros(room), np.empty(room), np.empty(room)
    along, across, middle = np.empty(room), np.zeros(room), np.zeros(room)
    successes, trials = np.empty(room), np.empty(room)
    origin, point, value = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    gain, noise = np.empty(room), np.empty(LANES)
    angle, left, right = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    cos, sin, level = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    here, both, there = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    place = np.empty(LANES, dtype=np.int64)
    half = 0.5 * (DOF + num_times)
    for r in range(start, stop):
        state = open_stream(key, r)
        step_var = innovation_var[r]
        for first in range(0, num_chains, LANES):
            width = min(LANES, num_chains - first)
            for i in range(width):
                origin[i] = centre[first + i]
                place[i] = first + i
                here[i] = both[i] = there[i] = 0.0
            for t in range(num_times):
                for i in range(width):
                    successes[t, i] = taken[r, t, first + i]
                    trials[t, i] = reaching[r, t, first + i]
            _base(
                successes, trials, origin, persistence, initial_var[r], step_var, width, J, h,
                mean, var,
            )  # fmt: skip
            for t in range(num_times):
                for i in range(width):
                    h[t, i] = successes[t, i] - h[t, i]
            _look_back_all(persistence, step_var, mean, var, gain, width)
            for t in range(num_times - 1, -1, -1):
                for i in range(width):
                    noise[i], state = normal(state)
                later = min(t + 1, num_times - 1)  # of no weight at the last time
                _come_back(
                    mean[t], var[t], gain[t], noise, middle[later], across[later], middle[t],
                    across[t], width,
                )  # fmt: skip
                for i in range(width):
                    there[i] += noise[i] * noise[i]
            for t in range(num_times):
                for i in range(width):
                    middle[t, i] += origin[i]
                    along[t, i] = x[r, t, first + i] - middle[t, i]
            for t in range(num_times):
                earlier, weight, pull = t - 1, 1.0 / step_var, persistence
                if t == 0:
                    earlier, weight, pull = 0, 1.0 / initial_var[r], 0.0
                _add_inner(
                    along[t], along[t], along[earlier], along[earlier], pull, weight, J[t], here,
                    width,
                )  # fmt: skip
                _add_inner(
                    along[t], across[t], along[earlier], across[earlier], pull, weight, J[t], both,
                    width,
                )  # fmt: skip
            for i in range(width):
                g, state = gamma(half, state)
                stretch = 0.5 * (DOF + here[i]) / g
                root = math.sqrt(stretch)
                both[i] *= root
                there[i] *= stretch
                for t in range(num_times):
                    across[t, i] *= root
                cos[i], sin[i] = 1.0, 0.0
            waiting = width
            opening = True
            while waiting > 0:
                for i in range(waiting):
                    value[i] = 0.0
                for t in range(num_times):
                    _rotate(middle[t], along[t], across[t], cos, sin, point, waiting)
                    _add_corrections(point, h[t], J[t], trials[t], value, waiting)
                for i in range(waiting):
                    square = (
                        here[i] * cos[i] * cos[i] + 2.0 * both[i] * cos[i] * sin[i]
                        + there[i] * sin[i] * sin[i]
                    )  # fmt: skip
                    value[i] += half * math.log1p(square / DOF) - 0.5 * square
                i = 0
                while i < waiting:
                    if opening:
                        e, state = exponential(state)
                        level[i] = value[i] - e
                        angle[i], left[i], right[i], state = open_bracket(state)
                    elif value[i] >= level[i] or angle[i] == 0.0:
                        for t in range(num_times):
                            psi = middle[t, i] + along[t, i] * cos[i] + across[t, i] * sin[i]
                            x[r, t, place[i]] = psi
                        waiting -= 1
                        for block in (middle, along, across, trials, J, h):
                            for t in range(num_times):
                                block[t, i] = block[t, waiting]
                        for row in (here, both, there, level, angle, left, right, value, cos, sin):
                            row[i] = row[waiting]
                        place[i] = place[waiting]
                        continue
                    else:
                        angle[i], left[i], right[i], state = shrink_bracket(
                            angle[i], left[i], right[i], state
                        )
                    i += 1
                opening = False
                for i in range(waiting):
                    cos[i], sin[i] = math.cos(angle[i]), math.sin(angle[i])
