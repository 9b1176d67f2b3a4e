"""Scalar Gaussian chains over time, many at once: random walks and first-order autoregressions.

Row r holds num_chains chains that share their variances; chain i of every row shares its centre::

    x[r, 0, i] ~ N(centre_i, initial_var_r),
    x[r, t, i] ~ N(centre_i + persistence (x[r, t-1, i] - centre_i), innovation_var_r).

Diagonal potentials keep this form, so draws and the normaliser take O(num_times) a chain. The
normaliser as a function of the variances is their likelihood with the chains integrated out.

The likelihood of binomial counts with logits x is not Gaussian. Given such counts, chains move by
elliptical slices around a Gaussian approximation (`slice`). A variance moves together with all
chains of its row (`log_place`), given *surrogate data* (Murray and Adams 2010, "Slice sampling
covariance hyperparameters of latent Gaussian models"): g = x + noise, about as precise as the
counts. The standard normal numbers from which `place` makes x given g are kept, so x follows when a
variance changes. Given x itself a variance could hardly move, because its thousands of steps
determine it.

>>> import numpy as np
>>> from pgmult.core.potentials import DiagonalPotential
>>> prior = ScalarChains(np.zeros(1), np.array([1.0]), np.array([0.5]), num_times=2)
>>> seen = DiagonalPotential(J=np.array([[[3.0], [0.0]]]), h=np.array([[[3.0], [0.0]]]))
>>> prior.condition(seen).sample(np.random.default_rng(0)).shape
(1, 2, 1)
"""

from dataclasses import dataclass, fields, replace
from typing import Annotated

import numpy as np

from pgmult.compiled.rows import over_rows
from pgmult.core.arguments import as_share
from pgmult.core.parameters import Checked
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import BoolArray, FloatArray, Generator
from pgmult.core.validate import as_finite, as_nonnegative, as_positive, made, new_key
from pgmult.topics.compiled import chains as compiled
from pgmult.topics.compiled.chains import Counts


@dataclass(frozen=True, slots=True, eq=False)
class ScalarChains(Checked):
    """Rows of scalar chains, times the potential they were conditioned on.

    Attributes
    ----------
    centre : array, ``(num_chains,)``
    initial_var, innovation_var : arrays, ``(num_rows,)``
        Positive.
    num_times : int
    persistence : float
        In [0, 1]; 1 is a random walk.
    potential : DiagonalPotential, ``(num_rows, num_times, num_chains)``, or None

    Raises
    ------
    ValueError
        If shapes do not agree, a variance is not positive, J is negative or persistence is outside.
    """

    centre: Annotated[FloatArray, as_finite, "chain"]
    initial_var: Annotated[FloatArray, as_positive, "row"]
    innovation_var: Annotated[FloatArray, as_positive, "row"]
    num_times: int
    persistence: Annotated[float, as_share] = 1.0
    potential: DiagonalPotential | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, times and chains."""
        return len(self.initial_var), self.num_times, len(self.centre)

    def condition(self, potential: DiagonalPotential) -> "ScalarChains":
        """The posterior: this times `potential`."""
        J, h = as_nonnegative(potential.J, "J"), as_finite(potential.h, "h")
        if J.shape != self.shape or h.shape != self.shape:
            raise ValueError(f"the potential must have shape {self.shape}, got {J.shape}")
        seen = DiagonalPotential(J, h)
        return replace(self, potential=seen if self.potential is None else self.potential + seen)

    def with_vars(self, **variances: FloatArray) -> "ScalarChains":
        """The same chains and potential under other variances, which must be positive."""
        same = {field.name: getattr(self, field.name) for field in fields(self)}
        return made(ScalarChains, **(same | variances))

    def sample(self, rng: Generator) -> FloatArray:
        """One draw, ``(num_rows, num_times, num_chains)``."""
        return self.place(self._noise(rng))

    def place(self, noise: FloatArray) -> FloatArray:
        """The draw that standard normal `noise` of shape `shape` makes."""
        out = np.empty(self.shape)
        over_rows(compiled.place_chains, len(out), *self._filtered(), noise, out, grain=1)
        return out

    def noise_of(self, x: FloatArray) -> FloatArray:
        """The noise that `place` makes x from."""
        noise = np.empty(self.shape)
        over_rows(compiled.noise_of_chains, len(noise), *self._filtered(), x, noise, grain=1)
        return noise

    def surrogate(self, rng: Generator, x: FloatArray, counts: Counts) -> DiagonalPotential:
        """The potential of surrogate data of x: as precise as the counts of all times together."""
        successes, trials = (np.sum(of, axis=1, keepdims=True) for of in counts)
        share = (successes + 0.5) / (trials + 1.0)
        J = counts.reaching * (share * (1.0 - share))
        return DiagonalPotential(J, J * x + np.sqrt(J) * self._noise(rng))

    def log_place(self, noise: FloatArray, counts: Counts, rows: BoolArray) -> FloatArray:
        """Log normaliser, and the log likelihood of counts where `place` puts the chains.

        The density of the variances given surrogate data and noise, up to their prior.

        Parameters
        ----------
        noise : array, ``(num_rows, num_times, num_chains)``
        counts : Counts
        rows : bool array, ``(num_rows,)``
            The rows to work out; others get 0.

        Returns
        -------
        array, ``(num_rows,)``
        """
        out = np.zeros(len(self.initial_var))
        given = rows, *self._filtered(), noise, counts
        over_rows(compiled.log_densities, len(out), *given, out, grain=1)
        return out

    def _noise(self, rng: Generator) -> FloatArray:
        noise = np.empty(self.shape)
        over_rows(compiled.normal_rows, len(noise), new_key(rng), noise, grain=1)
        return noise

    def _prior(self) -> compiled.ChainPrior:
        """The prior, as compiled functions take it."""
        variances = self.initial_var, self.innovation_var
        return compiled.ChainPrior(self.centre, self.persistence, *variances)

    def _filtered(self) -> tuple[compiled.ChainPrior, compiled.ChainPotential]:
        """The prior and the potential, as compiled functions take them."""
        potential = self.potential or DiagonalPotential(np.zeros(self.shape), np.zeros(self.shape))
        return self._prior(), compiled.ChainPotential(potential.J, potential.h)

    def slice(self, rng: Generator, x: FloatArray, counts: Counts) -> FloatArray:
        """One Markov step of every chain given binomial counts.

        An elliptical slice around a Gaussian found from the counts, one for each chain. Leaves this
        prior times the likelihood of the counts, of logit x, as it is; the potential plays no part.

        Parameters
        ----------
        x : array, ``(num_rows, num_times, num_chains)``
            Where the chains are.
        counts : Counts
        """
        out = np.array(x, dtype=np.float64, order="C")
        given = new_key(rng), self._prior(), counts, out
        over_rows(compiled.slice_chains, len(out), *given, grain=1)
        return out
