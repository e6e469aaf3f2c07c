"""The receiver of web hooks that ships, among people who are not who they say they are, or slow, or both."""

import base64
import hmac
import http.client
import json
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from load.free_port import free_port
from tests.deploy.manifests import DEPLOY

EXAMPLE = DEPLOY / "examples" / "webhook_receiver.py"
SECRET = b"a secret of thirty-two letters!!"
LONG = 30.0
"""Nothing here lasts so long [s]."""


class Scaler:
    """The receiver, and what it was made to do."""

    def __init__(self, folder) -> None:
        (folder / "secret").write_text(f"whsec_{base64.b64encode(SECRET).decode()}\n")
        self.done = folder / "done"
        self.port = free_port()
        # Each run takes a while, and would show a second one that runs meanwhile.
        run = (
            f"mkdir {folder}/running && sleep 0.02 && echo {{desired}} >> {self.done}; rmdir {folder}/running"
        )
        command = [sys.executable, str(EXAMPLE), str(folder / "secret"), str(self.port), "sh", "-c", run]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def connect(self) -> socket.socket:
        """Connect; as soon as it listens."""
        until = time.monotonic() + LONG
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), timeout=LONG)
            except ConnectionRefusedError:
                assert time.monotonic() < until
                time.sleep(0.02)

    def post(self, event: str, desired: int, **changed: str | None) -> int:
        """Send a signed event with some of its headers changed, or left out; return what is answered."""
        body = json.dumps({"data": {"desired": desired}}).encode()
        stamp = changed.pop("stamp", None) or str(int(time.time()))
        mac = hmac.digest(SECRET, f"{event}.{stamp}.".encode() + body, "sha256")
        headers = {
            "Webhook-Id": event,
            "Webhook-Timestamp": stamp,
            "Webhook-Signature": f"v1,{base64.b64encode(mac).decode()}",
            **{f"Webhook-{name}": value for name, value in changed.items()},
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG)
        connection.request("POST", "/", body, {k: v for k, v in headers.items() if v is not None})
        status = connection.getresponse().status
        connection.close()
        return status

    def runs(self) -> list[int]:
        """Return the numbers that were carried out."""
        return [int(each) for each in self.done.read_text().split()] if self.done.exists() else []


@pytest.fixture
def scaler(tmp_path):
    started = Scaler(tmp_path)
    started.connect().close()
    yield started
    started.process.kill()
    started.process.wait()


@pytest.mark.parametrize(
    "changed",
    [
        {"Signature": "v1,AAAA"},
        {"Signature": "v1,\xe9"},
        {"Signature": ""},
        {"Signature": None},
        {"Timestamp": "1"},
        {"Timestamp": "soon"},
        {"Timestamp": None},
        {"Id": "another"},
        {"Id": None},
        {"stamp": str(int(time.time()) - 900)},
    ],
)
def test_who_has_no_secret_or_is_late_is_refused_and_nothing_is_run(scaler, changed):
    assert scaler.post("1", 9, **changed) == 401
    assert scaler.post("2", 3) == 204
    assert scaler.runs() == [3]


def test_an_event_that_is_played_again_by_many_at_a_time_runs_once_and_two_never_run_together(scaler):
    with ThreadPoolExecutor(8) as many:
        answers = list(many.map(lambda event: scaler.post(str(event % 4), event % 4), range(24)))
    assert answers == [204] * 24
    assert sorted(scaler.runs()) == [0, 1, 2, 3]


@pytest.mark.parametrize("length", ["-1", "99999999999", "many", "1_0"])
def test_a_body_that_cannot_be_one_is_not_waited_for(scaler, length):
    with scaler.connect() as attacker:
        attacker.sendall(f"POST / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode())
        assert attacker.recv(100).split()[1] == b"413"
    with scaler.connect() as attacker:
        attacker.sendall(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert attacker.recv(100).split()[1] == b"413"


def test_nobody_waits_behind_one_who_sends_slowly(scaler):
    with scaler.connect() as attacker:
        attacker.sendall(b"POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{")
        assert scaler.post("1", 3) == 204
        attacker.settimeout(0.0)
        with pytest.raises(BlockingIOError):  # it was still there
            attacker.recv(1)
