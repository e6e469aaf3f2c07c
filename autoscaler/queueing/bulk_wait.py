"""How long a request waits that finds all batching servers busy, as a law with finitely many values.

A request arrives at some point of a gap (see `bulk_chain`) with p others before it. It waits for the rest of
that gap, and then for floor(p / b) gaps of full batches. Gaps have finitely many lengths, and points of
arrival are taken at the middles of equal parts; so the wait has finitely many values. The law is made once,
and every tail and quantile is then looked up.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from autoscaler.queueing.bulk_chain import NEGLIGIBLE, BusyChain, most_arrivals, poisson_counts
from autoscaler.queueing.elementwise import Array

ARRIVAL_POINTS = 24
"""Points over a gap at which a request may arrive."""

UNLIKELY = 1e-8
"""Numbers waiting that are rarer, of more than a batch, are left out."""


@dataclass(frozen=True, slots=True)
class WaitLaw:
    """A law with finitely many values.

    Attributes
    ----------
    values : ndarray, shape (n_values,)  [s]
        Ascending.
    beyond : ndarray, shape (n_values + 1,)  [1]
        `beyond[i]` is the probability of all values from the i-th on.
    """

    values: Array
    beyond: Array

    def tail(self, wait_seconds: float) -> float:
        """P(W > wait_seconds)."""
        return float(self.beyond[np.searchsorted(self.values, wait_seconds, side="right")])

    def quantile(self, allowed: float) -> float:
        """The least value [s] with P(W > value) <= allowed, for allowed >= 0."""
        enough = len(self.beyond) - np.searchsorted(self.beyond[::-1], allowed, side="right")
        return float(self.values[max(int(enough) - 1, 0)])


def wait_of_late(chain: BusyChain) -> WaitLaw:
    """Return the law of the wait of a request that finds all servers busy."""
    small, full = _after_small_batches(chain), _after_full_batches(chain)
    values, chance = (np.concatenate(both) for both in zip(small, full, strict=True))
    order = np.argsort(values)
    beyond = np.append(np.cumsum(chance[order][::-1])[::-1], 0.0)
    return WaitLaw(values[order], beyond)


def _after_small_batches(chain: BusyChain) -> tuple[Array, Array]:
    """Values and probabilities of the wait, with a running batch that left nobody."""
    sizes = np.arange(chain.batch_max)
    rest, came, chance = _arrivals_in(chain, sizes)
    chance = chance * chain.waiting[sizes, None, None]
    values, chances, batches = [], [], 0
    more = np.ones_like(rest)
    while len(more):
        # P(at least this and one more full batch are before it)
        further = special.pdtrc((batches + 1) * chain.batch_max - 1, came)
        values.append((rest + batches * chain.longest).ravel())
        chances.append((chance * (more - further)).ravel())
        kept = further > NEGLIGIBLE
        rest, came, chance, more = rest[kept], came[kept], chance[kept], further[kept]
        batches += 1
    return np.concatenate(values), np.concatenate(chances)


def _after_full_batches(chain: BusyChain) -> tuple[Array, Array]:
    """Values and probabilities of the wait, with a running batch that is full and may have left some."""
    limit = chain.batch_max
    left = np.where(chain.waiting > UNLIKELY, chain.waiting, 0.0)[limit:]
    rest, came, chance = (part[0] for part in _arrivals_in(chain, np.array([limit])))
    most = most_arrivals(came)
    batches = np.arange((len(left) + most) // limit + 2)
    # at_least[i] = P(so many left, or more), and i = 0 for none
    at_least = np.append(np.cumsum(left[::-1])[::-1], 0.0)
    missing = batches[:, None] * limit - np.arange(most + 1)
    ahead = poisson_counts(came, most) @ at_least[np.clip(missing, 0, len(left))].T
    before = -np.diff(ahead, axis=-1)
    waits = rest[..., None] + batches[:-1] * chain.longest
    return waits.ravel(), (chance[..., None] * before).ravel()


def _arrivals_in(chain: BusyChain, sizes: Array) -> tuple[Array, Array, Array]:
    """Rest of the gap [s], mean number that came in it before, and share of the late requests.

    Each of shape (n_sizes, gaps, points); the share is for a batch of the size that surely starts.
    """
    part = (np.arange(ARRIVAL_POINTS) + 0.5) / ARRIVAL_POINTS
    gap = chain.gap[sizes][..., None]
    share = chain.gap[sizes] * chain.chance[sizes] / (ARRIVAL_POINTS * chain.gap_mean)
    return gap * (1.0 - part), chain.arrival_rate * gap * part, share[..., None] + np.zeros_like(part)
