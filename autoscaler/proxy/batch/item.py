"""One request for inference, read from what a client sent, and what else it must share with its batch mates.

The server may see more of a request than its tensors: header fields, which it can hand to a model. So fields
that are not known to mean nothing to a model are part of the bucket, and go with the merged call.
"""

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

from autoscaler.domain import Mergeable
from autoscaler.kserve.infer import InferAnswer, InferRequest
from autoscaler.kserve.read_http import HEADER_LENGTH, read_http
from autoscaler.kserve.tensor import NotMergeable, Unsound
from autoscaler.kserve.write_http import has_form, write_http
from autoscaler.proxy.shared_call import Part

_INFER = re.compile(r"(.*/v2/models/)([^/?]+)(?:/versions/([^/?]+))?/infer")

_NOT_FOR_MODELS = frozenset(
    (
        "accept",
        "accept-encoding",
        "accept-language",
        "cache-control",
        "content-length",
        "content-type",
        "date",
        "forwarded",
        "grpc-accept-encoding",
        "grpc-timeout",
        HEADER_LENGTH.lower(),
        "pragma",
        "prefer",
        "priority",
        "te",
        "traceparent",
        "tracestate",
        "user-agent",
        "via",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-proto",
        "x-real-ip",
        "x-request-id",
        "x-request-timeout-ms",
    )
)
"""Fields that say how one message travels, or who sent it, not what a model shall do."""

Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ModelName:
    """Where a request goes."""

    before: str
    """The path before the name."""
    model: str
    version: str

    @property
    def target(self) -> str:
        """The path to ask at."""
        version = f"/versions/{quote(self.version, safe='')}" if self.version else ""
        return f"{self.before}{quote(self.model, safe='')}{version}/infer"


def model_at(method: str, target: str) -> ModelName | None:
    """Return the model that an HTTP request is for; None if it asks for no inference."""
    match = _INFER.fullmatch(target) if method == "POST" else None
    return None if match is None else ModelName(match[1], unquote(match[2]), unquote(match[3] or ""))


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A request that can be merged."""

    asked: InferRequest
    at: ModelName
    fields: Fields
    """Header fields that its mates share."""

    def mergeable(self, rows_max: int) -> Mergeable:
        """Return what the queue has to know. Raises NotMergeable if it has more than `rows_max` rows."""
        if self.asked.rows > rows_max:
            raise NotMergeable(f"it has {self.asked.rows} rows, and its model takes {rows_max}")
        bucket: Hashable = (self.at.before, self.fields, self.asked.bucket())
        return Mergeable(bucket, self.asked.rows, rows_max)

    def can_have(self, answer: InferAnswer) -> bool:
        """Whether its answer has the form that its client wants; else the server has to say why not."""
        return has_form(answer, self.asked)

    def part(self, answer: InferAnswer) -> Part:
        """Return its answer in the form that its client wants."""
        return Part(*write_http(answer, self.asked))


def json_length(headers: Iterable[tuple[str, str]]) -> int | None:
    """Return how many bytes of the body are JSON; None: all. Raises NotMergeable if it must go alone."""
    length = None
    for name, value in headers:
        match name.lower():
            case "inference-header-content-length":
                if length is not None or not (value.isascii() and value.isdigit()):
                    raise NotMergeable("the length of its JSON is no number, or said twice")
                length = int(value)
            case "content-encoding" if value.lower() != "identity":
                raise NotMergeable("its body is compressed")
    return length


def is_sound(method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes) -> bool:
    """Whether a failure to serve a request is the server's: it has no mistake that is known here.

    Triton answers 500 to some mistakes of clients: JSON that is none, or values of another datatype.
    """
    at = model_at(method, target)
    if at is None:
        return True
    try:
        read_item(at, body, json_length(headers))
    except Unsound:
        return False
    except NotMergeable:
        return True
    return True


def http_item(at: ModelName, asked: InferRequest, headers: Iterable[tuple[str, str]]) -> Item:
    """Return an item of a request that was read from an HTTP body."""
    return Item(asked, at, fields_for_models(headers))


def read_item(at: ModelName, body: bytes, length: int | None) -> InferRequest:
    """Read an HTTP body; raises NotMergeable. What it returns may be sent to another process."""
    return read_http(at.model, at.version, body, length)


def fields_for_models(headers: Iterable[tuple[str, str]]) -> Fields:
    """Return the fields that a model may look at, in the order of their names."""
    kept = [(name.lower(), value) for name, value in headers if name.lower() not in _NOT_FOR_MODELS]
    return tuple(sorted(kept))
