"""What the drive remembers of each slot that is out: who has it, and what they are to be asked."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from autoscaler.domain import Request
from autoscaler.proxy.grant import Dropped, Grant


@dataclass(slots=True)
class Waiter:
    """A request that waits for a slot, and how its wait ended."""

    request: Request
    owner: "asyncio.Task[object] | None"
    ending: Grant | Dropped | None = None
    item: Any = None
    """What of it can be merged; only who merges knows what that is."""
    woken: "asyncio.Future[None] | None" = None
    """Is done when there is an ending; None while nobody has to wait for it."""
    came_from: str = ""
    """The pool that has handed it over; empty if none has."""
    is_elsewhere: bool = False
    """Whether it was handed over to the pool that stands in for this one."""


@dataclass(slots=True)
class SlotUse:
    """A slot in use."""

    grant: Grant
    owner: "asyncio.Task[object] | None"
    """When it is done, the slot must be free."""
    is_copy: bool = False
    """Whether it serves a second copy of a request: nothing of it is told to listeners."""
    given_up: bool = False
    """Whether the slot is free already, because its call lost to that of a copy; the request goes on."""
    stop: Callable[[], None] | None = None
    """Ends the call before its answer has begun, for a more urgent request."""
    item: Any = None
    """What of its request can be merged."""
    take_copy: Callable[[Grant], None] | None = None
    """Takes a second slot for the same request."""
    came_from: str = ""
    """The pool that has handed its request over; empty if none has."""
