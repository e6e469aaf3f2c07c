"""`autoscaler plan`: the options of the command. `plan_words` reads them, `plan_run` does the work."""

from pathlib import Path
from typing import Annotated, Any

import typer


def _option(name: str, metavar: str, help_: str) -> Any:
    return typer.Option(f"--{name}", metavar=metavar, help=help_)


Words = str | None
"""As typed; `plan_words` reads it, and names the option if it cannot."""


def plan(
    arrival_rate: Annotated[
        Words, _option("arrival-rate", "RATE", "Requests that come: 1.5/s, 60/min.")
    ] = None,
    service_time: Annotated[
        Words, _option("service-time", "TIME", "Mean time in a slot: 10s, 250ms.")
    ] = None,
    arrival_scv: Annotated[
        Words, _option("arrival-scv", "N", "Variance / mean² between arrivals; 1.")
    ] = None,
    service_scv: Annotated[Words, _option("service-scv", "N", "Variance / mean² of services; 1.")] = None,
    slots: Annotated[
        Words, _option("slots", "N", "Requests (or batches) a replica serves at a time; 1.")
    ] = None,
    wait: Annotated[Words, _option("wait", "BOUND", "Wait objective: p99<2s, mean<500ms; p99<5s.")] = None,
    band: Annotated[Words, _option("band", "BAND", "Utilization wanted; 60%-75%.")] = None,
    price: Annotated[
        Words, _option("price", "PRICE", "Of a replica for an hour: 2.50, $2.50, 2.50 EUR.")
    ] = None,
    replicas_min: Annotated[Words, _option("replicas-min", "N", "Never fewer; 1.")] = None,
    replicas_max: Annotated[Words, _option("replicas-max", "N", "Never more.")] = None,
    patience: Annotated[
        Words, _option("patience", "TIME", "Clients leave after waiting so long on average: 30s; fixed:30s.")
    ] = None,
    batch_alpha: Annotated[
        Words, _option("batch-alpha", "TIME", "A batch of n takes alpha + beta n.")
    ] = None,
    batch_beta: Annotated[Words, _option("batch-beta", "TIME", "Time that each request adds to it.")] = None,
    batch_max: Annotated[Words, _option("batch-max", "N", "Most requests in a batch.")] = None,
    step_alpha: Annotated[
        Words,
        _option("step-alpha", "TIME", "Continuous batching: a step with b requests takes alpha + beta b."),
    ] = None,
    step_beta: Annotated[Words, _option("step-beta", "TIME", "Time that each request adds to it.")] = None,
    tokens_out: Annotated[Words, _option("tokens-out", "N", "Mean tokens made for a request.")] = None,
    tokens_in: Annotated[Words, _option("tokens-in", "N", "Mean tokens of a prompt.")] = None,
    prefill_rate: Annotated[Words, _option("prefill-rate", "RATE", "Tokens of prompts read: 8000/s.")] = None,
    token_time: Annotated[
        Words, _option("token-time", "TIME", "Longest time between tokens: how many slots a replica has.")
    ] = None,
    pools: Annotated[
        Path | None, typer.Option("--pools", metavar="FILE", help="Several pools (YAML), and one for all.")
    ] = None,
    pool: Annotated[
        str | None, typer.Option("--pool", metavar="NAME", help="Only this pool of the file.")
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="Access log, JSON lines or CSV: rates and times from it."
        ),
    ] = None,
    interval: Annotated[
        Words, _option("interval", "TIME", "Length of a row, if the file has counts and no times.")
    ] = None,
    duration_unit: Annotated[
        Words, _option("duration-unit", "UNIT", "s, ms, us or ns, if the file does not tell.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Waits and cost as a picture: .png or .html."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Say how many GPUs a demand needs.

    Waits, utilization and cost of the sizes around the answer, which of them to take and why. From numbers,
    or with --from from traffic of the past; for one pool, or with --pools for several.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    from autoscaler.cli.plan_run import Output, run_plan  # noqa: PLC0415 - see the top of `commands`

    output = Output(given.pop("as_json"), given.pop("plot", None))
    run_plan(given, output)
