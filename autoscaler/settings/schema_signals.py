"""The keys of the configuration file that say which metrics of other programs are read."""

from typing import Annotated

from pydantic import Field

from autoscaler.settings.section import Section, default
from autoscaler.settings.values import Choice, OrNone, Text, Url, UrlPath
from autoscaler.telemetry.scrape.presets import PRESETS
from autoscaler.telemetry.scrape.source import AddUp, Follows, Kind, SignalSource, Unit
from autoscaler.telemetry.signal_watch import SignalOptions

_OF_METRICS = frozenset({"type", "unit", "add_up", "follows", "labels"})
"""Keys that describe a metric of the user's own."""


def _word(kind: type[Kind] | type[Unit] | type[AddUp] | type[Follows]) -> Choice:
    return Choice(tuple(each.value for each in kind))


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

    def options(self, name: str) -> SignalOptions:
        """Return the options of the exporters that the file calls `name`."""
        return SignalOptions(name, self._sources(), self.urls, self.path)

    def check(self) -> None:
        """Raise ValueError if the options do not go together."""
        self._sources()

    def _sources(self) -> tuple[SignalSource, ...]:
        if (self.preset is None) == (self.metric is None):
            raise ValueError("give either preset, or metric: the name of one at the exporter")
        if self.metric is not None:
            described = Kind(self.type), Unit(self.unit), AddUp(self.add_up), Follows(self.follows)
            return (SignalSource(self.metric, (self.metric,), *described, self.labels),)
        if given := sorted(_OF_METRICS & self.model_fields_set):
            raise ValueError(f"a preset knows its metrics; remove {', '.join(given)}")
        return PRESETS[self.preset or ""]
