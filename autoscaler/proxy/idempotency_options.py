"""What can be set about answers that are kept for the sake of an `Idempotency-Key`."""

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True, slots=True)
class IdempotencyOptions:
    """Bounds of number, memory and time."""

    answers_max: int = 1000
    """So many answers are kept [1]; 0 keeps none, and a key only joins those who ask at the same time."""
    answer_bytes_max: int = MIB
    """A larger answer is not kept [bytes]."""
    bytes_total: int = 64 * MIB
    """So much memory may all kept answers hold [bytes]."""
    keep: float = 600.0
    """How long an answer is kept [s]. Longer than the clients go on trying."""
    patience: float = 10.0
    """A request whose clients have all left is executed for so long still [s]; they may come back."""

    def __post_init__(self) -> None:
        for name in ("answers_max", "answer_bytes_max", "bytes_total", "keep", "patience"):
            if getattr(self, name) < 0:
                raise ValueError(f"need {name} >= 0, got {getattr(self, name)}")
