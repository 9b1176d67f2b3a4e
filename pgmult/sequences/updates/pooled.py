"""Effects of individuals in linear dynamics: weights of inputs whose variances are learned.

A formula's terms, such as ``(1 | animal)``, are columns of the inputs beside those of numbers. In
the weights of a stick they are N(0, P(x_k)^-1), and in those of the dynamics, B, they are
matrix-normal: L^-1 B has rows N(0, P(x_0)^-1), L L' = Q. P is diagonal, so that all draws of
weights given hyperparameters x are as without terms. Given the weights and what is linear and
quadratic in them, x moves with them and without them (`pgmult.latent.moves.interwoven`).

First states need no such term: those of all sequences share a mean and a covariance.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pgmult.core.memory import once_a_data_set
from pgmult.core.typing import FloatArray, Generator
from pgmult.core.validate import new_key
from pgmult.formulas.design import Design
from pgmult.latent.additive import Additive
from pgmult.latent.moves import interwoven
from pgmult.latent.predictors import Latent, Priors, check_priors, latent_of, priors_of
from pgmult.latent.terms import Apart, Copies, LevelEffects
from pgmult.priors import LKJ
from pgmult.priors.gaussian import lower_cholesky
from pgmult.sequences.updates.conjugate import RegressionSums


class Pooled(NamedTuple):
    """The terms of a design.

    Attributes
    ----------
    latent : Latent
        Of the whole design.
    of_stick, of_states : Additive
        Effects of a stick, and of all states, as their own predictors.
    fixed : int
        Columns of inputs before those of effects.
    """

    latent: Latent
    of_stick: Additive
    of_states: Additive
    fixed: int

    @property
    def num_effects(self) -> int:
        """Columns of all terms."""
        return self.of_stick.num_weights

    @property
    def names(self) -> NDArray[np.str_]:
        """Names of the inputs' columns."""
        return np.asarray(self.latent.names[self.latent.names != "Intercept"])

    def variances(self, x: FloatArray) -> FloatArray:
        """Variances of the effects at hyperparameters."""
        terms = zip(self.of_stick.terms, self.of_stick.hyperparameters, strict=True)
        return np.concatenate([1.0 / term.precision(x[at]) for term, at in terms])

    def new_effects(self, rng: Generator, x: FloatArray) -> FloatArray:
        """A draw of the effects of all levels that the terms have no data of."""
        places, key, effects = self.latent.family.hyperparameters, new_key(rng), [np.empty(0)]
        for piece, at in zip(self.latent.pieces, places, strict=True):
            if piece.fresh is not None:
                effects.append(piece.prior.spread(x[at], piece.noise(key, 1)[:, 0]))
        return np.concatenate(effects)

    def move_stick(
        self, rng: Generator, x: FloatArray, weights: FloatArray, squares: FloatArray,
        linear: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:  # fmt: skip
        """Hyperparameters and weights of a stick, all of its effects but the last column's.

        `squares` is the lower triangle of what is quadratic in its weights, ``(q,)``.
        """
        q = len(weights)
        square, (rows, columns_of) = np.empty((q, q)), np.tril_indices(q)
        square[rows, columns_of] = square[columns_of, rows] = squares
        columns = slice(q - 1 - self.num_effects, q - 1)
        e, others = weights[columns], weights.copy()
        others[columns] = 0.0
        pull = linear[columns] - square[columns] @ others
        x, others[columns] = _moved(rng, self.of_stick, x, e, pull, square[columns, columns])
        return x, others

    def move_states(
        self, rng: Generator, x: FloatArray, dynamics: FloatArray, cov: FloatArray,
        later: RegressionSums,
    ) -> tuple[FloatArray, FloatArray]:  # fmt: skip
        """Hyperparameters of the dynamics' effects, and (A, B), given states and Q."""
        root, p = lower_cholesky(cov), dynamics.shape[1]
        columns = slice(p - self.num_effects, p)
        others = dynamics - later.coefficients
        others[:, columns] = -later.coefficients[:, columns]
        pull: Any = later.ze[columns] - later.zz[columns, :p] @ others.T
        pull = np.linalg.solve(root, pull.T).T
        white: Any = np.linalg.solve(root, dynamics[:, columns]).T
        x, white = _moved(rng, self.of_states, x, white, pull, later.zz[columns, columns])
        moved = dynamics.copy()
        moved[:, columns] = root @ white.T
        return x, moved


def _moved(
    rng: Generator, family: Additive, x: FloatArray, e: FloatArray, pull: FloatArray,
    block: FloatArray,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Hyperparameters and effects, the log density of which is sum e (pull - block e / 2)."""

    def total(flat: FloatArray) -> float:
        b = flat.reshape(e.shape)
        return float((b * (pull - 0.5 * (block @ b))).sum())

    x, flat = interwoven(rng, family, x, e.ravel(), e.ravel(), total)
    return x, flat.reshape(e.shape)


@once_a_data_set
def pooled_of(design: Design, priors: Priors, state_dim: int) -> Pooled:
    """The terms of a design.

    Raises
    ------
    ValueError
        If one has effects that are not independent given standard deviations, or priors are of
        anything else.
    """
    named = {"fixed", *design.names.tolist()} & set(priors)
    if named:
        raise ValueError(
            f"priors are of the terms' standard deviations, got one of {min(named)}: coefficients"
            " have emission_var and dynamics"
        )
    check_priors(design, priors)
    latent = latent_of(design, priors)
    fixed, *pieces = latent.pieces
    pieces = [piece._replace(prior=_apart(piece.prior)) for piece in pieces]
    for term, piece in zip(design.terms, pieces, strict=True):
        if np.ndim(piece.prior.precision(piece.prior.start())) != 1:
            raise ValueError(
                f"linear dynamics take (1 + x | g) and s(x), whose effects are independent, got"
                f" {term.title} (MixedHMM takes it)"
            )
        if any(isinstance(prior, LKJ) for prior in priors_of(term, priors).values()):
            raise ValueError(f"effects of {term.title} are independent: LKJ is of correlations")
    effects = [piece.prior for piece in pieces]
    size, copies = sum(e.size for e in effects), [Copies(e, state_dim) for e in effects]
    together = Additive([fixed.prior, *effects], latent.family.design)
    of_stick = Additive(effects, sparse.eye_array(size))
    of_states = Additive(copies, sparse.eye_array(size * state_dim))
    latent = replace(latent, family=together, pieces=(fixed, *pieces))
    return Pooled(latent, of_stick, of_states, sum(name != "Intercept" for name in fixed.names))


def _apart(prior: object) -> Any:
    """The prior of effects without their correlations."""
    if not isinstance(prior, LevelEffects) or prior.width == 1:
        return prior
    return Apart(prior.num_levels, prior.width, prior.scale, prior.dof)
