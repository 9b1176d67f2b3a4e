"""Regressions beside scikit-learn, statsmodels and numpyro: moments, evidence, seconds.

    python tests/benchmarks/regression_peers.py                  # everything that is installed
    python tests/benchmarks/regression_peers.py --only wine --skip numpyro

Digits are 600 rows of 12 principal axes. Columns are standardised; the prior is N(0, 1) for
coefficients and N(0, 100) for intercepts, which scikit-learn's penalty is too (but for the
intercept's, which it leaves flat). The truth is a long chain of this library's exact sampler
(``method="sampling"``); NUTS by numpyro is another, so its line says how well the truth is known.
Of all coefficients, of several classes less their mean over classes:

* mean: root mean square error of posterior means, in posterior standard deviations;
* sd: root mean square of the relative errors of posterior standard deviations;
* evidence: log p(y), bounded or approximated; that of the truth is importance sampling from a
  Student-t of quadrature's shape, where its effective sample size is above 100.

Seconds are of a processor, without compilation: fits are run twice. Run with OPENBLAS_NUM_THREADS=1
and XLA_FLAGS=--xla_cpu_multi_thread_eigen=false.
"""

import argparse
import time
import warnings
from importlib.util import find_spec

import numpy as np
from beside import numpyro_parts
from scipy.special import expit, gammaln, log_softmax, logsumexp
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from pgmult.regression import LogisticClassifier, MultinomialClassifier

INTERCEPT_VAR = 100.0


def digits():
    x, y = load_digits(return_X_y=True)
    return PCA(12, random_state=0).fit_transform(x)[:600], y[:600]


def rare():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3000, 6))
    psi = x @ [1.0, -0.7, 0.5, 0.0, 0.0, 0.3] - 4.4
    return x, (rng.random(3000) < expit(psi)).astype(int)


DATA = {
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "digits": digits,
    "3 % positive": rare,
}


def timed(function, repeats=2):
    for _ in range(repeats):
        start = time.process_time()
        answer = function()
        seconds = time.process_time() - start
    return answer, seconds


def centred(draws):
    """Weights ``(draws, outputs, weights)`` less their mean over classes, coefficients only."""
    draws = draws - draws.mean(axis=1, keepdims=True) if draws.shape[1] > 1 else draws
    return draws[:, :, :-1].reshape(len(draws), -1)


def moments_of(fitted):
    """Means and standard deviations of the centred coefficients under a Gaussian posterior."""
    outputs, size = fitted._weights.shape
    mean = centred(fitted._weights[None])[0]
    joint = getattr(fitted, "joint_cov_", None)
    if joint is None:
        blocks = np.zeros((outputs, size, outputs, size))
        for k in range(outputs):
            blocks[k, :, k] = fitted.coef_cov_[k]
        joint = blocks.reshape(outputs * size, -1)
    centre = np.eye(outputs) - (1.0 / outputs if outputs > 1 else 0.0)
    turn = np.kron(centre, np.eye(size))
    var = np.diagonal(turn @ joint @ turn.T).reshape(outputs, size)[:, :-1]
    return mean, np.sqrt(var.ravel())


def report(name, truth, mean, sd, evidence, seconds):
    error = np.sqrt(np.mean(((mean - truth[0]) / truth[1]) ** 2))
    spread = "      -" if sd is None else f"{np.sqrt(np.mean((sd / truth[1] - 1.0) ** 2)):7.4f}"
    level = "         -" if evidence is None else f"{evidence:10.2f}"
    print(
        f"  {name:34s} mean {error:7.4f}  sd {spread}  evidence {level}  {seconds:8.2f} s",
        flush=True,
    )


def log_joint(weights, x, y, prior_var):
    """Of draws ``(draws, outputs, weights)``."""
    psi = np.einsum("nd,skd->snk", x, weights)
    if psi.shape[2] == 1:
        value = (y * psi[:, :, 0] - np.logaddexp(0.0, psi[:, :, 0])).sum(axis=1)
    else:
        value = log_softmax(psi, axis=2)[:, np.arange(len(y)), y].sum(axis=1)
    prior = -0.5 * (weights**2 / prior_var + np.log(2.0 * np.pi * prior_var)).sum(axis=(1, 2))
    return value + prior


def evidence_of(fitted, x, y, draws=20_000, dof=8.0):
    """Importance sampling, and its effective sample size."""
    mean, size = fitted._weights.ravel(), fitted._weights.size
    cov = getattr(fitted, "joint_cov_", None)
    cov = fitted.coef_cov_[0] if cov is None else cov
    root, rng = np.linalg.cholesky(cov), np.random.default_rng(0)
    noise = rng.standard_normal((draws, size)) / np.sqrt(rng.chisquare(dof, (draws, 1)) / dof)
    weights = (mean + noise @ root.T).reshape(draws, *fitted._weights.shape)
    prior_var = np.append(np.ones(x.shape[1] - 1), INTERCEPT_VAR)
    level = np.concatenate([log_joint(w, x, y, prior_var) for w in np.array_split(weights, 100)])
    level -= (
        gammaln(0.5 * (dof + size)) - gammaln(0.5 * dof) - 0.5 * size * np.log(dof * np.pi)
        - np.log(np.diagonal(root)).sum()
        - 0.5 * (dof + size) * np.log1p((noise**2).sum(axis=1) / dof)
    )  # fmt: skip
    share = np.exp(level - logsumexp(level))
    return logsumexp(level) - np.log(draws), 1.0 / (share**2).sum()


def numpyro_draws(x, y, num_classes, draws, warm_up):
    jax, jnp, numpyro, dist = numpyro_parts()
    from numpyro.infer import MCMC, NUTS

    outputs = num_classes if num_classes > 2 else 1
    scale = jnp.append(jnp.ones(x.shape[1] - 1), np.sqrt(INTERCEPT_VAR))

    def model():
        prior = dist.Normal(0.0, scale).expand([outputs, x.shape[1]]).to_event(2)
        psi = jnp.asarray(x) @ numpyro.sample("w", prior).T
        law = dist.Categorical(logits=psi) if outputs > 1 else dist.Bernoulli(logits=psi[:, 0])
        numpyro.sample("y", law, obs=jnp.asarray(y))

    chain = MCMC(NUTS(model), num_warmup=warm_up, num_samples=draws, progress_bar=False)
    chain.run(jax.random.PRNGKey(0))
    return np.asarray(chain.get_samples()["w"])


def statsmodels_fit(x, y, num_classes):
    import statsmodels.api as sm

    model = sm.Logit(y, x) if num_classes == 2 else sm.MNLogit(y, x)
    return model.fit(disp=0, maxiter=200)


def main(options):
    warnings.simplefilter("ignore")
    for name in options.only or DATA:
        x, y = DATA[name]()
        x = (x - x.mean(axis=0)) / x.std(axis=0)
        design, num_classes = np.column_stack([x, np.ones(len(x))]), len(np.unique(y))
        several = num_classes > 2
        kind, exact = MultinomialClassifier if several else LogisticClassifier, "sampling"
        settings = {"intercept_var": INTERCEPT_VAR, "random_state": 0, "scale_inputs": False}
        long = kind(exact, draws=options.draws, tune=500, chains=4, **settings).fit(x, y)
        posteriors = long.posterior_ if several else long.posterior_[0]
        every = posteriors["weights"]
        draws = centred(every.reshape(-1, *every.shape[2:]))
        truth = draws.mean(axis=0), draws.std(axis=0)
        print(f"{name}: {x.shape[0]} rows, {x.shape[1]} columns, {num_classes} classes")
        best = kind("quadrature", **settings).fit(x, y)
        level, size = evidence_of(best, design, y)
        if size > 100.0:
            print(f"  importance sampling: evidence {level:.2f}, effective draws {size:.0f}")
        methods = ("laplace", "tilted", "quadrature") if several else (
            "laplace", "delta", "jaakkola_jordan", "quadrature"
        )  # fmt: skip
        for method in methods:
            fitted, seconds = timed(lambda m=method: kind(m, **settings).fit(x, y))  # noqa: B023
            evidence = float(np.squeeze(fitted.log_evidence_))
            report(f"pgmult {method}", truth, *moments_of(fitted), evidence, seconds)
        fitted, seconds = timed(lambda: kind(exact, draws=1000, **settings).fit(x, y))  # noqa: B023
        some = (fitted.posterior_ if several else fitted.posterior_[0])["weights"]
        some = centred(some.reshape(-1, *some.shape[2:]))
        report(f"pgmult {exact}, 2 x 1000 draws", truth, some.mean(0), some.std(0), None, seconds)
        peer, seconds = timed(lambda: LogisticRegression(C=1.0, max_iter=5000).fit(x, y))  # noqa: B023
        coef = np.column_stack([peer.coef_, peer.intercept_])[None]
        report("scikit-learn LogisticRegression", truth, centred(coef)[0], None, None, seconds)
        if "statsmodels" not in options.skip and find_spec("statsmodels"):
            try:
                peer, seconds = timed(lambda: statsmodels_fit(design, y, num_classes))  # noqa: B023
                if several:
                    raise np.linalg.LinAlgError("its classes are against the first")
                mean, sd = np.asarray(peer.params)[:-1], np.asarray(peer.bse)[:-1]
                report("statsmodels, without a prior", truth, mean, sd, None, seconds)
            except Exception as error:
                print(f"  statsmodels, without a prior: none ({type(error).__name__}: {error})")
        if "numpyro" not in options.skip and find_spec("numpyro"):
            start = time.process_time()
            found = centred(numpyro_draws(design, y, num_classes, 2000, 500))
            seconds = time.process_time() - start
            report(
                "numpyro NUTS, 2000 draws, cold", truth, found.mean(0), found.std(0), None, seconds
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=DATA)
    parser.add_argument("--draws", type=int, default=5000, help="of each of four long chains")
    parser.add_argument("--skip", nargs="*", default=[], help="statsmodels or numpyro")
    main(parser.parse_args())
