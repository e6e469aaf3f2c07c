"""The keys that say which of several controllers acts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from autoscaler.platforms.kubernetes import LeaseOptions
from autoscaler.settings.rules import no_use, not_both, without
from autoscaler.settings.section import Section, default
from autoscaler.settings.values import FilePath, ObjectName, OrNone, Text

_FILE = OrNone(FilePath())
_TEXT = OrNone(Text())
_NAME = OrNone(ObjectName())


@dataclass(frozen=True, slots=True)
class LockOptions:
    """Controllers of one machine: whoever holds the lock of a file leads."""

    path: Path
    """Of the file; the same for all that look after the same pools, and for no others."""


LeadershipOptions = LockOptions | LeaseOptions | None
"""None: there is no other."""


class LeadershipSection(Section):
    """Who else there may be: `LockOptions` on one machine, `LeaseOptions` in a cluster."""

    lock_file: Annotated[Path | None, _FILE] = None
    lease: Annotated[str | None, _NAME] = None
    namespace: Annotated[str | None, _NAME] = default(LeaseOptions, "namespace")
    kubeconfig: Annotated[Path | None, _FILE] = default(LeaseOptions, "kubeconfig")
    context: Annotated[str | None, _TEXT] = default(LeaseOptions, "context")

    RULES = (
        not_both("lock_file", "lease", "give the file if all controllers are on one machine, else the lease"),
        *no_use(("namespace", "kubeconfig", "context"), without("lease"), "name the lease, or remove it"),
    )

    @property
    def options(self) -> LeadershipOptions:
        """Return the options; None if there is one controller only."""
        if self.lock_file is not None:
            return LockOptions(self.lock_file)
        if self.lease is not None:
            return LeaseOptions(self.lease, self.namespace, self.kubeconfig, self.context)
        return None
