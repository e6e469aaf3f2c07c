"""One section as it stands in a file, for rules that look at several of its values at once.

A rule must not be silenced by a mistake that it is not about, and must not complain of a value that is
wrong by itself. So it asks here for each value that it needs: one that is wrong raises `TakesNoPart`, which
ends this rule and no other.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from autoscaler.settings.document import Document, KeyPath, dotted
from autoscaler.settings.section import Section, adapter_of, section_at

Key = str | KeyPath
"""Of the section itself, `"wait_max"`, or of one in it, `("queue", "wait_max")`."""


class TakesNoPart(Exception):
    """A value is wrong by itself, or missing, and somebody else says so."""


@dataclass(frozen=True, slots=True)
class Written:
    """A section of kind `section` at `path`, whose keys a rule may ask for."""

    document: Document
    path: KeyPath
    section: type[Section]

    def __getitem__(self, key: Key) -> Any:
        """Return the value of a setting, or its default. Raises TakesNoPart if it is wrong or missing."""
        below = self._below(key)
        whole = (*self.path, *below)
        if any(whole[: len(wrong)] == wrong for wrong in self.document.unreadable):
            raise TakesNoPart
        owner = section_at(self.section, below[:-1], self.document, self.path)
        if owner is None or str(below[-1]) not in owner.model_fields:
            raise TakesNoPart
        if whole not in self.document.key_places:
            return self._default(owner, str(below[-1]), whole)
        try:
            return adapter_of(owner, str(below[-1])).validate_python(self.document.at(whole))
        except ValidationError as error:
            raise TakesNoPart from error

    def has(self, key: Key) -> bool:
        """Whether a key is in the file."""
        return (*self.path, *self._below(key)) in self.document.key_places

    def is_set(self, key: Key) -> bool:
        """Whether a key is in the file, with another value than its default."""
        if not self.has(key):
            return False
        below = self._below(key)
        owner = section_at(self.section, below[:-1], self.document, self.path)
        info = None if owner is None else owner.model_fields.get(str(below[-1]))
        return info is not None and bool(self[key] != info.get_default(call_default_factory=True))

    def raw(self, key: Key) -> Any:
        """Return what stands in the file, whatever it is; None if there is nothing."""
        return self.document.at((*self.path, *self._below(key)))

    def of_each(self, key: str, field: str) -> dict[str, Any]:
        """Return a field of each section that is written at `key`, by name; without those that are wrong."""
        names, values = self.raw(key), {}
        for name in names if isinstance(names, dict) else ():
            with suppress(TakesNoPart):
                values[name] = self[key, name, field]
        return values

    def note(self, key: Key, fault: str, allowed: str = "", remedy: str = "") -> None:
        """Add a problem with `key`; its place is that of the value."""
        self.document.note((*self.path, *self._below(key)), fault, allowed, remedy)

    def name(self, key: Key) -> str:
        """Return the whole name of `key`, as `pools.chat.queue.wait_max`."""
        return dotted((*self.path, *self._below(key)))

    def place(self, key: Key) -> tuple[int, int]:
        """Return line and column of `key`, to tell which comes first."""
        place = self.document.key_places.get((*self.path, *self._below(key)))
        return (place.line, place.column) if place else (0, 0)

    def _default(self, owner: type[Section], name: str, whole: KeyPath) -> Any:
        around = self.document.at(whole[:-1])
        info = owner.model_fields[name]
        if info.is_required() or not (around is None or isinstance(around, dict)):
            raise TakesNoPart
        return info.get_default(call_default_factory=True)

    @staticmethod
    def _below(key: Key) -> KeyPath:
        return (key,) if isinstance(key, str) else key


Rule = Callable[[Written], None]
"""Notes what does not go together in a section."""


def keep(rules: tuple[Rule, ...], written: Written) -> None:
    """Hold the section against each of the rules."""
    for rule in rules:
        try:
            rule(written)
        except TakesNoPart:
            continue
