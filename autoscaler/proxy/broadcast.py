"""A request that concerns every replica, such as the abortion of another one, is sent to all of them.

It says by an id, in its body, what it is about, and only the replica that knows the id has anything to do.
Which one that is nobody can tell without reading bodies; the others answer that they do not know it. So all
are asked, without slots, for who aborts wants to free one; the best answer is passed on.
"""

import asyncio
from contextlib import suppress

from aiohttp import web
from multidict import CIMultiDict

from autoscaler.ports import Replica
from autoscaler.proxy.answers import Refusal, Refused
from autoscaler.proxy.call import CallBroke
from autoscaler.proxy.conversation import Conversation
from autoscaler.proxy.door import Route
from autoscaler.proxy.onward import Onward

_PATIENCE = 10.0
"""A replica may take so long for a control call [s]."""

_ANSWER_MAX = 1024 * 1024
"""More of an answer to a control call is not read [bytes]."""

_NOBODY = Refusal(503, "no_capacity", "No replica is ready; there is nobody to tell.", retry_after=5.0)
_NO_ANSWER = Refusal(502, "upstream_reset", "No replica answered.", "maybe", proxy_reason="reset")


async def broadcast(conversation: Conversation, onward: Onward) -> web.Response:
    """Send the request to every ready replica; answer with the best that one of them said."""
    door, field = conversation.door, conversation.request.headers.get
    routes = door.routes(conversation.path)  # a control call says no model, so all that share the prefix
    allowed = door.gate.allowed(field, [route.drive.name for route in routes])
    asked = [
        (route, replica)
        for route in routes
        if route.drive.name in allowed
        for replica in route.drive.ready_replicas()
    ]
    if not asked:
        raise Refused(_NOBODY)
    if not onward.body.complete:
        raise Refused(Refusal(413, "body_too_large", "The body of a control call is too large."))
    answers = await asyncio.gather(*(_ask(route, onward, replica) for route, replica in asked))
    said = [answer for answer in answers if answer is not None]
    if not said:
        raise Refused(_NO_ANSWER)
    status, headers, body = min(said, key=lambda answer: answer[0])
    headers.popall("Content-Length", None)
    headers.extend(conversation.story())
    return web.Response(status=status, headers=headers, body=body)


async def _ask(route: Route, onward: Onward, replica: Replica) -> tuple[int, CIMultiDict[str], bytes] | None:
    with suppress(CallBroke, TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            call = await route.upstream.call(
                onward.method, replica, onward.target, onward.headers, onward.body, in_slot=False
            )
            try:
                body = b""
                while not call.whole and len(body) < _ANSWER_MAX:
                    body += await call.next_piece()
                return call.status, call.headers, body
            finally:
                call.end()
    return None
