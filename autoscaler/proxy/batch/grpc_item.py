"""One request for inference that came over gRPC.

It is apart from `item` because protobuf is large: only the gRPC listener loads it.
"""

from collections.abc import Iterable

from autoscaler.kserve.grpc_form import read_grpc, write_grpc
from autoscaler.kserve.infer import InferAnswer
from autoscaler.kserve.tensor import NotMergeable
from autoscaler.proxy.batch.item import Item, ModelName, fields_for_models
from autoscaler.proxy.shared_call import Part

_LONG = 1024 * 1024
"""A message longer than this is not read, and its request goes alone [bytes]."""


class GrpcItem(Item):
    """A request that can be merged, and wants its answer as a message."""

    __slots__ = ()

    def part(self, answer: InferAnswer) -> Part:
        """Return its answer as a message."""
        return Part({}, write_grpc(answer, self.asked))


def grpc_item(message: bytes, metadata: Iterable[tuple[str, str | bytes]]) -> Item:
    """Return an item of a gRPC message; raises NotMergeable."""
    if len(message) > _LONG:
        raise NotMergeable("its message is long")
    asked = read_grpc(message)
    fields = []
    for name, value in metadata:
        if isinstance(value, bytes):
            raise NotMergeable("its metadata has what HTTP cannot carry")
        fields.append((name, value))
    return GrpcItem(asked, ModelName("/v2/models/", asked.model, asked.version), fields_for_models(fields))
