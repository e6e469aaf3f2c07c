"""Answers as plain data, for `--json`. Seconds, fractions, 1/s; an infinite wait is null."""

import math
from dataclasses import asdict
from typing import Any

from autoscaler.plan.answer import Answer, Row
from autoscaler.plan.conflict import conflict_of
from autoscaler.plan.words import conflict, recommendation


def answer_as_plain(answer: Answer) -> dict[str, Any]:
    """Return `recommended` (servers), `binding`, `rows`, and what explains them."""
    question, found = answer.question, conflict_of(answer)
    return {
        "recommended": answer.recommended.servers,
        "recommended_replicas": answer.recommended.replicas,
        "binding": answer.binding.value,
        "why": recommendation(answer),
        "arrival_rate": question.arrival_rate,
        "slots_per_replica": question.service.slots_per_replica,
        "wait_objective": {"quantile": question.wait.quantile, "seconds": question.wait.seconds},
        "band": [question.band.low, question.band.high],
        "cost_unit": "replica-hours" if question.price is None else question.currency or None,
        "replicas_for": asdict(answer.needs),
        "conflict": None
        if found is None
        else {**finite(asdict(found)), "in_words": conflict(found, question)},
        "rows": [row_as_plain(row) for row in answer.rows],
    }


def row_as_plain(row: Row) -> dict[str, Any]:
    """Return one size as plain data."""
    plain = {name: getattr(row, name) for name in Row.__dataclass_fields__ if name != "more"}
    return finite({**plain, **row.more})


def finite(values: dict[str, Any]) -> dict[str, Any]:
    """Return `values` with null for what is infinite or not known, which JSON cannot write."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }
