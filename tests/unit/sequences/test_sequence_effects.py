"""Which symbols each sequence has, or each step: averages of the probabilities of its steps."""

import numpy as np
import pytest

import pgmult
from pgmult.sequences import MultinomialHMM, MultinomialLDS, as_sequences

FEW = {"draws": 6, "tune": 4, "chains": 1, "random_seed": 0, "progressbar": False}


@pytest.fixture(scope="module")
def data():
    return as_sequences(["ABBA", "AAAAAB"], names=["one", "two"])


@pytest.fixture(scope="module")
def run(data):
    model = MultinomialLDS(state_dim=1)
    return pgmult.sample(model, data, keep=[*model.default_keep, "states"], **FEW)


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
class TestEffects:
    def test_means_are_those_of_predict(self, run):
        steps = run.predict().mean
        found = run.effects("sequence")
        np.testing.assert_allclose(found.mean, [steps[:4].mean(axis=0), steps[4:].mean(axis=0)])
        by_step = run.effects("step", [1, 6])
        np.testing.assert_allclose(by_step.mean, [(steps[0] + steps[4]) / 2, steps[9]])
        gap = found.difference("sequence", "two", "one")
        np.testing.assert_allclose(gap.mean, found.mean[1] - found.mean[0])

    def test_models_of_states_that_jump(self, data):
        run = pgmult.sample(MultinomialHMM(2), data, keep=None, **FEW)
        assert run.effects("sequence").mean.sum(axis=1) == pytest.approx([1.0, 1.0])

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ({"column": "time"}, "column must be one of sequence, step, got"),
            ({"column": "step", "by": "step"}, "by must be one of sequence, got"),
            ({"column": "sequence", "values": ["three"]}, "values"),
        ],
    )
    def test_refusals(self, run, arguments, said):
        with pytest.raises(ValueError, match=said):
            run.effects(**arguments)
