"""A cluster that does late what it was asked for, or says late that it has: what is under way stays so."""

import asyncio

import kubernetes_asyncio.config  # noqa: F401 - now, for it takes longer than these tests wait
import pytest
from aiohttp import web

from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.kubernetes import access
from autoscaler.platforms.kubernetes.api import Api
from autoscaler.platforms.kubernetes.mirror import Mirror
from autoscaler.platforms.kubernetes.pods import UnmadePods
from tests.fakes.kubernetes_api import COST, FakeCluster, refusal
from tests.fakes.running_kubernetes import ready_cluster


class LateCluster(FakeCluster):
    """Loses answers, makes pods late or never, and lists some of them nowhere."""

    loses_answers = False
    quota = 1000
    selector = "app=chat"
    unlisted = ()
    may_watch = True

    async def _patch_scale(self, request):
        answer = await super()._patch_scale(request)
        return web.json_response({"message": "etcd timed out"}, status=504) if self.loses_answers else answer

    def _make_pod(self):
        if len(self._live()) < self.quota:
            super()._make_pod()

    def _scale(self):
        found = super()._scale()
        found["status"]["selector"] = self.selector
        return found

    async def _pods(self, request):
        return await self._serve(request, "pods", self.pods, request.query["labelSelector"])

    async def _watch(self, request, table):
        if not self.may_watch:
            return refusal(403, f"cannot watch resource {table}")
        return await super()._watch(request, table)

    def _list_endpoints(self):
        super()._list_endpoints()
        whole = self.slices["slice-0"]["endpoints"]
        listed = [each for each in whole if each["targetRef"]["name"] not in self.unlisted]
        if listed != whole:
            self.slices["slice-0"] = {**self.slices["slice-0"], "endpoints": listed}
            self._put("slices", "MODIFIED", self.slices["slice-0"])


def late(replicas, **given):
    cluster = LateCluster(replicas, **given)
    cluster.run()
    return cluster


def marked(cluster):
    return {
        pod["metadata"]["name"]
        for pod in cluster.pods.values()
        if COST in pod["metadata"].get("annotations", {})
    }


@pytest.fixture
async def begin(start):
    """Starts as `start` does, and waits until everybody who is there is seen, on a busy machine too."""

    async def begun(cluster):
        running = await start(cluster)
        roster = running.platform._fleet.roster
        await running.until(lambda: running.platform._sight.why_unknown is None)
        await running.until(lambda: len(running.listener.ready) == len(roster.members))
        return running

    return begun


# -- pods that were let go, and are not deleted yet


@pytest.mark.parametrize("then", [2, 1])
async def test_a_pod_that_was_let_go_gets_nothing_new_however_late_it_is_deleted(begin, monkeypatch, then):
    running = await begin(late(3))
    cluster = running.cluster
    idle, busy, busier = (cluster.uid(f"chat-{number}") for number in range(3))
    running.listener.busy = {busy: 1, busier: 2}
    monkeypatch.setattr(cluster, "reconcile", lambda: None)
    await running.platform.scale_to(2)
    assert list(running.listener.draining) == [idle]
    await running.platform.scale_to(then)
    assert ("ready", idle) not in running.listener.calls[3:]
    assert set(running.listener.draining) == ({idle} if then == 2 else {idle, busy})
    assert cluster.replicas == 2
    monkeypatch.undo()
    cluster.reconcile()
    assert cluster.ready_names() == ["chat-1", "chat-2"]


async def test_pods_are_let_go_one_after_the_other_however_late_the_first_is_deleted(begin, monkeypatch):
    running = await begin(late(4))
    cluster = running.cluster
    names = [cluster.uid(f"chat-{number}") for number in range(4)]
    monkeypatch.setattr(cluster, "reconcile", lambda: None)
    running.listener.busy = dict.fromkeys(names[1:], 1)
    await running.platform.scale_to(2)
    assert cluster.replicas == 3
    running.listener.busy = dict.fromkeys(names[2:], 1)
    await running.platform.scale_to(2)
    assert cluster.replicas == 2
    assert marked(cluster) == {"chat-0", "chat-1"}
    monkeypatch.undo()
    cluster.reconcile()
    assert cluster.ready_names() == ["chat-2", "chat-3"]


async def test_a_pod_that_was_let_go_and_is_wanted_before_it_is_deleted_serves_again(begin, monkeypatch):
    running = await begin(late(2))
    monkeypatch.setattr(running.cluster, "reconcile", lambda: None)
    await running.platform.scale_to(1)
    assert len(running.listener.ready) == 1
    await running.platform.scale_to(2)
    assert len(running.listener.ready) == 2


async def test_a_pod_that_the_cluster_kept_serves_again_although_a_rolling_update_has_one_more(
    begin, monkeypatch
):
    running = await begin(late(3))
    cluster = running.cluster
    monkeypatch.setattr(cluster, "reconcile", lambda: None)
    cluster._make_pod()  # of the new version, and it does not get ready
    await running.until_seen(4)
    await running.platform.scale_to(2)
    kept, other = cluster.uid("chat-0"), cluster.pods[cluster.uid("chat-1")]
    assert list(running.listener.draining) == [kept]
    other["metadata"]["deletionTimestamp"] = "2025-06-15T15:06:40Z"
    cluster._put("pods", "MODIFIED", other)
    await running.until(lambda: kept in running.listener.ready)


# -- a change whose answer is lost


async def test_a_number_that_was_ours_and_got_no_answer_is_nobody_elses(begin, capsys):
    running = await begin(late(3))
    await running.platform.scale_to(3)
    running.cluster.loses_answers = True
    with pytest.raises(PlatformUnavailable, match="504"):
        await running.platform.scale_to(5)
    running.cluster.loses_answers = False
    assert (await running.platform.fleet()).edited is None
    await running.platform.scale_to(5)
    assert "somebody else scaled" not in capsys.readouterr().out
    running.cluster.scale_by_hand(7)
    assert (await running.platform.fleet()).edited == 7


async def test_a_pod_that_was_let_go_without_an_answer_gets_nothing_new(begin, monkeypatch):
    running = await begin(late(2))
    cluster, idle = running.cluster, running.cluster.uid("chat-0")
    await running.platform.scale_to(2)
    monkeypatch.setattr(cluster, "reconcile", lambda: None)
    cluster.loses_answers = True
    with pytest.raises(PlatformUnavailable, match="504"):
        await running.platform.scale_to(1)
    cluster.loses_answers = False
    await running.platform.fleet()
    await running.platform.scale_to(1)
    assert list(running.listener.draining) == [idle]
    assert ("ready", idle) not in running.listener.calls[2:]


async def test_a_change_that_got_no_answer_and_never_came_about_is_made_anew(begin):
    running = await begin(late(2))
    await running.platform.scale_to(2)
    running.cluster.away = "503"
    with pytest.raises(PlatformUnavailable):
        await running.platform.scale_to(1)
    running.cluster.away = None
    await running.until(lambda: running.platform.last_error is None)
    await running.platform.scale_to(1)
    assert running.cluster.replicas == 1


# -- who goes


async def test_a_pod_that_hangs_goes_before_one_that_answers(begin):
    running = await begin(late(2))
    cluster, roster = running.cluster, running.platform._fleet.roster
    hanging = cluster.uid("chat-1")
    roster._watched[hanging].watch.cancel()
    for _ in range(running.platform._options.fleet.probe_failures):
        roster._take_in(roster._watched[hanging], answers=False)
    assert await running.counts() == (1, 0, 0)
    await running.platform.scale_to(1)
    assert cluster.ready_names() == ["chat-0"]
    assert list(running.listener.ready) == [cluster.uid("chat-0")]


async def test_a_pod_that_the_service_does_not_select_is_marked_to_go_if_the_cluster_takes_it_for_ready(
    begin,
):
    cluster = late(3)
    cluster.unlisted = ("chat-0",)
    cluster._list_endpoints()
    running = await begin(cluster)
    assert await running.counts() == (2, 1, 0)
    running.listener.busy = dict.fromkeys(running.listener.ready, 1)
    await running.platform.scale_to(2)
    assert cluster.ready_names() == ["chat-1", "chat-2"]


async def test_pods_that_are_not_seen_yet_are_not_taken_for_missing(begin):
    running = await begin(late(3))
    cluster = running.cluster
    await running.platform.scale_to(3)
    running.listener.busy = dict.fromkeys(running.listener.ready, 1)
    cluster.selector = "app=other"  # made anew just now: its pods are to be listed first
    with pytest.raises(PlatformUnavailable, match="not asked yet"):
        await running.platform.scale_to(1)
    assert cluster.replicas == 3
    await running.until(lambda: running.platform.last_error is None)
    await running.platform.scale_to(1)
    assert cluster.replicas == 3
    assert len(running.listener.draining) == 2


# -- pods that are not made


async def test_missing_pods_are_recognised_although_ever_more_are_asked_for(begin):
    cluster = late(1)
    cluster.quota = 1
    running = await begin(cluster)
    for wanted in (2, 3, 4):
        await running.platform.scale_to(wanted)
        running.pass_time(30.0)
    assert await running.counts() == (1, 1, 0)
    assert "2 pods were never made" in running.platform.last_error


async def test_pods_of_a_stateful_set_that_wait_for_their_turn_are_counted_on(begin):
    cluster = late(1, kind="StatefulSet")
    cluster.quota = 2  # as if it made the next only once the last is ready
    running = await begin(cluster)
    await running.platform.scale_to(4)
    await running.until_seen(2)
    running.pass_time(300.0)
    assert await running.counts() == (1, 3, 0)
    assert running.platform.last_error is None
    cluster.run()
    await running.until_counts(2, 2, 0)
    running.pass_time(60.0)
    assert await running.counts() == (2, 0, 0)
    assert "2 pods were never made" in running.platform.last_error


async def test_pods_of_a_deployment_have_no_turn_to_wait_for(begin):
    cluster = late(1)
    cluster.quota = 2
    running = await begin(cluster)
    await running.platform.scale_to(4)
    await running.until_seen(2)
    running.pass_time(60.0)
    assert await running.counts() == (1, 1, 0)


def test_fewer_that_are_missing_leave_those_that_were_missed_longest():
    unmade = UnmadePods()
    unmade.update(2, now=0.0, is_in_turn=False)
    unmade.update(5, now=50.0, is_in_turn=False)
    assert (unmade.expected, unmade.overdue) == (5, 0)
    unmade.update(3, now=60.0, is_in_turn=False)
    assert (unmade.expected, unmade.overdue) == (1, 2)
    unmade.update(0, now=61.0, is_in_turn=False)
    assert (unmade.expected, unmade.overdue) == (0, 0)


# -- what is gone


async def test_who_deletes_what_is_scaled_is_told_that_and_of_no_quota(begin, capsys):
    running = await begin(late(2))
    await running.platform.scale_to(2)
    target = running.platform._sight.target
    target._path = target._path.replace("chat", "deleted")
    running.pass_time(60.0)
    running.cluster.replicas = 0
    running.cluster.reconcile()
    await running.until_seen(0)
    with pytest.raises(
        PlatformUnavailable, match=r"404: .*; set name and namespace, or make Deployment default/"
    ):
        await running.platform.fleet()
    assert "quota" not in capsys.readouterr().out


async def test_a_right_that_may_be_for_another_name_is_told_with_both_remedies(start):
    running = await start(late(2), begin=False)
    running.cluster.forbidden = {("GET", "scale")}
    await running.platform.start(running.listener)
    remedy = r"bind the Role of .*rbac.yaml, with chat in its resourceNames, or set name and namespace"
    with pytest.raises(PlatformUnavailable, match=remedy):
        await running.platform.fleet()


async def test_who_may_list_and_not_watch_is_told_so_once(start, capsys):
    cluster = late(2)
    cluster.may_watch = False
    running = await start(cluster)
    await running.until(lambda: cluster.asked.count("GET pods") >= 8)
    told = capsys.readouterr().out
    warnings = [line for line in told.splitlines() if "warning" in line and "default/pods was" in line]
    assert len(warnings) == 1
    assert "answers again" not in told
    cluster.may_watch = True
    await running.until(lambda: running.platform.last_error is None)
    await running.until_counts(2, 0, 0)


async def test_a_server_that_forgets_every_version_is_not_asked_without_a_pause(tmp_path, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    taken = asyncio.Event()

    class Pauses:
        def next(self):
            taken.set()
            return 3600.0

    async with ready_cluster(1) as cluster:
        cluster._forgotten = 10**9
        api = Api(lambda: access.load_access(cluster.kubeconfig(tmp_path)))
        path = "/api/v1/namespaces/default/pods"
        mirror = Mirror(api, path, "app=chat", Pauses(), lambda: None)
        running = asyncio.create_task(mirror.run())
        async with asyncio.timeout(20):
            await taken.wait()
        assert len(mirror.objects) == 1
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await api.close()


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
async def test_a_starting_pod_that_was_let_go_gets_nothing_though_it_is_ready_before_it_is_deleted(
    begin, monkeypatch, kind
):
    cluster = late(2, kind=kind)
    running = await begin(cluster)
    await running.platform.scale_to(3)
    await running.until_seen(3)
    monkeypatch.setattr(cluster, "reconcile", lambda: None)
    running.listener.busy = dict.fromkeys(running.listener.ready, 1)
    [third] = set(cluster.pods) - set(running.listener.ready)
    await running.platform.scale_to(2)  # the third is starting, so it is let go at once
    cluster.run()
    await running.until(lambda: third in running.platform.listed)
    await running.until_counts(2, 0, 1)
    assert third not in running.listener.ready
