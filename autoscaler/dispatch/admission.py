"""Who is let in, and how long they would wait.

The queue is bounded three times. The bound in requests keeps waits short enough to be worth it; the bound in
bytes keeps a burst of large bodies from eating the machine; the bound in predicted seconds of service tells
long requests from short ones. A request that starts at once waits for nobody and holds no place, so no bound
touches it.

There are two regimes of waiting. While replicas are there, all busy, a request is refused at once if by the
model of `predicted_wait.py` it would start past its deadline, so that its client can go elsewhere instead of
waiting for nothing. While there is none, the clock of its deadline stands (`central_queue.py`), and it is
refused only if the next replica is known to come too late even so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from autoscaler.dispatch.central_queue import CentralQueue
from autoscaler.dispatch.class_line import ClassLine
from autoscaler.dispatch.predicted_wait import PredictedWait
from autoscaler.dispatch.priority_class import DEFAULT_CLASSES, PriorityClass, check_classes
from autoscaler.domain import DropReason, Request

LATE_BY = 0.5
"""A wait is taken for its mean and so many standard deviations [1]: about seven of ten who are let in just
below that start in time."""


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """Bounds of the central queue, and its order. Requests that start at once count against no bound."""

    requests_max: int = 1000
    """So many may wait [requests]; 0 lets nobody wait. Lower it when clients would rather be refused early
    than wait; raise it when a burst shall be held while replicas start."""
    bytes_max: int = 256 * 2**20
    """So much memory may the bodies of those who wait hold [bytes]. Raise it for large inputs (images,
    audio), within the memory of this machine."""
    service_seconds_max: float = inf
    """So much predicted service time may wait [s]. Set it where few long requests fill a queue as much as
    many short ones; infinity leaves that to the deadlines."""
    refuse_late: bool = True
    """Refuse at once whom the model predicts to start past its deadline. Turn it off where clients prefer to
    take their chance."""
    clock_stops_max: float = 60.0
    """While no replica is there, the clock of a request's deadline stands, for so long in all [s]. Longer
    than a cold start, where a pool may sleep; 0 if the deadline shall hold whatever the cause."""
    classes: tuple[PriorityClass, ...] = DEFAULT_CLASSES
    """Who goes first, and what each class is sure of."""
    starvation_every: int = 4
    """One of so many slots may go to somebody overdue before more urgent ones [1]; see `turn.py`. Raise it to
    give overdue work less; 1 serves the overdue before everybody else."""
    tenant_weights: Mapping[str, float] = field(default_factory=dict)
    """Turns of a tenant within its class, against 1 of others [1]."""

    def __post_init__(self) -> None:
        if self.requests_max < 0:
            raise ValueError(f"need requests_max >= 0 (0 lets nobody wait), got {self.requests_max}")
        for name in ("bytes_max", "service_seconds_max", "clock_stops_max"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"need {name} >= 0, got {getattr(self, name)}")
        if self.starvation_every < 1:
            raise ValueError(f"need starvation_every >= 1, got {self.starvation_every}")
        for tenant, weight in self.tenant_weights.items():
            if not 0 < weight < inf:
                raise ValueError(f"need a weight > 0 for tenant {tenant!r}, got {weight}")
        check_classes(self.classes)


class Admission:
    """Lets a request in, or names the reason why not."""

    def __init__(self, options: QueueOptions) -> None:
        self._options = options

    def over_bound(
        self, request: Request, work: float, service_time_mean: float, queue: CentralQueue
    ) -> DropReason | None:
        """Return which bound keeps `request` from waiting in `queue`, or None if none does.

        Parameters
        ----------
        request : Request
            At the door; no slot is free for it.
        work, service_time_mean : float
            Its predicted service time, and what to take for those of whom nothing was predicted [s].
        queue : CentralQueue
            Whole, and of its class, held to the share of the class.
        """
        options, line = self._options, queue.lines[request.priority_class]
        share = line.options.queue_share
        if queue.waiting >= options.requests_max or line.waiting >= share * options.requests_max:
            return DropReason.QUEUE_FULL
        body = request.body_bytes
        if queue.bytes + body > options.bytes_max or line.waiting_bytes + body > share * options.bytes_max:
            return DropReason.QUEUE_BYTES_FULL
        if options.service_seconds_max < inf and self._seconds_over(line, work, service_time_mean, queue):
            return DropReason.QUEUE_SECONDS_FULL
        return None

    def too_late(self, request: Request, wait: PredictedWait, now: float) -> float:
        """Return by how much `request` would miss its deadline [s]; 0 if it would not."""
        return max(0.0, now + wait.mean + LATE_BY * wait.deviation - request.deadline)

    def _seconds_over(
        self, line: ClassLine, work: float, service_time_mean: float, queue: CentralQueue
    ) -> bool:
        most = self._options.service_seconds_max
        waiting = sum(each.work(service_time_mean) for each in queue.lines.values())
        own = line.work(service_time_mean)
        return waiting + work > most or own + work > line.options.queue_share * most


def wait_behind(waiting: int, servers: int, service_time_mean: float) -> float:
    """Return the mean wait of an arrival that finds every server busy and `waiting` requests before it.

    Parameters
    ----------
    waiting : int
        n >= 0, those who are served before it [requests].
    servers : int
        c >= 1 slots, all busy.
    service_time_mean : float
        E[S] >= 0 [s].

    Returns
    -------
    float
        W = (n + 1) E[S] / c [s].

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    A fluid estimate: c busy servers complete c / E[S] requests a second, and n + 1 must complete before
    this one starts. Exact in the mean for exponential service (Erlang's M/M/c given the state on arrival).
    For less variable service it errs on the long side, by less than E[S] / c.

    Examples
    --------
    >>> wait_behind(waiting=7, servers=4, service_time_mean=10.0)
    20.0
    """
    if waiting < 0 or servers < 1 or not service_time_mean >= 0:
        raise ValueError(
            "need waiting >= 0, servers >= 1, service_time_mean >= 0, "
            f"got {waiting}, {servers}, {service_time_mean}"
        )
    return (waiting + 1) * service_time_mean / servers
