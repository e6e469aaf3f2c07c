"""Who leads, by what a Lease says and when it was seen to say it; values and times in, values out.

The holder of the Lease writes to it every few seconds, and leads for a while after each write. Whoever else
wants to lead takes it over once nobody has written for longer than that. Clocks of different machines are
never compared: the times in the Lease are for people. The holder counts from the moment before it asked for a
write, another one from the moment after it saw that write, both on clocks that never jump; so the first has
ended before the second begins, as long as the deadline is well below the duration, however far apart their
calendars are.

What cannot be known is not led by: a holder whose writes get no answer leads until its deadline, then holds.

Source: the rules of leader election in client-go (tools/leaderelection), and API reference of
coordination.k8s.io/v1 Lease.
"""

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class ElectionTimes:
    """How soon a leader that is gone is replaced, and how long a silent API server is borne."""

    duration: float = 10.0
    """Others take over when nobody has written for so long [s]; whole seconds, as the Lease counts."""
    renew_deadline: float = 7.0
    """Who has not been able to write for so long leads no more [s]."""
    renew_interval: float = 2.0
    """Between two writes, and between two looks of those that do not lead [s]."""

    def __post_init__(self) -> None:
        if not 0 < self.renew_interval < self.renew_deadline < self.duration:
            raise ValueError(
                "need 0 < renew_interval < renew_deadline < duration, "
                f"got {self.renew_interval}, {self.renew_deadline}, {self.duration} s"
            )
        if self.duration != int(self.duration):
            raise ValueError(f"need a duration in whole seconds, got {self.duration}")


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a Lease says."""

    holder: str
    """Who leads; empty if it was given up."""
    duration: float
    """So long after a write others take over, as its holder says [s]."""
    renewed: str
    """When it was written, by the clock of the holder; only looked at for whether it has changed."""
    acquired: str
    """When its holder took it; as above."""
    transitions: int
    """How often it changed hands [1]."""
    version: str
    """Changes may be made to this version of the object only."""


class Election:
    """One candidate's view.

    Parameters
    ----------
    identity : str
        Its own name, unlike any other's, and unlike that of an earlier run of the same program.
    times : ElectionTimes
        Its patience.
    """

    def __init__(self, identity: str, times: ElectionTimes) -> None:
        self.identity, self._times = identity, times
        self._leads_until = -inf
        self._seen: LeaseRecord | None = None
        self._changed_at = -inf

    def leads(self, now: float) -> bool:
        """Whether this candidate leads at `now` [s]."""
        return now < self._leads_until

    @property
    def holder(self) -> str | None:
        """Who holds the Lease, as last seen; None if nobody does."""
        return self._seen.holder or None if self._seen is not None else None

    @property
    def seen(self) -> LeaseRecord | None:
        """The Lease as last seen; None if there is none."""
        return self._seen

    def saw(self, record: LeaseRecord | None, now: float) -> None:
        """Take in what was read by `now` [s]; None if there is no such Lease."""
        if record is None or self._seen is None or _written(record) != _written(self._seen):
            self._changed_at = now
        self._seen = record
        if record is None or record.holder != self.identity:
            self._leads_until = -inf

    def wrote(self, record: LeaseRecord, asked_at: float, now: float) -> None:
        """Take in that a write that was asked for at `asked_at` [s] has come about."""
        self.saw(record, now)
        if record.holder == self.identity:
            self._leads_until = asked_at + self._times.renew_deadline

    def gave_up(self) -> None:
        """Lead no more."""
        self._leads_until = -inf

    def may_write(self, now: float) -> bool:
        """Whether the Lease is this candidate's, or free to be taken over."""
        return now >= self._free_at

    def next_look(self, now: float) -> float:
        """Return when to look, or write, again [s]: soon, and at once when it gets free."""
        due = now + self._times.renew_interval
        return min(due, self._free_at) if self._free_at > now else due

    @property
    def _free_at(self) -> float:
        """When it may be written to [s]."""
        seen = self._seen
        if seen is None or not seen.holder or seen.holder == self.identity:
            return -inf
        return self._changed_at + seen.duration


def _written(record: LeaseRecord) -> tuple[str, str, str, int]:
    """What is another with every write of a holder, and not with others' notes on the object."""
    return record.holder, record.renewed, record.acquired, record.transitions
