"""Several pools, each with its own fleet, beside one pool for all of them.

One pool for all shares its spare servers. It is told for pools that serve one by one with as many slots a
replica; the merged service is the mixture of theirs, and the strictest wait and the narrowest band hold for
all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from autoscaler.plan.answer import Answer, answer
from autoscaler.plan.one_by_one import OneByOne
from autoscaler.plan.question import Band, Question, WaitBound
from autoscaler.queueing.peakedness import SCV_MAX
from autoscaler.queueing.pooling import merged_service


@dataclass(frozen=True, slots=True)
class Pools:
    """Answers of several pools, and of one for all.

    Attributes
    ----------
    answers : mapping
        By name of the pool.
    merged : Answer or None
        One pool for all; None if their services cannot be mixed.
    hurt : tuple of str
        Pools whose requests would wait longer, on average, in the merged one.
    """

    answers: Mapping[str, Answer]
    merged: Answer | None
    hurt: tuple[str, ...]

    @property
    def replicas(self) -> int:
        """Replicas of all pools together [1]."""
        return sum(each.recommended.replicas for each in self.answers.values())

    @property
    def cost_per_hour(self) -> float:
        """Of all pools together."""
        return sum(each.recommended.cost_per_hour for each in self.answers.values())


def answer_pools(questions: Mapping[str, Question]) -> Pools:
    """Answer each question, and the one for all."""
    answers = {name: answer(question) for name, question in questions.items()}
    question = merged_question(list(questions.values()))
    if question is None:
        return Pools(answers, None, ())
    merged = answer(question)
    wait = merged.recommended.wait_mean
    hurt = tuple(name for name, each in answers.items() if each.recommended.wait_mean < wait)
    return Pools(answers, merged, hurt)


def merged_question(questions: list[Question]) -> Question | None:
    """Return the question for all demands in one pool, or None if it cannot be asked."""
    services = [question.service for question in questions]
    kinds = [service for service in services if isinstance(service, OneByOne)]
    alike = len({(each.slots_per_replica, q.price) for each, q in zip(services, questions, strict=True)}) == 1
    means_wanted = {question.wait.quantile is None for question in questions}
    if len(questions) < 2 or len(kinds) < len(services) or not alike or len(means_wanted) > 1:
        return None
    rates = np.array([question.arrival_rate for question in questions])
    mean, scv = merged_service(
        rates, np.array([s.service_time_mean for s in kinds]), np.array([s.service_scv for s in kinds])
    )
    low, high = (
        max(question.band.low for question in questions),
        min(question.band.high for question in questions),
    )
    if scv > SCV_MAX or low >= high:
        return None
    arrivals = float(rates @ np.array([s.arrival_scv for s in kinds]) / rates.sum())
    return replace(
        questions[0],
        arrival_rate=float(rates.sum()),
        service=OneByOne(mean, scv, arrivals, kinds[0].slots_per_replica),
        wait=_strictest([question.wait for question in questions]),
        band=Band(low, high),
        replicas_min=1,
        replicas_max=None,
    )


def _strictest(bounds: list[WaitBound]) -> WaitBound:
    quantiles = [bound.quantile for bound in bounds if bound.quantile is not None]
    return WaitBound(min(bound.seconds for bound in bounds), max(quantiles) if quantiles else None)
