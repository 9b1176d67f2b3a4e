"""Draws from a posterior, with named axes.

A `Posterior` maps each kept variable to a plain array ``(chain, draw, ...)``; `dims` names its axes
and `coords` labels them. It is what `pgmult.sample` returns, `Posterior.save` writes and
`pgmult.load` reads.

>>> import numpy as np
>>> draws = {"mu": np.random.default_rng(0).normal(size=(4, 500, 2))}
>>> posterior = Posterior(draws, dims={"mu": ("side",)}, coords={"side": ["left", "right"]})
>>> posterior
<Posterior: 4 chains x 500 draws
  mu  (side: 2)>
>>> posterior["mu"].shape, posterior.dims["mu"]
((4, 500, 2), ('chain', 'draw', 'side'))
>>> print(posterior.summary())
entry           mean      sd      5%    95%  mcse_mean  ess_bulk  ess_tail  r_hat
mu[left]    -0.02417   1.002  -1.674  1.656    0.02421      1712      1820  1.000
mu[right]  -0.006033  0.9946    -1.6  1.636    0.02211      2022      2013  1.001
"""

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pgmult.core._version import __version__
from pgmult.core.arguments import as_choice, as_flag, as_path, as_seed
from pgmult.core.family import family_of
from pgmult.sampling._arviz import to_arviz
from pgmult.sampling.convergence import convergence_problems, label_matches
from pgmult.sampling.draws import Draws
from pgmult.sampling.labels import LabelMatches
from pgmult.sampling.origin import Origin
from pgmult.sampling.store import RunReader, RunWriter, StoredDraws, rectangle
from pgmult.sampling.summary import Summary, summarise

_SUMMARY_ENTRIES = 1000  # of one variable, in a summary by default


class Posterior(Draws):
    """Draws of the kept variables.

    Parameters
    ----------
    draws : mapping from name to array, ``(chain, draw, ...)``
    dims : mapping from name to the names of the axes after chain and draw
        Variables left out get ``<name>_dim_0`` and so on.
    coords : mapping from an axis's name to its labels, optional
        Axes left out are numbered from 0.
    sample_stats : mapping from name to array, ``(chain, draw)``, optional
    attrs : mapping, optional
        Whatever else describes the run, in JSON's types.
    label_dims : collection of str, optional
        Axes whose labels need not agree between chains: variables that carry one are diagnosed
        within each chain only.
    origin : Origin, optional
        The model and data that the draws are of: `pgmult.sampling.Origin.of`.
    every : mapping from name to int, optional
        Of which variables not every draw is here, and every how manyth is: ``{"theta": 10}`` of
        draws 9, 19, ... in each chain.

    Attributes
    ----------
    dims : dict from name to all axes, ``("chain", "draw", ...)``
    coords : dict from an axis's name to an array of labels
    sample_stats, attrs, label_dims : as above
    """

    if TYPE_CHECKING:  # words of the families: a run offers those that it can answer

        def _verb(self, *arguments: Any, **named: Any) -> Any: ...

        predict = effects = check = compare = report = export = _verb
        forecast = impute = states = transitions = _verb
        topics = keywords = refit = content = stability = correlations = documents = quotes = _verb
        poststratify = comparisons = contrasts = groups = loo = variance_shares = merge = _verb
        tastes = worth = elasticities = shares = surplus = diversion = _verb
        importances = scores = marginal_means = amce = _verb
    else:

        def __getattr__(self, name: str) -> Any:
            origin = self.__dict__.get("origin")  # there is none yet in a copy that is being made
            family = None if origin is None else family_of(origin.model)
            if family is not None and name in family.verbs:
                return family.method(self, name)
            answers = f" (of {family.name}: {', '.join(family.verbs)})" if family else ""
            kind = type(self).__name__
            raise AttributeError(f"{kind!r} object has no attribute {name!r}{answers}")

    def __dir__(self) -> list[str]:
        family = None if self.origin is None else family_of(self.origin.model)
        return sorted({*super().__dir__(), *([] if family is None else family.answers(self))})

    def summary(
        self, var_names: str | Sequence[str] | None = None, *,
        max_entries: int | None = _SUMMARY_ENTRIES,
    ) -> Summary:  # fmt: skip
        """Mean, sd, 5 % and 95 % quantiles and diagnostics of every entry.

        Parameters
        ----------
        var_names : str or sequence of str, optional
            Variables or sample statistics; all variables and the log likelihood if left out.
        max_entries : int or None
            Of a variable with more entries, so many are summarised, evenly spread; None for all.

        Returns
        -------
        Summary
            One row per entry. Variables along `label_dims` have one row for every chain, since
            label 0 of one chain need not be label 0 of another.
        """
        return summarise(self, var_names, max_entries)

    def convergence_problems(self) -> str:
        """Problems that the diagnostics found, in words; empty if none.

        Every kept value (of large variables 500, evenly spread) is expected to have a split R-hat
        of at most 1.01 and bulk and tail effective sample sizes of at least 100 per chain. Where
        labels are arbitrary and their rows were kept (topics by their words), chains are matched
        label by label: each value is then diagnosed within its chains, and between chains by which
        labels all of them found. Coordinates in an arbitrary basis are not diagnosed if anything
        else was kept.
        """
        return convergence_problems(self)

    def label_matches(self) -> dict[str, LabelMatches]:
        """Matches of the labels of all chains with the first, for each axis of arbitrary labels.

        For models with ``label_rows`` (see `pgmult.core.typing.Model`), if the variable that
        identifies the labels was kept, and for two chains or more; uses 100 draws of each.
        """
        return label_matches(self)

    def save(self, path: str | os.PathLike[str], *, with_data: bool = False) -> None:
        """Write the draws to a new or empty directory, for `pgmult.load`.

        Parameters
        ----------
        path : path
        with_data : bool
            Whether what they were sampled with is written, too.

        Raises
        ------
        FileExistsError
            If something is there already.
        """
        with_data = as_flag(with_data, "with_data")
        for name in [*self, *self.sample_stats]:
            if not name.isidentifier():
                raise ValueError(f"names must be identifiers to be saved, got {name!r}")
        meta = {
            "version": __version__, "chains": self.num_chains,
            "dims": {name: axes for name, (_, _, *axes) in self.dims.items()},
            "sample_stats": list(self.sample_stats), "label_dims": sorted(self.label_dims),
            "attrs": self.attrs, "every": self.every,
            **({} if self.origin is None else self.origin.encoded()),
        }  # fmt: skip
        arrays = {**self, **self.sample_stats}
        apart = {name: self.every.get(name, 1) for name in arrays}
        inputs = {"data": self.data, "starts": None} if with_data else None
        zeros = [0.0] * self.num_chains
        with RunWriter.create(as_path(path), meta, self.coords, inputs) as run:
            for i in range(self.num_chains):
                chain, seconds = run.chain(i), self.attrs.get("seconds", zeros)[i]
                chain.begin({n: np.empty(a.shape[2:], a.dtype) for n, a in arrays.items()})
                for draw in range(self.num_draws):
                    due = [name for name, every in apart.items() if (draw + 1) % every == 0]
                    chain.append({name: arrays[name][i, draw // apart[name]] for name in due})
                    if chain.due():
                        chain.commit({"sweep": draw + 1, "seconds": seconds})
                chain.commit({"sweep": self.num_draws, "seconds": seconds})

    def to_arviz(self, data: object = None, *, random_seed: int = 0) -> Any:
        """The draws for ArviZ: InferenceData of ArviZ 0.x, an xarray DataTree of ArviZ 1.x.

        Parameters
        ----------
        data : optional
            What the posterior was sampled from, of a model whose data are multinomial rows (fields,
            sequences, topics, regressions): with it come the groups ``log_likelihood`` (of each
            row, given what the draw keeps: a step's states, a document's proportions; with hidden
            Markov models given the steps before it),
            ``observed_data``, ``posterior_predictive`` and ``constant_data``, for ``loo``,
            ``compare`` and ``plot_ppc``. Rows without counts are left out of the first of these.
            The variable is ``counts`` in each of them.
        random_seed : int, optional
            Of the posterior predictive counts.

        Raises
        ------
        ImportError
            If ArviZ is not installed (``pip install pgmult[arviz]``).
        TypeError, ValueError
            If the model's data are no such rows, `data` are others than the posterior's, or it did
            not keep the variables behind their probabilities.
        MemoryError
            If the log likelihoods do not fit into memory.

        Warns
        -----
        UserWarning
            If the posterior predictive counts do not fit, and are left out.

        Notes
        -----
        Where not every draw of each variable was kept, only the draws that all have are summarized.
        """
        return to_arviz(self, data, as_seed(random_seed))


def load(
    path: str | os.PathLike[str], *, model: Any = None, damaged: Literal["raise", "drop"] = "raise"
) -> Posterior:
    """Read the draws in a run directory, also while the run goes on.

    A variable is read when it is first used, and every byte of it is checked then.

    Parameters
    ----------
    path : path
        What was given as ``store=`` to `pgmult.sample`, or to `Posterior.save`.
    model : Model, optional
        That of the draws, where its class is not of pgmult: without it, such draws do not know
        their model.
    damaged : {"raise", "drop"}
        What to do about damaged files: name the first that is met, or check all of them now and
        leave out, with a warning, the draws from the first damaged one on.

    Returns
    -------
    Posterior
        Chains of unequal length are cut, or left out, so that as many draws as possible are kept; a
        warning names the chains left out, and says so if there are no draws yet.

    Raises
    ------
    FileNotFoundError
        If `path` is no run directory.
    ValueError
        If a file is damaged, or `model` is not that of the draws.
    """
    as_choice(damaged, "damaged", ("raise", "drop"))
    run = RunReader(as_path(path), model)
    origin = Origin.stored(run, model)
    numbers = range(run.num_chains)
    read = run.undamaged if damaged == "drop" else run.counters
    counters = [read(chain) for chain in numbers]
    counts = [chain.kept for chain in counters]
    if damaged == "drop":
        warnings.warn(f"{path}: read {counts} undamaged draws of the chains", stacklevel=2)
    chains, num_draws = rectangle(counts)
    if num_draws == 0:
        warnings.warn(f"{path}: there are no draws yet", stacklevel=2)
    elif len(chains) < len(counts):
        left = ", ".join(f"{i} ({counts[i]} draws)" for i in numbers if i not in chains)
        warnings.warn(f"{path}: chains left out of {num_draws} draws a chain: {left}", stacklevel=2)
    dims, coords = run.meta["dims"], run.coords()
    kinds: dict[str, Any] = {  # where no chain has begun, all that the labels show
        name: (tuple(len(coords.get(axis, ())) for axis in dims.get(name, ())), np.dtype(float))
        for name in run.names
    }
    kinds |= next((counters[i].kinds for i in chains if counters[i].kinds), {})
    readable = {chain: counts[chain] for chain in chains}
    stats = StoredDraws(run, run.meta["sample_stats"], readable, num_draws, kinds)
    attrs = run.meta["attrs"] | {"seconds": [counters[i].seconds for i in chains]}
    all_labels = coords.pop("chain", np.arange(run.num_chains))
    coords.pop("draw", None)
    return Posterior(
        StoredDraws(run, dims, readable, num_draws, kinds), dims=dims,
        coords={"chain": all_labels[chains], **coords}, sample_stats=dict(stats), attrs=attrs,
        label_dims=frozenset(run.meta["label_dims"]), origin=origin, every=run.every,
    )  # fmt: skip
