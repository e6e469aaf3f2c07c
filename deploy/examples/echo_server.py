"""A stand-in for a model server, with nothing to install: answers every request with what it was sent.

    python3 echo_server.py --port 9001 --service-time 0.5

`GET /healthz` answers 200 as soon as it listens. Every other request takes a service time, and requests
beyond `--slots` wait their turn, as they would for a GPU. Replace it with your own server.
"""

import argparse
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Echo(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    slots = threading.BoundedSemaphore(1)
    service_time = 0.0

    def do_GET(self) -> None:
        """Answer a probe at once, anything else as a request."""
        if self.path == "/healthz":
            self._answer(b"ok\n")
        else:
            self._serve(b"")

    def do_POST(self) -> None:
        """Echo the body."""
        self._serve(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    do_PUT = do_POST  # noqa: N815 - the name is http.server's

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing for each request."""

    def _serve(self, body: bytes) -> None:
        with self.slots:
            time.sleep(self.service_time)
        self._answer(body or f"{self.path} from process {os.getpid()}\n".encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", self.headers.get("Content-Type") or "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser(description="Echo server, in place of a model server.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--service-time", type=float, default=0.2, help="seconds a request takes (0.2)")
    parser.add_argument("--slots", type=int, default=1, help="requests served at a time (1)")
    arguments = parser.parse_args()
    Echo.service_time, Echo.slots = arguments.service_time, threading.BoundedSemaphore(arguments.slots)
    server = ThreadingHTTPServer((arguments.host, arguments.port), Echo)
    server.daemon_threads = True
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
