"""Tests of the proxy run on the loop of production, and on the one that is there without uvloop."""

import asyncio
from collections.abc import Callable, Iterator, Mapping

import pytest
import uvloop

from tests.fakes.logged import errors


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


@pytest.fixture(autouse=True)
def nothing_is_logged_as_an_error(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Clients and servers that misbehave are daily life, and no error of this program."""
    yield
    assert errors(caplog) == []
