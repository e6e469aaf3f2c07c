"""Turns what pydantic found wrong into problems that name the place, the value, and the remedy."""

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from autoscaler.settings.document import Document, KeyPath, shown
from autoscaler.settings.section import NAME, Section, all_keys, section_at
from autoscaler.settings.values import NOT_ALLOWED, did_you_mean

_OF_A_SECTION = "keys with values, each on a line of its own"


def note_all(error: ValidationError, root: type[Section], document: Document) -> None:
    """Add everything that `error` tells to the problems of `document`."""
    for details in error.errors(include_url=False):
        note(details, _path(details["loc"], document), root, document)


def note(details: ErrorDetails, path: KeyPath, root: type[Section], document: Document) -> None:
    """Add one error, of what is at `path`."""
    if _is_told(path, details["type"], document):
        return
    match details["type"]:
        case "extra_forbidden":
            _note_unknown(path, root, document)
        case "missing":
            document.note(path, "missing", "", _write(path, root, document))
        case "union_tag_not_found" | "union_tag_invalid":
            pass  # `kinds` told it
        case "model_type" | "model_attributes_type" | "dict_type":
            document.note(path, f"got {shown(details['input'])}", _OF_A_SECTION)
        case "tuple_type":
            document.note(path, f"got {shown(details['input'])}", "a list, as [a, b]")
        case type_ if type_ == NOT_ALLOWED:
            given, context = details["input"], details["ctx"]
            remedy = context["remedy"] or ("write a value or remove the key" if given is None else "")
            told = "got something that is not shown here" if context["secret"] else f"got {shown(given)}"
            document.note(path, told, context["allowed"], remedy)
        case _:
            document.note(path, details["msg"])


def _path(location: tuple[str | int, ...], document: Document) -> KeyPath:
    """Return pydantic's location without the tags that it puts in where sections differ by `kind`."""
    path: KeyPath = ()
    tag_passed = False
    for step in location:
        around = document.at(path)
        if not tag_passed and isinstance(around, dict) and "kind" in around and around["kind"] == step:
            tag_passed = True
            continue
        path, tag_passed = (*path, step), False
    return path


def _is_told(path: KeyPath, type_: str, document: Document) -> bool:
    """Whether the reader of the file already complained about the value that the error is about."""
    if type_ in ("extra_forbidden", "missing"):
        return False
    return any(unreadable[: len(path)] == path for unreadable in document.unreadable)


def _note_unknown(path: KeyPath, root: type[Section], document: Document) -> None:
    section = section_at(root, path[:-1], document)
    known = list(section.model_fields) if section else []
    remedy = _move(path, root, document) or did_you_mean(path[-1], known) or "remove it"
    document.note(path, "unknown key", ", ".join(known), remedy, document.key_places.get(path))


def _move(path: KeyPath, root: type[Section], document: Document) -> str:
    """Say where a key belongs that stands in another section; nothing if that is nowhere, or not clear."""
    places = {
        key[: number + 1] for key in all_keys(root) for number, step in enumerate(key) if step == path[-1]
    }
    if len(places) != 1:
        return ""
    known = places.pop()
    if known not in all_keys(root) and not isinstance(document.at(path), dict):
        return ""  # there it is a section, and this is a value
    place = known[:-1]
    pairs = enumerate(zip(place, path, strict=False))
    shared = next((number for number, (step, given) in pairs if step not in (given, NAME)), len(place))
    steps = (*path[:shared], *place[shared:])  # below the same name, where there is one
    if steps == path[:-1]:
        return ""  # there it stands; it is of another kind
    there = section_at(root, steps, document)
    if isinstance(document.at(steps), dict) and (there is None or path[-1] not in there.model_fields):
        return ""  # that section is of another kind, which does not have it
    whole = ".".join("NAME" if step == NAME else str(step) for step in steps)
    return f"move it to {whole}" if whole else "move it to the top of the file, below no other key"


def _write(path: KeyPath, root: type[Section], document: Document) -> str:
    section = section_at(root, path[:-1], document)
    examples = section.model_fields[str(path[-1])].examples if section else None
    return f"write {path[-1]}: {examples[0]}" if examples else ""
