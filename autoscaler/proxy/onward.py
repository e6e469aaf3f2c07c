"""What a replica gets to see of a request."""

import re
from functools import cache

from aiohttp import hdrs, web
from multidict import CIMultiDict

from autoscaler.domain.value import value
from autoscaler.proxy.answers import Refusal, Refused
from autoscaler.proxy.body import RequestBody
from autoscaler.proxy.head_check import asks_for_websocket
from autoscaler.proxy.headers import REQUEST_FIELDS_REPLACED, BadHead, end_to_end, origin_form
from autoscaler.proxy.wishes import OWN_FIELDS

_SHORT = 64 * 1024
"""A longer body is not sent twice [bytes]."""

_ASKS_FOR_STREAM = re.compile(rb'"stream"\s*:\s*true')

REQUEST_ID = "X-Request-Id"


@value
class Onward:
    """A request as it is sent on."""

    method: str
    target: str
    headers: CIMultiDict[str]
    body: RequestBody
    upgrade: bool = False
    """Whether it asks for a WebSocket."""

    @property
    def may_run_twice(self) -> bool:
        """Whether a copy may run at the same time: it is short, here in full, and asks for no stream."""
        body = self.body
        if self.upgrade or not body.complete or body.spooled > _SHORT:
            return False
        return _ASKS_FOR_STREAM.search(body.held()) is None


def target_of(request: web.BaseRequest) -> str:
    """Return path and query; raises `Refused` if there are none here."""
    try:
        return origin_form(request.raw_path, request.headers.get(hdrs.HOST))
    except BadHead as bad:
        raise Refused(_cannot_be_passed_on(bad)) from bad


def onward_of(
    request: web.BaseRequest, target: str, body: RequestBody, own_id: str, own_names: frozenset[str]
) -> Onward:
    """Return what is sent on: without the fields in `own_names`, with `own_id`; raises `Refused`."""
    try:
        headers = end_to_end(request.raw_headers, without=_left_out(own_names))
    except BadHead as bad:
        raise Refused(_cannot_be_passed_on(bad)) from bad
    if body.declared is not None:
        headers[hdrs.CONTENT_LENGTH] = str(body.declared)
    if headers.get(REQUEST_ID) != own_id:
        headers[REQUEST_ID] = own_id
    return Onward(request.method, target, headers, body, upgrade=asks_for_websocket(request))


@cache
def _left_out(own_names: frozenset[str]) -> frozenset[bytes]:
    """Return the names of the fields that end here; `own_names` are of the configuration, so they are few."""
    return REQUEST_FIELDS_REPLACED | OWN_FIELDS | {name.encode() for name in own_names}


def _cannot_be_passed_on(bad: BadHead) -> Refusal:
    return Refusal(400, "bad_request", f"The request cannot be passed on: {bad}.")
