"""Single requests, told one at a time and in any order, until all are known.

Only then can be said in which order they arrived, what unit their durations are in, which times are far off,
and which lines are copies.
"""

import time
from array import array
from math import isnan, nan

import numpy as np
from numpy.typing import NDArray

from autoscaler.errors import UsageError
from autoscaler.telemetry.traffic import models
from autoscaler.telemetry.traffic.clock import Clock, calendar_start, in_words
from autoscaler.telemetry.traffic.copies import copies
from autoscaler.telemetry.traffic.demand import Floats, Requests
from autoscaler.telemetry.traffic.durations import Durations
from autoscaler.telemetry.traffic.faults import FaultCount
from autoscaler.telemetry.traffic.form import Told, Wanted
from autoscaler.units import format_duration

_FAR = 10 * 365 * 86_400.0
"""A time further than this from the middle one [s] is none of the same log: unset clocks say 1970 or 2262."""
_AHEAD = 86_400.0
"""By so much clocks of machines may differ [s]."""
_SILENCE = 60.0
"""A shorter time without a request [s] is none."""
_EXPECTED = 100
"""Where so many arrived just before and just after as long a time, a silence is worth a word."""
NO_LINE = "has no line that can be used"


class Gathered:
    """Requests, as they are told. `whole_numbers` is the unit of whole durations, see `Durations`."""

    def __init__(self, wanted: Wanted, whole_numbers: str | None = None) -> None:
        self.clock = Clock(wanted.zone)
        self.ends = False
        """Whether times are those of the end of a request."""
        self._only = wanted.only_model
        self.durations = Durations(wanted.duration_unit, whole_numbers)
        self._times, self._tokens_in, self._tokens_out = array("d"), array("d"), array("d")
        self._numbers, self._marks = array("q"), array("q")
        self._models: dict[str, int] = {}
        self._failed = self._others = 0

    def add(
        self,
        number: int,
        line: str,
        time: float,
        duration: str | float | None,
        *,
        unit: str | None = None,
        failed: bool = False,
        model: str = "",
        tokens_in: float = nan,
        tokens_out: float = nan,
    ) -> None:
        """Take in the request of line `number`.

        `unit` is that of `duration`, if it is known. Raises LineUnusable if the duration is none.
        """
        if self._only is not None and model != self._only:
            self._others += 1
        else:
            # How long a refusal took says nothing of the service.
            self.durations.add(None if failed else duration, unit)
            self._times.append(time)
            self._add_tokens(tokens_in, tokens_out)
            self._numbers.append(number)
            self._marks.append(hash(line))
            self._failed += failed
        if model:
            self._models[model] = self._models.get(model, 0) + 1

    def _add_tokens(self, tokens_in: float, tokens_out: float) -> None:
        """Keep tokens of the newest request; most logs tell none, and then no memory is taken for them."""
        for kept, told in ((self._tokens_in, tokens_in), (self._tokens_out, tokens_out)):
            if kept or not isnan(told):
                kept.extend([nan] * (len(self._times) - 1 - len(kept)))
                kept.append(told)

    def told(self, faults: FaultCount) -> Told:
        """Return the requests in the order of their arrival; raises UsageError if there is none."""
        named = models.by_number(self._models)
        if not self._times:
            raise UsageError(self._nothing(named))
        written, durations = np.array(self._times), self.durations.seconds()
        times = written - np.nan_to_num(durations) if self.ends else written
        kept = self._kept(written, faults)
        order = kept[np.argsort(times[kept], kind="stable")]
        start = calendar_start(times[order[:1]].tolist())
        offset = 0.0 if np.isnan(start) else self.clock.offset_at(start)
        requests = Requests(
            times[order] - times[order[0]],
            durations[order],
            _or_untold(self._tokens_in, order),
            _or_untold(self._tokens_out, order),
            start,
            offset,
        )
        return Told(requests, self._notes(requests, named), self.clock.name(start), named)

    def _nothing(self, named: dict[str, int]) -> str:
        if not self._others:
            return NO_LINE
        there = f"there is {models.in_words(named)}" if named else "it names no model"
        return f"has no request of the model {self._only}; {there}"

    def _kept(self, times: Floats, faults: FaultCount) -> NDArray[np.int64]:
        """Return the places of requests that are to be believed, and note the others as faults."""
        middle = np.sort(times)[len(times) // 2]  # one of them, so that one is left
        far = np.abs(times - middle) > _FAR
        for place in np.flatnonzero(far).tolist():
            faults.add("the time is years from the others", self._numbers[place], in_words(times[place]))
        kept = np.flatnonzero(~far)
        copied, of = copies(np.array(self._marks)[kept], times[kept])
        for copy, first in zip(kept[copied].tolist(), kept[of].tolist(), strict=True):
            faults.add("a copy of an earlier line", self._numbers[copy], f"as line {self._numbers[first]}")
        return np.delete(kept, copied)

    def _notes(self, requests: Requests, named: dict[str, int]) -> tuple[str, ...]:
        notes = [*self.durations.notes, *self.clock.notes()]
        if self.ends:
            notes.append("times are taken as those of the end of a request, as nginx writes them")
        if self._failed:
            notes.append(
                f"{self._failed:,} failed requests (status 400 and above) count as demand, "
                "and are left out of the service time"
            )
        if self._others:
            notes.append(f"{self._others:,} requests of other models, or of none, are left out")
        elif len(named) > 1:
            notes.append(f"{len(named)} models are taken together: {models.in_words(named)}")
        last = requests.start + float(requests.arrivals[-1])
        if last > time.time() + _AHEAD:
            notes.append(f"the last request is of {in_words(last)}, yet to come: is its clock right?")
        return (*notes, *_silences(requests))


def _or_untold(kept: "array[float]", order: NDArray[np.int64]) -> Floats:
    return np.array(kept)[order] if kept else np.full(len(order), nan)


def _silences(requests: Requests) -> tuple[str, ...]:
    """Name the longest time without a request in which many were to be expected."""
    arrivals = requests.arrivals
    gaps = np.diff(arrivals)
    places = np.flatnonzero(gaps >= _SILENCE)
    before = places + 1 - np.searchsorted(arrivals, arrivals[places] - gaps[places])
    after = np.searchsorted(arrivals, arrivals[places + 1] + gaps[places], side="right") - places - 1
    silent = places[np.minimum(before, after) >= _EXPECTED]
    if not len(silent):
        return ()
    longest = int(silent[np.argmax(gaps[silent])])
    begins = float(arrivals[longest])
    when = f"{format_duration(round(begins))} after the first"
    if not np.isnan(requests.start):
        when = f"from {in_words(requests.start + begins)} on"
    times = f"{len(silent)} such silence{'s' * (len(silent) > 1)}"
    return (
        f"no request came for {format_duration(round(float(gaps[longest])))} {when}, though many did as long "
        f"before and after ({times}): if the file has a hole there, it counts as zero",
    )
