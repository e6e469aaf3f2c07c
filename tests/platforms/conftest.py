"""Real local replicas for these tests, and a look at what they leave behind."""

import itertools

import pytest

from autoscaler.platforms.local_process.processes import tagged_replicas
from autoscaler.platforms.local_process.records import Records
from tests.fakes.local_replicas import Local


@pytest.fixture
async def local(tmp_path):
    """Hands out platforms, stops them, and fails the test if a process is left."""
    local = Local(tmp_path / "state")
    yield local
    await local.close()
    left = tagged_replicas(Records(local.state_dir).owner)
    for process in itertools.chain(*left.values()):
        process.kill()
    assert left == {}
