"""Replicas that are starting, as whoever runs them says, and which of them may be counted on."""

from collections import deque
from dataclasses import replace

from autoscaler.remote_fleet.report import FleetReport


class ToldStarts:
    """Believes what is said of starts for a while: one that was said to be starting for too long is overdue.

    Nobody says which one it is, so the oldest is taken to be the next that gets ready.

    Parameters
    ----------
    patience : float
        How long a start may be told of [s].
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._since: deque[float] = deque()
        self._listed: set[str] = set()

    def judge(self, report: FleetReport, now: float) -> FleetReport:
        """Return what is told at `now` [s], with starts that take too long as overdue."""
        listed = {member.id for member in report.members}
        arrived, self._listed = len(listed - self._listed), listed
        if report.starting is None:
            self._since.clear()
            return report
        for _ in range(min(arrived, len(self._since))):
            self._since.popleft()
        while len(self._since) > report.starting:
            self._since.pop()
        self._since.extend([now] * (report.starting - len(self._since)))
        starting = sum(now - since < self._patience for since in self._since)
        return replace(report, starting=starting, overdue=report.overdue + len(self._since) - starting)
