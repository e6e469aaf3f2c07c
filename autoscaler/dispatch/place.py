"""The place of one request in the queue."""

from dataclasses import dataclass

from autoscaler.domain import Request


@dataclass(slots=True, eq=False)
class Place:
    """One request that waits, and what the queue knows of it."""

    request: Request
    since: float
    """Its wait counts from here [s]."""
    expires_at: float
    """Its deadline, later by as long as its clock stood, or may stand [s]."""
    work: float = 0.0
    """Predicted time in its slot [s]; 0 if nobody can tell."""
    cost: float = 1.0
    """The same in mean services, for the turns of tenants [1]; 1 if nobody can tell."""
    stood: float = 0.0
    """So long its clock has stood so far [s]."""
    stands_since: float = 0.0
    """While the clocks stand: since when its own does [s]."""
