"""The model server of the proxy benchmark: as fast as this language allows, always the same.

Answers like an OpenAI server, so that every subject can be put before it: a short or a large completion at
once, or a stream of as many events as asked for. An event holds the time when it was written; who reads it
knows how long it was on its way. `python -m load.bench.proxy_upstream --port P`
"""

import argparse
import asyncio
import json
import random
import re
import time

import uvloop

SMALL, LARGE, HELD = b"small", b"large", b"held"
"""What the prompt begins with: a short answer, one of 1 MB, none."""

LARGE_BYTES = 1_000_000
_TICK = 0.001
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_STREAMED = re.compile(rb'"stream": *true')
_EVENTS, _EVERY = re.compile(rb"events=(\d+)"), re.compile(rb"every=([\d.]+)")
_PROMPT = re.compile(rb'"content": *"(small|large|held)')


def _completion(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    body = json.dumps(
        {
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
    ).encode()  # fmt: skip
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    return head + body


_ANSWERS = {SMALL: _completion("hello"), LARGE: _completion("x" * LARGE_BYTES)}
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
_EVENT = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":'
    b'[{"index":0,"delta":{"role":"assistant","content":"%019d"},"finish_reason":null}]}\n\n'
)
_LAST = b"data: [DONE]\n\n"
_OTHER = b'{"status":"ok","data":[{"id":"m","object":"model"}],"model_path":"m","is_generation":true}'
_OTHER_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_OTHER) + _OTHER
)


class Server(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._wanted = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # the base class of all of them

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._wanted:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return
            length = _LENGTH.search(self._received, 0, end + 2)
            self._wanted = end + 4 + (int(length[1]) if length else 0)
            if length is None and b"chunked" in self._received[:end].lower():
                self._wanted = 2**62
        if self._wanted == 2**62 and self._received.endswith(b"0\r\n\r\n"):
            self._wanted = len(self._received)
        if len(self._received) >= self._wanted:
            request, self._received, self._wanted = bytes(self._received), bytearray(), 0
            self._answer(request)

    def _answer(self, request: bytes) -> None:
        if not request.startswith(b"POST"):
            self._write(_OTHER_ANSWER)
            return
        body = request[request.index(b"\r\n\r\n") :]
        if _STREAMED.search(body):
            events, every = _EVENTS.search(body), _EVERY.search(body)
            if events and every:
                self._stream(int(events[1]), float(every[1]))
            return
        prompt = _PROMPT.search(body)
        if prompt is not None and prompt[1] in _ANSWERS:
            self._write(_ANSWERS[prompt[1]])

    def _stream(self, events: int, every: float) -> None:
        """Begin a stream at a moment of its own, so that streams opened together do not speak together."""
        self._write(_STREAM_HEAD)
        loop = asyncio.get_running_loop()
        first = loop.time() + random.uniform(0.0, every)
        loop.call_at(first, self._next, events, every, first)

    def _next(self, left: int, every: float, due: float) -> None:
        if self._transport is None:
            return
        loop = asyncio.get_running_loop()
        if not left:
            self._write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(_LAST), _LAST))
            return
        event = _EVENT % time.monotonic_ns()
        self._write(b"%x\r\n%s\r\n" % (len(event), event))
        loop.call_at(due + every, self._next, left - 1, every, due + every)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


async def listen(port: int) -> None:
    """Serve until ended."""
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m load.bench.proxy_upstream")
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(listen(parser.parse_args().port))
