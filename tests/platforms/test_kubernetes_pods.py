"""What pods and EndpointSlices say of the replicas."""

from autoscaler.platforms.kubernetes.pods import PodAges, count_pods, members_of, misses_of
from autoscaler.remote_fleet import Member


def endpoint(address, uid=None, **conditions):
    target = {"targetRef": {"uid": uid}} if uid else {}
    return {"addresses": [address], "conditions": conditions, **target}


def a_slice(*endpoints, family="IPv4", name="s", ports=({"name": "http", "port": 8000},)):
    return {
        "metadata": {"name": name},
        "addressType": family,
        "ports": list(ports),
        "endpoints": list(endpoints),
    }


def members(*slices, pods=(), port=None, is_https=False, leaving=()):
    return members_of(slices, {pod["metadata"]["uid"]: pod for pod in pods}, port, is_https, leaving)


def pod(uid, deleted=False, phase="Running", conditions=(), **status):
    metadata = {"uid": uid, "name": uid, "creationTimestamp": "2025-06-15T15:06:40Z"}
    if deleted:
        metadata["deletionTimestamp"] = "2025-06-15T15:06:40Z"
    return {"metadata": metadata, "status": {"phase": phase, "conditions": list(conditions), **status}}


def unschedulable(reason="Unschedulable"):
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "message": "no GPUs",
        "lastTransitionTime": "2025-06-15T15:06:40Z",
    }


def waits(reason, message=None):
    return {"state": {"waiting": {"reason": reason, **({"message": message} if message else {})}}}


def counted(*pods, ready=(), age=0.0, ages=None, start_timeout=600.0):
    by_uid = {each["metadata"]["uid"]: each for each in pods}
    return count_pods(by_uid, ready, dict.fromkeys(by_uid, age) | (ages or {}), start_timeout)


def test_ready_endpoints_are_replicas_and_a_condition_that_is_not_there_means_ready():
    found = members(
        a_slice(
            endpoint("10.0.0.1", "a", ready=True),
            endpoint("10.0.0.2", "b"),
            endpoint("10.0.0.3", "c", ready=False),
        )
    )
    assert found == [Member("a", "http://10.0.0.1:8000"), Member("b", "http://10.0.0.2:8000")]


def test_who_terminates_drains_whoever_says_so_first():
    by_slice = members(a_slice(endpoint("10.0.0.1", "a", ready=False, serving=True, terminating=True)))
    by_pod = members(a_slice(endpoint("10.0.0.1", "a", ready=True)), pods=[pod("a", deleted=True)])
    by_us = members(a_slice(endpoint("10.0.0.1", "a", ready=True)), leaving={"a"})
    assert by_slice == by_pod == by_us == [Member("a", "http://10.0.0.1:8000", is_draining=True)]


def test_a_pod_in_two_slices_is_one_replica():
    six = a_slice(endpoint("fd00::1", "a"), family="IPv6", name="six")
    four = a_slice(endpoint("10.0.0.1", "a"), name="four")
    assert members(six, four) == [Member("a", "http://10.0.0.1:8000")]
    assert members(six, is_https=True) == [Member("a", "https://[fd00::1]:8000")]


def test_the_port_is_found_by_name_or_number():
    both = a_slice(endpoint("10.0.0.1"), ports=({"name": "grpc", "port": 1}, {"name": "http", "port": 2}))
    assert [each.url for each in members(both, port="http")] == ["http://10.0.0.1:2"]
    assert [each.url for each in members(both, port="1")] == ["http://10.0.0.1:1"]
    assert [each.url for each in members(both)] == ["http://10.0.0.1:1"]
    assert members(both, port="metrics") == []


def test_a_pod_with_two_addresses_keeps_its_first_whichever_slice_tells_of_it_first():
    six = a_slice(endpoint("fd00::1", "a"), family="IPv6", name="six")
    empty, four = a_slice(name="four"), a_slice(endpoint("10.0.0.1", "a"), name="four")
    dual = pod("a", podIP="10.0.0.1")
    assert members(six, empty, pods=[dual]) == []
    assert members(six, four, pods=[dual]) == [Member("a", "http://10.0.0.1:8000")]
    assert members(six, four, pods=[pod("a", podIP="fd00::1")]) == [Member("a", "http://[fd00::1]:8000")]
    assert members(six, pods=[dual]) == [Member("a", "http://[fd00::1]:8000")]  # the Service is IPv6 only


def test_a_pod_that_moves_from_one_slice_to_another_stays_one_replica():
    old, new = a_slice(endpoint("10.0.0.1", "a"), name="s-1"), a_slice(endpoint("10.0.0.1", "a"), name="s-2")
    stale = a_slice(endpoint("10.0.0.1", "a", ready=False, serving=False), name="s-1")
    for slices in ([old], [old, new], [stale, new], [new]):
        assert members(*slices) == [Member("a", "http://10.0.0.1:8000")]


def test_what_keeps_all_pods_of_a_service_from_being_found_is_said():
    slices = [a_slice(ports=({"name": "grpc", "port": 1}, {"name": None, "port": 2}))]
    assert misses_of(slices, "grpc") is misses_of(slices, "2") is misses_of(slices, None) is None
    assert misses_of(slices, "http") == "it has no port http; set port to one of these: (no name): 2, grpc: 1"
    assert "no EndpointSlice" in misses_of([], None)
    assert misses_of([a_slice(ports=())], "http") is None  # nobody behind it yet


def test_empty_slices_have_nobody():
    assert members({**a_slice(), "endpoints": None}, {**a_slice(endpoint("1.1.1.1")), "ports": None}) == []


def test_pods_that_are_neither_ready_nor_hopeless_are_starting():
    pods = [
        pod("ready"),
        pod("starting", phase="Pending"),
        pod("terminating", deleted=True),
        pod("over", phase="Failed"),
        pod("stuck"),
    ]
    counts = counted(*pods, ready={"ready"}, age=599.0, ages={"stuck": 600.0})
    assert (counts.live, counts.starting, counts.unschedulable, counts.stuck) == (3, 1, 0, 1)
    assert counts.why == "1 pods do not get ready; see why: kubectl describe pod stuck"


def test_a_pod_without_a_node_is_counted_on_for_half_a_minute():
    waiting = pod("a", phase="Pending", conditions=[unschedulable()])
    soon, late = counted(waiting, age=29.0), counted(waiting, age=30.0)
    assert (soon.starting, soon.unschedulable, soon.why) == (1, 0, None)
    assert (late.starting, late.unschedulable) == (0, 1)
    assert late.why == "1 pods cannot be scheduled: no GPUs"


def test_a_scheduling_gate_is_no_lack_of_nodes():
    gated = pod("a", phase="Pending", conditions=[unschedulable(reason="SchedulingGated")])
    assert counted(gated, age=300.0).unschedulable == 0


def test_what_keeps_a_container_from_starting_is_said_at_once():
    pulls = pod("a", containerStatuses=[waits("ImagePullBackOff", 'Back-off pulling image "x"')])
    loads = pod("b", initContainerStatuses=[waits("CrashLoopBackOff")])
    begins = pod("c", containerStatuses=[waits("ContainerCreating")])
    assert counted(pulls).why == '1 pods do not start: ImagePullBackOff: Back-off pulling image "x"'
    assert counted(loads).why == "1 pods do not start: CrashLoopBackOff"
    assert counted(begins).why is None
    assert counted(pulls).starting == 1  # the image may be pushed yet


def test_the_age_of_a_state_is_counted_here_from_when_it_was_first_seen():
    ages, refused = PodAges(), pod("a", conditions=[unschedulable()])
    assert ages.update({"a": refused}, (), now=100.0) == {"a": 0.0}
    changed = pod("a", conditions=[{**unschedulable(), "message": "other words"}], nominatedNodeName="n")
    assert ages.update({"a": changed, "b": pod("b")}, (), now=130.0) == {"a": 30.0, "b": 0.0}
    placed = pod("a", conditions=[{**unschedulable(), "status": "True"}])
    assert ages.update({"a": placed}, (), now=140.0) == {"a": 0.0}
    assert ages.update({"a": placed}, {"a"}, now=150.0) == {"a": 0.0}
    assert ages.update({"a": placed}, (), now=9999.0) == {
        "a": 0.0
    }  # it is not ready any more, and starts anew
    assert ages.update({}, (), now=9999.0) == {}
