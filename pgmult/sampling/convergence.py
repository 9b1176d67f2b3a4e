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

from pgmult.core.markup import Leading
from pgmult.core.typing import FloatArray, traits_of
from pgmult.sampling import diagnostics
from pgmult.sampling.diagnostics import R_HAT_LIMIT
from pgmult.sampling.draws import Draws
from pgmult.sampling.labels import LabelMatches, match_rows

ESS_PER_CHAIN_LIMIT = 100
_CHECKED_ENTRIES = 500  # of one variable, by the check after sampling
_WORDED_ENTRIES = 200  # of each variable whose chains a report compares
_MATCHED_DRAWS = 100  # of a chain, whose mean rows distinguish labels
_FAR = 1.1  # R-hat up to which chains agree roughly, and beyond which more draws do not join them
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
    high, few = dict[str, float](), dict[str, float]()
    undefined, notes = list[str](), list[str]()
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
    for bad, what in (
        (high, f"a split R-hat above {R_HAT_LIMIT}"),
        (few, f"a bulk or tail effective sample size below {ESS_PER_CHAIN_LIMIT} a chain"),
    ):
        worst = sorted((value, label) for label, value in bad.items())[:4]
        listed = ", ".join(f"{label} {abs(value):.3g}" for value, label in worst)
        problems += [f"{len(bad)} have {what} (worst: {listed})"] if bad else []
    why = "the others are of modes that chains do not cross, and more draws do not join them"
    apart = {f"{axis}s": matches for axis, matches in matched.items() if not matches.by_all.all()}
    sentences = [f"{matches.headline(labels)}: {why}." for labels, matches in apart.items()]
    if problems:
        checks = f" (checked of {'; '.join(notes)})" if notes else ""
        where = ", each within its chains," if matched else ""
        found = f"of {checked} kept values{where} {'; '.join(problems)}{checks}."
        sentences.append(f"{found} {_what_helps(high, moving)}")
    return " ".join(sentences)


def _what_helps(high: Mapping[str, float], moving: float) -> str:
    """More draws where chains agree and are slow; else what each chain's own halves say."""
    if not high or max(-value for value in high.values()) <= _FAR:
        return "More draws (draws=) give steadier numbers: see posterior.summary()"
    advice = f"{_STILL_MOVING}: tune longer (tune=) and draw more (draws=);"
    if moving <= _FAR:
        advice = f"{_APART}:"
    return f"{advice} posterior.summary() shows what differs"


def _moving(values: FloatArray) -> float:
    """How far the halves of one chain differ: the largest split R-hat of chains taken alone."""
    return float(np.nanmax(_worst(values, separate=True)[0], initial=1.0))


def _judged(draws: Draws) -> list[str]:
    """Variables that chains can be expected to agree on."""
    basis = frozenset() if draws.origin is None else traits_of(draws.model).basis_dims
    complete = [name for name in draws if name not in draws.every]
    judged = [name for name in complete if basis.isdisjoint(draws.dims.get(name, ()))]
    return judged or complete


def _worst(draws: FloatArray, *, separate: bool) -> tuple[FloatArray, FloatArray]:
    """R-hat, and the smaller effective sample size a chain, of each entry; of chains apart?"""
    groups = draws[:, None] if separate else [draws]
    r_hat = np.stack([diagnostics.r_hat(group) for group in groups])
    sizes = [np.minimum(diagnostics.ess_bulk(g), diagnostics.ess_tail(g)) for g in groups]
    ess = np.stack([size / len(group) for size, group in zip(sizes, groups, strict=True)])
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


def _mean(draws: Draws, name: str, chain: int) -> FloatArray:
    """Mean of at most 100 draws of a chain, evenly spread."""
    size = draws.size_of(name)
    count = min(_MATCHED_DRAWS, size)
    used = set(np.linspace(0, size - 1, count).astype(int).tolist())
    each = enumerate(draws.each(name, chain))
    total: Any = sum(np.asarray(draw, dtype=np.float64) for i, draw in each if i in used)
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
    of = f"independent draws of {chains * num_draws}"
    details = [
        f"{name}: split R-hat at most {r_hat:.3f}, worth at least {ess:.0f} {of}."
        for name, (r_hat, ess) in worst.items()
    ]
    if not worst:
        return details
    main, *minor = worst
    slow = {n: worst[n] for n in minor if worst[n][0] > max(_SLOW, worst[main][0])}
    wanted = chains * targets.get(parts[main], ESS_PER_CHAIN_LIMIT)
    (highest, fewest), others = worst[main], ""
    if slow:
        of_slow = max(r for r, _ in slow.values()), min(n for _, n in slow.values())
        others = (
            f"; not yet on the {' and '.join(slow)} (R-hat up to {of_slow[0]:.3f}, worth"
            f" {of_slow[1]:.0f} independent draws): draw more before these are quoted"
        )
    settled = f"{'The chains agree' if chains > 1 else 'The chain has settled'} on the {main}"
    if diagnostics.is_near(highest, fewest) and fewest >= wanted:
        verdict = f"{settled} (R-hat at most {highest:.3f}){others}."
    elif highest <= _FAR:
        verdict = (
            f"{settled}, roughly (R-hat at most {highest:.3f}, worth {fewest:.0f} independent"
            f" draws or more){others or ': draw more for finer intervals'}."
        )
    else:
        differ = "chains differ" if chains > 1 else "the halves of the chain differ"
        why = _STILL_MOVING if chains > 1 else "It is still moving"
        what_helps = f"{why}: tune longer and draw more" if moving > _FAR else _APART
        doubt = f"Do not rely on this yet: on the {main} {differ} (R-hat up to {highest:.2f})."
        verdict = f"{doubt} {what_helps}."
    return [Leading(verdict, "Diagnostics"), *details]
