"""The value that a setting has, whether it is written or not."""

from typing import Any

from autoscaler.settings.document import Document, KeyPath
from autoscaler.settings.schema import FileSection
from autoscaler.settings.written import TakesNoPart, Written


def value_at(document: Document, path: KeyPath) -> Any:
    """Return the value of a setting, its default if it is not in the file, None if it is wrong."""
    try:
        return Written(document, (), FileSection)[path]
    except TakesNoPart:
        return None
