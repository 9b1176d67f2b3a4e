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
    new, mean = wider.new_inputs, model.mean_at_sites(state.beta, wider)[wider.new_sites]
    drawn = []
    if (sticks := model.table_sticks(data)) is not None:
        pairs = [*zip(sticks, state.on_tables(sticks), strict=True)]
        values = []
        for group, draw in pairs:  # jointly, given psi in all cells
            gaussian = group.gaussian(draw.x)
            rotated = gaussian.rotate(draw.psi - group.mean(draw.beta))
            values.append(mean[:, group.columns] + gaussian.draw_elsewhere(rng, new, rotated))
        omega = model.augment(rng, state.psi[: data.num_sites], data)
        for (group, draw), value in zip(pairs, values, strict=True):
            prior, likelihood = mean[:, group.columns], _of(omega, group.columns)
            drawn.append(FieldDraw(value, *_moments(group, draw, new, prior, likelihood)))
    else:
        data = data.with_new_inputs(None)
        omega = model.augment(rng, state.psi[: data.num_sites], data)
        fields = model.fields(np.log(state.hyperparameters), state.beta, data)
        for columns, field in zip(model.columns(data), fields, strict=True):
            # from a stream of its own: the draw after this one is the same for any new inputs
            stream = np.random.default_rng(new_key(rng))
            posterior = field.condition(_of(omega, columns))
            drawn.append(posterior.draw(stream, new, mean[:, columns]))
    return FieldDraw(*(np.concatenate(parts, axis=1) for parts in zip(*drawn, strict=True)))


def _of(potential: DiagonalPotential, columns: slice) -> DiagonalPotential:
    return DiagonalPotential(potential.J[:, columns], potential.h[:, columns])


def _moments(
    sticks: TableSticks, draw: TableDraw, at: FloatArray, mean: FloatArray, omega: DiagonalPotential
) -> tuple[FloatArray, FloatArray]:
    """Means and variances at new inputs given psi in all cells, ``(num_new, num_sticks)``.

    In a cell of the table they are those given psi in the other cells and omega there.
    """
    gaussian, centre = sticks.gaussian(draw.x), sticks.mean(draw.beta)
    rotated = gaussian.rotate(draw.psi - centre)
    away, var = gaussian.elsewhere(at, rotated)
    means, variances = mean + away, np.repeat(var[:, None], mean.shape[1], axis=1)
    _, rows, columns = sticks.table.found(at)
    inside = (rows < sticks.table.shape[0]) & (columns < sticks.table.shape[1])
    away, var = gaussian.others(rotated)
    cells = rows[inside], columns[inside]
    site = sticks.table.cells.reshape(sticks.table.shape)[cells]
    J, h = np.zeros((2, len(site), mean.shape[1]))
    has_counts = site < len(omega.J)
    J[has_counts], h[has_counts] = omega.J[site[has_counts]], omega.h[site[has_counts]]
    precision = 1.0 / var[cells][:, None] + J
    prior = (centre + away)[:, cells[0], cells[1]].T
    means[inside] = (prior / var[cells][:, None] + h) / precision
    variances[inside] = 1.0 / precision
    return means, variances
