"""A corpus whose documents have covariates.

`with_covariates` attaches covariates of documents (their year, their author's party) to a corpus.
Prevalence covariates change the proportions of topics: they are a design matrix, whose first column
is the intercept, and random terms (`pgmult.formulas.design`). Content covariates change the words
of topics: they divide the documents into groups (`pgmult.topics.data.groups`).

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
>>> data = pgmult.topics.with_covariates(counts, columns, "~ year + (1 | party)", content="~ party")
>>> data.design.terms[0].name, [str(label) for label in data.content.labels]
('1 | party', ['D', 'R'])
>>> data[[0, 2]].content.codes
array([0, 1])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pgmult.core.arguments import as_flag
from pgmult.core.typing import FloatArray, IntArray
from pgmult.formulas.columns import as_mapping
from pgmult.formulas.design import Design, make_design
from pgmult.formulas.language import parse
from pgmult.topics.data.corpus import Corpus, Versions, corpus_from
from pgmult.topics.data.groups import ContentGroups, content_groups


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class StructuredCorpus(Corpus):
    """A corpus with covariates of its documents. Make one with `with_covariates`.

    Attributes
    ----------
    design : Design
    content : ContentGroups or None
        Groups of documents that vary the words of topics.
    """

    design: Design
    content: ContentGroups | None = None

    @property
    def covariates(self) -> FloatArray:
        """The design matrix, ``(num_documents, num_covariates)``."""
        return self.design.matrix

    @property
    def versions(self) -> Versions | None:
        """Topics have a version for each group of documents, if there are any."""
        if self.content is None:
            return None
        return Versions(self.content.codes, self.content.num_groups)

    def _rows_beside(self, rows: IntArray | slice) -> dict[str, Any]:
        return {
            "design": self.design.take(rows),
            "content": self.content and self.content.take(rows),
        }

    def new_documents(
        self, corpus: Any, covariates: Any, *, new_levels: bool = False
    ) -> "StructuredCorpus":
        """Other documents with the covariates that these have, coded alike.

        Parameters
        ----------
        corpus : Corpus, or anything that `as_corpus` takes
            With the same words.
        covariates : mapping from name to column, or DataFrame
            Every column that the design and the content groups were made from.
        new_levels : bool
            Whether grouping columns may hold labels that these documents do not have, such as new
            authors. (Of content groups none may be new: nothing is known of their words.)

        Raises
        ------
        ValueError
            If a column is missing, or a label is new that may not be.
        """
        new, may_be_new = corpus_from(corpus, "corpus"), as_flag(new_levels, "new_levels")
        if new.num_words != self.num_words:
            raise ValueError(f"corpus must have the same {self.num_words} words, got {new!r}")
        design = self.design.like(covariates, new_levels=may_be_new, num_rows=new.num_documents)
        if may_be_new:
            self.design.tell_new_labels(covariates, "covariates", asked=True)
        content = self.content and self.content.of(as_mapping(covariates, None), new.num_documents)
        return new.extended(StructuredCorpus, design=design, content=content)

    def _more(self) -> str:
        more = f", covariates: {', '.join(self.design.names)}"
        if self.design.terms:
            more += f"; random: {', '.join(t.title for t in self.design.terms)}"
        return more + (f"; content: {' + '.join(self.content.names)}" if self.content else "")


def with_covariates(
    corpus: Any,
    covariates: Any,
    formula: str | None = None,
    *,
    content: str | None = None,
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
        Which columns, transformed how, and which products of them, such as ``"~ year + party +
        year:party"``. By default all columns. ``s(year)`` is a smooth curve, ``(1 | author)`` an
        effect of each author; how much these vary is learned. See `pgmult.formulas.design`.
    content : str, optional
        Which labels may change the words of a topic, such as ``"~ party"``: documents of each label
        then have their own words for it. ``"~ party + house"`` nests houses within parties; ``"~
        party:house"`` makes a group of each combination.
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
    """
    counts = corpus_from(corpus, "corpus")
    design = make_design(covariates, counts.num_documents, formula, names, standardize)
    if design.offset is not None or (formula is not None and parse(formula).outcome is not None):
        raise ValueError(
            f"formula must have terms alone, no offset and no outcome, got {formula!r}"
        )
    groups = None
    if content is not None:
        groups = content_groups(content, as_mapping(covariates, names), counts.num_documents)
    return counts.extended(StructuredCorpus, design=design, content=groups)
