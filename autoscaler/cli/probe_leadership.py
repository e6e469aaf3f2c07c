"""Whether this one could lead: the lock file can be made, or the Lease read and written."""

from pathlib import Path

from autoscaler.cli.findings import Finding, Level
from autoscaler.cli.probe_files import probe_folder
from autoscaler.cli.probe_kubernetes import Right, review
from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.kubernetes import LeaseOptions
from autoscaler.platforms.kubernetes.access import load_access
from autoscaler.platforms.kubernetes.api import Api
from autoscaler.settings.schema_leadership import LeadershipOptions, LockOptions

_GROUP = "coordination.k8s.io"


async def probe_leadership(options: LeadershipOptions) -> list[Finding]:
    """Look at what the leader would hold, and take nothing; nothing if there is one controller only."""
    match options:
        case LockOptions():
            return [probe_folder("leadership.lock_file", Path(options.path).parent)]
        case LeaseOptions():
            return [await _probe_lease(options)]
        case None:
            return []


async def _probe_lease(options: LeaseOptions) -> Finding:
    subject = "leadership.lease"
    rights = [
        Right(_GROUP, "leases", "get", name=options.name),
        Right(_GROUP, "leases", "patch", name=options.name),
        Right(_GROUP, "leases", "create"),
    ]
    api = Api(lambda: load_access(options.kubeconfig, options.context))
    try:
        level, text = await review(api, options.namespace or await api.namespace(), rights)
    except PlatformUnavailable as error:
        return Finding(Level.PROBLEM, subject, str(error))
    finally:
        await api.close()
    return Finding(level, subject, text)
