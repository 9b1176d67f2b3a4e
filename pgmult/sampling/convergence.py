"""Do chains agree, and what should be done if not.

`convergence_problems` looks at everything that was kept, after sampling; `chains_in_words` at what
a report is about; `label_matches` finds out which arbitrary labels (topics) chains have in common.

>>> import numpy as np
>>> from pgmult import Posterior
>>> draws = {"pi": np.random.default_rng(0).normal(size=(4, 500, 3))}
>>> chains_in_words(Posterior(draws, dims={"pi": ("category",)}), {"probabilities": "pi"})[0]
'The chains agree on the probabilities (R-hat at most 1.001).'
"""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmult.core.markup import Leading
from pgmult.core.typing import traits_of
from pgmult.sampling import diagnostics
from pgmult.sampling.diagnostics import R_HAT_LIMIT
from pgmult.sampling.draws import Draws
from pgmult.sampling.labels import LabelMatches, match_rows

ESS_PER_CHAIN_LIMIT = 100
_CHECKED_ENTRIES = 500  # of one variable, by the check after sampling
_WORDED_ENTRIES = 200  # of each variable whose chains a report compares
_MATCHED_DRAWS = 100  # of a chain, whose mean rows distinguish labels
_FAR = 1.1  # R-hat of chains that more draws alone do not join
_NEARLY = 1.1  # R-hat of chains that agree roughly
_SLOW = 1.05  # R-hat beyond which a verdict names what else the page shows
_STILL_MOVING = "A chain is still moving, for its halves differ"
_APART = (
    "Each chain has settled, but not where the others have: there are several modes, or the data"
    " say little about these values, and neither longer tuning nor more draws join them"
)


def convergence_problems(draws: Draws) -> str:
    """See `pgmult.sampling.posterior.Posterior.convergence_problems`."""
    if draws.num_draws < diagnostics.MIN_DRAWS:
        return (
            f"{draws.num_draws} draws a chain are too few to say whether the chains converged"
            f" (at least {diagnostics.MIN_DRAWS})"
        )
    matched = label_matches(draws)
    high: dict[str, float] = {}
    few: dict[str, float] = {}
    undefined: list[str] = []
    notes: list[str] = []
    checked, moving = 0, 1.0
    for name in [*_judged(draws), *draws.sample_stats]:
        labels, values, note = draws.entries(name, _CHECKED_ENTRIES)
        if not labels:
            continue
        notes += [note] if note else []
        checked += len(labels)
        undefined += [labels[i] for i in np.flatnonzero(np.isnan(values).any(axis=(0, 1)))]
        r_hat, ess = _worst(values, separate=bool(matched) or draws.is_labelled(name))
        if np.nanmax(r_hat, initial=1.0) > _FAR:
            moving = max(moving, _moving(values))
        high |= {labels[i]: -r_hat[i] for i in np.flatnonzero(r_hat > R_HAT_LIMIT)}
        few |= {labels[i]: ess[i] for i in np.flatnonzero(ess < ESS_PER_CHAIN_LIMIT)}
    problems = []
    if undefined:
        problems.append(f"{len(undefined)} are nan in some draw ({', '.join(undefined[:4])})")
    if high:
        worst = ", ".join(f"{label} {-high[label]:.3g}" for label in _first(high))
        problems.append(f"{len(high)} have a split R-hat above {R_HAT_LIMIT} (worst: {worst})")
    if few:
        worst = ", ".join(f"{label} {few[label]:.3g}" for label in _first(few))
        problems.append(
            f"{len(few)} have a bulk or tail effective sample size below"
            f" {ESS_PER_CHAIN_LIMIT} a chain (worst: {worst})"
        )
    sentences = [
        f"{matches.headline(f'{axis}s')}: the others are of modes that chains do not cross, and"
        " more draws do not join them."
        for axis, matches in matched.items()
        if not matches.by_all.all()
    ]
    if problems:
        checks = f" (checked of {'; '.join(notes)})" if notes else ""
        where = ", each within its chains," if matched else ""
        sentences.append(
            f"of {checked} kept values{where} {'; '.join(problems)}{checks}."
            f" {_what_helps(high, moving)}"
        )
    return " ".join(sentences)


def _what_helps(high: Mapping[str, float], moving: float) -> str:
    """More draws where chains agree and are slow; else what each chain's own halves say."""
    if not high or max(-value for value in high.values()) <= _FAR:
        return "More draws (draws=) give steadier numbers: see posterior.summary()"
    if moving > _FAR:
        return (
            f"{_STILL_MOVING}: tune longer (tune=) and draw more (draws=); posterior.summary()"
            " shows what differs"
        )
    return f"{_APART}: posterior.summary() shows what differs"


def _moving(values: NDArray[np.float64]) -> float:
    """How far the halves of one chain differ: the largest split R-hat of chains taken alone."""
    return float(np.nanmax(_worst(values, separate=True)[0], initial=1.0))


def _first(values: Mapping[str, float]) -> list[str]:
    """The four labels of the smallest values."""
    return sorted(values, key=lambda label: (values[label], label))[:4]


def _judged(draws: Draws) -> list[str]:
    """Variables that chains can be expected to agree on."""
    basis = frozenset() if draws.origin is None else traits_of(draws.model).basis_dims
    complete = [name for name in draws if name not in draws.every]
    judged = [name for name in complete if basis.isdisjoint(draws.dims.get(name, ()))]
    return judged or complete


def _worst(
    draws: NDArray[np.float64], *, separate: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """R-hat, and the smaller effective sample size a chain, of each entry; of chains apart?"""
    groups = [draws[i : i + 1] for i in range(len(draws))] if separate else [draws]
    r_hat = np.stack([diagnostics.r_hat(group) for group in groups])
    ess = np.stack(
        [
            np.minimum(diagnostics.ess_bulk(group), diagnostics.ess_tail(group)) / len(group)
            for group in groups
        ]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a constant's R-hat is nan
        return np.nanmax(r_hat, axis=0), np.nanmin(ess, axis=0)


def label_matches(draws: Draws) -> dict[str, LabelMatches]:
    """See `pgmult.sampling.posterior.Posterior.label_matches`."""
    if draws.origin is None or draws.num_chains < 2:
        return {}
    matches = {}
    parts = traits_of(draws.model).label_parts
    for axis, rows in traits_of(draws.model).label_rows.items():
        in_parts = parts.get(axis) in draws
        name = parts[axis] if in_parts else rows
        if name in draws:
            means = np.stack([_mean(draws, name, c) for c in range(draws.num_chains)])
            if np.isfinite(means).all():
                means = means.swapaxes(1, 2) if in_parts else means
                matches[axis] = match_rows(means, worst=in_parts)
    return matches


def _mean(draws: Draws, name: str, chain: int) -> NDArray[np.float64]:
    """Mean of at most 100 draws of a chain, evenly spread."""
    size = draws.size_of(name)
    count = min(_MATCHED_DRAWS, size)
    used = set(np.linspace(0, size - 1, count).astype(int).tolist())
    total: Any = 0.0
    for i, draw in enumerate(draws.each(name, chain)):
        if i in used:
            total = total + np.asarray(draw, dtype=np.float64)
    return np.asarray(total / count)


def chains_in_words(posterior: Draws, parts: Mapping[str, str]) -> list[str]:
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
    targets = {} if posterior.origin is None else traits_of(posterior.model).ess_targets
    worst: dict[str, tuple[float, float]] = {}
    moving = 1.0  # of what matters most
    for what, name in parts.items():
        _, values, _ = posterior.entries(name, _WORDED_ENTRIES)
        if values.shape[2] == 0:
            continue
        r_hat = np.append(diagnostics.r_hat(values), 1.0)  # a constant's is nan
        ess = np.append(diagnostics.ess_bulk(values), chains * num_draws)
        moving = moving if worst else _moving(values)
        worst[what] = float(np.nanmax(r_hat)), float(np.nanmin(ess))
    details = [
        f"{name}: split R-hat at most {r_hat:.3f}, worth at least {ess:.0f} independent draws of"
        f" {chains * num_draws}."
        for name, (r_hat, ess) in worst.items()
    ]
    if not worst:
        return details
    main, *others = worst
    slow = {n: worst[n] for n in others if worst[n][0] > max(_SLOW, worst[main][0])}
    wanted = chains * targets.get(parts[main], ESS_PER_CHAIN_LIMIT)
    verdict = _verdict(main, *worst[main], moving, slow, chains, wanted)
    return [Leading(verdict, "Diagnostics"), *details]


def _verdict(
    main: str,
    r_hat: float,
    ess: float,
    moving: float,
    slow: Mapping[str, tuple[float, float]],
    chains: int,
    wanted: float,
) -> str:
    who, others = ("The chains agree", "") if chains > 1 else ("The chain has settled", "")
    if slow:
        worst, fewest = max(r for r, _ in slow.values()), min(n for _, n in slow.values())
        others = (
            f"; not yet on the {' and '.join(slow)} (R-hat up to {worst:.3f}, worth {fewest:.0f}"
            " independent draws): draw more before these are quoted"
        )
    if diagnostics.is_near(r_hat, ess) and ess >= wanted:
        return f"{who} on the {main} (R-hat at most {r_hat:.3f}){others}."
    if r_hat <= _NEARLY:
        return (
            f"{who} on the {main}, roughly (R-hat at most {r_hat:.3f}, worth {ess:.0f} independent"
            f" draws or more){others or ': draw more for finer intervals'}."
        )
    differ = "chains differ" if chains > 1 else "the halves of the chain differ"
    why = _STILL_MOVING if chains > 1 else "It is still moving"
    what_helps = f"{why}: tune longer and draw more" if moving > _FAR else _APART
    return (
        f"Do not rely on this yet: on the {main} {differ} (R-hat up to {r_hat:.2f}). {what_helps}."
    )
