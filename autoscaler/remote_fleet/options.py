"""What is said of a fleet that somebody else runs: where its replicas are listed, and how patient to be."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autoscaler.remote_fleet.member import names_a_host


@dataclass(frozen=True, slots=True)
class RemoteFleetOptions:
    """Where the replicas of one pool are found, and how they are watched."""

    state_dir: Path
    """Folder of what is kept for the next start; each pool needs its own."""
    slots_per_replica: int = 1
    """Requests one replica serves at a time [1]; raise it to what the server does well with at once."""
    urls: tuple[str, ...] = ()
    """Base URLs at which replicas may be, where their addresses are fixed; those that answer are there."""
    dns: str | None = None
    """Base URL with a host name of many addresses, such as a headless service; each address is a replica."""
    look_interval: float = 5.0
    """Pause between two looks at who is there [s]."""
    probe_interval: float = 5.0
    """Pause between two probes of a ready replica [s]."""
    probe_failures: int = 3
    """A ready replica is lost after so many failed probes in a row [1]; more is calmer, and later."""
    start_timeout: float = 600.0
    """What was ordered and has not come after so long is not counted on any more [s]; keep it above the
    longest start."""
    cold_start_initial: float = 60.0
    """What a start is taken to last until one has been measured [s]."""
    grpc_target: Callable[[str], str] | None = None
    """Where the gRPC port of the replica at a base URL is, as `host:port`; None if they have none."""

    def __post_init__(self) -> None:
        if self.urls and self.dns is not None:
            raise ValueError("urls and dns both say where the replicas are; give one of them")
        for url in (*self.urls, *([self.dns] if self.dns is not None else [])):
            if not names_a_host(url):
                raise ValueError(f"{url!r} is no base URL; write it as http://HOST:PORT")
        bases = [url.rstrip("/") for url in self.urls]
        if twice := sorted({url for url in bases if bases.count(url) > 1}):
            raise ValueError(f"urls: {twice[0]!r} is listed twice; each server is one replica")
        for name in ("slots_per_replica", "probe_failures"):
            if getattr(self, name) < 1:
                raise ValueError(f"need {name} >= 1, got {getattr(self, name)}")
        for name in ("look_interval", "probe_interval", "start_timeout", "cold_start_initial"):
            if getattr(self, name) <= 0:
                raise ValueError(f"need {name} > 0 s, got {getattr(self, name)}")

    @property
    def is_told(self) -> bool:
        """Whether the list of replicas comes from the platform itself, not from `urls` or `dns`."""
        return not self.urls and self.dns is None
