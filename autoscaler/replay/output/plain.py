"""A replay as plain data, for programs. Seconds, fractions, GPU-hours; what is not known is null."""

import math
from dataclasses import asdict
from typing import Any

from autoscaler.replay.output.advice import advice
from autoscaler.replay.output.configuration import as_yaml, forecast_told, settings_for
from autoscaler.replay.output.standing import FIGURES, Outcome, Standing
from autoscaler.replay.output.traffic_told import Told
from autoscaler.replay.output.verdict import verdict

_WHOLE = ("replicas_max", "scale_ups", "scale_downs", "interruptions", "broken")
"""Figures that are whole numbers where there is one seed."""


def outcome_as_plain(outcome: Outcome, told: Told) -> dict[str, Any]:
    """Return everything, fit for JSON: `policies` holds the figures of each, ours first."""
    scenario, own = outcome.stage.scenario, outcome.own
    return {
        "trace": told.name,
        "form": told.form,
        "notes": list(told.notes),
        "complete": not outcome.missing,
        "missing": list(outcome.missing),
        "requests": own.played[0].report.requests if own else outcome.standings[0].played[0].report.requests,
        "seconds": scenario.duration,
        "history_seconds": len(scenario.history) * scenario.history_interval,
        "seeds": outcome.seeds,
        "circumstances": {
            "service_time_mean": scenario.service_time_mean,
            "service_scv": scenario.service_scv,
            "slots_per_replica": scenario.slots_per_replica,
            "cold_start_mean": scenario.cold_start_mean,
            "cold_start_cv": scenario.cold_start_cv,
            "control_interval": scenario.control_interval,
            "supply_max": scenario.supply_max,
            "interruptions_per_hour": 3600 * scenario.interruption_rate,
            "gpus_per_replica": outcome.stage.gpus_per_replica,
        },
        "objective": asdict(outcome.objective),
        "verdict": verdict(outcome),
        "advice": advice(outcome),
        "policies": [_standing(outcome, each) for each in outcome.standings],
        "recommended": _recommended(outcome, told),
    }


def _standing(outcome: Outcome, standing: Standing) -> dict[str, Any]:
    plain: dict[str, Any] = {"policy": standing.name}
    for name in FIGURES:
        mean = standing.mean(name)
        plain[name] = round(mean) if name in _WHOLE and outcome.seeds == 1 else _number(mean)
    plain |= {
        "requests": standing.played[0].report.requests,
        "target": standing.contender.target,
        "tuned_in_hindsight": standing.contender.tried,
        "meets_objective": standing.meets,
        "x_clairvoyant": _number(standing.multiple.mean),
        "cost": outcome.price.gpu_hour * standing.mean("gpu_hours") if outcome.price else None,
        "currency": outcome.price.currency or None if outcome.price else None,
    }
    if outcome.seeds > 1:
        plain["seeds"] = [each.seed for each in standing.played]
        plain["half_width_95"] = {name: _number(each.half_width) for name, each in standing.figures.items()}
        plain["half_width_95"]["x_clairvoyant"] = _number(standing.multiple.half_width)
    return plain


def _recommended(outcome: Outcome, told: Told) -> dict[str, Any] | None:
    settings = settings_for(outcome)
    if not settings:
        return None
    reasons = {each.key: each.why for each in settings if each.why}
    return {
        "yaml": as_yaml(settings, told.name),
        "reasons": {**reasons, "forecast": forecast_told(outcome)},
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
