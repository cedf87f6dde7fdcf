"""The metadata through which simple_switch and a program talk (docs/simple_switch.md of behavioral-model)."""

from __future__ import annotations

from dataclasses import fields

from switch.model.expressions import FieldRef
from switch.records import Frozen

# Names that simple_switch uses; `field_aliases` maps them to v1model's standard_metadata.
NAMES: dict[str, str] = {
    "ingress_port": "standard_metadata.ingress_port",
    "packet_length": "standard_metadata.packet_length",
    "egress_spec": "standard_metadata.egress_spec",
    "egress_port": "standard_metadata.egress_port",
    "instance_type": "standard_metadata.instance_type",
    "parser_error": "standard_metadata.parser_error",
    "checksum_error": "standard_metadata.checksum_error",
    "ingress_global_timestamp": "intrinsic_metadata.ingress_global_timestamp",
    "egress_global_timestamp": "intrinsic_metadata.egress_global_timestamp",
    "mcast_grp": "intrinsic_metadata.mcast_grp",
    "egress_rid": "intrinsic_metadata.egress_rid",
    "priority": "intrinsic_metadata.priority",
    "enq_timestamp": "queueing_metadata.enq_timestamp",
    "enq_qdepth": "queueing_metadata.enq_qdepth",
    "deq_timedelta": "queueing_metadata.deq_timedelta",
    "deq_qdepth": "queueing_metadata.deq_qdepth",
    "qid": "queueing_metadata.qid",
}


class Intrinsics(Frozen):
    """The field of this program that holds each metadatum; None when the program has no such field."""

    ingress_port: FieldRef
    packet_length: FieldRef
    egress_spec: FieldRef
    egress_port: FieldRef
    instance_type: FieldRef
    parser_error: FieldRef | None = None
    checksum_error: FieldRef | None = None
    ingress_global_timestamp: FieldRef | None = None
    egress_global_timestamp: FieldRef | None = None
    mcast_grp: FieldRef | None = None
    egress_rid: FieldRef | None = None
    priority: FieldRef | None = None
    enq_timestamp: FieldRef | None = None
    enq_qdepth: FieldRef | None = None
    deq_timedelta: FieldRef | None = None
    deq_qdepth: FieldRef | None = None
    qid: FieldRef | None = None


REQUIRED = ("ingress_port", "packet_length", "egress_spec", "egress_port", "instance_type")

assert {f.name for f in fields(Intrinsics)} == set(NAMES)
