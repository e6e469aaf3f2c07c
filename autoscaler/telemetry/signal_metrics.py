"""Signals from outside as metrics: what they read, and what is held of them.

The names come from the configuration, so the labels are bounded.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from autoscaler.telemetry.signal_test import Diagnosis
from autoscaler.telemetry.signal_watch import GradedSignal


def signal_metrics(pools: Mapping[str, Sequence[GradedSignal]]) -> Iterator[Metric]:
    """Yield the metrics of the signals of each pool; a signal that was never read has no value."""
    value = _family("value", "What the signal reads, in our units.", "signal")
    usable = _family("usable", "1 if the self-test found it to be what it is taken for.", "signal")
    quarantined = _family("quarantined", "1 while this is wrong with it.", "signal", "diagnosis")
    for pool, signals in pools.items():
        for signal in signals:
            if not math.isnan(signal.reading.value):
                value.add_metric([pool, signal.name], signal.reading.value)
            usable.add_metric([pool, signal.name], float(signal.grade.is_usable))
            for diagnosis in Diagnosis:
                is_so = float(signal.grade.diagnosis is diagnosis)
                quarantined.add_metric([pool, signal.name, diagnosis.value], is_so)
    yield from (value, usable, quarantined)


def _family(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"autoscaler_signal_{name}", text, labels=["pool", *labels])
