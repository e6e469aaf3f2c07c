"""Rules that several sections have: times in order, keys that belong together, keys that exclude each other.

Each function returns a rule for the `RULES` of a section. The problem is placed at a key that is written.
"""

from collections.abc import Callable
from typing import Any

from autoscaler.settings.document import shown
from autoscaler.settings.written import Key, Rule, Written
from autoscaler.units import format_duration


def in_order(
    below: Key,
    above: Key,
    show: Callable[[Any], str] = format_duration,
    *,
    factor: int = 1,
    strict: bool = False,
) -> Rule:
    """Return the rule that `below` times `factor` is not above `above`, or less than it if `strict`.

    A value that is None is no bound.
    """

    def rule(written: Written) -> None:
        low, high = written[below], written[above]
        if low is None or high is None or low * factor < high or (low * factor == high and not strict):
            return
        if written.has(below):
            bound = "less than" if strict else "at most" if factor == 1 else f"at most 1/{factor} of"
            allowed = f"{bound} {written.name(above)} ({show(high)})"
            written.note(below, f"got {show(low)}", allowed, "lower it, or raise the other")
        else:
            bound = "more than" if strict else "at least" if factor == 1 else f"at least {factor} times"
            allowed = f"{bound} {written.name(below)} ({show(low)})"
            written.note(above, f"got {show(high)}", allowed, "raise it, or lower the other")

    return rule


def needs(key: str, other: str) -> Rule:
    """Return the rule that `key` is not given without `other`."""

    def rule(written: Written) -> None:
        if written[key] is not None and written[other] is None:
            fault = f"got {shown(written.raw(key))} without {other}"
            written.note(key, fault, "", f"give {other} too, or remove it")

    return rule


def not_both(one: str, other: str, remedy: str) -> Rule:
    """Return the rule that one excludes the other; what is None, or empty, is not given."""

    def rule(written: Written) -> None:
        if written[one] and written[other]:
            first, second = sorted((one, other), key=written.place)
            written.note(second, f"got {shown(written.raw(second))} beside {first}", "", remedy)

    return rule


def no_use(keys: tuple[Key, ...], why: Callable[[Written], str], remedy: str) -> tuple[Rule, ...]:
    """Return the rules that none of `keys` is set, to other than its default, where `why` has a reason."""

    def rule_for(key: Key) -> Rule:
        def rule(written: Written) -> None:
            if written.is_set(key) and (reason := why(written)):
                written.note(key, f"got {shown(written.raw(key))}, {reason}", "", remedy)

        return rule

    return tuple(map(rule_for, keys))


def each_once(key: str, remedy: str, same: Callable[[str], str] = str) -> Rule:
    """Return the rule that nothing is twice in a list; items that are wrong by themselves take no part."""

    def rule(written: Written) -> None:
        seen: set[str] = set()
        items = written.raw(key)
        for index, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, bool) or not isinstance(item, str | int):
                continue
            if same(str(item)) in seen:
                written.note((key, index), f"got {item} once more", "", remedy)
            seen.add(same(str(item)))

    return rule


def without(other: str) -> Callable[[Written], str]:
    """Return the reason, for `no_use`, that `other` is not given."""
    return lambda written: "" if written[other] else f"without {other}"


def in_plain_text(*keys: str) -> Callable[[Written], str]:
    """Return the reason, for `no_use`, that every URL at `keys` begins with `http:`."""

    def why(written: Written) -> str:
        urls: list[str] = []
        for key in keys:
            urls += [written[key]] if isinstance(written[key], str) else written[key] or ()
        is_plain = bool(urls) and all(url.startswith("http:") for url in urls)
        return "and nothing is asked with https:" if is_plain else ""

    return why


def not_empty(key: str, allowed: str) -> Rule:
    """Return the rule that a list, or a mapping, that is written has something in it."""

    def rule(written: Written) -> None:
        if written.raw(key) in ([], {}):
            written.note(key, "got nothing", allowed, "add one")

    return rule
