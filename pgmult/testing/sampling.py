"""Statistical tests of samplers: conditional ratios, joint distributions, calibration, the coin."""

import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Any, TypeVar

import numpy as np
import scipy.special
import scipy.stats
from numpy.typing import ArrayLike

from pgmult.core.arguments import as_mapping, as_real, as_repeats, as_share, as_strings, brief
from pgmult.core.typing import FloatArray, Generator, IntArray, Model, data_of, variable
from pgmult.core.validate import as_positive_int

Point = TypeVar("Point")
AnyModel = Model[Any, Any]
Function = Callable[[Any, Any], ArrayLike]  # of a state and data
Statistics = Sequence[str] | Mapping[str, Function]

_MAX_ENTRIES = 8  # of one array: more are represented by a random choice and by sums
_MAX_PAIRS = 32  # cross moments
MIN_CHANGES = 30  # a difference that is zero in nearly all chains has no normal mean
_LOOKS = 16  # at most, at the first replicates of a run: a gross error shows early


def require(condition: object, sentence: str) -> None:
    """Raise AssertionError with the sentence unless the condition holds."""
    if not condition:
        raise AssertionError(sentence)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What a test found.

    Attributes
    ----------
    test : str
        Its name.
    statistics : tuple of str
        The names of the statistics.
    scores, p_values : arrays, ``(num_statistics,)``
        One of each per statistic.
    replicates : int
        Independent replicates in the run that decided.
    level : float
        The run passes if `p_value` is not below it.
    """

    test: str
    statistics: tuple[str, ...]
    scores: FloatArray
    p_values: FloatArray
    replicates: int
    level: float

    @property
    def p_value(self) -> float:
        """Bonferroni's p-value of the whole run."""
        return min(1.0, len(self.p_values) * float(self.p_values.min()))

    @property
    def passed(self) -> bool:
        """Whether the test found nothing wrong."""
        return self.p_value >= self.level

    def require(self) -> "Verdict":
        """The verdict itself if it passed; otherwise an AssertionError with the table."""
        require(self.passed, str(self))
        return self

    def __str__(self) -> str:
        word = "passed" if self.passed else "FAILED"
        lines = [
            f"{self.test} {word}: p = {self.p_value:.2g} over {len(self.statistics)} statistics,"
            f" {self.replicates} replicates (fails below {self.level:g})",
            f"  {'score':>8}  {'p-value':>8}  statistic",
        ]
        lines += [
            f"  {self.scores[i]:8.2f}  {self.p_values[i]:8.1e}  {self.statistics[i]}"
            for i in np.argsort(self.p_values)[:8]
        ]
        return "\n".join(lines)

    __repr__ = __str__


# --------------------------------------------------------------------------- conditional ratio


def conditional_ratio(
    log_joint: Callable[[Point], float],
    log_conditional: Callable[[Point], float],
    points: Iterable[Point],
    *,
    tol: float = 1e-8,
) -> float:
    """Assert that log joint - log conditional is constant over values of a block.

    Parameters
    ----------
    log_joint : callable
        The joint log density as a function of the block, all else fixed, up to a constant.
    log_conditional : callable
        The log density that the sampler draws the block from, up to a constant.
    points : iterable
        Two or more values of the block, in the support; at least two with different joint
        densities.
    tol : float
        Largest spread, relative to the largest log density where that is above 1.

    Returns
    -------
    float
        The spread: largest difference minus smallest.

    Raises
    ------
    AssertionError
        If the spread is too large or a density is not finite.
    ValueError
        If the points cannot distinguish a right conditional from a wrong one.
    """
    functions = {"log_joint": log_joint, "log_conditional": log_conditional}
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(f"{name} must be a function of the block, got {brief(function)}")
    as_real(tol, "tol", minimum=0.0)
    values_of_block = list(points) if isinstance(points, Iterable) else [points]
    if len(values_of_block) < 2:
        raise ValueError(f"points must be at least 2 values of the block, got {brief(points)}")
    densities = np.array([[float(f(x)) for f in functions.values()] for x in values_of_block])
    for name, values in zip(functions, densities.T, strict=True):
        bad = ~np.isfinite(values)
        first = int(np.argmax(bad))
        require(not bad.any(), f"{name} is {values[first]} at point {first}")
    joint, conditional = densities.T
    scale = max(1.0, float(np.abs(densities).max()))
    if np.ptp(joint) <= tol * scale:
        raise ValueError(f"log_joint is the same at all points (tol = {tol:g}): take others")
    ratio = joint - conditional
    spread = float(np.ptp(ratio))
    low, high = int(np.argmin(ratio)), int(np.argmax(ratio))
    words = "log_joint - log_conditional must be constant over the block, but it varies by"
    ends = f"{ratio[low]:.6g} at point {low}, {ratio[high]:.6g} at point {high}"
    require(spread <= tol * scale, f"{words} {spread:.3g}: {ends}")
    return spread


# --------------------------------------------------------------------------- scalar statistics


def settled(model: object, data: object) -> Any:
    """Data of the model's type, where the model has what the tests call."""
    for name in ("prior", "simulate", "init", "step", "log_likelihood"):
        is_method = callable(getattr(model, name, None))
        require(is_method, f"model must have a method {name}, {brief(model)} has none")
    return data_of(model, data)


def _named_functions(
    model: AnyModel, state: Any, statistics: Statistics | None
) -> dict[str, Function]:
    """Functions of (state, data): all fields and the log likelihood, by default.

    Fields whose metadata say ``has_prior=False`` are left out: a sweep remembers them, and the
    prior leaves them 0. So are records, of what a sampler learned while it tuned.
    """
    if isinstance(statistics, Mapping):
        if not statistics or not all(map(callable, as_mapping(statistics, "statistics").values())):
            raise TypeError(f"statistics must map names to functions, got {brief(statistics)}")
        return dict(statistics)
    fields = dataclasses.fields(state)
    own = [f.name for f in fields if f.metadata.get("has_prior", True)]
    names = [n for n in own if not dataclasses.is_dataclass(getattr(state, n))] + ["log_likelihood"]
    names = names if statistics is None else as_strings(statistics, "statistics")
    if not names:
        raise ValueError("statistics must name at least one, got none")
    for name in names:
        if not (hasattr(state, name) or callable(getattr(model, name, None))):
            listed = ", ".join(field.name for field in fields)
            expected = f"fields of the state ({listed}) or methods of the model"
            raise ValueError(f"statistics must name {expected}, got {name!r}")
    return {name: partial(variable, model, name=name) for name in names}


class _Scalars:
    """Arrays of (state, data) as a short vector of scalars, always the same ones.

    An array gives its entries, at most `_MAX_ENTRIES` chosen at random; one that has more, or
    whose shape depends on the data, also gives its sum and its sum of squares.
    """

    def __init__(
        self, model: AnyModel, data: object, statistics: Statistics | None, rng: Generator
    ) -> None:
        states = (model.prior(rng, data) for _ in range(3))
        pairs = [(state, model.simulate(rng, state, data)) for state in states]
        self.names: list[str] = []
        self._parts: list[tuple[str, Function, Any, bool]] = []
        for name, function in _named_functions(model, pairs[0][0], statistics).items():
            shapes = {np.shape(function(*pair)) for pair in pairs}
            shape = shapes.pop()
            size = int(np.prod(shape))
            entries = np.sort(rng.permutation(0 if shapes else size)[:_MAX_ENTRIES])
            summed = bool(shapes) or size > len(entries)
            self._parts.append((name, function, entries, summed))
            for entry in entries:
                place = ", ".join(str(i) for i in np.unravel_index(entry, shape))
                self.names.append(f"{name}[{place}]" if shape else name)
            if summed:
                self.names += [f"sum of {name}", f"sum of {name}**2"]

    def __call__(self, state: object, data: object) -> FloatArray:
        parts = []
        for name, function, entries, summed in self._parts:
            values = np.asarray(function(state, data), dtype=np.float64).ravel()
            if not np.isfinite(values).all():
                raise AssertionError(f"{name} is not finite: {values[~np.isfinite(values)][0]}")
            parts.append(values[entries])
            if summed:
                parts.append(np.array([values.sum(), values @ values]))
        return np.concatenate(parts)


def _varying(test: str, draws: FloatArray) -> IntArray:
    """Find scalars (last axis) that vary by more than rounding: a row of shares sums to 1."""
    flat = draws.reshape(-1, draws.shape[-1])
    varying = np.flatnonzero(np.ptp(flat, axis=0) > 1e-9 * np.abs(flat).max(axis=0))
    require(len(varying), f"{test}: no statistic varies, there is nothing to test")
    return varying


def _sequential(run: Callable[[Generator, int], Verdict], replicates: int, seed: int) -> Verdict:
    """The sequential rule of the module's docstring."""
    as_positive_int(seed, "random_seed", minimum=0)
    first, second = np.random.default_rng(seed).spawn(2)
    verdict = run(first, replicates)
    if verdict.passed or verdict.p_value < verdict.level**2:
        return verdict
    return run(second, 4 * replicates)


# --------------------------------------------------------------------------- the three tests


def geweke(
    model: AnyModel,
    data: object,
    *,
    statistics: Statistics | None = None,
    replicates: int = 2000,
    sweeps: int = 5,
    level: float = 0.01,
    random_seed: int = 0,
) -> Verdict:
    """The joint distribution test of `prior`, `simulate` and `step`.

    Parameters
    ----------
    model : Model
    data : Data
        Tiny: its covariates and totals are used, its counts are not.
    statistics : sequence of str, or mapping from names to functions of (state, data), optional
        What to look at: names are fields of the state or methods of the model. By default every
        field of the state and the log likelihood.
    replicates : int
        Independent chains.
    sweeps : int
        Sweeps of each chain. More find a bias that builds up slowly.
    level : float
        Of the sequential rule; a right sampler fails with probability below ``2 * level**2``.
    random_seed : int

    Returns
    -------
    Verdict
        Scores are t-values of the mean differences.
    """
    data, level = settled(model, data), as_share(level, "level")
    replicates = as_repeats(replicates, "replicates", minimum=2 * MIN_CHANGES)
    sweeps = as_repeats(sweeps, "sweeps")

    def judge(draws: FloatArray, all_names: list[str], rng: Generator) -> Verdict | None:
        names, differences = _rank_differences(draws, all_names, rng)
        changed = np.count_nonzero(differences, axis=0) >= MIN_CHANGES
        if not changed.any():
            return None
        differences = differences[:, changed]
        error = differences.std(axis=0, ddof=1) / np.sqrt(len(draws))
        scores, names = differences.mean(axis=0) / error, [*compress(names, changed)]
        p_values = 2.0 * scipy.special.stdtr(len(draws) - 1, -np.abs(scores))
        return Verdict("geweke", tuple(names), scores, p_values, len(draws), level)

    def run(rng: Generator, replicates: int) -> Verdict:
        scalars = _Scalars(model, data, statistics, rng)
        draws = np.empty((replicates, sweeps + 1, len(scalars.names)))
        firsts = (int(replicates * 0.5 ** (k / 2)) for k in range(1, _LOOKS + 1))
        looks = {first for first in firsts if first >= 2 * MIN_CHANGES}
        for done, chain in enumerate(draws):
            if done in looks:
                verdict = judge(draws[:done], scalars.names, copy.deepcopy(rng))
                if verdict is not None and verdict.p_value < level**3 / (_LOOKS + 1):
                    return verdict
            state, simulated = model.prior(rng, data), data
            for sweep in range(sweeps):
                simulated = model.simulate(rng, state, simulated)
                if sweep == 0:
                    chain[0] = scalars(state, simulated)
                state = model.step(rng, state, simulated)
                chain[sweep + 1] = scalars(state, simulated)
        if (verdict := judge(draws, scalars.names, rng)) is None:
            raise AssertionError("geweke: `step` changed none of the statistics to be tested")
        return verdict

    return _sequential(run, replicates, random_seed)


def _rank_differences(
    draws: FloatArray, all_names: list[str], rng: Generator
) -> tuple[list[str], FloatArray]:
    """Moments of ranks after the sweeps minus before them: ``(replicates, num_statistics)``."""
    varying = _varying("geweke", draws)
    names = [all_names[i] for i in varying]
    flat = draws[..., varying].reshape(-1, len(varying))
    u = ((scipy.stats.rankdata(flat, axis=0) - 0.5) / len(flat)).reshape(*draws.shape[:2], -1)
    shift = np.sqrt(3.0) * (2.0 * u - 1.0)
    spread = np.sqrt(5.0) * (6.0 * u * (u - 1.0) + 1.0)
    single = np.concatenate([shift, spread], axis=-1)
    labels = [f"{kind} of {name}" for kind in ("shift", "spread") for name in names]
    first, second = np.triu_indices(len(labels), k=1)
    chosen = np.sort(rng.permutation(len(first))[:_MAX_PAIRS])
    first, second = first[chosen], second[chosen]
    moments = np.concatenate([single, single[..., first] * single[..., second]], axis=-1)
    labels += [f"{labels[i]} times {labels[j]}" for i, j in zip(first, second, strict=True)]
    return labels, moments[:, 1:].mean(axis=1) - moments[:, 0]


def sbc(
    model: AnyModel,
    data: object,
    statistics: Statistics | None = None,
    *,
    replicates: int = 200,
    tune: int = 100,
    draws: int = 20,
    thin: int = 5,
    level: float = 0.01,
    random_seed: int = 0,
) -> Verdict:
    """Simulation-based calibration of a whole chain: `init`, tuning, draws.

    Choose statistics that the data identify and that do not depend on arbitrary labels, and
    `thin` so large that the kept draws are nearly independent: the ranks of an autocorrelated
    chain pile up at both ends.

    Parameters
    ----------
    model : Model
    data : Data
        Tiny: its covariates and totals are used, its counts are not.
    statistics : sequence of str, or mapping from names to functions of (state, data), optional
        As in `geweke`.
    replicates : int
        Simulated data sets, each with a chain of its own.
    tune, draws, thin : int
        Of each chain, sweeps before the first kept one, kept ones, and sweeps for each kept one.
    level : float
        Of the sequential rule.
    random_seed : int

    Returns
    -------
    Verdict
        Scores are chi-squares with four degrees of freedom.
    """
    data, level = settled(model, data), as_share(level, "level")
    replicates, tune = as_repeats(replicates, "replicates"), as_repeats(tune, "tune", minimum=0)
    draws, thin = as_repeats(draws, "draws"), as_repeats(thin, "thin")

    def run(rng: Generator, replicates: int) -> Verdict:
        scalars = _Scalars(model, data, statistics, rng)
        values = np.empty((replicates, 1 + draws, len(scalars.names)))
        for row in values:
            truth = model.prior(rng, data)
            simulated = model.simulate(rng, truth, data)
            row[0] = scalars(truth, simulated)
            state = model.init(rng, simulated)
            for _ in range(tune):
                state = model.step(rng, state, simulated)
            for draw in range(draws):
                for _ in range(thin):
                    state = model.step(rng, state, simulated)
                row[1 + draw] = scalars(state, simulated)
        varying = _varying("sbc", values)
        truths, sampled = values[:, :1, varying], values[:, 1:, varying]
        # Ties are broken at random and the ranks spread out: exactly uniform on (0, 1).
        ties = (sampled == truths).sum(axis=1)
        ranks = (sampled < truths).sum(axis=1) + rng.integers(0, ties + 1)
        u = (ranks + rng.uniform(size=ranks.shape)) / (draws + 1)
        scores = np.zeros(len(varying))
        for degree in range(1, 5):
            component = np.sqrt(2.0 * degree + 1.0) * scipy.special.eval_sh_legendre(degree, u)
            scores += component.sum(axis=0) ** 2 / replicates
        names, p_values = [scalars.names[i] for i in varying], scipy.special.chdtrc(4, scores)
        return Verdict("sbc", tuple(names), scores, p_values, replicates, level)

    return _sequential(run, replicates, random_seed)


def likelihood(
    model: AnyModel,
    data: object,
    *,
    replicates: int = 500,
    level: float = 0.01,
    random_seed: int = 0,
) -> Verdict:
    """The coin: does `log_likelihood` describe the data that `simulate` draws?

    Parameters
    ----------
    model : Model
    data : Data
        Tiny: its covariates and totals are used, its counts are not.
    replicates : int
        Tosses of the coin.
    level : float
        Of the sequential rule.
    random_seed : int

    Returns
    -------
    Verdict
        The score is the number of upsets, observed minus expected, in standard deviations; its
        p-value is exact.
    """
    data, level = settled(model, data), as_share(level, "level")
    replicates = as_repeats(replicates, "replicates")

    def run(rng: Generator, replicates: int) -> Verdict:
        upsets, chances = 0, np.empty(replicates)  # how often the less likely state was true
        for i in range(replicates):
            truth, other = model.prior(rng, data), model.prior(rng, data)
            simulated = model.simulate(rng, truth, data)
            log_odds = model.log_likelihood(truth, simulated)
            log_odds = float(log_odds - model.log_likelihood(other, simulated))
            words = f"log_likelihood must be finite, a difference is {log_odds}"
            require(np.isfinite(log_odds), words)
            chances[i] = scipy.special.expit(-abs(log_odds))
            upsets += rng.uniform() < 0.5 if log_odds == 0.0 else log_odds < 0.0
        require((chances != 0.5).any(), "log_likelihood must depend on the state, but never does")
        pmf = np.ones(1)  # of the number of upsets, a sum of independent Bernoullis
        for chance in chances:
            pmf = np.convolve(pmf, [1.0 - chance, chance])
        deviation = max(np.sqrt((chances * (1.0 - chances)).sum()), np.finfo(np.float64).tiny)
        scores = np.array([(upsets - chances.sum()) / deviation])
        p_values = np.array([min(1.0, 2.0 * min(pmf[: upsets + 1].sum(), pmf[upsets:].sum()))])
        return Verdict("likelihood", ("upsets",), scores, p_values, replicates, level)

    return _sequential(run, replicates, random_seed)


def check_geweke(model: AnyModel, data: object, **options: Any) -> Verdict:
    """`geweke` with an AssertionError if it fails."""
    return geweke(model, data, **options).require()


def check_sbc(model: AnyModel, data: object, *arguments: Any, **options: Any) -> Verdict:
    """`sbc` with an AssertionError if it fails."""
    return sbc(model, data, *arguments, **options).require()


def check_likelihood(model: AnyModel, data: object, **options: Any) -> Verdict:
    """`likelihood` with an AssertionError if it fails."""
    return likelihood(model, data, **options).require()
