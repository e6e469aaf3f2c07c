"""What was replayed, as far as people must know it to believe the figures."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from autoscaler.queueing.batch_line import BatchLine
from autoscaler.queueing.continuous_batching import StepLine
from autoscaler.replay.output.standing import Outcome
from autoscaler.replay.output.words import count, rate, span, wait
from autoscaler.replay.scenario import Scenario

Times = list[datetime] | list[float]


@dataclass(frozen=True, slots=True)
class Told:
    """Where the demand comes from, and what was assumed.

    Attributes
    ----------
    name : str
        Of the file.
    form : str
        What it was taken for.
    notes : tuple of str
        What was assumed, left out or found out, each a sentence.
    zone : str
        By which clock times are shown; empty if they are relative.
    """

    name: str
    form: str
    notes: tuple[str, ...] = ()
    zone: str = ""

    @property
    def clock(self) -> tzinfo:
        """The clock of `zone`: a name (`Europe/Berlin`), or an offset (`UTC-04:00`); UTC if there is none."""
        offset = re.fullmatch(r"UTC([+-])(\d\d):(\d\d)", self.zone)
        if offset:
            minutes = 60 * int(offset[2]) + int(offset[3])
            return timezone(timedelta(minutes=minutes if offset[1] == "+" else -minutes))
        return ZoneInfo(self.zone) if self.zone else UTC

    def times(self, outcome: Outcome) -> Times:
        """Return when each window begins: by the clock, else in hours since the replay began."""
        starts = outcome.standings[0].played[0].windows.start.tolist()
        if not self.zone:
            return [start / 3600 for start in starts]
        begin = outcome.stage.start_wall_time
        return [datetime.fromtimestamp(begin + start, self.clock).replace(tzinfo=None) for start in starts]


def circumstances(outcome: Outcome, told: Told) -> list[str]:
    """Return demand and circumstances in sentences, and what was assumed."""
    scenario = outcome.stage.scenario
    requests = outcome.standings[0].played[0].report.requests
    known = len(scenario.history) * scenario.history_interval
    past = span(known) if known else "nothing"
    lines = [
        f"{count(requests, 'request')} in {span(scenario.duration)}, {rate(requests / scenario.duration)} on "
        f"average; {past} was known before.",
        f"{_service(scenario)} A replica starts in {wait(scenario.start_time_mean)} and takes "
        f"{count(outcome.stage.gpus_per_replica, 'GPU')}.",
    ]
    if scenario.supply_max is not None:
        lines.append(f"No more than {count(scenario.supply_max, 'replica')} could be had.")
    if scenario.interruption_rate:
        lost = outcome.standings[0].mean("interruptions")
        often = f"{3600 * scenario.interruption_rate:.2g} times an hour"
        lines.append(f"Each replica was lost {often}: {lost:,.0f} of {outcome.standings[0].name}.")
    return [*lines, *told.notes]


def _service(scenario: Scenario) -> str:
    slots = scenario.slots_per_replica
    match scenario.batching:
        case None:
            return (
                f"A request takes {wait(scenario.service_time_mean)} in a slot "
                f"(SCV {scenario.service_scv:.2g}), a replica has {count(slots, 'slot')}."
            )
        case BatchLine(alpha=alpha, beta=beta):
            return f"A batch of n takes {wait(alpha)} + n × {wait(beta)}, n at most {slots:,}."
        case StepLine(alpha=alpha, beta=beta, tokens_out=tokens):
            return (
                f"A request makes {tokens:,.0f} tokens; a step of a replica with b requests, at most "
                f"{slots:,}, takes {wait(alpha)} + b × {wait(beta)}."
            )
