"""Replicas as processes of this machine. `platform.py` joins the parts; `fleet_plan.py` decides."""

from autoscaler.platforms.local_process.fleet_plan import State
from autoscaler.platforms.local_process.options import LocalOptions, command_problems
from autoscaler.platforms.local_process.platform import LocalProcesses
from autoscaler.platforms.local_process.view import ReplicaView

__all__ = ["LocalOptions", "LocalProcesses", "ReplicaView", "State", "command_problems"]
