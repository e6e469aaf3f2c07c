"""The text of an exporter, read by prometheus_client: Prometheus' own format, or OpenMetrics.

An exporter may write megabytes of which a few lines are wanted, and the parser takes microseconds for each.
So the families that nobody asked for are dropped before it sees them. A family is kept whole, for a histogram
without all its buckets is no OpenMetrics; and so is the mark of the end, by which a text that was cut short
is found out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

_OPENMETRICS = "application/openmetrics-text"
ACCEPT = f"text/plain;version=0.0.4,{_OPENMETRICS};version=1.0.0;q=0.5"
"""What is asked for; the plain format first, for its readers are the more lenient."""
SERIES_MAX = 10_000
"""More series of the wanted metrics are not read [1]."""
_SUFFIXES = ("_total", "_sum", "_count", "_bucket", "_created")


@dataclass(frozen=True, slots=True)
class Series:
    """One sample."""

    labels: tuple[tuple[str, str], ...]
    value: float
    time: float | None
    """When it was measured, if the exporter says so [s since the epoch]."""


@dataclass(frozen=True, slots=True)
class Family:
    """All samples of one metric."""

    declared: str
    """The type that the exporter gives it: `gauge`, `counter`, `unknown`, …"""
    series: tuple[Series, ...]


Families = Mapping[str, Family]
"""Metrics by the names of their samples."""


def read_exposition(text: str, content_type: str, wanted: Iterable[str]) -> dict[str, Family]:
    """Return the wanted metrics by name; one that is not there is absent.

    Parameters
    ----------
    wanted : iterable of str
        Names of samples: `vllm:prompt_tokens_total`, `tgi_request_generated_tokens_sum`.

    Raises
    ------
    ValueError
        If it is no such text, or has more than `SERIES_MAX` wanted series.
    """
    names = frozenset(wanted)
    is_openmetrics = content_type.strip().lower().startswith(_OPENMETRICS)
    kept = "\n".join(_kept(text, names)) + "\n"
    found: dict[str, list[Series]] = {}
    declared: dict[str, str] = {}
    for number, (name, family, sample) in enumerate(_samples(kept, names, is_openmetrics)):
        if number == SERIES_MAX:
            raise ValueError(f"more than {SERIES_MAX} series; narrow the metrics by labels at the exporter")
        found.setdefault(name, []).append(
            Series(
                tuple(sorted(sample.labels.items())),
                float(sample.value),
                None if sample.timestamp is None else float(sample.timestamp),
            )
        )
        declared[name] = _type_of(name, family)
    return {name: Family(declared[name], tuple(series)) for name, series in found.items()}


def _samples(text: str, names: frozenset[str], is_openmetrics: bool) -> Iterator[tuple[str, Metric, Sample]]:
    """Yield each wanted sample with its family, by the name it was wanted under.

    The parser gives every counter the ending that OpenMetrics demands, also one that was written without.
    """
    parse = openmetrics.text_string_to_metric_families if is_openmetrics else text_string_to_metric_families
    for family in parse(text):
        for sample in family.samples:
            bare = sample.name.removesuffix("_total") if family.type == "counter" else sample.name
            if sample.name in names or bare in names:
                yield sample.name if sample.name in names else bare, family, sample


def _kept(text: str, names: frozenset[str]) -> Iterator[str]:
    """Yield the lines of the families that hold what is wanted, and the mark of the end."""
    families = names | {name.removesuffix(suffix) for name in names for suffix in _SUFFIXES}
    spellings = families | {family + suffix for family in families for suffix in _SUFFIXES}
    for line in text.splitlines():
        if line.startswith("#"):
            words = line.split(None, 3)
            if line.rstrip() == "# EOF" or (len(words) > 2 and words[2] in families):
                yield line
        elif line.partition("{")[0].partition(" ")[0].strip() in spellings or line.startswith('{"'):
            yield line


def _type_of(sample: str, family: Metric) -> str:
    """Return how a sample moves, as declared: what a histogram or a summary counts are counters."""
    if family.type in ("histogram", "summary") and sample != family.name:
        return "counter"
    return str(family.type)
