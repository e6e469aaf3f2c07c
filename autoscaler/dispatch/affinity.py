"""Which replica a request would best go to, for what that replica remembers: rendezvous hashing, bounded.

Requests with one affinity key (a session, a digest of the prompt's beginning) find their cache warm where
the last one went. Every replica has a score for every key; the highest score of those that may take one more
wins. So a key keeps its replica as others come and go, and the keys of one that is lost spread over all.

The bound keeps a popular key from swamping its replica: none takes one more while it would hold more than
`load_bound` times its share of all that runs (consistent hashing with bounded loads; Mirrokni, Thorup and
Zadimoghaddam, 2018). Nobody waits for the sake of affinity: without a free slot the next best is taken.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from autoscaler.dispatch.slots import ReplicaLoad

_REPLICAS_REMEMBERED = 4096
"""Digests of so many replica ids are kept [1]."""

_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class AffinityOptions:
    """How far requests with the same key are kept together."""

    load_bound: float = 1.25
    """A replica may hold so many times its share of what runs [1], > 1. Nearer to 1 is more even, and finds
    fewer caches warm; 2 follows keys almost always."""

    def __post_init__(self) -> None:
        if not self.load_bound > 1:
            raise ValueError(f"need load_bound > 1, got {self.load_bound}")


def preferred(key: str, replicas: Iterable[ReplicaLoad], load_bound: float) -> str | None:
    """Return the id of the replica that a request with affinity `key` shall go to; O(replicas).

    Parameters
    ----------
    key : str
        Not empty.
    replicas : iterable of ReplicaLoad
        Those that are ready, also without a free slot: what they hold counts for the bound.
    load_bound : float
        c > 1. One more may go to a replica of s slots while it holds no more than c (n + 1) s / S
        requests with it, n being all that runs on these replicas and S all their slots; rounded up.

    Returns
    -------
    str or None
        None if none of those with a free slot is within the bound.
    """
    ready = [load for load in replicas if load.slots]
    slots = sum(load.slots for load in ready)
    most = load_bound * (sum(load.busy for load in ready) + 1)
    digest = _digest(key)
    within = [load for load in ready if load.free and load.busy < most * load.slots / slots]
    best = max(within, key=lambda load: _score(digest, load.replica_id), default=None)
    return None if best is None else best.replica_id


def _score(digest: int, replica_id: str) -> int:
    """Mix the bits of two digests: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014)."""
    x = digest ^ _digest_of_replica(replica_id)
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _MASK
    return x ^ x >> 31


def _digest(text: str) -> int:
    """Return 64 bits that are the same in every process, so that proxies agree."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


@lru_cache(maxsize=_REPLICAS_REMEMBERED)
def _digest_of_replica(replica_id: str) -> int:
    return _digest(replica_id)
