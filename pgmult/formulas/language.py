r"""The language of formulas: read into a tree of names, numbers, texts and calls.

A formula is text and stays data: it is never evaluated as Python, and what it may say is listed
here and in `pgmult.formulas.functions`. ::

    y ~ year + party + year:party        columns, and products of them
    y ~ party * s(year)                  the same with both alone; s() is a smooth curve
    y ~ (1 | author) + (1 | house:seat)  effects of every level of a grouping
    y ~ (1 + x | g) + (1 + x || h)       slopes that vary by level, correlated with them or not
    y ~ log(x) + I(x > 3) + `my column`  functions of a row; a column of any name in back quotes
    c(red, green) ~ x - 1                several columns of counts; no intercept

``+ - * : / ^ **`` between terms mean what they mean in R; within a function's brackets, and in
``I()``, they are arithmetic.

>>> formula = parse("y ~ a * s(b, knots=6) - 1 + (1 | g:h)")
>>> [":".join(map(str, term)) for term in formula.terms]
['a', 's(b, knots=6)', '(1 | g:h)', 'a:s(b, knots=6)']
>>> formula.intercept, str(formula.outcome), formula.columns
(False, 'y', ('a', 'b', 'g', 'h'))
>>> parse("~ {a.rank()}")
Traceback (most recent call last):
ValueError: formula '~ {a.rank()}': cannot read '{' (make a column of it first)
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import ClassVar, NoReturn

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[^\W\d][\w.]*)|`(?P<quoted>[^`]+)`|(?P<text>'[^']*'|\"[^\"]*\")"
    r"|(?P<sign>\*\*|//|\|\||==|!=|<=|>=|[-+*/%^:|~<>=(),\[\]&]))"
)
_PLAIN = re.compile(r"[^\W\d][\w.]*")
_STRENGTH = {
    "|": 1, "||": 1, "==": 2, "!=": 2, "<": 2, "<=": 2, ">": 2, ">=": 2, "+": 3, "-": 3, "*": 4,
    "/": 4, "//": 4, "%": 4, ":": 5, "**": 7,
}  # fmt: skip
_OF_SIGN = 6  # -x ** 2 is -(x ** 2), and -x : y is (-x) : y
_DEEPEST, _MOST_TERMS = 40, 10_000  # brackets within brackets; terms of a product


class _Leaf:
    """A node that is no function of others."""

    __slots__ = ()
    function: ClassVar[str] = ""
    arguments: ClassVar[tuple["Node", ...]] = ()
    options: ClassVar[tuple[tuple[str, "Node"], ...]] = ()


@dataclass(frozen=True, slots=True)
class Name(_Leaf):
    """A column."""

    name: str

    def __str__(self) -> str:
        return self.name if _PLAIN.fullmatch(self.name) else f"`{self.name}`"


@dataclass(frozen=True, slots=True)
class Number(_Leaf):
    """A number; True and False are 1 and 0."""

    value: float | int

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Text(_Leaf):
    """A string, of a label or an option."""

    text: str

    def __str__(self) -> str:
        return repr(self.text)


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator with what it is applied to; "[" makes a list."""

    function: str
    arguments: tuple["Node", ...]
    options: tuple[tuple[str, "Node"], ...] = ()

    def __str__(self) -> str:
        texts = [str(argument) for argument in self.arguments]
        if self.function == "[":
            return f"[{', '.join(texts)}]"
        if self.function in ("|", "||"):
            return f"({texts[0]} {self.function} {texts[1]})"
        if self.function in _STRENGTH and len(texts) == 2:
            mark = self.function if self.function == ":" else f" {self.function} "
            return mark.join(map(self._in_brackets, self.arguments))
        if self.function in "+-":
            return f"{self.function}{self._in_brackets(self.arguments[0])}"
        texts += [f"{name}={value}" for name, value in self.options]
        return f"{self.function}({', '.join(texts)})"

    def _in_brackets(self, node: "Node") -> str:
        if node.function not in _STRENGTH:
            return str(node)
        first = node is self.arguments[0]
        weaker = _STRENGTH[node.function] < _STRENGTH[self.function] + (not first)
        return f"({node})" if weaker or len(self.arguments) == 1 else str(node)


Node = Name | Number | Text | Call
Term = tuple[Node, ...]
"""Factors that are multiplied; () is the intercept."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula that was read.

    Attributes
    ----------
    text : str
        As it was given.
    outcome : Node or None
        What stands left of the tilde.
    intercept : bool
    terms : tuple of tuples of nodes
        Terms of the sum, those of fewer factors first; ``(... | g)`` and ``s(x)`` are factors.
    """

    text: str
    outcome: Node | None
    intercept: bool
    terms: tuple[Term, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that the right-hand side names, in order."""
        names = (name for term in self.terms for factor in term for name in names_in(factor))
        return tuple(dict.fromkeys(names))

    def refuse(self, why: str) -> NoReturn:
        """Say what is wrong with the formula."""
        raise ValueError(f"formula {self.text!r}: {why}")


def names_in(node: Node) -> Iterator[str]:
    """Names of the columns in a tree, in order."""
    if isinstance(node, Name):
        yield node.name
    nodes = (*node.arguments, *(value for _, value in node.options))
    for child in node.arguments[:1] if node.function in ("C", "car") else nodes:
        yield from names_in(child)


def parse(text: str, by_degree: bool = True) -> Formula:
    """Read a formula.

    Parameters
    ----------
    text : str
        ``"y ~ terms"``, ``"~ terms"`` or terms alone.
    by_degree : bool
        Whether terms of fewer factors stand first; otherwise as they are written.

    Raises
    ------
    ValueError
        That shows the formula and what cannot be read in it.
    """
    left, right = text.split("~", 1) if "~" in text else ("", text)
    outcome = _read(left, text) if left.strip() else None
    formula = Formula(text, outcome, True, ())
    if "~" in right:
        formula.refuse("it has more than one ~")
    intercept, terms = sum_of(_read(right, text), formula)
    terms = tuple(sorted(terms, key=len)) if by_degree else terms
    return replace(formula, intercept=intercept, terms=terms)


def sum_of(node: Node, formula: Formula) -> tuple[bool, tuple[Term, ...]]:
    """Whether a sum within a formula has an intercept, and its other terms."""
    terms = _expanded(Call("+", (Number(1), node)), formula)
    return () in terms, tuple(term for term in terms if term)


def parse_expression(text: str) -> Node:
    """Read one expression, such as what a curve runs over."""
    return _read(text, text)


# --------------------------------------------------------------------------- text to a tree


@dataclass(slots=True)
class _Reader:
    """Tokens, and the place among them."""

    formula: str
    tokens: list[tuple[str, str]]
    place: int = 0
    depth: int = 0

    def refuse(self, why: str) -> NoReturn:
        place = max(self.place, 1)
        (before, first), (kind, second) = self.tokens[place - 1 : place + 1]
        if before in ("name", "number") and kind == "name":
            blank = "" if f"{first}{second}" in self.formula else " "
            why += f" (write a column of that name in backticks: `{first}{blank}{second}`)"
        raise ValueError(f"formula {self.formula!r}: {why}")

    def sign(self) -> str:
        """The sign that comes next, "" if something else does."""
        kind, token = self.tokens[self.place]
        return token if kind == "sign" else ""

    def take(self, sign: str) -> None:
        if self.sign() != sign:
            text = self.tokens[self.place][1] or "the end"
            self.refuse(f"expected {sign} but found {text}")
        self.place += 1

    def expression(self, least: int = 0) -> Node:
        """An expression whose operators bind at least so strongly."""
        self.depth += 1
        if self.depth > _DEEPEST:
            self.refuse("brackets are too deep")
        left = self.operand()
        while (strength := _STRENGTH.get(sign := self.sign().replace("^", "**"), -1)) >= least:
            self.place += 1
            left = Call(sign, (left, self.expression(strength + (sign != "**"))))
        self.depth -= 1
        return left

    def operand(self) -> Node:
        kind, token = self.tokens[self.place]
        self.place += 1
        if kind == "number":
            return Number(int(token) if token.isdecimal() else float(token))
        if kind == "text":
            return Text(token[1:-1])
        if kind == "quoted":
            return Name(token)
        if kind == "name":
            name = token.removeprefix("np.").removeprefix("numpy.")
            if self.sign() == "(":
                self.place += 1
                items = self.items(")")
                arguments = tuple(value for key, value in items if not key)
                return Call(name, arguments, tuple((key, value) for key, value in items if key))
            return Number(int(token == "True")) if token in ("True", "False") else Name(token)
        if token == "(":
            inside = self.expression()
            self.take(")")
            return inside
        if token == "[":
            return Call("[", tuple(value for _, value in self.items("]")))
        if token in ("+", "-"):
            return Call(token, (self.expression(_OF_SIGN),))
        text = repr(token) if token else "the end"
        return self.refuse(f"expected a column, a number or a function but found {text}")

    def items(self, end: str) -> list[tuple[str, Node]]:
        """What stands between commas, with the names of options."""
        pairs: list[tuple[str, Node]] = []
        while self.sign() != end:
            if pairs:
                self.take(",")
            (kind, key), after = self.tokens[self.place : self.place + 2]
            named = kind == "name" and after == ("sign", "=")
            self.place += 2 * named
            pairs.append((key if named else "", self.expression()))
        self.place += 1
        return pairs


def _read(text: str, formula: str) -> Node:
    tokens: list[tuple[str, str]] = []
    place = 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            odd = text[place:].strip()[0]
            hint = " (make a column of it first)" if odd in "{}" else ""
            raise ValueError(f"formula {formula!r}: cannot read {odd!r}{hint}")
        kind = str(match.lastgroup)
        tokens.append((kind, match[kind]))
        place = match.end()
    reader = _Reader(formula, [*tokens, ("end", ""), ("end", "")])
    tree = reader.expression()
    if reader.place < len(tokens):
        reader.refuse(f"cannot read {reader.tokens[reader.place][1]!r} where it stands")
    return tree


# --------------------------------------------------------------------------- a tree to terms


def _expanded(node: Node, formula: Formula) -> tuple[Term, ...]:
    """The different terms of a sum, in order."""
    if isinstance(node, Number):
        if node.value not in (0, 1):
            formula.refuse(f"the only numbers among terms are 0 and 1, got {node}")
        return ((),) if node.value == 1 else ()
    if isinstance(node, Text):
        formula.refuse(f"{node} is a text, not a column (columns of any name stand in `...`)")
    if node.function in ("+", "-"):
        return _sum(node, formula)
    if node.function == "**":
        return _power(node, formula)
    return _product(node, formula) if node.function in (":", "*", "/") else ((node,),)


def _sum(node: Node, formula: Formula) -> tuple[Term, ...]:
    """Terms of a sum; 0 and - 1 take the intercept away."""
    terms: tuple[Term, ...] = ()
    for sign, summand in _signed(node):
        if isinstance(summand, Number) and summand.value in (0, 1):
            adds = (sign == "+") == (summand.value == 1)
            terms = (*terms, ()) if adds else tuple(term for term in terms if term)
        elif sign == "+":
            terms = (*terms, *_expanded(summand, formula))
        else:
            less = {_key(term) for term in _expanded(summand, formula)}
            terms = tuple(term for term in terms if _key(term) not in less)
    return unique(terms)


def _signed(node: Node) -> list[tuple[str, Node]]:
    """The parts of a sum with their signs."""
    parts: list[tuple[str, Node]] = []
    before: Sequence[Node] = (node,)
    while before and before[0].function in ("+", "-"):
        sign, (*before, last) = before[0].function, before[0].arguments
        parts += [("-", last)] if sign == "-" else reversed(_signed(last))
    return [*(("+", first) for first in before), *reversed(parts)]


def _product(node: Node, formula: Formula) -> tuple[Term, ...]:
    """Terms of a:b, of a * b, which are a + b + a:b, and of a / b, which are a + a:b."""
    left, right = (_expanded(operand, formula) for operand in node.arguments)
    if node.function == "/":
        every = tuple(dict.fromkeys(chain.from_iterable(left)))
        return unique((*left, *(_together(every, term) for term in right)))
    alone = (*left, *right) if node.function == "*" else ()
    return unique((*alone, *_products(left, right, formula)))


def _power(node: Node, formula: Formula) -> tuple[Term, ...]:
    base, times = node.arguments
    if not isinstance(times, Number) or times.value not in range(1, 10):
        formula.refuse(f"a power among terms must be 1 to 9, got {times} (I(x ** 2) is arithmetic)")
    product = terms = _expanded(base, formula)
    for _ in range(int(times.value) - 1):
        product = unique((*product, *_products(product, terms, formula)))
    return product


def _products(left: tuple[Term, ...], right: tuple[Term, ...], formula: Formula) -> list[Term]:
    if len(left) * len(right) > _MOST_TERMS:
        formula.refuse(f"it has more than {_MOST_TERMS:,} terms")
    return [_together(a, b) for a, b in product(left, right)]


def _key(term: Term) -> frozenset[str]:
    return frozenset(map(str, term))


def _together(left: Term, right: Term) -> Term:
    key = _key(left)
    return (*left, *(factor for factor in right if str(factor) not in key))


def unique(terms: Iterable[Term]) -> tuple[Term, ...]:
    """The terms of different factors, in order."""
    by_factors: dict[frozenset[str], Term] = {}
    for term in terms:
        by_factors.setdefault(_key(term), term)
    return tuple(by_factors.values())
