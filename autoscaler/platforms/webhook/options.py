"""What the user says about a web hook."""

from dataclasses import dataclass
from pathlib import Path

from autoscaler.remote_fleet import RemoteFleetOptions, names_a_host
from autoscaler.tls import ClientTls


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Who is told the number of replicas, and how."""

    pool: str
    """Name of the pool, which each event carries."""
    url: str
    """Where events are posted."""
    fleet: RemoteFleetOptions
    """Where the replicas are found; with neither `urls` nor `dns`, by asking `status_url`."""
    secret_file: Path | None = None
    """File of secrets, one a line, by which events are signed; None leaves them unsigned. While it holds two,
    both sign, so that a receiver can change over."""
    status_url: str | None = None
    """Asked now and then which replicas there are; None asks nobody, and `urls` or `dns` must tell."""
    status_interval: float = 10.0
    """Pause between two such questions [s]."""
    timeout: float = 10.0
    """An answer must come within this time [s]; keep it above what the receiver needs to note an event."""
    retry_initial: float = 1.0
    """Pause before an event is sent again [s]; doubled for each failure that follows."""
    retry_max: float = 60.0
    """The pause grows no further [s]; so late at most is an outage of the receiver found to be over."""
    tls: ClientTls | None = None
    """How the receiver's certificate is checked; None as this machine does."""

    def __post_init__(self) -> None:
        for url in (self.url, *([self.status_url] if self.status_url is not None else [])):
            if not names_a_host(url):
                raise ValueError(f"{url!r} is no URL; write it as https://HOST/PATH")
        if self.fleet.is_told and self.status_url is None:
            raise ValueError(
                "nothing says where the replicas are; give status_url, which the receiver answers, "
                "or urls, or dns"
            )
        for name in ("status_interval", "timeout", "retry_initial"):
            if getattr(self, name) <= 0:
                raise ValueError(f"need {name} > 0 s, got {getattr(self, name)}")
        if self.retry_max < self.retry_initial:
            raise ValueError(
                f"need retry_max >= retry_initial, got {self.retry_max} < {self.retry_initial} s"
            )
