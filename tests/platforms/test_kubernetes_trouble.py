"""What goes wrong in clusters beyond a server that is away: answers of no form, pods that never come, strange
objects, hands of others."""

import asyncio
import gc
import json
import ssl
import warnings

import psutil
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.kubernetes import access
from autoscaler.platforms.kubernetes.access import load_access
from autoscaler.platforms.kubernetes.api import Api
from tests.fakes.certificates import Authority
from tests.fakes.kubernetes_api import COST, TOKEN, FakeCluster


class ScriptedCluster(FakeCluster):
    """Changes some of its answers as the test says."""

    resources = scale = None
    selector = "app=chat"
    quota = 1000
    cuts = 0

    async def _resources(self, request):
        return web.json_response(self.resources) if self.resources else await super()._resources(request)

    def _scale(self):
        found = super()._scale()
        found["status"]["selector"] = self.selector
        return self.scale or found

    async def _pods(self, request):
        chosen = {uid: pod for uid, pod in self.pods.items() if self._is_chosen(pod, request)}
        return await self._serve(request, "pods", chosen, request.query["labelSelector"])

    def _is_chosen(self, pod, request):
        key, value = request.query["labelSelector"].split("=")
        return pod["metadata"]["labels"][key] == value

    def _make_pod(self):
        if len(self._live()) < self.quota:
            super()._make_pod()

    async def _watch(self, request, table):
        if not self.cuts:
            return await super()._watch(request, table)
        self.cuts -= 1
        answer = web.StreamResponse()
        await answer.prepare(request)
        pod = next(iter(self.pods.values()))
        await answer.write(json.dumps({"type": "MODIFIED", "object": pod}).encode()[:60])
        request.transport.close()
        return answer


def scripted(replicas, **given):
    cluster = ScriptedCluster(replicas, **given)
    cluster.run()
    return cluster


def price_of(cluster, name):
    return cluster.pods[cluster.uid(name)]["metadata"].get("annotations", {}).get(COST)


# -- answers


async def test_a_gateway_that_answers_nonsense_is_borne_and_asked_again(start):
    cluster = scripted(2)
    cluster.resources = {"kind": "Gateway"}
    running = await start(cluster)
    with pytest.raises(PlatformUnavailable, match="is not understood: KeyError"):
        await running.platform.fleet()
    cluster.resources = None
    await running.until(lambda: running.platform.last_error is None)
    await running.until_counts(2, 0, 0)


async def test_a_scale_of_another_form_holds_the_fleet(start):
    running = await start(scripted(2))
    await running.platform.scale_to(2)
    running.cluster.scale = {"kind": "Scale", "metadata": []}
    for ask in (running.platform.fleet, lambda: running.platform.scale_to(3)):
        with pytest.raises(PlatformUnavailable, match="/scale is not understood"):
            await ask()
    assert running.cluster.replicas == 2


async def test_a_connection_that_is_cut_within_a_line_of_the_watch_loses_nothing(start):
    cluster = scripted(1)
    cluster.cuts = 3
    running = await start(cluster)
    await running.platform.scale_to(3)
    cluster.run()
    await running.until_counts(3, 0, 0)


# -- what is scaled


async def test_a_scale_that_selects_no_pods_is_refused_for_it_would_mean_all(start):
    cluster = scripted(2)
    cluster.selector = ""
    running = await start(cluster)
    with pytest.raises(
        PlatformUnavailable, match="does not say which pods are its own; declare labelSelector"
    ):
        await running.platform.fleet()
    assert "GET pods" not in cluster.asked


async def test_who_makes_it_anew_with_other_labels_is_followed(start):
    running = await start(scripted(2))
    cluster = running.cluster
    await running.platform.scale_to(2)
    cluster.selector = "app=chat-2"
    for pod in cluster.pods.values():
        pod["metadata"]["labels"]["app"] = "chat-2"
        cluster._put("pods", "DELETED", pod)  # as it looks to who watches the old ones
    await running.until_seen(0)
    await running.platform.fleet()
    await running.until_seen(2)
    assert await running.counts() == (2, 0, 0)


async def test_somebody_who_sets_the_number_all_the_time_is_guessed_at(start, capsys):
    running = await start(scripted(2))
    for _ in range(3):
        await running.platform.scale_to(2)
        running.pass_time(60.0)
        running.cluster.scale_by_hand(4)
    assert "is there an HPA for it?" not in capsys.readouterr().out
    await running.platform.scale_to(2)
    assert "is there an HPA for it?" in capsys.readouterr().out


async def test_who_stands_by_lets_pods_serve_on_that_were_to_go(start):
    running = await start(scripted(2))
    running.listener.busy = dict.fromkeys(running.cluster.pods, 1)
    await running.platform.scale_to(1)
    await running.until_counts(1, 0, 1)
    running.platform.stand_by()
    assert await running.counts() == (2, 0, 0)
    running.cluster.scale_by_hand(3)
    assert (await running.platform.fleet()).edited is None


async def test_who_looks_anew_counts_on_pods_that_another_asked_for_and_nobody_has_made(start):
    running = await start(scripted(2))
    running.cluster.replicas = 5  # just now, by whoever led
    assert await running.counts() == (2, 0, 0)
    await running.platform.look_anew()
    assert await running.counts() == (2, 3, 0)
    assert (await running.platform.fleet()).edited is None
    running.pass_time(61.0)
    assert await running.counts() == (2, 0, 0)
    assert "3 pods were never made" in running.platform.last_error


# -- where its pods are


async def test_a_port_that_is_not_there_is_said(start):
    running = await start(scripted(2), port="grpc")
    assert running.platform.last_error == (
        "Service chat: it has no port grpc; set port to one of these: http: 9001"
    )


async def test_a_service_that_is_not_there_is_said(start):
    cluster = scripted(2)
    cluster.slices.clear()
    running = await start(cluster)
    assert "Service chat: it has no EndpointSlice; set service" in running.platform.last_error


async def test_a_pod_that_gets_its_second_address_first_comes_once(start):
    running = await start(scripted(1))
    cluster, server = running.cluster, running.platform._fleet.roster._server
    server.up.add("http://[fd00::1]:9001")
    cluster.scale_by_hand(2)
    pod = cluster.pods[cluster.uid("chat-1")]
    pod["status"] |= {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}, {"ip": "fd00::1"}]}
    target = {"kind": "Pod", "uid": pod["metadata"]["uid"], "name": "chat-1"}
    cluster.slices["slice-6"] = {
        "metadata": {"uid": "slice-6", "name": "chat-6"},
        "addressType": "IPv6",
        "ports": [{"name": "http", "port": 9001}],
        "endpoints": [{"addresses": ["fd00::1"], "conditions": {"ready": True}, "targetRef": target}],
    }
    cluster._put("pods", "MODIFIED", pod)
    cluster._put("slices", "ADDED", cluster.slices["slice-6"])
    cluster.run()
    await running.until_counts(2, 0, 0)
    assert running.listener.calls.count(("ready", pod["metadata"]["uid"])) == 1
    assert ("lost", pod["metadata"]["uid"]) not in running.listener.calls


async def test_a_pod_that_was_deleted_gets_nothing_new_although_a_slice_still_lists_it(start, monkeypatch):
    running = await start(scripted(2))
    cluster = running.cluster
    monkeypatch.setattr(cluster, "_list_endpoints", lambda: None)  # whoever writes the slices is late
    cluster.scale_by_hand(1)
    await running.until(lambda: running.listener.draining)
    cluster.end_terminating()
    await running.until(lambda: len(running.platform._sight.pods) == 1)
    assert await running.counts() == (1, 0, 1)
    assert [verb for verb, _ in running.listener.calls] == ["ready", "ready", "draining"]
    monkeypatch.undo()
    cluster._list_endpoints()
    await running.until_counts(1, 0, 0)


# -- pods that do not come


async def test_pods_that_a_quota_forbids_are_told_with_where_to_look(start):
    cluster = scripted(2)
    cluster.quota = 2
    running = await start(cluster)
    await running.platform.scale_to(5)
    assert running.platform.last_error is None
    running.pass_time(60.0)
    assert await running.counts() == (2, 0, 0)
    assert running.platform.last_error == (
        "3 pods were never made, for a quota perhaps; see why: kubectl get events"
    )


async def test_a_pod_that_does_not_get_ready_is_overdue_in_the_end_and_its_reason_told_at_once(start):
    running = await start(scripted(2))
    await running.platform.scale_to(3)
    cluster = running.cluster
    pod = cluster.pods[cluster.uid("chat-2")]
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}
    pod["status"]["containerStatuses"] = [{"name": "server", "state": {"waiting": waiting}}]
    cluster._put("pods", "MODIFIED", pod)
    await running.until(lambda: running.platform.last_error is not None)
    assert "1 pods do not start: CrashLoopBackOff: back-off 5m0s" in running.platform.last_error
    assert await running.counts() == (2, 1, 0)
    running.pass_time(600.0)
    assert await running.counts() == (2, 0, 0)
    assert (await running.platform.fleet()).overdue == 1


async def test_a_pod_that_waited_long_for_a_node_has_its_whole_time_to_start(start):
    running = await start(scripted(2, room=2))
    await running.platform.scale_to(3)
    await running.until_seen(3)
    running.pass_time(3600.0)
    await running.until_counts(2, 0, 0)
    running.cluster.room = 3
    running.cluster.reconcile()
    await running.until_counts(2, 1, 0)
    running.pass_time(599.0)
    assert await running.counts() == (2, 1, 0)


@pytest.mark.parametrize("ahead", [-3600.0, 3600.0])
async def test_a_clock_that_is_wrong_makes_no_pod_hopeless_sooner_or_later(start, ahead):
    cluster = scripted(2, room=2)
    running = await start(cluster)
    cluster.wall_time += ahead  # of the API server and the scheduler, against ours
    await running.platform.scale_to(3)
    await running.until_seen(3)
    assert await running.counts() == (2, 1, 0)
    running.pass_time(30.0)
    assert (await running.platform.fleet()).overdue == 1


# -- the price of a pod


async def test_a_mark_that_an_earlier_run_left_is_taken_off(start):
    cluster = scripted(3)
    cluster.pods[cluster.uid("chat-1")]["metadata"]["annotations"] = {COST: "-1000"}
    running = await start(cluster)
    await running.platform.scale_to(3)
    assert price_of(cluster, "chat-1") is None


async def test_a_mark_of_a_step_that_failed_is_taken_off_by_the_next(start):
    running = await start(scripted(3))
    cluster = running.cluster

    def somebody_is_faster():
        cluster._scale_version = next(cluster._version)

    cluster.before_patch = somebody_is_faster
    with pytest.raises(PlatformUnavailable, match="409"):
        await running.platform.scale_to(2)
    cluster.before_patch = lambda: None
    await running.platform.scale_to(3)
    assert [price_of(cluster, f"chat-{number}") for number in range(3)] == [None, None, None]


async def test_a_pod_keeps_its_mark_until_the_cluster_has_chosen(start, monkeypatch):
    running = await start(scripted(3))
    cluster = running.cluster
    running.listener.busy = {cluster.uid("chat-0"): 1, cluster.uid("chat-2"): 1}
    monkeypatch.setattr(cluster, "reconcile", lambda: None)  # its controller is slow
    await running.platform.scale_to(2)
    await running.platform.scale_to(2)
    assert price_of(cluster, "chat-1") == "-1000"
    monkeypatch.undo()
    cluster.reconcile()
    assert cluster.ready_names() == ["chat-0", "chat-2"]


async def test_a_pod_that_has_gone_by_itself_keeps_nobody_from_being_marked(start):
    running = await start(scripted(4))
    cluster, sight = running.cluster, running.platform._sight
    gone = cluster.uid("chat-0")
    kept = json.loads(json.dumps(cluster.pods[gone]))
    cluster.pods[gone]["metadata"]["deletionTimestamp"] = "2025-06-15T15:06:40Z"
    sight._pods.objects[gone] = kept  # the watch is late
    running.listener.busy = {cluster.uid("chat-3"): 1}
    await running.platform.scale_to(1)
    assert [price_of(cluster, f"chat-{number}") for number in (1, 2)] == ["-1000", "-1000"]


# -- who we are


async def test_a_token_file_may_end_with_a_newline(tmp_path):
    (tmp_path / "token").write_text(TOKEN + "\n")
    async with FakeCluster() as cluster:
        file = cluster.kubeconfig(tmp_path, tokenFile=str(tmp_path / "token"))
        api = Api(lambda: load_access(file))
        assert await api.get("/apis/apps/v1")
        await api.close()


async def test_a_proxy_that_the_kubeconfig_names_is_gone_through(tmp_path):
    async with FakeCluster() as cluster:
        file = cluster.kubeconfig(tmp_path)
        plain = yaml.safe_load(file.read_text())
        here = plain["clusters"][0]["cluster"]
        plain["clusters"][0]["cluster"] = {"server": "http://cluster.invalid", "proxy-url": here["server"]}
        file.write_text(yaml.safe_dump(plain))
        api = Api(lambda: load_access(file))
        assert await api.get("/apis/apps/v1")
        await api.close()


@pytest.mark.parametrize("content", ["clusters: [{name: 'x", "[]", "", "a: b: c", "clusters: 3", "\x00\x01"])
async def test_a_kubeconfig_that_is_being_written_is_told_and_read_anew(tmp_path, content):
    async with FakeCluster() as cluster:
        file = cluster.kubeconfig(tmp_path)
        whole = file.read_text()
        file.write_text(content)
        api = Api(lambda: load_access(file))
        with pytest.raises(PlatformUnavailable, match="kubeconfig cannot be used: "):
            await api.get("/apis/apps/v1")
        file.write_text(whole)
        assert await api.get("/apis/apps/v1")
        await api.close()


async def test_a_plugin_that_gives_no_token_is_not_waited_for_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(access, "_PLUGIN_MAX", 0.05)
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["60"]}
    async with FakeCluster() as cluster:
        file = cluster.kubeconfig(tmp_path, exec={**plugin, "interactiveMode": "Never"})
        api = Api(lambda: load_access(file))
        with pytest.raises(PlatformUnavailable, match="gave no token within"):
            await api.get("/apis/apps/v1")
        await api.close()
    async with asyncio.timeout(10.0):  # the plugin is ended, after whole seconds
        while [each for each in psutil.Process().children() if each.name() == "sleep"]:
            await asyncio.sleep(0.05)
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()  # of what the library has left of it, while the loop is there


async def test_a_plugin_that_is_not_there_is_named(tmp_path):
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin"}
    async with FakeCluster() as cluster:
        file = cluster.kubeconfig(tmp_path, exec={**plugin, "interactiveMode": "Never"})
        api = Api(lambda: load_access(file))
        with pytest.raises(PlatformUnavailable, match="no-such-plugin: No such file or directory"):
            await api.get("/apis/apps/v1")
        await api.close()


async def test_an_authority_that_was_renewed_is_read_anew(tmp_path):
    async def answer(request):
        return web.json_response({"who": "the API server"})

    async def serve(authority, port):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        pair = authority.issues("127.0.0.1")
        context.load_cert_chain(pair.certificate, pair.key)
        application = web.Application()
        application.router.add_get("/version", answer)
        server = TestServer(application, scheme="https", host="127.0.0.1", port=port)
        await server.start_server(ssl=context)
        return server

    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    server = await serve(old, None)
    plain = {
        "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": str(server.make_url("/"))}}],
        "users": [{"name": "us", "user": {"token": "t"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "us"}}],
    }
    plain["clusters"][0]["cluster"]["certificate-authority"] = str(old.file)
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(plain))
    api = Api(lambda: load_access(tmp_path / "kubeconfig"))
    assert await api.get("/version")
    port = server.port
    await server.close()
    server = await serve(new, port)
    with pytest.raises(PlatformUnavailable, match="certificate"):
        await api.get("/version")
    old.file.write_bytes(new.file.read_bytes())
    assert await api.get("/version")
    await api.close()
    await server.close()


async def test_a_fault_that_ends_the_watching_is_not_silent(start):
    running = await start(scripted(2))
    running.platform._sight._tasks["pods"].cancel()
    running.platform._sight._tasks["pods"] = asyncio.create_task(broken(), name="mirror pods")
    await running.until(lambda: running.platform.last_error)
    assert "a fault of this program ended 'mirror pods'" in running.platform.last_error
    with pytest.raises(PlatformUnavailable, match="a fault of this program"):
        await running.platform.fleet()


async def broken() -> None:
    raise ZeroDivisionError
