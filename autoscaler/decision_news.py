"""Warnings of what stands in the way of decisions: each once when it begins, and a word when it is over."""

from collections.abc import Iterator
from math import isnan

import structlog

from autoscaler.domain import Binding, Decision, Reason

log = structlog.get_logger(__name__)


class DecisionNews:
    """Follows the decisions about one pool."""

    def __init__(self, pool: str) -> None:
        self._pool = pool
        self._told: frozenset[str] = frozenset()

    def follow(self, decision: Decision) -> None:
        """Tell what is new in it."""
        found = frozenset(_obstacles(decision))
        for text in sorted(found - self._told):
            log.warning(text, pool=self._pool, why=str(decision))
        for text in sorted(self._told - found):
            log.info(f"over: {text}", pool=self._pool)
        self._told = found


def _obstacles(decision: Decision) -> Iterator[str]:
    if decision.binding is Binding.SUPPLY:
        yield "what is ordered does not come"
    if not isnan(decision.numbers.substituted_share):
        yield "another pool stands in for this one"
    if decision.reason is Reason.NO_EFFECT:
        yield "more replicas serve no more; look for what they share"
    if decision.numbers.asked_elsewhere is not None:
        yield "somebody else has changed the number of replicas"
