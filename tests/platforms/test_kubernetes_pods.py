"""What pods and EndpointSlices say of the replicas."""

from autoscaler.platforms.kubernetes.pods import count_pods, members_of, seconds_of
from autoscaler.remote_fleet import Member

NOW = 1.75e9


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


def pod(uid, created=NOW, deleted=False, phase="Running", conditions=()):
    metadata = {"uid": uid, "name": uid, "creationTimestamp": "2025-06-15T15:06:40Z"}
    if created != NOW:
        metadata["creationTimestamp"] = "2025-06-15T14:56:40Z"
    if deleted:
        metadata["deletionTimestamp"] = "2025-06-15T15:06:40Z"
    return {"metadata": metadata, "status": {"phase": phase, "conditions": list(conditions)}}


def unschedulable(since="2025-06-15T15:06:40Z", reason="Unschedulable"):
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "message": "no GPUs",
        "lastTransitionTime": since,
    }


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


def test_empty_slices_have_nobody():
    assert members({**a_slice(), "endpoints": None}, {**a_slice(endpoint("1.1.1.1")), "ports": None}) == []


def test_pods_that_are_neither_ready_nor_hopeless_are_starting():
    pods = [
        pod("ready"),
        pod("starting", phase="Pending"),
        pod("terminating", deleted=True),
        pod("over", phase="Failed"),
        pod("stuck", created=NOW - 600),
    ]
    counts = count_pods(pods, {"ready"}, NOW, start_timeout=600.0)
    assert (counts.live, counts.starting, counts.unschedulable) == (3, 1, 0)


def test_a_pod_without_a_node_is_counted_on_for_half_a_minute():
    pods = [pod("a", phase="Pending", conditions=[unschedulable()])]
    soon = count_pods(pods, (), NOW + 29.0, 600.0)
    late = count_pods(pods, (), NOW + 30.0, 600.0)
    assert (soon.starting, soon.unschedulable) == (1, 0)
    assert (late.starting, late.unschedulable, late.why) == (0, 1, "no GPUs")


def test_a_scheduling_gate_is_no_lack_of_nodes():
    gated = pod("a", phase="Pending", conditions=[unschedulable(reason="SchedulingGated")])
    assert count_pods([gated], (), NOW + 300.0, 600.0).unschedulable == 0


def test_times_of_the_api_are_understood_with_and_without_fractions():
    assert seconds_of("2025-06-15T15:06:40Z") == NOW
    assert seconds_of("2025-06-15T15:06:40.250000Z") == NOW + 0.25
