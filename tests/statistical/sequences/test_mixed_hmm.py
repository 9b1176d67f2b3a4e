"""Hidden Markov models with inputs: exact, beside weighted draws from the prior, and mutants."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.special import expit

import pgmult
from pgmult.priors import HalfT, Normal
from pgmult.sequences import MixedHMM
from pgmult.sequences.models import mixed_hmm
from pgmult.sequences.models.hmm import log_predictive_of
from pgmult.sequences.updates import summed_out
from pgmult.testing import check_geweke, check_model, check_sbc, mutant, rejects

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def short_paths(monkeypatch):
    """Any length is exact."""
    monkeypatch.setattr(summed_out, "_LONGEST", 4)


RNG = np.random.default_rng(3)
TABLE = {
    "animal": np.repeat(["a", "b", "c"], 6), "day": np.tile([1, 2, 3, 4, 6, 7], 3),
    "x": np.resize([-1.0, 0.0, 1.0, 1.0, -1.0, 0.0, 0.5], 18),
    "symbol": np.tile(["A", "B", "C"], 6), "n": RNG.integers(1, 4, size=18),
}  # fmt: skip
PRIORS = {"fixed": Normal(0.0, 0.8), "Intercept": Normal(0.0, 1.0), "(1 | animal)": HalfT(6, 0.6)}


def sequences(formula="~ x + (1 | animal)", table=TABLE):
    with pytest.warns(UserWarning, match="no row"):
        return pgmult.read(table).sequences(
            "symbol", sequence="animal", time="day", count="n", inputs=formula
        )


DATA = sequences()
MODELS = {
    inputs: MixedHMM(2, inputs=inputs, priors=PRIORS, start_tries=1, start_sweeps=0)
    for inputs in ("transitions", "emissions", "both")
}
BOTH, THREE = MODELS["both"], replace(MODELS["both"], num_states=3)


def mean_symbol(state, data):
    return (data.to_csr().toarray().mean(axis=0) * state.emission).sum()


def suits(state, data):
    """Whether weights of columns and groups suit the data better than their opposites."""
    other = state.weights * np.where(np.arange(state.weights.shape[1]) > 0, -1.0, 1.0)
    model = replace(BOTH, num_states=len(state.initial))
    one, two = (model.log_likelihood(s, data) for s in (state, replace(state, weights=other)))
    return one - two


def of_unit_variance(state, data):
    """How many effects of animals are within their standard deviation."""
    model = replace(BOTH, num_states=len(state.initial))
    return (np.abs(state.weights[:, -3:]) < model.sds(state, data)).mean()


STATISTICS = {
    "initial": lambda state, data: state.initial,
    "weights": lambda state, data: state.weights,
    "squares": lambda state, data: state.weights**2,
    "hyperparameters": lambda state, data: state.hyperparameters,
    "log_likelihood": BOTH.log_likelihood,
    "mean symbol": mean_symbol,
}


def test_states_that_are_known_at_some_steps():
    every = ["1", None, None, "2", None] * DATA.num_steps
    data = DATA.with_known_states(every[: DATA.num_steps])
    own = {"log_likelihood": BOTH.log_likelihood, "suits": suits}
    check_geweke(BOTH, data, statistics=STATISTICS | own, replicates=80)


@pytest.mark.parametrize("inputs", ["transitions", "emissions"])
def test_mixed_hidden_markov_models(inputs):
    model = MODELS[inputs]
    own = {"log_likelihood": model.log_likelihood}
    check_model(model, DATA, statistics=STATISTICS | own, replicates=250)


def test_other_inputs_on_transitions_than_on_emissions():
    parts = {"transitions": "~ x", "emissions": "~ 1 + (1 | animal)"}
    model = replace(BOTH, inputs=parts)
    own = {"log_likelihood": model.log_likelihood}
    check_model(model, DATA, statistics=STATISTICS | own, replicates=250)


def test_three_states_with_inputs_on_all():
    own = {"log_likelihood": THREE.log_likelihood, "suits": suits}
    check_geweke(THREE, DATA, statistics=STATISTICS | own, replicates=100)


def test_the_posterior_is_reached():
    identified = {
        "log_likelihood": BOTH.log_likelihood, "mean symbol": mean_symbol,
        "sd": lambda state, data: state.hyperparameters.mean(),
    }  # fmt: skip
    check_sbc(BOTH, DATA, identified, tune=20, thin=3, draws=15, replicates=40)


# ------------------------------------------------------------------ mutants


def stepping(place, name, other, inputs="both"):
    """A model whose sweeps have another function somewhere."""
    model = MODELS[inputs]

    def step(self, rng, state, data):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(place, name, other)
            return model.step(rng, state, data)

    return mutant(model, step=step)


def shifted(self, *args):
    right = moved(self, *args)
    return right._replace(constants=right.constants + 0.7)


def unpooled(rng, family, x, w):
    """Standard deviations as if the weights had nothing to do with them."""
    return family.sample(rng)[0]


class Late(mixed_hmm.SummedOut):
    """Paths of emissions told by the inputs of the step after."""

    def __init__(self, model, state, data):
        super().__init__(model, state, data)
        away = np.roll(self.seen.which, -1) - self.seen.which
        symbols = self._blank.symbols + data.num_symbols * away[data.step_of_entry]
        self._blank = self._blank._replace(symbols=symbols.astype(np.int32))


def indifferent(self, parts, size, count):
    """Paths that end where they please, whatever the data say."""
    start = log_predictive_of(self.chains(self.psi(parts))).sum()
    grown = leap(self, parts, size, count)
    return grown - log_predictive_of(self.chains(self.psi(parts))).sum() + start


def free(self, information, near):
    """Weights without a prior."""
    found = metric(self, information, near)
    precision = found.precision
    return found._replace(precision=precision._replace(values=0.0 * precision.values))


def hasty(rng, parts, leap, num_steps):
    """Paths that begin faster than they say."""

    def fast(parts, size, count):
        for part in parts:
            part.velocity[:] *= 1.5
        return leap(parts, size, count)

    return walk_summed_out(rng, parts, fast, num_steps)


def unscaled(rng, parts, leap, num_steps):
    """Standard deviations that move, and weights that do not move with them."""
    moved = walk_summed_out(rng, parts, leap, num_steps)
    return tuple(
        own._replace(weights=np.where(own.scales.of < 0, own.weights, start.weights))
        for own, start in zip(moved, parts, strict=True)
    )


leap = mixed_hmm.SummedOut.leap
moved, metric = summed_out.Acting.moved, summed_out.Acting.metric
walk_summed_out = summed_out.walk_summed_out
BROKEN = {
    "no prior of weights": stepping(summed_out.Acting, "metric", free),
    "constants forgotten": stepping(summed_out.Acting, "moved", shifted),
    "velocities of another law": stepping(summed_out, "walk_summed_out", hasty),
    "standard deviations without their weights": stepping(summed_out, "walk_summed_out", unscaled),
    "standard deviations from their prior": stepping(mixed_hmm, "given_weights", unpooled),
    "walked whatever the data say": stepping(mixed_hmm.SummedOut, "leap", indifferent),
}


MANY = sequences(table=TABLE | {"n": np.full(18, 8)})


@pytest.mark.parametrize("kind", BROKEN)
def test_mutants_are_refused(kind):
    statistics = STATISTICS | {"suits": suits, "of unit variance": of_unit_variance}
    replicates = 300 if kind == "walked whatever the data say" else 100
    assert rejects(check_geweke, BROKEN[kind], DATA, statistics=statistics, replicates=replicates)


class WithoutThePrior(mixed_hmm.SummedOut):
    """Paths to which nothing is as if it had been observed before."""

    def __init__(self, *args):
        super().__init__(*args)
        self.before = tuple(0.0 * own for own in self.before)


@pytest.mark.parametrize("broken", [False, True])
def test_paths_without_the_prior_of_rows_are_refused(broken):
    """Paths alone, without the draw of rows given states that would hide it."""
    some = {name: column[:6] for name, column in TABLE.items()}
    data = sequences("~ x", some)
    priors = {name: PRIORS[name] for name in ("fixed", "Intercept")}
    model = replace(MODELS["transitions"], emission_concentration=3.0, priors=priors)

    def step(self, rng, state, data):
        with pytest.MonkeyPatch.context() as patched:
            if broken:
                patched.setattr(mixed_hmm, "SummedOut", WithoutThePrior)
            rows, _ = mixed_hmm.move_probabilities(rng, model, state, data)
        return model.whole(rows, rows.weights, rows.hyperparameters, rows.tuning, data)

    statistics = {
        "emission": lambda state, data: (state.emission**2).sum(), "fit": model.log_likelihood,
    }  # fmt: skip
    check = partial(check_geweke, statistics=statistics, replicates=60)
    alone = mutant(model, step=step)
    rejects(check, alone, data) if broken else check(alone, data)


def test_inputs_of_another_step_are_refused():
    model = MODELS["emissions"]

    def fits(state, data):
        """Whether the slopes suit the data better than their opposites."""
        signs = np.where(np.arange(state.weights.shape[1]) == 1, -1.0, 1.0)
        other = replace(state, weights=signs * state.weights)
        return model.log_likelihood(state, data) - model.log_likelihood(other, data)

    broken = stepping(mixed_hmm, "SummedOut", Late, "emissions")
    rejects(check_geweke, broken, MANY, statistics={"fits": fits}, replicates=100)


# ------------------------------------------------------------------ beside the prior, weighted


def test_posterior_means_are_those_of_weighted_draws_from_the_prior():
    """Two states, two symbols, transitions of three animals: likelihoods by another way."""
    symbols = np.array([0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0])
    table = TABLE | {"symbol": np.array(["A", "B"])[symbols], "day": np.tile(np.arange(6), 3)}
    data = pgmult.read(table).sequences(
        "symbol", sequence="animal", time="day", inputs="~ x + (1 | animal)", order="given"
    )
    model = MixedHMM(2, emission_concentration=1.0, priors=PRIORS)
    posterior = pgmult.sample(
        model, data, draws=2500, tune=100, chains=1, random_seed=0, progressbar=False
    )
    rng, size = np.random.default_rng(0), 200_000
    scale = data.design.scale[1]
    sds = np.abs(0.6 * rng.standard_t(6, size=(size, 2)))
    weights = rng.standard_normal((size, 2, 5)) * [1.0, 0.8 * scale, 1.0, 1.0, 1.0]
    weights[..., 2:] *= sds[..., None]
    emission = rng.dirichlet([1.0, 1.0], size=(size, 2))
    forward = rng.dirichlet([1.0, 1.0], size=size)
    first, log_weights = forward, np.zeros(size)
    for t in range(18):
        x = data.design.matrix[t]
        if t % 6 == 0:
            forward = first
        else:
            stay = expit(weights[..., :2] @ x + weights[..., 2 + t // 6])
            forward = forward * stay + ((forward * (1.0 - stay))[:, ::-1])
        forward = forward * emission[:, :, symbols[t]]
        total = forward.sum(axis=1)
        log_weights += np.log(total)
        forward = forward / total[:, None]
    mass = np.exp(log_weights - log_weights.max())
    mass /= mass.sum()
    assert 1.0 / (mass**2).sum() > 5000
    found = {
        "staying": (weights[..., 0].sum(axis=1), posterior["weights"][..., 0].sum(axis=2)),
        "effect of x": (weights[..., 1].sum(axis=1), posterior["weights"][..., 1].sum(axis=2)),
        "sds": (sds.sum(axis=1), posterior["sds"].sum(axis=(2, 3))),
        "an animal's": (weights[..., 3].sum(axis=1), posterior["weights"][..., 3].sum(axis=2)),
        "emission": (
            (emission[..., 0] ** 2).sum(axis=1), (posterior["emission"][..., 0] ** 2).sum(axis=2)
        ),
    }  # fmt: skip
    for name, (drawn, chain) in found.items():
        mean = mass @ drawn
        sd = np.sqrt(mass @ (drawn - mean) ** 2)
        error = sd / np.sqrt(pgmult.sampling.diagnostics.ess_bulk(chain[..., None])[0])
        assert abs(chain.mean() - mean) < 4.5 * error, name
