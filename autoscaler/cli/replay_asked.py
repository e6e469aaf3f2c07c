"""What was asked of `autoscaler replay`, as typed, and the readers of what needs more than a number."""

import re
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path

from autoscaler.cli.plan_words import READERS
from autoscaler.domain import Objective
from autoscaler.errors import UsageError
from autoscaler.replay.output.lineup import (
    FIXED,
    PEERS,
    REPLICAS_MOST,
    TARGET_LEAST,
    TARGET_MOST,
    USUAL_PEERS,
)
from autoscaler.replay.output.words import Price
from autoscaler.units import DURATION_FORM, parse_duration, parse_fraction

_DATE = re.compile(r"\d{4}-\d\d-\d\d.*")
_BAND = "60%-75%"


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of the command, each as `cli.replay` names it."""

    trace: Path
    service_time: float | None = None
    service_scv: float | None = None
    slots: int = 1
    cold_start: float = 120.0
    cold_start_cv: float = 0.25
    wait: float = 5.0
    quantile: float = 0.99
    band: str | None = None
    batch_alpha: float | None = None
    batch_beta: float | None = None
    step_alpha: float | None = None
    step_beta: float | None = None
    tokens_out: float | None = None
    tokens_in: float | None = None
    prefill_rate: float | None = None
    interval: float | None = None
    duration_unit: str | None = None
    time_zone: str | None = None
    only_model: str | None = None
    kind: str | None = None
    history: str | None = None
    history_interval: float | None = None
    from_: str | None = None
    until: str | None = None
    control_interval: float = 10.0
    price: str | None = None
    gpus_per_replica: int = 1
    peer: list[str] | None = None
    peers: str | None = None
    sweep: bool = False
    no_forecast: bool = False
    supply_max: int | None = None
    interruptions: float = 0.0
    seed: int = 0
    seeds: int = 1
    as_json: bool = False
    html: Path | None = None
    plot: Path | None = None


def objective_of(asked: Asked) -> Objective:
    """Return wait and band. Raises UsageError."""
    try:
        band = READERS["band"](asked.band or _BAND)
        return Objective(band.low, band.high, asked.wait, asked.quantile)
    except ValueError as error:
        raise UsageError(
            f"--band {asked.band}: write a band such as 60%-75%; 60%-100% has no upper edge"
        ) from error


def price_of(asked: Asked) -> Price | None:
    """Return what a GPU costs for an hour. Raises UsageError."""
    if asked.price is None:
        return None
    try:
        return Price(*READERS["price"](asked.price))
    except ValueError as error:
        raise UsageError(f"--price {asked.price}: write {error}") from error


def peers_of(asked: Asked) -> tuple[tuple[str, float | None], ...]:
    """Return who was asked for, each with its target, if one was given. Raises UsageError."""
    named = tuple(_peer(word) for word in asked.peer or ())
    match asked.peers:
        case "all":
            families: tuple[str, ...] = tuple(PEERS)
        case "none":
            families = ()
        case "usual" | "default":
            families = USUAL_PEERS
        case None:
            families = () if named else USUAL_PEERS
        case other:
            raise UsageError(f"--peers {other}: write all, usual or none; or name some with --peer")
    return (*((family, None) for family in families), *named)


def _peer(word: str) -> tuple[str, float | None]:
    family, at, target = word.partition("@")
    family = family.strip().lower()
    if family not in PEERS:
        raise UsageError(f"--peer {word}: there is {', '.join(PEERS)}")
    return family, _target(word, family, target) if at else None


def _target(word: str, family: str, target: str) -> float:
    if family == FIXED and target.isdigit() and 1 <= int(target) <= REPLICAS_MOST:
        # One replica, not wholly busy ones: what is above 1 is a number of replicas.
        return max(int(target), 1.0 + 1e-9)
    try:
        share = parse_fraction(target)
    except ValueError:
        share = 0.0
    replicas = f", or so many replicas: {FIXED}@12" if family == FIXED else ""
    if PEERS[family].target is None and family != FIXED:
        raise UsageError(f"--peer {word}: {family} takes no target; leave out @{target}")
    if not TARGET_LEAST <= share <= TARGET_MOST:
        raise UsageError(f"--peer {word}: write an occupancy between 5% and 100%: {family}@0.7{replicas}")
    return share


def moment_of(option: str, given: str, start: float, clock: tzinfo) -> float:
    """Return how long after `start` a moment is that was given as a length of time or as a date [s].

    Parameters
    ----------
    start : float
        Calendar time of the beginning [s since the epoch]; 0 if it is not known.
    clock : tzinfo
        By which a date without an offset is meant.

    Raises
    ------
    UsageError
        If it is neither, or a date where the times of the file are relative.
    """
    if not _DATE.fullmatch(given):
        try:
            return parse_duration(given)
        except ValueError as error:
            raise UsageError(
                f"{option} {given}: write a date such as 2026-03-01 or 2026-03-01T08:00, or {DURATION_FORM}"
            ) from error
    if not start:
        raise UsageError(
            f"{option} {given}: the times in the file are relative; write how long after it begins, 2d"
        )
    try:
        moment = datetime.fromisoformat(given)
    except ValueError as error:
        raise UsageError(f"{option} {given}: write a date such as 2026-03-01 or 2026-03-01T08:00") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=clock)
    return moment.timestamp() - start
