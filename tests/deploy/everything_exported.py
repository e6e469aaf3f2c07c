"""Every metric that the program can export, with every label and value that they can have."""

from collections import defaultdict
from itertools import product
from types import SimpleNamespace

from prometheus_client.parser import text_string_to_metric_families

from autoscaler.app.controller_status import controller_metrics
from autoscaler.domain import Binding, Fleet, Hold, Outcome, Reason, Request, ScaleTo, TokenUse
from autoscaler.leadership import Alone
from autoscaler.proxy.tenants.counts import RESULTS, TenantCounts
from autoscaler.scaling.doors import Doors, MergeOptions
from autoscaler.telemetry.demand.counters import Totals, demand_counters
from autoscaler.telemetry.exposition import Metrics
from autoscaler.telemetry.gpu_metrics import gpu_metrics
from autoscaler.telemetry.gpu_reading import GpuPart, GpuReading, Throttle
from autoscaler.telemetry.ledger_watch import ledger_metrics
from autoscaler.telemetry.scrape.reading import SignalReading
from autoscaler.telemetry.signal_metrics import signal_metrics
from autoscaler.telemetry.signal_test import Grade, Standing
from autoscaler.telemetry.signal_watch import GradedSignal
from autoscaler.telemetry.status import OrdersStatus
from tests.telemetry.status_examples import a_pool, a_status

_GPU = GpuReading(
    0,
    busy_ratio=0.9,
    memory_busy_ratio=0.5,
    memory_used=1.0,
    memory_total=2.0,
    power=300.0,
    power_limit=700.0,
    temperature=60.0,
    throttled=frozenset({Throttle.POWER_CAP}),
    parts=(GpuPart("MIG-1", 1.0, 2.0),),
)
_SIGNAL = GradedSignal("engine.requests_running", SignalReading(1.0), Grade(Standing.GOOD))
_FLEET = Fleet(1, 0, 0, 1, 5.0, 9.0)


def everything_exported() -> dict[str, dict[str, set[str]]]:
    """Return the values of every label of every sample name."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    text, _ = _metrics().render()
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            labels = found[sample.name]  # there without labels too
            for label, value in sample.labels.items():
                labels[label].add(value)
    return found


def _metrics() -> Metrics:
    pool = a_pool(acts=True, orders=OrdersStatus(probability=0.5, delay=60.0))
    metrics, tenants = Metrics(("chat",), lambda: a_status(pool)), TenantCounts(names_max=1)
    chat, request = metrics.for_pool("chat"), Request(id="a", arrived_at=10.0, deadline=99.0)
    chat.started(request, 11.0)
    chat.slot_freed(1.0, 12.0)
    chat.batched(2)
    chat.answered(request, TokenUse(9, 5, True, started_at=10.0, first_at=11.0, last_at=12.0), 12.0)
    for outcome in Outcome:
        chat.ended(request, outcome, 12.0)
    for reason, scaled in product(Reason, (1, 3, None)):
        decision = (
            Hold(2, reason, Binding.WAIT) if scaled is None else ScaleTo(scaled, 2, reason, Binding.WAIT)
        )
        metrics.record("chat", None, _FLEET, decision, 0.0, 0.0)
    for result in RESULTS:
        tenants.add("somebody", result)
    metrics.show(tenants.collect)
    metrics.show(lambda: gpu_metrics([_GPU]))
    metrics.show(lambda: signal_metrics({"chat": [_SIGNAL]}))
    metrics.show(lambda: ledger_metrics({"chat": []}))
    metrics.show(lambda: demand_counters({"chat": Totals()}))
    divided = SimpleNamespace(shares=lambda: {"http://10.0.0.5:8082": 4})
    watched = SimpleNamespace(name="chat", doors=Doors(MergeOptions(), 0.0), teller=divided)
    metrics.show(lambda: controller_metrics([watched], Alone()))
    return metrics
