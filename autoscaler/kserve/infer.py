"""What is asked of a model, and what it answers, whatever the form on the wire."""

from collections.abc import Mapping
from dataclasses import field

from autoscaler.domain.value import value
from autoscaler.kserve.tensor import NotMergeable, Tensor

Scalar = bool | int | float | str
Parameters = Mapping[str, Scalar]

_RESERVED = ("sequence_id", "sequence_start", "sequence_end", "headers")
"""Requests with these have an order among them, or are not a client's to send: they go alone."""


@value
class OutputAsked:
    """One output that a client asked for."""

    name: str
    is_binary: bool = False
    """Whether it wants the bytes, not numbers in JSON. Over gRPC it always does."""
    classification: int = 0
    """So many best classes instead of the values [1]; 0 for the values."""


@value
class InferRequest:
    """One request for inference.

    Attributes
    ----------
    model, version : str
        Which model; an empty version leaves the choice to the server.
    inputs : tuple of Tensor
        In the order of their names, all with as many rows.
    outputs : tuple of OutputAsked
        Empty for all that there are.
    all_binary : bool
        Whether outputs that are not named are wanted as bytes.
    parameters : mapping
        For the model; those of the wire's form are left out.
    id : str
        As the client gave it; empty for none.
    """

    model: str
    version: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[OutputAsked, ...] = ()
    all_binary: bool = False
    parameters: Parameters = field(default_factory=dict)
    id: str = ""

    def check(self) -> None:
        """Raise NotMergeable if it is none that may share a call with others."""
        if not self.inputs:
            raise NotMergeable("it has no inputs")
        for tensor in self.inputs:
            tensor.check()
        if len(self.inputs) > 1:
            if len({tensor.name for tensor in self.inputs}) < len(self.inputs):
                raise NotMergeable("an input comes twice")
            if len({tensor.shape[0] for tensor in self.inputs}) > 1:
                raise NotMergeable("its inputs differ in the number of rows")
        if len(self.outputs) > 1 and len({output.name for output in self.outputs}) < len(self.outputs):
            raise NotMergeable("an output is asked for twice")
        for name in self.parameters:
            if name in _RESERVED or name.startswith("triton_"):
                raise NotMergeable(f"it has the parameter {name!r}")

    @property
    def rows(self) -> int:
        """How many rows each of its inputs has [1]."""
        return self.inputs[0].shape[0]

    @property
    def wants_json(self) -> bool:
        """Whether an output is wanted as numbers or text, not as bytes."""
        if not self.outputs:
            return not self.all_binary
        return not all(output.is_binary for output in self.outputs)

    def bucket(self) -> tuple[object, ...]:
        """Return what it must share with others to be merged with them."""
        return (
            self.model,
            self.version,
            tuple((tensor.name, tensor.datatype, tensor.shape[1:]) for tensor in self.inputs),
            tuple(sorted((name, type(value).__name__, value) for name, value in self.parameters.items())),
            tuple(sorted((o.name, o.classification) for o in self.outputs if o.classification)),
        )


@value
class InferAnswer:
    """What a model answered."""

    model: str
    version: str
    outputs: tuple[Tensor, ...]
    parameters: Parameters = field(default_factory=dict)
