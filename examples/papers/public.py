"""Public data of the papers, taken from a local folder or downloaded once and checked.

`associated_press` are the counts of the articles that correlated topic models were tried on first;
`us_names` are names of newborns in the United States by state and year, of which `thin` takes some.
Both are read from the folder that the environment variable PGMULT_DATA names, if they are there.
"""

import hashlib
import os
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pgmult.core.arguments import as_choice, as_list, as_seed, brief
from pgmult.core.typing import FloatArray, IntArray
from pgmult.core.validate import as_counts, as_positive_int
from pgmult.datasets import read_ldac, us_states
from pgmult.topics.data.corpus import Corpus, as_corpus

CACHE = Path.home() / ".cache" / "pgmult"

_AP_URL = "http://www.cs.columbia.edu/~blei/lda-c/ap.tgz"
_AP_SHA256 = "e6132706037300e82295616d6693766f2bae0fde5077c3553a4d98117b1b9d66"
_AP_WORDS_SHA256 = "f26aac3455a444effe6e333dbb82ed1bf87a8e527c59a0505a28a55e1dbcba42"


def associated_press() -> Corpus:
    """Associated Press articles of TREC-1: 2,246 documents, 10,473 words, 435,838 tokens.

    The corpus of Blei, Ng and Jordan (2003), from the page of Blei's lda-c,
    http://www.cs.columbia.edu/~blei/lda-c/: counts only, stop words already gone. Taken from
    ``$PGMULT_DATA/ap``, if it is there; otherwise downloaded once into the user's cache folder.
    Either way the counts are checked against a checksum, and words come in alphabetical order.

    Raises
    ------
    OSError
        If the download fails.
    ValueError
        If the counts or the words are not the expected ones.
    """
    folder = os.environ.get("PGMULT_DATA")
    if folder:
        for ending in (".gz", ""):
            counts = Path(folder) / "ap" / f"ap.dat{ending}"
            if counts.is_file():
                corpus = read_ldac(counts, counts.with_name(f"vocab.txt{ending}"))
                return _checked(_alphabetical(corpus), str(counts))
    archive = _download(_AP_URL, "ap.tgz")
    try:
        with tarfile.open(archive) as tar, tempfile.TemporaryDirectory() as folder:
            for name in ("ap.dat", "vocab.txt"):
                member = tar.extractfile(f"ap/{name}")
                if member is None:
                    raise KeyError(f"{name} is not a file")
                Path(folder, name).write_bytes(member.read())
            corpus = read_ldac(Path(folder, "ap.dat"), Path(folder, "vocab.txt"))
    except (tarfile.TarError, KeyError, EOFError) as error:
        raise ValueError(f"{archive}: not the expected archive ({error}); delete it") from None
    return _checked(_alphabetical(corpus), str(archive))


def _download(url: str, name: str) -> Path:
    """The file at `url`, from the user's cache folder if it is there."""
    path = CACHE / name
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        begun = path.with_suffix(".part")
        try:
            urllib.request.urlretrieve(url, begun)
        except OSError as error:  # no network, no such page, a full disk: all of them
            raise OSError(
                f"{url} cannot be downloaded ({type(error).__name__}): try again later, save it as"
                f" {path}, or set PGMULT_DATA to a folder that holds the data"
            ) from None
        begun.replace(path)
    return path


def _alphabetical(corpus: Corpus) -> Corpus:
    """The same corpus with its words in alphabetical order."""
    assert corpus.vocabulary is not None
    order = np.argsort(corpus.vocabulary, kind="stable")
    return as_corpus(corpus.to_csr()[:, order], corpus.vocabulary[order], corpus.names)


def _checked(corpus: Corpus, source: str) -> Corpus:
    """The corpus itself, if its words and counts have the published checksums."""
    assert corpus.vocabulary is not None
    words = "".join(f"{word}\n" for word in corpus.vocabulary)
    lines = []
    for start, stop in zip(corpus.indptr[:-1], corpus.indptr[1:], strict=True):
        entries = zip(corpus.words[start:stop], corpus.counts[start:stop], strict=True)
        lines.append(" ".join([str(stop - start), *(f"{w}:{c}" for w, c in entries)]) + "\n")
    found = [hashlib.sha256(text.encode()).hexdigest() for text in (words, "".join(lines))]
    if found != [_AP_WORDS_SHA256, _AP_SHA256]:
        raise ValueError(
            f"{source}: not the Associated Press corpus (checksum {found[1][:12]}…, expected"
            f" {_AP_SHA256[:12]}…); delete the file to download it again"
        )
    return corpus


_URL = "https://www.ssa.gov/oact/babynames/state/namesbystate.zip"
_SHA256 = "b170dc18bd6c20cffff21cb0d27aa6f91d5980f78791970d9ea03acdb42312b2"
_FIRST_YEAR, _LAST_RANKED_YEAR, _LAST_YEAR = 1910, 2013, 2014
_LISTED = {"M": 155_117_516, "F": 143_776_767}  # births in all states, 1910-2014, as of March 2015
_TOLERANCE = 0.01  # the Administration revises its counts every year, by far less

_MOST_ITEMS = 10**9  # of a row, in numpy's draws without replacement

# Latitude and longitude of the middle of each state, degrees.

_STATES = [name for name in us_states() if len(name) == 2]


@dataclass(frozen=True, slots=True, eq=False)
class NameCounts:
    """Newborns of one sex by year, state and name.

    Attributes
    ----------
    counts : int64 array, ``(num_years, num_states, num_names)``
    years : int64 array, ``(num_years,)``
    states : str array, ``(num_states,)``
        Postal codes, the District of Columbia among them.
    names : str array, ``(num_names,)``
        By frequency in all states from 1910 to 2013, largest first.
    places : array, ``(num_states, 2)``
        Latitude and longitude, degrees.
    """

    counts: IntArray
    years: IntArray
    states: NDArray[np.str_]
    names: NDArray[np.str_]
    places: FloatArray

    def inputs(self) -> FloatArray:
        """Year, latitude and longitude, ``(num_years * num_states, 3)``: all states of a year,
        then those of the next, as in ``counts.reshape(-1, num_names)``.
        """
        years = np.repeat(self.years.astype(np.float64), len(self.states))
        return np.column_stack([years, np.tile(self.places, (len(self.years), 1))])

    def take(
        self, years: Iterable[int] | None = None, states: Sequence[str] | None = None
    ) -> "NameCounts":
        """Some of the years and of the states, in the order given; all of them by default.

        Raises
        ------
        ValueError
            If one of them is unknown.
        """
        rows, columns = np.arange(len(self.years)), np.arange(len(self.states))
        if years is not None:
            rows = _positions("year", as_list(years, "years", "numbers"), self.years.tolist())
        if states is not None:
            columns = _positions("state", as_list(states, "states", "codes"), self.states.tolist())
        return NameCounts(
            np.ascontiguousarray(self.counts[rows][:, columns]), self.years[rows],
            self.states[columns], self.names, self.places[columns],
        )  # fmt: skip


def us_names(
    sex: Literal["M", "F"] = "M",
    top: int = 100,
    *,
    years: Iterable[int] | None = None,
    states: Sequence[str] | None = None,
) -> NameCounts:
    """Names of newborns in 50 states and the District of Columbia, 1910-2014.

    Taken from ``$PGMULT_DATA/names``, if it is there: the 200 most frequent names of each sex, as
    published in March 2015 (four large states partly estimated from later publications), checked
    against a checksum. Otherwise the Administration's file is downloaded once into the user's
    cache folder. It is revised every year, so that there is no checksum for it: its states and its
    number of births are checked, and counts may differ by a few from those of 2015.

    Parameters
    ----------
    sex : "M" or "F"
    top : int
        How many names, by their births in all states from 1910 to 2013.
    years, states
        As in `NameCounts.take`.

    Raises
    ------
    ValueError
        If the file is not the expected one, or a state or year is unknown.
    """
    as_choice(sex, "sex", _LISTED)
    top = as_positive_int(top, "top", minimum=2)
    folder = os.environ.get("PGMULT_DATA")
    local = Path(folder) / "names" / "ssa_names_by_state.npz" if folder else None
    if local is not None and local.is_file():
        counts, names = _read_npz(local, sex)
    else:
        counts, names = _read_zip(_download(_URL, "namesbystate.zip"), sex)
    if top > len(names):
        raise ValueError(f"top must be at most {len(names)}, the names in this file, got {top}")
    everything = NameCounts(
        np.ascontiguousarray(counts[:, :, :top]),
        np.arange(_FIRST_YEAR, _LAST_YEAR + 1),
        np.array(_STATES),
        names[:top],
        np.array([us_states()[state] for state in _STATES]),
    )
    return everything.take(years, states)


def thin(counts: ArrayLike, size: int, random_seed: Any = None) -> IntArray:
    """At most `size` of the items of each row, drawn without replacement.

    Parameters
    ----------
    counts : int array, ``(..., num_categories)``
    size : int
    random_seed : int, optional

    Returns
    -------
    int64 array, shape of `counts`
        Rows of `size` items or fewer stay as they are.
    """
    counts = as_counts(counts)
    size = as_positive_int(size, "size", minimum=0)
    if counts.ndim == 0 or counts.shape[-1] == 0:
        raise ValueError(f"counts must have categories on their last axis, got {counts.shape}")
    if counts.size and counts.sum(axis=-1, dtype=np.float64).max() >= _MOST_ITEMS:
        raise ValueError(f"counts must have rows of fewer than {_MOST_ITEMS:,} items")
    rows = counts.reshape(-1, counts.shape[-1])
    rng = np.random.default_rng(as_seed(random_seed))
    kept = [rng.multivariate_hypergeometric(x, min(size, x.sum())) for x in rows]
    return np.array(kept, dtype=np.int64).reshape(counts.shape)


def _positions(what: str, wanted: list[Any], known: list[Any]) -> IntArray:
    kind = str if isinstance(known[0], str) else int | np.integer
    unknown = [
        item
        for item in wanted
        if isinstance(item, bool) or not isinstance(item, kind) or item not in known
    ]
    if unknown:
        raise ValueError(
            f"{what}s must be known, got {brief(unknown[0])}: there are {known[0]} to {known[-1]}"
            f" ({what}s are {type(known[0]).__name__}s such as {known[0]!r})"
        )
    return np.array([known.index(item) for item in wanted], dtype=np.int64)


def _read_npz(path: Path, sex: str) -> tuple[IntArray, NDArray[np.str_]]:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != _SHA256:
        raise ValueError(
            f"{path}: not the expected counts of names (checksum {found[:12]}…, expected"
            f" {_SHA256[:12]}…)"
        )
    with np.load(path) as file:
        return file[f"counts_{sex}"].astype(np.int64), file[f"names_{sex}"]


def _read_zip(path: Path, sex: str) -> tuple[IntArray, NDArray[np.str_]]:
    """Counts of all names, most frequent first, from the Administration's file.

    It holds a text file a state, ``CA.TXT``, of lines ``CA,F,1910,Mary,295``.
    """
    years: list[int] = []
    places: list[int] = []
    columns: list[int] = []
    births: list[int] = []
    column: dict[str, int] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for place, state in enumerate(_STATES):
                for line in archive.read(f"{state}.TXT").decode("ascii").split():
                    code, kind, year, name, number = line.split(",")
                    if code != state:
                        raise ValueError(f"{state}.TXT has the line {line!r}")
                    if kind == sex and _FIRST_YEAR <= int(year) <= _LAST_YEAR:
                        years.append(int(year) - _FIRST_YEAR)
                        places.append(place)
                        columns.append(column.setdefault(name, len(column)))
                        births.append(int(number))
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise ValueError(f"{path}: not the expected archive ({error}); delete it") from None
    if abs(sum(births) / _LISTED[sex] - 1.0) > _TOLERANCE:
        raise ValueError(
            f"{path}: not the expected archive ({sum(births):,} births, expected about"
            f" {_LISTED[sex]:,}); delete it to download it again"
        )
    ranked = np.array(years) <= _LAST_RANKED_YEAR - _FIRST_YEAR
    totals = np.bincount(columns, ranked * np.array(births), minlength=len(column))
    names = np.array(list(column))
    order = np.lexsort([names, -totals])[:1000]
    place_of = np.full(len(names), -1)
    place_of[order] = np.arange(len(order))
    counts = np.zeros((_LAST_YEAR + 1 - _FIRST_YEAR, len(_STATES), len(order)), dtype=np.int64)
    kept = place_of[columns] >= 0
    index = (np.array(years)[kept], np.array(places)[kept], place_of[columns][kept])
    counts[index] = np.array(births)[kept]
    return counts, names[order]
