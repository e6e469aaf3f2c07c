"""Reads a YAML file into a `Document`.

PyYAML's `compose` gives nodes with positions; they become dicts, lists and scalars here. Three habits of
YAML that surprise people are left out: words such as `no` and `on` are text, so are `12:30` and `010`, and
a key given twice is a problem rather than the last one winning. Anchors, aliases and `<<` work.

`${NAME}` is expanded in values. An unquoted value is read as YAML again after that, but only as a
scalar: the environment cannot add keys.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import yaml

from autoscaler.errors import Problem, SettingsError
from autoscaler.settings.document import Document, KeyPath, Place
from autoscaler.settings.environment import expand, with_config_dir

_BYTES_MAX = 4 * 2**20
_VALUES_MAX = 100_000  # aliases of aliases can make a small file huge
_NULL, _BOOL, _INT, _FLOAT, _STR = (
    f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str")
)
_PLAIN_TAGS = {
    yaml.ScalarNode: {_NULL, _BOOL, _INT, _FLOAT, _STR},
    yaml.SequenceNode: {"tag:yaml.org,2002:seq"},
    yaml.MappingNode: {"tag:yaml.org,2002:map"},
}
_SCALARS = (
    (_NULL, r"~|null|"),
    (_BOOL, r"true|false"),
    (_INT, r"[-+]?(?:0|[1-9][0-9]{0,17})"),
    (_FLOAT, r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"),
)


class _Loader(yaml.SafeLoader):
    """Knows null, true, false and decimal numbers; everything else that is not quoted is text."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode:
            return _tag_of(value) if implicit[0] else _STR
        return next(iter(_PLAIN_TAGS[kind]))


def read(path: Path, environment: Mapping[str, str]) -> Document:
    """Read a configuration file.

    Parameters
    ----------
    path : Path
        A YAML file in UTF-8, of one document, with a mapping at the top.
    environment : Mapping
        Where `${NAME}` is looked up.

    Returns
    -------
    Document
        With `problems` that leave the rest readable: duplicate keys, variables that are not set.

    Raises
    ------
    SettingsError
        If nothing can be read at all.
    """
    file = str(path)
    node = _composed(_text(path, file), file)
    if not isinstance(node, yaml.MappingNode):
        fault = "the file is empty" if node is None else "the file is not a mapping of keys to values"
        raise SettingsError([Problem(file, 0, 0, "", fault, "", "write `pools:` with one pool at least")])
    reading = _Reading(Document(file), with_config_dir(environment, path))
    reading.document.data = reading.value(node, (), ())
    return reading.document


def _text(path: Path, file: str) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        remedy = "name the YAML file itself" if path.is_dir() else "check its name and permissions"
        fault = f"cannot read the configuration: {(error.strerror or str(error)).lower()}"
        raise SettingsError([Problem(file, 0, 0, "", fault, "", remedy)]) from error
    if len(content) > _BYTES_MAX:
        fault = f"the file has {len(content)} bytes"
        remedy = "is it the right file?"
        raise SettingsError([Problem(file, 0, 0, "", fault, f"at most {_BYTES_MAX} bytes", remedy)])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        fault = f"byte 0x{content[error.start]:02x} is not UTF-8"
        raise SettingsError([Problem(file, line, column, "", fault, "", "save the file as UTF-8")]) from error


def _composed(text: str, file: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise SettingsError([_syntax_problem(file, error)]) from error
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, error.position - before.rfind("\n")
        fault = f"character {text[error.position]!r} is not allowed in YAML"
        raise SettingsError([Problem(file, line, column, "", fault, "", "remove it")]) from error
    except RecursionError as error:
        fault = "lists or mappings are nested too deep"
        raise SettingsError([Problem(file, 0, 0, "", fault, "", "is it the right file?")]) from error


def _syntax_problem(file: str, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    fault = f"not valid YAML: {error.problem or error.context}"
    if error.problem and error.context:
        begun = error.context_mark
        where = f" that begins in line {begun.line + 1}" if begun and mark and begun.line != mark.line else ""
        fault = f"not valid YAML: {error.context}{where}: {error.problem}"
    remedy = "indent with spaces" if r"'\t'" in fault else ""
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    return Problem(file, line, column, "", fault, "", remedy)


@dataclass(slots=True)
class _Reading:
    """Turns nodes into data and notes their places on the way."""

    document: Document
    environment: Mapping[str, str]
    count: int = 0

    def value(self, node: yaml.Node, path: KeyPath, around: tuple[yaml.Node, ...]) -> Any:
        """Return the data of `node`; `around` are the nodes that it is part of, so that a loop is found."""
        self.document.value_places.setdefault(path, _place(node))
        self.count += 1
        if self.count > _VALUES_MAX:
            self._stop(node, path, f"more than {_VALUES_MAX} values", "use fewer aliases")
        if any(node is outer for outer in around):
            self._stop(node, path, "an alias of something that it is part of", "remove the alias")
        if node.tag not in _PLAIN_TAGS[type(node)]:
            return self._unreadable(path, f"got the tag {node.tag}", "", "remove the tag")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        around = (*around, node)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index), around) for index, item in enumerate(node.value)]
        return self._mapping(node, path, around)

    def _mapping(self, node: yaml.Node, path: KeyPath, around: tuple[yaml.Node, ...]) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, value_node in self._own_items(node, path):
            data[key] = self.value(value_node, (*path, key), around)
        for key_node, value_node in self._merged_items(node, path, around):
            key = key_node.value
            if key not in data:
                self.document.key_places[*path, key] = _place(key_node)
                data[key] = self.value(value_node, (*path, key), around)
        return data

    def _own_items(self, node: yaml.Node, path: KeyPath) -> Iterator[tuple[str, yaml.Node]]:
        """Yield what is written in the mapping itself, and note what is written twice."""
        written: dict[str, int] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._stop(
                    key_node, path, "a key that is a list or a mapping", "write a word before the colon"
                )
            key, place = key_node.value, _place(key_node)
            if _is_merge(key_node):
                continue
            if key in written:
                fault = f"given twice, first in line {written[key]}"
                self.document.note((*path, key), fault, "", "remove one of them", place)
                continue
            written[key] = place.line
            self.document.key_places[*path, key] = place
            yield key, value_node

    def _merged_items(
        self, node: yaml.Node, path: KeyPath, around: tuple[yaml.Node, ...]
    ) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
        """Yield what `<<` brings in; of several that bring the same key, the first counts."""
        for key_node, value_node in node.value:
            if not _is_merge(key_node):
                continue
            sources = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
            for source in sources:
                if not isinstance(source, yaml.MappingNode) or any(source is outer for outer in around):
                    self._stop(source, (*path, "<<"), "not another mapping", "write `<<: *anchor`")
                yield from (item for item in source.value if not _is_merge(item[0]))
                yield from self._merged_items(source, path, (*around, source))

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        text, tag = node.value, node.tag
        if "${" in text:
            text = expand(text, self.environment, lambda *words: self._unreadable(path, *words))
            tag = _tag_of(text) if node.style is None else _STR
        if tag != _STR and tag != _tag_of(text):  # an explicit !!int before something else
            return self._unreadable(path, f'got "{text}" with the tag {tag}', "", "remove the tag")
        return _CONSTRUCTORS[tag](text)

    def _unreadable(self, path: KeyPath, fault: str, allowed: str, remedy: str) -> None:
        self.document.note(path, fault, allowed, remedy)
        self.document.unreadable.append(path)

    def _stop(self, node: yaml.Node, path: KeyPath, fault: str, remedy: str) -> NoReturn:
        self.document.note(path, fault, "", remedy, _place(node))
        raise SettingsError(self.document.problems)


_CONSTRUCTORS: dict[str, Callable[[str], Any]] = {
    _NULL: lambda text: None,
    _BOOL: lambda text: text == "true",
    _INT: int,
    _FLOAT: float,
    _STR: str,
}


def _tag_of(text: str) -> str:
    """Return what an unquoted scalar is."""
    return next((tag for tag, pattern in _SCALARS if re.fullmatch(pattern, text)), _STR)


def _is_merge(key_node: yaml.Node) -> bool:
    return isinstance(key_node, yaml.ScalarNode) and key_node.value == "<<" and key_node.style is None


def _place(node: yaml.Node) -> Place:
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)
