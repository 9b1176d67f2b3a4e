"""The graph of nonconjugate nodes after Wang and Blei (2013), appendix A, beside long chains."""

from dataclasses import replace

import numpy as np
import pytest

from pgmult.testing import check_geweke, mutant, rejects
from pgmult.variational import GaussianRows

NODES = ("population", "items", "persons")


@pytest.fixture
def graph(paper_scripts):
    return paper_scripts("wang2013")["graph"]


def gaussians_of(rng, sizes):
    """Any means and covariances."""
    found = {}
    for node, (rows, n) in sizes.items():
        half = 0.4 * rng.standard_normal((rows, n, n))
        cov = half @ half.transpose(0, 2, 1) + 0.05 * np.eye(n)
        yes = np.ones(rows, dtype=bool)
        mean = 0.5 * rng.standard_normal((rows, n))
        found[node] = GaussianRows("any", mean, cov, np.zeros(rows), yes, yes, 0)
    return found


def check_that_nodes_share_one_joint(model):
    """Where a node is known, f of its rows rises as the log joint does, the others as they are."""
    rng, shape = np.random.default_rng(1), model.answers.shape
    gaussians = gaussians_of(
        rng, {"population": (1, 2), "items": (shape[1], 2), "persons": (shape[0], 1)}
    )
    for node in NODES:
        known = replace(gaussians[node], cov=np.zeros_like(gaussians[node].cov))
        moved = replace(known, mean=known.mean + 0.3 * rng.standard_normal(known.mean.shape))
        rows = np.arange(len(known.mean))
        f = model.objectives(node, gaussians | {node: known}, None)
        rise = f.value(moved.mean, rows).sum() - f.value(known.mean, rows).sum()
        whole = [model.log_joint(gaussians | {node: q}, None) for q in (moved, known)]
        gap = rise - (whole[0] - whole[1])
        assert abs(gap) < 1e-9 * abs(whole[0]), f"{node}: {gap}"


def test_what_is_left_for_a_node_is_of_one_joint(graph):
    model = graph.ItemResponses(np.random.default_rng(0).random((7, 4)) < 0.5)
    check_that_nodes_share_one_joint(model)

    def forgets_spread(self, node, gaussians, rest):
        q = gaussians["population"]
        flat = gaussians | {"population": replace(q, cov=np.zeros_like(q.cov))}
        return graph.ItemResponses.objectives(model, node, flat, rest)

    def forgets_children(self, node, gaussians, rest):
        f = graph.ItemResponses.objectives(model, node, gaussians, rest)
        return replace(f, var=np.zeros_like(f.var)) if node == "population" else f

    for wrong in (forgets_spread, forgets_children):
        broken = mutant(model, objectives=wrong)
        broken.log_joint = model.log_joint
        rejects(check_that_nodes_share_one_joint, broken)


def test_a_point_has_the_log_joint_of_the_sampler(graph):
    rng = np.random.default_rng(2)
    answers = rng.random((6, 3)) < 0.5
    model = graph.ItemResponses(answers)
    gaussians = gaussians_of(rng, {"population": (1, 2), "items": (3, 2), "persons": (6, 1)})
    gaussians = {n: replace(q, cov=np.zeros_like(q.cov)) for n, q in gaussians.items()}
    items, place = gaussians["items"].mean, 1e-2
    whole = []
    for ability in np.arange(-6.0, 6.0, place):  # every person's ability summed out
        persons = replace(gaussians["persons"], mean=np.full((6, 1), ability))
        f = model.objectives("persons", gaussians, None)
        whole.append(f.value(persons.mean, np.arange(6)) - 0.5 * np.log(2.0 * np.pi))
    exact = np.log(place * np.exp(whole).sum(axis=0)).sum()
    state = graph.ItemState(items, gaussians["population"].mean)
    sampler = graph.ItemSampler(gaussians["items"])
    assert sampler.log_likelihood(state, graph.as_answers(answers)) == pytest.approx(
        exact, abs=1e-6
    )


@pytest.mark.slow
def test_the_sampler_keeps_the_joint_law(graph):
    rng = np.random.default_rng(3)
    sampler = graph.ItemSampler(gaussians_of(rng, {"items": (3, 2)})["items"])
    data = graph.Answers(rng.random((6, 3)) < 0.5, np.ones(6, dtype=int))
    check_geweke(sampler, data, replicates=600, sweeps=3)

    def narrow(self, rng, state, data):  # forgets that the population says where difficulties are
        away = graph.ItemState(state.items, np.zeros((1, 2)))
        new = graph.ItemSampler.step(sampler, rng, away, data)
        return graph.ItemState(new.items, new.population)

    rejects(check_geweke, mutant(sampler, step=narrow), data, replicates=600, sweeps=3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_gaussians_beside_long_chains(graph, capsys):
    rows = graph.compare(graph.simulated(60, 8), 250, 100)
    for name in ("mu", "tau", "b", "d", "a"):
        error, ratio = rows["delta", name]
        assert error < 0.25
        assert 0.65 < ratio < 1.1
    for name in ("tau", "b", "d"):
        assert rows["delta", name][0] < 0.5 * rows["laplace", name][0]
    printed = capsys.readouterr().out
    bounds = {
        line.split()[0]: float(line.split()[2].rstrip(","))
        for line in printed.splitlines()
        if " bound " in line
    }
    assert bounds["delta"] > max(bounds["laplace"], bounds["diagonal_delta"])
    assert bounds["previous_mean"] == pytest.approx(bounds["laplace"], abs=0.01)


def test_the_answers_of_the_law_school_test(graph):
    right = graph.lsat()
    assert right.shape == (1000, 5)
    np.testing.assert_array_equal(right.sum(axis=0), [924, 709, 553, 763, 870])
