"""Events that were not delivered yet, in their order, kept on disk so that a restart goes on with them.

An event never changes once it is made: an attempt that may have arrived is repeated word for word, under the
same id, and the receiver does nothing twice. Ids are numbers in order, after a name that is drawn at each
start: an outbox that was lost, or could not be written, gives no id to another event that a receiver knows.
"""

import secrets
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import structlog

from autoscaler.kept_file import keep

EVENTS_MAX = 1000
"""More undelivered events than this are not kept; the oldest are given up, for newer ones replace them."""

EVENT_TYPE = "inference-autoscaler.desired-replicas.v1"

log = structlog.get_logger(__name__)


class ScaleEvent(msgspec.Struct, frozen=True):
    """One change of the number of replicas that are wanted."""

    id: str
    sequence: int
    time: str
    """RFC 3339, UTC."""
    desired: int
    previous: int | None
    """What was wanted before; None if this is the first event since the start of the program."""
    busy: dict[str, int]
    """Slots in use by replica when it was made: who is not in it, or has none, can go first."""

    def as_cloud_event(self, pool: str) -> bytes:
        """Return its CloudEvents 1.0 form, structured mode."""
        return msgspec.json.encode(
            {
                "specversion": "1.0",
                "id": self.id,
                "source": f"/inference-autoscaler/pools/{pool}",
                "type": EVENT_TYPE,
                "subject": pool,
                "time": self.time,
                "sequence": f"{self.sequence:020}",
                "datacontenttype": "application/json",
                "data": {
                    "pool": pool,
                    "desired": self.desired,
                    "previous": self.previous,
                    "busy": self.busy,
                },
            }
        )


class _Kept(msgspec.Struct):
    next_sequence: int
    events: list[ScaleEvent]


class Outbox:
    """The undelivered events of one pool.

    Parameters
    ----------
    path : Path
        Where they are kept.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        kept = _read(path) or _Kept(1, [])
        self._name, self._next = secrets.token_hex(4), kept.next_sequence
        self._events = deque(kept.events, maxlen=EVENTS_MAX)

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        return f"<Outbox waiting={len(self._events)} next={self._next}>"

    @property
    def first(self) -> ScaleEvent | None:
        """The event that is to be delivered next."""
        return self._events[0] if self._events else None

    def add(self, desired: int, previous: int | None, busy: Mapping[str, int], wall_time: float) -> None:
        """Append an event, made at `wall_time` [s since the epoch]."""
        if len(self._events) == EVENTS_MAX:
            log.warning("the oldest undelivered event is given up", desired=self._events[0].desired)
        time = (
            datetime.fromtimestamp(wall_time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        )
        event_id = f"{self._name}-{self._next}"
        in_use = {replica: slots for replica, slots in busy.items() if slots}
        self._events.append(ScaleEvent(event_id, self._next, time, desired, previous, in_use))
        self._next += 1
        self._keep()

    def remove(self, event: ScaleEvent) -> None:
        """It was delivered, or refused for good; nothing happens if it has been given up meanwhile."""
        if self._events and self._events[0].id == event.id:
            self._events.popleft()
            self._keep()

    def clear(self) -> None:
        """Give up all of them."""
        if self._events:
            self._events.clear()
            self._keep()

    def _keep(self) -> None:
        keep(self._path, msgspec.json.encode(_Kept(self._next, list(self._events))))


def _read(path: Path) -> _Kept | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Kept)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        log.warning("undelivered events cannot be read and are dropped", path=str(path), error=str(error))
        return None
