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
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

secret_file, port, *command = sys.argv[1:]
line, done = Path(secret_file).read_text().splitlines()[0].strip(), set()
secret = b64decode(line[6:]) if line.startswith("whsec_") else line.encode()


class Receiver(BaseHTTPRequestHandler):
    timeout = 10  # of a connection on which nothing comes, for there is one at a time

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.react(body, self.headers["Webhook-Id"], self.headers["Webhook-Timestamp"]))
        self.end_headers()

    def react(self, body, event, timestamp):
        right = "v1," + b64encode(digest(secret, f"{event}.{timestamp}.".encode() + body, "sha256")).decode()
        given = (self.headers["Webhook-Signature"] or "").split()
        if not any(compare_digest(right, each) for each in given) or abs(time.time() - int(timestamp)) > 300:
            return 401  # nobody knows who sent it, or when
        if event not in done:
            words = [word.replace("{desired}", str(json.loads(body)["data"]["desired"])) for word in command]
            if subprocess.run(words, check=False).returncode:
                return 503  # it is sent again
            done.add(event)
        return 204


HTTPServer(("127.0.0.1", int(port)), Receiver).serve_forever()
