"""One pool in words: the right-hand side of the terminal view, and the line of a log."""

import math
from collections.abc import Sequence

from rich.text import Text

from autoscaler.dashboard.bars import BAD, GOOD, LATE, QUIET, wait_that_counts
from autoscaler.dashboard.words import UNKNOWN, count, duration, percent, rate
from autoscaler.domain import Outcome
from autoscaler.telemetry.status import GpuStatus, PoolStatus

GIB = 1024.0**3


def replicas_in_words(pool: PoolStatus) -> Text:
    """Say how many replicas are in each state, and of how many that are desired."""
    replicas = pool.replicas
    words = Text(f"{replicas.ready} of {replicas.desired} ready")
    if replicas.starting:
        words.append(f", {replicas.starting} starting", LATE)
    if pool.orders.late:
        words.append(f", {pool.orders.late} late", BAD)
    if replicas.draining:
        words.append(f", {replicas.draining} draining", QUIET)
    if replicas.asleep:
        words.append(f", {replicas.asleep} asleep", QUIET)
    return words


def occupancy_in_words(pool: PoolStatus) -> Text:
    """Say how busy the slots are, and where the band is."""
    busy, wanted = pool.occupancy.last_interval, pool.objective
    inside = wanted.utilization_low <= busy <= wanted.utilization_high
    words = Text(percent(busy), GOOD if inside else LATE)
    return words.append(
        f" busy, band {wanted.utilization_low * 100:.0f}–{wanted.utilization_high * 100:.0f} %", QUIET
    ).append(f", {pool.slots.busy}/{pool.slots.total} now{_each(pool.slots.per_replica)}", QUIET)


def _each(slots_per_replica: int) -> str:
    return f", {slots_per_replica} a replica" if slots_per_replica > 1 else ""


def waits_in_words(pool: PoolStatus) -> Text:
    """Say the wait that counts and the wait that is still good, then the usual ones."""
    name, wait = wait_that_counts(pool)
    words = Text(duration(wait), GOOD if wait <= pool.objective.wait_seconds else LATE)
    words.append(f" of {duration(pool.objective.wait_seconds)}", QUIET)
    for other, value in (("p50", pool.waits.p50), ("p95", pool.waits.p95), ("p99", pool.waits.p99)):
        if other != name:
            words.append(f"  {other} {duration(value)}", QUIET)
    return words


def queue_in_words(pool: PoolStatus) -> Text:
    """Say how many wait, and how long the first of them has."""
    if not pool.queue_depth:
        return Text("nobody waits", QUIET)
    return Text(f"{pool.queue_depth} waiting").append(f", the first for {duration(pool.oldest_wait)}", QUIET)


def objective_in_words(pool: PoolStatus) -> Text:
    """Say what was promised and for how many it was kept."""
    wanted, waits = pool.objective, pool.waits
    words = Text(f"{percent(wanted.wait_quantile, 1)} start within {duration(wanted.wait_seconds)}: ", QUIET)
    if math.isnan(waits.met):
        return words.append("nobody came lately", QUIET)
    kept = waits.met >= wanted.wait_quantile
    return words.append(f"{percent(waits.met, 2)} did", GOOD if kept else LATE).append(
        f", of the last {count(waits.count, 'request')}", QUIET
    )


def requests_in_words(pool: PoolStatus) -> Text:
    """Count the requests that ended, by how; those that never occurred are left out."""
    words = Text(f"{pool.requests.get(Outcome.COMPLETED, 0)} completed")
    for outcome in (Outcome.FAILED, Outcome.REJECTED, Outcome.EXPIRED, Outcome.CANCELLED):
        if number := pool.requests.get(outcome, 0):
            words.append(", ", QUIET).append(
                f"{number} {outcome}", QUIET if outcome is Outcome.CANCELLED else BAD
            )
    if pool.slots_leaked:
        words.append(f", {count(pool.slots_leaked, 'slot')} leaked", BAD)
    return words


def tokens_in_words(pool: PoolStatus) -> Text:
    """Say how many tokens come, and how fast; of a pool of language models."""
    tokens = pool.tokens
    words = Text(f"{rate(tokens.rate_out)} out").append(f", {rate(tokens.rate_in)} in", QUIET)
    if tokens.estimated > 0:
        words.append(f", {percent(tokens.estimated)} of the answers estimated", QUIET)
    if not math.isnan(tokens.first_token_p95):
        words.append(f"; the first after {duration(tokens.first_token_p95)} (p95)", QUIET)
    if not math.isnan(tokens.per_token_p50):
        words.append(f", then each {duration(tokens.per_token_p50)}", QUIET)
    return words


def signals_in_words(pool: PoolStatus) -> Text:
    """Say what other programs tell, and which of it is not trusted; of a pool that has signals."""
    words = Text()
    for signal in sorted(pool.signals, key=lambda each: each.standing != "quarantined"):
        if words:
            words.append("  ")
        if signal.standing == "quarantined":
            words.append(f"{signal.name} not used: {signal.text}", BAD)
        else:
            value = UNKNOWN if math.isnan(signal.value) else f"{signal.value:.4g}"
            words.append(f"{signal.name} {value}", QUIET)
    return words


def troubles_in_words(pool: PoolStatus) -> Text:
    """Say what has been wrong outside for longest, and how long; of a pool around which something is."""
    first, more = pool.troubles[0], len(pool.troubles) - 1
    words = Text(f"{first.where}, for {duration(first.age)}: {first.text}", BAD)
    return words.append(f", and {more} more", BAD) if more else words


def substitutions_in_words(pool: PoolStatus) -> Text:
    """Say who stands in for whom, and for how much; of a pool that has a part in it now."""
    words = Text()
    for each in pool.substitutions:
        if not each.share:
            continue
        if words:
            words.append("  ")
        if each.pool == pool.name:
            words.append(f"{each.substitute} stands in for {percent(each.share)} of the demand", LATE)
        else:
            words.append(f"substitutes for {each.pool}: {percent(each.share)} of its demand", LATE)
    return words


def gpus_in_words(gpus: Sequence[GpuStatus]) -> Text:
    """Say what each GPU does; that one is busy all the time does not say that it is full."""
    words = Text()
    for gpu in gpus:
        if words:
            words.append("  ")
        if gpu.lost:
            words.append(f"{gpu.index}: {gpu.lost}", BAD)
            continue
        words.append(f"{gpu.index}: {percent(gpu.busy_ratio)}")
        if not math.isnan(gpu.memory_used):
            used, there = gpu.memory_used / GIB, gpu.memory_total / GIB
            words.append(f", {used:.0f} of {there:.0f} GiB", QUIET)
        if gpu.throttled:
            words.append(f", {' '.join(gpu.throttled)}", LATE)
    return words.append("  (time with any kernel running; how full, occupancy says)", QUIET)


def disagreements_in_words(pool: PoolStatus) -> Text:
    """Say which servers hold more or fewer requests than was sent to them; of a pool that has some."""
    first, more = pool.disagreements[0], len(pool.disagreements) - 1
    words = Text(f"{first.diagnosis}: {first.replica} {first.text}", BAD)
    return words.append(f", and {count(more, 'more server')}", BAD) if more else words


def no_decision_in_words(pool: PoolStatus) -> str:
    """Say why there is no decision: there will be one, or somebody else decides."""
    return "no decision yet" if pool.acts is not None else "decides nothing itself; ask its controller"


def facts(pool: PoolStatus) -> list[str]:
    """Tell a pool in short facts, the most important first and the last decision last."""
    name, wait = wait_that_counts(pool)
    replicas = pool.replicas
    quarantined = sum(signal.standing == "quarantined" for signal in pool.signals)
    return [
        f"{rate(pool.arrival_rate)} (forecast {rate(pool.forecast.mean)})",
        f"replicas {replicas.ready}"
        + (f"+{replicas.starting}" if replicas.starting else "")
        + (f"-{replicas.draining}" if replicas.draining else "")
        + f"/{replicas.desired}",
        f"busy {percent(pool.occupancy.last_interval)}",
        f"{name} {duration(wait)}",
        f"queue {pool.queue_depth}",
        *([troubles_in_words(pool).plain] if pool.troubles else []),
        *([f"{count(len(pool.disagreements), 'server')} disagree"] if pool.disagreements else []),
        *([f"{count(quarantined, 'signal')} not used"] if quarantined else []),
        *([words.plain] if (words := substitutions_in_words(pool)) else []),
        *([] if math.isnan(pool.tokens.rate_out) else [f"tokens {rate(pool.tokens.rate_out)}"]),
        no_decision_in_words(pool) if pool.last_decision is None else pool.last_decision.sentence,
    ]
