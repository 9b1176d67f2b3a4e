"""What benchmarks beside NUTS share: runs of numpyro, effective draws a second, agreement."""

import time

import numpy as np

from pgmult.sampling.diagnostics import ess_bulk


def numpyro_parts():
    """jax, jax.numpy, numpyro and its distributions, in double precision."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    jax.config.update("jax_enable_x64", True)
    return jax, jnp, numpyro, dist


def nuts(model, warm_up, draws, *given, first=None, warmed=False):
    """Draws by name, and processor seconds of the warm-up and of them, without compilation.

    A run of the arguments `first`, which is quick, compiles where the model takes arguments, and
    one of the same length where it does not. Where `warmed`, the warm-up is not counted.
    """
    import jax
    from numpyro.infer import MCMC, NUTS

    chain = MCMC(
        NUTS(model), num_warmup=warm_up, num_samples=draws, progress_bar=False,
        jit_model_args=first is not None,
    )  # fmt: skip
    told = {"extra_fields": ("num_steps", "diverging")}
    if warmed:
        chain.warmup(jax.random.PRNGKey(0), *given, **told)
    for arguments in (given if first is None else first, given):
        start = time.process_time()
        chain.run(jax.random.PRNGKey(1), *arguments, **told)
        found = {name: np.asarray(values) for name, values in chain.get_samples().items()}
        seconds = time.process_time() - start
    extra = chain.get_extra_fields()
    steps, bad = np.mean(extra["num_steps"]), int(np.sum(extra["diverging"]))
    print(f"  NUTS: {steps:.0f} gradients a draw, {bad} divergent", flush=True)
    return found, seconds


def tell(name, seconds, **draws):
    """A line: least and median effective draws, and a second; draws are (chain, draw, ...)."""
    parts = []
    for what, values in draws.items():
        size = np.ravel(ess_bulk(values.reshape(*values.shape[:2], -1)))
        a, b = size.min(), np.median(size)
        parts.append(f"{what} {a:.0f}/{b:.0f}, a second {a / seconds:.3g}/{b / seconds:.3g}")
    print(f"  {name:8s} {seconds:7.1f} s  " + "; ".join(parts), flush=True)


def agreement(name, ours, theirs):
    """Differences of means over their errors, and ratios of sds; draws are (draw, ...)."""
    ours, theirs = (draws.reshape(len(draws), -1) for draws in (ours, theirs))
    errors = sum(x.var(axis=0) / np.maximum(ess_bulk(x[None]), 1.0) for x in (ours, theirs))
    z = (ours.mean(axis=0) - theirs.mean(axis=0)) / np.sqrt(errors)
    low, middle, high = np.quantile(ours.std(axis=0) / theirs.std(axis=0), [0.0, 0.5, 1.0])
    print(
        f"  {name}: z has rms {np.sqrt(np.mean(z**2)):.2f}, at most {np.abs(z).max():.1f}; sds are"
        f" {middle:.3f} of theirs ({low:.2f} to {high:.2f})",
        flush=True,
    )
