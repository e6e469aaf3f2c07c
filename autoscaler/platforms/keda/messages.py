"""The messages of KEDA's external scaler, by the names and numbers of their fields.

Numbers are sent twice: as the integer that older versions of KEDA read, and as the float that those
since 2.17 do. A float of 0 is taken for absent, and then the integer counts, so 0 is 0 in both.

Source: the interface of KEDA's external scalers, package `externalscaler`.
"""

from typing import Any

from autoscaler.wire_messages import message_classes

_PACKAGE = "externalscaler"
SERVICE = f"{_PACKAGE}.ExternalScaler"

_classes = message_classes(
    _PACKAGE,
    {
        "ScaledObjectRef": "name 1 string, namespace 2 string, scalerMetadata 3 map",
        "IsActiveResponse": "result 1 bool",
        "MetricSpec": "metricName 1 string, targetSize 2 int64, targetSizeFloat 3 double",
        "GetMetricSpecResponse": "metricSpecs 1 MetricSpec*",
        "GetMetricsRequest": "scaledObjectRef 1 ScaledObjectRef, metricName 2 string",
        "MetricValue": "metricName 1 string, metricValue 2 int64, metricValueFloat 3 double",
        "GetMetricsResponse": "metricValues 1 MetricValue*",
    },
)

ScaledObjectRef = _classes["ScaledObjectRef"]
IsActiveResponse = _classes["IsActiveResponse"]
MetricSpec = _classes["MetricSpec"]
GetMetricSpecResponse = _classes["GetMetricSpecResponse"]
GetMetricsRequest = _classes["GetMetricsRequest"]
MetricValue = _classes["MetricValue"]
GetMetricsResponse = _classes["GetMetricsResponse"]


def metric_spec(name: str, target: int) -> Any:
    """Return the answer that there is one metric, with its target for each replica."""
    return GetMetricSpecResponse(
        metricSpecs=[MetricSpec(metricName=name, targetSize=target, targetSizeFloat=float(target))]
    )


def metric_value(name: str, value: int) -> Any:
    """Return the answer that one metric has a value."""
    return GetMetricsResponse(
        metricValues=[MetricValue(metricName=name, metricValue=value, metricValueFloat=float(value))]
    )
