"""The data of a configuration file in which every key and value remembers its place."""

from dataclasses import dataclass, field
from typing import Any

from autoscaler.errors import Problem

KeyPath = tuple[str | int, ...]
"""The way from the top to a value: `("pools", "chat", "platform", "gpus", 0)`."""

_SHOWN_MAX = 60


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column, counted from 1."""

    line: int
    column: int


@dataclass(slots=True)
class Document:
    """Plain data (dict, list, text, number, bool, None), where it stands, and what is wrong so far."""

    file: str
    data: Any = None
    problems: list[Problem] = field(default_factory=list)
    key_places: dict[KeyPath, Place] = field(default_factory=dict)
    value_places: dict[KeyPath, Place] = field(default_factory=dict)
    unreadable: list[KeyPath] = field(default_factory=list)
    """Values that are already known to be wrong, so that nobody complains of them twice."""

    def at(self, path: KeyPath) -> Any:
        """Return the value at `path`, or None if there is nothing."""
        value = self.data
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def note(
        self, path: KeyPath, fault: str, allowed: str = "", remedy: str = "", place: Place | None = None
    ) -> None:
        """Add a problem with what is at `path`; it is placed there, or at the nearest key around it."""
        place = place or self._nearest(path)
        self.problems.append(
            Problem(self.file, place.line, place.column, dotted(path), fault, allowed, remedy)
        )

    def _nearest(self, path: KeyPath) -> Place:
        if isinstance(self.at(path), dict) and path in self.key_places:
            return self.key_places[path]  # a section is better known by its name than by its first key
        if path in self.value_places:
            return self.value_places[path]
        for length in range(len(path) - 1, 0, -1):
            around = path[:length]
            if place := self.key_places.get(around) or self.value_places.get(around):
                return place
        return Place(1, 1)


def dotted(path: KeyPath) -> str:
    """Write a path as people do: `pools.chat.platform.gpus[0]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def shown(value: Any) -> str:
    """Write a value as it would stand in the file, cut when long."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            text = f'"{value}"'
        case list() | tuple():
            text = f"[{', '.join(map(shown, value))}]"
        case dict():
            text = f"keys ({', '.join(map(str, value))})"
        case _:
            text = str(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 1]}…"
