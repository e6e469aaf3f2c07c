"""Models that a file names, with their requests."""

from collections.abc import Mapping


def by_number(models: Mapping[str, int]) -> dict[str, int]:
    """Return the same, the most frequent first."""
    return dict(sorted(models.items(), key=lambda item: (-item[1], item[0])))


def in_words(models: Mapping[str, int], most: int = 5) -> str:
    """Return names with their requests, for people."""
    named = [f"{name} ({number:,})" for name, number in list(models.items())[:most]]
    return ", ".join(named) + (f" and {len(models) - most} more" if len(models) > most else "")
