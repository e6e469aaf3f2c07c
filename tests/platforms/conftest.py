"""Real local replicas, and a look at what they leave behind; and platforms on clusters of a test."""

import itertools

import kubernetes_asyncio.config  # noqa: F401 - now, for it takes longer than these tests wait
import pytest

from autoscaler.platforms.kubernetes import platform as kubernetes_platform
from autoscaler.platforms.local_process.processes import tagged_replicas
from autoscaler.platforms.local_process.records import Records
from tests.fakes.local_replicas import Local
from tests.fakes.running_kubernetes import RunningKubernetes


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


@pytest.fixture
async def start(tmp_path, monkeypatch):
    """Starts clusters with a platform on each, and stops them at the end of the test."""
    monkeypatch.setattr(kubernetes_platform, "_PAUSE_INITIAL", 0.005)
    monkeypatch.setattr(kubernetes_platform, "_PAUSE_MAX", 0.01)
    monkeypatch.setattr(kubernetes_platform, "_FIRST_LOOK", 0.5)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    opened = []

    async def started(cluster, begin=True, **given):
        await cluster.__aenter__()
        running = RunningKubernetes(cluster, tmp_path, **given)
        opened.append(running)
        if begin:
            await running.platform.start(running.listener)
        return running

    yield started
    for running in opened:
        await running.platform.stop()
        await running.cluster.__aexit__()
