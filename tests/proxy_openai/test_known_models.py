"""What a pool can be asked for: what the configuration says and what its servers list."""

import asyncio
import json

from autoscaler.model_servers.openai import ListedModel
from autoscaler.proxy.known_models import KnownModels


class Servers:
    """Servers that list what the test says, and a clock that is moved by hand."""

    def __init__(self, **lists):
        self.lists = lists
        self.asked = []
        self.time = 0.0

    def now(self):
        return self.time

    def wall_time(self):
        return self.time

    async def list(self, url):
        self.asked.append(url)
        await asyncio.sleep(0)
        names = self.lists[url]
        return (
            None
            if names is None
            else [ListedModel(name, None, b'{"id":"%b"}' % name.encode()) for name in names]
        )

    def known(self, *named):
        return KnownModels(named, self.list, lambda: list(self.lists), self)


async def test_names_of_the_configuration_count_before_any_server_runs():
    models = Servers().known("a", "b", "a")
    await models.look()
    assert models.names == ("a", "b")
    assert json.loads(models.entries()["a"])["id"] == "a"


async def test_all_servers_are_asked_and_what_each_lists_counts():
    servers = Servers(x=["base", "poet"], y=["base", "lawyer"], z=None)
    models = servers.known("base")
    await models.look()
    assert models.names == ("base", "poet", "lawyer")
    assert models.entries()["poet"] == b'{"id":"poet"}'
    assert sorted(servers.asked) == ["x", "y", "z"]


async def test_what_was_listed_holds_until_a_server_lists_again():
    servers = Servers(x=["base", "poet"])
    models = servers.known()
    await models.look()
    servers.lists = {}
    await models.look()
    assert models.names == ("base", "poet")
    servers.lists = {"y": ["base"]}
    await models.look()
    assert models.names == ("base",)


async def test_many_who_ask_for_an_unknown_name_ask_the_servers_once():
    servers = Servers(x=["base"])
    models = servers.known()
    await asyncio.gather(*(models.look(age_min=1.0) for _ in range(10)))
    assert servers.asked == ["x"]
    servers.time = 1.0
    await models.look(age_min=1.0)
    assert servers.asked == ["x", "x"]
