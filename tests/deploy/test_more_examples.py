"""The examples of larger set-ups are right, and mean what their comments say."""

from autoscaler.platforms.keda import KedaOptions
from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.settings import load
from autoscaler.sharing.told_fleet import ToldOptions
from tests.deploy.manifests import DEPLOY


def example(name, command="run"):
    return load(DEPLOY / "examples" / f"{name}.yaml", {}, command)


def test_vllm_has_a_server_on_each_of_eight_gpus():
    pool = example("vllm-8-gpus").pools["chat"]
    assert isinstance(pool.platform, LocalOptions)
    assert (pool.platform.places, pool.policy.replicas_max) == (8, 8)
    command = pool.platform.render_command(port=9001, gpu="3")
    assert "--port=9001" in command
    assert f"--max-num-seqs={pool.auto_slots.slots_max}" in command
    assert pool.platform.sleepers_max
    assert "--enable-sleep-mode" in command


def test_triton_takes_grpc_and_is_scaled_by_keda():
    settings = example("triton-keda")
    pool = settings.pools["embed"]
    assert isinstance(pool.platform, KedaOptions)
    assert pool.speaks_grpc
    assert pool.server.batching.mode == "auto"
    assert (settings.grpc.port, settings.keda.port) == (8081, 8083)


def test_proxies_before_sglang_are_told_their_slots_by_a_controller():
    proxy, controller = example("sglang-proxy", "sidecar"), example("sglang-controller", "controller")
    assert proxy.pools.keys() == controller.pools.keys()
    assert isinstance(proxy.pools["chat"].platform, ToldOptions)
    assert proxy.admin_access.token_file == controller.pools["chat"].demand.reader.token_file
    assert controller.pools["chat"].demand.is_shared
    assert controller.pools["chat"].slots_per_replica == 32
