"""The keys of the configuration file that concern the data listener."""

from pathlib import Path
from typing import Annotated

from autoscaler.proxy.access_log import AccessLogOptions
from autoscaler.proxy.idempotency_options import IdempotencyOptions
from autoscaler.proxy.options import ProxyOptions
from autoscaler.settings.rules import in_order
from autoscaler.settings.section import Section, default
from autoscaler.settings.values import Count, Duration, FilePath, OrNone, Share, Size, YesNo
from autoscaler.units import format_size

_SOME_TIME = Duration(least=0.001)
"""For what must take some time."""


class AccessLogSection(Section):
    """What is written of requests: `AccessLogOptions`."""

    path: Annotated[Path | None, OrNone(FilePath())] = default(AccessLogOptions, "path")
    sample: Annotated[float, Share()] = default(AccessLogOptions, "sample")
    lines_per_second: Annotated[int, Count(least=1)] = default(AccessLogOptions, "lines_per_second")
    file_max: Annotated[int, Size(least=1024)] = default(AccessLogOptions, "file_bytes_max")
    files_max: Annotated[int, Count(least=2)] = default(AccessLogOptions, "files_max")

    @property
    def options(self) -> AccessLogOptions:
        """Return the options."""
        return AccessLogOptions(
            **self.model_dump(exclude={"file_max"}),
            file_bytes_max=self.file_max,
        )


class IdempotencySection(Section):
    """What is kept for the sake of an Idempotency-Key: `IdempotencyOptions`."""

    answers_max: Annotated[int, Count()] = default(IdempotencyOptions, "answers_max")
    answer_max: Annotated[int, Size()] = default(IdempotencyOptions, "answer_bytes_max")
    total: Annotated[int, Size()] = default(IdempotencyOptions, "bytes_total")
    keep: Annotated[float, Duration()] = default(IdempotencyOptions, "keep")
    patience: Annotated[float, Duration()] = default(IdempotencyOptions, "patience")

    RULES = (in_order("answer_max", "total", format_size),)

    @property
    def options(self) -> IdempotencyOptions:
        """Return the options."""
        return IdempotencyOptions(
            **self.model_dump(exclude={"answer_max", "total"}),
            answer_bytes_max=self.answer_max,
            bytes_total=self.total,
        )


class HttpSection(Section):
    """Bounds of memory and time of the data listener: `ProxyOptions`."""

    head_timeout: Annotated[float, _SOME_TIME] = default(ProxyOptions, "head_timeout")
    client_keepalive: Annotated[float, _SOME_TIME] = default(ProxyOptions, "client_keepalive")
    target_max: Annotated[int, Size(least=256)] = default(ProxyOptions, "target_bytes_max")
    header_max: Annotated[int, Size(least=256)] = default(ProxyOptions, "header_bytes_max")
    headers_max: Annotated[int, Count(least=8)] = default(ProxyOptions, "headers_max")
    connections_max: Annotated[int | None, OrNone(Count(least=1))] = default(ProxyOptions, "connections_max")
    connections_per_client_max: Annotated[int | None, OrNone(Count(least=1))] = default(
        ProxyOptions, "connections_per_client_max"
    )
    body_max: Annotated[int, Size()] = default(ProxyOptions, "body_bytes_max")
    body_spool: Annotated[int, Size()] = default(ProxyOptions, "body_spool_bytes")
    body_spool_total: Annotated[int, Size()] = default(ProxyOptions, "body_spool_bytes_total")
    body_timeout: Annotated[float, Duration()] = default(ProxyOptions, "body_timeout")
    body_rate_min: Annotated[int, Size(least=1)] = default(ProxyOptions, "body_rate_min")
    send_timeout: Annotated[float, _SOME_TIME] = default(ProxyOptions, "send_timeout")
    linger: Annotated[float, Duration()] = default(ProxyOptions, "linger")
    read_buffer: Annotated[int, Size(least=1024)] = default(ProxyOptions, "read_buffer_bytes")
    connect_timeout: Annotated[float, _SOME_TIME] = default(ProxyOptions, "connect_timeout")
    upstream_keepalive: Annotated[float, Duration()] = default(ProxyOptions, "upstream_keepalive")
    retries_max: Annotated[int, Count()] = default(ProxyOptions, "retries_max")
    share_port: Annotated[bool, YesNo()] = default(ProxyOptions, "share_port")
    access_log: AccessLogSection = AccessLogSection()
    idempotency: IdempotencySection = IdempotencySection()

    RULES = (
        in_order("connections_per_client_max", "connections_max", str),
        in_order("body_spool", "body_spool_total", format_size),
    )
