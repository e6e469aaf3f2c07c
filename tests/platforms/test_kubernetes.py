"""Pods behind a Service, against an API server that is strict, slow, away, or forgetful."""

from pathlib import Path
from random import Random

import kubernetes_asyncio.config  # noqa: F401 - now, for it takes longer than these tests wait
import pytest

from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.kubernetes import Kubernetes, KubernetesOptions, access
from autoscaler.remote_fleet import RemoteFleetOptions
from tests.fakes.kubernetes_api import COST, TOKEN, FakeCluster
from tests.fakes.listed_servers import ScriptedServers
from tests.fakes.running_kubernetes import URL, ready_cluster

# -- what there is


async def test_pods_that_are_ready_are_replicas_when_start_returns(start):
    running = await start(ready_cluster(3))
    assert await running.counts() == (3, 0, 0)
    assert set(running.listener.ready) == set(running.cluster.pods)
    assert {replica.url for replica in running.listener.ready.values()} == {URL}


async def test_pods_come_and_go_as_the_watches_tell(start):
    running = await start(FakeCluster(2))
    assert await running.counts() == (0, 2, 0)
    running.cluster.run(1)
    await running.until_counts(1, 1, 0)
    running.cluster.scale_by_hand(1)
    running.cluster.end_terminating()
    await running.until_counts(1, 0, 0)


async def test_a_pod_that_terminates_gets_nothing_new_at_once(start):
    running = await start(ready_cluster(2))
    running.cluster.scale_by_hand(1)
    await running.until(lambda: running.listener.draining)
    assert await running.counts() == (1, 0, 1)
    running.cluster.end_terminating()
    await running.until(lambda: "lost" in [verb for verb, _ in running.listener.calls])
    await running.until_counts(1, 0, 0)


# -- what shall be


async def test_more_are_asked_for_with_an_event_and_come_when_they_are_ready(start):
    running = await start(ready_cluster(1))
    await running.platform.scale_to(3)
    assert running.cluster.replicas == 3
    assert await running.counts() == (1, 2, 0)
    running.pass_time(45.0)
    running.cluster.run()
    await running.until_counts(3, 0, 0)
    assert (await running.platform.fleet()).cold_start_mean == 45.0
    (event,) = running.cluster.events
    assert (event["reason"], event["note"]) == ("ScaledUp", "Scaled from 1 to 3 replicas")
    assert event["regarding"]["name"] == "chat"


async def test_what_was_just_ordered_is_counted_before_there_are_pods(start, monkeypatch):
    running = await start(ready_cluster(1))
    monkeypatch.setattr(running.cluster, "reconcile", lambda: None)
    await running.platform.scale_to(4)
    assert await running.counts() == (1, 3, 0)
    running.pass_time(60.0)  # a quota forbids them
    assert await running.counts() == (1, 0, 0)


async def test_the_same_wish_again_changes_nothing(start):
    running = await start(ready_cluster(2))
    for _ in range(3):
        await running.platform.scale_to(2)
    assert running.cluster.events == []
    assert "PATCH scale" not in running.cluster.asked


async def test_the_idle_pods_go_first_and_are_marked_for_it(start):
    running = await start(ready_cluster(3))
    busy = running.cluster.uid("chat-2"), running.cluster.uid("chat-0")
    running.listener.busy = dict.fromkeys(busy, 1)
    await running.platform.scale_to(2)
    assert running.cluster.replicas == 2
    assert running.cluster.ready_names() == ["chat-0", "chat-2"]
    assert running.cluster.asked.index("PATCH chat-1") < running.cluster.asked.index("PATCH scale")
    assert running.cluster.events[0]["reason"] == "ScaledDown"


async def test_a_busy_pod_gets_nothing_new_and_goes_once_it_holds_nothing(start):
    running = await start(ready_cluster(2))
    first, second = running.cluster.uid("chat-0"), running.cluster.uid("chat-1")
    running.listener.busy = {first: 1, second: 2}
    await running.platform.scale_to(1)
    assert running.cluster.replicas == 2
    assert list(running.listener.draining) == [first]
    assert await running.counts() == (1, 0, 1)
    running.listener.busy = {second: 2}
    await running.platform.scale_to(1)
    assert running.cluster.replicas == 1
    assert running.cluster.ready_names() == ["chat-1"]


async def test_a_drain_is_undone_when_load_returns(start):
    running = await start(ready_cluster(2))
    running.listener.busy = dict.fromkeys(running.cluster.pods, 1)
    await running.platform.scale_to(1)
    assert await running.counts() == (1, 0, 1)
    await running.platform.scale_to(2)
    assert await running.counts() == (2, 0, 0)
    assert len(running.listener.ready) == 2
    assert "PATCH scale" not in running.cluster.asked


async def test_a_busy_pod_goes_after_drain_max_whatever_it_holds(start):
    running = await start(ready_cluster(2), drain_max=30.0)
    running.listener.busy = dict.fromkeys(running.cluster.pods, 1)
    await running.platform.scale_to(1)
    running.pass_time(30.0)
    await running.platform.scale_to(1)
    assert running.cluster.replicas == 1


async def test_a_pod_that_was_let_go_and_that_the_cluster_kept_serves_again(start, monkeypatch):
    running = await start(ready_cluster(2))
    running.cluster.forbidden = {("PATCH", "chat-0")}  # so the newest goes, which is chat-1
    running.listener.busy = {running.cluster.uid("chat-1"): 1}
    await running.platform.scale_to(1)
    assert running.cluster.ready_names() == ["chat-0"]
    await running.until(lambda: list(running.listener.ready) == [running.cluster.uid("chat-0")])
    running.cluster.end_terminating()
    await running.until_counts(1, 0, 0)


async def test_a_stateful_set_loses_its_highest_pods(start):
    running = await start(ready_cluster(3, kind="StatefulSet"))
    running.listener.busy = {running.cluster.uid("chat-2"): 1}
    await running.platform.scale_to(2)
    assert running.cluster.replicas == 3  # chat-2 must go first, and is not done
    assert list(running.listener.draining) == [running.cluster.uid("chat-2")]
    running.listener.busy = {}
    await running.platform.scale_to(2)
    assert running.cluster.ready_names() == ["chat-0", "chat-1"]
    assert not any(COST in pod["metadata"].get("annotations", {}) for pod in running.cluster.pods.values())


async def test_to_zero_and_back(start):
    running = await start(ready_cluster(1))
    await running.platform.scale_to(0)
    running.cluster.end_terminating()
    await running.until_counts(0, 0, 0)
    await running.platform.scale_to(1)
    assert await running.counts() == (0, 1, 0)


# -- two writers


async def test_a_change_that_came_before_ours_is_taken_into_account(start):
    running = await start(ready_cluster(1))
    edits = [lambda: running.cluster.scale_by_hand(4), lambda: running.cluster.scale_by_hand(2)]
    running.cluster.before_patch = lambda: edits.pop()() if edits else None
    await running.platform.scale_to(3)
    assert running.cluster.replicas == 3
    assert running.cluster.asked.count("PATCH scale") == 3


async def test_a_writer_that_never_rests_is_told_after_some_attempts(start):
    running = await start(ready_cluster(1))
    running.cluster.before_patch = lambda: running.cluster.scale_by_hand(7)
    with pytest.raises(PlatformUnavailable, match="409"):
        await running.platform.scale_to(3)
    assert running.cluster.asked.count("PATCH scale") == 5


async def test_what_somebody_else_has_asked_for_is_told_until_we_ask_again(start):
    running = await start(ready_cluster(3))
    running.cluster.scale_by_hand(5)
    assert (await running.platform.fleet()).edited is None  # we have asked for nothing yet
    await running.platform.scale_to(4)
    assert (await running.platform.fleet()).edited is None
    running.cluster.scale_by_hand(7)
    assert (await running.platform.fleet()).edited == 7
    assert (await running.platform.fleet()).edited == 7
    await running.platform.scale_to(7)
    assert running.cluster.replicas == 7
    assert (await running.platform.fleet()).edited is None


async def test_a_step_of_our_own_on_the_way_down_is_nobody_elses(start):
    running = await start(ready_cluster(3))
    running.listener.busy = dict.fromkeys(running.listener.ready, 1)
    await running.platform.scale_to(1)
    assert running.cluster.replicas == 3
    assert (await running.platform.fleet()).edited is None


# -- supply


async def test_pods_that_cannot_be_scheduled_are_not_counted_on_and_cut_back_to_one_probe(start):
    running = await start(ready_cluster(2, room=4))
    await running.platform.scale_to(50)
    running.cluster.run()
    await running.until_counts(4, 46, 0)
    running.pass_time(30.0)
    await running.until_counts(4, 0, 0)
    assert "46 pods cannot be scheduled: 0/1 nodes are available" in running.platform.last_error
    assert (await running.platform.fleet()).overdue == 46
    await running.platform.scale_to(50)
    assert running.cluster.replicas == 5  # what there is room for, and one to see whether there is more
    await running.platform.scale_to(4)  # load ends
    assert running.cluster.replicas == 4
    assert running.cluster.ready_names() == ["chat-0", "chat-1", "chat-2", "chat-3"]


async def test_that_there_is_no_room_is_told_once(start, capsys):
    running = await start(ready_cluster(2, room=2))
    await running.platform.scale_to(6)
    await running.until_seen(6)
    running.pass_time(30.0)
    for _ in range(3):
        await running.platform.fleet()
        await running.platform.scale_to(6)
    lines = capsys.readouterr().out.splitlines()
    told = [line for line in lines if "there is no room" in line and "warning" in line]
    assert len(told) == 1


async def test_once_there_is_room_again_more_are_asked_for(start):
    running = await start(ready_cluster(2, room=2))
    await running.platform.scale_to(6)
    await running.until_seen(6)
    running.pass_time(30.0)
    await running.until_counts(2, 0, 0)
    await running.platform.scale_to(6)
    assert running.cluster.replicas == 3
    running.cluster.room = 10
    running.cluster.reconcile()
    await running.until_counts(2, 1, 0)
    assert (await running.platform.fleet()).overdue == 0
    await running.platform.scale_to(6)
    assert running.cluster.replicas == 6


# -- the API server


async def test_a_watch_that_breaks_goes_on_where_it_was(start):
    running = await start(ready_cluster(1))
    lists = running.cluster.asked.count("GET pods")
    running.cluster.break_watches()
    running.cluster.scale_by_hand(2)
    running.cluster.run()
    await running.until(lambda: len(running.listener.ready) == 2)
    assert running.cluster.asked.count("GET pods") - lists <= 4  # watches, no list among them is needed


async def test_a_version_that_is_gone_is_listed_anew(start):
    running = await start(ready_cluster(3))
    running.cluster.break_watches()
    running.cluster.scale_by_hand(1)
    running.cluster.end_terminating()
    running.cluster.forget_versions()
    await running.until_counts(1, 0, 0)
    assert len(running.listener.ready) == 1


@pytest.mark.parametrize("how", ["503", "429", "500"])
async def test_while_the_server_is_away_the_fleet_is_held_and_then_caught_up_with(start, how):
    running = await start(ready_cluster(2))
    running.cluster.away = how
    running.cluster.break_watches()
    await running.until(lambda: running.platform.last_error)
    with pytest.raises(PlatformUnavailable, match=f"answered {how}"):
        await running.platform.fleet()
    with pytest.raises(PlatformUnavailable):
        await running.platform.scale_to(1)
    assert len(running.listener.ready) == 2  # requests go on
    running.cluster.scale_by_hand(4)
    running.cluster.run()
    running.cluster.away = None
    await running.until(lambda: running.platform.last_error is None)
    await running.until_counts(4, 0, 0)


async def test_a_start_while_the_server_is_away_goes_on_without_it_and_finds_it_later(start):
    cluster = ready_cluster(2)
    cluster.away = "503"
    running = await start(cluster)
    with pytest.raises(PlatformUnavailable, match="503"):
        await running.platform.fleet()
    cluster.away = None
    await running.until(lambda: len(running.listener.ready) == 2)
    assert await running.counts() == (2, 0, 0)


async def test_a_token_that_expires_is_read_anew(start, tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN)
    running = await start(ready_cluster(1), begin=False)
    running.cluster.kubeconfig(tmp_path, tokenFile=str(token))
    await running.platform.start(running.listener)
    assert await running.counts() == (1, 0, 0)
    running.cluster.tokens = {"a-newer-token"}
    token.write_text("a-newer-token")
    await running.platform.scale_to(2)
    assert running.cluster.replicas == 2
    running.cluster.break_watches()
    running.cluster.run()
    await running.until(lambda: len(running.listener.ready) == 2)


async def test_a_token_that_is_refused_for_good_is_told(start, tmp_path):
    running = await start(ready_cluster(1), begin=False)
    running.cluster.tokens = set()
    await running.platform.start(running.listener)
    with pytest.raises(PlatformUnavailable, match="renew the token"):
        await running.platform.fleet()


async def test_in_a_cluster_the_service_account_of_the_pod_is_used(start, tmp_path, monkeypatch):
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text(TOKEN)
    (folder / "namespace").write_text("default\n")
    certificates = pytest.importorskip("certifi")
    (folder / "ca.crt").write_text(Path(certificates.where()).read_text())
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", folder)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    options = KubernetesOptions("chat", "chat", RemoteFleetOptions(state_dir=tmp_path))
    found = await access.load_access(options.kubeconfig, options.context)
    assert (found.host, found.namespace) == ("https://10.0.0.1:443", "default")
    assert await found.authorization() == f"Bearer {TOKEN}"
    assert found.tls is not None


async def test_a_kubeconfig_that_is_not_there_is_told(tmp_path):
    options = KubernetesOptions(
        "chat", "chat", RemoteFleetOptions(state_dir=tmp_path), kubeconfig=tmp_path / "absent"
    )
    with pytest.raises(PlatformUnavailable, match="absent cannot be used"):
        await access.load_access(options.kubeconfig, options.context)


@pytest.mark.parametrize(("forbidden", "remedy"), [("GET scale", "rbac.yaml"), ("GET pods", "rbac.yaml")])
async def test_a_right_that_lacks_is_named_with_the_remedy(start, forbidden, remedy):
    cluster = ready_cluster(1)
    cluster.forbidden = {tuple(forbidden.split())}
    running = await start(cluster)
    with pytest.raises(PlatformUnavailable, match=remedy):
        await running.platform.fleet()


async def test_without_the_right_to_mark_pods_or_to_leave_events_scaling_goes_on(start):
    running = await start(ready_cluster(3))
    running.cluster.forbidden = {("PATCH", "chat-0"), ("POST", "events")}
    await running.platform.scale_to(2)
    assert running.cluster.replicas == 2
    assert running.cluster.events == []


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"kind": "Deploiment"}, "apps/v1 has no kind Deploiment"),
        ({"kind": "DaemonSet"}, "DaemonSet of apps/v1 has no /scale"),
        ({"api_version": "example.org/v1"}, "the API server has no example.org/v1"),
    ],
)
async def test_what_cannot_be_scaled_is_told(start, given, complaint):
    cluster = ready_cluster(1)
    running = await start(cluster, begin=False)
    options = {"name": "chat", "service": "chat", "kubeconfig": running.platform._options.kubeconfig}
    running.platform = Kubernetes(
        KubernetesOptions(fleet=running.platform._options.fleet, **options, **given),
        ScriptedServers(URL),
        running.clock,
        Random(1),
    )
    await running.platform.start(running.listener)
    with pytest.raises(PlatformUnavailable, match=complaint):
        await running.platform.fleet()


async def test_it_cannot_be_asked_before_start_and_after_stop(start):
    running = await start(ready_cluster(1), begin=False)
    with pytest.raises(PlatformUnavailable):
        await running.platform.scale_to(1)
    with pytest.raises(PlatformUnavailable):
        await running.platform.fleet()
    await running.platform.start(running.listener)
    await running.platform.stop()
    with pytest.raises(PlatformUnavailable):
        await running.platform.scale_to(1)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"name": "Chat"}, "'Chat' is no name of Kubernetes"),
        ({"service": "a/b"}, "'a/b' is no name"),
        ({"api_version": "apps"}, "write it as apps/v1"),
        ({"drain_max": -1.0}, "need drain_max >= 0"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path, given, complaint):
    plain = {"name": "chat", "service": "chat", "fleet": RemoteFleetOptions(state_dir=tmp_path)}
    with pytest.raises(ValueError) as refusal:
        KubernetesOptions(**{**plain, **given})
    assert complaint in str(refusal.value)


def test_replicas_that_are_listed_elsewhere_are_refused(tmp_path):
    fleet = RemoteFleetOptions(state_dir=tmp_path, urls=(URL,))
    with pytest.raises(ValueError, match="found by their Service"):
        KubernetesOptions("chat", "chat", fleet)
