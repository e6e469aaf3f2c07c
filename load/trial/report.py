"""From what happened to figures, and to what must not be. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from autoscaler.domain import Decision, Reason
from load.generator import Record
from load.summary import Spread
from load.trial.fleet import Asked
from load.trial.plan import Trial
from load.trial.troubles import TAKEOVER_MAX, Trouble
from load.trial.watch import Look

ROWS = 24
_ONE_MORE = 1
"""What is not known of the load may be worth a replica [1]."""
_WITHOUT_SIGHT = (Reason.METRICS_LOST, Reason.PARTLY_BLIND)


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision of one controller, `time` [s] after the first request."""

    time: float
    decision: Decision


@dataclass(frozen=True, slots=True)
class Row:
    """One stretch of time; counts are the least and the most in it."""

    since: float
    until: float
    offered_load: float
    """At its middle [erlang]."""
    needed: tuple[int, int]
    """By the upper and by the lower edge of the band, at its middle [1]."""
    desired: tuple[int, int]
    ready: tuple[int, int]
    leaders: tuple[str, ...]
    wait: Spread
    troubles: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """What happened; times in seconds from the first request.

    Attributes
    ----------
    asked : sequence of Asked
        Events of the web hook; those before the first request have negative times.
    decided : dict
        Decisions by controller.
    restarts : int
        Of sidecars that died.
    """

    trial: Trial
    records: Sequence[Record]
    looks: Sequence[Look]
    asked: Sequence[Asked]
    troubles: Sequence[Trouble]
    decided: dict[str, list[Decided]]
    restarts: int

    @property
    def lost(self) -> int:
        """Requests without a good answer [1]."""
        return sum(record.failed or not record.finished for record in self.records)

    @property
    def sent_anew(self) -> int:
        """Requests that were sent more than once [1]."""
        return sum(record.tries > 1 for record in self.records)

    @property
    def short(self) -> float:
        """How long fewer were asked for than the load had needed ever since `lag` [s]."""
        lag, least = self.trial.lag, self.trial.least_within
        return self._seconds([x for x in self.looks if x.desired < least(x.time - lag, x.time)])

    @property
    def over(self) -> float:
        """How long more were asked for than the load was worth at any time since a hold and `lag` [s]."""
        back, most = self.trial.lag + self.trial.hold, self.trial.most_within
        return self._seconds([x for x in self.looks if x.desired > most(x.time - back, x.time) + _ONE_MORE])

    @property
    def longest_hold(self) -> float:
        """The longest time for which a controller did not see all of the demand, and held [s]."""
        longest = 0.0
        for decisions in self.decided.values():
            since: float | None = None
            for each in decisions:
                if each.decision.reason not in _WITHOUT_SIGHT:
                    since = None
                    continue
                since = each.time if since is None else since
                longest = max(longest, each.time - since)
        return longest

    @property
    def takeovers(self) -> list[float]:
        """How long each took [s]."""
        return [each.takeover for each in self.troubles if each.takeover is not None]

    def wrongs(self) -> list[str]:
        """Say what must not be."""
        wrongs = [f"{self.lost} requests were lost"] if self.lost else []
        wrongs += [f"nobody led for {each:.1f} s" for each in self.takeovers if each > TAKEOVER_MAX]
        wrongs += [f"two led at {look.time:.0f} s" for look in self.looks if len(look.leaders) > 1]
        pairs = zip(self.asked, self.asked[1:], strict=False)
        changes = [f"{after.by} at {after.time:.0f} s" for before, after in pairs if before.by != after.by]
        if len(changes) > len(self.takeovers):
            told = ", ".join(changes)
            wrongs.append(f"who asked changed {len(changes)} times ({told}), {len(self.takeovers)} took over")
        return wrongs + self._wrong_sizes()

    def rows(self) -> list[Row]:
        """Return the whole time in `ROWS` stretches."""
        length = self.trial.seconds / ROWS
        return [self._row(number * length, (number + 1) * length) for number in range(ROWS)]

    def _wrong_sizes(self) -> list[str]:
        trial, wrongs = self.trial, []
        for name, at in (("at the end of the peak", trial.peak[1]), ("at the end", trial.seconds)):
            desired, least, most = self._desired(at), trial.needed(at - 1), trial.most(at - 1)
            if not least <= desired <= most + _ONE_MORE:
                wrongs.append(f"{name} {desired} replicas were asked for, and {least} to {most} are right")
        since, until = trial.peak[0] + trial.lag, trial.peak[1]
        wrongs += self._lowered("at the peak", since, until)
        for each in self.troubles:
            wrongs += self._lowered(f"in trouble ({each.name})", each.began, each.ended)
        return wrongs

    def _lowered(self, when: str, since: float, until: float) -> list[str]:
        """Say where fewer were asked for between two times [s] than were needed at the first."""
        right = self.trial.needed(since)
        low = [each for each in self.asked if since <= each.time < until and each.desired < right]
        return [f"{when} {x.desired} were asked for, at {x.time:.0f} s; {right} are right" for x in low]

    def _row(self, since: float, until: float) -> Row:
        looks = [look for look in self.looks if since <= look.time < until] or [self.looks[-1]]
        middle = (since + until) / 2
        waits = (record.queue_time for record in self.records if since <= record.intended < until)
        leaders = dict.fromkeys(name for look in looks for name in look.leaders)
        return Row(
            since,
            until,
            self.trial.offered_load(middle),
            (self.trial.needed(middle), self.trial.most(middle)),
            _span([look.desired for look in looks]),
            _span([look.ready for look in looks]),
            tuple(leaders),
            Spread.of(waits),
            tuple(each.name for each in self.troubles if each.began < until and each.ended >= since),
        )

    def _desired(self, at: float) -> int:
        """Return what was asked for at a time [1]."""
        before = [each.desired for each in self.asked if each.time < at]
        return before[-1] if before else self.trial.replicas_min

    def _seconds(self, looks: Sequence[Look]) -> float:
        """Return how long it looked so [s]."""
        return len(looks) * self.trial.seconds / max(1, len(self.looks))


def _span(counts: Sequence[int]) -> tuple[int, int]:
    return min(counts), max(counts)
