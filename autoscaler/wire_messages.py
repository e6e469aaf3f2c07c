"""Classes of protobuf messages, from the names and numbers of their fields.

That is all of a protocol that is on the wire, so it is written down as data where it is used, and read like
the definition that it is:

    "ModelIndex": "name 1 string, version 2 string, state 3 string"
    "GetMetricsResponse": "metricValues 1 MetricValue*"           a star: there may be several
    "ScaledObjectRef": "name 1 string, scalerMetadata 3 map"      from strings to strings

Fields that nobody reads may be left out: a message keeps them unread. The protobuf library does the rest.
"""

from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_KINDS = {
    "string": _FIELD.TYPE_STRING,
    "bool": _FIELD.TYPE_BOOL,
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "uint32": _FIELD.TYPE_UINT32,
    "uint64": _FIELD.TYPE_UINT64,
    "float": _FIELD.TYPE_FLOAT,
    "double": _FIELD.TYPE_DOUBLE,
    "bytes": _FIELD.TYPE_BYTES,
}


def message_classes(
    package: str,
    messages: Mapping[str, str],
    enums: Mapping[str, str] | None = None,
    choices: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the classes by name.

    Parameters
    ----------
    package : str
        Of the messages; it is not on the wire.
    messages : mapping
        Fields by message.
    enums : mapping
        Values by enumeration, separated by blanks and numbered from 0.
    choices : mapping
        Messages of whose fields there is one at a time, and what that choice is called.
    """
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, values in (enums or {}).items():
        enum = file.enum_type.add(name=name)
        for number, value in enumerate(values.split()):
            enum.value.add(name=value, number=number)
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        if choices and name in choices:
            message.oneof_decl.add(name=choices[name])
        for field in filter(None, fields.split(", ")):
            field_name, at, kind = field.split()
            _add_field(message, f".{package}", field_name, int(at), kind, enums or {})
    # A pool of its own: another library of the same process may know the same messages.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
        for name in messages
    }


def _add_field(
    message: Any, package: str, name: str, number: int, kind: str, enums: Mapping[str, str]
) -> None:
    field = message.field.add(name=name, number=number, json_name=name)
    several = kind.endswith("*") or kind == "map"
    field.label = _FIELD.LABEL_REPEATED if several else _FIELD.LABEL_OPTIONAL
    kind = kind.rstrip("*")
    if kind in _KINDS:
        field.type = _KINDS[kind]
    else:
        field.type = _FIELD.TYPE_ENUM if kind in enums else _FIELD.TYPE_MESSAGE
        field.type_name = f"{package}.{kind}"
    if kind == "map":
        entry = message.nested_type.add(name=f"{name[0].upper()}{name[1:]}Entry")
        entry.options.map_entry = True
        field.type_name = f"{package}.{message.name}.{entry.name}"
        _add_field(entry, package, "key", 1, "string", enums)
        _add_field(entry, package, "value", 2, "string", enums)
    if message.oneof_decl:
        field.oneof_index = 0
