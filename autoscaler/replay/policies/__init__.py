"""Who decides in a replay: this program's own controller, and the policies that people use today.

One file each. A policy sees what its original would see, as often and as late as that does, and answers with
the replicas it wants; the engine does the rest in the same way for all.
"""

from autoscaler.replay.policies.fixed import FixedPolicy, peak_replicas
from autoscaler.replay.policies.flink_band import FlinkBandPolicy
from autoscaler.replay.policies.hpa import HpaPolicy
from autoscaler.replay.policies.keda import KedaPolicy
from autoscaler.replay.policies.knative import KnativePolicy
from autoscaler.replay.policies.own import OwnPolicy
from autoscaler.replay.policies.planner import PlannerPolicy
from autoscaler.replay.policies.policy import Policy
from autoscaler.replay.policies.predictive_hpa import PredictiveHpaPolicy
from autoscaler.replay.policies.ray_serve import RayServePolicy
from autoscaler.replay.policies.skyserve import SkyServePolicy

__all__ = [
    "FixedPolicy",
    "FlinkBandPolicy",
    "HpaPolicy",
    "KedaPolicy",
    "KnativePolicy",
    "OwnPolicy",
    "PlannerPolicy",
    "Policy",
    "PredictiveHpaPolicy",
    "RayServePolicy",
    "SkyServePolicy",
    "peak_replicas",
]
