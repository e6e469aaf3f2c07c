"""A model server of a few lines that starts at once and misbehaves on demand; standard library only.

Answers every request with 200 on 127.0.0.1, one at a time. A plain socket, because importing
`http.server` would be most of its start.
"""

import argparse
import os
import signal
import socket
import sys
import time


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--delay", type=float, default=0.0, help="listen only after so long [s]")
    parser.add_argument("--exit", type=int, help="print a line and exit with this code")
    parser.add_argument("--never-ready", action="store_true", help="answer 503")
    parser.add_argument("--hang-file", help="answer nothing any more once this file exists")
    parser.add_argument("--ignore-term", action="store_true", help="only SIGKILL ends it")
    parser.add_argument("--child", action="store_true", help="fork a child that ignores SIGTERM")
    arguments = parser.parse_args()

    if arguments.exit is not None:
        print("out of memory on device 0", flush=True)
        sys.exit(arguments.exit)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if arguments.ignore_term else say_goodbye)
    if arguments.child and os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(60)
    time.sleep(arguments.delay)
    serve(arguments)


def say_goodbye(*_: object) -> None:
    print("goodbye", flush=True)
    sys.exit(0)


def serve(arguments: argparse.Namespace) -> None:
    status = b"503 Service Unavailable" if arguments.never_ready else b"200 OK"
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", arguments.port))
    listener.listen(64)
    while True:
        connection, _ = listener.accept()
        while arguments.hang_file and os.path.exists(arguments.hang_file):  # noqa: PTH110 - pathlib is slow to import
            time.sleep(0.05)
        with connection:
            connection.recv(65536)
            connection.sendall(
                b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
            )


if __name__ == "__main__":
    main()
