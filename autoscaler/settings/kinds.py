"""Sections of several kinds that do not say which they are, or say one that there is not.

Such a section would be dark: nobody could tell which of its values are wrong. So it is read as the kind that
was meant, where that is clear: the word is nearly right, or one kind alone has all the keys. Otherwise those
values are told that are wrong whatever the kind is.
"""

from pydantic import ValidationError

from autoscaler.settings.complaints import note
from autoscaler.settings.document import Document, KeyPath, shown
from autoscaler.settings.section import Section, adapter_of, sections_in, written_below
from autoscaler.settings.values import closest, did_you_mean

_OTHER_NAMES = dict.fromkeys(
    ("vllm", "sglang", "tgi", "llama.cpp", "llamacpp", "ollama", "lmdeploy"), "openai"
)
"""Kinds by what people call them: these programs all speak as OpenAI's does."""


def settle_kinds(root: type[Section], document: Document) -> None:
    """Add kinds that are missing or wrong to the problems, and write those that were meant in their place."""
    for path, section in list(sections_in(root, document)):
        for key in section.model_fields:
            for below, kinds in written_below(section, path, key, document):
                if "" not in kinds:
                    _settle(below, kinds, document)


def _settle(path: KeyPath, kinds: dict[str, type[Section]], document: Document) -> None:
    written = document.at(path)
    if written is None or written.get("kind") in list(kinds):
        return
    kind_path, given, usual = (*path, "kind"), written.get("kind"), _usual(kinds)
    if usual and "kind" not in written and written.keys() <= kinds[usual].model_fields.keys():
        written["kind"] = usual
        return
    named = _other_name(given, kinds) or closest(given, kinds)
    meant = named or _only_one_with(written.keys() - {"kind"}, kinds)
    if kind_path not in document.unreadable:
        fault = "missing" if given is None else f"got {shown(given)}"
        remedy = f"did you mean {named}?" if named else f"write kind: {meant}" if meant else ""
        document.note(kind_path, fault, " or ".join(kinds), remedy)
        document.unreadable.append(kind_path)
    if meant:
        written["kind"] = meant
        return
    for key in written.keys() - {"kind"}:
        _note_whatever_the_kind(path, key, kinds, document)


def _usual(kinds: dict[str, type[Section]]) -> str:
    """Return the kind that a section is of unless it says another; nothing if it must say."""
    return next((kind for kind, each in kinds.items() if not each.model_fields["kind"].is_required()), "")


def _other_name(given: object, kinds: dict[str, type[Section]]) -> str:
    """Return the kind that `given` is another name of; nothing if it is of none."""
    kind = _OTHER_NAMES.get(str(given).lower(), "")
    return kind if kind in kinds else ""


def _only_one_with(keys: set[str], kinds: dict[str, type[Section]]) -> str:
    """Return the only kind that has all of `keys`; nothing if several have, or none."""
    able = [kind for kind, section in kinds.items() if keys <= section.model_fields.keys()]
    return able[0] if keys and len(able) == 1 else ""


def _note_whatever_the_kind(
    path: KeyPath, key: str, kinds: dict[str, type[Section]], document: Document
) -> None:
    """Add what is wrong with `key` in every kind that has it, as the first of them says it."""
    whole = (*path, key)
    having = [section for section in kinds.values() if key in section.model_fields]
    if not having:
        known = {key: None for section in kinds.values() for key in section.model_fields}
        remedy = did_you_mean(key, known) or "remove it"
        document.note(whole, "unknown key, whatever the kind", "", remedy, document.key_places.get(whole))
        return
    errors = [_error_of(section, key, document.at(whole)) for section in having]
    if all(errors) and (first := errors[0]):
        for details in first.errors(include_url=False):
            note(details, (*whole, *details["loc"]), having[0], document)


def _error_of(section: type[Section], key: str, value: object) -> ValidationError | None:
    try:
        adapter_of(section, key).validate_python(value)
    except ValidationError as error:
        return error
    return None
