"""Continuous batching: every step gives each request in the replica one token.

A request needs as many steps as it has tokens to be made. With b requests in it a replica needs
t(b) = alpha + beta b a step, and the time that prompts are read is spread over the steps of all, as in
`autoscaler.queueing.continuous_batching`, whose line of steps this is. Steps are not followed one by one: all
requests advance at 1 / t(b) tokens a second, which changes when one comes or leaves. Everybody in a replica
has then advanced equally far since the replica began, so a request leaves when that common count has grown
by its tokens, and the next to leave is the one with the least such mark. (Processor sharing, with the
virtual time of Parekh and Gallager, "A generalized processor sharing approach to flow control", IEEE/ACM
Transactions on Networking 1, 1993.)

Occupancy is requests in service / slots: the share of the largest concurrency that is used. Service times
grow with it, so twice the requests is less than twice the throughput.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from autoscaler.dispatch.slots import Lease
from autoscaler.queueing.continuous_batching import StepLine
from autoscaler.replay.replicas import SimulatedReplica
from autoscaler.replay.service.law import Engine


@dataclass(slots=True)
class _Batch:
    """Of one replica: who is in it, until which count of tokens, and how far all have come."""

    replica: SimulatedReplica
    since: float
    tokens: float = 0.0
    leaving: list[tuple[float, int, Lease]] = field(default_factory=list)
    changes: int = 0


class ContinuousBatching:
    """Shares each replica's steps among all that it holds.

    Parameters
    ----------
    tokens : sequence of float
        To be made, by number of the request [tokens].
    line : StepLine
        Time of a step by the number of requests; that of prompts included [s].
    slots : int
        The largest concurrency [requests].
    """

    def __init__(self, tokens: Sequence[float], line: StepLine, slots: int, engine: Engine) -> None:
        self._tokens = tokens
        self._times_per_token = [float(line.time_per_token(b)) for b in range(slots + 1)]
        self._slots = slots
        self._engine = engine
        self._batches: dict[str, _Batch] = {}

    def begin(self, lease: Lease, replica: SimulatedReplica, now: float) -> None:
        """Join; all others get slower from now on."""
        batch = self._batches.get(replica.id)
        if batch is None:
            batch = self._batches[replica.id] = _Batch(replica, now)
        self._advance(batch, now)
        heappush(batch.leaving, (batch.tokens + self._tokens[int(lease.request_id)], lease.number, lease))
        self._schedule(batch, now)

    def slots(self, replica: SimulatedReplica) -> int:
        """Always the same."""
        return self._slots

    def forget(self, replica: SimulatedReplica) -> None:
        """Nobody leaves it any more."""
        batch = self._batches.pop(replica.id, None)
        if batch is not None:
            batch.changes += 1

    def _advance(self, batch: _Batch, now: float) -> None:
        """Give everybody the tokens that were made since the last change."""
        if batch.leaving:
            worked = batch.replica.work_done(batch.since, now)
            batch.tokens += worked / self._times_per_token[len(batch.leaving)]
        batch.since = now

    def _schedule(self, batch: _Batch, now: float) -> None:
        """Enter who leaves next, in the place of whoever was entered before."""
        batch.changes += 1
        if batch.leaving:
            missing = max(0.0, batch.leaving[0][0] - batch.tokens)
            work = missing * self._times_per_token[len(batch.leaving)]
            self._engine.at(batch.replica.ready_to_do(work, now), self._leave, (batch, batch.changes))

    def _leave(self, entered: tuple[_Batch, int], now: float) -> None:
        batch, changes = entered
        if changes != batch.changes:
            return
        batch.tokens, batch.since = batch.leaving[0][0], now
        ended = []
        while batch.leaving and batch.leaving[0][0] <= batch.tokens:
            ended.append(heappop(batch.leaving)[2])
        self._schedule(batch, now)
        for lease in ended:
            self._engine.end(lease, now)
