"""The metrics, read back by Prometheus' own parsers."""

import math
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from autoscaler.domain import Binding, DropReason, Fleet, Hold, Outcome, Reason, Request, ScaleTo
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.status import ForecastStatus, OccupancyStatus, OrdersStatus, ReplicasStatus
from tests.telemetry.status_examples import a_pool, a_status

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
FLEET = Fleet(1, 0, 0, 1, 5.0, 9.0)


def a_request(id="a", arrived_at=10.0):
    return Request(id=id, arrived_at=arrived_at, deadline=99.0)


LABELS = ("pool", "class", "outcome", "direction", "reason", "state", "quantile", "statistic", "le", "kind")
OBSTACLES = ("supply", "no_effect", "edited_elsewhere")


def samples(metrics):
    """Return every sample by its name and the values of its labels, in the order of LABELS."""
    text, _ = metrics.render()
    return {
        (sample.name, *(sample.labels[label] for label in LABELS if label in sample.labels)): sample.value
        for family in parse_text(text.decode())
        for sample in family.samples
    }


@pytest.fixture
def metrics():
    return Metrics(("chat",), a_status)


def test_every_class_is_counted_by_itself(metrics):
    chat = metrics.for_pool("chat")
    for name in ("bulk", "bulk", "critical"):
        chat.ended(replace(a_request("a"), priority_class=name), Outcome.COMPLETED, 15.0)
    found = samples(metrics)
    assert found["autoscaler_requests_total", "chat", "bulk", "completed"] == 2
    assert found["autoscaler_requests_total", "chat", "critical", "completed"] == 1
    assert found["autoscaler_requests_total", "chat", "standard", "completed"] == 0
    assert chat.outcomes()[Outcome.COMPLETED] == 3


def test_a_request_is_timed_and_counted_by_its_outcome(metrics):
    chat = metrics.for_pool("chat")
    served, refused = a_request("a"), a_request("b")
    chat.arrived(served, 10.0)
    chat.started(served, 12.0)
    chat.slot_freed(3.0, 15.0)
    chat.ended(served, Outcome.COMPLETED, 15.0)
    chat.ended(refused, Outcome.REJECTED, 15.0, DropReason.QUEUE_FULL)
    found = samples(metrics)
    assert found["autoscaler_requests_total", "chat", "standard", "completed"] == 1
    assert found["autoscaler_requests_total", "chat", "standard", "rejected"] == 1
    assert found["autoscaler_requests_total", "chat", "standard", "failed"] == 0
    assert found["autoscaler_waiting_time_seconds_sum", "chat"] == 2.0
    assert found["autoscaler_service_time_seconds_sum", "chat"] == 3.0
    assert found["autoscaler_service_time_seconds_bucket", "chat", "2.5"] == 0
    assert found["autoscaler_service_time_seconds_bucket", "chat", "5.0"] == 1
    assert chat.requests()["standard", Outcome.COMPLETED] == 1


def test_gauges_are_read_off_the_status_of_the_moment():
    pools = [a_pool(queue_depth=3)]
    metrics = Metrics(("chat",), lambda: a_status(*pools))
    assert samples(metrics)["autoscaler_queue_depth", "chat"] == 3
    pools[:] = [a_pool(queue_depth=8)]
    found = samples(metrics)
    assert found["autoscaler_queue_depth", "chat"] == 8
    assert found["autoscaler_slots", "chat", "busy"] == 11
    assert found["autoscaler_slots", "chat", "free"] == 5
    assert found["autoscaler_occupancy_ratio", "chat"] == 0.6875
    assert found["autoscaler_arrival_rate", "chat"] == 8.25
    assert found["autoscaler_forecast_arrival_rate", "chat", "0.9"] == 12.0
    assert found["autoscaler_offered_load_erlangs", "chat"] == 9.9
    assert found["autoscaler_replicas", "chat", "starting"] == 2
    assert found["autoscaler_desired_replicas", "chat"] == 6
    assert found["autoscaler_cold_start_seconds", "chat", "p90"] == 19.5
    assert found["autoscaler_slots_leaked_total", "chat"] == 0
    assert found["autoscaler_objective_met_ratio", "chat"] == 0.9975
    assert found["autoscaler_event_loop_lag_seconds",] == 0.0021


def test_what_stands_in_the_way_of_orders_is_exported():
    orders = OrdersStatus(wanted=50, late=3, probability=0.25, delay=70.0, is_short=True, asked_elsewhere=9)
    found = samples(Metrics(("chat",), lambda: a_status(a_pool(orders=orders))))
    assert found["autoscaler_wanted_replicas", "chat"] == 50
    assert found["autoscaler_replicas", "chat", "late"] == 3
    assert found["autoscaler_supply_probability_ratio", "chat"] == 0.25
    assert found["autoscaler_supply_delay_seconds", "chat"] == 70.0
    kinds = {kind: found["autoscaler_scaling_obstacle", "chat", kind] for kind in OBSTACLES}
    assert kinds == {"supply": 1, "no_effect": 0, "edited_elsewhere": 1}


def test_who_decides_tells_whether_it_is_carried_out_and_who_does_not_decide_tells_nothing():
    pools = [a_pool(acts=True), a_pool(name="static", acts=False), a_pool(name="door")]
    found = samples(Metrics(("chat", "static", "door"), lambda: a_status(*pools)))
    assert (found["autoscaler_acts", "chat"], found["autoscaler_acts", "static"]) == (1, 0)
    assert ("autoscaler_acts", "door") not in found


def test_what_is_not_known_has_no_sample():
    pool = a_pool(forecast=ForecastStatus(), occupancy=OccupancyStatus(), arrival_rate=math.nan)
    found = samples(Metrics(("chat",), lambda: a_status(pool)))
    absent = {"autoscaler_arrival_rate", "autoscaler_forecast_arrival_rate", "autoscaler_occupancy_ratio"}
    assert not absent & {name for name, *_ in found}


def test_decisions_are_counted_by_direction_and_reason(metrics):
    for decision in [
        ScaleTo(6, 4, Reason.DEMAND_RISES, Binding.WAIT),
        ScaleTo(3, 4, Reason.DEMAND_FALLS, Binding.BAND),
        Hold(4, Reason.WITHIN_BAND, Binding.BAND),
        Hold(4, Reason.WITHIN_BAND, Binding.WAIT),
    ]:
        metrics.record("chat", None, FLEET, decision, 0.0, 0.0)
    found = samples(metrics)
    assert found["autoscaler_decisions_total", "chat", "up", "demand_rises"] == 1
    assert found["autoscaler_decisions_total", "chat", "down", "demand_falls"] == 1
    assert found["autoscaler_decisions_total", "chat", "hold", "within_band"] == 2


def test_openmetrics_is_served_to_who_accepts_it(metrics):
    body, content_type = metrics.render(OPENMETRICS)
    assert content_type.startswith("application/openmetrics-text")
    names = {family.name for family in parse_openmetrics(body.decode())}
    assert {"autoscaler_requests", "autoscaler_waiting_time_seconds", "autoscaler_queue_depth"} <= names


def test_text_is_served_to_everyone_else(metrics):
    _, content_type = metrics.render("*/*")
    assert content_type.startswith("text/plain; version=0.0.4")


def test_only_pools_of_the_configuration_become_labels(metrics):
    with pytest.raises(KeyError):
        metrics.for_pool("whatever a client sent")


def test_an_objective_and_what_is_ejected_can_be_read_off():
    replicas = ReplicasStatus(desired=6, starting=2, ready=4, draining=1, ejected=1)
    found = samples(Metrics(("chat",), lambda: a_status(a_pool(replicas=replicas))))
    assert found["autoscaler_objective_wait_seconds", "chat"] == 5.0
    assert found["autoscaler_objective_quantile_ratio", "chat"] == 0.99
    assert found["autoscaler_replicas", "chat", "ejected"] == 1


def test_whom_the_queue_let_go_of_is_counted_by_the_reason(metrics):
    metrics.for_pool("chat").ended(a_request(), Outcome.REJECTED, 15.0, DropReason.PREDICTED_LATE)
    found = samples(metrics)
    assert found["autoscaler_dropped_requests_total", "chat", "predicted_late"] == 1
    assert found["autoscaler_dropped_requests_total", "chat", "queue_full"] == 0


def test_changes_of_a_fleet_are_counted_from_0_on(metrics):
    assert samples(metrics)["autoscaler_decisions_total", "chat", "up", "demand_rises"] == 0
