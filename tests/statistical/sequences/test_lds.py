"""The sampler of linear dynamical systems is right, and broken ones are refused."""

from dataclasses import replace

import numpy as np
import pytest
from same_draws import forget_a_block, repeat_the_first_block

import pgmult
from pgmult.core.potentials import DensePotential
from pgmult.links import StickBreaking
from pgmult.priors import HalfT, MatrixNormalInverseWishart
from pgmult.sampling.blocks import Sums
from pgmult.sequences.active_sticks import ActiveSticks, Pairs
from pgmult.sequences.compiled import white_paths
from pgmult.sequences.data.sequences import as_sequences
from pgmult.sequences.models.lds import MultinomialLDS
from pgmult.sequences.updates import conjugate, lds_moves, pooled, sites
from pgmult.testing import check_geweke, check_model, check_sbc, mutant, rejects

pytestmark = pytest.mark.slow

SYMBOLS = as_sequences([[0, 2, -1, 1, 0], [1, 1]], num_symbols=3)
COUNTS = as_sequences(
    [
        np.array([[1, 2, 0, 0], [0, 0, 0, 0], [3, 0, 1, 1], [0, 6, 0, 0]]),
        np.array([[0, 1, 0, 2], [0, 0, 9, 0]]),
    ],
    inputs=np.random.default_rng(9).standard_normal((6, 2)),
)
# enough observations for a wrong likelihood to show at once
MANY = as_sequences([2 * np.eye(9, dtype=int)[:3] + 1])
TWICE_MANY = as_sequences([2 * np.eye(9, dtype=int)[:6] + 1] * 2)
THREE = as_sequences([[0, 2, -1, 1], [1, 1], [2, 0]])
FEW_OF_MANY = as_sequences([np.array([[20, 2, 1]] * 4)])
LARGE = as_sequences(
    [np.array([[10, 2, 1], [30, 5, 0], [0, 0, 0], [7, 7, 30]]), np.array([[40, 1, 1]])]
)
HUGE = as_sequences([np.array([[300, 60, 20], [100, 300, 40], [50, 400, 90]])])
WHITE = MultinomialLDS(2, loading_shape=3.0, loading_scale=4.0)
MODEL = mutant(WHITE, sampler=lambda self, data: lds_moves.PolyaGamma(self, data))
FIRM = replace(
    MODEL, dynamics=MatrixNormalInverseWishart(0.5 * np.eye(2), 8.0 * np.eye(2), 4.0, np.eye(2))
)
QUIET = replace(WHITE, overdispersion=False)
NOISY = replace(WHITE, overdispersion=True, noise_scale=0.5)
REPLICATES = 200


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (MODEL, SYMBOLS),
        (MODEL, COUNTS),
        (replace(MODEL, inputs="dynamics"), COUNTS),
        (replace(MODEL, inputs="emissions"), COUNTS),
        (MODEL, as_sequences([[0], [1], [0, 1]], order=[1, 0])),
    ],
    ids=["symbols", "counts", "driven", "emissions", "two symbols"],
)
def test_linear_dynamical_systems(model, data):
    check_model(model, data, replicates=REPLICATES, sweeps=4)


@pytest.mark.parametrize(
    ("model", "data"), [(MODEL, COUNTS), (MODEL, THREE)], ids=["counts", "symbols"]
)
def test_several_blocks(model, data):
    check_model(replace(model, block_rows=1), data, replicates=REPLICATES, sweeps=4)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (NOISY, COUNTS),
        (replace(NOISY, block_rows=1), LARGE),
        (replace(NOISY, inputs="dynamics"), COUNTS),
        (QUIET, LARGE),
    ],
    ids=["noise", "noise, blocks", "noise, driven", "sites alone"],
)
def test_moves_around_sites(model, data, monkeypatch):
    monkeypatch.setattr(lds_moves, "many_a_step", lambda data: True)
    check_model(model, data, replicates=150, sweeps=4)  # mutants are refused at 120


@pytest.mark.parametrize(
    ("model", "data"),
    [(WHITE, SYMBOLS), (MultinomialLDS(1, inputs="emissions"), COUNTS)],
    ids=["symbols", "emissions"],
)
def test_paths_by_the_likelihood_itself(model, data):
    check_model(model, data, replicates=REPLICATES, sweeps=4)


WITHOUT_BASIS = {
    "probabilities of the last step": lambda state, data: NOISY.last_probs(state, data)[:, 0],
    "on average": lambda state, data: NOISY.mean_probs(state, data)[0],
    "amplitude": lambda state, data: state.amplitudes[0],
    "largest eigenvalue": lambda state, data: state.eigenvalue_moduli[0],
    "log_likelihood": NOISY.log_likelihood,
}


@pytest.mark.parametrize(
    ("model", "data", "thin"),
    [(WHITE, SYMBOLS, 5), (replace(NOISY, dynamics=FIRM.dynamics), LARGE, 8)],
    ids=["symbols", "noise"],
)
def test_the_posterior_is_reached(model, data, thin):
    check_sbc(model, data, WITHOUT_BASIS, tune=40, thin=thin, replicates=20)


def test_moves_around_sites_keep_what_sbc_looks_at():
    check_geweke(NOISY, LARGE, statistics=WITHOUT_BASIS, replicates=150, sweeps=6)


# ------------------------------------------------------------------ broken ones


class Sticks(ActiveSticks):
    """Active sticks with one thing wrong."""

    @classmethod
    def of(cls, data):
        return cls(*ActiveSticks.of(data))


class WrongSign(Sticks):
    def potential(self, omega, design, weights, size, pull):
        right = super().potential(omega, design, weights, size, pull)
        base = super().potential(0.0 * omega, design, weights, size, pull)
        return DensePotential(right.J, right.h - 2.0 * base.h)


class StaleOmega(Sticks):
    def augment(self, rng, design, weights):
        return super().augment(rng, np.zeros_like(design), weights)


class Transposed(Sticks):
    """Statistics of the sticks in the reverse order."""

    def statistics(self, omega, design, *others):
        squares, linear = super().statistics(omega, design, *others)
        return squares[::-1].copy(), linear[::-1].copy()


class WrongOrder(Sticks):
    @classmethod
    def of(cls, data):
        return super().of(replace(data, order=data.order[::-1].copy()))


def no_inputs(self, state, data, seen=None):
    without = state.dynamics.copy()
    without[:, self.state_dim :] = 0.0
    return MultinomialLDS.states_given(self, replace(state, dynamics=without), data, seen)


def inverted(rng, loadings, shape, scale):
    return 1.0 / np.maximum(right_loading_var(rng, loadings, shape, scale), 1e-6)


right_loading_var = conjugate.sample_loading_var
right_sums = conjugate.transition_sums
right_level = lds_moves.sample_level
right_translation = lds_moves.PolyaGamma.move_level
right_scales = lds_moves.PolyaGamma.scale_density


def leaking(states, offsets, inputs, coefficients):
    """Counts a transition from the end of one sequence to the start of the next."""
    return right_sums(states, np.array([0, len(states)]), inputs, coefficients)


def half_level(rng, precision, linear):
    return right_level(rng, precision, -linear)


def offset_goes_along(self, rng, state, *others):
    moved, delta = right_translation(self, rng, state, *others)
    return replace(moved, weights=2.0 * state.weights - moved.weights), delta


def at_zero(self, data):
    mean, var = MultinomialLDS.offset_moments(self, data)
    return 0.0 * mean, var


def wrong_jacobian(self, state):
    right = right_scales(self, state)
    return right._replace(linear=right.linear - 2.0 * (self.model.state_dim + 1))


STICKS = {
    "kappa with the wrong sign": (WrongSign, MANY),
    "stale omega": (StaleOmega, MANY),
    "statistics of other sticks": (Transposed, COUNTS),
    "wrong order": (WrongOrder, SYMBOLS),
}
FUNCTIONS = {
    "scales inverted": (conjugate, "sample_loading_var", inverted, SYMBOLS),
    "leak across sequences": (conjugate, "transition_sums", leaking, as_sequences([[0, 1]] * 6)),
    "level against its pull": (lds_moves, "sample_level", half_level, SYMBOLS),
}
METHODS = {
    "inputs dropped": ({"states_given": no_inputs}, COUNTS),
    "uniform sticks at 0": ({"offset_moments": at_zero}, MANY),
}
MOVES = {
    "offset goes along with the level": ("move_level", offset_goes_along),
    "scales with the inverse Jacobian of noise_cov": ("scale_density", wrong_jacobian),
}


def fit(state, data):
    """The log likelihood, without blocks."""
    design = MODEL.design(state.states, data)
    return ActiveSticks.of(data).log_likelihood(design, state.weights).sum()


STATISTICS = {
    name: (lambda state, data, name=name: getattr(state, name))
    for name in ("states", "transition", "input_weights", "noise_cov", "loadings", "offset",
                 "loading_var")
} | {
    "log_likelihood": fit,
    "what states add": lambda state, data: (state.states @ state.loadings.T).sum(axis=1),
}  # fmt: skip


def check(model, data):
    check_geweke(model, data, statistics=STATISTICS, replicates=REPLICATES, sweeps=4)


@pytest.mark.parametrize("name", STICKS)
def test_broken_sticks(name, monkeypatch):
    kind, data = STICKS[name]

    def step(self, rng, state, given):
        with monkeypatch.context() as patched:
            patched.setattr(lds_moves, "ActiveSticks", kind)
            return MultinomialLDS.step(self, rng, state, given)

    rejects(check, mutant(MODEL, step=step), data)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_broken_updates(name, monkeypatch):
    place, function, broken, data = FUNCTIONS[name]
    monkeypatch.setattr(place, function, broken)
    rejects(check, FIRM, data)


def white_paths_alone(self, rng, state, data):
    """Nothing moves but along paths by the likelihood itself."""
    moves = lds_moves.ByLikelihood(self, data)
    for _ in range(5):
        state = moves.walk(rng, state)
    return state


def taken_at_once(*arguments):
    """However long its steps."""
    right_walk(*arguments[:-2], 0.8, 3)
    return 0.0


def of_the_step_before(step, *others):
    return right_observations(np.maximum(step - 1, 0), *others)


right_walk, right_observations = white_paths.walk, lds_moves.Observations
WHITE_PATHS = {
    "paths always accepted": (white_paths, "walk", taken_at_once),
    "observations of another step": (lds_moves, "Observations", of_the_step_before),
}


def test_white_paths_alone():
    check(mutant(WHITE, step=white_paths_alone), TWICE_MANY)


@pytest.mark.parametrize("name", WHITE_PATHS)
def test_broken_white_paths(name, monkeypatch):
    place, attribute, broken = WHITE_PATHS[name]
    monkeypatch.setattr(place, attribute, broken)
    rejects(check, mutant(WHITE, step=white_paths_alone), TWICE_MANY)


@pytest.mark.parametrize(
    ("broken", "data"),
    [(forget_a_block, TWICE_MANY), (repeat_the_first_block, as_sequences([[0, 1]] * 8))],
)
def test_broken_blocks(broken, data, monkeypatch):
    broken(monkeypatch)
    rejects(check, replace(MODEL, block_rows=1), data)


class Uncorrected(Pairs):
    def correction(self, psi):
        return 0.0 * psi


def uncorrected(data):
    return Uncorrected(*right_pairs(data))


def pulled_the_wrong_way(self, rng, mean):
    self.kappa = -self.kappa
    return right_noise(self, rng, mean)


def none_where_nothing_is_seen(self, rng, mean):
    noise, pairs = right_noise(self, rng, mean), self.pairs
    seen = np.zeros(mean.shape)
    seen[pairs.step, pairs.stick] = pairs.reaching > 0
    return noise * seen


def not_softened(self, noise_var):
    """Turns around sites as they are."""
    self.noise_var, self._shrink = noise_var, np.ones(len(self.pairs.J))


right_pairs, right_noise = Pairs.of, sites.NoiseIntegratedOut.sample_noise
AROUND_SITES = {
    "correction forgotten": (Pairs, "of", uncorrected),
    "noise pulled the wrong way": (sites.NoiseIntegratedOut, "sample_noise", pulled_the_wrong_way),
    "no noise where nothing is seen": (
        sites.NoiseIntegratedOut,
        "sample_noise",
        none_where_nothing_is_seen,
    ),
}


OTHERS = {
    "noise_sd": lambda state, data: np.log(state.noise_sd),
    "noise": lambda state, data: (state.noise**2).mean(axis=0),
    "noise of unit variance": lambda state, data: (
        ((state.noise / state.noise_sd) ** 2).mean(axis=0)
    ),
    "fit with noise": NOISY.log_likelihood,
}  # fmt: skip


def sites_alone(self, rng, state, data):
    """Nothing moves but around sites; noise that nothing was seen of goes along with its scale."""
    moves = lds_moves.AroundSites(self, data)
    state, held, _ = moves.local_step(rng, state)

    def ask(question):
        if not question.of_held:
            return self.answer(question, rng, state, held, data)[2]
        sums = getattr(held, question.method)(*question.arrays)
        return Sums((), sums if isinstance(sums, tuple) else (sums,))

    moved, _ = moves.around_sites(rng, state, ask)
    sd = moved.noise_sd
    noise, seen = sd * rng.standard_normal(state.noise.shape), held.pairs.reaching > 0
    noise[held.pairs.step[seen], held.pairs.stick[seen]] = held.noise[seen]
    return replace(moved, states=held.states, noise=noise)


def check_noise(model, data, replicates=300):
    check_geweke(model, data, statistics=STATISTICS | OTHERS, replicates=replicates, sweeps=4)


@pytest.mark.parametrize("name", AROUND_SITES)
def test_broken_moves_around_sites(name, monkeypatch):
    place, attribute, broken = AROUND_SITES[name]
    monkeypatch.setattr(place, attribute, broken)
    rejects(check_noise, NOISY, LARGE, replicates=120)


def nothing_seen(self, weights):
    return np.zeros(len(weights))


def test_rows_that_forget_the_likelihood_are_refused(monkeypatch):
    monkeypatch.setattr(sites.SitedBlock, "fits", nothing_seen)
    rejects(check_noise, mutant(NOISY, step=sites_alone), LARGE)


def test_moves_around_sites_alone():
    check_noise(mutant(NOISY, step=sites_alone), HUGE)


def test_sites_that_know_of_no_noise_are_refused(monkeypatch):
    monkeypatch.setattr(sites.SitedBlock, "_soften", not_softened)
    rejects(check_noise, mutant(NOISY, step=sites_alone), HUGE)


@pytest.mark.parametrize("name", METHODS)
def test_broken_pieces(name):
    attributes, data = METHODS[name]

    def step(self, rng, state, given):
        return MultinomialLDS.step(mutant(self, **attributes), rng, state, given)

    rejects(check, mutant(MODEL, step=step), data)


@pytest.mark.parametrize("name", MOVES)
def test_broken_moves(name, monkeypatch):
    move, broken = MOVES[name]

    def step(self, rng, state, given):
        with monkeypatch.context() as patched:
            patched.setattr(lds_moves.PolyaGamma, move, broken)
            return MultinomialLDS.step(self, rng, state, given)

    rejects(check, mutant(MODEL, step=step), SYMBOLS)


def test_states_seen_without_their_link_are_refused(monkeypatch):
    """Probabilities that break the sticks in another order than the sampler."""

    def probs(self, state, data):
        psi = self.design(state.states, data) @ state.weights.T
        return StickBreaking(order=data.order[::-1]).probs(psi)

    rejects(check, mutant(MODEL, probs=probs), SYMBOLS)


# ------------------------------------------------------------------ effects of individuals


def of_animals(count=1, effects="1"):
    rng = np.random.default_rng(5)
    table = {
        "animal": np.repeat(["a", "b", "c"], 4), "day": np.tile(np.arange(4), 3),
        "x": rng.standard_normal(12), "symbol": np.tile(["A", "B", "C"], 4),
        "n": np.full(12, count),
    }  # fmt: skip
    return pgmult.read(table).sequences(
        "symbol", sequence="animal", time="day", count="n", inputs=f"~ x + ({effects} | animal)"
    )


ANIMALS, OFTEN, SLOPES = of_animals(), of_animals(6), of_animals(effects="1 + x")
POOLED = MultinomialLDS(
    2, loading_shape=3.0, loading_scale=1.0, priors={"(1 | animal)": HalfT(6, 0.8)}
)
OF_EFFECTS = STATISTICS | {
    "hyperparameters": lambda state, data: state.hyperparameters,
    "emission_weights": lambda state, data: state.emission_weights,
    "effects of unit variance": lambda state, data: (
        (state.emission_weights[:, 1:] / POOLED.sds(state, data)[:2]) ** 2
    ).sum(axis=1),
}


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (replace(POOLED, priors={"(1 + x | animal)": HalfT(6, 0.8)}), SLOPES),
        (replace(POOLED, inputs="emissions", block_rows=1), OFTEN),
        (replace(POOLED, inputs="dynamics"), ANIMALS),
        (replace(POOLED, inputs="emissions", overdispersion=True), OFTEN),
    ],
    ids=["both, slopes", "emissions, blocks", "dynamics", "emissions, noise"],
)
def test_effects_of_individuals(model, data):
    check_model(model, data, replicates=REPLICATES, sweeps=4)


def stretched_without_the_data(rng, family, x, w, psi, total):
    return right_interwoven(rng, family, x, w, psi, lambda psi: 0.0)


def sds_of_the_prior(self, x):
    return np.ones(self.num_effects)


right_interwoven = pooled.interwoven


@pytest.mark.parametrize(
    ("place", "name", "broken"),
    [
        (pooled, "interwoven", stretched_without_the_data),
        (pooled.Pooled, "variances", sds_of_the_prior),
    ],
)
def test_broken_effects_of_individuals(place, name, broken, monkeypatch):
    def step(self, rng, state, data):
        with monkeypatch.context() as patched:
            patched.setattr(place, name, broken)
            return MultinomialLDS.step(self, rng, state, data)

    rejects(
        check_geweke, mutant(POOLED, step=step), OFTEN, statistics=OF_EFFECTS, replicates=200,
        sweeps=4,
    )  # fmt: skip
