"""An API server that takes connections and answers nothing: what is known of a cluster gets old unseen."""

import pytest

from autoscaler.platforms.kubernetes import api
from autoscaler.platforms.kubernetes.access import load_access
from autoscaler.platforms.kubernetes.api import Api, ApiAway
from tests.fakes.kubernetes_api import FakeCluster


async def test_a_watch_that_is_not_answered_is_soon_known_to_be_none(tmp_path, monkeypatch):
    monkeypatch.setattr(api, "_TIMEOUT", 0.1)
    async with FakeCluster(2) as cluster:
        cluster.away = "hang"
        kubeconfig = cluster.kubeconfig(tmp_path)
        asking = Api(lambda: load_access(kubeconfig, None))
        with pytest.raises(ApiAway, match="the watch of"):
            async with asking.watch("/api/v1/namespaces/default/pods", {"watch": "true"}, silence=60.0):
                pass
        await asking.close()
        cluster.away = None
