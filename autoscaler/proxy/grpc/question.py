"""Calls that take no slot: questions to any replica that is ready, changes to all of them."""

import asyncio

import grpc

from autoscaler.ports import Replica
from autoscaler.proxy.answers import Refusal, Refused
from autoscaler.proxy.call import CallBroke
from autoscaler.proxy.grpc.front import Front
from autoscaler.proxy.grpc.metadata import Metadata
from autoscaler.proxy.grpc.methods import HEALTH, NOT_SERVING, SERVER_READY, Kind, Method
from autoscaler.proxy.grpc.relay import Status, relay_answer
from autoscaler.proxy.grpc.routes import GrpcRoute

_NOBODY_TO_ASK = Refusal(
    503,
    "no_capacity",
    "No replica is ready to be asked; ask again later.",
    retry_after=5.0,
)


class Question:
    """One such call."""

    def __init__(self, front: Front, route: GrpcRoute, method: Method, metadata: Metadata) -> None:
        self._front = front
        self._route = route
        self._method = method
        self._metadata = metadata

    async def put(self, message: bytes, limit: float | None) -> Status:
        """Return what the replicas say.

        Of a change, the first answer that is an error, or else the last. Raises `Refused` if nobody is
        there to be asked.
        """
        if self._front.draining and self._method.path in (HEALTH, SERVER_READY):
            return _says(NOT_SERVING if self._method.path == HEALTH else b"")
        replicas = self._route.drive.ready_replicas()
        if self._method.kind is Kind.CHANGE:
            answers = await asyncio.gather(*(self._ask(replica, message, limit) for replica in replicas))
            told = [answer for answer in answers if answer is not None]
            if told and len(told) == len(replicas):
                return next((answer for answer in told if answer.code is not grpc.StatusCode.OK), told[-1])
            raise Refused(_NOBODY_TO_ASK)
        for replica in replicas:
            if (answer := await self._ask(replica, message, limit)) is not None:
                return answer
        if self._method.if_none_is_ready is not None:
            return _says(self._method.if_none_is_ready)
        raise Refused(_NOBODY_TO_ASK)

    async def _ask(self, replica: Replica, message: bytes, limit: float | None) -> Status | None:
        """Return what one replica says; None if it cannot be reached."""
        try:
            line = await self._front.channels(self._route).ready(replica)
        except CallBroke:
            return None
        return await relay_answer(line.ask(self._method.path, message, self._metadata, limit), line)


def _says(message: bytes) -> Status:
    return Status(grpc.StatusCode.OK, "", (), message=message)
