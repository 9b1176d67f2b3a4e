"""The harness: right samplers pass at the stated rate, every kind of broken one is refused."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.stats
from toy_models import (
    MixtureModel,
    MixtureState,
    NormalModel,
    NormalState,
    Numbers,
    Table,
    log_inverse_gamma,
)

from pgmult.testing import (
    Verdict,
    check_geweke,
    check_likelihood,
    check_model,
    check_sbc,
    conditional_ratio,
    geweke,
    likelihood,
    mutant,
    rejects,
    sbc,
)

normal = NormalModel()
numbers = Numbers(y=np.zeros(4), offset=np.array([0.0, 1.0, -2.0, 3.0]))
mixture = MixtureModel()
table = Table(np.array([[3, 1, 0], [2, 2, 2], [0, 0, 0], [1, 0, 5]]))


# ------------------------------------------------------------------ right samplers


@pytest.mark.parametrize(
    ("model", "data"), [(normal, numbers), pytest.param(mixture, table, marks=pytest.mark.slow)]
)
def test_right_samplers_pass(model, data):
    assert check_model(model, data).passed
    assert check_sbc(model, data).passed


@pytest.mark.slow
@pytest.mark.parametrize("sweeps", [1, 4])
def test_geweke_p_values_of_a_right_sampler_are_uniform(sweeps):
    verdicts = [
        geweke(normal, numbers, replicates=100, sweeps=sweeps, level=0.0, random_seed=seed)
        for seed in range(150)
    ]
    p_values = np.array([verdict.p_values for verdict in verdicts])
    columns = [scipy.stats.kstest(column, "uniform").pvalue for column in p_values.T]
    assert min(columns) * len(columns) > 1e-3
    alarms = sum(verdict.p_value < 0.1 for verdict in verdicts)
    assert scipy.stats.binomtest(alarms, len(verdicts), 0.1, "greater").pvalue > 1e-3


@pytest.mark.slow
def test_sbc_p_values_of_a_right_sampler_are_uniform():
    p_values = np.array(
        [
            sbc(
                normal, numbers, ["mean"], replicates=50, tune=4, draws=9, thin=4, level=0.0,
                random_seed=seed,
            ).p_value
            for seed in range(120)
        ]
    )  # fmt: skip
    assert scipy.stats.kstest(p_values, "uniform").pvalue > 1e-3


def test_likelihood_p_values_of_a_right_model_are_not_too_small():
    p_values = [
        likelihood(normal, numbers, replicates=50, level=0.0, random_seed=seed).p_value
        for seed in range(200)
    ]
    alarms = sum(p < 0.1 for p in p_values)
    assert scipy.stats.binomtest(alarms, len(p_values), 0.1, "greater").pvalue > 1e-3


def test_a_verdict_is_a_pure_function_of_the_seed():
    one, two, other = (geweke(mixture, table, replicates=80, random_seed=s) for s in (3, 3, 4))
    assert one.statistics == two.statistics
    np.testing.assert_array_equal(one.scores, two.scores)
    assert not np.array_equal(one.scores[:4], other.scores[:4])


def test_a_doubtful_run_is_decided_by_one_of_four_times_the_length():
    runs = [geweke(normal, numbers, replicates=60, level=0.5, random_seed=s) for s in range(20)]
    assert {run.replicates for run in runs} == {60, 240}


def test_a_gross_error_is_refused_after_few_of_the_replicates():
    lost = mutant(normal, **NORMAL_MUTANTS["wrong sign"])
    early = geweke(lost, numbers, replicates=2000)
    assert not early.passed
    assert early.replicates == 62
    assert early.p_value < 0.01**3 / 17
    # A look changes no draw of a run that goes on.
    whole = geweke(normal, numbers, replicates=2000)
    unseen = geweke(normal, numbers, replicates=2000, level=0.0)
    assert whole.replicates == unseen.replicates == 2000
    np.testing.assert_array_equal(whole.scores, unseen.scores)


# ------------------------------------------------------------------ the conditional ratio


def log_joint(state, data):
    return (
        normal.log_likelihood(state, data)
        - 0.5 * state.mean**2 / normal.prior_variance
        + log_inverse_gamma(state.variance, normal.shape, normal.rate)
    )


data = Numbers(y=np.array([0.3, 2.0, -1.4, 3.9]), offset=numbers.offset)


def test_conditional_ratio_accepts_both_blocks():
    def log_mean(mean, variance=0.7):
        precision, h = normal.mean_posterior(variance, data)
        return -0.5 * precision * mean**2 + h * mean

    def log_variance(variance, mean=0.4):
        return log_inverse_gamma(variance, *normal.variance_posterior(mean, data))

    points = np.linspace(0.2, 3.0, 7)
    assert (
        conditional_ratio(lambda m: log_joint(NormalState(m, 0.7), data), log_mean, points) < 1e-9
    )
    conditional_ratio(lambda v: log_joint(NormalState(0.4, v), data), log_variance, points)


@pytest.mark.parametrize("wrong", ["sign", "precision", "offset"])
def test_conditional_ratio_refuses_a_wrong_block(wrong):
    def log_mean(mean, variance=0.7):
        seen = replace(data, offset=0.0 * data.offset) if wrong == "offset" else data
        precision, h = normal.mean_posterior(variance, seen)
        precision = 1.0 / precision if wrong == "precision" else precision
        return -0.5 * precision * mean**2 + (-h if wrong == "sign" else h) * mean

    message = rejects(
        conditional_ratio,
        lambda m: log_joint(NormalState(m, 0.7), data),
        log_mean,
        np.linspace(-1.0, 1.0, 5),
    )
    assert "varies by" in message


def test_conditional_ratio_refuses_points_that_prove_nothing():
    with pytest.raises(ValueError, match="at least 2"):
        conditional_ratio(np.sin, np.sin, [1.0])
    with pytest.raises(ValueError, match="the same at all points"):
        conditional_ratio(lambda x: 0.0, np.sin, [1.0, 2.0])
    with pytest.raises(AssertionError, match="log_conditional is nan at point 1"):
        conditional_ratio(np.cos, lambda x: np.nan if x > 1.5 else x, [1.0, 2.0])


# ------------------------------------------------------------------ broken samplers


def stale_variance(self, rng, state, data):
    """Draws the variance given the mean of the sweep before."""
    return replace(normal.step(rng, state, data), variance=normal.step(rng, state, data).variance)


def wrong_mean_posterior(kind):
    def mean_posterior(self, variance, data):
        precision, h = normal.mean_posterior(variance, data)
        if kind == "wrong sign":
            return precision, -h
        if kind == "variance for precision":
            return 1.0 / precision, h / precision**2
        if kind == "prior forgotten":
            return precision - 1.0 / normal.prior_variance, h
        if kind == "offset forgotten":
            return precision, data.y.sum() / variance
        return precision, data.y[1:].sum() / variance  # a row forgotten

    return mean_posterior


NORMAL_MUTANTS = {
    **{
        kind: {"mean_posterior": wrong_mean_posterior(kind)}
        for kind in (
            "wrong sign",
            "variance for precision",
            "prior forgotten",
            "offset forgotten",
            "row forgotten",
        )
    },
    "half a degree of freedom lost": {
        "variance_posterior": lambda self, mean, data: np.subtract(
            normal.variance_posterior(mean, data), (0.5, 0.0)
        )
    },
    "stale variance": {"step": stale_variance},
    "prior mismatch": {
        "prior": lambda self, rng, data: replace(normal, shape=3.0).prior(rng, data)
    },
    "simulate mismatch": {
        "simulate": lambda self, rng, state, data: normal.simulate(
            rng, replace(state, variance=state.variance**2), data
        )
    },
}


@pytest.mark.parametrize("kind", NORMAL_MUTANTS)
def test_geweke_refuses_a_broken_normal_model(kind):
    message = rejects(check_geweke, mutant(normal, **NORMAL_MUTANTS[kind]), numbers)
    assert "geweke FAILED" in message


def mixture_step(change):
    def step(self, rng, state, data):
        log_odds = mixture.log_odds(state, data)
        component = np.argmax(log_odds + rng.gumbel(size=log_odds.shape), axis=1)
        member = component[:, None] == np.arange(2)
        sums = member.T @ data.counts
        if change == "N instead of N_k":
            sums = np.tile(data.counts.sum(axis=0), (2, 1))
        if change == "stale allocation":
            sums = (state.component[:, None] == np.arange(2)).T @ data.counts
        alpha = 1.0 if change == "wrong concentration" else mixture.concentration
        sizes = member.sum(axis=0) * (2 if change == "rows counted twice" else 1)
        probs = np.array([rng.dirichlet(row) for row in alpha + sums])
        return MixtureState(rng.dirichlet(1.0 + sizes), probs, component)

    return step


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", ["N instead of N_k", "stale allocation", "rows counted twice", "wrong concentration"]
)
def test_geweke_refuses_a_broken_mixture(change):
    rejects(check_geweke, mutant(mixture, step=mixture_step(change)), table)


@pytest.mark.slow
def test_the_step_that_the_mixture_mutants_change_is_right():
    check_geweke(mutant(mixture, step=mixture_step(None)), table)


def test_geweke_finds_a_bias_of_a_tenth_of_a_standard_deviation():
    def step(self, rng, state, data):
        state = normal.step(rng, state, data)
        return replace(state, mean=state.mean + 0.1 * np.sqrt(state.variance / len(data.y)))

    rejects(check_geweke, mutant(normal, step=step), numbers, replicates=4000)


def test_sbc_sees_a_chain_that_never_arrives_and_geweke_does_not():
    slow = mutant(
        normal,
        step=lambda self, rng, state, data: (
            normal.step(rng, state, data) if rng.uniform() < 0.01 else state
        ),
    )
    check_geweke(slow, numbers)
    assert "sbc FAILED" in rejects(check_sbc, slow, numbers, ["mean"], tune=5, thin=1)


@pytest.mark.parametrize("kind", ["wrong sign", "offset forgotten", "simulate mismatch"])
def test_sbc_refuses_a_broken_model(kind):
    rejects(
        check_sbc, mutant(normal, **NORMAL_MUTANTS[kind]), numbers, tune=20, thin=2, replicates=600
    )


def test_sbc_takes_methods_and_functions():
    size = {"largest": lambda state, data: np.abs(normal.residual(state, data)).max()}
    assert sbc(normal, numbers, size).statistics == ("largest",)
    verdict = sbc(normal, numbers, ["residual"])
    assert verdict.passed
    assert verdict.statistics[0] == "residual[0]"
    with pytest.raises(ValueError, match="mean, variance"):
        sbc(normal, numbers, ["sigma"])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda self, state, data: 0.5 * normal.log_likelihood(state, data),
        lambda self, state, data: -normal.log_likelihood(state, data),
        lambda self, state, data: normal.log_likelihood(state, replace(data, offset=0 * data.y)),
        lambda self, state, data: 0.0,
    ],
)
def test_the_coin_refuses_a_wrong_likelihood(wrong):
    rejects(check_likelihood, mutant(normal, log_likelihood=wrong), numbers)


def test_the_coin_takes_a_likelihood_with_the_allocations_integrated_out():
    """Less is known, but what is known is calibrated: the marginal is a likelihood too."""
    marginal = mutant(
        mixture,
        log_likelihood=lambda self, state, data: mixture.marginal_log_likelihood(state, data),
    )
    check_likelihood(marginal, table)


# ------------------------------------------------------------------ conformance


@dataclass
class Thawed:
    mean: float
    variance: float


def in_place(self, rng, state, data):
    data.y[0] += 1.0
    return normal.step(rng, state, data)


def seedless(self, rng, state, data):
    return normal.step(np.random.default_rng(), state, data)


def half_stuck(self, rng, state, data):
    new = mixture.step(rng, state, data)
    probs = new.probs.copy()
    probs[0] = state.probs[0]
    return replace(new, probs=probs)


def growing(self, rng, state, data):
    return Table(np.vstack([mixture.simulate(rng, state, data).counts, [[1, 1, 1]]]))


BROKEN_CONTRACTS = {
    "must not change its arguments, but it changed y": (normal, {"step": in_place}),
    "same draws for the same seed": (normal, {"step": seedless}),
    "must be a frozen dataclass, Thawed": (
        normal,
        {"prior": lambda self, rng, data: Thawed(rng.normal(), 1.0)},
    ),
    "variance of the state must be a plain array": (
        normal,
        {"prior": lambda self, rng, data: NormalState(rng.normal(), [1.0])},
    ),
    "must have a method prior": (normal, {"prior": None}),
    "must have an attribute dims": (normal, {"dims": property()}),
    "prior must not read the counts": (
        normal,
        {"prior": lambda self, rng, data: NormalState(data.y[0] + rng.normal(), 1.0)},
    ),
    "simulate must not read the counts": (
        normal,
        {
            "simulate": lambda self, rng, state, data: Numbers(
                0.5 * data.y + rng.normal(size=4), data.offset
            )
        },
    ),
    "simulate must keep the totals": (mixture, {"simulate": growing}),
    "simulate: counts must stay": (
        mixture,
        {
            "simulate": lambda self, rng, state, data: Table(
                mixture.simulate(rng, state, data).counts.astype(np.int32)
            )
        },
    ),
    "init: component must stay": (
        mixture,
        {
            "init": lambda self, rng, data: MixtureState(
                np.ones(2) / 2, np.ones((2, 3)) / 3, np.zeros(4, dtype=np.int32)
            )
        },
    ),
    "step: component must stay": (
        mixture,
        {
            "step": lambda self, rng, state, data: replace(
                mixture.step(rng, state, data), component=state.component.astype(np.int32)
            )
        },
    ),
    "log_likelihood must be a finite number": (
        normal,
        {"log_likelihood": lambda self, state, data: np.inf},
    ),
    "dims names the axes ('row',) of mean, its state ()": (
        normal,
        {"dims": {"mean": ("row",)}, "default_keep": ()},
    ),
    "residual must have the axes": (normal, {"dims": {"residual": ()}, "default_keep": ()}),
    "neither an attribute of the state nor a method": (
        normal,
        {"dims": {"sigma": ()}, "default_keep": ()},
    ),
    "not in dims": (normal, {"default_keep": ("sigma",)}),
    "axis 'component' has length 2, but 3": (
        mixture,
        {"dims": {"probs": ("component", "component")}, "default_keep": ()},
    ),
    "coords has 9 labels": (normal, {"coords": lambda self, data: {"row": range(9)}}),
    "label_dims names": (normal, {"label_dims": frozenset({"topic"})}),
    "entries of probs are where the chain started": (mixture, {"step": half_stuck}),
    "entries of mean are where": (normal, {"step": lambda self, rng, state, data: state}),
    "likelihood FAILED": (normal, {"log_likelihood": lambda self, state, data: -state.mean}),
    "geweke FAILED": (normal, NORMAL_MUTANTS["offset forgotten"]),
}


@pytest.mark.parametrize("message", BROKEN_CONTRACTS)
def test_check_model_refuses_with_a_sentence(message):
    model, changes = BROKEN_CONTRACTS[message]
    example = numbers if model is normal else table
    assert message in rejects(check_model, mutant(model, **changes), example, replicates=200)


def half_a_degree_of_freedom_too_many(self, mean, data):
    shape, rate = normal.variance_posterior(mean, data)
    return shape + 0.25, rate


def test_check_model_makes_as_many_replicates_as_a_subtle_mutant_takes():
    subtle = mutant(normal, variance_posterior=half_a_degree_of_freedom_too_many)
    assert check_model(subtle, numbers, replicates=300, random_seed=1).passed
    assert "geweke FAILED" in rejects(check_model, subtle, numbers, random_seed=1)


def test_check_model_finds_draws_that_depend_on_the_number_of_threads():
    from pgmult.compiled.rows import num_workers

    def step(self, rng, state, data):
        rng.standard_normal(num_workers(len(data.y)))
        return normal.step(rng, state, data)

    assert "2 row threads" in rejects(check_model, mutant(normal, step=step), numbers)


def test_check_model_finds_a_state_that_hides_something():
    memory = {}

    def step(self, rng, state, data):
        new = normal.step(rng, state, data)
        shifted = replace(new, mean=new.mean + memory.get(id(state), 0.0))
        memory[id(shifted)] = 1.0
        keep.append(shifted)
        return shifted

    keep = []
    message = rejects(check_model, mutant(normal, step=step), numbers)
    assert "rebuilt from its fields" in message


# ------------------------------------------------------------------ small parts


def test_a_mutant_is_a_changed_copy():
    changed = mutant(
        replace(normal, rate=3.0), shape_name="a", init=lambda self, rng, data: self.rate
    )
    assert changed.init(None, None) == 3.0
    assert isinstance(changed, NormalModel)
    assert type(changed).__name__ == "BrokenNormalModel"
    assert normal.init(None, numbers).variance == 1.0


def test_rejects_demands_an_assertion_error():
    def crash():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        rejects(crash)
    with pytest.raises(AssertionError, match="list did not reject"):
        rejects(list)


def test_statistics_that_are_constant_up_to_rounding_are_left_out():
    def total(state, data):
        return state.probs.sum()

    functions = {"total": total, "weights": lambda state, data: state.weights}
    assert not any(
        "total" in name
        for name in geweke(mixture, table, statistics=functions, replicates=200).statistics
    )
    assert sbc(mixture, table, functions, replicates=20).statistics[0] == "weights[0]"
    with pytest.raises(AssertionError, match="no statistic varies"):
        geweke(mixture, table, statistics={"total": total}, replicates=200)


def test_a_statistic_that_is_not_finite_is_named():
    with pytest.raises(AssertionError, match="largest is not finite: inf"):
        geweke(normal, numbers, statistics={"largest": lambda state, data: np.inf})


def test_statistics_of_large_and_of_ragged_arrays():
    functions = {
        "large": lambda state, data: np.outer(np.arange(1.0, 5.0), data.y),
        "ragged": lambda state, data: data.y[data.y > 0.0],
    }
    names = geweke(normal, numbers, statistics=functions, replicates=60).statistics
    shifts = [n for n in names if n.startswith("shift of") and "times" not in n]
    assert sum("large[" in name for name in shifts) == 8
    assert [name for name in shifts if "large[" not in name] == [
        "shift of sum of large",
        "shift of sum of large**2",
        "shift of sum of ragged",
        "shift of sum of ragged**2",
    ]


def test_a_verdict_prints_its_worst_statistics_first():
    verdict = Verdict("geweke", ("a", "b"), np.array([0.1, 9.0]), np.array([0.9, 1e-9]), 70, 0.01)
    lines = str(verdict).splitlines()
    assert lines[0].startswith("geweke FAILED: p = 2e-09 over 2 statistics, 70 replicates")
    assert lines[2].endswith("b")
    with pytest.raises(AssertionError, match="geweke FAILED"):
        verdict.require()
    passed = replace(verdict, p_values=np.array([0.9, 0.5]))
    assert passed.require() is passed
