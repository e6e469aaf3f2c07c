"""A client that says what it is told to say, and leaves as rudely as it is told to."""

import asyncio
import json
import socket
from dataclasses import dataclass
from typing import Any, Self

from tests.fakes.wire import Head, Wire


@dataclass(frozen=True)
class Answer:
    head: Head
    body: bytes

    @property
    def status(self) -> int:
        return self.head.status

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client(Wire):
    @classmethod
    async def connect(cls, port: int, receive_buffer: int | None = None) -> Self:
        sock = socket.socket()
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_connect(sock, ("127.0.0.1", port))
        except OSError:
            sock.close()
            raise
        return (await loop.create_connection(cls, sock=sock))[1]

    def ask(
        self, target: str = "/v1/x", body: bytes | None = None, *fields: str, method: str = "POST"
    ) -> None:
        """Send a request; with a counted body if there is one."""
        lines = [f"{method} {target} HTTP/1.1", "Host: front", *fields]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b""))

    async def answer(self, method: str = "POST") -> Answer:
        head = await self.head()
        bodyless = method == "HEAD" or head.status in (204, 304)
        return Answer(head, b"" if bodyless else await self.body(head))

    async def event(self) -> str:
        """One server-sent event of a chunked stream whose chunks are events."""
        return (await self.chunk()).decode()
