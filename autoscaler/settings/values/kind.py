"""What a kind of value is, how it says no, and words that may stand in the place of a value.

What is not allowed raises a pydantic error whose text is the allowed form, and whose context may hold a
remedy; `complaints` makes a line of it.
"""

import difflib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic_core import CoreSchema, PydanticCustomError, core_schema

NOT_ALLOWED = "not_allowed"
"""Type of the errors raised here."""
_CLOSE = 0.6
"""Two names of which so much is the same are close [1]."""


def not_allowed(allowed: str, remedy: str = "", secret: bool = False) -> PydanticCustomError:
    """Return the error that says what is allowed, and the remedy if there is one.

    What was given is told with it, unless it may be a `secret`.
    """
    context = {"allowed": allowed, "remedy": remedy, "secret": secret}
    return PydanticCustomError(NOT_ALLOWED, "{allowed}", context)


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Return `did you mean …?` if one of `known` is close to `given`, else nothing."""
    close = closest(given, known)
    return f"did you mean {close}?" if close else ""


def closest(given: object, known: Iterable[str]) -> str:
    """Return the one of `known` that is close to `given`, in whatever order its words are; or nothing."""
    alike, nearest = max(((_likeness(str(given), each), each) for each in known), default=(0.0, ""))
    return nearest if alike >= _CLOSE else ""


def _likeness(given: str, known: str) -> float:
    """Return how much of both is the same [1]."""
    pairs = ((known, given), (_words(known), _words(given)))
    return max(difflib.SequenceMatcher(None, *pair).ratio() for pair in pairs)


def _words(name: str) -> str:
    """Put the words of a name in order: `maxReplicas` and `replicas_max` are the same."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return "_".join(sorted(re.split(r"[-_ .]+", apart)))


def parsed(parse: Any, given: Any, form: str, remedy: str = "") -> Any:
    """Return what `parse` makes of `given`; what it refuses is not allowed, and `form` says what is."""
    try:
        return parse(given)
    except ValueError as error:
        raise not_allowed(form, remedy) from error


class Kind(ABC):
    """A kind of value in the file."""

    @abstractmethod
    def read(self, given: Any) -> Any:
        """Take what stands in the file and return the value; raise `not_allowed` if it is none."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)


@dataclass(frozen=True, slots=True)
class OrNone(Kind):
    """What `kind` reads, or the word none."""

    kind: Kind

    def read(self, given: Any) -> Any:
        if given == "none":
            return None
        try:
            return self.kind.read(given)
        except PydanticCustomError as error:
            context = error.context or {}
            raise not_allowed(f"{context['allowed']}, or none", context["remedy"]) from error


@dataclass(frozen=True, slots=True)
class OrAuto(Kind):
    """What `kind` reads, or the word auto, as None: let it be found out."""

    kind: Kind

    def read(self, given: Any) -> Any:
        if given == "auto":
            return None
        try:
            return self.kind.read(given)
        except PydanticCustomError as error:
            context = error.context or {}
            remedy = context["remedy"] or did_you_mean(given, ("auto",))
            raise not_allowed(f"{context['allowed']}, or auto", remedy) from error
