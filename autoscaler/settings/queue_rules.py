"""Rules between the classes of one queue."""

from autoscaler.settings.rules import not_empty
from autoscaler.settings.written import Rule, Written, keep
from autoscaler.units import format_duration


def _each_has_its_priority(queue: Written) -> None:
    first_with: dict[int, str] = {}
    for name, priority in queue.of_each("classes", "priority").items():
        first = first_with.setdefault(priority, name)
        if first != name:
            fault = f"got {priority}, which {first} has too"
            queue.note(("classes", name, "priority"), fault, "", "give each class a priority of its own")


def _floors_fit(queue: Written) -> None:
    floors = queue.of_each("classes", "slots_floor")
    if (total := sum(floors.values())) > 1:
        fault = f"got slots_floor that add up to {total:.0%} over all classes"
        queue.note(("classes",), fault, "100% at most", "lower one of them")


def _overdue_before_it_expires(queue: Written) -> None:
    keep(tuple(_overdue_rule(name) for name in queue.of_each("classes", "starvation_bound")), queue)


def _overdue_rule(name: str) -> Rule:
    key = ("classes", name, "starvation_bound")

    def rule(queue: Written) -> None:
        own = queue["classes", name, "wait_max"]
        wait_max, bound = own or queue["wait_max"], queue[key]
        if bound is not None and bound >= wait_max:
            of = queue.name(("classes", name, "wait_max") if own else "wait_max")
            allowed = f"less than {of} ({format_duration(wait_max)}), or nobody lives to see it"
            queue.note(key, f"got {format_duration(bound)}", allowed, "lower it, or raise the other")

    return rule


def _somebody_to_preempt(queue: Written) -> None:
    priorities, preemptible = queue.of_each("classes", "priority"), queue.of_each("classes", "preemptible")
    for name, preempts in queue.of_each("classes", "preempts").items():
        victims = [each for each in priorities if preemptible.get(each, True)]
        own = priorities.get(name)
        if preempts and own is not None and all(priorities[each] <= own for each in victims):
            remedy = "set preemptible for a less urgent one, or remove it"
            fault = "got true, and no less urgent class is preemptible"
            queue.note(("classes", name, "preempts"), fault, "", remedy)


QUEUE_RULES: tuple[Rule, ...] = (
    not_empty("classes", "one class or more"),
    _each_has_its_priority,
    _floors_fit,
    _overdue_before_it_expires,
    _somebody_to_preempt,
)
"""All of them."""
