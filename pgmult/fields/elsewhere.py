"""Sticks at inputs that were not in the fit, given those that were.

Psi at the other inputs is integrated out given Pólya-gamma variables (Linderman, Johnson and Adams
2015, appendix B). On a table of inputs it is conditioned on instead: a draw there costs products of
small matrices (Matheron's rule).
"""

import numpy as np

from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import ArrayLike, FloatArray, Generator
from pgmult.core.validate import new_key
from pgmult.fields.data import CountField
from pgmult.fields.models.multinomial_gp import MultinomialGP, MultinomialGPState
from pgmult.fields.priors.field import FieldDraw
from pgmult.fields.priors.sticks import TableDraw, TableSticks


def predict_at(
    rng: Generator,
    model: MultinomialGP,
    state: MultinomialGPState,
    data: CountField,
    new_inputs: ArrayLike,
) -> FieldDraw:
    """Draw the sticks at new inputs, about as fast as a sweep.

    Parameters
    ----------
    rng : numpy.random.Generator
    model : MultinomialGP
    state : MultinomialGPState
        A draw of the chain.
    data : CountField
        The data of the chain.
    new_inputs : array, ``(num_new, num_inputs)``

    Returns
    -------
    FieldDraw
        A joint draw, and means and variances; given these, sticks are independent.
    """
    wider = data.with_new_inputs(new_inputs)
    new, mean_at_sites = wider.new_inputs, model.trend(wider).at(state.beta)
    mean, drawn = mean_at_sites[wider.new_sites], []
    if (sticks := model.table_sticks(data)) is not None:
        draws = state.on_tables(sticks)
        values = [  # jointly, given psi in all cells
            group.gaussian(draw.x).draw_elsewhere(rng, new, group.rotated(draw))
            for group, draw in zip(sticks, draws, strict=True)
        ]
        omega = model.augment(rng, state.psi[: data.num_sites], data)
        for group, draw, value in zip(sticks, draws, values, strict=True):
            prior = mean[:, group.columns]
            moments = _moments(group, draw, new, prior, _of(omega, group.columns))
            drawn.append(FieldDraw(prior + value, *moments))
    else:
        data = data.with_new_inputs(None)
        omega = model.augment(rng, state.psi[: data.num_sites], data)
        fields = model.fields(np.log(state.hyperparameters), data)
        mean = np.concatenate([mean_at_sites[: data.num_sites], mean])
        for columns, field in zip(model.columns(data), fields, strict=True):
            # from a stream of its own: the draw after this one is the same for any new inputs
            stream = np.random.default_rng(new_key(rng))
            drawn.append(field.draw(stream, _of(omega, columns), new, mean[:, columns]))
    return FieldDraw(*(np.concatenate(parts, axis=1) for parts in zip(*drawn, strict=True)))


def _of(potential: DiagonalPotential, columns: slice) -> DiagonalPotential:
    return DiagonalPotential(potential.J[:, columns], potential.h[:, columns])


def _moments(
    sticks: TableSticks, draw: TableDraw, at: FloatArray, mean: FloatArray, omega: DiagonalPotential
) -> tuple[FloatArray, FloatArray]:
    """Means and variances at new inputs given psi in all cells, ``(num_new, num_sticks)``.

    In a cell of the table they are those given psi in the other cells and omega there.
    """
    away, var = sticks.gaussian(draw.x).elsewhere(at, sticks.rotated(draw))
    means, variances = mean + away, np.repeat(var[:, None], mean.shape[1], axis=1)
    _, rows, columns = sticks.table.found(at)
    inside = (rows < sticks.table.shape[0]) & (columns < sticks.table.shape[1])
    site = sticks.table.cells.reshape(sticks.table.shape)[rows[inside], columns[inside]]
    J, h = np.zeros((2, len(site), mean.shape[1]))
    has_counts = site < len(omega.J)
    J[has_counts], h[has_counts] = omega.J[site[has_counts]], omega.h[site[has_counts]]
    prior, var = (sticks.table.at_sites(values)[site] for values in sticks.others(draw))
    precision = 1.0 / var + J
    means[inside] = (prior / var + h) / precision
    variances[inside] = 1.0 / precision
    return means, variances
