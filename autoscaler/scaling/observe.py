"""Facts of requests, one by one, become one `Observation` per control interval.

The request path reports what happens (`ports.RequestListener`); the control loop closes the interval.
Demand is counted at the door, so that a saturated fleet cannot make it look small. Busy slots are
integrated over time between the facts, so that no sampling can miss them.
"""

from autoscaler.domain import DropReason, Observation, Outcome, Request, TokenUse


class IntervalObserver:
    """Counts one pool's facts since the last `close`. Hears `ports.RequestListener`."""

    def __init__(self, now: float) -> None:
        self._opened_at = now
        self._busy = 0
        self._busy_since = now
        self._clear()

    def _clear(self) -> None:
        self._arrivals = self._rejected = self._completions = 0
        self._service_time_sum = self._service_time_square_sum = 0.0
        self._busy_time = 0.0
        self._tokens_in = self._tokens_out = 0

    def arrived(self, request: Request, now: float) -> None:
        """A request is at the door."""
        self._arrivals += 1

    def started(self, request: Request, now: float, slots: int = 1) -> None:
        """It got a slot, or several: one for each of its rows, where replicas serve in batches."""
        self._integrate(now)
        self._busy += slots

    def slot_freed(self, service_time: float, now: float, slots: int = 1) -> None:
        """Slots are free again after `service_time` [s]; two for a second are as much work as one for two."""
        self._integrate(now)
        self._busy -= slots
        self._completions += 1
        work = service_time * slots
        self._service_time_sum += work
        self._service_time_square_sum += work * work

    def returned(self, request: Request, now: float, slots: int = 1) -> None:
        """It gave its slot back unserved: no service has ended."""
        self._integrate(now)
        self._busy -= slots

    def ended(self, request: Request, outcome: Outcome, now: float, reason: DropReason | None = None) -> None:
        """It ended; of interest here only if it was refused at the door."""
        if outcome is Outcome.REJECTED:
            self._rejected += 1

    def answered(self, request: Request, use: TokenUse, now: float) -> None:
        """Its answer took so many tokens."""
        self._tokens_in += use.tokens_in
        self._tokens_out += use.tokens_out

    def close(
        self, now: float, wall_time: float, in_flight: int, queue_depth: int, oldest_wait: float
    ) -> Observation:
        """End the interval at `now` [s] and begin the next one.

        Raises
        ------
        ValueError
            If no time has passed since the last one.
        """
        interval = now - self._opened_at
        if interval <= 0:
            raise ValueError(f"an interval needs length, got {interval} s")
        self._integrate(now)
        observation = Observation(
            interval=interval,
            arrivals=self._arrivals,
            completions=self._completions,
            service_time_sum=self._service_time_sum,
            service_time_square_sum=self._service_time_square_sum,
            busy_slots_mean=self._busy_time / interval,
            in_flight=in_flight,
            queue_depth=queue_depth,
            oldest_wait=oldest_wait,
            wall_time=wall_time,
            rejected=self._rejected,
            tokens_in=self._tokens_in,
            tokens_out=self._tokens_out,
        )
        self._opened_at = now
        self._clear()
        return observation

    def _integrate(self, now: float) -> None:
        self._busy_time += self._busy * (now - self._busy_since)
        self._busy_since = now
