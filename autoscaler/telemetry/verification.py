"""Re-executes what a history recorded: the same controller, the same inputs, so the same decisions.

The controller is a pure machine. From a checkpoint, a copy of it before some step, it is shown again what it
was shown then, step by step, and takes over each fit where it did; what it decides must be what was recorded,
every number to the last bit. The next checkpoint, of the next day or of a restarted program, is taken as it
was stored: so each stretch between two stands for itself.

A step that is missing in between (deleted, or dropped because the disk refused) is noticed by its time, and
what follows it cannot be re-executed until the next checkpoint.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from autoscaler import __version__
from autoscaler.domain import Decision
from autoscaler.scaling import Controller
from autoscaler.scaling.fit import Fitted
from autoscaler.telemetry.decision_codec import (
    DecisionRecord,
    decision_to_plain,
    record_from_row,
    record_to_row,
)
from autoscaler.telemetry.history_reader import AdoptedFit, Checkpoint, HistoryReader
from autoscaler.telemetry.state_codec import StateUnreadable, thaw

T = TypeVar("T")

_MISSING_SHARE = 0.5
"""A step is missing if so large a share of an interval lies between two others, unobserved [1]."""
_ABSENT = "(absent)"
_REPORT_EVERY = 256  # decisions
_BROKEN_STEP = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a controller raises that another version of the program has written."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of one decision that came out otherwise than recorded; None stands for not-a-number."""

    wall_time: float
    """Of the decision [s since the epoch]."""
    field: str
    """Such as `desired` or `numbers.lead_time`."""
    stored: Any
    executed: Any


@dataclass(slots=True)
class Verdict:
    """What became of the decisions of one pool.

    Attributes
    ----------
    pool : str
        Whose.
    since_wall, until_wall : float or None
        Times of the first and the last that were re-executed [s since the epoch].
    executed, identical : int
        Decisions re-executed, and those of them that came out as recorded.
    before : int
        Decisions before the first checkpoint, which cannot be re-executed.
    unreached : int
        Decisions behind an obstacle, which could not be re-executed.
    first_difference : Difference or None
        Where the first differs that does.
    first_obstacle : str
        What stood in the way first; empty if nothing did.
    versions : list of str
        Other versions of the program, of which states are.
    """

    pool: str
    since_wall: float | None = None
    until_wall: float | None = None
    executed: int = 0
    identical: int = 0
    before: int = 0
    unreached: int = 0
    first_difference: Difference | None = None
    first_obstacle: str = ""
    versions: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing contradicts the record: all that there is a checkpoint for came out as recorded."""
        return self.identical == self.executed and not self.unreached


def verify(
    reader: HistoryReader,
    pool: str,
    last: int | None = None,
    report: Callable[[float], None] = lambda _: None,
) -> Verdict:
    """Re-execute the decisions of `pool`.

    Parameters
    ----------
    reader : HistoryReader
        Of the history that holds them.
    pool : str
        Whose.
    last : int, optional
        Only so many, from the newest checkpoint at or before them on; by default all.
    report : callable, optional
        Told the share that is done [1], now and then.

    Raises
    ------
    UsageError
        If the file is damaged, or holds a state that is none.
    """
    verdict = Verdict(pool)
    ids, checkpoints = reader.decision_ids(pool, last), reader.checkpoints(pool)
    if not ids or not checkpoints:
        verdict.before = len(ids)
        return verdict
    begin = bisect_right(checkpoints, ids[0], key=lambda each: each.decision_id) - 1
    checkpoints = checkpoints[max(0, begin) :]
    verdict.before = bisect_left(ids, checkpoints[0].decision_id)
    written_by = {each.version for each in checkpoints}
    verdict.versions = sorted(written_by - {__version__})
    for place, checkpoint in enumerate(checkpoints):
        following = checkpoints[place + 1] if place + 1 < len(checkpoints) else None
        _verify_stretch(reader, checkpoint, following, verdict, lambda done: report(done / len(ids)))
    return verdict


def _verify_stretch(
    reader: HistoryReader,
    checkpoint: Checkpoint,
    following: Checkpoint | None,
    verdict: Verdict,
    report: Callable[[int], None],
) -> None:
    """Re-execute from one checkpoint up to the `following` one."""
    steps = reader.steps(
        checkpoint.pool, checkpoint.decision_id, None if following is None else following.decision_id
    )
    done = 0
    try:
        controller = _thawed(reader.state(checkpoint), Controller)
        for record, decision in _executed(controller, steps, reader.adopted_fits(checkpoint, following)):
            done += 1
            _judge(verdict, record, decision)
            if verdict.executed % _REPORT_EVERY == 0:
                report(verdict.executed)
    except StateUnreadable as obstacle:
        verdict.unreached += len(steps) - done
        verdict.first_obstacle = verdict.first_obstacle or str(obstacle)


def _executed(
    controller: Controller, steps: list[DecisionRecord], fits: list[AdoptedFit]
) -> Iterator[tuple[DecisionRecord, Decision]]:
    """Take the steps again; raises StateUnreadable where it cannot go on."""
    adopted: defaultdict[tuple[float, float], list[bytes]] = defaultdict(list)
    for fit in fits:
        adopted[fit.now, fit.wall_time].append(fit.state)
    before: DecisionRecord | None = None
    for step in steps:
        if before is not None and _is_missing_between(before, step):
            raise StateUnreadable("a step was not recorded, or was deleted")
        try:
            decision = controller.step(step.observation, step.fleet, step.now)
            yield step, decision
            for state in adopted[step.now, step.wall_time]:
                controller.adopt(_thawed(state, Fitted), step.now)
        except _BROKEN_STEP as error:
            if isinstance(error, StateUnreadable):
                raise
            raise StateUnreadable(f"the controller broke ({type(error).__name__}: {error})") from error
        before = step


def _is_missing_between(earlier: DecisionRecord, later: DecisionRecord) -> bool:
    """Whether more time passed than was observed; of an interval that was lost, nobody knows."""
    passed = later.now - earlier.now
    if later.observation is None:
        return passed <= 0
    interval = later.observation.interval
    return abs(passed - interval) > _MISSING_SHARE * interval


def _judge(verdict: Verdict, record: DecisionRecord, executed: Decision) -> None:
    """Hold a decision that was made again against the recorded one."""
    verdict.executed += 1
    if verdict.since_wall is None:
        verdict.since_wall = record.wall_time
    verdict.until_wall = record.wall_time
    # As the history would have stored it: then what differs has really been decided otherwise.
    executed = _with_what_others_say(executed, record.decision)
    again = record_from_row(record_to_row(replace(record, decision=executed))).decision
    difference = next(_differences(record.wall_time, record.decision, again), None)
    if difference is None:
        verdict.identical += 1
    elif verdict.first_difference is None:
        verdict.first_difference = difference


def _with_what_others_say(executed: Decision, recorded: Decision) -> Decision:
    """Take over what the control loop notes of other pools, which no controller knows."""
    said = recorded.numbers
    numbers = replace(
        executed.numbers,
        substituted_share=said.substituted_share,
        standing_in_rate=said.standing_in_rate,
    )
    return replace(executed, numbers=numbers)


def _differences(wall_time: float, stored: Decision, executed: Decision) -> Iterator[Difference]:
    """Compare every field; the text that Python gives of a float is that of no other."""
    was, came = _fields(decision_to_plain(stored)), _fields(decision_to_plain(executed))
    for name in was | came:
        one, other = was.get(name, _ABSENT), came.get(name, _ABSENT)
        if repr(one) != repr(other):
            yield Difference(wall_time, name, one, other)


def _fields(plain: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in plain.items():
        flat |= _fields(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def _thawed(stored: bytes, kind: type[T]) -> T:
    state = thaw(stored)
    if not isinstance(state, kind):
        raise StateUnreadable(f"there is a {type(state).__name__} where a {kind.__name__} should be")
    return state
