"""What each family of models can answer: one word for one thing, whatever the data are.

A `Family` names the functions that answer a question about a run, by the words that all families
share: ``predict``, ``effects``, ``check``, ``compare``, ``report``; and by words of its own, such
as ``topics`` or ``forecast``. A model names its family, and a posterior knows its model: so the
answers are methods of what `pgmult.sample` and `pgmult.load` return, and the command line asks the
same functions. A function is imported when it is first asked for.

>>> family = Family("toys", {"report": Verb("pgmult.core.family:Verb", models=("Toy",))})
>>> sorted(family.verbs)
['report']
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from types import MethodType
from typing import Any, Protocol


class Run(Protocol):
    """Draws that know the model that they are of."""

    @property
    def model(self) -> Any:
        """The model."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A function that answers one question about a run.

    Attributes
    ----------
    function : str
        ``"module:function"``; it takes the posterior first, and finds the data in it.
    models : tuple of str
        Names of the classes of models, or of their bases, whose runs it can answer for; those of
        the whole family if empty.
    keeps : tuple of str
        Variables of which the run must have kept one; none is needed if empty.
    hint : str
        How a run comes to keep one.
    """

    function: str
    models: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    hint: str = "name it in keep="

    def load(self) -> Any:
        """The function."""
        return resolve_name(self.function)

    def refusal(self, run: Any) -> str:
        """Why it cannot answer for a run, in words; empty if it can."""
        kinds = {kind.__name__ for kind in type(run.model).__mro__}
        if self.models and kinds.isdisjoint(self.models):
            return f"it takes a run of {' or '.join(self.models)}, got {type(run.model).__name__}"
        if self.keeps and not any(name in run for name in self.keeps):
            return f"the run must have kept {' or '.join(self.keeps)} ({self.hint})"
        return ""


@dataclass(frozen=True, slots=True)
class Family:
    """The models of one kind of data, and what can be asked about their runs.

    Attributes
    ----------
    name : str
        That of the room and of the command: ``pgmult.topics``, ``pgmult topics``.
    verbs : mapping from a word to Verb
    takes_parts : bool
        Whether its questions take runs that kept every draw of some variables and of others not;
        the others are asked of the draws of which all was kept.
    """

    name: str
    verbs: Mapping[str, Verb]
    takes_parts: bool = False

    def __hash__(self) -> int:
        return hash(self.name)

    def answers(self, run: object) -> list[str]:
        """The words that this run can answer."""
        return [word for word, verb in self.verbs.items() if not verb.refusal(run)]

    def method(self, run: Any, word: str) -> MethodType:
        """The function behind a word, as a method of a run.

        Raises
        ------
        AttributeError
            If the run cannot answer, and why.
        """
        if why := self.verbs[word].refusal(run):
            raise AttributeError(f"this run cannot answer {word!r}: {why}")
        return MethodType(self.verbs[word].load(), run if self.takes_parts else run.whole())


def family_of(model: object) -> Family | None:
    """The family that a model names; None of a model that names none."""
    family = getattr(type(model), "family", None)
    return family if isinstance(family, Family) else None
