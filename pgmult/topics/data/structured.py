"""A corpus whose documents have covariates.

`with_covariates` attaches what is known about each document (its year, its author's party) to a
corpus, as a design matrix (`pgmult.topics.data.designs`) that begins with the intercept.

>>> import numpy as np, pgmult
>>> counts = np.random.default_rng(0).poisson(1.0, size=(4, 6))
>>> columns = {"year": [1990, 2000, 2010, 2020], "party": ["D", "R", "R", "D"]}
>>> data = pgmult.topics.with_covariates(counts, columns)
>>> [str(name) for name in data.design.names]
['Intercept', 'year', 'party[T.R]']
>>> data.covariates[:2].round(2)
array([[ 1.  , -1.34,  0.  ],
       [ 1.  , -0.45,  1.  ]])
>>> data.design.rows({"party": ["D", "R"], "year": 2005})
array([[1., 0., 0.],
       [1., 0., 1.]])
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgmult.core.typing import FloatArray, IntArray
from pgmult.topics.data.corpus import Corpus, corpus_from
from pgmult.topics.data.designs import Design, make_design

__all__ = ["StructuredCorpus", "with_covariates"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class StructuredCorpus(Corpus):
    """A corpus with covariates of its documents. Make one with `with_covariates`.

    Attributes
    ----------
    design : Design
    """

    design: Design

    @property
    def covariates(self) -> FloatArray:
        """The design matrix, ``(num_documents, num_covariates)``."""
        return self.design.matrix

    def _rows_beside(self, rows: IntArray) -> dict[str, Any]:
        # The columns stay whole: knots of splines and means are those of all documents.
        return {"design": replace(self.design, matrix=self.design.matrix[rows])}

    def __repr__(self) -> str:
        return (
            f"StructuredCorpus({self.num_documents:,} documents, {self.num_words:,} words,"
            f" {self.num_tokens:,} tokens, covariates: {', '.join(self.design.names)})"
        )


def with_covariates(
    corpus: Any,
    covariates: Any,
    formula: str | None = None,
    *,
    names: Sequence[str] | None = None,
    standardize: bool = True,
) -> StructuredCorpus:
    """A corpus with covariates of its documents.

    Parameters
    ----------
    corpus : Corpus, or anything that `as_corpus` takes
    covariates : mapping from name to column, pandas DataFrame, or matrix
        One value or row a document, by position (an index is not consulted). A column holds
        numbers, or labels: strings, booleans or a categorical. The first label, in sorted or in
        the categorical's order, is the reference.
    formula : str, optional
        Which columns, transformed how, and which products of them, such as
        ``"~ year + party + year:party"``; needs the package formulaic. By default all columns.
    names : sequence of str, optional
        Of a matrix's columns; ``x0, x1, ...`` if left out.
    standardize : bool
        Whether to bring columns of the design matrix to mean 0 and standard deviation 1, except
        those of only zeros and ones. Models' default priors do not depend on it; a prior of your
        own is one of the coefficients of these columns.

    Returns
    -------
    StructuredCorpus
        Its design matrix begins with an intercept.

    Raises
    ------
    ValueError
        If a value is missing or infinite, a column has the wrong length, is constant or is a linear
        combination of others; if the formula cannot be evaluated or has no intercept.
    TypeError
        If a column holds neither numbers nor labels.
    ImportError
        If there is a formula and formulaic is not installed.
    """
    counts = corpus_from(corpus, "corpus")
    design = make_design(covariates, counts.num_documents, formula, names, standardize)
    return StructuredCorpus(
        counts.indptr, counts.words, counts.counts, counts.num_words, counts.vocabulary,
        counts.names, counts.table, design=design,
    )  # fmt: skip
