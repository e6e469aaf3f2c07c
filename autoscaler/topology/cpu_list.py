"""Sets of small numbers (cores, memory nodes) as the kernel writes them: `0-3,8`."""

from collections.abc import Iterable


def parse_cpu_list(text: str) -> frozenset[int]:
    """Return the numbers in a list such as `0-3,8`. Raises ValueError if it is none."""
    numbers: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        numbers.update(range(int(first), int(last if dash else first) + 1))
    return frozenset(numbers)


def format_cpu_list(numbers: Iterable[int]) -> str:
    """Return the shortest list that `parse_cpu_list` reads back; empty for none."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)
