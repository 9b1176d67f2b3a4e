"""Is this sampler right? Tests of Markov chain Monte Carlo code, for anybody's model.

A sampler with a wrong sign still runs, converges and looks plausible. Four tests tell it from a
right one. They need nothing but the `pgmult.typing.Model` protocol and tiny data: a bug does not
care how many rows there are.

**The conditional ratio.** For a block x of the variables and everything else y,
p(x, y) = p(x | y) p(y), so

    log p(x, y) - log p(x | y)

does not depend on x. `conditional_ratio` evaluates it at several x. It needs no randomness, holds
to rounding, and names the block that is wrong.

**The joint distribution test** (Geweke 2004). Let p(s) be the prior of a state and p(d | s) the law
of the data. If s_0 ~ p(s), and then for l = 1, 2, ...

    d_l ~ p(d | s_{l-1})        `simulate`
    s_l ~ T(. | s_{l-1}, d_l)   `step`

and T leaves p(s | d_l) invariant, then every pair (s_l, d_l) has exactly the joint law
p(s) p(d | s), as has the pair (s_0, d_1) that comes before any step. So for every function g

    mean of g(s_1, d_1), ..., g(s_L, d_L)  -  g(s_0, d_1)

has expectation zero. `geweke` runs R independent chains of L sweeps, each started from the prior,
and asks with a t-test whether the R differences average to zero. There is no autocorrelation
to estimate and no burn-in, because the chains are independent and stationary from the start.

Priors of variances have heavy tails, whose second moments may not exist, so the functions g are
made of ranks: with u in (0, 1) the rank of a scalar among all the draws of the run, each scalar
gives its *shift* sqrt(3) (2u - 1) and its *spread* sqrt(5) (6u^2 - 6u + 1), and some pairs of
these give their product. These are the first moments, second moments and cross
moments of Geweke's paper, bounded and without scale. That u is estimated changes the differences
only at second order, because both sides of each difference have the same law.

**Simulation-based calibration** (Talts et al. 2018; data-dependent quantities: Modrák et al. 2023).
If s* ~ p(s), d ~ p(d | s*), and s_1, ..., s_M are independent draws from p(s | d), then the rank
of g(s*, d) among the g(s_m, d) is uniform on 0, ..., M. `sbc` starts its chains at `init`, so it
also sees what the joint distribution test cannot: a chain that leaves the posterior invariant and
never reaches it. The ranks are judged by the smooth test of Neyman (1937), the sum of the squares
of their first four Legendre components, which is chi-square with four degrees of freedom.

**The coin.** Draw two states from the prior, toss a coin for which of them simulates the data.
By Bayes' rule the log odds of the coin given the data are the difference of the two log
likelihoods. `likelihood` counts how often the less likely state was the true one and compares with
the exact law of that number: so `simulate` and `log_likelihood` belong together.

A verdict follows one *sequential rule*. A run has the p-value p = (number of statistics) times
(smallest p-value of a statistic), Bonferroni's. It passes if p >= level, fails if p < level**2, and
is otherwise decided by a fresh run of four times the length, which passes if p >= level. A right
sampler fails with probability at most 2 * level**2: 0.0002 by default.

A test that nothing fails is not a test: `mutant` makes deliberately broken models, and `rejects`
asserts that a check refuses one.

>>> import pgmult
>>> from pgmult.testing import check_model, mutant, rejects
>>> model = pgmult.CorrelatedTopics(num_topics=2, word_concentration=1.0)
>>> data = pgmult.as_corpus([[2, 1, 0], [0, 0, 0], [1, 0, 3]])
>>> check_model(model, data, replicates=200).passed
True
>>> stuck = mutant(model, step=lambda self, rng, state, data: state)
>>> rejects(check_model, stuck, data)[:31]
'step must move every variable, '

References
----------
Geweke, J. (2004). Getting it right: joint distribution tests of posterior simulators.
Journal of the American Statistical Association 99, 799-804.
Talts, S., Betancourt, M., Simpson, D., Vehtari, A., Gelman, A. (2018). Validating Bayesian
inference algorithms with simulation-based calibration. arXiv:1804.06788.
Modrák, M. et al. (2023). Simulation-based calibration checking for Bayesian computation: the
choice of test quantities shapes sensitivity. Bayesian Analysis.
Grosse, R., Duvenaud, D. (2014). Testing MCMC code. arXiv:1412.5218. (Conditional ratios.)
Neyman, J. (1937). "Smooth test" for goodness of fit. Skandinavisk Aktuarietidskrift 20, 149-199.
"""

import copy
import dataclasses
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.special
import scipy.stats
from numpy.typing import ArrayLike

from pgmult._validate import as_positive_int
from pgmult.compiled._rows import row_threads
from pgmult.typing import FloatArray, Model

__all__ = [
    "Verdict",
    "check_geweke",
    "check_likelihood",
    "check_model",
    "check_sbc",
    "conditional_ratio",
    "geweke",
    "likelihood",
    "mutant",
    "rejects",
    "sbc",
]

Statistics = Sequence[str] | Mapping[str, Callable[[Any, Any], ArrayLike]]

_MAX_ENTRIES = 8  # of one array: more are represented by a random choice and by sums
_MAX_PAIRS = 32  # cross moments
_MIN_CHANGES = 30  # a difference that is zero in nearly all chains has no normal mean
_MAX_SWEEPS_TO_MOVE = 100


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
        """Whether nothing speaks against the model."""
        return self.p_value >= self.level

    def require(self) -> "Verdict":
        """The verdict itself if it passed; otherwise an AssertionError with the table."""
        if not self.passed:
            raise AssertionError(str(self))
        return self

    def __str__(self) -> str:
        word = "passed" if self.passed else "FAILED"
        lines = [
            f"{self.test} {word}: p = {self.p_value:.2g} over {len(self.statistics)} statistics,"
            f" {self.replicates} replicates (fails below {self.level:g})",
            f"  {'score':>8}  {'p-value':>8}  statistic",
        ]
        for i in np.argsort(self.p_values)[:8]:
            name = self.statistics[i]
            lines.append(f"  {self.scores[i]:8.2f}  {self.p_values[i]:8.1e}  {name}")
        return "\n".join(lines)


# --------------------------------------------------------------------------- conditional ratio


def conditional_ratio(
    log_joint: Callable[[Any], float],
    log_conditional: Callable[[Any], float],
    points: Iterable[Any],
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
        If the points cannot tell a right conditional from a wrong one.
    """
    points = list(points)
    if len(points) < 2:
        raise ValueError(f"points must be at least 2 values of the block, got {len(points)}")
    joint = np.array([float(log_joint(point)) for point in points])
    conditional = np.array([float(log_conditional(point)) for point in points])
    for name, values in (("log_joint", joint), ("log_conditional", conditional)):
        bad = ~np.isfinite(values)
        if bad.any():
            raise AssertionError(f"{name} is {values[bad][0]} at point {int(np.argmax(bad))}")
    scale = max(1.0, float(np.abs(joint).max()), float(np.abs(conditional).max()))
    if np.ptp(joint) <= tol * scale:
        raise ValueError("log_joint is the same at all points: choose points that differ more")
    ratio = joint - conditional
    spread = float(np.ptp(ratio))
    if not spread <= tol * scale:
        low, high = int(np.argmin(ratio)), int(np.argmax(ratio))
        raise AssertionError(
            f"log_joint - log_conditional must be constant over the block, but it varies by"
            f" {spread:.3g}: {ratio[low]:.6g} at point {low}, {ratio[high]:.6g} at point {high}"
        )
    return spread


# --------------------------------------------------------------------------- scalar statistics


def _field(name: str, state: Any, data: Any) -> ArrayLike:
    value: ArrayLike = getattr(state, name)
    return value


def _named_functions(
    model: Model[Any, Any], state: Any, statistics: Statistics | None
) -> dict[str, Callable[[Any, Any], ArrayLike]]:
    """Functions of (state, data): all fields and the log likelihood, unless told otherwise."""
    if isinstance(statistics, Mapping):
        return dict(statistics)
    fields = [field.name for field in dataclasses.fields(state)]
    functions: dict[str, Callable[[Any, Any], ArrayLike]] = {}
    for name in [*fields, "log_likelihood"] if statistics is None else statistics:
        if name in fields:
            functions[name] = partial(_field, name)
        elif callable(getattr(model, name, None)):
            functions[name] = getattr(model, name)
        else:
            raise ValueError(
                f"statistics must name fields of the state ({', '.join(fields)}) or methods of"
                f" the model, got {name!r}"
            )
    return functions


class _Scalars:
    """Arrays of (state, data) as a short vector of scalars, always the same ones.

    An array gives its entries, at most `_MAX_ENTRIES` chosen at random; one that has more, or
    whose shape depends on the data, also gives its sum and its sum of squares.
    """

    def __init__(
        self,
        model: Model[Any, Any],
        data: Any,
        statistics: Statistics | None,
        rng: np.random.Generator,
    ) -> None:
        pairs = []
        for _ in range(3):
            state = model.prior(rng, data)
            pairs.append((state, model.simulate(rng, state, data)))
        self.names: list[str] = []
        self._parts: list[tuple[str, Callable[[Any, Any], ArrayLike], Any, bool]] = []
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

    def __call__(self, state: Any, data: Any) -> FloatArray:
        parts = []
        for name, function, entries, summed in self._parts:
            values = np.asarray(function(state, data), dtype=np.float64).ravel()
            if not np.isfinite(values).all():
                raise AssertionError(f"{name} is not finite: {values[~np.isfinite(values)][0]}")
            parts.append(values[entries])
            if summed:
                parts.append(np.array([values.sum(), values @ values]))
        return np.concatenate(parts)


def _varying(draws: FloatArray) -> Any:
    """Which scalars (last axis) vary by more than rounding: a row of shares always sums to 1."""
    flat = draws.reshape(-1, draws.shape[-1])
    return np.ptp(flat, axis=0) > 1e-9 * np.abs(flat).max(axis=0)


def _sequential(
    run: Callable[[np.random.Generator, int], Verdict], replicates: int, random_seed: int
) -> Verdict:
    """The sequential rule of the module's docstring."""
    first, second = np.random.default_rng(random_seed).spawn(2)
    verdict = run(first, replicates)
    if verdict.passed or verdict.p_value < verdict.level**2:
        return verdict
    return run(second, 4 * replicates)


# --------------------------------------------------------------------------- the three tests


def geweke(
    model: Model[Any, Any],
    data: Any,
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
    replicates = as_positive_int(replicates, "replicates", minimum=2 * _MIN_CHANGES)
    sweeps = as_positive_int(sweeps, "sweeps")

    def run(rng: np.random.Generator, replicates: int) -> Verdict:
        scalars = _Scalars(model, data, statistics, rng)
        draws = np.empty((replicates, sweeps + 1, len(scalars.names)))
        for chain in draws:
            state, simulated = model.prior(rng, data), data
            for sweep in range(sweeps):
                simulated = model.simulate(rng, state, simulated)
                if sweep == 0:
                    chain[0] = scalars(state, simulated)
                state = model.step(rng, state, simulated)
                chain[sweep + 1] = scalars(state, simulated)
        names, differences = _rank_differences(draws, scalars.names, rng)
        changed = np.count_nonzero(differences, axis=0) >= _MIN_CHANGES
        if not changed.any():
            raise AssertionError(
                "geweke: `step` changed none of the statistics, there is nothing to test"
            )
        differences = differences[:, changed]
        error = differences.std(axis=0, ddof=1) / np.sqrt(replicates)
        scores = differences.mean(axis=0) / error
        return Verdict(
            test="geweke",
            statistics=tuple(names[i] for i in np.flatnonzero(changed)),
            scores=scores,
            p_values=2.0 * scipy.special.stdtr(replicates - 1, -np.abs(scores)),
            replicates=replicates,
            level=level,
        )

    return _sequential(run, replicates, random_seed)


def _rank_differences(
    draws: FloatArray, all_names: list[str], rng: np.random.Generator
) -> tuple[list[str], FloatArray]:
    """Moments of ranks after the sweeps minus before them: ``(replicates, num_statistics)``."""
    varying = np.flatnonzero(_varying(draws))
    if not len(varying):
        raise AssertionError("geweke: no statistic varies, there is nothing to test")
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
    model: Model[Any, Any],
    data: Any,
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
    replicates = as_positive_int(replicates, "replicates")
    draws = as_positive_int(draws, "draws")

    def run(rng: np.random.Generator, replicates: int) -> Verdict:
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
        varying = np.flatnonzero(_varying(values))
        if not len(varying):
            raise AssertionError("sbc: no statistic varies, there is nothing to test")
        truths, kept = values[:, :1, varying], values[:, 1:, varying]
        # Ties are broken at random and the ranks spread out: exactly uniform on (0, 1).
        ties = (kept == truths).sum(axis=1)
        ranks = (kept < truths).sum(axis=1) + rng.integers(0, ties + 1)
        u = (ranks + rng.uniform(size=ranks.shape)) / (draws + 1)
        scores = np.zeros(len(varying))
        for degree in range(1, 5):
            component = np.sqrt(2.0 * degree + 1.0) * scipy.special.eval_sh_legendre(degree, u)
            scores += component.sum(axis=0) ** 2 / replicates
        return Verdict(
            test="sbc",
            statistics=tuple(scalars.names[i] for i in varying),
            scores=scores,
            p_values=scipy.special.chdtrc(4, scores),
            replicates=replicates,
            level=level,
        )

    return _sequential(run, replicates, random_seed)


def likelihood(
    model: Model[Any, Any],
    data: Any,
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
    replicates = as_positive_int(replicates, "replicates")

    def run(rng: np.random.Generator, replicates: int) -> Verdict:
        upsets, chances = 0, np.empty(replicates)  # how often the less likely state was true
        for i in range(replicates):
            truth, other = model.prior(rng, data), model.prior(rng, data)
            simulated = model.simulate(rng, truth, data)
            log_odds = float(
                model.log_likelihood(truth, simulated) - model.log_likelihood(other, simulated)
            )
            if not np.isfinite(log_odds):
                raise AssertionError(f"log_likelihood must be finite, a difference is {log_odds}")
            chances[i] = scipy.special.expit(-abs(log_odds))
            upsets += rng.uniform() < 0.5 if log_odds == 0.0 else log_odds < 0.0
        if (chances == 0.5).all():
            raise AssertionError("log_likelihood must depend on the state, but it never does")
        law = np.ones(1)  # of the number of upsets, a sum of independent Bernoullis
        for chance in chances:
            law = np.convolve(law, [1.0 - chance, chance])
        tails = law[: upsets + 1].sum(), law[upsets:].sum()
        deviation = max(np.sqrt((chances * (1.0 - chances)).sum()), np.finfo(np.float64).tiny)
        return Verdict(
            test="likelihood",
            statistics=("upsets",),
            scores=np.array([(upsets - chances.sum()) / deviation]),
            p_values=np.array([min(1.0, 2.0 * min(tails))]),
            replicates=replicates,
            level=level,
        )

    return _sequential(run, replicates, random_seed)


def check_geweke(model: Model[Any, Any], data: Any, **options: Any) -> Verdict:
    """`geweke` with an AssertionError if it fails."""
    return geweke(model, data, **options).require()


def check_sbc(model: Model[Any, Any], data: Any, *arguments: Any, **options: Any) -> Verdict:
    """`sbc` with an AssertionError if it fails."""
    return sbc(model, data, *arguments, **options).require()


def check_likelihood(model: Model[Any, Any], data: Any, **options: Any) -> Verdict:
    """`likelihood` with an AssertionError if it fails."""
    return likelihood(model, data, **options).require()


# --------------------------------------------------------------------------- conformance


def _bytes(value: Any, place: str) -> Any:
    """Everything about a value that a pure function must keep, comparable with ==."""
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise AssertionError(f"{place} must be a plain array, got dtype {value.dtype}")
        return value.dtype.str, value.shape, value.tobytes()
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return type(value), repr(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return type(value), [
            (field.name, _bytes(getattr(value, field.name), f"{place}.{field.name}"))
            for field in dataclasses.fields(value)
        ]
    raise AssertionError(
        f"{place} must be an array, a number, a string or a dataclass of those,"
        f" got {type(value).__name__}"
    )


def _changed_field(before: Any, after: Any) -> str:
    """The first field in which two snapshots differ."""
    names = [a[0] for a, b in zip(before[1], after[1], strict=False) if a != b]
    return names[0] if names else "its type"


def _pure(function: Callable[..., Any], random_seed: int, *arguments: Any) -> Any:
    """`function(rng, *arguments)`, which must change no argument and depend on rng alone."""
    name = getattr(function, "__name__", str(function))
    before = [_bytes(argument, type(argument).__name__) for argument in arguments]
    result = function(np.random.default_rng(random_seed), *arguments)
    snapshot = _bytes(result, type(result).__name__)
    for argument, old in zip(arguments, before, strict=True):
        new = _bytes(argument, type(argument).__name__)
        if new != old:
            raise AssertionError(
                f"{name} must not change its arguments, but it changed"
                f" {_changed_field(old, new)} of the {type(argument).__name__}"
            )
    for threads in (1, 2):
        with row_threads(threads, grain=1):
            again = function(np.random.default_rng(random_seed), *arguments)
        new = _bytes(again, type(again).__name__)
        if new != snapshot:
            raise AssertionError(
                f"{name} must give the same draws for the same seed, but"
                f" {_changed_field(snapshot, new)} differs in a second call with"
                f" {threads} row thread{'s' * (threads > 1)}"
            )
    return result


def _structure(value: Any, shapes: bool) -> dict[str, Any]:
    """Type and dtype of every field, with its shape or its number of axes."""
    structure: dict[str, Any] = {"its type": type(value).__name__}
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if isinstance(item, np.ndarray | np.generic | int | float):
            size = f"shape {np.shape(item)}" if shapes else f"{np.ndim(item)} axes"
            structure[field.name] = f"{np.asarray(item).dtype}, {size}"
        else:
            structure[field.name] = type(item).__name__
    return structure


def _same_structure(what: str, one: Any, other: Any, *, shapes: bool) -> None:
    expected, got = _structure(one, shapes), _structure(other, shapes)
    for name in expected | got:
        if expected.get(name) != got.get(name):
            raise AssertionError(
                f"{what}: {name} must stay {expected.get(name)}, got {got.get(name)}"
            )


def _check_protocol(model: Any) -> None:
    for name in ("coords", "prior", "simulate", "init", "step", "log_likelihood"):
        if not callable(getattr(model, name, None)):
            raise AssertionError(f"{type(model).__name__} must have a method {name}")
    for name in ("dims", "default_keep", "label_dims"):
        if not hasattr(model, name):
            raise AssertionError(f"{type(model).__name__} must have an attribute {name}")


def _check_plain(model: Any, data: Any, state: Any) -> None:
    for what, value in (("model", model), ("data", data), ("state", state)):
        kind = type(value)
        parameters = getattr(kind, "__dataclass_params__", None)
        if parameters is None or not parameters.frozen:
            raise AssertionError(f"the {what} must be a frozen dataclass, {kind.__name__} is not")
    for field in dataclasses.fields(state):
        if not isinstance(getattr(state, field.name), np.ndarray | np.generic | int | float):
            kind = type(getattr(state, field.name))
            raise AssertionError(
                f"{field.name} of the state must be a plain array, got {kind.__name__}"
            )


def _check_dims(model: Any, data: Any, state: Any) -> None:
    coords = model.coords(data)
    sizes: dict[str, int] = {}
    fields = {field.name for field in dataclasses.fields(state)}
    for name in model.default_keep:
        if name not in model.dims:
            raise AssertionError(f"default_keep names {name!r}, which is not in dims")
    for name, axes in model.dims.items():
        if name not in fields and not callable(getattr(model, name, None)):
            raise AssertionError(
                f"dims names {name!r}, neither a field of the state nor a method of the model"
            )
        value = getattr(state, name) if name in fields else getattr(model, name)(state, data)
        shape = np.shape(value)
        if len(shape) != len(axes):
            raise AssertionError(f"{name} must have the axes {axes}, got shape {shape}")
        for axis, size in zip(axes, shape, strict=True):
            if sizes.setdefault(axis, size) != size:
                raise AssertionError(
                    f"axis {axis!r} has length {sizes[axis]}, but {size} in {name}"
                )
    for axis, labels in coords.items():
        if len(labels) != sizes.get(axis, len(labels)):
            raise AssertionError(f"coords has {len(labels)} labels for {sizes[axis]} {axis!r}")
    stray = model.label_dims - sizes.keys()
    if stray:
        raise AssertionError(f"label_dims names {sorted(stray)}, which no variable has")


def _check_moves(model: Any, data: Any, rng: np.random.Generator) -> None:
    """Every entry that varies under the prior must move; a stuck block is invariant too."""
    truth, other = model.prior(rng, data), model.prior(rng, data)
    simulated = model.simulate(rng, truth, data)
    start = state = model.init(rng, simulated)
    names = [field.name for field in dataclasses.fields(truth)]
    for _ in range(_MAX_SWEEPS_TO_MOVE):
        state = model.step(rng, state, simulated)
        stuck = [name for name in names if _is_stuck(name, truth, other, start, state)]
        if not stuck:
            return
    raise AssertionError(
        f"step must move every variable, but after {_MAX_SWEEPS_TO_MOVE} sweeps entries of"
        f" {stuck[0]} are where the chain started"
    )


def _is_stuck(name: str, truth: Any, other: Any, start: Any, state: Any) -> bool:
    one, two, first, last = (np.asarray(getattr(s, name)) for s in (truth, other, start, state))
    if not one.shape == two.shape == first.shape == last.shape or one.dtype.kind != "f":
        return not np.array_equal(one, two) and np.array_equal(first, last)
    return bool(((one != two) & (first == last)).any())


def _check_round_trip(model: Any, data: Any, state: Any, random_seed: int) -> None:
    """A state read back from a file of plain arrays continues exactly as the original does."""
    fields = {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}
    file = io.BytesIO()
    np.savez(file, **fields)
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        restored = type(state)(
            **{
                name: arrays[name] if isinstance(value, np.ndarray) else type(value)(arrays[name])
                for name, value in fields.items()
            }
        )
    one = model.step(np.random.default_rng(random_seed), state, data)
    other = model.step(np.random.default_rng(random_seed), restored, data)
    if _bytes(one, "state") != _bytes(other, "state"):
        raise AssertionError("a state rebuilt from its fields must continue exactly as it did")


def check_model(
    model: Model[Any, Any],
    data: Any,
    *,
    statistics: Statistics | None = None,
    replicates: int = 1000,
    sweeps: int = 5,
    random_seed: int = 0,
) -> Verdict:
    """Everything that `pgmult.sample` and the other tests rely on, then `geweke`.

    Checks that the model, its data and its states are frozen dataclasses of plain arrays; that
    `prior`, `simulate`, `init` and `step` change no argument and draw the same for the same seed
    on one thread and two; that `prior` and `simulate` do not read the counts, and that simulated
    data keep dtypes and, where the data have a property of that name, `totals`; that
    `log_likelihood` is finite, repeatable and the law of `simulate`; that `dims` and `coords`
    agree with the arrays; that `step` moves everything that the prior varies; that a state
    rebuilt from its fields continues exactly; and that `step` leaves the joint law invariant.

    Parameters
    ----------
    model : Model
    data : Data
        Tiny. Include the awkward rows: an empty one, a category that never occurs.
    statistics, replicates, sweeps, random_seed
        Of `geweke`.

    Returns
    -------
    Verdict
        Of `geweke`.

    Raises
    ------
    AssertionError
        At the first thing that is wrong.
    """
    _check_protocol(model)
    rng = np.random.default_rng(random_seed)
    _check_plain(model, data, model.prior(rng, data))

    state = _pure(model.prior, random_seed, data)
    simulated = _pure(model.simulate, random_seed, state, data)
    start = _pure(model.init, random_seed, simulated)
    last = _pure(model.step, random_seed, start, simulated)

    _same_structure("simulate", data, simulated, shapes=False)
    if hasattr(data, "totals") and not np.array_equal(data.totals, simulated.totals):
        raise AssertionError("simulate must keep the totals of the data")
    poisoned = model.simulate(rng, model.prior(rng, data), data)
    again = model.prior(np.random.default_rng(random_seed), poisoned)
    if _bytes(again, "state") != _bytes(state, "state"):
        raise AssertionError("prior must not read the counts, but other counts change its draw")
    again = model.simulate(np.random.default_rng(random_seed), state, poisoned)
    if _bytes(again, "data") != _bytes(simulated, "data"):
        raise AssertionError("simulate must not read the counts, but other counts change its draw")
    _same_structure("init", model.prior(rng, simulated), start, shapes=True)
    _same_structure("step", start, last, shapes=True)

    for name, point in (("a prior draw", state), ("init", start), ("step", last)):
        value = model.log_likelihood(point, simulated)
        if np.ndim(value) or not np.isfinite(value):
            raise AssertionError(f"log_likelihood must be a finite number, got {value} at {name}")
        if model.log_likelihood(point, simulated) != value:
            raise AssertionError("log_likelihood must give the same number twice")

    _check_dims(model, simulated, last)
    _check_round_trip(model, simulated, last, random_seed)
    _check_moves(model, data, rng)
    check_likelihood(model, data, replicates=replicates, random_seed=random_seed)
    return check_geweke(
        model,
        data,
        statistics=statistics,
        replicates=replicates,
        sweeps=sweeps,
        random_seed=random_seed,
    )


# --------------------------------------------------------------------------- mutants


def mutant(original: Any, **attributes: Any) -> Any:
    """A copy of a model (or a link, or a prior) with some methods or constants replaced.

    >>> from fractions import Fraction
    >>> mutant(Fraction(1, 2), __abs__=lambda self: -self).__abs__()
    Fraction(-1, 2)
    """
    kind = type(original)
    broken = type(f"Broken{kind.__name__}", (kind,), {"__slots__": (), **attributes})
    clone = copy.copy(original)
    object.__setattr__(clone, "__class__", broken)
    return clone


def rejects(check: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Assert that a check raises AssertionError; the error's message.

    Any other exception is passed on: a mutant that crashes has not been rejected.
    """
    try:
        check(*arguments, **options)
    except AssertionError as error:
        return str(error)
    raise AssertionError(f"{getattr(check, '__name__', check)} did not reject the mutant")
