"""The platform of a pool, asked what there is, and told what was decided by the one that leads.

Who does not lead asks as well, and tells nothing. When the lead comes to it, another has changed the fleet
since it looked, perhaps. So it looks anew before it tells anything, and until its next decision it carries
out only an order for more that nobody else has carried out: a number of before would take back what is new.
The decision that follows may be made before the platform shows that order, so it takes nothing of it back.
"""

from dataclasses import replace

import structlog

from autoscaler.domain import Decision, Fleet, Reason, ScaleTo
from autoscaler.errors import PlatformUnavailable
from autoscaler.ports import ActsLater, Leadership, LooksAnew, Platform, StandsBy

log = structlog.get_logger(__name__)


class Actuation:
    """What passes between one pool and its platform.

    Parameters
    ----------
    pool : str
        Its name.
    platform : Platform
        Where its replicas live.
    wanted : bool
        Whether decisions are carried out at all.
    leadership : Leadership or None
        Says who tells the platform; None: nobody else could.
    """

    def __init__(self, pool: str, platform: Platform, *, wanted: bool, leadership: Leadership | None) -> None:
        self._pool, self._platform = pool, platform
        self._wanted, self._leadership = wanted, leadership
        self._led: bool | None = None  # nobody has looked yet
        self._has_seen_as_leader = False
        self._asked: int | None = None
        self._rise: Decision | None = None
        self._ordered_between = 0
        self._unasked: str | None = None
        self._refused: str | None = None
        self.fleet: Fleet | None = None
        """As last seen; None before the first time."""
        if self.can_come_to_lead and isinstance(platform, ActsLater):
            platform.act_while(lambda: self._leads)

    @property
    def can_come_to_lead(self) -> bool:
        """Whether another program might lead now, and this one later."""
        return self._leadership is not None

    @property
    def acts(self) -> bool:
        """Whether what is decided is carried out, and from here."""
        return self._wanted and self._leads

    @property
    def trouble(self) -> str | None:
        """Why the platform could not be asked last, or refused, for a person; None if it did neither."""
        return self._unasked or self._refused

    @property
    def what_becomes_of_it(self) -> str:
        """Say what becomes of a decision, for the log."""
        if not self._wanted:
            return "recommended, carried out by nobody"
        return "scale" if self._leads else "decided; whoever leads carries out its own"

    async def look(self) -> bool:
        """Ask the platform what there is, anew if the lead has come since; whether it answered."""
        self._has_come_to_lead()  # so that what is looked at anew stands until the lead has gone
        led = self._leads
        try:
            if self.acts and self._may_be_out_of_date and isinstance(self._platform, LooksAnew):
                await self._platform.look_anew()
            self.fleet = await self._platform.fleet()
        except PlatformUnavailable as error:
            log.warning(
                "platform cannot be asked; the fleet is left as it is", pool=self._pool, error=str(error)
            )
            self._unasked = str(error)
            return False
        self._unasked = None
        self._has_seen_as_leader = led and self._leads
        return True

    def as_asked(self, fleet: Fleet, *, is_seen: bool) -> Fleet:
        """Say what it was asked for from here; nothing, if that was nothing, or if it is not seen now."""
        self._has_come_to_lead()
        if self._asked is None or not is_seen:
            return replace(fleet, asked=None, edited=None)
        return replace(fleet, asked=self._asked)

    async def carry_out(self, decision: Decision, *, is_seen: bool) -> None:
        """Tell the platform, if this program leads; nothing that was decided on a fleet nobody sees."""
        is_told = self._wanted and is_seen and _says_something(decision)
        self._rise = decision if is_told and _is_rise(decision) else None
        at_least, self._ordered_between = self._ordered_between, 0
        if is_told and self._leads and self._has_seen_as_leader and decision.desired >= at_least:
            await self._tell(decision)

    async def take_the_lead(self) -> None:
        """If the lead has come to this program, order what it decided last, if that is more than there is."""
        if not self._has_come_to_lead() or self._rise is None:
            return
        await self.look()
        if self._has_seen_as_leader and self.fleet is not None and self._rise.desired > self.fleet.ordered:
            self._ordered_between = self._rise.desired
            await self._tell(self._rise)

    @property
    def _leads(self) -> bool:
        return self._leadership is None or self._leadership.is_leader

    @property
    def _may_be_out_of_date(self) -> bool:
        """Whether another may have changed the fleet since it was looked at."""
        return self.can_come_to_lead and not self._has_seen_as_leader

    def _has_come_to_lead(self) -> bool:
        """Whether it leads, and did not when last asked.

        Who does not lead has asked for nothing. What an earlier run of this program has left to be done is
        out of date, for another may have led since.
        """
        led, leads = self._led, self._leads
        self._led = leads
        is_lost = not leads and (led or self._asked is not None)
        begins = led is None and self.can_come_to_lead and self._wanted
        if (is_lost or begins) and isinstance(self._platform, StandsBy):
            self._platform.stand_by()
        if not leads:
            self._asked = self._refused = None
            self._has_seen_as_leader = False
        return leads and not led

    async def _tell(self, decision: Decision) -> None:
        try:
            await self._platform.scale_to(decision.desired)
            self._asked, self._refused = decision.desired, None
        except PlatformUnavailable as error:
            log.warning("platform refused; asked again next interval", pool=self._pool, error=str(error))
            self._refused = str(error)


def _is_rise(decision: Decision) -> bool:
    return isinstance(decision, ScaleTo) and decision.desired > decision.current


def _says_something(decision: Decision) -> bool:
    """Whether it says what shall be, and does not just keep what seems to be there.

    The fleet may be seen wrongly just when the demand is not seen either: told to the platform, a number that
    is out of date would change what shall stay.
    """
    return decision.reason is not Reason.METRICS_LOST
