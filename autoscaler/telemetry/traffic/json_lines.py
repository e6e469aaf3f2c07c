"""JSON objects, one a line: logs of nginx, Envoy, Traefik and applications, and answers of OpenAI's API.

Keys are known by their names, see `field_names`; those inside `usage` count as the object's own.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from autoscaler.telemetry.traffic.faults import LineUnusable
from autoscaler.telemetry.traffic.field_names import RequestFields, count_fields, request_fields
from autoscaler.telemetry.traffic.form import Wanted
from autoscaler.telemetry.traffic.named_requests import NamedRequests

_KINDS_MAX = 1000
"""Kinds of objects whose keys are remembered."""
_DECODER = msgspec.json.Decoder()


class JsonLines(NamedRequests):
    """Takes JSON objects, one a line."""

    name = "JSON lines"

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(wanted)
        self._kinds: dict[tuple[str, ...], RequestFields | None] = {}

    @staticmethod
    def fits(line: str) -> bool:
        """Whether `line` is a JSON object of a request, with a time of arrival."""
        try:
            return is_request(_DECODER.decode(line))
        except (ValueError, RecursionError):
            return False

    def take(self, number: int, line: str) -> None:
        """Take in a line; raises LineUnusable if it is no object or tells no time."""
        try:
            fields = _DECODER.decode(line)
        except (ValueError, RecursionError):
            raise LineUnusable("no JSON") from None
        self.take_fields(number, line, fields)

    def take_fields(self, number: int, line: str, fields: Any) -> None:
        """Take in what a line holds."""
        if not isinstance(fields, dict):
            raise LineUnusable("no JSON object")
        fields = _flat(fields)
        keys = tuple(fields)
        if keys not in self._kinds and len(self._kinds) < _KINDS_MAX:
            self._kinds[keys] = request_fields(keys)
        names = self._kinds[keys] if keys in self._kinds else request_fields(keys)
        if names is None:
            raise LineUnusable("no time of arrival")
        self.add(number, line, fields, names)


def is_request(value: object) -> bool:
    """Whether a JSON value is an object of a request: it has a time, and is no bucket or count of several."""
    if not isinstance(value, dict) or "results" in value or count_fields(list(value)):
        return False
    if {"log", "stream"} <= value.keys():  # a container's log, whose lines are inside
        return False
    return request_fields(list(_flat(value))) is not None


def _flat(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    usage = fields.get("usage")
    return {**fields, **usage} if isinstance(usage, dict) else fields
