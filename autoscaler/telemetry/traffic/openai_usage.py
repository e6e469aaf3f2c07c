"""What OpenAI's usage API answers: buckets of time with the requests and tokens in each.

`GET /v1/organization/usage/completions?bucket_width=1m` gives pages; saved one after another they are one
file. Each bucket has a result for each group that was asked for (`group_by=model`), and none if nothing
came. The older `GET /v1/usage?date=…` gives five minutes a record.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import nan
from typing import Any

from autoscaler.telemetry.traffic.count_rows import CountRows
from autoscaler.telemetry.traffic.faults import FaultCount, LineUnusable
from autoscaler.telemetry.traffic.form import Told, Wanted

NAME = "OpenAI usage"
_BUCKETS = ({"start_time", "results"}, {"aggregation_timestamp", "n_requests"})
_OLD_BUCKET = 300.0


def buckets_in(documents: list[Any]) -> list[Mapping[str, Any]]:
    """Return the buckets in what was saved: pages, a list of pages, or of buckets."""
    return [bucket for document in documents for bucket in _buckets(document)]


def _buckets(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        for each in value:
            yield from _buckets(each)
    elif isinstance(value, dict):
        if any(keys <= value.keys() for keys in _BUCKETS):
            yield value
        elif isinstance(value.get("data"), list):
            yield from _buckets(value["data"])


def told_by_usage(
    documents: list[Any], buckets: list[Mapping[str, Any]], wanted: Wanted, faults: FaultCount
) -> Told:
    """Return requests and tokens of each bucket; a bucket's number stands for its line."""
    rows = CountRows(wanted, labelled=True)
    for number, bucket in enumerate(buckets, start=1):
        try:
            _take(rows, number, bucket)
        except LineUnusable as fault:
            faults.add(str(fault), number, str(bucket))
    told = rows.told(faults)
    last = documents[-1]
    if isinstance(last, dict) and last.get("has_more"):
        more = ("the last page says that there is more: ask for the pages after it, too",)
        return replace(told, notes=told.notes + more)
    return told


def _take(rows: CountRows, number: int, bucket: Mapping[str, Any]) -> None:
    if "aggregation_timestamp" in bucket:
        rows.add(
            number,
            str(bucket),
            rows.clock.read(bucket["aggregation_timestamp"]),
            _number(bucket["n_requests"]),
            length=_OLD_BUCKET,
            tokens=(
                _number(bucket.get("n_context_tokens_total")),
                _number(bucket.get("n_generated_tokens_total")),
            ),
            model=str(bucket.get("snapshot_id") or ""),
        )
        return
    start = rows.clock.read(bucket["start_time"])
    length = rows.clock.read(bucket["end_time"]) - start if "end_time" in bucket else nan
    results = bucket["results"] or [{"num_model_requests": 0, "input_tokens": 0, "output_tokens": 0}]
    for result in results:
        if not isinstance(result, dict) or "num_model_requests" not in result:
            raise LineUnusable("a result without num_model_requests: not of requests to a model")
        rows.add(
            number,
            f"{start} {result}",
            start,
            _number(result["num_model_requests"]),
            length=length,
            tokens=(_number(result.get("input_tokens")), _number(result.get("output_tokens"))),
            model=str(result.get("model") or ""),
        )


def _number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:
        return nan
    return float(value)
