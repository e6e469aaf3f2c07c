"""The law of service that a scenario names."""

from collections.abc import Sequence

from autoscaler.queueing.batch_line import BatchLine
from autoscaler.queueing.continuous_batching import StepLine
from autoscaler.replay.scenario import Scenario
from autoscaler.replay.service.batches import Batches
from autoscaler.replay.service.continuous import ContinuousBatching
from autoscaler.replay.service.law import Engine, ServiceLaw
from autoscaler.replay.service.own_times import OwnTimes


def service_law(scenario: Scenario, work: Sequence[float], engine: Engine) -> ServiceLaw:
    """Make the law; `work` is what each request needs, by its number."""
    match scenario.batching:
        case None:
            return OwnTimes(work, scenario.slots_per_replica, engine)
        case BatchLine() as line:
            return Batches(line, scenario.slots_per_replica, engine)
        case StepLine() as line:
            return ContinuousBatching(work, line, scenario.slots_per_replica, engine)
