"""Tells a client that asked for it where its request stands in the queue, while it waits and at the end.

While it waits, informational answers (102) carry the place and the expected start; the final answer carries
what was said first, so that a client that skips informational answers learns it too.

    X-Queue-Position: 3          requests that are served before it
    X-Estimated-Start: 12.5      seconds until it gets its slot, by the queueing model
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from autoscaler.dispatch.predicted_wait import PredictedWait
from autoscaler.proxy.conversation import Conversation
from autoscaler.proxy.door import Route
from autoscaler.proxy.execution import Execution

_INTERVAL = 1.0
"""It is told again no sooner than this [s], and only if the place has changed."""

_POSITION, _START = "X-Queue-Position", "X-Estimated-Start"


@contextmanager
def queue_info_told(conversation: Conversation, route: Route, execution: Execution) -> Iterator[None]:
    """Tell the client while it waits."""
    telling = asyncio.create_task(_tell(conversation, route, execution))
    try:
        yield
    finally:
        telling.cancel()


async def _tell(conversation: Conversation, route: Route, execution: Execution) -> None:
    told: int | None = None
    while True:
        outlook = route.drive.outlook(execution.request)
        if outlook is not None and outlook.before != told:
            if told is None:
                conversation.notes.extend(_fields(outlook))
            told = outlook.before
            lines = "".join(f"{name}: {value}\r\n" for name, value in _fields(outlook).items())
            await conversation.say_between(f"HTTP/1.1 102 Processing\r\n{lines}\r\n".encode())
        await asyncio.sleep(_INTERVAL)


def _fields(outlook: PredictedWait) -> dict[str, str]:
    return {_POSITION: str(outlook.before), _START: f"{outlook.mean:.3f}"}
