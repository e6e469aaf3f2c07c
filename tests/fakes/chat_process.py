"""A server of the OpenAI-compatible API as a process: streams words, lists an adapter, sleeps and wakes."""

import argparse
import asyncio
import json

from aiohttp import web

from tests.fakes.openai_server import chat_body, chat_stream, listing, usage


class ChatServer:
    def __init__(self) -> None:
        self.running = 0
        self.is_asleep = False

    async def chat(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        if self.is_asleep:
            return web.Response(status=500, text="asleep")
        said = usage(9, 5)
        if not asked.get("stream"):
            return web.Response(body=chat_body("a b c d e", said), content_type="application/json")
        self.running += 1
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        try:
            await answer.prepare(request)
            wants_usage = asked.get("stream_options", {}).get("include_usage")
            for event in chat_stream(list("abcde"), said if wants_usage else None):
                await answer.write(event)
                await asyncio.sleep(0.01)
        finally:
            self.running -= 1
        return answer

    async def models(self, request: web.Request) -> web.Response:
        return web.Response(
            body=listing("base", {"id": "poet", "parent": "base"}), content_type="application/json"
        )

    async def metrics(self, request: web.Request) -> web.Response:
        text = f"vllm:num_requests_running {self.running}\nvllm:num_requests_waiting 0\n"
        return web.Response(text=text)

    async def sleep(self, request: web.Request) -> web.Response:
        self.is_asleep = request.path == "/sleep"
        return web.Response()

    async def is_sleeping(self, request: web.Request) -> web.Response:
        return web.Response(body=json.dumps({"is_sleeping": self.is_asleep}), content_type="application/json")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    server, application = ChatServer(), web.Application()

    async def health(request: web.Request) -> web.Response:
        return web.Response()

    application.router.add_get("/health", health)
    application.router.add_get("/v1/models", server.models)
    application.router.add_get("/metrics", server.metrics)
    application.router.add_get("/is_sleeping", server.is_sleeping)
    application.router.add_post("/v1/chat/completions", server.chat)
    application.router.add_post("/sleep", server.sleep)
    application.router.add_post("/wake_up", server.sleep)
    web.run_app(application, host="127.0.0.1", port=arguments.port, print=None)


if __name__ == "__main__":
    main()
