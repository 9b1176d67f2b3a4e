"""The sampler of Markov chains with inputs is right, and broken ones are refused."""

import numpy as np
import pytest

import pgmult
from pgmult.priors import HalfT
from pgmult.sequences.models import mixed_markov
from pgmult.sequences.models.mixed_markov import MixedMarkovChain
from pgmult.sequences.updates import intercepts
from pgmult.sequences.updates.intercepts import Intercepts
from pgmult.testing import check_geweke, check_model, mutant, rejects

pytestmark = pytest.mark.slow


class OfOneBase(mixed_markov.TransitionSampler):
    """Moves around an approximation that is found once, of the data below."""

    def _approximations(self, is_open):
        if not BASES:
            BASES.extend(super()._approximations(np.ones_like(is_open)))
        return BASES


class OfOneDistribution(mixed_markov.InterceptSampler):
    """Moves around distributions that are found once, of the data below."""

    def _distributions(self):
        if not BASES:
            BASES.extend(super()._distributions())
        return BASES


class DrawnOneByOne(OfOneDistribution):
    """Symbols are drawn where there are too many ways to fill missing ones in."""

    def _all_ways(self):
        return None


@pytest.fixture(autouse=True)
def bolder(monkeypatch):
    """Distributions of the data below are far from what simulated data ask for: slice always."""
    BASES.clear()
    monkeypatch.setattr(intercepts, "_SLICED", 1.0)


BASES = []
ITSELF = MixedMarkovChain(2, priors={"(1 | who)": HalfT(6, 0.8)})
MODEL = mutant(ITSELF, sampler=lambda self, data: OfOneDistribution(self, data))
TABLE = {
    "who": np.repeat(["a", "b", "c"], 6), "x": np.tile([-1.0, 0.5, 1.0], 6),
    "t": np.tile(np.arange(6), 3), "is": np.array(list("ABBABA") * 3),
}  # fmt: skip
WHOLE = pgmult.read(TABLE).sequences("is", sequence="who", time="t", inputs="~ x + (1 | who)")
MISSING = [0, 2, 3, 8, 10, 13, 16, 17]
SLOPES = pgmult.read(TABLE).sequences("is", sequence="who", time="t", inputs="~ (x || who)")
GAPS = pgmult.read(
    TABLE | {"is": np.array([None if i in MISSING else s for i, s in enumerate(TABLE["is"])])}
).sequences("is", sequence="who", time="t", inputs="~ x + (1 | who)")


def symbol_after_itself(state, data):
    """Repeats, which are far more frequent where a chain stays."""
    symbols = np.full(data.num_steps, -1)
    symbols[np.diff(data.indptr) > 0] = data.symbols
    return np.mean((symbols[1:] == symbols[:-1]) & (symbols[1:] >= 0))


STATISTICS = {
    "weights": lambda state, data: state.weights,
    "hyperparameters": lambda state, data: state.hyperparameters,
    "initial": lambda state, data: state.initial,
    "repeats": symbol_after_itself,
    "fit": MODEL.log_likelihood,
}


def check(model, data):
    check_geweke(model, data, statistics=STATISTICS, replicates=100, sweeps=2)


@pytest.mark.parametrize(
    ("data", "sampler"),
    [(GAPS, OfOneDistribution), (GAPS, DrawnOneByOne), (SLOPES, OfOneBase)],
    ids=["gaps", "symbols drawn", "slopes"],
)
def test_markov_chains_with_inputs(data, sampler):
    has_slopes = "(x || who)" in data.design.formula
    sds = {"(x || who)" if has_slopes else "(1 | who)": HalfT(6, 0.8)}
    model = mutant(MixedMarkovChain(2, priors=sds), sampler=lambda self, d: sampler(self, d))
    check_model(model, data, replicates=100, sweeps=2)


@pytest.mark.parametrize(
    ("formula", "sampler"),
    [("~ x + (1 | who)", OfOneDistribution), ("~ (x || who)", OfOneBase)],
    ids=["intercepts", "slopes"],
)
def test_transitions_that_are_ruled_out(formula, sampler):
    """Nobody leaves "C", and "B" does not lead there."""
    symbols = np.array([None if i in (2, 9, 10, 15) else s for i, s in enumerate("ABBACC" * 3)])
    data = pgmult.read(TABLE | {"is": symbols}).sequences(
        "is", sequence="who", time="t", inputs=formula
    )
    allowed = np.array([[1, 1, 1], [1, 1, 0], [0, 0, 1]])
    term = formula.partition("~ ")[2].removeprefix("x + ")
    chain = MixedMarkovChain(3, allowed=allowed, priors={term: HalfT(6, 0.8)})
    model = mutant(chain, sampler=lambda self, d: sampler(self, d))
    kinds = STATISTICS | {"fit": chain.log_likelihood}
    check_geweke(model, data, statistics=kinds, replicates=60, sweeps=2)


class OfAnotherStep(OfOneDistribution):
    """Transitions with the inputs of the step before."""

    def _patterns(self, individuals, num, step, pairs):
        return super()._patterns(individuals, num, step - 1, pairs)


class AnyWay(OfOneDistribution):
    """Missing symbols filled in as if all ways were alike."""

    def _move(self, rng, initial, x, w):
        super()._move(rng, initial, x, w)
        return self._ways.choose(rng, np.zeros(len(self._ways.first)))


class Squeezed(Intercepts):
    """Coefficients that move with the standard deviation as if that did not change volumes."""

    def _log_density(self, at, patterns, log_likelihood):
        whole = super()._log_density(at, patterns, log_likelihood)
        return whole - (len(at) - 1) * np.log(intercepts._scales(at)[1])


class WithoutJacobian(OfOneDistribution):
    """Moves without the Jacobian of their coordinates."""

    def _distributions(self):
        for stick in self._sticks:
            stick.__class__ = Squeezed
        return super()._distributions()


class FirstSymbolsIgnored(OfOneDistribution):
    """First symbols as if none had been seen."""

    def step(self, rng, state):
        moved = super().step(rng, state)
        initial = rng.dirichlet(np.ones(self.model.num_states))
        return self.model.state_at(initial, moved.weights, moved.hyperparameters, self.data)


@pytest.mark.parametrize(
    ("broken", "data", "sd"),
    [
        (OfAnotherStep, WHOLE, 0.8), (FirstSymbolsIgnored, WHOLE, 0.8), (AnyWay, GAPS, 4.0),
        (WithoutJacobian, WHOLE, 4.0),
    ],
)  # fmt: skip
def test_broken_samplers(broken, data, sd):
    model = MixedMarkovChain(2, priors={"(1 | who)": HalfT(6, sd)})
    rejects(check, mutant(model, sampler=lambda self, data: broken(self, data)), data)
