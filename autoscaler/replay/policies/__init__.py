"""Who decides in a replay: this program's own controller, and the policies that people use today.

One file each. A policy sees what its original would see, as often as that looks, and answers with the
replicas it wants; the engine does the rest in the same way for all.
"""

from autoscaler.replay.policies.fixed import FixedPolicy, peak_replicas
from autoscaler.replay.policies.own import OwnPolicy
from autoscaler.replay.policies.policy import Policy

__all__ = ["FixedPolicy", "OwnPolicy", "Policy", "peak_replicas"]
