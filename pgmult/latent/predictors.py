"""The latent Gaussian of a formula: its terms' priors, their design, and rows of new levels.

`latent_of` puts the terms of a design side by side.

Levels without data are drawn from the prior of their term: independent effects, or a walk's value
given those at its known times. Random numbers of a level are keyed by its label, so that what is
drawn for it does not depend on which other new levels there are.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtri

from pgmult.core.arguments import brief
from pgmult.core.typing import FloatArray, Generator, IntArray
from pgmult.core.validate import new_key
from pgmult.formulas.design import Design, terms_named
from pgmult.formulas.terms import GroupTerm, ProcessTerm, SplineTerm, times_of
from pgmult.formulas.terms import Term as FormulaTerm
from pgmult.latent.additive import Additive
from pgmult.latent.terms import Areas, Basis, Fixed, LevelEffects, Scaled, Shrunk, Term, log_sd
from pgmult.priors import LKJ, HalfT, Horseshoe, LogNormal, Normal

_SINGULAR = 1e-12
_COEFFICIENT = 2.5  # prior sd of coefficients of standardised columns
WEYL = np.uint64(0x9E3779B97F4A7C15)
_SD, _CORRELATION, _LENGTH = HalfT(), LKJ(), LogNormal(0.5, 1.0)  # of a process: half the range
Distribution = Normal | HalfT | Horseshoe | LKJ | LogNormal
Priors = Mapping[str, Distribution | tuple[Distribution, ...]]


class _Piece(NamedTuple):
    """A term: the prior of its weights, their design, and that of new levels."""

    prior: Term
    design: Any
    names: list[str]
    fresh: Any = None
    sds: tuple[str, ...] = ()
    units: FloatArray | None = None  # of effects of a level, from ours to the columns'
    keys: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)  # of the columns of `fresh`

    def noise(self, key: NDArray[np.uint64], num: int) -> FloatArray:
        """Standard normal numbers of new levels, so many of each column that rows see."""
        numbered = mixed_bits(key[:1] + np.arange(1, num + 1, dtype=np.uint64) * WEYL)
        bits = mixed_bits((self.keys[:, None] + numbered) ^ key[1])
        return np.asarray(ndtri(((bits >> np.uint64(12)) + 0.5) * 2.0**-52))


@dataclass(frozen=True, slots=True, eq=False)
class Latent:
    """A latent Gaussian, with names for reports.

    Attributes
    ----------
    family : Additive
    pieces : tuple
    offset : array, ``(num_rows, num_scores)`` or ``(num_rows, 1)``
        That of `family`, or one of each of several predictors.
    is_shared : bool
        Whether predictors of a row share the effects of new levels.
    """

    family: Additive
    pieces: tuple[_Piece, ...]
    offset: FloatArray
    is_shared: bool = False

    @property
    def names(self) -> NDArray[np.str_]:
        """Names of the weights."""
        return np.array([name for piece in self.pieces for name in piece.names], dtype=np.str_)

    @property
    def sd_names(self) -> NDArray[np.str_]:
        """Names of the standard deviations."""
        return np.array([name for piece in self.pieces for name in piece.sds], dtype=np.str_)

    def sds(self, x: FloatArray) -> FloatArray:
        """Standard deviations at hyperparameters, slopes in the units of their columns."""
        sds = []
        for piece, at in zip(self.pieces, self.family.hyperparameters, strict=True):
            if isinstance(piece.prior, LevelEffects) and piece.units is not None:
                root = piece.units @ piece.prior.cov_root(x[at])
                sds.append(np.sqrt(np.sum(root**2, axis=1)))
            else:
                sds.append(np.exp(log_sd(x[at][: piece.prior.num_sds])))
        return np.concatenate(sds)

    def predictors(self, weights: FloatArray) -> FloatArray:
        """Predictors of all rows, ``(..., num_rows, num_scores)``.

        Parameters
        ----------
        weights : array, ``(..., num_scores, num_weights)``
        """
        flat = self.family.times(weights.reshape(-1, weights.shape[-1]).T)
        psi = flat.reshape(len(flat), *weights.shape[:-1])
        return np.ascontiguousarray(np.moveaxis(psi, 0, -2)) + self.offset

    def draw(self, rng: Generator, weights: FloatArray, x: FloatArray) -> FloatArray:
        """Predictors of all rows, ``(num_rows, num_scores)``, with effects of new levels drawn.

        Parameters
        ----------
        rng : numpy.random.Generator
        weights : array, ``(num_scores, num_weights)``
        x : array, ``(num_scores, num_hyperparameters)``, or one row for all scores
        """
        psi, key, num = self.predictors(weights), new_key(rng), len(weights)
        for piece, at in zip(self.pieces, self.family.hyperparameters, strict=True):
            if piece.fresh is not None:
                noise = piece.noise(key, 1 if self.is_shared else num)
                for score in range(num):
                    column = noise[:, 0 if self.is_shared else score]
                    at_score = x[score if len(x) == num else 0, at]
                    psi[:, score] += piece.fresh @ piece.prior.spread(at_score, column)
        return psi


def mixed_bits(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Random bits of each number (Steele, Lea and Flood 2014, "Fast splittable generators")."""
    z = numbers ^ (numbers >> np.uint64(30))
    z = z * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def _keys(names: Iterable[str]) -> NDArray[np.uint64]:
    """A number that each name alone determines."""
    digests = [hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def latent_of(
    design: Design, priors: Priors | None = None, columns: slice | NDArray[Any] = slice(None)
) -> Latent:
    """The latent Gaussian of a design: its terms side by side.

    Parameters
    ----------
    design : Design
    priors : mapping from term to distribution, optional
    columns : mask, int array or slice
        Columns of the design matrix to take.
    """
    priors = priors or {}
    pieces = [_piece(term, priors_of(term, priors)) for term in design.terms]
    pieces = [_coefficients(design, priors, columns), *pieces]
    offset = np.zeros(len(design.matrix)) if design.offset is None else design.offset
    together = sparse.hstack([sparse.csr_array(piece.design) for piece in pieces])
    family = Additive([piece.prior for piece in pieces], together, offset)
    return Latent(family, tuple(pieces), family.offset[:, None])


# --------------------------------------------------------------------------- one term


def _coefficients(design: Design, priors: Priors, columns: slice | NDArray[Any]) -> _Piece:
    """The coefficients of the design's columns, whose scale may be learned."""
    names, matrix = design.names[columns].tolist(), design.matrix[:, columns]
    scales = coefficient_scales(design, priors)
    scales = scales[columns] if isinstance(scales, np.ndarray) else scales
    shared = priors.get("fixed")
    if not isinstance(shared, HalfT | Horseshoe):
        return _Piece(Fixed(len(names), scales), matrix, names)
    learned = [i for i, name in enumerate(names) if name not in ("Intercept", *priors)]
    is_local = isinstance(shared, Horseshoe)
    every, which = np.zeros(len(names)) + scales, np.array(learned, dtype=np.int64)
    prior = Shrunk(every, which, shared.scale, getattr(shared, "dof", 1.0), is_local)
    local = [f"fixed[{names[i]}]" for i in learned] if is_local else []
    return _Piece(prior, matrix, names, sds=("fixed", *local))


def _piece(term: FormulaTerm, priors: Mapping[type, Any]) -> _Piece:
    """The prior of a term's weights and their design."""
    sd = priors.get(HalfT, _SD)
    prior = {"scale": sd.scale, "dof": sd.dof}
    names = [f"{term.name}[{level}]" for level in term.levels]
    sds: tuple[str, ...] = (term.name,)
    if isinstance(term, SplineTerm):
        smooth = Scaled(sparse.eye_array(term.size, format="csr"), **prior)
        return _Piece(smooth, term.basis, names, sds=sds)
    if isinstance(term, ProcessTerm):
        length, num = _length_of(term, priors), len(term.expressions)
        more = {"length": length.median / term.unit, "length_sd": length.sd}
        return _Piece(Basis(term.frequencies, num, **prior, **more), term.basis, names, sds=sds)
    levels = ["\0".join([term.name, *row]) for row in term.new.tolist()]
    keys = _keys(f"{level}\0{i}" for level in levels for i in range(term.width))
    if term.times is not None:
        free = np.delete(np.arange(term.size), term.size // 2)  # the middle one, without weight
        design, fresh = _at_times(term)
        walk = Scaled.walk(term.times, **prior)
        return _Piece(walk, design[:, free], [names[i] for i in free], fresh, sds, keys=keys)
    values = np.ones((len(term.codes), 1)) if term.slopes is None else term.slopes.values
    columns = _by_level(term.codes, values, len(term.known))
    if term.neighbours is not None:
        return _Piece(Areas.of(term.neighbours, term.size, **prior), columns, names, None, sds)
    fresh = _by_level(-1 - term.codes, values, len(term.new)) if len(term.new) else None
    if term.slopes is None:
        alone = LevelEffects(len(term.known), 1, **prior)
        return _Piece(alone, columns, names, fresh, sds, keys=keys)
    scales = sd.scale * term.slopes.scale if HalfT in priors else np.full(term.width, sd.scale)
    eta = priors.get(LKJ, _CORRELATION).eta
    wide = LevelEffects(len(term.known), term.width, scales, sd.dof, eta)
    sds = tuple(f"{term.name}[{name}]" for name in term.slopes.names)
    units = term.slopes.unscale(np.eye(term.width))
    return _Piece(wide, columns, names, fresh, sds, units, keys)


def _length_of(term: ProcessTerm, priors: Mapping[type, Any]) -> LogNormal:
    """The prior of a process's length scale, in units of its inputs."""
    length: LogNormal = priors.get(LogNormal, LogNormal(_LENGTH.median * term.unit, _LENGTH.sd))
    return length


def _by_level(codes: IntArray, values: FloatArray, num_levels: int) -> sparse.csr_array:
    """Design of effects of levels, those of a level side by side; codes below 0 have none."""
    rows, width = np.flatnonzero(codes >= 0), values.shape[1]
    columns = codes[rows, None] * width + np.arange(width)
    places = (values[rows].ravel(), (np.repeat(rows, width), columns.ravel()))
    return sparse.csr_array(places, shape=(len(codes), num_levels * width))


def _at_times(term: GroupTerm) -> tuple[sparse.csr_array, sparse.csr_array | None]:
    """Design of a walk's values, and of what new times add to them.

    At a new time between two known ones the value is on the straight line and a Brownian bridge
    beside it; before the first and after the last it walks on.
    """
    times, num, intercept = np.asarray(term.times), len(term.new), np.ones((len(term.codes), 1))
    design = _by_level(term.codes, intercept, term.size)
    if not num:
        return design, None
    at, new = times_of(term.new[:, 0].tolist(), term.name), np.arange(num)
    inside = np.clip(at, times[0], times[-1])
    after = np.clip(np.searchsorted(times, inside), 1, term.size - 1)
    before, gap = times[after - 1], times[after] - times[after - 1]
    share = (inside - before) / gap
    places = (np.append(new, new), np.append(after - 1, after))
    line = sparse.csr_array((np.append(1.0 - share, share), places), shape=(num, term.size))
    # beyond an end (-1 and 1) times share their way out; within a gap they share a bridge
    side, out = np.sign(at - inside), np.abs(at - inside)
    cov = np.minimum(out[:, None], out) * (side[:, None] == side) * (side != 0.0)
    low, high = np.minimum(share[:, None], share), np.maximum(share[:, None], share)
    bridge = (after[:, None] == after) & (side == 0.0) & (side[:, None] == 0.0)
    cov = (cov + np.where(bridge, gap * low * (1.0 - high), 0.0)) / Scaled.unit_of(times)
    cov += _SINGULAR * cov.max() * np.eye(num)  # labels may write one time in several ways
    # a time's own number moves no time that is nearer to what is known
    nearest = np.ix_(*[np.argsort(out + share, kind="stable")] * 2)
    root = np.zeros((num, num))
    root[nearest] = np.linalg.cholesky(cov[nearest])
    fresh = _by_level(-1 - term.codes, intercept, num)
    return design + fresh @ line, sparse.csr_array(fresh @ root)


# --------------------------------------------------------------------------- priors by name


def _as_tuple(prior: object) -> tuple[Any, ...]:
    return prior if isinstance(prior, tuple) else (prior,)


def as_priors(priors: object, name: str) -> dict[str, Distribution | tuple[Distribution, ...]]:
    """Priors by the name of a term or a column.

    Raises
    ------
    TypeError, ValueError
        If it is no mapping from names to distributions.
    """
    if not isinstance(priors, Mapping):
        raise TypeError(f"{name} must map terms to distributions, got {brief(priors)}")
    for key, prior in priors.items():
        are_priors = all(isinstance(one, Distribution) for one in _as_tuple(prior))
        if not isinstance(key, str) or not are_priors:
            kinds = "of pgmult.priors (Normal, HalfT, Horseshoe, LKJ, LogNormal), or several"
            got = f"{brief(prior)} for {brief(key)}"
            raise TypeError(f"{name} must give each term a distribution {kinds}, got {got}")
        means = [one.mean for one in _as_tuple(prior) if isinstance(one, Normal)]
        if any(means):
            hint = "what is known of an effect goes into offset(...)"
            raise ValueError(f"{name}: the mean of {key!r} must be 0, got {means[0]} ({hint})")
    return dict(priors)


def check_priors(design: Design, priors: Priors, learns_scales: bool = False) -> None:
    """Refuse priors of what a design does not have.

    Parameters
    ----------
    design : Design
    priors : mapping from term to distribution
    learns_scales : bool
        Whether the scale of "fixed" coefficients may be learned.

    Raises
    ------
    ValueError
        If a prior is of a term that the model does not have.
    """
    allowed: dict[str, Any] = dict.fromkeys(["fixed", *design.names.tolist()], (Normal,))
    if learns_scales:
        allowed["fixed"] = (Normal, HalfT, Horseshoe)
    titles, more = list(allowed), {"process": (LogNormal,), "slopes": (LKJ,)}
    titles += [term.title for term in design.terms]
    of_terms = {term.name: (HalfT, *more.get(term.kind, ())) for term in design.terms}
    for key, prior in priors.items():
        kinds = [allowed[key]] if key in allowed else [of_terms.get(n) for n in terms_named(key)]
        if not all(kinds) or not kinds:
            raise ValueError(f"priors has {key!r}, but the model has {', '.join(titles)}")
        for one in _as_tuple(prior):
            for kind in filter(None, kinds):
                if type(one) not in kind:
                    wanted = " and ".join(one.__name__ for one in kind)
                    raise ValueError(f"the prior of {key} is a {wanted}, got {one}")


def priors_of(term: FormulaTerm, priors: Priors) -> dict[type, Any]:
    """The priors that were set for a term, by kind of distribution."""
    by_kind: dict[type, Any] = {}
    for key, prior in priors.items():
        if term.name in terms_named(key):
            by_kind |= {type(one): one for one in _as_tuple(prior)}
    return by_kind


def coefficient_scales(design: Design, priors: Priors) -> Any:
    """Prior standard deviations of coefficients of the design's columns."""
    scales = np.full(len(design.names), _COEFFICIENT)
    said = False
    for key in ("fixed", *design.names.tolist()):
        if isinstance(priors.get(key), Normal | tuple):
            (normal,) = _as_tuple(priors[key])
            which = design.names != "Intercept" if key == "fixed" else design.names == key
            scales[which] = normal.sd * design.scale[which]
            said = True
    return scales if said else _COEFFICIENT


def prior_rows(design: Design, priors: Priors) -> list[tuple[str, str, str]]:
    """Every prior in the units of the user's columns: term, parameter, distribution."""
    scales = np.zeros(len(design.names)) + coefficient_scales(design, priors)
    named = zip(design.names.tolist(), scales / design.scale, strict=True)
    rows = [(name, "coefficient", str(Normal(0.0, sd))) for name, sd in named]
    common = priors.get("fixed")
    if isinstance(common, HalfT | Horseshoe):
        parameter = "coefficient" if isinstance(common, Horseshoe) else "sd"
        rows = [row for row in rows if row[0] in ("Intercept", *priors)]
        rows.append(("fixed, a standard deviation of each column", parameter, str(common)))
    for term in design.terms:
        set_priors = priors_of(term, priors)
        sd = set_priors.get(HalfT, _SD)
        of_term = [("sd", sd)]
        if isinstance(term, GroupTerm) and term.slopes is not None:
            units = np.ones(term.width) if HalfT in set_priors else term.slopes.scale
            names = term.slopes.names.tolist()
            if names[0] == "Intercept" and term.slopes.centre.any():
                names[0] = "Intercept, where columns are average"
            named = zip(names, sd.scale / units, strict=True)
            of_term = [(f"sd of {name}", HalfT(sd.dof, scale)) for name, scale in named]
            if term.width > 1:
                of_term.append(("correlations", set_priors.get(LKJ, _CORRELATION)))
        if isinstance(term, ProcessTerm):
            of_term.append(("length scale", _length_of(term, set_priors)))
        if term.kind == "map":
            of_term.append(("share of neighbours", "Uniform(0, 1)"))
        rows += [(term.title, parameter, str(prior)) for parameter, prior in of_term]
    return rows
