"""Where a proxy is told of replicas, and says what it holds; routes of its admin listener."""

from collections.abc import Mapping

from aiohttp import web

from autoscaler.sharing.message import PATH, read_told
from autoscaler.sharing.told_fleet import ToldFleet
from autoscaler.telemetry.plain import encode


def shares_routes(fleets: Mapping[str, ToldFleet]) -> list[web.RouteDef]:
    """Return the routes, for fleets by the name of their pool."""

    def fleet_of(request: web.Request) -> ToldFleet:
        name = request.match_info["pool"]
        if name not in fleets:
            known = ", ".join(fleets) or "none"
            raise web.HTTPNotFound(
                text=f"no pool {name!r} whose replicas a controller tells; there is {known}"
            )
        return fleets[name]

    async def get(request: web.Request) -> web.Response:
        return _state(fleet_of(request))

    async def put(request: web.Request) -> web.Response:
        fleet = fleet_of(request)
        try:
            raw = await request.read()
        except ConnectionError as error:  # whoever sent it has gone, and hears of nothing
            raise web.HTTPBadRequest(text="the order broke off") from error
        asked = request.headers.get("If-Match", "").strip('"')
        if not asked:
            raise web.HTTPBadRequest(text="If-Match: missing; send the ETag of the state that was read")
        if asked != fleet.tag:
            return _state(fleet, status=412)
        try:
            told = read_told(raw)
        except ValueError as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        fleet.tell(told)
        return _state(fleet)

    return [web.get(f"{PATH}{{pool}}", get), web.put(f"{PATH}{{pool}}", put)]


def _state(fleet: ToldFleet, status: int = 200) -> web.Response:
    return web.Response(
        body=encode(fleet.held()),
        status=status,
        content_type="application/json",
        headers={"ETag": f'"{fleet.tag}"', "Cache-Control": "no-store"},
    )
