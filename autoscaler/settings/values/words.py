"""Values that are words: choices, text, headers, files, commands."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autoscaler.settings.values.kind import Kind, did_you_mean, not_allowed


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
            meant = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(str(given).lower())
            raise not_allowed("true or false", f"did you mean {meant}?" if meant else "")
        return given


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
class HeaderName(Kind):
    """The name of an HTTP header."""

    def read(self, given: Any) -> str:
        if not isinstance(given, str) or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", given):
            raise not_allowed("the name of a header, such as X-Tenant")
        return given


@dataclass(frozen=True, slots=True)
class FilePath(Kind):
    """Where a file is; relative to the working directory."""

    def read(self, given: Any) -> Path:
        text = Text().read(given)
        if text.endswith("/") or Path(text).name in ("", ".."):
            raise not_allowed("the path of a file", "name the file, not its folder")
        return Path(text)


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
