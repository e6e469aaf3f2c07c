"""Logs of HAProxy: `option httplog`, `httpslog`, and `option httplog clf`.

    … 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 TR/Tw/Tc/Tr/Ta 200 … "GET / …"
    10.0.1.2 - - [06/Feb/2009:12:14:14 +0000] "GET / …" 200 2750 "" "" port ms "in" "be" "s" TR Tw Tc Tr Ta …

All timers are [ms]; -1 is one that was never reached. The time in brackets is that of the first byte of the
request, by the local clock and without a zone. TR is until the request was there, Tw the wait in HAProxy's
queues, and Ta all of it until the last byte of the answer (before version 1.7: Tq and Tt, from the start of
the connection). So the request arrived at the time plus TR, and its service took Ta − TR − Tw: here alone,
the wait in the queue is known and left out. `+` before Ta (`option logasap`) says that the answer went on
after the line was written, so its length is not known.
"""

import re

from autoscaler.telemetry.traffic.faults import FaultCount, LineUnusable
from autoscaler.telemetry.traffic.form import Told, Wanted
from autoscaler.telemetry.traffic.gathered import Gathered
from autoscaler.telemetry.traffic.paths import model_asked

_HTTP = re.compile(
    r"[^\[]*(?:\[\d+\][^\[]*)?\[(\d\d/\w{3}/\d{4}:[\d:.]+)\] \S+ \S+/\S+ "
    r"(-?\d+)/(-?\d+)/-?\d+/-?\d+/(\+?-?\d+) (-?\d{1,3}) [^\"]*\"?([^\"]*)",
)
_CLF = re.compile(
    r'(?:[^\["]*\[\d+\])?[^\["]*\[([^\]]{20,40})\] "([^"\\]*(?:\\.[^"\\]*)*)" "?(\d+)"? \S+ '
    r'"" "" \S+ (\S+) \S+ \S+ \S+ '
    r'"?(-?\d+)"? "?(-?\d+)"? "?-?\d+"? "?-?\d+"? "?(\+?-?\d+)"? '
)
_FAILED = 400


class HaproxyLog:
    """Takes the lines of a log of HAProxy."""

    name = "HAProxy log"

    def __init__(self, wanted: Wanted) -> None:
        self._gathered = Gathered(wanted)

    @staticmethod
    def fits(line: str) -> bool:
        """Whether `line` has the form of HAProxy's log."""
        return _HTTP.match(line) is not None or _CLF.match(line) is not None

    def take(self, number: int, line: str) -> None:
        """Take in a line; raises LineUnusable if it has another form."""
        clock = self._gathered.clock
        if match := _HTTP.match(line):
            written, received, waited, whole, status, request = match.groups()
            time = clock.read_log(written)
        elif match := _CLF.match(line):
            written, request, status, part, received, waited, whole = match.groups()
            part = part.strip('"')
            time = clock.read_log(written) + (int(part) / 1000 if part.isdecimal() else 0.0)
        else:
            raise LineUnusable("not in HAProxy's format for HTTP")
        until_there = max(0, int(received))
        code = int(status)
        self._gathered.add(
            number,
            line,
            time + until_there / 1000,
            _service(whole, until_there, int(waited)),
            unit="ms",
            failed=code <= 0 or code >= _FAILED,
            model=model_asked(request),
        )

    def told(self, faults: FaultCount) -> Told:
        """Return the requests in the order of their arrival."""
        return self._gathered.told(faults)


def _service(whole: str, received: int, waited: int) -> float | None:
    """Return what is left of the whole time [ms] without receiving and waiting; None if it is not known."""
    if whole[0] in "+-":
        return None
    return float(max(0, int(whole) - received - max(0, waited)))
