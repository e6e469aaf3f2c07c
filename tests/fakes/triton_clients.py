"""The four clients of the `tritonclient` package behind one face, so that a test is written once for all."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import np_to_triton_dtype

KINDS = ("http", "http.aio", "grpc", "grpc.aio")
_PACKAGES = {
    "http": tritonclient.http,
    "http.aio": tritonclient.http.aio,
    "grpc": tritonclient.grpc,
    "grpc.aio": tritonclient.grpc.aio,
}


class Client:
    """One client; its methods are the library's own. Those that are coroutines are run to their end."""

    def __init__(self, kind: str, runner: asyncio.Runner, address: str, **options: Any) -> None:
        self.kind = kind
        self.of = _PACKAGES[kind]
        self.is_grpc = kind.startswith("grpc")
        self._run = runner.run
        self.raw = self._run(self._made(address, options))

    async def _made(self, address: str, options: dict[str, Any]) -> Any:
        """Those of asyncio are to be made where a loop runs."""
        return self.of.InferenceServerClient(address, **options)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.raw, name)

        def call(*args: Any, **options: Any) -> Any:
            result = method(*args, **options)
            return self._run(_awaited(result)) if inspect.isawaitable(result) else result

        return call

    def told(self, name: str, *args: Any) -> Any:
        """What a method tells, as plain JSON values in either protocol."""
        more = {"as_json": True} if self.is_grpc else {}
        return getattr(self, name)(*args, **more)

    def run(self, coroutine: Any) -> Any:
        """Run something of the test's own on the loop of the client."""
        return self._run(coroutine)

    def tensor(self, name: str, values: np.ndarray, *, binary: bool = True) -> Any:
        """An input; over HTTP `binary` or in JSON."""
        tensor = self.of.InferInput(name, list(values.shape), np_to_triton_dtype(values.dtype))
        if self.is_grpc:
            tensor.set_data_from_numpy(values)
        else:
            tensor.set_data_from_numpy(values, binary_data=binary)
        return tensor

    def output(self, name: str, *, binary: bool = True) -> Any:
        """A wish for one output."""
        if self.is_grpc:
            return self.of.InferRequestedOutput(name)
        return self.of.InferRequestedOutput(name, binary_data=binary)


async def _awaited(result: Any) -> Any:
    return await result


@contextmanager
def client_of(kind: str, http: str, grpc: str, **options: Any) -> Iterator[Client]:
    """A client of the listener for its protocol; addresses without a scheme, as the library takes them."""
    with asyncio.Runner() as runner:
        client = Client(kind, runner, grpc if kind.startswith("grpc") else http, **options)
        try:
            yield client
        finally:
            client.close()
