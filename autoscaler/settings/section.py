"""What all sections of the file have in common, and how the tree of them is walked.

A section is a pydantic model whose fields are values (`values`), further sections, sections by name
(`pools`), or one of several sections told apart by their `kind`. The walk answers, for a path in a file,
which section or field stands there: messages need the keys that would be allowed, rules need defaults.
"""

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, Any, ClassVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, model_validator
from pydantic.fields import FieldInfo

from autoscaler.settings.document import Document, KeyPath

NAME = "*"
"""Stands for a name that the user chooses, in the path of a key: `pools.*.queue`."""


class Section(BaseModel):
    """Keys that belong together. One that is left empty has all its defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=False)

    RULES: ClassVar[tuple[Callable[[Any], None], ...]] = ()
    """What its values must have in common (`rules`); each is held against the section as it is `written`."""

    @model_validator(mode="before")
    @classmethod
    def _empty_is_default(cls, given: Any) -> Any:
        return {} if given is None else given


def default(owner: type, name: str) -> Any:
    """Return the default that `owner` itself gives to `name`, so that none is stated twice."""
    value = inspect.signature(owner).parameters[name].default
    if value is inspect.Parameter.empty:
        raise TypeError(f"{owner.__name__} has no default for {name}")
    return value


def section_at(
    root: type[Section], path: KeyPath, document: Document, above: KeyPath = ()
) -> type[Section] | None:
    """Return the section that `path` leads to from the section at `above`, or None if it leads to none."""
    section: type[Section] | None = root
    length = 0
    while section is not None and length < len(path):
        info = section.model_fields.get(str(path[length]))
        if info is None:
            return None
        kinds, named = _sections_in(info)
        length += 2 if named else 1
        kind = document.at((*above, *path[:length], "kind"))
        section = _of_kind(kinds, kind) if length <= len(path) else None
    return section


def field_at(root: type[Section], path: KeyPath, document: Document) -> FieldInfo | None:
    """Return the field that `path` leads to in the document, or None if it leads to none."""
    section = section_at(root, path[:-1], document)
    return section.model_fields.get(str(path[-1])) if section else None


@cache
def adapter_of(section: type[Section], name: str) -> TypeAdapter[Any]:
    """Return what reads the value of one field, wherever it is from."""
    info = section.model_fields[name]
    form: Any = Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
    return TypeAdapter(form)


def all_keys(section: type[Section], path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the path of every value that a file may hold; of sections of several kinds, of each kind."""
    for name, info in section.model_fields.items():
        kinds, named = _sections_in(info)
        below = (*path, name, NAME) if named else (*path, name)
        if not kinds:
            yield below
        for kind in kinds.values():
            yield from all_keys(kind, below)


def sections_in(root: type[Section], document: Document) -> Iterator[tuple[KeyPath, type[Section]]]:
    """Yield every section that is written in the document, with its path; not those of an unknown kind."""
    waiting: list[tuple[KeyPath, type[Section]]] = [((), root)]
    while waiting:
        path, section = waiting.pop()
        yield path, section
        for key in section.model_fields:
            for below, kinds in written_below(section, path, key, document):
                if found := _of_kind(kinds, document.at((*below, "kind"))):
                    waiting.append((below, found))


def written_below(
    section: type[Section], path: KeyPath, key: str, document: Document
) -> Iterator[tuple[KeyPath, dict[str, type[Section]]]]:
    """Yield each section that is written at `key` of the section at `path`, and what kinds it may be of."""
    kinds, named = _sections_in(section.model_fields[key])
    above = (*path, key)
    names = document.at(above) if named else None
    for below in [(*above, name) for name in names] if isinstance(names, dict) else [] if named else [above]:
        is_section = document.at(below) is None or isinstance(document.at(below), dict)
        if kinds and below in document.key_places and is_section:
            yield below, kinds


def kinds_of(section: type[Section], key: str) -> list[str]:
    """Return the kinds that the section at `key` of `section` may have; empty if it has no kind."""
    return [kind for kind in _sections_in(section.model_fields[key])[0] if kind]


def _sections_in(info: FieldInfo) -> tuple[dict[str, type[Section]], bool]:
    """Return the sections that a field holds, by kind, and whether each has a name of its own."""
    annotation: Any = info.annotation
    named = get_origin(annotation) is dict
    if named:
        annotation = get_args(annotation)[1]
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    members = get_args(annotation) or (annotation,)
    sections = [member for member in members if inspect.isclass(member) and issubclass(member, Section)]
    return {_kind_of(member): member for member in sections}, named and bool(sections)


def _kind_of(section: type[Section]) -> str:
    return str(get_args(section.model_fields["kind"].annotation)[0]) if "kind" in section.model_fields else ""


def _of_kind(kinds: dict[str, type[Section]], kind: Any) -> type[Section] | None:
    return kinds.get("") or kinds.get(kind if isinstance(kind, str) else "")
