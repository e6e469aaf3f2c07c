"""KEDA and the HPA that it makes, as far as a scaler meets them.

The client writes and reads the wire format by hand, field by field, so that it does not share a mistake with
the server. The HPA is the rule of autoscaling/v2 for an external metric with an average target.
"""

import math
import struct
from typing import Any

import grpc

SERVICE = "/externalscaler.ExternalScaler/"


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _bytes_field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def scaled_object(name: str, namespace: str = "default", **metadata: str) -> bytes:
    """ScaledObjectRef: name = 1, namespace = 2, scalerMetadata = 3 (a map: key = 1, value = 2)."""
    message = _bytes_field(1, name.encode()) + _bytes_field(2, namespace.encode())
    for key, value in metadata.items():
        message += _bytes_field(3, _bytes_field(1, key.encode()) + _bytes_field(2, value.encode()))
    return message


def _fields(message: bytes) -> dict[int, Any]:
    """Read every field; a number that comes twice is a list."""
    found: dict[int, Any] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            value: Any = varint()
        elif key & 7 == 1:
            value = struct.unpack("<d", message[at : at + 8])[0]
            at += 8
        else:
            length = varint()
            value = message[at : at + length]
            at += length
        assert key >> 3 not in found, "several where one is expected"
        found[key >> 3] = value
    return found


class KedaClient:
    """Asks a scaler as KEDA's operator and its metrics server do."""

    def __init__(self, port: int, credentials: grpc.ChannelCredentials | None = None):
        address = f"localhost:{port}" if credentials else f"127.0.0.1:{port}"
        self._channel = (
            grpc.aio.secure_channel(address, credentials)
            if credentials
            else grpc.aio.insecure_channel(address)
        )

    async def __aenter__(self) -> "KedaClient":
        return self

    async def __aexit__(self, *exception) -> None:
        await self._channel.close()

    async def is_active(self, ref: bytes) -> bool:
        return bool(_fields(await self._ask("IsActive", ref)).get(1, 0))

    async def metric_spec(self, ref: bytes) -> tuple[str, int, float]:
        """Name, integer target, float target of the one metric."""
        spec = _fields(_fields(await self._ask("GetMetricSpec", ref))[1])
        return spec[1].decode(), spec.get(2, 0), spec.get(3, 0.0)

    async def metric(self, ref: bytes, name: str) -> float:
        """The value as KEDA reads it: the float if it is above 0, else the integer."""
        request = _bytes_field(1, ref) + _bytes_field(2, name.encode())
        value = _fields(_fields(await self._ask("GetMetrics", request))[1])
        assert value[1].decode() == name
        whole, exact = value.get(2, 0), value.get(3, 0.0)
        assert whole == exact
        return exact if exact > 0 else float(whole)

    def stream_is_active(self, ref: bytes):
        """The stream of an external-push trigger; iterate over it, and cancel it."""
        return self._channel.unary_stream(SERVICE + "StreamIsActive")(ref)

    @staticmethod
    def read_active(message: bytes) -> bool:
        return bool(_fields(message).get(1, 0))

    async def stream_metric_spec(self, ref: bytes):
        return await self._channel.unary_stream(SERVICE + "StreamMetricSpec")(ref).read()

    async def _ask(self, method: str, request: bytes) -> bytes:
        return await self._channel.unary_unary(SERVICE + method)(request, timeout=10.0)


class Hpa:
    """The HPA's rule for one external metric with an average target, between `least` and `most` replicas.

    Source: Kubernetes documentation, "Horizontal Pod Autoscaling": a ratio to the target within the tolerance
    changes nothing, else the quotient is rounded up; then the highest (lowest) recommendation of the
    window, and the rate that the policies allow.
    """

    def __init__(self, behavior: dict[str, Any], least: int, most: int, tolerance: float = 0.1):
        self._behavior, self._least, self._most, self._tolerance = behavior, least, most, tolerance
        self._recommended: list[tuple[float, int]] = []
        self._steps: list[tuple[float, int]] = []

    def replicas(self, current: int, value: float, target: float, now: float) -> int:
        ratio = value / (target * current)
        wanted = current if abs(ratio - 1) <= self._tolerance else math.ceil(value / target)
        self._recommended.append((now, wanted))
        up, down = self._behavior["scaleUp"], self._behavior["scaleDown"]
        lowest = min(w for t, w in self._recommended if t >= now - up["stabilizationWindowSeconds"])
        highest = max(w for t, w in self._recommended if t >= now - down["stabilizationWindowSeconds"])
        stable = min(max(current, lowest), highest)
        bounded = max(self._least, min(self._most, stable))
        allowed_up = current + self._allowed(up, now, sign=1)
        allowed_down = current - self._allowed(down, now, sign=-1)
        result = max(allowed_down, min(allowed_up, bounded))
        self._steps.append((now, result - current))
        return result

    def _allowed(self, rules: dict[str, Any], now: float, sign: int) -> int:
        assert rules["selectPolicy"] == "Max"
        return max(
            policy["value"]
            - sum(max(0, sign * step) for t, step in self._steps if t > now - policy["periodSeconds"])
            for policy in rules["policies"]
            if policy["type"] == "Pods"
        )
