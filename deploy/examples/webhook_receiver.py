"""Runs a command for each number of replicas that a pool of `platform: {kind: webhook}` posts.

python3 webhook_receiver.py SECRET_FILE 9100 docker compose up --detach --scale chat={desired}

The secret is the first line: base64 after `whsec_`, or any other text as it stands. It tells nobody which
replicas there are (it has no status_url), so `urls` or `dns` of the pool say where they are.
"""

import json
import subprocess
import sys
import time
from base64 import b64decode, b64encode
from hmac import compare_digest, digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

secret_file, port, *command = sys.argv[1:]
line, done, one_at_a_time = Path(secret_file).read_text().splitlines()[0].strip(), set(), Lock()
secret = b64decode(line[6:]) if line.startswith("whsec_") else line.encode()
OLDEST, LONGEST = 300, 1_000_000  # an event [s], and its body [bytes]


class Receiver(BaseHTTPRequestHandler):
    timeout = 10  # of a connection on which nothing comes

    def do_POST(self):
        length = self.headers["Content-Length"] or ""
        if not (length.isdecimal() and int(length) <= LONGEST):
            self.close_connection = True  # what comes is not read
            return self.answer(413)
        body = self.rfile.read(int(length))
        with one_at_a_time:
            status = self.react(body, self.headers["Webhook-Id"], self.headers["Webhook-Timestamp"])
        return self.answer(status)

    def react(self, body, event, timestamp):
        right = b"v1," + b64encode(digest(secret, f"{event}.{timestamp}.".encode() + body, "sha256"))
        given = (self.headers["Webhook-Signature"] or "").encode().split()
        if not any(compare_digest(right, each) for each in given):
            return 401  # nobody knows who sent it
        if abs(time.time() - int(timestamp)) > OLDEST:
            return 401  # somebody may have kept it
        if event not in done:
            words = [word.replace("{desired}", str(json.loads(body)["data"]["desired"])) for word in command]
            if subprocess.run(words, check=False).returncode:
                return 503  # it is sent again
            done.add(event)
        return 204

    def answer(self, status):
        self.send_response(status)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(port)), Receiver).serve_forever()
