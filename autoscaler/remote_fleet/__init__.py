"""What the platforms have in common whose replicas somebody else starts: a cluster, a script, a web hook.

There the number of replicas is told to one place, and the replicas are found in another. This package is the
finding: `options` says where replicas are listed, `report` and `dns` are two such lists, `roster` probes
who is listed and tells the request path, `orders` remembers what was asked for and has not come, `fleet`
joins them to the numbers that the controller reads, and `inquiry` asks whoever runs the replicas, whose word
of starts `told_starts` believes for a while. The telling is each platform's own.
"""

from autoscaler.remote_fleet.faults import fault_of
from autoscaler.remote_fleet.fleet import RemoteFleet
from autoscaler.remote_fleet.inquiry import Inquiry
from autoscaler.remote_fleet.member import Member, names_a_host
from autoscaler.remote_fleet.options import RemoteFleetOptions
from autoscaler.remote_fleet.orders import Orders
from autoscaler.remote_fleet.pauses import Pauses
from autoscaler.remote_fleet.report import REPORT_BYTES_MAX, FleetReport, read_report
from autoscaler.remote_fleet.roster import Roster

__all__ = [
    "REPORT_BYTES_MAX",
    "FleetReport",
    "Inquiry",
    "Member",
    "Orders",
    "Pauses",
    "RemoteFleet",
    "RemoteFleetOptions",
    "Roster",
    "fault_of",
    "names_a_host",
    "read_report",
]
