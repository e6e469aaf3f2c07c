"""The keys of the configuration file that say who waits, who goes first, and who goes where."""

from math import inf
from typing import Annotated

from pydantic import Field

from autoscaler.dispatch.admission import QueueOptions
from autoscaler.dispatch.affinity import AffinityOptions
from autoscaler.dispatch.concurrency_limit import ConcurrencyOptions
from autoscaler.dispatch.health import HealthOptions
from autoscaler.dispatch.hedge import HedgeOptions
from autoscaler.dispatch.options import DispatchOptions
from autoscaler.dispatch.priority_class import DEFAULT_CLASSES, PriorityClass
from autoscaler.dispatch.retry_budget import RetryBudgetOptions
from autoscaler.proxy.affinity_key import AffinityKeyOptions
from autoscaler.proxy.options import RouteOptions
from autoscaler.settings.queue_rules import QUEUE_RULES
from autoscaler.settings.rules import in_order
from autoscaler.settings.section import Section, default
from autoscaler.settings.values import (
    Count,
    Duration,
    Fraction,
    HeaderName,
    Number,
    OrNone,
    Rate,
    Share,
    Size,
    YesNo,
)
from autoscaler.units import format_fraction

_SOME_TIME = Duration(least=0.001)
"""For what must take some time."""


class ClassSection(Section):
    """One class of requests: `PriorityClass`."""

    priority: Annotated[int, Count(least=1), Field(examples=["1"])]
    wait_max: Annotated[float | None, OrNone(_SOME_TIME)] = default(PriorityClass, "wait_timeout")
    starvation_bound: Annotated[float | None, OrNone(_SOME_TIME)] = None
    slots_floor: Annotated[float, Share()] = default(PriorityClass, "slots_floor")
    slots_share: Annotated[float, Share()] = default(PriorityClass, "slots_share")
    queue_share: Annotated[float, Share()] = default(PriorityClass, "queue_share")
    preempts: Annotated[bool, YesNo()] = default(PriorityClass, "preempts")
    preemptible: Annotated[bool, YesNo()] = default(PriorityClass, "preemptible")

    RULES = (in_order("slots_floor", "slots_share", format_fraction),)

    def options(self, name: str) -> PriorityClass:
        """Return the class."""
        return PriorityClass(
            name,
            wait_timeout=self.wait_max,
            starvation_bound=inf if self.starvation_bound is None else self.starvation_bound,
            **self.model_dump(exclude={"wait_max", "starvation_bound"}),
        )


def _section_of(options: PriorityClass) -> ClassSection:
    """Return the section that reads as `options`; made of values, not of what stands in a file."""
    bound = options.starvation_bound
    return ClassSection.model_construct(
        priority=options.priority,
        wait_max=options.wait_timeout,
        starvation_bound=None if bound == inf else bound,
        slots_floor=options.slots_floor,
        slots_share=options.slots_share,
        queue_share=options.queue_share,
        preempts=options.preempts,
        preemptible=options.preemptible,
    )


_CLASSES = {each.name: _section_of(each) for each in DEFAULT_CLASSES}


class QueueSection(Section):
    """Who may wait, how long, and who goes first: `QueueOptions`, `RouteOptions`."""

    requests_max: Annotated[int, Count()] = default(QueueOptions, "requests_max")
    bytes_max: Annotated[int, Size()] = default(QueueOptions, "bytes_max")
    work_max: Annotated[float | None, OrNone(_SOME_TIME)] = None
    wait_max: Annotated[float, _SOME_TIME] = default(RouteOptions, "wait_timeout")
    cold_wait_max: Annotated[float | None, OrNone(Duration())] = None
    refuse_late: Annotated[bool, YesNo()] = default(QueueOptions, "refuse_late")
    starvation_every: Annotated[int, Count(least=1)] = default(QueueOptions, "starvation_every")
    tenant_weights: dict[str, Annotated[float, Number(above=0.0)]] = Field(default_factory=dict)
    classes: dict[str, ClassSection] = _CLASSES

    RULES = QUEUE_RULES

    @property
    def options(self) -> QueueOptions:
        """Return the options."""
        return QueueOptions(
            requests_max=self.requests_max,
            bytes_max=self.bytes_max,
            service_seconds_max=inf if self.work_max is None else self.work_max,
            refuse_late=self.refuse_late,
            clock_stops_max=self.wait_max if self.cold_wait_max is None else self.cold_wait_max,
            classes=tuple(section.options(name) for name, section in self.classes.items()),
            starvation_every=self.starvation_every,
            tenant_weights=self.tenant_weights,
        )


class ConcurrencySection(Section):
    """How slots of a replica come, shrink and grow back: `ConcurrencyOptions`."""

    slow_start: Annotated[float, Duration()] = default(ConcurrencyOptions, "slow_start")
    decrease: Annotated[float, Fraction()] = default(ConcurrencyOptions, "decrease")
    recovery: Annotated[float, _SOME_TIME] = default(ConcurrencyOptions, "recovery")
    settle: Annotated[float, Duration()] = default(ConcurrencyOptions, "settle")
    retry_after_max: Annotated[float, Duration()] = default(ConcurrencyOptions, "retry_after_max")


class HealthSection(Section):
    """When a replica is ejected: `HealthOptions`."""

    failures: Annotated[int, Count(least=1)] = default(HealthOptions, "failures_max")
    probe_failures: Annotated[int, Count(least=1)] = default(HealthOptions, "probe_failures_max")
    ejection: Annotated[float, _SOME_TIME] = default(HealthOptions, "ejection")
    ejection_max: Annotated[float, _SOME_TIME] = default(HealthOptions, "ejection_max")
    spare_refused: Annotated[float, Duration()] = default(HealthOptions, "spare_refused")
    spare_broken: Annotated[float, Duration()] = default(HealthOptions, "spare_broken")

    RULES = (in_order("ejection", "ejection_max"),)

    @property
    def options(self) -> HealthOptions:
        """Return the options."""
        return HealthOptions(
            failures_max=self.failures,
            probe_failures_max=self.probe_failures,
            **self.model_dump(exclude={"failures", "probe_failures"}),
        )


class RetriesSection(Section):
    """How many requests that did not execute may be sent again: `RetryBudgetOptions`."""

    share: Annotated[float, Share()] = default(RetryBudgetOptions, "share")
    rate: Annotated[float, Rate(zero_allowed=True)] = default(RetryBudgetOptions, "rate")
    burst: Annotated[int, Count(least=1)] = default(RetryBudgetOptions, "burst")


class AffinitySection(Section):
    """Which requests go to the same replica, and how far: `AffinityKeyOptions`, `AffinityOptions`."""

    session_header: Annotated[str | None, OrNone(HeaderName())] = default(
        AffinityKeyOptions, "session_header"
    )
    prompt_prefix: Annotated[int | None, OrNone(Size(least=1))] = default(
        AffinityKeyOptions, "prompt_prefix_bytes"
    )
    load_bound: Annotated[float, Number(above=1.0)] = default(AffinityOptions, "load_bound")

    @property
    def key_options(self) -> AffinityKeyOptions:
        """Return how requests are told to be alike."""
        return AffinityKeyOptions(self.session_header, self.prompt_prefix)


class HedgingSection(Section):
    """Which requests are worth a second copy, where the route hedges: `HedgeOptions`."""

    quantile: Annotated[float, Fraction()] = default(HedgeOptions, "quantile")
    delay_min: Annotated[float, Duration()] = default(HedgeOptions, "delay_min")
    share: Annotated[float, Share(zero_allowed=False)] = default(HedgeOptions, "share")

    @property
    def options(self) -> HedgeOptions:
        """Return the options."""
        return HedgeOptions(**self.model_dump())


class DispatchSection(Section):
    """How requests find their replica: `DispatchOptions`."""

    concurrency: ConcurrencySection = ConcurrencySection()
    health: HealthSection = HealthSection()
    retries: RetriesSection = RetriesSection()
    affinity: AffinitySection = AffinitySection()
    hedging: HedgingSection = HedgingSection()

    def options(self, *, hedges: bool) -> DispatchOptions:
        """Return the options; affinity is on where requests can be told to be alike."""
        return DispatchOptions(
            concurrency=ConcurrencyOptions(**self.concurrency.model_dump()),
            health=self.health.options,
            retries=RetryBudgetOptions(**self.retries.model_dump()),
            affinity=AffinityOptions(self.affinity.load_bound) if self.affinity.key_options.any else None,
            hedging=self.hedging.options if hedges else None,
        )
