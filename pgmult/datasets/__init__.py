"""Corpora and counts from files, texts, public sources and installed documentation."""

from pgmult.datasets.alignments import read_alignments
from pgmult.datasets.docstrings import demo_corpus
from pgmult.datasets.fasta import read_fasta, translate
from pgmult.datasets.messages import state_of_the_union
from pgmult.datasets.names import NameCounts, thin, us_names, us_states
from pgmult.datasets.packing import pack_files
from pgmult.datasets.public import associated_press
from pgmult.datasets.readers import (
    Source,
    read_corpus,
    read_ldac,
    read_npz,
    read_text,
    recognise,
)
from pgmult.datasets.tables import Table, read
from pgmult.datasets.text import ENGLISH_STOP_WORDS, TextOptions, corpus_from_texts, tokenize

__all__ = [
    "ENGLISH_STOP_WORDS",
    "NameCounts",
    "Source",
    "Table",
    "TextOptions",
    "associated_press",
    "corpus_from_texts",
    "demo_corpus",
    "pack_files",
    "read",
    "read_alignments",
    "read_corpus",
    "read_fasta",
    "read_ldac",
    "read_npz",
    "read_text",
    "recognise",
    "state_of_the_union",
    "thin",
    "tokenize",
    "translate",
    "us_names",
    "us_states",
]
