"""What a plan is asked with: words, from the command line or a file of pools, to a `Question`.

The names are those of the options with `_` for `-`. Whatever is impossible raises `Wrong`, which names the
option; the command line and the file of pools each say it in their way.
"""

from collections.abc import Mapping
from typing import Any

from autoscaler.cli.plan_words import READERS
from autoscaler.plan.answer import first_stable
from autoscaler.plan.one_by_one import Impatient, OneByOne
from autoscaler.plan.question import Band, Question, WaitBound
from autoscaler.plan.service import Service
from autoscaler.plan.together import Batches, Continuous
from autoscaler.plan.words import rate as in_words
from autoscaler.queueing.batch_line import BatchLine
from autoscaler.queueing.bulk import SERVICE_SCV_MIN
from autoscaler.queueing.continuous_batching import StepLine, slots_for_time_per_token
from autoscaler.units import format_duration

Values = Mapping[str, Any]
"""Read values, by the name of their option."""

_ERLANGS_MAX = 1e7
_REQUESTS_AT_ONCE_MAX = 200_000
"""With continuous batching, in the fewest replicas that do the work: more is not computed."""
_BATCH, _STEP = ("batch_alpha", "batch_beta", "batch_max"), ("step_alpha", "step_beta", "tokens_out")


class Wrong(Exception):
    """What was asked is impossible.

    Attributes
    ----------
    name : str
        Of the value that is to blame.
    remedy : str
        What is allowed there, or what to do.
    given : object
        What was given; None if it is missing.
    """

    def __init__(self, name: str, remedy: str, given: object = None) -> None:
        super().__init__(f"{name}: {remedy}")
        self.name, self.remedy, self.given = name, remedy, given


def read_values(given: Mapping[str, object]) -> dict[str, Any]:
    """Read each value; raises Wrong for the first that cannot be read, or is not known."""
    values = {}
    for name, word in given.items():
        read = READERS.get(name)
        if read is None:
            raise Wrong(name, f"unknown; there is {', '.join(READERS)}", word)
        try:
            values[name] = read(word)
        except ValueError as error:
            raise Wrong(name, str(error), word) from None
    return values


def question_of(values: Values) -> Question:
    """Return what `values` ask; raises Wrong if they contradict one another, or one is missing."""
    if "arrival_rate" not in values:
        raise Wrong("arrival_rate", "is missing; say how many requests come, as 1.5/s or 60/min")
    least, most = values.get("replicas_min", 1), values.get("replicas_max")
    if most is not None and most < least:
        raise Wrong("replicas_max", f"at least replicas_min, which is {least}", most)
    service = service_of(values)
    price, currency = values.get("price", (None, ""))
    rate = values["arrival_rate"]
    _check_size(rate, service, most)
    return Question(
        rate,
        service,
        values.get("wait", WaitBound()),
        values.get("band", Band()),
        least,
        most,
        price,
        currency,
    )


def _check_size(rate: float, service: Service, replicas_max: int | None) -> None:
    """Raise Wrong if the fleet would be larger than can be computed, or than is allowed."""
    bound = _ERLANGS_MAX
    if isinstance(service, Continuous):
        bound = _REQUESTS_AT_ONCE_MAX / service.slots_per_replica
    if rate > bound * service.capacity:
        limit = f"{in_words(bound * service.capacity)}, the work of {bound:,.0f} replicas"
        raise Wrong("arrival_rate", f"less than {limit}; check its unit", f"{rate:g}/s")
    enough = first_stable(service, rate)
    if replicas_max is not None and replicas_max < enough:
        carried = f"{replicas_max * service.capacity:.4g}/s of the {rate:.4g}/s that come"
        raise Wrong(
            "replicas_max", f"so many can carry {carried}; it takes at least {enough:,}", replicas_max
        )


def service_of(values: Values) -> Service:
    """Return how the replicas serve: one by one, in batches, or with continuous batching."""
    batches = [name for name in values if name in _BATCH]
    steps = [name for name in values if name in (*_STEP, "tokens_in", "prefill_rate", "token_time")]
    if "service_time" in values and (batches or steps):
        raise Wrong("service_time", f"leave it out: {(batches + steps)[0]} says how long a service takes")
    if batches and steps:
        raise Wrong(steps[0], f"leave it out, or {batches[0]}: replicas batch in one way or the other")
    if batches:
        return _batches(values)
    if steps:
        return _continuous(values)
    return _one_by_one(values)


def _one_by_one(values: Values) -> Service:
    if "service_time" not in values:
        raise Wrong(
            "service_time",
            "is missing; say how long a request takes in a slot, as 10s, or give a batching line "
            "(batch_alpha, batch_beta, batch_max) or a step line (step_alpha, step_beta, tokens_out)",
        )
    slots = values.get("slots", 1)
    if "patience" in values:
        _only_poisson(values, "patience", ("arrival_scv", "service_scv"))
        return Impatient(values["service_time"], values["patience"], slots)
    return OneByOne(
        values["service_time"], values.get("service_scv", 1.0), values.get("arrival_scv", 1.0), slots
    )


def _batches(values: Values) -> Service:
    _all_there(values, _BATCH, "a batching line needs")
    _only_poisson(values, "batch_max", ("arrival_scv",))
    _without_patience(values)
    if values["batch_alpha"] + values["batch_beta"] <= 0:
        raise Wrong("batch_alpha", "above 0, or batch_beta: a batch takes some time", 0)
    scv = values.get("service_scv", 0.1)
    if not SERVICE_SCV_MIN <= scv <= 1:
        raise Wrong("service_scv", f"for batches of one size between {SERVICE_SCV_MIN} and 1", scv)
    line = BatchLine(values["batch_alpha"], values["batch_beta"])
    return Batches(line, values["batch_max"], scv, values.get("slots", 1))


def _continuous(values: Values) -> Service:
    _all_there(values, _STEP, "a step line needs")
    _only_poisson(values, "step_alpha", ("arrival_scv", "service_scv"))
    _without_patience(values)
    if values["step_alpha"] + values["step_beta"] <= 0:
        raise Wrong("step_alpha", "above 0, or step_beta: a step takes some time", 0)
    if ("tokens_in" in values) != ("prefill_rate" in values):
        missing = "prefill_rate" if "tokens_in" in values else "tokens_in"
        raise Wrong(missing, "is missing; prompts take tokens_in / prefill_rate")
    prefill = values["tokens_in"] / values["prefill_rate"] if "tokens_in" in values else 0.0
    line = StepLine(values["step_alpha"], values["step_beta"], values["tokens_out"], prefill)
    if "slots" in values:
        return Continuous(line, values["slots"])
    if "token_time" not in values:
        raise Wrong(
            "slots", "is missing; say how many requests a replica takes, or token_time to have it found"
        )
    return Continuous(line, _slots(line, values["token_time"]))


def _slots(line: StepLine, token_time: float) -> int:
    if line.beta + line.prefill / line.tokens_out <= 0:
        raise Wrong("slots", "is missing; with step_beta 0 and no prompts no number of slots is too many")
    slots = slots_for_time_per_token(line, token_time)
    if slots < 1:
        alone = float(line.time_per_token(1))
        raise Wrong(
            "token_time",
            f"at least {alone:.4g}s: that is what a request takes that is alone",
            format_duration(token_time),
        )
    if slots > _REQUESTS_AT_ONCE_MAX:
        raise Wrong(
            "token_time",
            f"less: so long for a token would let in more than {_REQUESTS_AT_ONCE_MAX:,} requests at once; "
            "or say how many, as slots",
            format_duration(token_time),
        )
    return slots


def _all_there(values: Values, names: tuple[str, ...], who: str) -> None:
    for name in names:
        if name not in values:
            raise Wrong(name, f"is missing; {who} {', '.join(names[:-1])} and {names[-1]}")


def _only_poisson(values: Values, of: str, names: tuple[str, ...]) -> None:
    for name in names:
        if values.get(name, 1.0) != 1.0:
            raise Wrong(name, f"leave it out: the formula for {of} takes it for 1", values[name])


def _without_patience(values: Values) -> None:
    if "patience" in values:
        raise Wrong("patience", "leave it out: it is computed for requests that are served one by one")
