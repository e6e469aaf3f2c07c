"""Access logs of Apache and nginx, common or combined format, with the duration at the end.

    %h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i" %D            Apache; %D is µs, %T is s
    … "$http_user_agent" $request_time                                   nginx; s with decimals
    … "$http_user_agent" rt=$request_time uct=…                          nginx, named
    … "$http_user_agent" $request_length $request_time [$proxy_upstream_name] …     ingress-nginx
    … "router" "http://10.0.0.1:80" 250ms                                Traefik

The time in the line is that of the arrival for Apache, and of the end for nginx, which is told by its
decimals. Requests that failed (status 400 and above) count as demand, but say nothing of the service time.
"""

import re

from autoscaler.telemetry.traffic.faults import FaultCount, LineUnusable
from autoscaler.telemetry.traffic.form import Told, Wanted
from autoscaler.telemetry.traffic.gathered import Gathered
from autoscaler.telemetry.traffic.paths import model_asked

_NUMBER = r"(\d+(?:\.\d+)?(?:ns|us|µs|ms|s)?)"
_LINE = re.compile(
    r'(?:[^\["]*\[\d+\])?[^\["]*\[([^\]]{20,40})\] "([^"\\]*(?:\\.[^"\\]*)*)" (\d{3}) (?:\d+|-)(.*)',
    re.DOTALL,
)
_NAMED = re.compile(r'\b(?:rt|request_time|duration|took)=["]?' + _NUMBER)
_INGRESS = re.compile(r'" \d+ (\d+\.\d+) \[')
_BARE = re.compile(_NUMBER)
_QUOTED = re.compile(rf'\s"(?:{_NUMBER}|-)"\s*$')
_FAILED = 400


class AccessLog:
    """Takes the lines of an access log."""

    name = "access log"

    def __init__(self, wanted: Wanted) -> None:
        self._gathered = Gathered(wanted, whole_numbers="us")

    @staticmethod
    def fits(line: str) -> bool:
        """Whether `line` has the form of an access log."""
        return _LINE.match(line) is not None

    def take(self, number: int, line: str) -> None:
        """Take in a line; raises LineUnusable if it has another form."""
        match = _LINE.match(line)
        if match is None:
            raise LineUnusable("not in the common or combined format")
        written, request, status, rest = match.groups()
        self._gathered.add(
            number,
            line,
            self._gathered.clock.read_log(written),
            _duration(rest),
            failed=int(status) >= _FAILED,
            model=model_asked(request),
        )

    def told(self, faults: FaultCount) -> Told:
        """Return the requests in the order of their arrival."""
        self._gathered.ends = self._gathered.durations.told_as_seconds_with_a_point()
        return self._gathered.told(faults)


def _duration(rest: str) -> str | None:
    """Return the duration as it stands in what follows the size; None if there is none."""
    if "[" in rest and (found := _INGRESS.search(rest)):
        return found[1]
    last = rest.rsplit(None, 1)[-1:]
    if last and _BARE.fullmatch(last[0]):
        return last[0]
    found = _NAMED.search(rest) or _QUOTED.search(rest)
    return found[1] if found else None
