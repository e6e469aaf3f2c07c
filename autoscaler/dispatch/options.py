"""How requests find their replica: options of the dispatcher beside those of its queue."""

from dataclasses import dataclass, field

from autoscaler.dispatch.affinity import AffinityOptions
from autoscaler.dispatch.batching import BatchOptions
from autoscaler.dispatch.concurrency_limit import ConcurrencyOptions
from autoscaler.dispatch.health import HealthOptions
from autoscaler.dispatch.hedge import HedgeOptions
from autoscaler.dispatch.learned_slots import SlotOptions
from autoscaler.dispatch.retry_budget import RetryBudgetOptions


@dataclass(frozen=True, slots=True)
class DispatchOptions:
    """What is on by default costs nothing until a replica gives cause; the rest is asked for."""

    concurrency: ConcurrencyOptions = field(default_factory=ConcurrencyOptions)
    """Slow start, and backpressure."""
    health: HealthOptions = field(default_factory=HealthOptions)
    """When a replica is ejected."""
    retries: RetryBudgetOptions = field(default_factory=RetryBudgetOptions)
    """How many requests that did not execute may be sent again."""
    slots: SlotOptions = field(default_factory=SlotOptions)
    """What the slots of replicas that learn them shall keep."""
    affinity: AffinityOptions | None = None
    """Keep requests with one `affinity_key` together; None: every request to the least loaded."""
    batching: BatchOptions = field(default_factory=BatchOptions)
    """How large batches may be, on replicas that take them."""
    hedging: HedgeOptions | None = None
    """Send late requests that are `hedgeable` a second time, onto idle slots; None: never."""
