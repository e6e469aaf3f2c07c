"""Which of several programs acts: this one in any case, or the one that holds a lock of this machine.

Among programs on several machines a Lease in their cluster says it: see `platforms.kubernetes.lease`.
"""

from autoscaler.leadership.alone import Alone
from autoscaler.leadership.file_lock import FileLeadership

__all__ = ["Alone", "FileLeadership"]
