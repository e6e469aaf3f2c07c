"""Whether a replica is well enough to be given requests: four inputs, one verdict.

    platform says ready ──▶ WELL ──k failed calls or probes in a row──▶ EJECTED ◀──────────┐
                             ▲                                             │ its time is    │ a call failed:
                             │ a call begun on trial was served            ▼ over           │ twice as long
                             └─────────────────────────────────────────ON_TRIAL─────────────┘

The inputs are the readiness that the platform reports, the results of active probes, and of passive watching
transport failures and failures of the server. What a client does wrong, and a server that is merely busy,
is none of them. A probe that succeeds does not make up for calls that fail: the server's front may answer
while what is behind it is dead.

Whoever is ejected is offered nothing; on trial it is offered one slot. At most half of the ready replicas are
ejected at a time, and so the only one never is: a pool that is ill as a whole still serves whom it can.

Apart from that, after a connection that broke or was refused, a replica is *spared* for a moment, whoever it
is: its process may just be ending, and its platform will know within that moment. Without it, all who wait
would be sent after the one who was lost.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import inf

from autoscaler.dispatch.events import CallEnd


@dataclass(frozen=True, slots=True)
class HealthOptions:
    """When a replica is ejected, and for how long."""

    failures_max: int = 3
    """So many failed calls in a row eject a replica [1]. Lower loses fewer requests to a dead one, and more
    replicas to bad luck."""
    probe_failures_max: int = 3
    """So many failed probes in a row do as well [1]."""
    ejection: float = 10.0
    """How long the first time [s]; each trial that fails doubles it."""
    ejection_max: float = 300.0
    """It never grows beyond this [s]."""
    spare_refused: float = 1.0
    """After a refused connection nothing is sent there for so long, unless the platform speaks first [s]."""
    spare_broken: float = 0.25
    """The same after a connection that broke during a call [s]."""

    def __post_init__(self) -> None:
        for name in ("failures_max", "probe_failures_max"):
            if getattr(self, name) < 1:
                raise ValueError(f"need {name} >= 1, got {getattr(self, name)}")
        for name in ("spare_refused", "spare_broken"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"need {name} >= 0, got {getattr(self, name)}")
        if not 0 < self.ejection <= self.ejection_max:
            raise ValueError(f"need 0 < ejection <= ejection_max, got {self.ejection}, {self.ejection_max}")


class HealthState(StrEnum):
    """What a ready replica may be given, as far as its health goes."""

    WELL = "well"
    """All its slots."""
    EJECTED = "ejected"
    """Nothing."""
    ON_TRIAL = "on_trial"
    """One request at a time, until one is served."""


@dataclass(slots=True)
class _Record:
    state: HealthState = HealthState.WELL
    since: float = -inf
    failures: int = 0
    probe_failures: int = 0
    ejections: int = 0
    trial_at: float = inf
    spared_until: float = -inf


class Health:
    """The health of the ready replicas of one pool."""

    def __init__(self, options: HealthOptions) -> None:
        self._options = options
        self._records: dict[str, _Record] = {}
        self.suspects: set[str] = set()
        """Replicas of which it is news that a call was served."""

    def appear(self, replica_id: str, *, is_news: bool = True) -> None:
        """A replica is ready, says its platform: one not known is well, and one spared is so no longer.

        Where that is no news of its health, for only its slots are others, a known one stays as it is.
        """
        record = self._records.setdefault(replica_id, _Record())
        if is_news:
            record.spared_until = -inf

    def vanish(self, replica_id: str, now: float) -> None:
        """A replica is not ready any more, says its platform; it may not have been known."""
        self.suspects.discard(replica_id)
        if self._records.pop(replica_id, None) is not None:
            self._hold_to_half(now)

    def state(self, replica_id: str) -> HealthState:
        """The verdict on one that is known."""
        return self._records[replica_id].state

    def states(self) -> dict[str, HealthState]:
        """The verdicts on all that are known."""
        return {replica_id: record.state for replica_id, record in self._records.items()}

    def spared(self, replica_id: str, now: float) -> bool:
        """Whether a known one shall get nothing for a moment."""
        return now < self._records[replica_id].spared_until

    def call_ended(self, replica_id: str, end: CallEnd, started_at: float, now: float) -> bool:
        """A call begun at `started_at` [s] ended; return whether that says anything about the replica.

        Of a replica that nobody suspects it is no news that a call was served. And a call begun before the
        last verdict says nothing that went not into it.
        """
        if end is CallEnd.INCONCLUSIVE or (end is CallEnd.SERVED and replica_id not in self.suspects):
            return False
        record = self._records.get(replica_id)
        if record is None:
            return False
        self._spare(record, end, now)
        if started_at < record.since or record.state is HealthState.EJECTED:
            return True
        if end is CallEnd.SERVED:
            self.suspects.discard(replica_id)
            record.failures = 0
            if record.state is HealthState.ON_TRIAL:
                self._turn(record, HealthState.WELL, now)
        else:
            self.suspects.add(replica_id)
            record.failures += 1
            if record.failures >= self._options.failures_max or record.state is HealthState.ON_TRIAL:
                self._eject(record, now)
        return True

    def probed(self, replica_id: str, ok: bool, now: float) -> None:
        """An active probe was answered, or was not."""
        record = self._records.get(replica_id)
        if record is None:
            return
        record.probe_failures = 0 if ok else record.probe_failures + 1
        if record.state is HealthState.EJECTED:
            self.advance(now)
        elif record.probe_failures >= self._options.probe_failures_max:
            self._eject(record, now)

    def advance(self, now: float) -> None:
        """Put on trial whose ejection is over."""
        for replica_id, record in self._records.items():
            if record.trial_at <= now and not record.probe_failures:
                self.suspects.add(replica_id)
                self._turn(record, HealthState.ON_TRIAL, now)

    def next_change(self, now: float) -> float:
        """When a verdict changes, or somebody need not be spared any more, if nothing happens [s]."""
        times = [record.trial_at for record in self._records.values() if not record.probe_failures]
        times += [record.spared_until for record in self._records.values()]
        return min((time for time in times if time > now), default=inf)

    def _spare(self, record: _Record, end: CallEnd, now: float) -> None:
        if end is CallEnd.REFUSED:
            record.spared_until = max(record.spared_until, now + self._options.spare_refused)
        elif end is CallEnd.BROKE:
            record.spared_until = max(record.spared_until, now + self._options.spare_broken)

    def _eject(self, record: _Record, now: float) -> None:
        """Eject it, if no more than half of all are then; else it stays, and its next failure asks again."""
        ejected = sum(each.state is HealthState.EJECTED for each in self._records.values())
        if 2 * (ejected + 1) > len(self._records):
            return
        length = min(self._options.ejection_max, self._options.ejection * 2.0**record.ejections)
        record.ejections += 1
        self._turn(record, HealthState.EJECTED, now)
        record.trial_at = now + length

    def _hold_to_half(self, now: float) -> None:
        """Put those on trial that were ejected longest ago, where more than half are now."""
        ejected = [pair for pair in self._records.items() if pair[1].state is HealthState.EJECTED]
        ejected.sort(key=lambda pair: pair[1].since)
        for replica_id, record in ejected[: max(0, len(ejected) - len(self._records) // 2)]:
            self.suspects.add(replica_id)
            self._turn(record, HealthState.ON_TRIAL, now)

    def _turn(self, record: _Record, state: HealthState, now: float) -> None:
        """Give a verdict; what was seen before it is forgotten, for it went into it."""
        record.state, record.since, record.trial_at = state, now, inf
        record.failures = 0
        if state is HealthState.WELL:
            record.ejections = 0
