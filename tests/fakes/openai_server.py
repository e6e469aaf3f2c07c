"""What servers of the OpenAI-compatible API say: streams and bodies in their dialects, and a small server."""

import json
from typing import Any

from tests.fakes.upstream import Received, Script, UpstreamWire

SSE = ("Content-Type: text/event-stream; charset=utf-8", "Transfer-Encoding: chunked")
DONE = b"data: [DONE]\n\n"


def event(**fields: Any) -> bytes:
    return b"data: " + json.dumps(fields, separators=(",", ":")).encode() + b"\n\n"


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    """One chunk of a chat completion."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "base"}
    return event(**head, choices=[choice], **more)


def usage(tokens_in: int, tokens_out: int) -> dict[str, int]:
    return {
        "prompt_tokens": tokens_in,
        "total_tokens": tokens_in + tokens_out,
        "completion_tokens": tokens_out,
    }


def chat_stream(words: list[str], said: dict[str, int] | None = None) -> list[bytes]:
    """The events of a chat completion as vLLM sends them; with `usage` if it was asked for."""
    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": word}) for word in words]
    events.append(chunk({}, "stop"))
    if said is not None:
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "base"}
        events.append(event(**head, choices=[], usage=said))
    return [*events, DONE]


def chat_body(text: str, said: dict[str, int] | None) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "model": "base", "choices": [choice]}
    return json.dumps(body | ({} if said is None else {"usage": said})).encode()


def streams(pieces: list[bytes]) -> Script:
    """A script that sends `pieces`, each by itself, as a stream of events."""

    async def script(wire: UpstreamWire, request: Received) -> None:
        wire.send_head(*SSE)
        for piece in pieces:
            wire.send_chunk(piece)
        wire.send(b"0\r\n\r\n")

    return script


def listing(*models: str | dict[str, Any]) -> bytes:
    """The answer of `/v1/models`; an adapter is given with its parent."""
    entries = [{"id": each} if isinstance(each, str) else each for each in models]
    full = [{"object": "model", "created": 7, "owned_by": "vllm", **each} for each in entries]
    return json.dumps({"object": "list", "data": full}).encode()
