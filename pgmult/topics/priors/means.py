"""The mean and covariance of psi, as a part of a topic model.

In every topic model with Gaussian psi, psi_d ~ N(mean_d, Sigma). Models differ in what mean_d
depends on, and each possibility is a part of its own: nothing (`ConstantMean`), covariates and
random terms (`pgmult.topics.priors.regression`), or the time of the document
(`pgmult.topics.priors.walk`). A part owns some fields of the model's state. It says where psi is
expected, what a block of documents contributes, and how its fields are drawn: so a model is its
words, its link and such a part.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np

from pgmult.core.typing import Array, FloatArray, Generator
from pgmult.priors import MvNormal, NormalInverseWishart
from pgmult.priors.gaussian import Moments
from pgmult.sampling.blocks import Sums
from pgmult.topics.data.corpus import Corpus, Documents, corpus_from

PsiState = Any
"""A state of a topic model, with ``psi``, ``Sigma``, ``topics`` and ``topic_counts``."""

Fields = dict[str, Any]
"""New values of fields of a state, by name."""


def with_two_words(corpus: Documents) -> Documents:
    """Refuse documents of one word each: topics show in words that documents have together."""
    if corpus.num_tokens and corpus.totals.max() < 2:
        why = "words that no document has together say nothing of topics"
        got = f"{corpus!r} (join texts, or keep more words)"
        raise ValueError(f"data must have documents of two words or more: {why}, got {got}")
    return corpus


class PsiMean(ABC, Generic[Documents]):
    """A part of a topic model: the prior of the mean and covariance of psi, and its updates."""

    __slots__ = ()

    @abstractmethod
    def as_data(self, data: object) -> Documents:
        """Data that documents' means can be read from, checked."""

    @abstractmethod
    def means(self, state: PsiState, data: Documents) -> FloatArray:
        """Mean of psi, ``(num_documents, n)``, or ``(n,)`` where documents share it."""

    @abstractmethod
    def sums(self, state: PsiState, psi: FloatArray, data: Documents) -> Sums:
        """Sums over a block of documents for `given`: their number first, then sums over psi."""

    @abstractmethod
    def given(self, rng: Generator, state: PsiState, sums: Sums, data: Documents) -> Fields:
        """New values of the fields of this part, given sums over all documents."""

    @abstractmethod
    def prior(self, rng: Generator, data: Documents) -> tuple[FloatArray, Fields]:
        """Psi and the fields of this part, drawn from the prior."""

    @abstractmethod
    def start(self, rng: Generator, psi: FloatArray, data: Documents) -> Fields:
        """Fields that a chain starts from, given psi."""

    def coords(self, data: Documents) -> dict[str, Array]:
        """Labels of axes of this part."""
        return {}

    def absent(self, data: Documents) -> set[str]:
        """Variables of this part that these data leave empty."""
        return set()

    def summary(self, data: Documents) -> Sums:
        """Sums over a block of documents for `summarized`."""
        return Sums((), ())

    def summarized(self, name: str, state: PsiState, summary: Sums, data: Documents) -> object:
        """A variable of this part, from the sums over all documents of the model's summaries."""
        raise KeyError(name)

    def reported(self, draw: Mapping[str, Array]) -> FloatArray:
        """Values of psi, ``(num_values, n)``, at which reports show shares of topics."""
        return np.empty((0, 0))


@dataclass(frozen=True, slots=True, eq=False)
class ConstantMean(PsiMean[Corpus]):
    """psi_d ~ N(mu, Sigma), the same for every document; mu, Sigma ~ NIW. Fields: mu, Sigma.

    Attributes
    ----------
    gaussian : NormalInverseWishart
    """

    gaussian: NormalInverseWishart

    def as_data(self, data: object) -> Corpus:
        """A corpus; one in which no document has two words is refused."""
        return with_two_words(corpus_from(data, "data"))

    def means(self, state: PsiState, data: Corpus) -> FloatArray:
        """Mean of psi, ``(n,)``."""
        return np.asarray(state.mu)

    def sums(self, state: PsiState, psi: FloatArray, data: Corpus) -> Sums:
        """Number of documents; first and second moments of psi about the old mu."""
        moments = Moments.of(psi, state.mu)
        return Sums((np.array(moments.count),), (moments.total, moments.squares))

    def given(self, rng: Generator, state: PsiState, sums: Sums, data: Corpus) -> Fields:
        """Draw mu and Sigma given psi."""
        moments = Moments(int(sums.exact[0]), state.mu, *sums.rounded)
        mu, Sigma = self.gaussian.condition_moments(moments).sample(rng)
        return {"mu": mu, "Sigma": Sigma}

    def prior(self, rng: Generator, data: Corpus) -> tuple[FloatArray, Fields]:
        """Psi, and mu and Sigma, drawn from the prior."""
        mu, Sigma = self.gaussian.sample(rng)
        psi = MvNormal(mu, Sigma).sample(rng, data.num_documents)
        return psi, {"mu": mu, "Sigma": Sigma}

    def start(self, rng: Generator, psi: FloatArray, data: Corpus) -> Fields:
        """Mu and Sigma given psi."""
        mu, Sigma = self.gaussian.condition(psi).sample(rng)
        return {"mu": mu, "Sigma": Sigma}
