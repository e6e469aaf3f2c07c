"""What `check` says of the file or the Lease that controllers share."""

import kubernetes_asyncio.config  # noqa: F401 - now, for it takes longer than these tests wait
import pytest

from autoscaler.cli.findings import Level
from autoscaler.cli.probe_leadership import probe_leadership
from autoscaler.platforms.kubernetes import LeaseOptions
from autoscaler.settings.schema_leadership import LockOptions
from tests.fakes.kubernetes_api import FakeCluster


@pytest.fixture
async def cluster(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    async with FakeCluster() as opened:
        yield opened


async def test_a_lease_that_may_be_held_is_left_alone(cluster, tmp_path):
    (found,) = await probe_leadership(LeaseOptions("chat", kubeconfig=cluster.kubeconfig(tmp_path)))
    assert (found.level, found.subject) == (Level.OK, "leadership.lease")
    assert cluster.leases == {}


@pytest.mark.parametrize("verb", ["get", "patch", "create"])
async def test_a_right_that_lacks_is_named_with_the_remedy(cluster, tmp_path, verb):
    cluster.denied = {(verb, "leases")}
    (found,) = await probe_leadership(LeaseOptions("chat", kubeconfig=cluster.kubeconfig(tmp_path)))
    assert found.level is Level.PROBLEM
    assert f"not allowed: {verb} leases; bind the Role of deploy/kubernetes/rbac.yaml" in found.text


async def test_an_api_server_that_cannot_be_asked_is_told(tmp_path):
    (found,) = await probe_leadership(LeaseOptions("chat", kubeconfig=tmp_path / "absent"))
    assert found.level is Level.PROBLEM
    assert "absent cannot be used" in found.text


async def test_a_lock_file_needs_a_folder_that_can_be_written(tmp_path):
    (found,) = await probe_leadership(LockOptions(tmp_path / "leader.lock"))
    assert (found.level, found.subject) == (Level.OK, "leadership.lock_file")
    (tmp_path / "file").write_text("no folder")
    (found,) = await probe_leadership(LockOptions(tmp_path / "file" / "leader.lock"))
    assert found.level is Level.PROBLEM


async def test_where_there_is_one_controller_nothing_is_looked_at():
    assert await probe_leadership(None) == []
