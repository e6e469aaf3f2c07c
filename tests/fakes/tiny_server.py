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
    parser.add_argument("--sleeps", action="store_true", help="go to sleep and wake as vLLM does")
    parser.add_argument("--wake-delay", type=float, default=0.0, help="waking takes so long [s]")
    parser.add_argument("--no-sleep", action="store_true", help="answer 500 to who puts it to sleep")
    parser.add_argument("--no-wake", action="store_true", help="answer 500 to who wakes it")
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
    asleep = False
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", arguments.port))
    listener.listen(64)
    while True:
        connection, _ = listener.accept()
        while arguments.hang_file and os.path.exists(arguments.hang_file):  # noqa: PTH110 - pathlib is slow to import
            time.sleep(0.05)
        with connection:
            words, said, body = connection.recv(65536).split(b" ", 2), status, b"ok"
            path = words[1] if len(words) > 1 else b""
            if arguments.sleeps and path == b"/is_sleeping":
                body = b'{"is_sleeping": true}' if asleep else b'{"is_sleeping": false}'
            elif arguments.sleeps and path in (b"/sleep?level=1", b"/wake_up"):
                to_sleep = path != b"/wake_up"
                refuses = arguments.no_sleep if to_sleep else arguments.no_wake
                time.sleep(0.0 if to_sleep else arguments.wake_delay)
                asleep = asleep if refuses else to_sleep
                said = b"500 Internal Server Error" if refuses else b"200 OK"
                print(path.decode(), flush=True)
            connection.sendall(
                b"HTTP/1.1 %b\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (said, len(body), body)
            )


if __name__ == "__main__":
    main()
