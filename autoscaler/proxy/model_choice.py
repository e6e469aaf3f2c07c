"""Which of several pools with the same prefix gets a request: the one that knows the model of its body.

The body is read ahead as far as every body is, and the model looked for in what is here; so it must stand
within that. Names of the configuration go before those that servers list, and the pools in their order. For
a name that nobody knows the servers are asked once more: an adapter may just have been loaded.
"""

import asyncio
from collections.abc import Iterable, Sequence

from autoscaler.proxy.answers import Refusal, Refused
from autoscaler.proxy.body import RequestBody
from autoscaler.proxy.conversation import Conversation
from autoscaler.proxy.door import Route
from autoscaler.proxy.json_member import Missing, text_member

_LONG = 64 * 1024
"""A longer body is looked through on a thread [bytes]."""
_ASKED_ANEW_AFTER = 1.0
"""For names that nobody knows the servers are asked no more often than this [s]."""
_SHOWN_MAX, _NAME_SHOWN = 20, 100
"""So many names are shown [1], and so much of the one that was asked for [characters]."""

_WHY_NOT = {
    Missing.NOT_THERE: "The body does not say which model it is for",
    Missing.NOT_TEXT: 'The body is no JSON object with a text as "model"',
    Missing.NOT_YET: 'No "model" stands in what is read ahead of the body; write it first',
    Missing.TOO_DEEP: 'The "model" stands behind too much else in the body; write it first',
}


async def chosen_by_model(conversation: Conversation, routes: Sequence[Route], body: RequestBody) -> Route:
    """Return the way to the pool that knows the model; raises `Refused` with 400, 401 or 404."""
    allowed = conversation.door.gate.allowed(
        conversation.request.headers.get, [route.drive.name for route in routes]
    )
    known = [route for route in routes if route.drive.name in allowed]
    if any(conversation.path in route.options.broadcast for route in routes):
        return (known or routes)[0]
    model = await _model_of(conversation, body)
    if isinstance(model, Missing):
        raise Refused(Refusal(400, "model_missing", f"{_WHY_NOT[model]}; there is {_shown(known)}."))
    found = _found(routes, model)
    if found is None:
        await asyncio.gather(*(route.models.look(_ASKED_ANEW_AFTER) for route in routes if route.models))
        found = _found(routes, model)
    if found is None:
        raise Refused(unknown_model(model, known))
    return found


def unknown_model(model: str, routes: Iterable[Route]) -> Refusal:
    """Return the answer for a model that none of `routes` leads to."""
    text = f"The model {model[:_NAME_SHOWN]!r} does not exist here; there is {_shown(routes)}."
    return Refusal(404, "model_not_found", text)


async def _model_of(conversation: Conversation, body: RequestBody) -> str | Missing:
    if conversation.expects_continue and not body.complete:
        await conversation.say_continue()
        conversation.expects_continue = False
    await body.spool()
    held = body.held()
    if len(held) > _LONG:
        found = await asyncio.to_thread(text_member, held, "model")
    else:
        found = text_member(held, "model")
    return Missing.NOT_THERE if found is Missing.NOT_YET and body.complete else found


def _found(routes: Sequence[Route], model: str) -> Route | None:
    for route in routes:
        if route.models is not None and model in route.models.named:
            return route
    return next((route for route in routes if route.models and model in route.models.names), None)


def _shown(routes: Iterable[Route]) -> str:
    names = [name for route in routes if route.models is not None for name in route.models.names]
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return (", ".join(names[:_SHOWN_MAX]) or "none") + more
