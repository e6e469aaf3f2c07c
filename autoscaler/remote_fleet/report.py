"""A fleet as JSON: what a web hook's receiver and a status command may answer.

    {"ready": ["http://10.0.0.5:8000", {"url": "http://10.0.0.6:8000", "id": "job-17"}],
     "starting": 1, "draining": ["http://10.0.0.4:8000"]}

`ready` is required: who is not in it is not used. `starting` says how many come; if it is left out, they are
counted from what was asked for. Replicas in `draining` finish what they hold. Unknown keys are ignored.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from autoscaler.remote_fleet.member import Member, names_a_host

REPORT_BYTES_MAX = 4 * 2**20
"""A longer report is not read [bytes]; ten thousand replicas take about one megabyte."""

_MEMBERS_MAX = 10_000


class _Replica(msgspec.Struct):
    url: str
    id: str | None = None
    grpc_target: str | None = None


class _Report(msgspec.Struct):
    ready: list[str | _Replica]
    starting: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    draining: list[str | _Replica] = []


@dataclass(frozen=True, slots=True)
class FleetReport:
    """What whoever runs the replicas says of them."""

    members: tuple[Member, ...]
    """Ready and draining ones."""
    starting: int | None = None
    """Replicas that come [1]; None if that is not said."""
    overdue: int = 0
    """Replicas that were asked for and are not going to come soon [1]: no node is found for them."""


def read_report(raw: bytes, grpc_target: Callable[[str], str] | None = None) -> FleetReport:
    """Read a report; `grpc_target` gives the gRPC port of a URL where the report does not.

    Raises
    ------
    ValueError
        If it is none; the text says what is wrong with it.
    """
    if len(raw) > REPORT_BYTES_MAX:
        raise ValueError(f"the report has {len(raw)} bytes; at most {REPORT_BYTES_MAX} are read")
    try:
        report = msgspec.json.decode(raw, type=_Report)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"no report of a fleet ({error}), got {_shown(raw)}") from error
    if len(report.ready) + len(report.draining) > _MEMBERS_MAX:
        raise ValueError(f"the report lists more than {_MEMBERS_MAX} replicas")
    draining = {member.id: replace(member, is_draining=True) for member in _members(report.draining)}
    ready = {member.id: member for member in _members(report.ready)}
    members = {**ready, **draining}.values()
    serving = [member.url for member in members if not member.is_draining]
    if len(set(serving)) < len(serving):
        twice = next(url for url in serving if serving.count(url) > 1)
        raise ValueError(f"{twice!r} is ready twice, under two ids; each server is one replica")
    return FleetReport(tuple(_with_grpc(member, grpc_target) for member in members), report.starting)


def _members(given: Sequence[str | _Replica]) -> list[Member]:
    return [_member(_Replica(each) if isinstance(each, str) else each) for each in given]


def _member(given: _Replica) -> Member:
    parts = urlsplit(given.url) if names_a_host(given.url) else None
    is_clean = given.url.isprintable() and " " not in given.url
    if parts is None or not is_clean or parts.query or parts.fragment:
        raise ValueError(f"{given.url[:200]!r} is no base URL of a replica; write it as http://HOST:PORT")
    url = given.url.rstrip("/")
    return Member(given.id or url, url, given.grpc_target)


def _with_grpc(member: Member, grpc_target: Callable[[str], str] | None) -> Member:
    if member.grpc_target is not None or grpc_target is None:
        return member
    return replace(member, grpc_target=grpc_target(member.url))


def _shown(raw: bytes) -> str:
    text = raw[:80].decode("utf-8", "replace")
    return repr(text) if len(raw) <= 80 else f"{text!r}…"
