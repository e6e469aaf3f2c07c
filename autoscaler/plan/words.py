"""Answers in sentences: what is recommended and why, what the alternatives cost, what a conflict comes to."""

import math

from autoscaler.domain.decision import Binding
from autoscaler.plan.answer import Answer, Row
from autoscaler.plan.conflict import Conflict
from autoscaler.plan.question import Question
from autoscaler.plan.together import Batches, Continuous

_SYMBOLS = "$€£¥"
_LARGE = 200
"""In fleets of so many replicas one more or fewer is no alternative worth a line."""


def duration(seconds: float) -> str:
    """Say a wait: "0", "228 ms", "4.6 s", "12 min"; one that grows without end is "no end"."""
    if math.isinf(seconds):
        return "no end"
    if seconds < 0.0005:
        return "0" if seconds < 1e-6 else f"{seconds * 1000:.2g} ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.{1 if seconds < 0.00995 else 0}f}".removesuffix(".0") + " ms"
    if seconds < 99.5:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    if seconds < 5400:
        return f"{seconds / 60:.1f}".removesuffix(".0") + " min"
    return f"{seconds / 3600:.1f}".removesuffix(".0") + " h"


def percent(fraction: float) -> str:
    """Say a fraction, finer near 0 and 1: "67 %", "0.4 %", "99.7 %"."""
    hundredths = 100 * fraction
    near = min(hundredths, abs(100 - hundredths))
    if near == 0 or near >= 1:
        return f"{hundredths:.0f} %"
    return f"{hundredths:.1f} %" if near >= 0.05 else ("~0 %" if fraction < 0.5 else "~100 %")


def busy(fraction: float, question: Question) -> str:
    """Say a utilization: "66.7 % busy"; fine enough to tell on which side of the band's edge it is."""
    return f"{100 * fraction:.1f} % {busy_word(question)}"


def busy_word(question: Question) -> str:
    """Say what utilization is of: slots that are "busy"; in batches, what full ones would carry."""
    return "of capacity" if isinstance(question.service, Batches) else "busy"


def rate(per_second: float) -> str:
    """Say a rate: "0.012/s", "8.25/s", "5,000/s"."""
    return f"{per_second:,.0f}/s" if per_second >= 100 else f"{per_second:.3g}/s"


def money(question: Question, amount: float) -> str:
    """Say a cost: "$37.50", "37.50 CHF", or "15" replica-hours if there is no price."""
    if question.price is None:
        return f"{amount:,.0f}"
    number = f"{amount:,.2f}" if amount < 10_000 else f"{amount:,.0f}"
    if question.currency in _SYMBOLS:
        return f"{question.currency}{number}"
    return f"{number} {question.currency}"


def fleet(question: Question, replicas: int) -> str:
    """Say a size: "15 servers", "20 replicas (600 slots)"."""
    slots = question.service.slots_per_replica
    if slots == 1:
        return f"{replicas:,} server{'s' * (replicas != 1)}"
    return f"{replicas:,} replica{'s' * (replicas != 1)} ({replicas * slots:,} slots)"


def band(question: Question) -> str:
    """Say the band: "60–75 %"."""
    return f"{100 * question.band.low:.3g}–{100 * question.band.high:.3g} %"


def recommendation(answer: Answer) -> str:
    """Say in a sentence or two what is recommended, and which constraint binds."""
    question, row, needs = answer.question, answer.recommended, answer.needs
    size = fleet(question, row.replicas)
    match answer.binding:
        case Binding.WAIT:
            return (
                f"{size}: the wait objective binds. {_wait(answer, row)}{_one_fewer(answer)}. {_busy(answer)}"
            )
        case Binding.BAND:
            full = _busy(answer, _too_busy(answer))
            return f"{size}: the utilization band binds. {full} {_wait(answer, row)}."
        case Binding.NONE:
            return f"{size}: fewer could not do the work. {_wait(answer, row)}. {_busy(answer)}"
        case Binding.REPLICAS_MIN:
            enough = f"{needs.least:,} would keep the wait and not be too busy"
            return f"{size}: no fewer are allowed; {enough}. {_wait(answer, row)}. {_busy(answer)}"
        case _:
            short = f"{needs.least:,} are needed to keep the wait and not be too busy"
            if math.isinf(row.wait_mean):
                return (
                    f"{size}: no more are allowed; {short}. More comes than they can serve: the queue grows."
                )
            return f"{size}: no more are allowed; {short}. {_wait(answer, row)}. {_busy(answer)}"


def alternatives(answer: Answer) -> list[str]:
    """Say what other sizes cost, and what comes of them: one fewer, one more, the edges of the band."""
    size, needs = answer.recommended.replicas, answer.needs
    others = {needs.wait, needs.band_least} | ({size - 1, size + 1} if size < _LARGE else set())
    if needs.band_most >= needs.band_least:
        others.add(needs.band_most)
    stable = (answer.row(n) for n in sorted(others - {size}) if n >= 1)
    return [_alternative(answer, row) for row in stable if math.isfinite(row.wait_mean)]


def conflict(found: Conflict, question: Question) -> list[str]:
    """Say that band and wait exclude one another, then each remedy with its numbers."""
    low, idle = percent(question.band.low), busy(found.utilization, question)
    least, are = fleet(question, found.replicas), "is" if found.replicas == 1 else "are"
    if found.wait_binds:
        most = f"no more than {found.band_most:,}" if found.band_most else "less than one"
        problem = (
            f"Band and wait exclude one another: {question.wait} within {duration(question.wait.seconds)} "
            f"takes {least}, which {are} {idle}; for {low}, there could be {most}."
        )
    else:
        fewer = "and there is no smaller fleet" if found.replicas == 1 else "one fewer would be too busy"
        problem = f"No whole number lies in the band: {least} {are} {idle}, {fewer}."
    return [problem, *_remedies(found, question)]


def _remedies(found: Conflict, question: Question) -> list[str]:
    low = percent(question.band.low)
    if found.pools:
        apart = found.pools * found.replicas
        pool = (
            f"Pool: {found.pools} such pools as one need {fleet(question, found.pooled_replicas)} instead of "
            f"{apart:,}, and keep both."
        )
    else:
        pool = "Pool: even 64 such pools as one would not keep both; allow a longer wait or a wider band."
    batch = (
        "Batch: what waits joins the next batch instead of needing a slot of its own; "
        "give the batching line, or the step line, to see what that saves."
    )
    batches = isinstance(question.service, Batches | Continuous)
    fill = (
        f"Fill: {found.fill:.2g} slots kept busy with work that can wait ({percent(_share(found, question))} "
        f"of the fleet) bring it to {low}."
    )
    extra = question.cost_per_hour(found.replicas - found.band_most)
    unit = "an hour" if question.price is not None else "replica-hours an hour"
    accept = f"Accept: {busy(found.utilization, question)}"
    if found.band_most:
        most = fleet(question, found.band_most)
        accept += (
            f", which costs {money(question, extra)} {unit} more than {most}, the most that are busy enough"
        )
    if found.band_wait is not None:
        accept += f"; or a {question.wait} wait of {duration(found.band_wait)} with those"
    return [pool, *([] if batches else [batch]), fill, accept + "."]


def _share(found: Conflict, question: Question) -> float:
    return found.fill / (found.replicas * question.service.slots_per_replica)


def _wait(answer: Answer, row: Row) -> str:
    bound = answer.question.wait
    kept = "within" if row.keeps_wait else "beyond"
    return f"{bound} wait {duration(row.wait_bound)}, {kept} {duration(bound.seconds)}{_lost(row)}"


def _lost(row: Row) -> str:
    return f" ({percent(row.more['fraction_lost'])} give up)" if "fraction_lost" in row.more else ""


def _one_fewer(answer: Answer) -> str:
    fewer = answer.recommended.replicas - 1
    if fewer < 1:
        return ""
    row = answer.row(fewer)
    if math.isinf(row.wait_mean):
        return "; one fewer could not do the work"
    return f"; with one fewer {duration(row.wait_bound)}{_lost(row)}"


def _too_busy(answer: Answer) -> str:
    """Say that one fewer would be beyond the band."""
    fewer = answer.recommended.replicas - 1
    if fewer < 1:
        return ""
    told, with_fewer = (
        busy(row.utilization, answer.question) for row in (answer.recommended, answer.row(fewer))
    )
    return f"; one fewer would be {with_fewer}" if with_fewer != told else "; one fewer would be above it"


def _busy(answer: Answer, too_busy: str = "") -> str:
    row, span = answer.recommended, band(answer.question)
    if row.in_band:
        return f"{busy(row.utilization, answer.question)}, inside the band of {span}{too_busy}."
    side = "above" if row.utilization > answer.question.band.high else "below"
    return f"{busy(row.utilization, answer.question)}, {side} the band of {span}{too_busy}."


def _alternative(answer: Answer, row: Row) -> str:
    question, chosen = answer.question, answer.recommended
    difference = row.cost_per_hour - chosen.cost_per_hour
    share = percent(abs(difference) / chosen.cost_per_hour) if chosen.cost_per_hour else ""
    cost = f"{money(question, abs(difference))} an hour " if question.price else ""
    direction = "less" if difference < 0 else "more"
    cost += f"({share}) {direction}" if cost else f"{share} {direction}"
    faults = [] if row.keeps_wait else ["misses the wait objective"]
    if not row.in_band:
        faults.append("too busy" if row.utilization > question.band.high else "below the band")
    return (
        f"{fleet(question, row.replicas)}: {cost}, {busy(row.utilization, question)}, "
        f"{question.wait} wait {duration(row.wait_bound)}" + (f": {', '.join(faults)}" if faults else "")
    )
