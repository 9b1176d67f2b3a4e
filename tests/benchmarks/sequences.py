"""Draws of state-space models beside other packages'.

Run from the repository's root, on as few threads as the comparison should use::

    OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.sequences ffbs [--repeats 5]
    python -m tests.benchmarks.sequences long [--steps 1000000]

`ffbs` times one whole pass: Pólya-gamma potentials on ``psi = loadings x`` to potentials of the
states, filter forwards, sample backwards. All packages take turns; each gets its best time, and
compilation is not counted. dynamax runs jitted in float64, plainly (the potentials as diagonal
Gaussian observations of all of psi) and on observations collapsed to the size of the state.
Packages that are not installed, and sizes that a package cannot hold, are left out, and said so.

`long` makes one pass over a long chain and prints its peak memory beside that of its potential.
"""

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

from pgmult import DiagonalPotential
from pgmult.compiled.rows import row_threads
from pgmult.sequences.priors.dynamics import LinearDynamics, project

SIZES = ((4000, 10, 999), (682, 10, 21), (100_000, 4, 10))  # steps, state, K - 1

Pass = Callable[[], object]


class Problem:
    """A stable chain, loadings, and a potential such as Pólya-gamma variables give."""

    def __init__(self, steps, state_dim, num_sticks):
        rng = np.random.default_rng(steps)
        self.transition = 0.95 * np.linalg.qr(rng.normal(size=(state_dim, state_dim)))[0]
        self.noise_cov, self.initial_cov = 0.1 * np.eye(state_dim), np.eye(state_dim)
        self.initial_mean = np.zeros(state_dim)
        self.loadings = 0.3 * rng.normal(size=(num_sticks, state_dim))
        self.J = rng.gamma(2.0, 0.1, (steps, num_sticks))
        self.h = rng.normal(scale=0.4, size=(steps, num_sticks))

    @property
    def pseudo_observations(self):
        return self.h / self.J

    @property
    def dynamics(self):
        return LinearDynamics(
            self.transition, self.noise_cov, self.initial_mean, self.initial_cov,
            np.array([0, len(self.J)]),
        )  # fmt: skip

    def project(self):
        offset = np.zeros(len(self.loadings))
        return project(DiagonalPotential(self.J, self.h), self.loadings, offset)


def ours(problem: Problem) -> Pass:
    rng = np.random.default_rng(0)

    def one_pass():
        return problem.dynamics.condition(problem.project()).sample(rng)

    return one_pass


def ours_on_two_threads(problem: Problem) -> Pass:
    one_pass = ours(problem)

    def threaded():
        with row_threads(2):
            return one_pass()

    return threaded


def projection_alone(problem: Problem) -> Pass:
    return problem.project


def normalizer_alone(problem: Problem) -> Pass:
    """The square-root filter, which `sample` needs only under nearly singular covariances."""
    posterior = problem.dynamics.condition(problem.project())
    return posterior.log_normalizer


def _dynamax_params(problem, weights, cov):
    from dynamax.linear_gaussian_ssm import inference

    D = len(problem.transition)
    return inference.ParamsLGSSM(
        inference.ParamsLGSSMInitial(problem.initial_mean, problem.initial_cov),
        inference.ParamsLGSSMDynamics(
            problem.transition, np.zeros(D), np.zeros((D, 0)), problem.noise_cov
        ),
        inference.ParamsLGSSMEmissions(
            weights, np.zeros(len(weights)), np.zeros((len(weights), 0)), cov
        ),
    )


def dynamax(problem: Problem) -> Pass:
    import jax
    from dynamax.linear_gaussian_ssm import lgssm_posterior_sample

    jax.config.update("jax_enable_x64", True)
    params = _dynamax_params(problem, problem.loadings, 1.0 / problem.J)
    sample = jax.jit(lgssm_posterior_sample)
    y, key = problem.pseudo_observations, jax.random.key(0)
    return lambda: jax.block_until_ready(sample(key, params, y))


def dynamax_collapsed(problem: Problem) -> Pass:
    import jax
    import jax.numpy as jnp
    from dynamax.linear_gaussian_ssm import lgssm_posterior_sample

    jax.config.update("jax_enable_x64", True)
    D, C = len(problem.transition), jnp.asarray(problem.loadings)

    @jax.jit
    def sample(key, J, h):
        precision = (J @ (C[:, :, None] * C[:, None, :]).reshape(len(C), D * D)).reshape(-1, D, D)
        cov = jnp.linalg.inv(precision)
        y = jnp.einsum("tij,tj->ti", cov, h @ C)
        return lgssm_posterior_sample(key, _dynamax_params(problem, np.eye(D), cov), y)

    J, h, key = jnp.asarray(problem.J), jnp.asarray(problem.h), jax.random.key(0)
    return lambda: jax.block_until_ready(sample(key, J, h))


def statsmodels(problem: Problem) -> Pass:
    """The simulation smoother of Durbin and Koopman."""
    from statsmodels.tsa.statespace.simulation_smoother import SimulationSmoother

    (steps, sticks), D = problem.J.shape, len(problem.transition)
    if steps * sticks**2 > 10**8:
        raise MemoryError(f"obs_cov would take {8e-9 * steps * sticks**2:.0f} GB")
    model = SimulationSmoother(k_endog=sticks, k_states=D, k_posdef=D)
    model.bind(problem.pseudo_observations)
    model["design"], model["transition"] = problem.loadings, problem.transition
    model["selection"], model["state_cov"] = np.eye(D), problem.noise_cov
    model["obs_cov"] = (np.eye(sticks) / problem.J[:, :, None]).transpose(1, 2, 0).copy()
    model.initialize_known(problem.initial_mean, problem.initial_cov)
    simulation = model.simulation_smoother()
    return simulation.simulate


def filterpy(problem: Problem) -> Pass:
    """Filter and smoother: it has no sampler."""
    from filterpy.kalman import KalmanFilter

    (steps, sticks), D = problem.J.shape, len(problem.transition)
    if steps * sticks**2 > 10**6:
        raise MemoryError("minutes a pass")
    model = KalmanFilter(dim_x=D, dim_z=sticks)
    model.F, model.Q, model.H = problem.transition, problem.noise_cov, problem.loadings
    covs = list(np.eye(sticks) / problem.J[:, :, None])
    y = problem.pseudo_observations[:, :, None]

    def one_pass():
        model.x, model.P = problem.initial_mean[:, None].copy(), problem.initial_cov.copy()
        means, cov, _, _ = model.batch_filter(y, Rs=covs)
        return model.rts_smoother(means, cov)

    return one_pass


WAYS = (
    ours, ours_on_two_threads, projection_alone, normalizer_alone, dynamax_collapsed, dynamax,
    statsmodels, filterpy,
)  # fmt: skip


def ffbs(repeats):
    for size in SIZES:
        problem, passes = Problem(*size), {}
        print(f"steps {size[0]}, state {size[1]}, sticks {size[2]}")
        for way in WAYS:
            try:
                passes[way.__name__] = way(problem)
                passes[way.__name__]()
            except (ImportError, MemoryError) as reason:
                passes.pop(way.__name__, None)
                print(f"  {way.__name__:20} left out: {reason}")
        best = dict.fromkeys(passes, np.inf)
        for repeat in range(repeats):
            for name, one_pass in passes.items():
                if repeat > 1 and best[name] > 1.0:
                    continue
                start = time.perf_counter()
                one_pass()
                best[name] = min(best[name], time.perf_counter() - start)
        for name, seconds in best.items():
            print(f"  {name:20} {1e3 * seconds:10.2f} ms {seconds / best['ours']:10.1f} x ours")


def peak():
    """Peak resident memory so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def long(steps):
    problem = Problem(steps, 4, 10)
    problem.dynamics.sample(np.random.default_rng(0))  # compiled; without potential
    before = peak()
    start = time.perf_counter()
    potential = problem.project()
    posterior = problem.dynamics.condition(potential)
    projected = time.perf_counter() - start
    held = potential.J.nbytes + potential.h.nbytes
    for name, work in (
        ("draw", lambda: posterior.sample(np.random.default_rng(1))),
        ("log normaliser", posterior.log_normalizer),
        ("smoother", posterior.smooth),
    ):
        start = time.perf_counter()
        result = work()
        seconds = time.perf_counter() - start
        print(f"{name:15} {seconds:6.2f} s, peak {1e-9 * peak():.2f} GB")
        if name == "smoother":
            least = min(
                np.linalg.eigvalsh(part)[:, 0].min() for part in np.array_split(result[1], 8)
            )
            print(f"least eigenvalue of a smoothed covariance {least:.3g}")
    print(f"projection      {projected:6.2f} s, its result {1e-9 * held:.2f} GB")
    print(f"before all this, peak {1e-9 * before:.2f} GB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parts = parser.add_subparsers(dest="part", required=True)
    parts.add_parser("ffbs").add_argument("--repeats", type=int, default=5)
    parts.add_parser("long").add_argument("--steps", type=int, default=10**6)
    arguments = vars(parser.parse_args())
    {"ffbs": ffbs, "long": long}[arguments.pop("part")](**arguments)


if __name__ == "__main__":
    main()
