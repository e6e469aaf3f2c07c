"""The kinds of value that a setting can have: how each is written, and what is allowed.

They annotate the fields of `schema`: `Annotated[float, Duration(least=0.1)]` is written `10s` and read
as 10.0. What is not allowed raises a pydantic error whose text is the allowed form, and whose context
may hold a remedy; `complaints` makes a line of it.
"""

import difflib
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from autoscaler import units
from autoscaler.settings.grpc_port import GrpcPort
from autoscaler.units import Address

_PORT_MAX = 65_535

NOT_ALLOWED = "not_allowed"
"""Type of the errors raised here."""


def not_allowed(allowed: str, remedy: str = "", secret: bool = False) -> PydanticCustomError:
    """Return the error that says what is allowed, and the remedy if there is one.

    What was given is told with it, unless it may be a `secret`.
    """
    context = {"allowed": allowed, "remedy": remedy, "secret": secret}
    return PydanticCustomError(NOT_ALLOWED, "{allowed}", context)


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Return `did you mean …?` if one of `known` is close to `given`, else nothing."""
    close = difflib.get_close_matches(str(given), list(known), n=1)
    return f"did you mean {close[0]}?" if close else ""


class Kind(ABC):
    """A kind of value in the file."""

    @abstractmethod
    def read(self, given: Any) -> Any:
        """Take what stands in the file and return the value; raise `not_allowed` if it is none."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)


@dataclass(frozen=True, slots=True)
class Duration(Kind):
    """A length of time [s]."""

    least: float = 0.0
    most: float = inf

    def read(self, given: Any) -> float:
        seconds = _parsed(units.parse_duration, given, units.DURATION_FORM)
        if not self.least <= seconds <= self.most:
            raise not_allowed(_range(self.least, self.most, units.format_duration))
        return seconds


@dataclass(frozen=True, slots=True)
class Size(Kind):
    """Memory [bytes]."""

    least: int = 0

    def read(self, given: Any) -> int:
        size = _parsed(units.parse_size, given, units.SIZE_FORM)
        if size < self.least:
            raise not_allowed(_range(self.least, inf, units.format_size))
        return size


@dataclass(frozen=True, slots=True)
class Fraction(Kind):
    """A share strictly between 0 and 1 [1]."""

    def read(self, given: Any) -> float:
        if isinstance(given, int | float) and not isinstance(given, bool) and 1 < given < 100:
            raise not_allowed(units.FRACTION_FORM, f"did you mean {given:g}%?")
        fraction = _parsed(units.parse_fraction, given, units.FRACTION_FORM)
        if not 0 < fraction < 1:
            raise not_allowed("above 0 and below 1 (0 % and 100 % cannot be kept)")
        return fraction


@dataclass(frozen=True, slots=True)
class Share(Kind):
    """A share from 0 to 1, both included [1]."""

    def read(self, given: Any) -> float:
        share = _parsed(units.parse_fraction, given, units.FRACTION_FORM)
        if not 0 <= share <= 1:
            raise not_allowed("from 0 to 1")
        return share


@dataclass(frozen=True, slots=True)
class Count(Kind):
    """A whole number [1]."""

    least: int = 0
    most: float = inf

    def read(self, given: Any) -> int:
        allowed = f"a whole number {_range(self.least, self.most, '{:g}'.format)}"
        if isinstance(given, str) and re.fullmatch(r"\d{1,17}", given):
            raise not_allowed(allowed, "write it without quotes")
        if not isinstance(given, int) or isinstance(given, bool) or not self.least <= given <= self.most:
            raise not_allowed(allowed)
        return given


@dataclass(frozen=True, slots=True)
class Listening(Kind):
    """An address to listen on."""

    def read(self, given: Any) -> Address:
        remedy = f"did you mean 127.0.0.1:{given}?" if isinstance(given, int) else ""
        return _parsed(units.parse_address, given, units.ADDRESS_FORM, remedy)


@dataclass(frozen=True, slots=True)
class Switch(Kind):
    """`on`, `off`, or one more word; YAML reads the first two as true and false."""

    other: str

    def read(self, given: Any) -> str:
        if isinstance(given, bool):
            return "on" if given else "off"
        words = (self.other, "on", "off")
        if given not in words:
            raise not_allowed(f"one of {', '.join(words)}")
        return str(given)


@dataclass(frozen=True, slots=True)
class Choice(Kind):
    """One word of several."""

    words: tuple[str, ...]

    def read(self, given: Any) -> str:
        if given not in self.words:
            raise not_allowed(" or ".join(self.words), did_you_mean(given, self.words))
        return str(given)


@dataclass(frozen=True, slots=True)
class YesNo(Kind):
    """Whether something is so."""

    def read(self, given: Any) -> bool:
        if not isinstance(given, bool):
            remedy = {"yes": "did you mean true?", "no": "did you mean false?"}.get(str(given).lower(), "")
            raise not_allowed("true or false", remedy)
        return given


@dataclass(frozen=True, slots=True)
class Number(Kind):
    """A number above a bound [1]."""

    above: float

    def read(self, given: Any) -> float:
        if not isinstance(given, int | float) or isinstance(given, bool) or not self.above < given < inf:
            raise not_allowed(f"a number above {self.above:g}")
        return float(given)


@dataclass(frozen=True, slots=True)
class Rate(Kind):
    """Events in a time [1/s]."""

    zero_allowed: bool = False

    def read(self, given: Any) -> float:
        rate: float = _parsed(units.parse_rate, given, units.RATE_FORM)
        if rate <= 0 and not self.zero_allowed:
            raise not_allowed("a rate above 0", "write none for no limit")
        return rate


@dataclass(frozen=True, slots=True)
class HeaderName(Kind):
    """The name of an HTTP header."""

    def read(self, given: Any) -> str:
        if not isinstance(given, str) or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", given):
            raise not_allowed("the name of a header, such as X-Tenant")
        return given


@dataclass(frozen=True, slots=True)
class GrpcPortKind(Kind):
    """Where the gRPC port of a server is, seen from its HTTP port."""

    def read(self, given: Any) -> GrpcPort:
        is_number = isinstance(given, int) and not isinstance(given, bool)
        if is_number and 1 <= given <= _PORT_MAX:
            return GrpcPort(given, is_added=False)
        match = re.fullmatch(r"port\s*([+-]\s*\d{1,5})", given) if isinstance(given, str) else None
        if match is None:
            remedy = "write it without quotes" if isinstance(given, str) and given.isdigit() else ""
            raise not_allowed("a port such as 8001, or port+1 for the one after the HTTP port", remedy)
        return GrpcPort(int(match[1].replace(" ", "")), is_added=True)


@dataclass(frozen=True, slots=True)
class Text(Kind):
    """Text; a whole number is taken as it is written."""

    least: int = 1
    """Characters."""

    def read(self, given: Any) -> str:
        if isinstance(given, int) and not isinstance(given, bool):
            return str(given)
        if not isinstance(given, str):
            raise not_allowed("text", "write it in quotes" if isinstance(given, bool | float) else "")
        if len(given) < self.least or "\0" in given:
            raise not_allowed(f"text of {self.least} or more characters, without NUL")
        return given


@dataclass(frozen=True, slots=True)
class FilePath(Kind):
    """Where a file is; relative to the working directory."""

    def read(self, given: Any) -> Path:
        return Path(Text().read(given))


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


@dataclass(frozen=True, slots=True)
class UrlPath(Kind):
    """The path of a URL, as `/healthz`."""

    def read(self, given: Any) -> str:
        if not isinstance(given, str) or not re.fullmatch(r"/[!-~]*", given):
            remedy = f"did you mean /{given}?" if isinstance(given, str) and given[:1].isalnum() else ""
            raise not_allowed("a path that begins with /, such as /healthz", remedy)
        return given


@dataclass(frozen=True, slots=True)
class Url(Kind):
    """The base URL of a server, without a trailing slash."""

    allowed = "a URL such as http://127.0.0.1:9001, without query"

    def read(self, given: Any) -> str:
        if not isinstance(given, str):
            raise not_allowed(self.allowed)
        try:
            parts = urlsplit(given)
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # a port that is none, brackets that do not close
            usable = False
        if not usable or parts.query or parts.fragment or re.search(r"\s", given):
            remedy = f"did you mean http://{given}?" if re.fullmatch(r"[\w.-]+:\d+(/.*)?", given) else ""
            raise not_allowed(self.allowed, remedy)
        return given.rstrip("/")


@dataclass(frozen=True, slots=True)
class WebAddress(Kind):
    """A URL with all that belongs to it, a query too."""

    allowed = "a URL such as https://scaler.example.org/scale"

    def read(self, given: Any) -> str:
        if not isinstance(given, str):
            raise not_allowed(self.allowed)
        try:
            parts = urlsplit(given)
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # a port that is none, brackets that do not close
            usable = False
        if not usable or parts.fragment or re.search(r"\s", given):
            raise not_allowed(self.allowed)
        return given


@dataclass(frozen=True, slots=True)
class Command(Kind):
    """A program and its arguments."""

    allowed = 'a list such as ["python3", "server.py", "--port", "{port}"]'

    def read(self, given: Any) -> tuple[str, ...]:
        if isinstance(given, str):
            try:
                words = ", ".join(f'"{word}"' for word in shlex.split(given))
            except ValueError:  # a quote that does not close
                words = ""
            raise not_allowed(self.allowed, f"write [{words}]" if words else "")
        if not isinstance(given, list) or not given:
            raise not_allowed(self.allowed)
        words_only = all(isinstance(word, str | int | float) and not isinstance(word, bool) for word in given)
        if not words_only or given[0] == "":
            raise not_allowed(self.allowed, "every part is text")
        return tuple(str(word) for word in given)


def _parsed(parse: Any, given: Any, form: str, remedy: str = "") -> Any:
    try:
        return parse(given)
    except ValueError as error:
        raise not_allowed(form, remedy) from error


def _range(least: float, most: float, show: Any) -> str:
    return f"{show(least)} or more" if most == inf else f"{show(least)} to {show(most)}"
