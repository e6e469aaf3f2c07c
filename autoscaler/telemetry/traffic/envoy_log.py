"""Access logs of Envoy and Istio in the formats that they write unless told otherwise.

    [%START_TIME%] "METHOD PATH PROTOCOL" CODE FLAGS RECEIVED SENT DURATION UPSTREAM_TIME "…" …        Envoy
    [%START_TIME%] "…" CODE FLAGS CODE_DETAILS TERMINATION "FAILURE" RECEIVED SENT DURATION …          Istio

START_TIME is when the request began. DURATION [ms] runs from there to the last byte of the answer, so it
holds the time that the request waited in Envoy. The code is 0 if the client left before the answer began.
"""

import re

from autoscaler.telemetry.traffic.faults import FaultCount, LineUnusable
from autoscaler.telemetry.traffic.form import Told, Wanted
from autoscaler.telemetry.traffic.gathered import Gathered
from autoscaler.telemetry.traffic.paths import model_asked

_LINE = re.compile(
    r'[^\["]*\[(\d{4}-\d\d-\d\dT[^\]]{8,30})\] "([^"\\]*(?:\\.[^"\\]*)*)" (\d+|-) \S+ '
    r'(?:\S+ \S+ "[^"]*" )?(?:\d+|-) (?:\d+|-) (\d+|-) '
)
_FAILED = 400


class EnvoyLog:
    """Takes the lines of a log of Envoy."""

    name = "Envoy access log"

    def __init__(self, wanted: Wanted) -> None:
        self._gathered = Gathered(wanted)

    @staticmethod
    def fits(line: str) -> bool:
        """Whether `line` has the form of Envoy's log."""
        return _LINE.match(line) is not None

    def take(self, number: int, line: str) -> None:
        """Take in a line; raises LineUnusable if it has another form."""
        match = _LINE.match(line)
        if match is None:
            raise LineUnusable("not in the default format of Envoy or Istio")
        begun, request, code, duration = match.groups()
        answered = code not in ("0", "-")
        self._gathered.add(
            number,
            line,
            self._gathered.clock.read(begun),
            duration,
            unit="ms",
            failed=not answered or int(code) >= _FAILED,
            model=model_asked(request),
        )

    def told(self, faults: FaultCount) -> Told:
        """Return the requests in the order of their arrival."""
        return self._gathered.told(faults)
