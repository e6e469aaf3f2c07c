"""Continuous batching: a server that advances all its requests by one token each step.

Model: c replicas of `slots` slots each. With b requests in it, a replica makes a step in t(b) = alpha +
beta b, and each of them gets one token; a request needs `tokens_out` steps, and before its first one its
prompt is read in `prefill` seconds, during which the replica does nothing else. So a request costs a
replica tokens_out t(b) / b + prefill seconds of its time: less the fuller it is, which is what this
batching is for. Requests go to the replica with most free slots, and wait when none is free.

With n requests in all, spread evenly, they leave at rate mu(n), a number of the state only. For Poisson
arrivals the number present is then a birth-and-death chain with an explicit law; beyond the slots the rate
is constant, and the wait of those who wait is exponential. As long as nobody waits, the law depends on the
number of tokens only by its mean (a processor-sharing queue). With waiting it is exact for geometric
numbers of tokens; for others the wait of those who wait is scaled by (1 + SCV) / 2, after Allen and
Cunneen, for SCVs of 0 to 10. Simulated step by step, with more than 1 in 20 waiting, the time per token is
within 2 %, the mean wait within 40 % for geometric numbers of tokens, and for constant ones as long as
prompts take less than a tenth of a replica's time. From a fifth on, prompts that hold up all others make
waits with constant numbers two to three times as long as said here: see docs/queueing.md.

What a client sees of a step is averaged over the prompts read in between: `time_per_token` of n requests is
t(n / c) + prefill n / (c tokens_out). The gap at one given token may be longer by whole prompts.

Sources: Cohen, "The multiple phase service network with generalized processor sharing", Acta Informatica 12
(1979), for the insensitive law; the step line is how servers with continuous batching are measured.
"""

from dataclasses import dataclass

import numpy as np

from autoscaler.queueing.elementwise import Array, require
from autoscaler.queueing.peakedness import SCV_MAX

CHAIN_MAX = 2_000_000
"""Bound on slots of all replicas together."""


@dataclass(frozen=True, slots=True)
class StepLine:
    """How a replica spends its time on a request.

    Attributes
    ----------
    alpha, beta : float
        A step with b requests takes alpha + beta b; >= 0, not both 0 [s].
    tokens_out : float
        Mean tokens made for a request, >= 1 [tokens].
    prefill : float
        Mean time to read the prompt of a request, >= 0 [s]: tokens in / tokens a second.
    tokens_out_scv : float
        Variance / mean² of the tokens made for a request, in [0, 10] [1].
    """

    alpha: float
    beta: float
    tokens_out: float
    prefill: float = 0.0
    tokens_out_scv: float = 1.0

    def __post_init__(self) -> None:
        if min(self.alpha, self.beta, self.prefill) < 0 or self.alpha + self.beta <= 0:
            raise ValueError(
                f"need alpha, beta, prefill >= 0, not both of the first 0, "
                f"got {self.alpha}, {self.beta}, {self.prefill}"
            )
        if self.tokens_out < 1:
            raise ValueError(f"need tokens_out >= 1, got {self.tokens_out}")
        if not 0 <= self.tokens_out_scv <= SCV_MAX:
            raise ValueError(f"need 0 <= tokens_out_scv <= {SCV_MAX}, got {self.tokens_out_scv}")

    def time_per_token(self, requests: Array | float) -> Array:
        """Mean time between two tokens of a request in a replica with so many `requests` [s]."""
        b = np.asarray(requests, dtype=float)
        return np.asarray(self.alpha + self.beta * b + self.prefill * b / self.tokens_out)

    def throughput(self, requests: Array | float) -> Array:
        """Rate at which a replica with so many requests finishes them [1/s]."""
        b = np.asarray(requests, dtype=float)
        return np.asarray(b / (self.tokens_out * self.time_per_token(b)))


def slots_for_time_per_token(line: StepLine, time_per_token: float) -> int:
    """Return the most requests in a replica at which each still gets a token every `time_per_token` [s].

    0 if not even one request does.

    Examples
    --------
    >>> slots_for_time_per_token(StepLine(alpha=0.020, beta=0.001, tokens_out=200), time_per_token=0.050)
    30
    """
    require(time_per_token > 0, "time_per_token > 0", time_per_token)
    slope = line.beta + line.prefill / line.tokens_out
    spare = time_per_token - line.alpha
    if spare < 0:
        return 0
    require(slope > 0, "a step time that grows with the requests; else no number of slots is too many", slope)
    return int(np.floor(spare / slope * (1.0 + 1e-9)))


@dataclass(frozen=True, slots=True)
class ContinuousQueue:
    """Replicas with continuous batching, at rest. Above capacity waits are infinite and tails 1.

    Attributes
    ----------
    occupancy : float
        Busy slots / slots [1].
    requests_mean : float
        Requests in service in a replica, over time [1].
    probability_of_wait : float
        An arrival finds no free slot [1].
    wait_mean : float
        For a slot, over all requests [s].
    first_token_mean : float
        From arrival to the first token: wait, the step that is running, prompt, one step [s].
    time_per_token_mean : float
        Over all tokens [s].
    """

    occupancy: float
    requests_mean: float
    probability_of_wait: float
    wait_mean: float
    first_token_mean: float
    time_per_token_mean: float
    _wait_rate: float
    _prefill: float
    _found: Array
    _step: Array
    _running: Array

    def wait_tail(self, wait_seconds: float) -> float:
        """P(wait for a slot > wait_seconds >= 0)."""
        require(wait_seconds >= 0, "wait_seconds >= 0", wait_seconds)
        return self.probability_of_wait * float(np.exp(-self._wait_rate * wait_seconds))

    def first_token_tail(self, seconds: float) -> float:
        """P(time to the first token > seconds)."""
        if self.probability_of_wait >= 1.0:
            return 1.0
        # Who finds a free slot comes at any time of a running step; who waits, enters at the end of one.
        most = self._prefill + self._step[1:] + self._running
        late = np.where(
            self._running > 0, (most - seconds) / np.maximum(self._running, 1e-300), most > seconds
        )
        waited = self.wait_tail(max(seconds - self._prefill - float(self._step[-1]), 0.0))
        return float(self._found @ np.clip(late, 0.0, 1.0)) + waited

    def time_per_token_tail(self, seconds: float) -> float:
        """Fraction of the tokens that come more than `seconds` after the one before."""
        present = np.append(self._found, self.probability_of_wait)
        tokens = present * np.arange(len(present)) / self._step
        return float(tokens @ (self._step > seconds)) / float(tokens.sum())


def continuous_batching(replicas: int, slots: int, arrival_rate: float, line: StepLine) -> ContinuousQueue:
    """Return the queue of `replicas` with `slots` slots each.

    Parameters
    ----------
    replicas, slots : int
        >= 1 [1].
    arrival_rate : float
        > 0 [1/s].
    line : StepLine
        What a request costs.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> queue = continuous_batching(2, 32, arrival_rate=5.0, line=StepLine(0.020, 0.001, 200))
    >>> round(queue.requests_mean, 1), round(queue.time_per_token_mean, 4)
    (20.5, 0.041)
    """
    require(min(replicas, slots) >= 1, "replicas, slots >= 1", replicas, slots)
    require(arrival_rate > 0, "arrival_rate > 0", arrival_rate)
    places = replicas * slots
    require(places <= CHAIN_MAX, f"replicas * slots <= {CHAIN_MAX}", places)
    n = np.arange(places + 1)
    # Fewer requests than replicas are alone in theirs.
    inside, active = np.maximum(n / replicas, 1.0), np.minimum(n, replicas)
    step, leaving = line.time_per_token(inside), active * line.throughput(inside)
    capacity = float(leaving[-1])
    # The step that an arrival to n requests finds running, in the replica that it goes to [s].
    running = np.where(n[:-1] >= replicas, step[:-1], 0.0)
    if arrival_rate >= capacity:
        full, none = float(step[-1]), np.zeros(places)
        return ContinuousQueue(1.0, slots, 1.0, np.inf, np.inf, full, 0.0, line.prefill, none, step, running)
    weight = np.concatenate([[0.0], np.cumsum(np.log(arrival_rate / leaving[1:]))])
    weight = np.exp(weight - weight.max())
    # All states with every slot busy, however many wait, are a geometric series.
    weight[-1] *= capacity / (capacity - arrival_rate)
    law = weight / weight.sum()
    waits, rate = float(law[-1]), (capacity - arrival_rate) * 2.0 / (1.0 + line.tokens_out_scv)
    tokens = law * n / step
    first = line.prefill + float(law[:-1] @ (step[1:] + running / 2)) + waits * (1.0 / rate + float(step[-1]))
    return ContinuousQueue(
        occupancy=float(law @ n) / places,
        requests_mean=float(law @ n) / replicas,
        probability_of_wait=waits,
        wait_mean=waits / rate,
        first_token_mean=first,
        time_per_token_mean=float(tokens @ step / tokens.sum()),
        _wait_rate=rate,
        _prefill=line.prefill,
        _found=law[:-1],
        _step=step,
        _running=running,
    )
