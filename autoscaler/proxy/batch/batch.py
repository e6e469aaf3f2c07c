"""One call that serves several requests, from their leases to the parts of its answer.

Each request keeps its own lease, deadline and client: who leaves is taken off the call and disturbs nobody,
and the last one to leave ends it. The call is a task of its own, so nobody's cancellation reaches another.

A batch owes every member a part, `Unmerged` or `CallBroke`, whatever happens; it has no loop that could die.
As soon as the answer is split all leases are given back, so that the next call is on its way before the first
client has its part: what a server idles between two calls is lost.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from aiohttp import hdrs
from multidict import CIMultiDict

from autoscaler.domain import Outcome
from autoscaler.kserve.infer import InferAnswer
from autoscaler.kserve.merge import merge, split
from autoscaler.kserve.read_answer import read_answer
from autoscaler.kserve.read_http import HEADER_LENGTH
from autoscaler.kserve.tensor import IgnoresRows, NotMergeable
from autoscaler.kserve.write_http import all_have_form
from autoscaler.ports import Clock
from autoscaler.proxy.backpressure import BUSY, retry_after
from autoscaler.proxy.batch.body import WholeBody
from autoscaler.proxy.batch.item import Item
from autoscaler.proxy.call import CallBroke
from autoscaler.proxy.drive import PoolDrive
from autoscaler.proxy.grant import Grant
from autoscaler.proxy.shared_call import Part, Unmerged
from autoscaler.proxy.upstream import Upstream

if TYPE_CHECKING:
    from autoscaler.proxy.batch.check import Check

log = structlog.get_logger(__name__)

_OK = 200


@dataclass(frozen=True, slots=True)
class Means:
    """What batches of a pool work with."""

    drive: PoolDrive
    upstream: Upstream
    clock: Clock
    never_merge: Callable[[str, str, str], None]
    """Told the model, its version, and why its requests must not be merged."""
    check: "Check | None"


@dataclass(slots=True, eq=False)
class _Member:
    grant: Grant
    item: Item
    answer: "asyncio.Future[InferAnswer]"


class Batch:
    """Serves the requests of some leases of one call; a `SharedCall`."""

    def __init__(self, means: Means, items: Sequence[Item]) -> None:
        self.rows = sum(item.asked.rows for item in items)
        self.merge_time = 0.0
        self._means = means
        self._items = items
        self._members: dict[str, _Member] = {}
        """Those who have not left."""
        self._served: dict[str, _Member] = {}
        """All of them."""
        self._task: asyncio.Task[None] | None = None

    def begin(self, grants: Sequence[Grant]) -> None:
        """Start the call, with a grant for each of its items."""
        loop = asyncio.get_running_loop()
        for grant, item in zip(grants, self._items, strict=True):
            self._members[grant.request.id] = _Member(grant, item, loop.create_future())
        self._served |= self._members
        self._task = asyncio.create_task(self._run())

    async def part(self, request_id: str) -> Part:
        """Wait for the answer; return what of it belongs to a request."""
        member = self._served[request_id]
        return member.item.part(await member.answer)

    def leave(self, request_id: str) -> None:
        """Take a request off the call; the last one ends it."""
        member = self._members.pop(request_id, None)
        if self._task is None:
            return
        if member is not None:
            member.answer.cancel()
        if not self._members:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            await self._serve()
        except CallBroke as broken:
            self._fail(broken)
        except Unmerged as unmerged:
            self._fail(unmerged)
        except Exception as error:
            log.exception("a batch failed; its requests are served one by one", error=str(error))
            self._fail(Unmerged())

    async def _serve(self) -> None:
        members = list(self._members.values())
        first, asked = members[0], [member.item.asked for member in members]
        answer = await self._ask(first, members)
        try:
            parts = split(answer, asked)
        except IgnoresRows as why:
            self._means.never_merge(first.item.asked.model, first.item.asked.version, str(why))
            raise Unmerged from why
        except NotMergeable as why:
            raise Unmerged from why
        check = self._means.check
        if check is not None and check.is_due():
            alone = await self._ask(first, [first])
            check.compare(first.item.asked.model, parts[0], alone)
        self._answer(members, parts, everybody=all_have_form(answer, asked))

    async def _ask(self, first: _Member, members: Sequence[_Member]) -> InferAnswer:
        """Call the replica for all `members`; raises Unmerged if that is no answer which can be split."""
        began = self._means.clock.now()
        body, json_length = merge([member.item.asked for member in members])
        fields = CIMultiDict(first.item.fields)
        fields[hdrs.CONTENT_TYPE] = "application/octet-stream"
        fields[HEADER_LENGTH] = str(json_length)
        fields[hdrs.CONTENT_LENGTH] = str(len(body))
        self.merge_time = self._means.clock.now() - began
        call = await self._means.upstream.call(
            "POST", first.grant.replica, first.item.at.target, fields, WholeBody(body)
        )
        try:
            pieces = []
            while not call.whole:
                pieces.append(await call.next_piece())
        finally:
            call.end()
        if call.status in BUSY:
            self._means.drive.busy(first.grant, retry_after(call.headers))
        if call.status != _OK:
            raise Unmerged
        said = call.headers.get(HEADER_LENGTH)
        try:
            return read_answer(b"".join(pieces), None if said is None else int(said))
        except (NotMergeable, ValueError) as why:
            raise Unmerged from why

    def _answer(self, members: Sequence[_Member], answers: Sequence[InferAnswer], *, everybody: bool) -> None:
        """Give back the leases of all who can be answered, and then give them their answers.

        `everybody` can, if every output has a form in JSON.
        """
        self._task = None  # it is done; who leaves now ends nothing
        there = [pair for pair in zip(members, answers, strict=True) if not pair[0].answer.done()]
        served = [(member, answer) for member, answer in there if everybody or member.item.can_have(answer)]
        for member, _ in served:
            self._means.drive.release(member.grant, Outcome.COMPLETED)
        for member, answer in served:
            member.answer.set_result(answer)
        for member, _ in there:
            if not member.answer.done():
                member.answer.set_exception(Unmerged())

    def _fail(self, error: CallBroke | Unmerged) -> None:
        self._task = None
        for member in self._members.values():
            if not member.answer.done():
                member.answer.set_exception(error)
                member.answer.exception()  # nobody may ask for it: its client can leave in this moment

    def __repr__(self) -> str:
        return f"<Batch requests={len(self._members)} rows={self.rows}>"
