"""One real Triton, and the whole program before it, for all tests of client libraries."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.fakes import triton_models as models
from tests.fakes.triton_program import TritonProgram
from tests.fakes.triton_server import HOME, TritonServer, is_installed


@pytest.fixture(scope="session")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonServer]:
    """A server with models of every kind, none of which is loaded yet."""
    if not is_installed(HOME):
        pytest.skip("Triton is not installed; `make triton` does it")
    repository = tmp_path_factory.mktemp("models")
    for datatype in models.DATATYPES:
        models.identity(repository, datatype, 0, rank=2)
    for write in (models.arithmetic, models.upper_case, models.poisoned):
        write(repository)
    models.timed(repository, 0.02, 0.001, more="instance_group [{ kind: KIND_CPU, count: 2 }]")
    models.timed(repository, 0.002, 0.0, name="quick")
    models.timed(repository, 0.4, 0.0, name="slow")
    models.timed(repository, 1.0, 0.0, name="slower")
    models.counts_up(repository, pause=0.01)
    for n in range(4):
        models.arithmetic(repository, name=f"comes_and_goes_{n}")
    with TritonServer(repository) as server:
        yield server


@pytest.fixture(scope="session")
def program(triton: TritonServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TritonProgram]:
    """`autoscaler run` with that server as its only replica."""
    running = TritonProgram(tmp_path_factory.mktemp("program"), triton)
    try:
        asyncio.run(running.start())
        yield running
        assert asyncio.run(running.end()) == 0
    finally:
        running.sweep()
