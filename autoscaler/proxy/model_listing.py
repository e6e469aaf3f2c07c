"""The models of all pools as one list, answered here: `GET /v1/models`, and one of them by its name.

It takes no slot, so it is answered also when all are busy or no replica runs. What a server says of its
models is passed on as it says it.
"""

from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import unquote

from aiohttp import hdrs, web

from autoscaler.proxy.answers import Refused
from autoscaler.proxy.conversation import Conversation
from autoscaler.proxy.door import LIST_OF_MODELS, Route
from autoscaler.proxy.model_choice import unknown_model

_ONE = f"{LIST_OF_MODELS}/"


def models_listed(conversation: Conversation) -> web.Response | None:
    """Return the models that the client may use, or the one that its path names.

    None if the request is for something else, or if no model is known yet, so that a server must be asked.
    Raises `Refused` with 401 or 404.
    """
    path, door, request = conversation.path, conversation.door, conversation.request
    if request.method != hdrs.METH_GET or not (path == LIST_OF_MODELS or path.startswith(_ONE)):
        return None
    routes = door.routes_of_models()
    if not any(route.models and route.models.names for route in routes):
        return None
    allowed = door.gate.allowed(request.headers.get, [route.drive.name for route in routes])
    routes = tuple(route for route in routes if route.drive.name in allowed)
    entries = _entries(routes)
    if path == LIST_OF_MODELS:
        body = b'{"object":"list","data":[' + b",".join(entries.values()) + b"]}"
    else:
        name = unquote(path.removeprefix(_ONE))
        if name not in entries:
            raise Refused(unknown_model(name, routes))
        body = entries[name]
    response = web.Response(status=HTTPStatus.OK, body=body, content_type="application/json")
    response.headers.extend(conversation.story())
    if conversation.is_last:
        response.force_close()
    return response


def _entries(routes: Sequence[Route]) -> dict[str, bytes]:
    """Return what is said of each model, by its name; of one that several pools have, by the first."""
    entries: dict[str, bytes] = {}
    for route in routes:
        if route.models is not None:
            for name, said in route.models.entries().items():
                entries.setdefault(name, said)
    return entries
