"""What is kept about replicas on disk."""

import os
import shutil

import pytest

from autoscaler.errors import UsageError
from autoscaler.platforms.local_process.records import Records, ReplicaRecord

RECORD = ReplicaRecord("replica-0-ab", 0, "1", 4711, "f00d", started_at=5.0, pid=99, pid_started=1.25)


@pytest.fixture
def records(tmp_path):
    records = Records(tmp_path / "state")
    records.open()
    yield records
    records.close()


def test_a_record_is_read_back_as_it_was_written(records):
    records.write(RECORD)
    assert records.all() == [RECORD]
    records.remove(RECORD.id)
    assert records.all() == []


def test_a_damaged_record_is_dropped_and_the_others_are_read(records, tmp_path):
    records.write(RECORD)
    damaged = tmp_path / "state" / "replicas" / "replica-1-cd.json"
    damaged.write_text('{"id": "replica-1')
    assert records.all() == [RECORD]
    assert not damaged.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"a": ' + b"[" * 100_000,
        b'{"id": "../../lock", "place": 0, "gpu": "", "port": 1, "fingerprint": "", "started_at": 1}',
        b'{"id": "garbage", "place": -1, "gpu": "", "port": 1, "fingerprint": "", "started_at": 1}',
        b'{"id": "garbage", "place": 0, "gpu": "", "port": 1, "fingerprint": "", "started_at": 1, "pid": -7}',
        b'{"id": "garbage", "place": 0, "gpu": "", "port": 99999, "fingerprint": "", "started_at": 1}',
    ],
    ids=lambda content: content[:60],
)
def test_garbage_is_no_record(records, tmp_path, content):
    records.write(RECORD)
    (tmp_path / "state" / "replicas" / "garbage.json").write_bytes(content)
    assert records.all() == [RECORD]
    assert (tmp_path / "state" / "lock").exists()


def test_what_is_no_file_is_passed_over_and_left(records, tmp_path):
    records.write(RECORD)
    folder, pipe = (tmp_path / "state" / "replicas" / name for name in ("replica-2-z.json", "pipe.json"))
    folder.mkdir()
    os.mkfifo(pipe)
    assert records.all() == [RECORD]
    records.remove(folder.stem)
    assert folder.is_dir()
    assert pipe.exists()


def test_a_folder_that_was_deleted_meanwhile_is_made_again(records, tmp_path):
    shutil.rmtree(tmp_path / "state")
    records.remove(RECORD.id)
    assert records.all() == []
    records.write(RECORD)
    assert records.all() == [RECORD]


def test_a_second_program_on_the_same_folder_is_refused(records, tmp_path):
    second = Records(tmp_path / "state")
    with pytest.raises(UsageError, match="in use by another instance"):
        second.open()
    records.close()
    second.open()
    second.close()


def test_a_folder_that_cannot_be_written_is_refused_by_name(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file/state cannot be used"):
        Records(tmp_path / "file" / "state").open()
