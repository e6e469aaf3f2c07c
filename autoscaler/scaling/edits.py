"""Changes of the number of replicas that somebody else made: noticed, and left for a while if so set."""

from dataclasses import dataclass

from autoscaler.domain import Fleet


@dataclass(frozen=True, slots=True)
class Edit:
    """Somebody else asked for another number than was asked for here."""

    here: int
    elsewhere: int
    stands: bool
    """Whether it is left so for now."""


class EditWatch:
    """Follows what others ask for; `update` takes in one step.

    Parameters
    ----------
    hold : float
        What somebody else has asked for stands for so long [s]; 0 not at all.
    """

    def __init__(self, hold: float) -> None:
        self._hold = hold
        self._here = self._elsewhere = 0
        self._until = float("-inf")

    def update(self, fleet: Fleet, now: float) -> Edit | None:
        """Return the change that is new at `now` [s], or still stands; None if there is none."""
        if fleet.edited is not None and fleet.asked is not None and fleet.edited != fleet.asked:
            self._here, self._elsewhere, self._until = fleet.asked, fleet.edited, now + self._hold
            return Edit(self._here, self._elsewhere, stands=self._hold > 0)
        if now < self._until:
            return Edit(self._here, self._elsewhere, stands=True)
        return None
