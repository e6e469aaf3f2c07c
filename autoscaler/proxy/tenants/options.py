"""What can be set about tenants."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TenantOptions:
    """How a request says whose it is, and what becomes of one that does not."""

    keys_file: Path | None = None
    """Tenants with the digests of their keys and their limits; read again when it changes. None: no keys."""
    header: str | None = None
    """Name of a header that says whose a request is; it is believed. Set it only where a gateway in front
    writes it, and removes what clients send."""
    required: bool = True
    """Refuse requests that do not say whose they are, with 401. Otherwise they are of the tenant `anonymous`.
    Nothing is refused where neither keys nor a header are set."""
    forward_keys: bool = False
    """Pass our keys on to the servers. Set it only where they check the same keys themselves."""
    names_max: int = 50
    """So many tenants have metrics of their own [1]; the others are `other`."""

    def __post_init__(self) -> None:
        if self.names_max < 0:
            raise ValueError(f"need names_max >= 0, got {self.names_max}")

    @property
    def any(self) -> bool:
        """Whether tenants are told apart at all."""
        return self.keys_file is not None or self.header is not None
