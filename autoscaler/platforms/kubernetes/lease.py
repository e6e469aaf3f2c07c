"""Leadership among programs of one cluster, by a Lease (coordination.k8s.io/v1); the rules are in `election`.

Every write is made to the version of the Lease that was read (409 if somebody else was faster), so two
candidates that find it free in the same moment cannot both get it. When the program ends it gives the Lease
up, and another leads within seconds; when it dies, within `duration` and a look or two. While the API server
cannot be asked nobody is sure to lead, so after a few seconds nobody does, and the fleet stays as it is.
"""

import asyncio
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from autoscaler.clock import SystemClock
from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.kubernetes.access import load_access
from autoscaler.platforms.kubernetes.api import CONFLICT, NOT_FOUND, Api, ApiRefused, understood
from autoscaler.platforms.kubernetes.election import Election, ElectionTimes, LeaseRecord
from autoscaler.platforms.kubernetes.names import OBJECT_NAME
from autoscaler.ports import Clock

_GROUP = "coordination.k8s.io/v1"
_CALL_MAX = 3.0
"""An answer that takes longer is not waited for [s]: below the renew deadline a second call must fit in."""
_DURATION_DEFAULT = 15.0
"""Of a Lease that does not say its own [s]."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseOptions:
    """Which Lease the candidates share."""

    name: str
    """Of the Lease; the same for all that look after the same pools, and for no others."""
    namespace: str | None = None
    """Where it is; None is the namespace of this program's own pod, or of the kubeconfig's context."""
    kubeconfig: Path | None = None
    """File that says how the API is reached; None is the service account of this pod, or else what kubectl
    would use."""
    context: str | None = None
    """Context of the kubeconfig; None is its current one."""

    def __post_init__(self) -> None:
        for key in ("name", "namespace"):
            value = getattr(self, key)
            if value is not None and not OBJECT_NAME.fullmatch(value):
                raise ValueError(f"{key}: {value!r} is no name of Kubernetes; use a-z, 0-9, - and .")


class LeaseLeadership:
    """Leads while it holds the Lease; implements `ports.Leadership`.

    Parameters
    ----------
    options : LeaseOptions
        Which Lease.
    clock : Clock or None
        The time; None is the machine's.
    identity : str or None
        This candidate's name, unlike any other's; None makes one of the host's name and chance.
    times : ElectionTimes or None
        How patient to be.
    """

    def __init__(
        self,
        options: LeaseOptions,
        clock: Clock | None = None,
        identity: str | None = None,
        times: ElectionTimes | None = None,
    ) -> None:
        self._options, self._clock = options, clock or SystemClock()
        self._times = times or ElectionTimes()
        self._election = Election(identity or f"{socket.gethostname()}_{secrets.token_hex(4)}", self._times)
        self._api = Api(lambda: load_access(options.kubeconfig, options.context))
        self._is_known = False
        """Whether the Lease is as it was last seen, as far as we know: then it need not be read again."""
        self._trouble: str | None = None
        self._led = False

    def __repr__(self) -> str:
        return f"<LeaseLeadership {self._options.name} {self.identity} is_leader={self.is_leader}>"

    @property
    def identity(self) -> str:
        """This candidate's name, as it stands in the Lease."""
        return self._election.identity

    @property
    def is_leader(self) -> bool:
        """Whether this one acts now."""
        return self._election.leads(self._clock.now())

    @property
    def leader(self) -> str | None:
        """Who holds the Lease, as last seen."""
        return self._election.holder

    async def run(self) -> None:
        """Seek the Lease and hold it until cancelled, then give it up."""
        try:
            while True:
                await self._look()
                now = self._clock.now()
                await asyncio.sleep(self._election.next_look(now) - now)
        finally:
            try:
                await self._give_up()
            finally:
                await self._api.close()

    async def _look(self) -> None:
        """Read the Lease, and write to it if it is ours to write to; and once more if it was not as known."""
        for last in (False, True):
            try:
                async with asyncio.timeout(_CALL_MAX):
                    await self._read_and_write()
                self._trouble = None
                break
            except TimeoutError:
                self._tell(f"no answer within {_CALL_MAX:g} s")
                break
            except PlatformUnavailable as error:
                is_other = isinstance(error, ApiRefused) and error.status in (CONFLICT, NOT_FOUND)
                if last or not is_other:
                    self._tell(str(error))
                    break
        self._tell_changes()

    async def _read_and_write(self) -> None:
        was_known, self._is_known = self._is_known, False
        if not (was_known and self.is_leader):
            await self._read()
        if self._election.may_write(self._clock.now()):
            await self._write(self.identity)
            self._is_known = True

    async def _read(self) -> None:
        try:
            record = _record(await self._api.get(await self._path(self._options.name)))
        except ApiRefused as error:
            if error.status != NOT_FOUND:
                raise
            record = None
        self._election.saw(record, self._clock.now())

    async def _write(self, holder: str) -> None:
        """Say that `holder` leads from now on; empty: that nobody does."""
        seen, asked_at = self._election.seen, self._clock.now()
        at = datetime.fromtimestamp(self._clock.wall_time(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: dict[str, Any] = {"holderIdentity": holder, "renewTime": at}
        spec["leaseDurationSeconds"] = int(self._times.duration) if holder else 1
        if seen is None:
            spec |= {"acquireTime": at, "leaseTransitions": 0}
            made = {
                "apiVersion": _GROUP,
                "kind": "Lease",
                "metadata": {"name": self._options.name},
                "spec": spec,
            }
            written = await self._api.post(await self._path(), made)
        else:
            if holder and seen.holder != holder:
                spec |= {"acquireTime": at, "leaseTransitions": seen.transitions + 1}
            change = {"metadata": {"resourceVersion": seen.version}, "spec": spec}
            written = await self._api.patch(await self._path(self._options.name), change)
        self._election.wrote(_record(written), asked_at, self._clock.now())

    async def _give_up(self) -> None:
        """Let another lead at once; where that cannot be said it will find out by itself."""
        held = self.leader == self.identity
        self._election.gave_up()
        if held:
            with suppress(PlatformUnavailable, TimeoutError):
                async with asyncio.timeout(_CALL_MAX):
                    await self._write("")
        self._tell_changes()

    async def _path(self, name: str = "") -> str:
        namespace = self._options.namespace or await self._api.namespace()
        path = f"/apis/{_GROUP}/namespaces/{namespace}/leases"
        return f"{path}/{name}" if name else path

    def _tell(self, why: str) -> None:
        """Say what keeps the Lease from being read or written, once for each reason."""
        tell = log.debug if self._trouble == why else log.warning
        tell("who leads cannot be asked", lease=self._options.name, why=why)
        self._trouble = why

    def _tell_changes(self) -> None:
        leads = self.is_leader
        if leads != self._led:
            said = "leads from now on" if leads else "leads no more; ready to take over"
            log.info(said, lease=self._options.name, identity=self.identity, leader=self.leader)
        self._led = leads


def _record(found: Any) -> LeaseRecord:
    """Read a Lease. Raises ApiAway if it is none."""
    with understood("a Lease"):
        spec = found.get("spec") or {}
        return LeaseRecord(
            holder=str(spec.get("holderIdentity") or ""),
            duration=float(spec.get("leaseDurationSeconds") or _DURATION_DEFAULT),
            renewed=str(spec.get("renewTime") or ""),
            acquired=str(spec.get("acquireTime") or ""),
            transitions=int(spec.get("leaseTransitions") or 0),
            version=str(found["metadata"]["resourceVersion"]),
        )
