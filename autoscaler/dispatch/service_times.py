"""How long a request is expected to hold its slot: as it says itself, or as its class did lately.

Only calls that were served in full are learned from. The mean follows the last `REMEMBERED` of its class or
so, and the mean of all classes stands in for a class that has not been seen yet.
"""

from collections.abc import Iterable

from autoscaler.domain import Request

REMEMBERED = 50
"""A mean follows about so many last services [1]. Half of its weight lies on the last 35."""


class ServiceTimes:
    """Mean service time by class. Zero stands for: nobody can tell."""

    def __init__(self, classes: Iterable[str]) -> None:
        self._means = dict.fromkeys(classes, 0.0)
        self._counts = dict.fromkeys(self._means, 0)
        self._mean = 0.0
        self._count = 0

    @property
    def mean(self) -> float:
        """E[S] over all classes, as they came lately [s]."""
        return self._mean

    @property
    def longest(self) -> float:
        """The longest mean of a class [s]."""
        return max(self._means.values())

    def mean_of(self, priority_class: str) -> float:
        """E[S] of one class [s]."""
        return self._means[priority_class] or self._mean

    def expected(self, request: Request) -> float:
        """Return the predicted time of `request` in its slot [s]."""
        return request.service_time or self._means[request.priority_class] or self._mean

    def learn(self, priority_class: str, service_time: float) -> None:
        """Take in one service time S [s]."""
        count = self._counts[priority_class]
        if count < REMEMBERED:
            self._counts[priority_class] = count = count + 1
        mean = self._means[priority_class]
        self._means[priority_class] = mean + (service_time - mean) / count
        if self._count < REMEMBERED:
            self._count += 1
        self._mean += (service_time - self._mean) / self._count
