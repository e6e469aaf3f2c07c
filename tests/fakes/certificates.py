"""Authorities and certificates, made for one test."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme


@dataclass(frozen=True)
class Pair:
    """A certificate with its key, in files."""

    certificate: Path
    key: Path


class Authority:
    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder, self._name = folder, name
        self._ca = trustme.CA()
        self._count = 0
        self.file = folder / f"{name}.pem"
        self._ca.cert_pem.write_to_path(str(self.file))

    def issues(self, *names: str, file: str | None = None, days: float = 30) -> Pair:
        """A certificate for `names`; at the path of another `file`, it renews that."""
        self._count += 1
        stem = file or f"{self._name}-{self._count}"
        issued = self._ca.issue_cert(*names, not_after=datetime.now(UTC) + timedelta(days=days))
        pair = Pair(self._folder / f"{stem}.crt", self._folder / f"{stem}.key")
        pair.certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        pair.key.write_bytes(issued.private_key_pem.bytes())
        return pair
