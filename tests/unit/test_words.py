"""Plain words: in code, in docs, and in everything that the command line prints as help."""

import argparse
import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from pgmult.cli.actions import ActionParser
from pgmult.cli.commands import _parser

ROOT = Path(__file__).parents[2]
PREPOSITION = re.compile(
    r"\s*(Of|Whose|As|By|In|With|To|At|For|On|Over|Those|That|Which)\b", re.IGNORECASE
)
VAGUE = {
    "found", "own", "here", "seen", "known", "each", "part", "told", "rest", "some", "ones",
    "these", "those", "whole", "kept", "given", "them", "there",
}  # fmt: skip
HOUSE_WORDS = {"told", "tell", "tells", "untold", "foretold"}
LAWS = {"law", "laws"}
BANNED = re.compile(
    r"\bkept of\b|\bwhat stands\b|\btold apart\b|\bevery so manyth\b|\bevery how manyth\b"
    r"|\bbeats? the obvious\b"
)
MOST_PREPOSITIONS, MOST_VAGUE = 30, 0.01  # docstrings, and share of names
MOST_TOLD, MOST_LAWS = 0, 3  # definitions and fields so called; lower them as names improve
TREES = {path: ast.parse(path.read_text("utf-8")) for path in (ROOT / "pgmult").rglob("*.py")}


def names():
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.arg):
                yield node.arg


def definitions():
    """Names of functions, classes, arguments, fields and variables, where they are bound."""
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield path, node.name
            elif isinstance(node, ast.arg):
                yield path, node.arg
            elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
                yield path, node.id if isinstance(node, ast.Name) else node.attr


def called(words):
    """Definitions whose names have one of these words, in snake case or camel case."""
    for path, name in definitions():
        if words & set(re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().split("_")):
            yield f"{path.name}: {name}"


def docstrings():
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield path, ast.get_docstring(node) or ""


def parsers(parser):
    """A parser and all parsers below it, with all their options."""
    if isinstance(parser, ActionParser):
        parser.complete()
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from parsers(below)


def test_names_say_what_they_hold():
    count = Counter(names())
    vague = sum(count[name] for name in VAGUE) / sum(count.values())
    assert vague < MOST_VAGUE, {name: count[name] for name in VAGUE}


def test_definitions_have_the_words_of_the_field():
    assert len(told := list(called(HOUSE_WORDS))) <= MOST_TOLD, told
    assert len(laws := list(called(LAWS))) <= MOST_LAWS, laws


def test_a_class_name_means_one_class():
    count = Counter(
        node.name
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert not (twice := [name for name, number in count.items() if number > 1]), twice


def test_docstrings_begin_with_a_subject_or_a_verb():
    bare = [f"{path.name}: {text[:50]}" for path, text in docstrings() if PREPOSITION.match(text)]
    assert len(bare) <= MOST_PREPOSITIONS, bare


def test_help_is_a_sentence_in_the_imperative_or_a_noun():
    bare = []
    for parser in parsers(_parser()):
        for action in parser._actions:
            text = action.help or ""
            if text and text != argparse.SUPPRESS and PREPOSITION.match(text):
                bare.append(f"{parser.prog}: {text}")
            assert not BANNED.search(text), text
    assert not bare


@pytest.mark.parametrize("path", sorted({ROOT / "README.md", *(ROOT / "docs").glob("*.md")}))
def test_documents_have_no_words_of_the_house(path):
    assert not (match := BANNED.search(path.read_text("utf-8"))), match
