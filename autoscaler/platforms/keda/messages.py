"""The messages of KEDA's external scaler, by the names and numbers of their fields.

That is all of a protocol that is on the wire, so it is written here as data; the protobuf library does the
rest. Numbers are sent twice: as the integer that older versions of KEDA read, and as the float that those
since 2.17 do. A float of 0 is taken for absent, and then the integer counts, so 0 is 0 in both.

Source: the interface of KEDA's external scalers, package `externalscaler`.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_KINDS = {
    "string": _FIELD.TYPE_STRING,
    "bool": _FIELD.TYPE_BOOL,
    "int64": _FIELD.TYPE_INT64,
    "double": _FIELD.TYPE_DOUBLE,
}
_PACKAGE = "externalscaler"
SERVICE = f"{_PACKAGE}.ExternalScaler"

_METADATA = "ScaledObjectRef.ScalerMetadataEntry"
_MESSAGES: dict[str, dict[str, tuple[int, str, bool]]] = {
    # field: number, kind or message, whether there may be several
    "ScaledObjectRef": {
        "name": (1, "string", False),
        "namespace": (2, "string", False),
        "scalerMetadata": (3, _METADATA, True),
    },
    "IsActiveResponse": {"result": (1, "bool", False)},
    "MetricSpec": {
        "metricName": (1, "string", False),
        "targetSize": (2, "int64", False),
        "targetSizeFloat": (3, "double", False),
    },
    "GetMetricSpecResponse": {"metricSpecs": (1, "MetricSpec", True)},
    "GetMetricsRequest": {
        "scaledObjectRef": (1, "ScaledObjectRef", False),
        "metricName": (2, "string", False),
    },
    "MetricValue": {
        "metricName": (1, "string", False),
        "metricValue": (2, "int64", False),
        "metricValueFloat": (3, "double", False),
    },
    "GetMetricsResponse": {"metricValues": (1, "MetricValue", True)},
}


def _add_field(message: Any, name: str, number: int, kind: str, is_repeated: bool) -> None:
    field = message.field.add(name=name, number=number)
    field.label = _FIELD.LABEL_REPEATED if is_repeated else _FIELD.LABEL_OPTIONAL
    if kind in _KINDS:
        field.type = _KINDS[kind]
    else:
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"


def _file() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="externalscaler.proto", package=_PACKAGE, syntax="proto3")
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for name, (number, kind, is_repeated) in fields.items():
            _add_field(message, name, number, kind, is_repeated)
    entry = file.message_type[0].nested_type.add(name=_METADATA.rpartition(".")[2])
    entry.options.map_entry = True
    _add_field(entry, "key", 1, "string", False)
    _add_field(entry, "value", 2, "string", False)
    return file


# A pool of its own: another library of the same process may know the same messages.
_pool = descriptor_pool.DescriptorPool()
_pool.Add(_file())


def _class(name: str) -> Any:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


ScaledObjectRef = _class("ScaledObjectRef")
IsActiveResponse = _class("IsActiveResponse")
MetricSpec = _class("MetricSpec")
GetMetricSpecResponse = _class("GetMetricSpecResponse")
GetMetricsRequest = _class("GetMetricsRequest")
MetricValue = _class("MetricValue")
GetMetricsResponse = _class("GetMetricsResponse")


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
