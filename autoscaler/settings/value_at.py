"""The value that a setting has, whether it is written or not."""

from typing import Any

from pydantic_core import PydanticCustomError

from autoscaler.settings.document import Document, KeyPath
from autoscaler.settings.schema import FileSection
from autoscaler.settings.section import field_at
from autoscaler.settings.values import Kind


def value_at(document: Document, path: KeyPath) -> Any:
    """Return the value of a setting, its default if it is not in the file, None if it is wrong."""
    info = field_at(FileSection, path, document)
    if info is None:
        return None
    if path not in document.key_places:
        return info.default
    kind = next(data for data in info.metadata if isinstance(data, Kind))
    try:
        return kind.read(document.at(path))
    except PydanticCustomError:
        return None
