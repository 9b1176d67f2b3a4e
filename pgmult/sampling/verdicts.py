"""Do chains agree, and what should be done if not, in a sentence.

>>> import numpy as np
>>> from pgmult import Posterior
>>> draws = {"pi": np.random.default_rng(0).normal(size=(4, 500, 3))}
>>> chains_in_words(Posterior(draws, dims={"pi": ("category",)}), {"probabilities": "pi"})[0]
'The chains agree on the probabilities (R-hat at most 1.001).'
"""

from collections.abc import Mapping

import numpy as np

from pgmult.sampling import diagnostics
from pgmult.sampling.posterior import ESS_PER_CHAIN_LIMIT, R_HAT_LIMIT, Posterior

__all__ = ["chains_in_words"]

_MOST_ENTRIES = 200  # of each variable whose chains are compared
_NEARLY = 1.1


def chains_in_words(posterior: Posterior, parts: Mapping[str, str]) -> list[str]:
    """A verdict, and for each variable its worst R-hat and fewest effective draws.

    Parameters
    ----------
    posterior : Posterior
    parts : mapping from what it is, in the plural, to a variable or sample statistic
        What matters most first; of each some entries are looked at, evenly spread.

    Returns
    -------
    list of str
        The verdict first.
    """
    chains, num_draws = posterior.num_chains, posterior.num_draws
    if num_draws < diagnostics.MIN_DRAWS:
        return [f"{num_draws} draws a chain are too few to rely on: draw more."]
    found: dict[str, tuple[float, float]] = {}
    for what, name in parts.items():
        _, some, _ = posterior.entries(name, _MOST_ENTRIES)
        if some.shape[2] == 0:
            continue
        r_hat = np.append(diagnostics.r_hat(some), 1.0)  # a constant's is nan
        ess = np.append(diagnostics.ess_bulk(some), chains * num_draws)
        found[what] = float(np.nanmax(r_hat)), float(np.nanmin(ess))
    details = [
        f"{name}: split R-hat at most {r_hat:.3f}, worth at least {ess:.0f} independent draws of"
        f" {chains * num_draws}."
        for name, (r_hat, ess) in found.items()
    ]
    if not found:
        return details
    main, *others = found
    slow = [n for n in others if found[n][0] > _NEARLY]
    return [_verdict(main, *found[main], chains, slow), *details]


def _verdict(main: str, r_hat: float, ess: float, chains: int, slow: list[str]) -> str:
    who, others = ("The chains agree", "") if chains > 1 else ("The chain has settled", "")
    if slow:
        others = f"; draw more to learn the {' and '.join(slow)} as well"
    if r_hat <= R_HAT_LIMIT and ess >= ESS_PER_CHAIN_LIMIT * chains:
        return f"{who} on the {main} (R-hat at most {r_hat:.3f}){others}."
    if r_hat <= _NEARLY:
        return (
            f"{who} on the {main}, roughly (R-hat at most {r_hat:.3f}, worth {ess:.0f} independent"
            " draws or more): draw more for finer intervals."
        )
    return (
        f"Do not rely on this yet: on the {main} chains differ (R-hat up to {r_hat:.2f}); tune and"
        " draw longer."
    )
