"""Divides the slots of a fleet between the proxies of a pool, and tells each its share, twice a second.

    read     every proxy, at the same time: what it holds, what it uses, who waits there
    settle   whom an order may reach still, of ours or of one that led before, is told again what it has
    divide   `scaling.divide`
    tell     first those that give slots up, then those that get them, each only what nobody else holds

One that does not answer keeps what it holds, for it serves requests as before, until it is known to be gone:
its machine says that nobody listens there, or it has been silent for long, or for a while and is not listed
any more. One that ends has given up all that it does not use before.

A controller that begins to lead does not know what the last one has told meanwhile. What a proxy that it has
not settled with may hold is not given away: for as long as demand is carried (`carry`), and until it is gone,
if it was heard while another led; for who does not lead reads too.

A replica that the platform lists, that does not answer here, and that proxies still reach, is left to them:
it may be the controller that is cut off. They give it up when it does not answer to them either.
"""

import asyncio
from collections.abc import Callable, Mapping
from urllib.parse import quote

import aiohttp
import structlog

from autoscaler.ports import Clock, Leadership, Replica
from autoscaler.scaling.divide import Divider
from autoscaler.scaling.doors import Doors, MergeOptions
from autoscaler.scaling.proxy_share import within_reach
from autoscaler.sharing.known_proxy import KnownProxy, may_hold_the_rest
from autoscaler.sharing.message import MESSAGE_BYTES_MAX, PATH, ReplicaTold, SharesTold, read_held
from autoscaler.telemetry.demand.reader import DoorReader, is_refused, is_worth_saying, whole_body
from autoscaler.telemetry.plain import encode

INTERVAL = 0.5
"""Between two looks [s]; a request waits at most so long, and a moment, for a slot that another can spare."""
_PATIENCE = aiohttp.ClientTimeout(total=INTERVAL)
"""One that takes longer to answer has not answered; the others shall not wait for it."""
_REFUSALS = 2
"""One that refuses connections so many times in a row is gone [1]: with its process its requests ended."""

log = structlog.get_logger(__name__)


class Teller:
    """Keeps the proxies of one pool informed, as long as this controller leads.

    Parameters
    ----------
    pool : str
        As the proxies call it.
    doors : Doors
        Knows who is there.
    reader : DoorReader
        Knows how they are asked.
    replicas : callable
        Every replica that the platform reports, by id; those that drain have no slots. None: it cannot tell.
    is_listed : callable
        Whether the platform lists a replica, by its id, though it may not answer.
    service_time : callable
        Mean time in a slot [s]; infinite if nobody knows.
    wake : callable
        Called while requests wait and there is no replica.
    merge : MergeOptions
        How long one that is silent is believed to be there.
    leadership : Leadership
        Who does not lead tells nobody anything.
    clock : Clock
        The time.
    """

    def __init__(
        self,
        pool: str,
        doors: Doors,
        reader: DoorReader,
        replicas: Callable[[], Mapping[str, Replica] | None],
        is_listed: Callable[[str], bool],
        service_time: Callable[[], float],
        wake: Callable[[], object],
        merge: MergeOptions,
        leadership: Leadership,
        clock: Clock,
    ) -> None:
        self._pool, self._doors, self._reader, self._replicas = pool, doors, reader, replicas
        self._is_listed, self._service_time, self._wake = is_listed, service_time, wake
        self._merge, self._leadership, self._clock = merge, leadership, clock
        self._proxies: dict[str, KnownProxy] = {}
        self._divider = Divider(INTERVAL)
        self._led_since: float | None = None
        self._trouble: dict[str, str] = {}
        self._said_at: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<Teller {self._pool} {self.shares()}>"

    def shares(self) -> dict[str, int]:
        """Return the slots of each proxy [1], by its address; of none while another divides them."""
        proxies = {} if self._led_since is None else self._each_once()
        return {address: sum(proxy.share.values()) for address, proxy in proxies.items()}

    @property
    def waiting(self) -> int:
        """Requests that wait at all proxies, as last heard [1]."""
        return sum(proxy.held.waiting for proxy in self._each_once().values() if not proxy.is_silent)

    def busy_slots(self) -> dict[str, int]:
        """Return the slots in use by replica id [1]."""
        busy: dict[str, int] = {}
        for proxy in self._each_once().values():
            for replica, count in proxy.as_divided().busy.items():
                busy[replica] = busy.get(replica, 0) + count
        return {replica: count for replica, count in busy.items() if count}

    async def run(self) -> None:
        """Look and tell for ever."""
        async with self._reader.session() as session:
            due = self._clock.now()
            while True:
                await self.look(session)
                due = max(due + INTERVAL, self._clock.now())
                await asyncio.sleep(due - self._clock.now())

    async def look(self, session: aiohttp.ClientSession) -> None:
        """Read, and divide and tell once if this controller leads; nothing if it does not know the fleet."""
        seen = self._replicas()
        if seen is None:
            return
        now = self._clock.now()
        for address in self._doors.addresses:
            self._proxies.setdefault(address, KnownProxy(now))
        await asyncio.gather(*(self._read(session, address) for address in self._proxies))
        self._let_go()
        if not self._leadership.is_leader:
            self._led_since = None
            for proxy in self._proxies.values():
                proxy.is_known = False
        elif self._proxies:
            self._led_since = now if self._led_since is None else self._led_since
            fleet = {**self._left_to_proxies(seen), **seen}
            await self._settle(session, fleet)
            await self._divide(session, fleet)

    async def _settle(self, session: aiohttp.ClientSession, fleet: Mapping[str, Replica]) -> None:
        """Make void what may be under way to a proxy: tell it what it has, so that its state is another."""
        orders = {
            address: _order(fleet, proxy.told)
            for address, proxy in self._each_once().items()
            if not (proxy.is_silent or proxy.is_settled)
        }
        if orders and self._leadership.is_leader:
            await asyncio.gather(*(self._tell(session, *order) for order in orders.items()))

    async def _divide(self, session: aiohttp.ClientSession, fleet: Mapping[str, Replica]) -> None:
        slots = {replica_id: replica.slots for replica_id, replica in fleet.items()}
        there = self._each_once()
        if not any(slots.values()) and any(proxy.held.waiting for proxy in there.values()):
            self._wake()
        proxies = {address: proxy.as_divided() for address, proxy in there.items()}
        for address in self._unknown(there):
            others = {each: proxy for each, proxy in proxies.items() if each != address}
            proxies[address] = may_hold_the_rest(others, slots)
        wanted = self._divider.divide(proxies, slots, self._clock.now(), self._service_time())
        gives = [each for each in wanted if sum(wanted[each].values()) < sum(proxies[each].share.values())]
        for group in (gives, [each for each in wanted if each not in gives]):
            orders = {}
            for address in group:
                share = within_reach(wanted[address], address, proxies, slots)
                told = _order(fleet, share)
                if self._is_news(address, told):
                    orders[address] = told
                    there[address].is_told(share)
                    proxies[address] = there[address].as_divided()
            if not self._leadership.is_leader:
                return
            await asyncio.gather(*(self._tell(session, *order) for order in orders.items()))
            proxies.update({each: there[each].as_divided() for each in group})

    def _each_once(self) -> dict[str, KnownProxy]:
        """Return the proxies by address; of a process that is found at several, one at which it answers."""
        found: dict[str, str] = {}
        for address, proxy in sorted(self._proxies.items(), key=lambda each: each[1].is_silent):
            found.setdefault(proxy.process or address, address)
        return {address: proxy for address, proxy in self._proxies.items() if address in found.values()}

    def _left_to_proxies(self, seen: Mapping[str, Replica]) -> dict[str, Replica]:
        """Return the replicas that do not answer here, and that proxies reach and have slots of."""
        left: dict[str, Replica] = {}
        there = self._each_once().values()
        for proxy in there:
            for replica_id, each in proxy.held.replicas.items():
                if replica_id in seen or not self._is_listed(replica_id):
                    continue
                if each.is_ready and each.share and not proxy.is_silent:
                    slots = sum(other.share.get(replica_id, 0) for other in there)
                    left[replica_id] = Replica(replica_id, each.url, slots, each.grpc_target)
        return left

    def _unknown(self, there: Mapping[str, KnownProxy]) -> list[str]:
        """Return who may hold slots that nobody else knows of."""
        began, now = self._led_since or 0.0, self._clock.now()
        return [
            address
            for address, proxy in there.items()
            if not proxy.is_known
            and (now - began < self._merge.carry or (proxy.is_silent and proxy.was_heard))
        ]

    def _is_news(self, address: str, told: SharesTold) -> bool:
        held = self._proxies[address].held
        known = {key: (each.url, each.share, each.grpc_target) for key, each in held.replicas.items()}
        new = {key: (each.url, each.share, each.grpc_target) for key, each in told.replicas.items()}
        return not held.is_told or known != new

    def _let_go(self) -> None:
        """Forget the proxies that are gone."""
        now, listed = self._clock.now(), set(self._doors.addresses)
        for address, proxy in list(self._proxies.items()):
            patience = self._merge.forget if address in listed else self._merge.carry
            if not proxy.is_silent or (proxy.refusals < _REFUSALS and now - proxy.silent_since < patience):
                continue
            if address in listed:
                self._proxies[address] = KnownProxy(now, is_known=True, refusals=proxy.refusals)
            else:
                del self._proxies[address]
                self._trouble.pop(address, None)
                self._said_at.pop(address, None)

    # -- asking

    async def _read(self, session: aiohttp.ClientSession, address: str) -> None:
        await self._ask(session, "GET", address, {}, None)

    async def _tell(self, session: aiohttp.ClientSession, address: str, told: SharesTold) -> None:
        headers = {"If-Match": f'"{self._proxies[address].tag}"', "Content-Type": "application/json"}
        await self._ask(session, "PUT", address, headers, encode(told))

    async def _ask(
        self,
        session: aiohttp.ClientSession,
        method: str,
        address: str,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> None:
        """Ask one proxy, and note what it says, or that it says nothing."""
        proxy, url = self._proxies[address], f"{address}{PATH}{quote(self._pool, safe='')}"
        try:
            headers = {**headers, **self._reader.headers()}
            async with session.request(method, url, data=body, headers=headers, timeout=_PATIENCE) as answer:
                raw = await whole_body(answer, MESSAGE_BYTES_MAX)
            if answer.status not in (200, 412):
                raise ValueError(f"answered {answer.status}: {raw[:200].decode('utf-8', 'replace')}")
            held = read_held(raw)
        except (aiohttp.ClientError, OSError, ValueError) as error:  # TimeoutError is an OSError
            proxy.said_nothing(self._clock.now(), refused=is_refused(error))
            self._note(address, str(error) if isinstance(error, ValueError) else "")
        else:
            tag, confirms = (
                answer.headers.get("ETag", "").strip('"'),
                method == "PUT" and answer.status == 200,
            )
            proxy.said(held, tag, confirms=confirms)
            self._note(address, "")

    def _note(self, address: str, trouble: str) -> None:
        """Say once what is wrong with an answer; that there is none the reader of demand says."""
        before = self._trouble.get(address)
        is_news = trouble and trouble != before
        if is_news and is_worth_saying(self._said_at, address, self._clock.now(), is_first=not before):
            log.warning("a proxy cannot be told its slots", pool=self._pool, proxy=address, why=trouble)
        self._trouble[address] = trouble


def _order(fleet: Mapping[str, Replica], share: Mapping[str, int]) -> SharesTold:
    """Return what a proxy with this share is told."""
    return SharesTold(
        {each.id: ReplicaTold(each.url, share.get(each.id, 0), each.grpc_target) for each in fleet.values()}
    )
