"""What is written of requests, and that it cannot fill a disk."""

import json
from pathlib import Path

import pytest

from autoscaler.errors import UsageError
from autoscaler.proxy.access_log import AccessLine, AccessLog, AccessLogOptions
from autoscaler.proxy.options import ProxyOptions
from tests.fakes.front import front
from tests.fakes.upstream import Upstream, says, says_nothing


def a_line(status: int = 200, time: float = 0.0) -> AccessLine:
    return AccessLine(
        time, "id", "POST", "/v1/x", status, "ok", "pool", "standard", "", "r", 0.0, 0.1, 0.1, 9
    )


def written(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_l3_k11_every_request_is_written_with_what_became_of_it(tmp_path):
    path = tmp_path / "access.log"
    options = ProxyOptions(port=0, linger=0.1, access_log=AccessLogOptions(path))
    async with Upstream(says(b"hello")) as model, front(model.replica(), options=options) as proxy:
        await proxy.ask("/v1/x?key=secret", b"{}", "X-Request-Id: mine")
        await proxy.ask("/nowhere", b"{}", "X-Request-Timeout-Ms: soon")
        model.script = says_nothing
        client = await proxy.client()
        client.ask("/v1/left")
        await model.got(2)
        client.close()
        await proxy.until(busy=0)
    answered, refused, left = written(path)
    assert answered["id"] == "mine"
    assert (answered["path"], answered["status"], answered["code"]) == ("/v1/x", 200, "ok")
    assert answered["replica"] == model.replica().id
    assert answered["sent_bytes"] > 5
    assert (refused["status"], refused["code"]) == (400, "bad_timeout")
    assert (left["status"], left["code"], left["pool"]) == (499, "client_left", "pool")


def test_of_what_went_well_a_sample_is_written_and_of_failures_all(tmp_path):
    log = AccessLog(AccessLogOptions(tmp_path / "a.log", sample=0.1))
    for n in range(1000):
        for status in (200, 502):
            if log.wants(status):
                log.note(a_line(status, time=n))
    log.close()
    assert not log.wants(502)
    statuses = [line["status"] for line in written(tmp_path / "a.log")]
    assert statuses.count(502) == 1000
    assert 50 < statuses.count(200) < 170  # 100 expected, standard deviation 9.5


def test_no_more_lines_a_second_than_may_be_and_what_is_left_out_is_counted(tmp_path):
    log = AccessLog(AccessLogOptions(tmp_path / "a.log", lines_per_second=5))
    for n in range(100):
        log.note(a_line(500, time=n / 1000))
    log.note(a_line(500, time=10.0))
    log.close()
    lines = written(tmp_path / "a.log")
    assert len(lines) == 6
    assert [line.get("left_out") for line in lines] == [None] * 5 + [95]


def test_files_are_put_aside_by_size_and_old_ones_deleted(tmp_path):
    options = AccessLogOptions(tmp_path / "a.log", lines_per_second=1e6, file_bytes_max=10_000, files_max=3)
    log = AccessLog(options)
    for n in range(1000):  # some 230 kB
        log.note(a_line(500, time=n))
    log.close()
    files = list(tmp_path.iterdir())
    assert len(files) == 3
    assert all(file.stat().st_size <= 10_000 for file in files)
    assert written(tmp_path / "a.log")[-1]["time"] == 999


def test_a_file_that_cannot_be_written_is_named_at_the_start(tmp_path):
    with pytest.raises(UsageError, match=r"no/such/a\.log cannot be written"):
        AccessLog(AccessLogOptions(tmp_path / "no/such/a.log"))


@pytest.mark.parametrize(
    "impossible", [{"sample": 1.1}, {"lines_per_second": 0}, {"file_bytes_max": 0}, {"files_max": 1}]
)
def test_impossible_options_are_refused_by_name(impossible):
    with pytest.raises(ValueError, match=next(iter(impossible))):
        AccessLogOptions(**impossible)
