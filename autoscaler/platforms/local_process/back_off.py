"""How long to wait before a failed replica is started again, and when a silent one counts as failed."""


class BackOff:
    """Doubles the pause with every failure, up to a limit; forgets them once a replica was ready for long.

    Parameters
    ----------
    initial, maximum : float
        First and longest pause [s]. `maximum` is also how long a replica must have been ready for its
        failures to be forgotten: one that lives shorter than its pause is no better than before.
    """

    def __init__(self, initial: float, maximum: float) -> None:
        self._initial, self._maximum = initial, maximum
        self._pause = initial

    def after_failure(self, ready_for: float) -> float:
        """Return the pause [s] before the next start, after a failure `ready_for` [s] after readiness."""
        if ready_for >= self._maximum:
            self._pause = self._initial
        pause, self._pause = self._pause, min(2 * self._pause, self._maximum)
        return pause


class Silence:
    """Judges by the probes of a ready replica whether it hangs.

    An idle one has no excuse, and hangs after some failed probes in a row. One that holds requests may be
    computing, with no thread left for probes: it hangs only after a long time without a single answer.

    Parameters
    ----------
    probe_failures : int
        Failed probes in a row that condemn an idle replica [1].
    hang_timeout : float
        Silence that condemns any replica [s].
    now : float
        When it last answered [s, monotonic].
    """

    def __init__(self, probe_failures: int, hang_timeout: float, now: float) -> None:
        self._failures_max, self._timeout = probe_failures, hang_timeout
        self._failures, self._heard_at = 0, now

    def hangs(self, answered: bool, busy: int, now: float) -> bool:
        """Take in one probe at `now` [s], of a replica with `busy` slots in use; True if it hangs."""
        if answered:
            self._failures, self._heard_at = 0, now
            return False
        # A failed probe of a busy replica proves nothing, so the count of an idle one begins afterwards.
        self._failures = 0 if busy else self._failures + 1
        return self._failures >= self._failures_max or now - self._heard_at >= self._timeout
