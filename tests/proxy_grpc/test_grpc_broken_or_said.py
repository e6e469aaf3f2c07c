"""Who says UNAVAILABLE: the server, or the library because the connection broke?"""

import asyncio

import grpc
import pytest

from autoscaler.proxy.grpc.channels import Line
from autoscaler.proxy.grpc.relay import relay_answer

READY, IDLE = grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.IDLE


class Channel:
    """Notices a while after its calls have ended that the connection is lost."""

    def __init__(self, notices_after: float | None) -> None:
        self._notices_after = notices_after
        self._state = IDLE if notices_after == 0 else READY

    def get_state(self) -> grpc.ChannelConnectivity:
        return self._state

    async def wait_for_state_change(self, last: grpc.ChannelConnectivity) -> None:
        if self._notices_after is None:
            await asyncio.Event().wait()
        else:
            await asyncio.sleep(self._notices_after)
        self._state = IDLE


class Call:
    """A call that has ended with UNAVAILABLE."""

    def __init__(self, details: str, trailing: tuple = ()) -> None:
        self._details, self._trailing = details, trailing

    def __await__(self):
        raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata())
        yield

    async def initial_metadata(self) -> tuple:
        return ()

    async def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    async def details(self) -> str:
        return self._details

    async def trailing_metadata(self) -> tuple:
        return self._trailing


@pytest.mark.parametrize(
    "details, trailing, notices_after, broke",
    [
        ("Stream removed (Socket closed)", (), 0, True),
        ("Stream removed (Socket closed)", (), 0.01, True),
        ("Cancelling all calls", (), 0, True),
        ("Exceeds maximum queue size", (), None, False),
        ("Stream removed (Socket closed)", (), None, False),  # somebody's words, on a connection that lives
        ("Socket closed", (("retry-after", "1"),), 0, False),  # only a server has trailers
    ],
)
async def test_a_break_is_known_by_the_channel_even_if_it_shows_late(details, trailing, notices_after, broke):
    status = await relay_answer(Call(details, trailing), Line(Channel(notices_after)))
    assert status.broke is broke
    assert ("x-proxy-reason" in dict(status.trailing)) is broke


async def test_what_a_server_says_of_itself_is_not_held_back():
    loop = asyncio.get_running_loop()
    began = loop.time()
    await relay_answer(Call("Exceeds maximum queue size"), Line(Channel(None)))
    assert loop.time() - began < 0.05
