"""Arguments and results of a `LabView` as JSON, so that another process can call its methods."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from controller import ClassCounters
from running.tracing import Explanation
from topo import Host, Plan, Switch
from topo.fault import Fault
from topo.graph import PortRef

RECORDS = {record.__name__: record for record in (ClassCounters, Explanation, Fault)}


def encoded(value: Any) -> Any:
    """A value as JSON: numbers, texts, lists, and one-key objects of all else."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, Host | Switch):
        return {"node": value.name}
    if isinstance(value, PortRef):
        return {"port": [value.node.name, value.port]}
    if isinstance(value, Mapping):
        return {"map": [[encoded(key), encoded(each)] for key, each in value.items()]}
    if isinstance(value, list | tuple):
        return [encoded(each) for each in value]
    if is_dataclass(value):
        return {type(value).__name__: [encoded(getattr(value, field.name)) for field in fields(value)]}
    return value


def decoded(value: Any, plan: Plan) -> Any:
    """The value again; sequences are lists. ValueError for what `encoded` does not make, and unknown nodes."""
    if isinstance(value, list):
        return [decoded(each, plan) for each in value]
    if not isinstance(value, dict):
        return value
    ((kind, told),) = value.items()
    match kind:
        case "bytes":
            return bytes.fromhex(told)
        case "node":
            return plan.node(told)
        case "port":
            return PortRef(plan.node(told[0]), int(told[1]))
        case "map":
            return {key: decoded(each, plan) for key, each in told}
    if kind not in RECORDS:
        raise ValueError(f"no record {kind!r}: valid are {', '.join(RECORDS)}")
    return RECORDS[kind](*decoded(told, plan))
