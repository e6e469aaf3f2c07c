"""Traffic of the past, from whatever people have of it: logs, tables, saved answers.

`read` tells what a file is and gives its `Traffic`: single requests or counts an interval, and what could not
be used. One file reads each kind (`access_log`, `envoy_log`, …); they hand what they find to `gathered`
(requests) or `count_rows` (counts). docs/traffic.md shows every kind.
"""

from autoscaler.telemetry.traffic.demand import Fault, Requests, Traffic
from autoscaler.telemetry.traffic.read import read_traffic

__all__ = ["Fault", "Requests", "Traffic", "read_traffic"]
