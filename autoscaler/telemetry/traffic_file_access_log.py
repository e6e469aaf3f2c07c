"""Access logs of Apache and nginx, common or combined format, with the duration at the end.

    %h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i" %D            Apache; %D is µs, %T is s
    … "$http_user_agent" $request_time                                   nginx; s with decimals
    … "$http_user_agent" rt=$request_time uct=…                          nginx, named

The time in the line is that of the arrival for Apache, and of the end for nginx, which is told by its
decimals. Requests that failed (status 400 and above) count as demand, but say nothing of the service time.
"""

import re
from array import array

import numpy as np

from autoscaler.errors import UsageError
from autoscaler.telemetry.traffic import Requests
from autoscaler.telemetry.traffic_file_durations import Durations, LineUnusable, calendar_start, clf_time

_LINE = re.compile(r'[^\["]*\[([^\]]{20,40})\] "((?:[^"\\]|\\.)*)" (\d{3}) (?:\d+|-)(.*)', re.DOTALL)
_NAMED = re.compile(r'\b(?:rt|request_time|duration|took)=["]?([\d.]+(?:ns|us|µs|ms|s)?)')
_BARE = re.compile(r"[\d.]+(?:ns|us|µs|ms|s)?")
_QUOTED = re.compile(r'\s"([\d.]+(?:ns|us|µs|ms|s)?|-)"\s*$')
_FAILED = 400


class AccessLog:
    """Takes the lines of an access log."""

    name = "access log"

    def __init__(self, duration_unit: str | None) -> None:
        self._times = array("d")
        self._durations = Durations(duration_unit, whole_numbers="us")
        self._failed = 0
        self._utc_offset = 0.0

    @staticmethod
    def fits(line: str) -> bool:
        """Whether `line` has the form of an access log."""
        return _LINE.match(line) is not None

    def take(self, line: str) -> None:
        """Take in a line; raises LineUnusable if it has another form."""
        match = _LINE.match(line)
        if match is None:
            raise LineUnusable("not in the common or combined format")
        time, self._utc_offset = clf_time(match[1])
        failed = int(match[3]) >= _FAILED
        self._durations.add(None if failed else _duration(match[4]))
        self._times.append(time)
        self._failed += failed

    def demand(self) -> tuple[Requests, tuple[str, ...]]:
        """Return the requests in the order of their arrival."""
        if not self._times:
            raise UsageError("has no line that can be used")
        durations, times = self._durations.seconds(), np.array(self._times)
        notes = list(self._durations.notes)
        if self._durations.told_as_seconds_with_a_point():
            times = times - np.nan_to_num(durations)
            notes.append("times are taken as those of the end of a request, as nginx writes them")
        if self._failed:
            notes.append(
                f"{self._failed:,} failed requests (status 400 and above) count as demand, "
                "and are left out of the service time"
            )
        order = np.argsort(times, kind="stable")
        untold = np.full(len(times), np.nan)
        requests = Requests(
            times[order] - times[order[0]],
            durations[order],
            untold,
            untold,
            calendar_start(times[order[:1]].tolist()),
            self._utc_offset,
        )
        return requests, tuple(notes)


def _duration(rest: str) -> str | None:
    """Return the duration as it stands in what follows the size; None if there is none."""
    words = rest.split()
    if words and _BARE.fullmatch(words[-1]):
        return words[-1]
    named = _NAMED.search(rest) or _QUOTED.search(rest)
    return named[1] if named else None
