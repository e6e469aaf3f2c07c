"""How long requests are served in a replay: by a law of their own, in batches, or by continuous batching.

What is typed wins over what the file says.
"""

from dataclasses import dataclass, replace

import numpy as np

from autoscaler.cli.replay_asked import Asked
from autoscaler.errors import UsageError
from autoscaler.queueing.batch_line import BatchLine
from autoscaler.queueing.continuous_batching import StepLine
from autoscaler.queueing.peakedness import SCV_MAX
from autoscaler.replay.output.words import wait
from autoscaler.replay.scenario import Scenario
from autoscaler.telemetry.traffic import Requests, Traffic

_SERVICE_SCV, _SERVICE_SCV_MAX = 1.0, 100.0


@dataclass(frozen=True, slots=True)
class Service:
    """How long requests take: by a line of batches or steps, else by mean [s] and SCV [1]."""

    mean: float = 1.0
    scv: float = 0.0
    line: BatchLine | StepLine | None = None
    notes: tuple[str, ...] = ()

    def of(self, scenario: Scenario) -> Scenario:
        """Return `scenario` with this service."""
        if self.line is not None:
            return scenario.batched(self.line)
        return replace(scenario, service_time_mean=self.mean, service_scv=self.scv)


def service_of(asked: Asked, traffic: Traffic) -> Service:
    """Return how long requests take. Raises UsageError if neither options nor file tell."""
    batches = asked.batch_alpha is not None or asked.batch_beta is not None
    steps = asked.step_alpha is not None or asked.step_beta is not None
    if batches and steps:
        raise UsageError("--step-alpha, --step-beta: leave them out, or --batch-alpha and --batch-beta")
    if not batches and not steps:
        return _own_times(asked, traffic)
    kind = "batch" if batches else "step"
    if asked.service_time is not None or asked.service_scv is not None:
        raise UsageError(f"--service-time, --service-scv: leave them out; --{kind}-alpha and -beta tell it")
    alpha, beta = (getattr(asked, f"{kind}_{name}") for name in ("alpha", "beta"))
    if alpha is None or beta is None:
        missing = "alpha" if alpha is None else "beta"
        raise UsageError(f"--{kind}-{missing}: is missing; it goes with --{kind}-{_other(missing)}")
    try:
        return Service(line=BatchLine(alpha, beta)) if batches else _steps(asked, traffic, alpha, beta)
    except ValueError as error:
        raise UsageError(f"--{kind}-alpha, --{kind}-beta: {error}") from error


def _other(name: str) -> str:
    return "beta" if name == "alpha" else "alpha"


def _own_times(asked: Asked, traffic: Traffic) -> Service:
    """Take mean and variation from the durations of the file, unless they are given."""
    told = _known(traffic.demand.service_times) if isinstance(traffic.demand, Requests) else np.empty(0)
    if not len(told) or told.mean() <= 0:
        if asked.service_time is None:
            raise UsageError(
                f"--service-time: is missing, and {asked.trace} does not tell; say how long a request takes "
                "in a slot, as 10s"
            )
        return Service(asked.service_time, _SERVICE_SCV if asked.service_scv is None else asked.service_scv)
    mean, scv = float(told.mean()), float(min(told.var() / told.mean() ** 2, _SERVICE_SCV_MAX))
    note = f"service times are as in the file: {wait(mean)} in the mean, SCV {scv:.2g}"
    if asked.service_time is not None and asked.service_scv is not None:
        return Service(asked.service_time, asked.service_scv)
    if asked.service_time is not None:
        return Service(
            asked.service_time, scv, notes=(f"service times vary as in the file: their SCV is {scv:.2g}",)
        )
    return Service(mean, scv if asked.service_scv is None else asked.service_scv, notes=(note,))


def _steps(asked: Asked, traffic: Traffic, alpha: float, beta: float) -> Service:
    """Return continuous batching, with the tokens of the file unless they are given."""
    tokens_in, tokens_out = traffic.tokens_per_request()
    tokens_out = tokens_out if asked.tokens_out is None else asked.tokens_out
    tokens_in = tokens_in if asked.tokens_in is None else asked.tokens_in
    if not tokens_out >= 1:
        raise UsageError(
            f"--tokens-out: is missing, and {asked.trace} does not tell; say how many tokens are made for a "
            "request, as 200"
        )
    scv, notes = _SERVICE_SCV, (f"{tokens_out:,.0f} tokens are made for a request, in the mean",)
    if asked.tokens_out is None and isinstance(traffic.demand, Requests):
        told = _known(traffic.demand.tokens_out)
        scv = float(min(told.var() / told.mean() ** 2, SCV_MAX))
    prefill = 0.0
    if asked.prefill_rate is not None:
        if not tokens_in >= 0:
            raise UsageError(
                f"--tokens-in: is missing, and {asked.trace} does not tell; --prefill-rate needs the "
                "tokens of a prompt"
            )
        prefill = tokens_in / asked.prefill_rate
    return Service(line=StepLine(alpha, beta, tokens_out, prefill, scv), notes=notes)


def _known(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]
