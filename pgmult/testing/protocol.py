"""Does a model follow the protocol? First the deterministic checks, then the statistical ones."""

import dataclasses
import io
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

import numpy as np

from pgmult.compiled.rows import row_threads
from pgmult.core.arguments import as_repeats, brief
from pgmult.core.parameters import axes_of, sizes_of
from pgmult.core.typing import Generator, Model, absent_of, coords_of, traits_of, variable
from pgmult.core.validate import as_positive_int
from pgmult.testing import sampling
from pgmult.testing.sampling import Statistics, Verdict, require

_MAX_SWEEPS_TO_MOVE = 100
_PLAIN = np.ndarray | np.generic | int | float


# --------------------------------------------------------------------------- conformance


def _fields(value: Any, record: str = "") -> dict[str, Any]:
    """Fields by name, those of a record in a field as ``record.name``."""
    found: dict[str, Any] = {}
    for name in (field.name for field in dataclasses.fields(value)):
        item = getattr(value, name)
        is_record = dataclasses.is_dataclass(item)
        found |= _fields(item, f"{record}{name}.") if is_record else {f"{record}{name}": item}
    return found


def _bytes(value: object, place: str = "") -> object:
    """Everything about a value that a pure function must keep, comparable with ==."""
    place = place or type(value).__name__
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise AssertionError(f"{place} must be a plain array, got dtype {value.dtype}")
        return value.dtype.str, value.shape, value.tobytes()
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return type(value), repr(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return type(value), [(n, _bytes(getattr(value, n), f"{place}.{n}")) for n in names]
    if type(value) is tuple:
        return tuple, [_bytes(item, f"{place}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return Mapping, [(key, _bytes(value[key], f"{place}[{key!r}]")) for key in sorted(value)]
    kinds = "an array, a number, a string, or a tuple, mapping or dataclass of those"
    raise AssertionError(f"{place} must be {kinds}, got {type(value).__name__}")


def _changed_field(before: Any, after: Any) -> str:
    """The first field in which two snapshots differ; empty if none."""
    names = [a[0] for a, b in zip(before[1], after[1], strict=False) if a != b]
    return next(iter(names), "" if before == after else "its type")


def _pure(function: Callable[..., object], random_seed: int, *arguments: object) -> Any:
    """`function(rng, *arguments)`, which must change no argument and depend on rng alone."""
    name = getattr(function, "__name__", str(function))
    before = [_bytes(argument) for argument in arguments]
    result = function(np.random.default_rng(random_seed), *arguments)
    snapshot = _bytes(result)
    for argument, old in zip(arguments, before, strict=True):
        changed, kind = _changed_field(old, _bytes(argument)), type(argument).__name__
        words = f"{name} must not change its arguments, but it changed {changed} of the {kind}"
        require(not changed, words)
    for threads in (1, 2):
        with row_threads(threads, grain=1):
            again = function(np.random.default_rng(random_seed), *arguments)
        changed = _changed_field(snapshot, _bytes(again))
        how = f"in a second call with {threads} row thread{'s' * (threads > 1)}"
        words = f"{name} must give the same draws for the same seed, but {changed} differs"
        require(not changed, f"{words} {how}")
    return result


def _structure(value: Any, shapes: bool) -> dict[str, object]:
    """Type and dtype of every field, with its shape or its number of axes."""
    structure: dict[str, Any] = {"its type": type(value).__name__}
    for name, item in _fields(value).items():
        structure[name] = type(item).__name__
        if isinstance(item, _PLAIN):
            size = f"shape {np.shape(item)}" if shapes else f"{np.ndim(item)} axes"
            structure[name] = f"{np.asarray(item).dtype}, {size}"
    return structure


def _same_structure(what: str, one: object, other: object, *, shapes: bool) -> None:
    expected, got = _structure(one, shapes), _structure(other, shapes)
    for name in expected | got:
        before, after = expected.get(name), got.get(name)
        require(before == after, f"{what}: {name} must stay {before}, got {after}")


def _check_plain(model: object, data: object, state: Any) -> None:
    for what, value in (("model", model), ("data", data), ("state", state)):
        kind = type(value)
        frozen = getattr(getattr(kind, "__dataclass_params__", None), "frozen", False)
        require(frozen, f"the {what} must be a frozen dataclass, {kind.__name__} is not")
    for name, value in _fields(state).items():
        got = type(value).__name__
        require(isinstance(value, _PLAIN), f"{name} of the state must be a plain array, got {got}")


def _check_dims(model: Model[Any, Any], data: object, state: object) -> None:
    """Do the axes that data and state declare, `dims`, `coords` and the arrays agree?"""
    traits, absent = traits_of(model), absent_of(model, data)
    try:
        sizes = sizes_of(state, without=absent)
        sizes_of(data)
    except ValueError as error:
        raise AssertionError(str(error)) from None
    named: dict[str, str] = {}  # a state that models share may name its axes in general words
    for name, declared in axes_of(type(state)).items():
        actual = tuple(model.dims.get(name, declared))
        pairs = zip(declared, actual, strict=False)
        same = all(named.setdefault(axis, word) == word for axis, word in pairs)
        same = same and len(actual) == len(declared)
        require(same, f"dims names the axes {actual} of {name}, its state {declared}")
    stray = [name for name in traits.default_keep if name not in model.dims]
    require(not stray, f"default_keep names {stray[:1]}, which is not in dims")
    for name, axes in model.dims.items():
        if name in absent:
            continue
        words = f"dims names {name!r}, neither an attribute of the state nor a method of the model"
        require(hasattr(state, name) or callable(getattr(model, name, None)), words)
        shape = np.shape(variable(model, state, data, name))
        require(len(shape) == len(axes), f"{name} must have the axes {axes}, got shape {shape}")
        for axis, size in zip(axes, shape, strict=True):
            expected = sizes.setdefault(axis, size)
            require(expected == size, f"axis {axis!r} has length {expected}, but {size} in {name}")
    for axis, labels in coords_of(model, data).items():
        size = sizes.get(axis, len(labels))
        require(len(labels) == size, f"coords has {len(labels)} labels for {size} {axis!r}")
    for name in ("label_dims", "basis_dims"):
        stray = sorted(getattr(traits, name) - sizes.keys())
        require(not stray, f"{name} names {stray}, which no variable has")


def _check_moves(model: Model[Any, Any], data: object, rng: Generator) -> None:
    """Every entry that varies under the prior must move, which other tests do not notice."""
    truth, other = model.prior(rng, data), model.prior(rng, data)
    simulated = model.simulate(rng, truth, data)
    start = state = model.init(rng, simulated)
    for _ in range(_MAX_SWEEPS_TO_MOVE):
        state = model.step(rng, state, simulated)
        stuck = [name for name in _fields(truth) if _is_stuck(name, truth, other, start, state)]
        if not stuck:
            return
    words = f"step must move every variable, but after {_MAX_SWEEPS_TO_MOVE} sweeps entries of"
    raise AssertionError(f"{words} {stuck[0]} are where the chain started")


def _is_stuck(name: str, truth: object, other: object, start: object, state: object) -> bool:
    one, two, first, last = map(np.asarray, map(attrgetter(name), (truth, other, start, state)))
    if not one.shape == two.shape == first.shape == last.shape or one.dtype.kind != "f":
        return not np.array_equal(one, two) and np.array_equal(first, last)
    return bool(((one != two) & (first == last)).any())


def _read_back(value: Any) -> Any:
    kind: Any = type(value)
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return kind(**{name: _read_back(getattr(value, name)) for name in names})
    file = io.BytesIO()
    np.save(file, value, allow_pickle=False)
    file.seek(0)
    array = np.load(file, allow_pickle=False)
    return array if isinstance(value, np.ndarray) else kind(array)


def _check_round_trip(model: Model[Any, Any], data: object, state: Any, random_seed: int) -> None:
    """A state read back from a file of plain arrays continues exactly as the original does."""
    one = model.step(np.random.default_rng(random_seed), state, data)
    other = model.step(np.random.default_rng(random_seed), _read_back(state), data)
    same = _bytes(one) == _bytes(other)
    require(same, "a state rebuilt from its fields must continue exactly as it did")


def check_model(
    model: Model[Any, Any],
    data: object,
    *,
    statistics: Statistics | None = None,
    replicates: int = 1000,
    sweeps: int = 5,
    random_seed: int = 0,
) -> Verdict:
    """Check everything that `pgmult.sample` and the other tests rely on, then `geweke`.

    Checks that the model, its data and its states are frozen dataclasses of plain arrays; that
    `prior`, `simulate`, `init` and `step` change no argument and draw the same for the same seed
    on one thread and two; that `prior` and `simulate` do not read the counts, and that simulated
    data keep dtypes and, where the data have a property of that name, `totals`; that
    `log_likelihood` is finite, repeatable and the density of `simulate`; that `dims` and `coords`
    agree with the arrays; that `step` moves everything that the prior varies; that a state
    rebuilt from its fields continues exactly; and that `step` leaves the joint density invariant.

    Parameters
    ----------
    model : Model
    data : Data
        Tiny. Include the awkward rows: an empty one, a category that never occurs.
    statistics, sweeps, random_seed
        Of `geweke`.
    replicates : int
        Of `geweke` and `likelihood`. 300 miss half a degree of freedom too many; the default finds
        it.

    Returns
    -------
    Verdict
        Of `geweke`.

    Raises
    ------
    AssertionError
        At the first thing that is wrong.
    """
    data = sampling.settled(model, data)
    named = isinstance(getattr(model, "dims", None), Mapping)
    require(named, f"model must have an attribute dims, a mapping: {brief(model)}")
    as_repeats(replicates, "replicates", minimum=2 * sampling.MIN_CHANGES)
    rng = np.random.default_rng(as_positive_int(random_seed, "random_seed", minimum=0))
    _check_plain(model, data, model.prior(rng, data))

    state = _pure(model.prior, random_seed, data)
    simulated = _pure(model.simulate, random_seed, state, data)
    start = _pure(model.init, random_seed, simulated)
    last = _pure(model.step, random_seed, start, simulated)

    _same_structure("simulate", data, simulated, shapes=False)
    if hasattr(data, "totals"):
        same = np.array_equal(data.totals, simulated.totals)
        require(same, "simulate must keep the totals of the data")
    poisoned = model.simulate(rng, model.prior(rng, data), data)
    draws: dict[str, Any] = {"prior": ((), state), "simulate": ((state,), simulated)}
    for name, (conditions, drawn) in draws.items():
        again = getattr(model, name)(np.random.default_rng(random_seed), *conditions, poisoned)
        same = _bytes(again) == _bytes(drawn)
        require(same, f"{name} must not read the counts, but other counts change its draw")
    _same_structure("init", model.prior(rng, simulated), start, shapes=True)
    _same_structure("step", start, last, shapes=True)

    for name, point in (("a prior draw", state), ("init", start), ("step", last)):
        value = model.log_likelihood(point, simulated)
        finite = np.ndim(value) == 0 and np.isfinite(value)
        require(finite, f"log_likelihood must be a finite number, got {value} at {name}")
        again = model.log_likelihood(point, simulated)
        require(again == value, "log_likelihood must give the same number twice")

    _check_dims(model, simulated, last)
    _check_round_trip(model, simulated, last, random_seed)
    _check_moves(model, data, rng)
    options = {"replicates": replicates, "random_seed": random_seed}
    sampling.check_likelihood(model, data, **options)
    return sampling.check_geweke(model, data, statistics=statistics, sweeps=sweeps, **options)
