"""`autoscaler replay`: the options of the command; `replay_run` does the work."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from autoscaler.cli.option_values import (
    DAY,
    SEED_MAX,
    a_duration,
    a_fraction,
    a_number,
    a_rate,
    a_whole_number,
)

_PART = a_duration(0.0, DAY)
_TOKENS = a_number(1.0, 1e9)


def _option(name: str, parser: Callable[[object], Any], metavar: str, help_: str) -> Any:
    return typer.Option(f"--{name}", parser=parser, metavar=metavar, help=help_, show_default=False)


def _words(name: str, metavar: str, help_: str) -> Any:
    return typer.Option(f"--{name}", metavar=metavar, help=help_)


def replay(
    trace: Annotated[
        Path,
        typer.Argument(metavar="TRACE", help="Access log, JSON, CSV of requests or of counts, OpenAI usage."),
    ],
    service_time: Annotated[
        float | None,
        _option(
            "service-time",
            a_duration(1e-3, DAY),
            "TIME",
            "Mean time of a request in a slot. Default: as the file says; needed if it does not.",
        ),
    ] = None,
    service_scv: Annotated[
        float | None,
        _option(
            "service-scv",
            a_number(0.0, 100.0),
            "N",
            "Variance / mean² of it; 0: always the same. Default: as the file says, else 1.",
        ),
    ] = None,
    slots: Annotated[
        int,
        _option(
            "slots",
            a_whole_number(1, 10_000),
            "N",
            "Requests a replica serves at a time: 1. Raise it to what the server does well with.",
        ),
    ] = 1,
    cold_start: Annotated[
        float,
        _option("cold-start", a_duration(0.0, DAY), "TIME", "Mean time from order to ready replica: 2m."),
    ] = 120.0,
    cold_start_cv: Annotated[
        float,
        _option(
            "cold-start-cv",
            a_number(0.0, 3.0),
            "N",
            "Its standard deviation / mean: 0.25; 0: always the same.",
        ),
    ] = 0.25,
    wait: Annotated[
        float, _option("wait", a_duration(0.0, DAY), "TIME", "A wait for a slot that is still good: 5s.")
    ] = 5.0,
    quantile: Annotated[
        float,
        _option("quantile", a_fraction(0.01, 0.99999), "SHARE", "Of the requests shall wait no longer: 99%."),
    ] = 0.99,
    band: Annotated[str | None, _words("band", "LOW-HIGH", "How busy the slots shall be: 60%-75%.")] = None,
    batch_alpha: Annotated[
        float | None,
        _option("batch-alpha", _PART, "TIME", "In batches of up to --slots: one of n takes alpha + beta n."),
    ] = None,
    batch_beta: Annotated[
        float | None, _option("batch-beta", _PART, "TIME", "Time that each request adds to it.")
    ] = None,
    step_alpha: Annotated[
        float | None,
        _option("step-alpha", _PART, "TIME", "Continuous batching: a step with b requests, alpha + beta b."),
    ] = None,
    step_beta: Annotated[
        float | None, _option("step-beta", _PART, "TIME", "Time that each request adds to it.")
    ] = None,
    tokens_out: Annotated[
        float | None,
        _option("tokens-out", _TOKENS, "N", "Mean tokens made for a request. Default: as the file says."),
    ] = None,
    tokens_in: Annotated[
        float | None,
        _option("tokens-in", _TOKENS, "N", "Mean tokens of a prompt. Default: as the file says."),
    ] = None,
    prefill_rate: Annotated[
        float | None,
        _option(
            "prefill-rate", a_rate(1e-3, 1e9), "RATE", "Tokens of prompts read: 8000/s. Default: in no time."
        ),
    ] = None,
    interval: Annotated[
        float | None,
        _option(
            "interval",
            a_duration(1e-3, 366 * DAY),
            "TIME",
            "Length of a row, where the file has counts without times.",
        ),
    ] = None,
    duration_unit: Annotated[
        str | None, _words("duration-unit", "UNIT", "s, ms, us or ns, if the file does not tell.")
    ] = None,
    time_zone: Annotated[
        str | None,
        _words("time-zone", "ZONE", "Whose clocks people follow: Europe/Berlin. Default: as the file says."),
    ] = None,
    only_model: Annotated[
        str | None, _words("only-model", "NAME", "Only its requests, where the file names several.")
    ] = None,
    kind: Annotated[
        str | None,
        _words(
            "kind", "KIND", "counter, rate or count: what samples of Prometheus are, if not told rightly."
        ),
    ] = None,
    history: Annotated[
        str | None,
        _words(
            "history",
            "TIME|FILE",
            "What was known before: so much of the beginning (7d), or a file of the time before.",
        ),
    ] = None,
    history_interval: Annotated[
        float | None,
        _option(
            "history-interval",
            a_duration(1e-3, 366 * DAY),
            "TIME",
            "Length of a row of that file, if it has counts without times. Default: as --interval.",
        ),
    ] = None,
    from_: Annotated[
        str | None,
        _words("from", "TIME", "Leave out what is before: 2026-03-01T08:00, or 2d after the beginning."),
    ] = None,
    until: Annotated[
        str | None, _words("until", "TIME", "Leave out what comes from then on: likewise.")
    ] = None,
    control_interval: Annotated[
        float, _option("control-interval", a_duration(1.0, 3600.0), "TIME", "Between our decisions: 10s.")
    ] = 10.0,
    price: Annotated[
        str | None, _words("price", "PRICE", "Of a GPU for an hour: 2.50, $2.50, 2.50 EUR. Default: none.")
    ] = None,
    gpus_per_replica: Annotated[
        int, _option("gpus-per-replica", a_whole_number(1, 1024), "N", "GPUs that a replica takes: 1.")
    ] = 1,
    peer: Annotated[
        list[str] | None,
        _words("peer", "NAME[@TARGET]", "Compare with it, at this occupancy: hpa@0.7; may be repeated."),
    ] = None,
    peers: Annotated[
        str | None,
        _words("peers", "WHICH", "all, none, or usual: fixed, hpa, knative, ray-serve, planner (default)."),
    ] = None,
    sweep: Annotated[
        bool,
        typer.Option("--sweep", help="Try each peer at 0.4, 0.5 … 0.9 too, and name the best in hindsight."),
    ] = False,
    no_forecast: Annotated[
        bool, typer.Option("--no-forecast", help="Replay ours without its forecast too.")
    ] = False,
    supply_max: Annotated[
        int | None,
        _option(
            "supply-max", a_whole_number(1, 1_000_000), "N", "No more replicas can be had. Default: no limit."
        ),
    ] = None,
    interruptions: Annotated[
        float,
        _option(
            "interruptions", a_number(0.0, 60.0), "N", "So often an hour each replica is lost, as on spot: 0."
        ),
    ] = 0.0,
    seed: Annotated[
        int,
        _option("seed", a_whole_number(0, SEED_MAX), "N", "Of arrivals in an interval, services, starts: 0."),
    ] = 0,
    seeds: Annotated[
        int,
        _option(
            "seeds", a_whole_number(1, 1000), "N", "Replay so often; means with 95 % confidence intervals: 1."
        ),
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
    html: Annotated[
        Path | None, _words("html", "FILE", "Write the whole report as one page that needs no network.")
    ] = None,
    plot: Annotated[
        Path | None, _words("plot", "FILE.png", "Replicas, waits and misses as a picture.")
    ] = None,
) -> None:
    """Replay traffic in simulated time: what would each policy have cost, and missed?

    The code that decides is the one that runs in production; beside it play the policies that people use
    today, over the very same requests.
    """
    given = dict(locals())
    from autoscaler.cli.replay_asked import Asked  # noqa: PLC0415 - see the top of `commands`
    from autoscaler.cli.replay_run import run_replay  # noqa: PLC0415 - see the top of `commands`

    run_replay(Asked(**given))
