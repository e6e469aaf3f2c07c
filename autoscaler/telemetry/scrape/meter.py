"""From the samples of one exporter to the value of one signal. Knows no clock: `now` is passed in.

A counter gives its rise per second since the time before, each series on its own, for the sum of two hides
the restart of one. A series that falls began anew at zero. One that is seen for the first time tells nothing
yet: it may be an old one that was only now found.
"""

from math import isfinite, nan

from autoscaler.telemetry.scrape.exposition_text import Families, Family, Series
from autoscaler.telemetry.scrape.reading import SignalReading
from autoscaler.telemetry.scrape.source import AddUp, Kind, SignalSource

FROZEN_AFTER = 300.0
"""A sample whose own time is this far behind is no reading [s]: the exporter repeats what it once knew."""

_Labels = tuple[tuple[str, str], ...]


class SignalMeter:
    """One signal of one exporter, from scrape to scrape."""

    def __init__(self, source: SignalSource) -> None:
        self.source = source
        self.reading = SignalReading()
        self._totals: dict[_Labels, float] = {}
        self._counted_at = nan

    def take(self, families: Families, now: float, wall_time: float) -> None:
        """Take in a scrape made at `now` [s, monotonic] and `wall_time` [s since the epoch]."""
        family = next((families[name] for name in self.source.metrics if name in families), None)
        if family is None:
            self.fail(f"has no metric {' or '.join(self.source.metrics)}")
            return
        series = [each for each in family.series if self._counts(each)]
        if not series:
            self.fail(f"has {self.source.metrics[0]}, but no series with a value that is wanted")
            return
        times = [each.time for each in series if each.time is not None]
        if times and wall_time - max(times) > FROZEN_AFTER:
            self.fail(f"repeats samples that are {wall_time - max(times):.0f} s old")
            return
        self._read(family, series, now)

    def fail(self, fault: str) -> None:
        """Note why a scrape gave nothing; the last value stays, and grows older."""
        last = self.reading
        self.reading = SignalReading(last.value, last.read_at, fault, last.declared)

    def _read(self, family: Family, series: list[Series], now: float) -> None:
        if self.source.kind is Kind.COUNTER:
            value = self._rate(series, now)
        else:
            value = _added_up([each.value for each in series], self.source.add_up)
        if isfinite(value):
            self.reading = SignalReading(value * self.source.unit.scale, now, "", family.declared)

    def _rate(self, series: list[Series], now: float) -> float:
        """Return the rise per second since the time before; not-a-number the first time."""
        elapsed = now - self._counted_at
        totals = {each.labels: each.value for each in series}
        rises = [
            value - before if value >= before else value
            for labels, value in totals.items()
            if (before := self._totals.get(labels)) is not None
        ]
        self._totals, self._counted_at = totals, now
        return _added_up(rises, self.source.add_up) / elapsed if rises and elapsed > 0 else nan

    def _counts(self, series: Series) -> bool:
        labels = dict(series.labels)
        return (
            isfinite(series.value)
            and series.value < self.source.blank_from
            and all(labels.get(name) == value for name, value in self.source.labels.items())
        )


def _added_up(values: list[float], how: AddUp) -> float:
    if how is AddUp.MAX:
        return max(values)
    total = sum(values)
    return total / len(values) if how is AddUp.MEAN else total
