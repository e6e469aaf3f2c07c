"""The orders of one pool that have not been met, and which of them are late.

Nobody says which replica answers which order, so the oldest order is taken to be met by the next replica that
gets ready, and the newest to be called off when fewer are asked for.

An order is late once it has not come within its patience, a multiple of what starts take here; or as soon as
the platform says so (a pod for which no node is found); or if the platform does not even show it after a
while: then it was refused. A late one is not counted on, and may come all the same.
"""

from collections import deque
from dataclasses import dataclass
from math import nan

from autoscaler.domain import Fleet

_PATIENCE_STARTS = 3.0
"""An order is late after so many times the longest start that was seen lately, or is told [1]."""
_PATIENCE_MIN, _PATIENCE_UNKNOWN = 60.0, 1800.0
"""But not before so long [s]; and while fewer than a few starts have been seen, not before so long [s]: the
first start of a large model takes long, and who calls it off has to begin anew."""
_STARTS_KNOWN, _STARTS_KEPT = 3, 50
_SHOWN_WITHIN = 30.0
"""An order that the platform does not show after so long was refused [s]."""


@dataclass(frozen=True, slots=True)
class OrdersNow:
    """The orders at one step [1]."""

    open: int
    late: int
    """Of the open ones."""
    refused: int
    """Of the late ones, those that the platform does not show."""
    came: int
    """Met since the last step."""
    credited: int
    """Starting replicas that may still come in time."""
    patience: float
    """After so long an order is late [s]."""


class OpenOrders:
    """Follows what is asked for and what gets ready; `update` takes in one step."""

    def __init__(self) -> None:
        self._placed: deque[float] = deque()  # [s], the oldest first
        self._delays: deque[float] = deque(maxlen=_STARTS_KEPT)
        self._ready = 0
        self._stepped_at: float | None = None

    @property
    def delay(self) -> float:
        """From an order to its replica, the longest of the last that came in time [s]; NaN before any."""
        return max(self._delays, default=nan)

    def update(self, fleet: Fleet, now: float) -> OrdersNow:
        """Take in what there is at `now` [s]."""
        asked = fleet.ready if fleet.asked is None else fleet.asked
        came = min(max(0, fleet.ready - self._ready), len(self._placed))
        patience = self._patience(fleet)
        for _ in range(came):
            delay = now - self._placed.popleft()
            if delay < patience:  # one that came later has waited for supply; that is no start
                self._delays.append(delay)
        lacking = max(0, asked - fleet.ready)
        while len(self._placed) > lacking:
            self._placed.pop()
        # What is asked for now was asked for at the step before.
        placed_at = now if self._stepped_at is None else self._stepped_at
        self._placed.extend([placed_at] * (lacking - len(self._placed)))
        self._ready, self._stepped_at = fleet.ready, now
        return self._counted(fleet, came, patience, now)

    def _counted(self, fleet: Fleet, came: int, patience: float, now: float) -> OrdersNow:
        shown = fleet.starting + fleet.overdue
        late = aged = refused = 0
        for place, placed_at in enumerate(self._placed):
            is_old, is_hidden = now - placed_at >= patience, place >= shown
            is_refused = is_hidden and now - placed_at >= _SHOWN_WITHIN
            late += is_old or is_refused or place < fleet.overdue
            aged += is_old and not is_hidden
            refused += is_refused
        credited = fleet.starting - max(0, aged - fleet.overdue)
        return OrdersNow(len(self._placed), late, refused, came, credited, patience)

    def _patience(self, fleet: Fleet) -> float:
        start = max([fleet.cold_start_p90, *self._delays])
        least = _PATIENCE_MIN if len(self._delays) >= _STARTS_KNOWN else _PATIENCE_UNKNOWN
        return max(_PATIENCE_STARTS * start, least)
