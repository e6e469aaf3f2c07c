"""Every key of queue and dispatch reaches the option that it is for."""

from math import inf

from autoscaler.dispatch.admission import QueueOptions
from autoscaler.dispatch.affinity import AffinityOptions
from autoscaler.dispatch.concurrency_limit import ConcurrencyOptions
from autoscaler.dispatch.health import HealthOptions
from autoscaler.dispatch.hedge import HedgeOptions
from autoscaler.dispatch.options import DispatchOptions
from autoscaler.dispatch.priority_class import DEFAULT_CLASSES, PriorityClass
from autoscaler.dispatch.retry_budget import RetryBudgetOptions
from autoscaler.proxy.affinity_key import AffinityKeyOptions
from autoscaler.settings import PoolSettings, load

PLATFORM = "platform: {kind: static, urls: [http://127.0.0.1:9001]}"


def pool_of(folder, text: str = "") -> PoolSettings:
    file = folder / "f.yaml"
    file.write_text(f"pools:\n  a:\n    {PLATFORM}\n{text}", "utf-8")
    return load(file, {}).pools["a"]


def test_what_is_not_written_is_as_the_options_have_it(tmp_path):
    pool = pool_of(tmp_path)
    assert pool.queue == QueueOptions()
    assert pool.queue.classes == DEFAULT_CLASSES
    assert pool.dispatch == DispatchOptions()
    assert not pool.route.affinity.any


def test_classes_that_are_written_replace_the_four(tmp_path):
    pool = pool_of(
        tmp_path,
        """\
    queue:
      work_max: 10m
      starvation_every: 7
      tenant_weights: {acme: 3, beta: 0.5}
      classes:
        people: {priority: 1}
        batch:
          priority: 2
          wait_max: 1h
          starvation_bound: 5m
          slots_floor: 10%
          slots_share: 50%
          queue_share: 0.4
        night: {priority: 3, preemptible: true}
    route: {priority_class: people, broadcast: [/flush, /abort]}
""",
    )
    assert pool.queue.classes == (
        PriorityClass("people", 1),
        PriorityClass(
            "batch",
            2,
            wait_timeout=3600.0,
            starvation_bound=300.0,
            slots_floor=0.1,
            slots_share=0.5,
            queue_share=0.4,
        ),
        PriorityClass("night", 3, starvation_bound=inf, preemptible=True),
    )
    assert (pool.queue.service_seconds_max, pool.queue.starvation_every) == (600.0, 7)
    assert pool.queue.tenant_weights == {"acme": 3.0, "beta": 0.5}
    assert pool.route.broadcast == ("/flush", "/abort")


def test_every_key_of_dispatch_reaches_its_option(tmp_path):
    pool = pool_of(
        tmp_path,
        """\
    route: {hedge: true}
    dispatch:
      concurrency: {slow_start: 30s, decrease: 70%, recovery: 3s, settle: 2s, retry_after_max: 20s}
      health:
        failures: 5
        probe_failures: 2
        ejection: 4s
        ejection_max: 40s
        spare_refused: 2s
        spare_broken: 1s
      retries: {share: 0, rate: 0, burst: 7}
      affinity: {session_header: X-Session-Id, prompt_prefix: 2KiB, load_bound: 2}
      hedging: {quantile: 90%, delay_min: 50ms, share: 10%}
""",
    )
    assert pool.dispatch == DispatchOptions(
        concurrency=ConcurrencyOptions(30.0, 0.7, 3.0, 2.0, 20.0),
        health=HealthOptions(5, 2, 4.0, 40.0, 2.0, 1.0),
        retries=RetryBudgetOptions(0.0, 0.0, 7),
        affinity=AffinityOptions(2.0),
        hedging=HedgeOptions(0.9, 0.05, 0.1),
    )
    assert pool.route.affinity == AffinityKeyOptions("X-Session-Id", 2048)


def test_hedging_is_on_where_the_route_hedges_and_affinity_where_there_is_something_to_tell_by(tmp_path):
    pool = pool_of(tmp_path, "    dispatch: {affinity: {load_bound: 3}, hedging: {share: 10%}}\n")
    assert (pool.dispatch.affinity, pool.dispatch.hedging) == (None, None)
