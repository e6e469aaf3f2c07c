"""Has a pool decided on at once when a request comes and finds no replica, instead of at the next tick."""

from collections.abc import Callable

from autoscaler.domain import DropReason, Outcome, Request, TokenUse


class Waker:
    """Tells of each arrival; a `ports.RequestListener`, of pools that may sleep.

    Parameters
    ----------
    wake : callable
        Called with each arrival; finds out itself whether there is anybody to be woken.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def arrived(self, request: Request, now: float) -> None:
        """Wake the pool if it sleeps."""
        self._wake()

    def started(self, request: Request, now: float, slots: int = 1) -> None:
        """Do nothing."""

    def slot_freed(self, service_time: float, now: float, slots: int = 1) -> None:
        """Do nothing."""

    def returned(self, request: Request, now: float, slots: int = 1) -> None:
        """Do nothing."""

    def ended(self, request: Request, outcome: Outcome, now: float, reason: DropReason | None = None) -> None:
        """Do nothing."""

    def answered(self, request: Request, use: TokenUse, now: float) -> None:
        """Do nothing."""
