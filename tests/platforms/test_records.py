"""What is kept about replicas on disk."""

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
