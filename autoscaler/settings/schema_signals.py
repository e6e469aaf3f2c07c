"""The keys of the configuration file that say which metrics of other programs are read."""

from typing import Annotated

from pydantic import Field

from autoscaler.settings.rules import each_once, not_both
from autoscaler.settings.section import Section, default
from autoscaler.settings.values import Choice, OrNone, Text, Url, UrlPath
from autoscaler.settings.written import Rule, Written
from autoscaler.telemetry.scrape.presets import PRESETS
from autoscaler.telemetry.scrape.source import AddUp, Follows, Kind, SignalSource, Unit
from autoscaler.telemetry.signal_watch import SignalOptions

_OF_METRICS = ("type", "unit", "add_up", "follows", "labels")
"""Keys that describe a metric of the user's own."""


def _word(kind: type[Kind] | type[Unit] | type[AddUp] | type[Follows]) -> Choice:
    return Choice(tuple(each.value for each in kind))


def _names_something(signals: Written) -> None:
    if signals["preset"] is None and signals["metric"] is None:
        signals.note((), "names no metric", "", "give preset, or metric: the name of one at the exporter")


def _totals_are_no_share(signals: Written) -> None:
    if signals["type"] == Kind.COUNTER and Unit(signals["unit"]).is_share:
        fault = f"got {signals['unit']}, and a counter cannot count in it"
        signals.note("unit", fault, "", "write type: gauge, or another unit")


def _of_metrics(key: str) -> Rule:
    def rule(signals: Written) -> None:
        if signals.has(key) and signals["preset"] is not None and signals["metric"] is None:
            remedy = "remove it; a preset knows its metrics"
            signals.note(key, f"got it beside preset {signals['preset']}", "", remedy)

    return rule


class SignalsSection(Section):
    """Signals of one kind of exporter: `SignalOptions`, `SignalSource`."""

    preset: Annotated[str | None, OrNone(Choice(tuple(PRESETS)))] = None
    metric: Annotated[str | None, OrNone(Text())] = None
    type: Annotated[str, _word(Kind)] = default(SignalSource, "kind").value
    unit: Annotated[str, _word(Unit)] = default(SignalSource, "unit").value
    add_up: Annotated[str, _word(AddUp)] = default(SignalSource, "add_up").value
    follows: Annotated[str, _word(Follows)] = default(SignalSource, "follows").value
    labels: dict[str, Annotated[str, Text(least=0)]] = Field(default_factory=dict)
    urls: tuple[Annotated[str, Url()], ...] = default(SignalOptions, "urls")
    path: Annotated[str, UrlPath()] = default(SignalOptions, "path")

    RULES = (
        _names_something,
        not_both("preset", "metric", "give one of them, and the other a name of its own under signals"),
        _totals_are_no_share,
        *map(_of_metrics, _OF_METRICS),
        each_once("urls", "remove it"),
    )

    def options(self, name: str) -> SignalOptions:
        """Return the options of the exporters that the file calls `name`."""
        return SignalOptions(name, self._sources(), self.urls, self.path)

    def _sources(self) -> tuple[SignalSource, ...]:
        if self.metric is not None:
            described = Kind(self.type), Unit(self.unit), AddUp(self.add_up), Follows(self.follows)
            return (SignalSource(self.metric, (self.metric,), *described, self.labels),)
        return PRESETS[self.preset or ""]
