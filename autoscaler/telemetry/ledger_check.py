"""Does a server hold as many requests as it was sent from here? Its own count beside our ledger of slots.

The two are never equal at every moment: a request is on the wire, an answer is being read. A difference that
lasts is another matter. A server that always holds more works for somebody else too, so its slots are fewer
than they are taken to be; one that always holds less has calls of ours that it does not know of.

Pure: knows no clock; `now` is monotonic [s].
"""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum

LASTING = 180.0
"""A difference must be there at every look for so long [s]."""
SAMPLES_MIN = 12
"""And at so many looks [1]; one each 10 s is missed now and then."""
SHARE_MIN = 0.2
"""Calls are on their way to a server, or their answers from it: so much of ours it need not know of [1]."""
_GAP_MAX = 60.0
"""After a longer silence what was seen before tells nothing of now [s]."""


class LedgerDiagnosis(StrEnum):
    """How a server's count differs from ours."""

    FOREIGN_LOAD = "foreign_load"
    """It holds requests that we have no slot for."""
    CALLS_MISSING = "calls_missing"
    """It does not hold requests that we have slots for."""


@dataclass(frozen=True, slots=True)
class LedgerFinding:
    """A difference that lasts."""

    replica: str
    """Base URL of the server."""
    diagnosis: LedgerDiagnosis
    requests: int
    """By how much, at least [requests]."""
    text: str
    """What was seen, and what it may come from."""


@dataclass(frozen=True, slots=True)
class _Sample:
    at: float
    more: float
    """Requests that it holds beyond our slots [1]."""
    less: float
    """Slots of ours beyond the requests that it holds [1]."""
    leases: int


class LedgerCheck:
    """Compares one server, look by look.

    Parameters
    ----------
    replica : str
        Its base URL.
    """

    def __init__(self, replica: str) -> None:
        self._replica = replica
        self._samples: deque[_Sample] = deque()
        self.finding: LedgerFinding | None = None

    def take(self, held: float, leases: tuple[int, int], now: float) -> LedgerFinding | None:
        """Compare once more; return what is found now.

        Parameters
        ----------
        held : float
            Requests that it says it holds, running and waiting.
        leases : tuple of int
            Slots in use here, before and after it was asked: in between it was as many, or any number.
        now : float
            The time [s].
        """
        samples = self._samples
        if samples and now - samples[-1].at > _GAP_MAX:
            samples.clear()
        samples.append(_Sample(now, held - max(leases), min(leases) - held, min(leases)))
        while samples[-1].at - samples[0].at > LASTING:
            samples.popleft()
        self.finding = self._found()
        return self.finding

    def _found(self) -> LedgerFinding | None:
        samples = self._samples
        if len(samples) < SAMPLES_MIN or samples[-1].at - samples[0].at < 0.9 * LASTING:
            return None
        more = min(sample.more for sample in samples)
        less = min(sample.less for sample in samples)
        if more >= 1:
            text = (
                f"holds {more:.0f} or more requests that did not come through here: somebody else sends "
                "to it, or it goes on with calls whose client has left"
            )
            return LedgerFinding(self._replica, LedgerDiagnosis.FOREIGN_LOAD, int(more), text)
        if less >= 1 and all(sample.less >= SHARE_MIN * sample.leases for sample in samples):
            text = (
                f"does not hold {less:.0f} or more of the requests that have slots here: calls hang on "
                "their way, or finished answers wait for clients that read slowly"
            )
            return LedgerFinding(self._replica, LedgerDiagnosis.CALLS_MISSING, int(less), text)
        return None
