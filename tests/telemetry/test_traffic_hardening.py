"""Files that are broken, odd, huge or none at all: read as far as can be, or refused in plain words."""

import bz2
import gzip
import lzma
import os
import sqlite3
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.errors import UsageError
from autoscaler.telemetry.traffic import read_traffic
from autoscaler.telemetry.traffic.text_file import opened
from tests.telemetry.traffic_examples import ENVOY, HAPROXY, apache, written

ROWS = ["timestamp,duration_s", "1752399000,1.5", "1752399001,2.5"]
TEXT = "\n".join(ROWS) + "\n"


def saved(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        TEXT.strip().encode(),
        TEXT.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        TEXT.encode("utf-16"),
        b"\n\n# made by hand\n" + TEXT.encode() + b"\n  \n",
        gzip.compress(TEXT.encode(), mtime=0),
        gzip.compress(TEXT[:30].encode(), mtime=0) + gzip.compress(TEXT[30:].encode(), mtime=0),
        bz2.compress(TEXT.encode()),
        lzma.compress(TEXT.encode()),
    ],
    ids=["plain", "no-end", "crlf", "bom", "utf-16", "comments", "gzip", "gzip-parts", "bzip2", "xz"],
)
def test_packing_encoding_and_ends_of_lines_do_not_matter(tmp_path, content):
    traffic = read_traffic(saved(tmp_path / "any.name", content))
    assert traffic.demand.service_times.tolist() == [1.5, 2.5]
    assert (traffic.lines, traffic.unusable) == (2, 0)


def test_bytes_that_are_no_text_are_replaced(tmp_path):
    lines = "\n".join(apache(5_000_000, 6_000_000)).encode().replace(b"curl", b"c\xff\xfe\x00rl")
    traffic = read_traffic(saved(tmp_path / "a.log", lines))
    assert (len(traffic.demand), traffic.unusable) == (2, 0)


def test_a_pipe_is_read_like_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(TEXT.encode()),))
    writer.start()
    shares: list[float] = []
    assert len(read_traffic(pipe, progress=shares.append).demand) == 2
    writer.join()
    assert shares == [1.0]


def database(path: Path) -> bytes:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    return path.read_bytes()


@pytest.mark.parametrize(
    "content, complaint",
    [
        (b"", "f: is empty"),
        (b"\n\n  \n# nothing\n", "f: is empty"),
        (gzip.compress(b"", mtime=0), "f: is empty"),
        (b"\x7fELF\x02\x01\x01" + bytes(100), r"f: is no text \(it holds zero bytes\)"),
        (bytes(5000), r"f: is no text \(it holds zero bytes\)"),
        (b"PAR1" + bytes(50), "f: is Parquet; export it as CSV"),
        (b"\x28\xb5\x2f\xfd" + bytes(50), "unpack it: zstd -d "),
        (b"PK\x03\x04" + bytes(50), "unpack it: unzip "),
        (b"Once upon a time\nthere was a log\n", "f: starts with 'Once upon a time'; give an access log"),
        (b"[" * 100_000, "f: is no JSON that can be read"),
        (b"timestamp,duration_s\n", "f: has a header, and nothing below it"),
        (b"start_s,requests\n", "f: has a header, and nothing below it"),
        (gzip.compress(TEXT.encode(), mtime=0)[:-6], "f: cannot be read: .*; is it whole?"),
        (gzip.compress(TEXT.encode(), mtime=0)[:14] + b"\xff" * 40, "f: cannot be read: .*; is it whole?"),
    ],
)
def test_what_is_no_traffic_is_refused_with_a_reason(tmp_path, content, complaint):
    with pytest.raises(UsageError, match=complaint):
        read_traffic(saved(tmp_path / "f", content))


def test_a_database_is_told_from_a_file_of_traffic(tmp_path):
    with pytest.raises(UsageError, match=r"is a database; if it is a history of this program, .*--history"):
        read_traffic(saved(tmp_path / "f", database(tmp_path / "history.db")))


def test_a_folder_is_refused_and_how_to_join_logs_is_said(tmp_path):
    with pytest.raises(UsageError, match=r"is a folder; name a file in it .*zcat -f .*/access.log\*"):
        read_traffic(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path):
    path = written(tmp_path / "r.csv", *ROWS)
    path.chmod(0)
    with pytest.raises(UsageError, match="permission denied; let this user read it"):
        read_traffic(path)


def test_permission_denied_is_said_in_words(tmp_path, monkeypatch):
    def denied(*args: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(UsageError, match="permission denied; let this user read it"):
        read_traffic(tmp_path / "r.csv")


def test_a_line_of_ten_megabytes_is_a_line(tmp_path):
    long = apache(5_000_000)[0].replace("/v1/completions", "/" + "x" * 10_000_000)
    traffic = read_traffic(written(tmp_path / "a.log", long, *apache(6_000_000), "y" * 10_000_000))
    assert traffic.demand.service_times.tolist() == [5, 6]
    assert [(fault.count, len(fault.examples[0][1])) for fault in traffic.faults] == [(1, 200)]


def test_a_line_that_never_ends_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("autoscaler.telemetry.traffic.text_file.LINE_MAX", 1000)
    monkeypatch.setattr("autoscaler.telemetry.traffic.text_file._CHUNK", 64)
    path = saved(tmp_path / "f", b"short\n" + b"z" * 100_000 + b"\nlast")
    with opened(path) as file:
        lengths = [len(line) for line in file.lines()]
    assert lengths == [5, pytest.approx(1000, abs=64), 4]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_lines_are_the_same_wherever_the_file_is_cut_in_reading(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr("autoscaler.telemetry.traffic.text_file._CHUNK", chunk)
    monkeypatch.setattr("autoscaler.telemetry.traffic.text_file.LOOK_AHEAD", 1)
    text = "eins\r\nzwölf µs\n\n€\r\rende"
    with opened(saved(tmp_path / "f", text.encode())) as file:
        assert list(file.lines()) == ["eins", "zwölf µs", "", "€\r\rende"]


NO_TIMES = ["-1", "1e308", "-1e300", "inf", "nan", "9" * 400, "²³", "0000-00-00", "0001-01-01T00:00:00+14:00"]
NO_LOG_TIMES = [
    "99/Foo/2025:10:00:00",
    "32/Jul/2025:10:00:00",
    "13/Jul/2025:25:00:00",
    "13/Jul/0000:10:00:00",
]


@pytest.mark.parametrize(
    "time", [*NO_TIMES, *(f"{time} +0000" for time in NO_LOG_TIMES), "13/Jul/2025:10:00:00 +9999"]
)
def test_a_time_that_is_none_spoils_its_line_alone(tmp_path, time):
    rows = [f"{second},1.0" for second in range(1752399000, 1752399005)]
    traffic = read_traffic(written(tmp_path / "r.csv", ROWS[0], *rows, f"{time},1.0"))
    assert (len(traffic.demand), traffic.unusable) == (5, 1)


def test_no_zone_of_that_name(tmp_path):
    with pytest.raises(
        UsageError, match=r"time zone Mars/Olympus: there is none of that name; write it as Europe"
    ):
        read_traffic(written(tmp_path / "r.csv", *ROWS), zone="Mars/Olympus")


BEGINNINGS = ["", *apache(5_000_000), ENVOY, HAPROXY.format(timers="1/2/3/4/9", status=200), *ROWS]
BEGINNINGS += ['{"ts": 1752399000, "latency_ms": 5}', "start_s,requests", '{"object": "page", "data": [{']


@given(
    st.sampled_from(BEGINNINGS),
    st.one_of(st.binary(max_size=200), st.text(max_size=100).map(lambda text: text.encode(errors="replace"))),
    st.sampled_from([bytes, gzip.compress]),
)
def test_whatever_a_file_holds_it_is_read_or_refused(tmp_path_factory, beginning, junk, packed):
    path = saved(tmp_path_factory.mktemp("junk") / "f", packed(beginning.encode() + b"\n" + junk))
    try:
        traffic = read_traffic(path)
    except UsageError as error:
        assert str(error).startswith((str(path), "the unit")) or "--" in str(error)
    else:
        values = traffic.counted(1.0).values
        assert ((values >= 0) | np.isnan(values)).all()
        assert traffic.lines >= 1


@given(
    st.sampled_from(BEGINNINGS[1:4]),
    st.lists(st.tuples(st.integers(0, 400), st.characters()), min_size=1, max_size=5),
)
def test_a_line_with_slips_is_read_or_counted(tmp_path_factory, line, slips):
    broken = list(line)
    for place, character in slips:
        broken[place % len(broken)] = character
    text = "".join(broken).replace("\n", "").replace("\r", "").encode(errors="replace").decode()
    path = tmp_path_factory.mktemp("slips") / "f.log"
    path.write_bytes("\n".join([line, text]).encode())
    traffic = read_traffic(path)
    assert len(traffic.demand) + traffic.unusable == traffic.lines
