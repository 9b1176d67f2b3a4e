r"""Multinomial Gaussian processes under the stick-breaking link (SBM-GP).

Counts of K categories at inputs s in space and time (Linderman, Johnson and Adams 2015, section 4),
their probabilities K - 1 sticks, each a Gaussian process around a mean linear in few features::

    theta         ~ priors of the covariance's parameters; one for all sticks, or one a stick
    beta_k        ~ N(centre_k, mean_var I),                     k = 1..K-1
    psi_k(s)      = features(s)' beta_k + g_k(s),    g_k ~ GP(0, covariance_theta)
    x_i           ~ Multinomial(N_i, stick-breaking(psi(s_i)))   i = 1..n

As a function of psi the likelihood is nearly Gaussian, whatever the counts, and that Gaussian is
found before the chain starts (`pgmult.fields.models.approximation`). A sweep of ``method="slice"``
is

1. theta, beta, psi | x        in some of the sweeps: theta is proposed from its posterior under the
                               approximation, with psi and beta integrated out; psi and beta are
                               recomputed from the same standard normal noise; the proposal is
                               accepted by the ratio of likelihood to approximation
2. beta, psi | theta, x        for each stick, an elliptical slice update around the approximation
                               of all its sites and coefficients

Given omega the sticks are independent Gaussian fields, so a sweep of ``"polya_gamma"`` draws

1. omega | psi, x              Pólya-gamma, PG(N_k(s), psi_k(s))
2. theta | omega, x            a joint update, psi and beta integrated out; in some of the sweeps
3. beta, psi | omega, theta, x Gaussian: all sites and coefficients at once, a stick at a time
4. beta and psi along beta | x slice updates of each stick's level, omega integrated out
5. var and g along sqrt(var) | x  likewise, where the covariance has a free factor var and step 2
                               was taken

The Pólya-gamma sweep mixes slowly for rare categories. Where N observations reach a stick and one
of them stops there, omega is as large as N, and psi moves little (Johndrow et al. 2019, "MCMC for
imbalanced categorical data"): for names of a century at full counts, a third of the empty cells and
the hyperparameters have less than one effective draw in a hundred sweeps. Slice updates have 0.3 or
more a sweep. ``"auto"`` uses slice updates alone where the variance of the correction (log
likelihood less approximation) is at most 4 in every stick. Where it is larger, as with thousands of
sites of few counts, a sweep makes both updates of psi. It also makes both in a tenth of the other
sweeps, since a slice update moves slowly when a stick is in a tail of the posterior. On a "grid" of
thousands of inputs with gaps the proposal of theta is not available, and the Pólya-gamma sweep
updates theta.

Sites are the distinct inputs, new inputs included. Without counts omega is 0, so psi at the new
inputs is drawn with the rest, from its law given omega.

>>> import numpy as np, pgmult
>>> from pgmult.fields.covariances import Matern
>>> years = np.arange(2000.0, 2008.0)
>>> counts = np.random.default_rng(0).multinomial(20, [0.5, 0.3, 0.2], size=8)
>>> posterior = pgmult.sample(
...     MultinomialGP(0.5 * Matern(1.5, length_scale=5.0)),
...     pgmult.fields.as_field(years, counts, new_inputs=[2008.0, 2009.0]),
...     draws=10, tune=10, chains=1, random_seed=0, progressbar=False,
... )
>>> posterior["pi_new"].shape
(1, 10, 2, 3)
"""

import hashlib
import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from pgmult.core.arguments import as_kind, as_seed
from pgmult.core.parameters import axes_of, real
from pgmult.core.potentials import DiagonalPotential
from pgmult.core.typing import ArrayLike, BoolArray, FloatArray, IntArray
from pgmult.fields.covariances import Constant, Product
from pgmult.fields.data import CountField
from pgmult.fields.models.approximation import (
    Approximation,
    approximation,
    around,
    joined,
    slow_sites,
)
from pgmult.fields.models.sticks import StickFields
from pgmult.fields.priors.field import Field, FieldDraw
from pgmult.latent.hyperparameters import sample_hyperparameters
from pgmult.sampling.diagnostics import ConvergenceWarning, augmentation_rate
from pgmult.sampling.moves import slice_around, slice_sample

__all__ = ["MultinomialGP", "MultinomialGPState", "empirical_bayes"]

_LEVEL_WIDTH = 1.0
_FAR = 4.0  # spread of a stick's correction beyond which slices alone make short moves
_AUGMENTED = 0.1  # of the other sweeps
_EM_ROUNDS = 12  # each _EM_SWEEPS sweeps that give draws of omega, and one maximisation
_EM_SWEEPS = 4

_log = logging.getLogger("pgmult")


@dataclass(frozen=True, slots=True, eq=False)
class MultinomialGPState:
    """One point of the chain.

    Attributes
    ----------
    psi : array, ``(num_sites, num_categories - 1)``
        At the distinct inputs and new inputs, `CountField.sites`; sticks in the data's order.
    beta : array, ``(num_features, num_categories - 1)``
        Coefficients of each stick's mean; no row where the mean is not learned.
    hyperparameters : array, ``(num_covariances, num_hyperparameters)``
        The covariance's free parameters: one row for all sticks, or a row a stick.
    """

    psi: Annotated[FloatArray, "site", "stick"]
    beta: Annotated[FloatArray, "feature", "stick"]
    hyperparameters: Annotated[FloatArray, "covariance", "hyperparameter"]


@dataclass(frozen=True, slots=True, eq=False)
class MultinomialGP(StickFields):
    """Multinomial counts whose sticks are Gaussian processes, sampled in exact blocks.

    Parameters
    ----------
    covariance : Covariance
        Of each stick around its mean; the search for an approximation starts at the parameters
        it comes with.
    structure : {"dense", "state_space", "grid", "inducing_points", "auto"}
        How the fields are computed; "auto" says in the log what it took.
    mean : {"constant", "linear", "empirical"}, float or array, ``(num_categories - 1,)``
        Of each stick: a learned constant; learned coefficients of a constant and of every input
        column, standardised; the sticks of the shares of the categories in all counts, a point
        estimate; or given numbers.
    mean_var : float
        Prior variance of the learned coefficients. That of the constant is centred where all
        categories are equally probable, those of the inputs at 0.
    shared : bool
        Whether all sticks share the covariance's parameters, or each has its own.
    overdispersion : float
        Where positive, every site has an independent effect of its own on each stick, with this
        variance (the prior median, where hyperparameters are sampled): counts vary by more than the
        smooth law and multinomial noise. Short for ``covariance + White(overdispersion)``. New
        inputs have effects of their own as well.
    hyperparameters : {"sampled", "empirical_bayes", "fixed"}
        "empirical_bayes" maximises their posterior density given a few draws of omega before the
        chain starts, and fixes them there: quicker, and intervals do not know that they are
        estimates. "fixed" leaves them as they come.
    hyperparameter_rate : float
        The probability that a sweep updates sampled hyperparameters. An update costs three or four
        times what the rest of a sweep does, and the probabilities mix faster than they: below 1
        there are more effective draws of the probabilities in a second.
    method : {"auto", "slice", "polya_gamma"}
        What a sweep does: see the module. Chains start at draws from the approximation.

    Notes
    -----
    A sweep costs O(n**3 K) for "dense", n the distinct inputs, and two or three times that again
    where it updates hyperparameters. A learned mean costs next to nothing, except that "grid"
    solves once more for it and for each of its features.
    """

    hyperparameter_rate: Annotated[float, real(above=0.0, maximum=1.0)] = 0.3
    method: Literal["auto", "slice", "polya_gamma"] = "auto"

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = axes_of(MultinomialGPState) | {
        "pi": ("row", "category"),
        "pi_new": ("new_row", "category"),
        "psi_new_mean": ("new_row", "stick"),
        "psi_new_var": ("new_row", "stick"),
    }
    default_keep: ClassVar[tuple[str, ...]] = ("hyperparameters", "beta", "pi_new")

    def coords(self, data: CountField) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Labels of categories, sticks, rows, new rows, features and hyperparameters."""
        names = np.arange(data.num_categories) if data.categories is None else data.categories
        inputs = [f"input {i}" for i in range(data.inputs.shape[1])]
        if data.input_names is not None:
            inputs = data.input_names.tolist()
        sticks = names[data.order[:-1]]
        labels = {
            "category": data.categories,
            "stick": sticks,
            "row": data.names,
            "new_row": data.new_names,
            "feature": ["constant", *inputs][: len(self.trend(data).centre)],
            "covariance": ["shared"] if self.shared else sticks,
            "hyperparameter": list(self.law.param_names),
        }
        return {axis: value for axis, value in labels.items() if value is not None}

    def prior(self, rng: np.random.Generator, data: CountField) -> MultinomialGPState:
        """Hyperparameters, coefficients and sticks from the prior."""
        theta, centre = self.start(data), self.trend(data).centre
        if self.samples_theta:
            theta = np.array([self.law.sample_log_params(rng) for _ in theta])
        beta = centre + np.sqrt(self.mean_var) * rng.standard_normal(centre.shape)
        psi = self.field(theta, beta, data).sample(rng)
        return MultinomialGPState(psi, beta, np.exp(theta))

    def init(self, rng: np.random.Generator, data: CountField) -> MultinomialGPState:
        """A draw from the approximation of the posterior.

        Warns
        -----
        ConvergenceWarning
            If sweeps are to be of ``method="polya_gamma"`` and leave a site where it is for
            hundreds of them.
        """
        found = self.approximation(data)
        if self.method == "polya_gamma":
            slow = slow_sites(self.augmentation_rates(data), data)
            if slow is not None:
                warnings.warn(slow, ConvergenceWarning, stacklevel=2)
        theta = found.guess.mean
        if self.hyperparameters == "empirical_bayes" and self.law.num_params:
            estimate = empirical_bayes(self, data).law
            theta = np.tile(estimate.log_params, (len(theta), 1))
        noise = rng.standard_normal(theta.shape)
        theta = theta + np.einsum("rij,rj->ri", found.guess.root, noise)
        beta, psi = self.sample_sticks(rng, theta, found.potential, data)
        return MultinomialGPState(psi, beta, np.exp(theta))

    def step(
        self, rng: np.random.Generator, state: MultinomialGPState, data: CountField
    ) -> MultinomialGPState:
        """One sweep over all blocks."""
        moves_theta = self.samples_theta and rng.random() < self.hyperparameter_rate
        if self.method == "polya_gamma":
            return self._augmented(rng, state, data, moves_theta)
        if moves_theta and _whitens(self, data):
            state, moves_theta = self._carry(rng, state, data), False
        if moves_theta or (self.method == "auto" and self._needs_omega(rng, data)):
            state = self._augmented(rng, state, data, moves_theta)
        return self._slice(rng, state, data)

    def _needs_omega(self, rng: np.random.Generator, data: CountField) -> bool:
        """Always where slices alone make short moves; now and then elsewhere, as they may."""
        return self.approximation(data).spread.max() > _FAR or rng.random() < _AUGMENTED

    def approximation(self, data: CountField) -> Approximation:
        """The Gaussian near the posterior, and how near."""
        return approximation(self, data)

    def augmentation_rates(self, data: CountField) -> FloatArray:
        """How much a Pólya-gamma sweep renews of each site, ``(num_sites, num_categories - 1)``.

        See `pgmult.sampling.diagnostics.augmentation_rate`; about half of it are the effective
        draws a sweep of ``method="polya_gamma"``. Slices do not depend on it.
        """
        found, (_, reaching) = self.approximation(data), self.binomials(data)
        prior = np.maximum(1.0 / np.maximum(found.var, 1e-12) - found.potential.J, 0.0)
        return augmentation_rate(reaching, found.mean, prior)

    def _augmented(
        self, rng: np.random.Generator, state: MultinomialGPState, data: CountField, theta_too: bool
    ) -> MultinomialGPState:
        """Omega, then hyperparameters if they move, beta and psi given it."""
        counts = data.site_counts()
        potential = self.link(data).augment(rng, state.psi, counts)
        theta, hyperparameters = np.log(state.hyperparameters), state.hyperparameters
        if theta_too:
            collapsed, guess = self.collapsed(potential, data), self.approximation(data).guess
            theta = sample_hyperparameters(rng, collapsed, theta, guess)
            hyperparameters = np.exp(theta)
        beta, psi = self.sample_sticks(rng, theta, potential, data)
        psi, beta = self._shift_levels(rng, psi, beta, counts, data)
        if theta_too and self._variance is not None:
            psi, theta = self._scale_sticks(rng, psi, beta, theta, counts, data)
            hyperparameters = np.exp(theta)
        return MultinomialGPState(psi, beta, hyperparameters)

    def _slice(
        self, rng: np.random.Generator, state: MultinomialGPState, data: CountField
    ) -> MultinomialGPState:
        """Beta and psi of each stick on an ellipse around the approximation, given theta."""
        found, (taken, reaching) = self.approximation(data), self.binomials(data)
        base = around(self, found.potential, np.log(state.hyperparameters).tobytes(), data)
        num_sites = len(state.psi)

        def correction(x: FloatArray, active: BoolArray) -> FloatArray:
            return found.correction(x[:, :num_sites].T, taken, reaching)

        x = slice_around(rng, joined(state.psi, state.beta), base, correction, dof=None)
        psi, beta = np.split(np.ascontiguousarray(x.T), [num_sites])
        return MultinomialGPState(psi, beta, state.hyperparameters)

    def _carry(
        self, rng: np.random.Generator, state: MultinomialGPState, data: CountField
    ) -> MultinomialGPState:
        """Theta by the approximation, beta and psi carried along; accepted by the correction C.

        With q the approximation, the posterior is q(theta) q(psi, beta | theta) exp C(psi), and
        psi and beta are a function of theta and of standard normal noise (`_rebuilt`): given that
        noise, which is drawn, theta has the density q(theta) exp C(psi). A step that is reversible
        for q(theta) proposes it (Liu 2001, "Monte Carlo strategies in scientific computing",
        section 9.4.3, the surrogate transition); as the noise stays, C hardly changes (Murray and
        Adams 2010, "Slice sampling covariance hyperparameters of latent Gaussian models", whose
        surrogate data are here the potential).
        """
        found, (taken, reaching) = self.approximation(data), self.binomials(data)
        theta = np.log(state.hyperparameters)
        collapsed = self.collapsed(found.potential, data)
        proposed = sample_hyperparameters(rng, collapsed, theta, found.guess)
        noise = self._noise_of(rng, state, data)
        psi, beta = self._rebuilt(proposed, noise, data)
        gain = found.correction(psi, taken, reaching) - found.correction(state.psi, taken, reaching)
        gain = np.array([gain.sum()]) if self.shared else gain
        moved = gain > -rng.exponential(size=len(theta))  # of each row, or all sticks together
        return MultinomialGPState(
            np.where(moved, psi, state.psi),
            np.where(moved, beta, state.beta),
            np.where(moved[:, None], np.exp(proposed), state.hyperparameters),
        )

    def _noise_of(
        self, rng: np.random.Generator, state: MultinomialGPState, data: CountField
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """A draw of the noise that the approximation makes psi and beta of, given these.

        A draw from the approximation is one from its prior, f and beta, moved to the mean given
        what f, beta and an error of each site leave unexplained (Matheron's rule). Given the draw
        itself, f is any f moved by as much as its own draw is off, and likewise beta and errors.
        """
        J, trend = self.approximation(data).potential.J, self.trend(data)
        theta = np.log(state.hyperparameters)
        prior = self.field(theta, np.zeros_like(trend.centre), data)
        f = prior.sample(rng)
        beta = trend.centre + np.sqrt(trend.var) * rng.standard_normal(state.beta.shape)
        errors = rng.standard_normal(J.shape)
        psi, coefficients = self._posterior_mean(prior, f, beta, errors, data)
        off, off_beta = state.psi - psi, state.beta - coefficients
        f = f + off - trend.at(off_beta)
        return prior.whiten(rng, f), beta + off_beta, errors - np.sqrt(J) * off

    def _rebuilt(
        self,
        theta: FloatArray,
        noise: tuple[FloatArray, FloatArray, FloatArray],
        data: CountField,
    ) -> tuple[FloatArray, FloatArray]:
        """Psi and beta of the noise at other hyperparameters."""
        of_field, beta, errors = noise
        prior = self.field(theta, np.zeros_like(beta), data)
        return self._posterior_mean(prior, prior.colour(of_field), beta, errors, data)

    def _posterior_mean(
        self,
        prior: Field,
        f: FloatArray,
        beta: FloatArray,
        errors: FloatArray,
        data: CountField,
    ) -> tuple[FloatArray, FloatArray]:
        """Mean of psi and beta around f and beta, given the potential with errors."""
        potential = self.approximation(data).potential
        potential = replace(potential, h=potential.h - np.sqrt(potential.J) * errors)
        trend = self.trend(data)._replace(centre=beta)
        return prior.with_mean(f).condition(potential).mean_with_trend(trend)

    # ---------------------------------------------------------------- keepable variables

    def psi_new_mean(self, state: MultinomialGPState, data: CountField) -> FloatArray:
        """E[psi at the new inputs | omega], psi at the inputs integrated out.

        Sticks are independent given omega: with `psi_new_var`, that is all of their law
        (Linderman, Johnson and Adams 2015, appendix B). omega is drawn given the state's psi, from
        a stream that the state itself seeds, so that one state has one answer.
        """
        return _law_at_new_inputs(self, state, data)[0]

    def psi_new_var(self, state: MultinomialGPState, data: CountField) -> FloatArray:
        """Var[psi at the new inputs | omega]: see `psi_new_mean`."""
        return _law_at_new_inputs(self, state, data)[1]

    def predict_at(
        self,
        rng: np.random.Generator,
        state: MultinomialGPState,
        data: CountField,
        new_inputs: ArrayLike,
    ) -> FieldDraw:
        """The sticks at inputs that the chain did not know, psi at the inputs integrated out.

        Given omega, drawn here given the state's psi. Costs as much as a sweep.

        Parameters
        ----------
        rng : numpy.random.Generator
        state : MultinomialGPState
        data : CountField
            Of the chain.
        new_inputs : array, ``(num_new, num_inputs)``

        Returns
        -------
        FieldDraw
            A joint draw at the sites of the counts and at the new inputs, and the law at the
            latter.
        """
        seen, wider = data.with_new_inputs(None), data.with_new_inputs(new_inputs)
        potential = self.link(data).augment(rng, state.psi[: seen.num_sites], seen.site_counts())
        field = self.field(np.log(state.hyperparameters), state.beta, seen).condition(potential)
        mean = self.mean_at_sites(state.beta, wider)[wider.new_sites]
        return field.draw(rng, wider.new_inputs, mean)

    # ---------------------------------------------------------------- parts

    @property
    def _variance(self) -> int | None:
        """Which hyperparameter is a free factor of the whole covariance."""
        covariance, before = self.law, 0
        for part in covariance.parts if isinstance(covariance, Product) else [covariance]:
            if isinstance(part, Constant) and part.num_params:
                return before
            before += part.num_params
        return None

    def _shift_levels(
        self,
        rng: np.random.Generator,
        psi: FloatArray,
        beta: FloatArray,
        counts: IntArray,
        data: CountField,
    ) -> tuple[FloatArray, FloatArray]:
        """Move each coefficient, and psi along with it, given the counts alone."""
        psi, beta = psi.copy(), beta.copy()
        link, (features, centre, var) = self.link(data), self.trend(data)
        seen = counts.any(axis=1)
        taken = counts[seen][:, data.order[:-1]]
        reaching = link.totals(counts[seen])
        for f in range(len(beta)):
            base, along = psi[seen] - np.outer(features[seen, f], beta[f]), features[seen, f]

            def log_density(
                values: FloatArray,
                active: BoolArray,
                base: FloatArray = base,
                along: FloatArray = along,
                f: int = f,
            ) -> FloatArray:
                k = np.flatnonzero(active)
                trial = base[:, k] + np.outer(along, values[k])
                fit = taken[:, k] * trial - reaching[:, k] * np.logaddexp(0.0, trial)
                out = np.zeros(len(values))
                out[k] = fit.sum(axis=0) - 0.5 * (values[k] - centre[f, k]) ** 2 / var
                return out

            moved = slice_sample(rng, log_density, beta[f].copy(), _LEVEL_WIDTH)
            psi += np.outer(features[:, f], moved - beta[f])
            beta[f] = moved
        return psi, beta

    def _scale_sticks(
        self,
        rng: np.random.Generator,
        psi: FloatArray,
        beta: FloatArray,
        theta: FloatArray,
        counts: IntArray,
        data: CountField,
    ) -> tuple[FloatArray, FloatArray]:
        """Stretch psi about its mean, and its variance along with it, given the counts alone.

        Under (g, var) -> (c g, c^2 var) the Gaussian density of g and the volume element cancel
        (Liu and Sabatti 2000, "Generalised Gibbs sampler"): what is left of c is the likelihood and
        the prior of var.
        """
        place = self._variance
        mean = self.mean_at_sites(beta, data)
        seen, link = counts.any(axis=1), self.link(data)
        taken = counts[seen][:, data.order[:-1]]
        reaching = link.totals(counts[seen])
        around, centre = (psi - mean)[seen], mean[seen]

        def log_density(stretch: FloatArray, active: BoolArray) -> FloatArray:
            trial = centre + np.exp(stretch) * around
            fit = (taken * trial - reaching * np.logaddexp(0.0, trial)).sum(axis=0)
            out = np.full(len(stretch), fit.sum()) if self.shared else fit
            for row in np.flatnonzero(active):
                moved = theta[row].copy()
                moved[place] += 2.0 * stretch[row]
                out[row] += self.law.with_log_params(moved).log_prior()
            return out

        stretch = slice_sample(rng, log_density, np.zeros(len(theta)), _LEVEL_WIDTH)
        theta = theta.copy()
        theta[:, place] += 2.0 * stretch
        return mean + np.exp(stretch) * (psi - mean), theta


@lru_cache(maxsize=16)
def _whitens(model: MultinomialGP, data: CountField) -> bool:
    """Whether psi has noise by which it can be carried."""
    return model.field(model.start(data), np.zeros_like(model.trend(data).centre), data).whitens


@lru_cache(maxsize=16)
def _law_at_new_inputs(
    model: MultinomialGP, state: MultinomialGPState, data: CountField
) -> tuple[FloatArray, FloatArray]:
    """Means and variances of psi at the new inputs given omega."""
    seed = int.from_bytes(hashlib.blake2b(state.psi.tobytes(), digest_size=16).digest(), "little")
    rng = np.random.default_rng(seed)
    potential = model.link(data).augment(rng, state.psi, data.site_counts())
    field = model.field(np.log(state.hyperparameters), state.beta, data).condition(potential)
    mean = model.mean_at_sites(state.beta, data)[data.new_sites]
    return field.predict(data.new_inputs, mean)


def empirical_bayes(model: MultinomialGP, data: CountField, random_seed: int = 0) -> MultinomialGP:
    """The same model with hyperparameters fixed at an estimate from the data.

    A Monte Carlo EM algorithm whose missing data are omega, psi integrated out: rounds of a few
    sweeps that give draws of omega, and the maximum over the parameters of the mean log density
    of those draws and of the prior. All sticks share the estimate.

    Parameters
    ----------
    model : MultinomialGP
        From whose covariance the search starts.
    data : CountField
    random_seed : int
    """
    as_kind(model, "model", MultinomialGP)
    as_kind(data, "data", CountField, "make one with as_field")
    rng = np.random.default_rng(as_seed(random_seed))
    _log.warning(
        "MultinomialGP: hyperparameters are estimated and then fixed (empirical Bayes);"
        " intervals do not know that they are estimates"
    )
    fixed = replace(
        model, covariance=model.law, overdispersion=0.0, hyperparameters="fixed", shared=True
    )
    state = fixed.init(rng, data)
    link, counts = model.link(data), data.site_counts()
    for _ in range(_EM_ROUNDS):
        draws = []
        for _ in range(_EM_SWEEPS):
            state = fixed.step(rng, state, data)
            draws.append((link.augment(rng, state.psi, counts), state.beta))
        start = fixed.law.log_params
        best = minimize(_loss, start, args=(fixed, draws, data), method="L-BFGS-B").x
        fixed = replace(fixed, covariance=fixed.law.with_log_params(best))
        if np.abs(best - start).max() < 0.02:
            break
    _log.info(
        "MultinomialGP: estimated %s",
        dict(zip(model.law.param_names, np.exp(best).round(4).tolist(), strict=True)),
    )
    return fixed


def _loss(
    theta: FloatArray,
    model: MultinomialGP,
    draws: Sequence[tuple[DiagonalPotential, FloatArray]],
    data: CountField,
) -> float:
    """Minus the mean log density of the draws of omega, and minus the log prior."""
    log_densities = [
        model.field(theta[None], beta, data).condition(potential).log_normalizer().sum()
        for potential, beta in draws
    ]
    prior = model.law.with_log_params(theta).log_prior()
    return -float(np.mean(log_densities)) - prior
