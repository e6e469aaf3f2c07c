"""What the samples of a query are: a counter, a rate, or counts; told by the query, or by how they move.

A *counter* only rises, but for resets to zero when its process starts anew. A *rate* is in requests a
second. A *count* is of the requests in a window, as `increase(x[5m])` gives it. The functions of a query tell
it; of a bare name its ending (`_total`, `_count`, `rate5m`), or that it hardly ever falls.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from autoscaler.errors import UsageError
from autoscaler.units import parse_duration

Floats = NDArray[np.float64]

FALLS_MAX = 0.05
"""Of a counter's changes at most this share are falls; a rate falls as often as it rises."""

_LABELS = r"""\{(?:[^{}"']|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')*\}"""
_BARE = re.compile(rf"\s*([a-zA-Z_:][\w:]*)?\s*(?:{_LABELS})?\s*")
_COUNTER_NAME = re.compile(r"\w*(?:_total|_count)\b")
_WINDOW = re.compile(r"\[\s*([0-9a-z]+)\s*\]")


class Kind(StrEnum):
    """What samples are."""

    COUNTER = "counter"
    RATE = "rate"
    COUNT = "count"


_BY_FUNCTION = ((re.compile(r"\bincrease\s*\("), Kind.COUNT), (re.compile(r"\bi?rate\s*\("), Kind.RATE))
_BY_NAME = (
    (re.compile(r".*(?:_total|_count)"), Kind.COUNTER),
    (re.compile(r".*(?:rate|per_second|rps|qps)(?:\d+[a-z]+)?", re.IGNORECASE), Kind.RATE),
)


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """One series of samples.

    Attributes
    ----------
    places : ndarray of int, shape (n,)
        At which points in time there is one, ascending.
    values : ndarray, shape (n,)
        Finite.
    """

    places: NDArray[np.int64]
    values: Floats


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the samples of a query are taken for, and why.

    Attributes
    ----------
    window : float
        Length of time that a rate or a count is of [s]; 0 if it is not known.
    """

    kind: Kind
    window: float
    why: str


def meaning(query: str, interval: float, series: Sequence[Samples], told: Kind | None) -> Meaning:
    """Tell what the samples of `query` are.

    Parameters
    ----------
    interval : float
        That is wanted [s]; a count without a window is of one.
    series : sequence of Samples
        All that came.
    told : Kind, optional
        What the user says.

    Raises
    ------
    UsageError
        If they cannot be counted; the text says what to ask for instead.
    """
    bare = _BARE.fullmatch(query)
    name = (bare[1] or "") if bare else ""
    if name.endswith("_bucket"):
        instead = name.removesuffix("_bucket") + "_count"
        raise UsageError(f"--query {query}: counts a request in several buckets; ask for {instead}")
    by_function = next((kind for pattern, kind in _BY_FUNCTION if pattern.search(query)), None)
    by_name = next((kind for pattern, kind in _BY_NAME if pattern.fullmatch(name)), None)
    if told or by_function or by_name:
        kind = told or by_function or by_name or Kind.RATE
        why = "as told" if told else "by its function" if by_function else "by its name"
    elif _falls(series) > FALLS_MAX:
        kind, why = Kind.RATE, "it falls as well as it rises"
    elif bare:
        kind, why = Kind.COUNTER, "it hardly ever falls"
    else:
        raise UsageError(_of_a_sum(query))
    window = 0.0 if kind is Kind.COUNTER else _window(query)
    return Meaning(kind, window or (interval if kind is Kind.COUNT else 0.0), why)


def _of_a_sum(query: str) -> str:
    found = _COUNTER_NAME.search(query)
    counter = found[0] if found else "the counter"
    return (
        f"--query {query}: the sum of counters hides the resets of each; name {counter} alone (its series "
        f"are added up here), or ask for sum(rate({counter}[5m])). If it is a rate, say --kind rate"
    )


def _window(query: str) -> float:
    """Return how far the query looks back [s]; 0 if it does not, or not everywhere alike."""
    found = set(_WINDOW.findall(query))
    try:
        return parse_duration(found.pop()) if len(found) == 1 else 0.0
    except ValueError:
        return 0.0


def _falls(series: Sequence[Samples]) -> float:
    """Return which share of all changes are falls."""
    changes = np.concatenate([np.diff(each.values) for each in series] or [np.empty(0)])
    moved = int((changes != 0).sum())
    return int((changes < 0).sum()) / moved if moved else 0.0
