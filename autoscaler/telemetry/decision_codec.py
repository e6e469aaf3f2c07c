"""One step of the control path as a record: what was seen, what there was, what was decided.

A record holds all that `Controller.step` took and gave, so it can be explained in words and
re-executed. A decision is one of two kinds; in JSON the field `kind` says which.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from autoscaler.domain import Decision, Fleet, Hold, Observation, ScaleTo
from autoscaler.telemetry.plain import decode, encode, from_plain, to_plain

_KINDS: dict[str, type[ScaleTo] | type[Hold]] = {"scale_to": ScaleTo, "hold": Hold}


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One step of the control path of one pool.

    Attributes
    ----------
    pool : str
        Whose.
    wall_time : float
        When, on the calendar [s since the epoch, UTC].
    now : float
        When, on the monotonic clock of the process that decided [s].
    observation : Observation or None
        What the interval showed; None if no measurement came.
    fleet : Fleet
        What the platform said there was.
    decision : ScaleTo or Hold
        What came of it.
    """

    pool: str
    wall_time: float
    now: float
    observation: Observation | None
    fleet: Fleet
    decision: Decision


def kind_of(decision: Decision) -> str:
    """Name the kind of a decision as it is stored: "scale_to" or "hold"."""
    return "scale_to" if isinstance(decision, ScaleTo) else "hold"


def decision_to_plain(decision: Decision) -> dict[str, Any]:
    """Turn a decision into plain data, with its `kind`."""
    return {"kind": kind_of(decision), **to_plain(decision)}


def decision_from_plain(plain: Any) -> Decision:
    """Rebuild a decision. Raises ValueError if it is none."""
    kind = plain.get("kind") if isinstance(plain, dict) else None
    if kind not in _KINDS:
        raise ValueError(f"a decision has the kind {' or '.join(map(repr, _KINDS))}, got {kind!r}")
    return from_plain(plain, _KINDS[kind])


def record_to_plain(record: DecisionRecord) -> dict[str, Any]:
    """Turn a record into plain data, with the `sentence` that a person reads first."""
    return {
        "pool": record.pool,
        "wall_time": record.wall_time,
        "now": record.now,
        "sentence": str(record.decision),
        "observation": to_plain(record.observation),
        "fleet": to_plain(record.fleet),
        "decision": decision_to_plain(record.decision),
    }


def record_from_plain(plain: dict[str, Any]) -> DecisionRecord:
    """Rebuild a record, for one who reads them over the admin listener. Raises ValueError if it is none."""
    try:
        return DecisionRecord(
            pool=plain["pool"],
            wall_time=plain["wall_time"],
            now=plain["now"],
            observation=_observation(plain["observation"]),
            fleet=from_plain(plain["fleet"], Fleet),
            decision=decision_from_plain(plain["decision"]),
        )
    except KeyError as error:
        raise ValueError(f"a decision record without the field {error}") from error


Row = tuple[str, float, float, str, bytes | None, bytes, bytes]


def record_to_row(record: DecisionRecord) -> Row:
    """Turn a record into (pool, wall_time, now, kind, observation, fleet, decision), the last as JSON."""
    return (
        record.pool,
        record.wall_time,
        record.now,
        kind_of(record.decision),
        None if record.observation is None else encode(record.observation),
        encode(record.fleet),
        msgspec.json.encode(decision_to_plain(record.decision)),
    )


def record_from_row(row: Row) -> DecisionRecord:
    """Rebuild a record from a row. Raises ValueError if a column does not fit."""
    pool, wall_time, now, _, observation, fleet, decision = row
    return DecisionRecord(
        pool=pool,
        wall_time=wall_time,
        now=now,
        observation=None if observation is None else decode(observation, Observation),
        fleet=decode(fleet, Fleet),
        decision=decision_from_plain(msgspec.json.decode(decision)),
    )


def _observation(plain: Any) -> Observation | None:
    return None if plain is None else from_plain(plain, Observation)
