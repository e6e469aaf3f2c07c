"""What the program says of itself: one snapshot, read by `/api/status`, the metrics and the terminal view.

Everything in it is derived at the moment it is asked for, nothing is kept beside the ledger of slots.
Not-a-number marks what is not known (yet); in JSON it is `null`.
"""

from dataclasses import dataclass, field

from autoscaler.domain import Outcome

UNKNOWN = float("nan")


@dataclass(frozen=True, slots=True)
class ForecastStatus:
    """The predicted arrival rate, `lead_time` [s] from now [1/s]."""

    mean: float = UNKNOWN
    p10: float = UNKNOWN
    p90: float = UNKNOWN
    lead_time: float = UNKNOWN
    """How far ahead it looks: from a decision to a ready replica [s]."""


@dataclass(frozen=True, slots=True)
class ReplicasStatus:
    """Replicas by state [1]. Desired counts those ready and starting that are wanted."""

    desired: int
    starting: int
    ready: int
    draining: int
    asleep: int = 0
    """Can be woken; of no use until they are."""
    ejected: int = 0
    """Of those ready, the ones that get no requests for a while, because they failed."""


@dataclass(frozen=True, slots=True)
class OrdersStatus:
    """What becomes of what is ordered, and what stands in the way of more."""

    wanted: int = 0
    """Replicas that would be desired if all that is ordered came and had an effect, and nobody else had a
    say [1]."""
    late: int = 0
    """Ordered, and not come in their time [1]."""
    probability: float = UNKNOWN
    """That an order comes, by those of late [1]."""
    delay: float = UNKNOWN
    """From an order to its replica, the longest of late [s]."""
    is_short: bool = False
    """Whether what is ordered does not come, so that only a probe is."""
    has_no_effect: bool = False
    """Whether more replicas served no more requests, while some wait."""
    asked_elsewhere: int | None = None
    """What somebody else has asked for instead [1]; None if nobody has."""


@dataclass(frozen=True, slots=True)
class SubstitutionStatus:
    """One pool that another stands in for, whenever what it orders does not come."""

    pool: str
    substitute: str
    """The pool that stands in for it."""
    share: float = 0.0
    """Of its demand, what the substitute is to serve now [1]; 0 unless it is short."""
    handed_over: int = 0
    """Requests that have gone there, since the start of the program [requests]."""


@dataclass(frozen=True, slots=True)
class SlotsStatus:
    """The ledger of slots [1]."""

    busy: int
    """In use, on draining replicas too."""
    free: int
    """Would take a request now."""
    total: int
    """Of ready replicas."""
    per_replica: int = 1
    """Of a typical replica, as the control path counts them."""


@dataclass(frozen=True, slots=True)
class OccupancyStatus:
    """Busy slots / slots, as measured [1]."""

    last_interval: float = UNKNOWN
    rolling: float = UNKNOWN
    """Over the last minutes."""


@dataclass(frozen=True, slots=True)
class WaitsStatus:
    """Waiting times of the requests that got a slot, over a recent window [s]."""

    p50: float = UNKNOWN
    p95: float = UNKNOWN
    p99: float = UNKNOWN
    count: int = 0
    """Requests in the window, those that never got a slot included."""
    met: float = UNKNOWN
    """Fraction of them that started within the objective's wait; the queue's refusals count as misses [1]."""


@dataclass(frozen=True, slots=True)
class TokensStatus:
    """Tokens of the answers of a language model, over a recent window."""

    rate_in: float = UNKNOWN
    """Of prompts [tokens/s]; not-a-number for a pool that no tokens were seen of."""
    rate_out: float = UNKNOWN
    """Of answers [tokens/s]."""
    estimated: float = UNKNOWN
    """Fraction of the answers whose server did not say how many, so that they are estimated [1]."""
    first_token_p50: float = UNKNOWN
    first_token_p95: float = UNKNOWN
    """From the arrival of a request to the first piece of text of its stream [s]."""
    per_token_p50: float = UNKNOWN
    per_token_p95: float = UNKNOWN
    """From one token to the next, as the mean of each answer [s]."""


@dataclass(frozen=True, slots=True)
class DisagreementStatus:
    """A server that lastingly holds more or fewer requests than it has slots in use; see `ledger_check`."""

    replica: str
    """Its base URL."""
    diagnosis: str
    requests: int
    """By how much, at least [requests]."""
    text: str
    """For a person."""


@dataclass(frozen=True, slots=True)
class SignalStatus:
    """A metric of another program, and what the self-test holds of it; see `signal_test`."""

    name: str
    value: float
    """As it was read last; not-a-number if it never was."""
    standing: str
    text: str = ""
    """What is wrong with it, for a person."""


@dataclass(frozen=True, slots=True)
class TroubleStatus:
    """What is wrong outside: a platform, a sidecar or an exporter that does not answer as it should."""

    where: str
    """`platform`, `signals NAME`, or the address of a sidecar or a Prometheus."""
    text: str
    """The last error, for a person."""
    age: float
    """How long something has been wrong there [s]."""


@dataclass(frozen=True, slots=True)
class GpuStatus:
    """One GPU of this machine; see `gpu_reading`."""

    index: int
    name: str
    busy_ratio: float
    """Share of time in which any kernel ran [1]. It does not say how full the GPU is; occupancy does."""
    memory_used: float
    memory_total: float
    """[bytes]."""
    power: float
    """[W]."""
    throttled: tuple[str, ...] = ()
    """What holds its clocks down."""
    lost: str = ""
    """Why nothing can be asked of it."""


@dataclass(frozen=True, slots=True)
class ObjectiveStatus:
    """What the user wants; see `domain.Objective`."""

    wait_seconds: float
    wait_quantile: float
    utilization_low: float
    utilization_high: float


@dataclass(frozen=True, slots=True)
class DecisionStatus:
    """The last decision, in words."""

    sentence: str
    wall_time: float
    """When it was taken [s since the epoch, UTC]."""


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """One pool.

    Attributes
    ----------
    arrival_rate : float
        At the door, lately [1/s].
    offered_load : float
        arrival_rate * mean service time [erlang].
    queue_depth, oldest_wait
        Waiting now [requests]; how long the first of them has [s].
    requests : dict
        Ended since the start of the program, by outcome [requests].
    cold_start_mean, cold_start_p90 : float
        From decision to readiness, as measured [s].
    slots_leaked : int
        Slots whose lease was never given back [1]; anything but 0 is an error of this program.
    ledger_difference : int
        Slots without a request, and calls to replicas without a slot, when last compared [1]; as above.
    acts : bool or None
        Whether what is decided is carried out, and from here; None where nothing is decided.
    """

    name: str
    arrival_rate: float
    forecast: ForecastStatus
    replicas: ReplicasStatus
    slots: SlotsStatus
    occupancy: OccupancyStatus
    queue_depth: int
    oldest_wait: float
    waits: WaitsStatus
    objective: ObjectiveStatus
    last_decision: DecisionStatus | None = None
    requests: dict[Outcome, int] = field(default_factory=dict)
    offered_load: float = UNKNOWN
    cold_start_mean: float = UNKNOWN
    cold_start_p90: float = UNKNOWN
    slots_leaked: int = 0
    ledger_difference: int = 0
    tokens: TokensStatus = TokensStatus()
    disagreements: tuple[DisagreementStatus, ...] = ()
    orders: OrdersStatus = OrdersStatus()
    signals: tuple[SignalStatus, ...] = ()
    acts: bool | None = None
    rows_per_call: int = 0
    """The most rows that one call to a replica may have, where requests are merged; 0 where none are [1]."""
    troubles: tuple[TroubleStatus, ...] = ()
    """What is wrong outside now, the oldest first."""
    substitutions: tuple[SubstitutionStatus, ...] = ()
    """Those that it has a part in: of it by another pool, and of others by it."""


@dataclass(frozen=True, slots=True)
class Status:
    """The whole program at `wall_time` [s since the epoch, UTC]."""

    version: str
    wall_time: float
    uptime: float
    """Since the start of the program [s]."""
    event_loop_lag: float
    """The longest that the event loop was late, lately [s]."""
    pools: tuple[PoolStatus, ...]
    gpus: tuple[GpuStatus, ...] = ()
    """Of this machine, as its driver tells."""
