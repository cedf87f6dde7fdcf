"""The metadata through which simple_switch and a program talk (docs/simple_switch.md of behavioral-model)."""

from __future__ import annotations

from dataclasses import MISSING, field, fields

from switch.model.expressions import FieldRef
from switch.records import Frozen

# The headers of the names that simple_switch uses; `field_aliases` maps these names to v1model's standard_metadata.
STANDARD, INTRINSIC, QUEUEING = ({"of": f"{name}_metadata"} for name in ("standard", "intrinsic", "queueing"))


class Intrinsics(Frozen):
    """The field of this program that holds each metadatum; None when the program has no such field."""

    ingress_port: FieldRef = field(metadata=STANDARD)
    packet_length: FieldRef = field(metadata=STANDARD)
    egress_spec: FieldRef = field(metadata=STANDARD)
    egress_port: FieldRef = field(metadata=STANDARD)
    instance_type: FieldRef = field(metadata=STANDARD)
    parser_error: FieldRef | None = field(default=None, metadata=STANDARD)
    checksum_error: FieldRef | None = field(default=None, metadata=STANDARD)
    ingress_global_timestamp: FieldRef | None = field(default=None, metadata=INTRINSIC)
    egress_global_timestamp: FieldRef | None = field(default=None, metadata=INTRINSIC)
    mcast_grp: FieldRef | None = field(default=None, metadata=INTRINSIC)
    egress_rid: FieldRef | None = field(default=None, metadata=INTRINSIC)
    priority: FieldRef | None = field(default=None, metadata=INTRINSIC)
    enq_timestamp: FieldRef | None = field(default=None, metadata=QUEUEING)
    enq_qdepth: FieldRef | None = field(default=None, metadata=QUEUEING)
    deq_timedelta: FieldRef | None = field(default=None, metadata=QUEUEING)
    deq_qdepth: FieldRef | None = field(default=None, metadata=QUEUEING)
    qid: FieldRef | None = field(default=None, metadata=QUEUEING)


NAMES: dict[str, str] = {one.name: f"{one.metadata['of']}.{one.name}" for one in fields(Intrinsics)}
REQUIRED = tuple(one.name for one in fields(Intrinsics) if one.default is MISSING)
