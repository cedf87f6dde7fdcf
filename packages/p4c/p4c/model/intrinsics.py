"""The metadata through which simple_switch and a program talk (docs/simple_switch.md of behavioral-model)."""

from collections.abc import Mapping
from dataclasses import MISSING, field, fields

from common.records import Frozen
from p4c.model.errors import ModelError
from p4c.model.expressions import FieldRef, ValidBit
from p4c.model.headers import Header

__all__ = ["NAMES"]

WIDEST_BITS = 64  # of such a field: times have 48 in v1model, all others fewer
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


NAMES: dict[str, str] = {member.name: f"{member.metadata['of']}.{member.name}" for member in fields(Intrinsics)}
"""The field of BMv2 JSON that holds each intrinsic value, by its name."""
REQUIRED = tuple(member.name for member in fields(Intrinsics) if member.default is MISSING)


def find_intrinsics(headers: Mapping[str, Header], aliases: Mapping[str, FieldRef | ValidBit]) -> Intrinsics:
    """The intrinsic metadata of a program with these headers and aliases. ModelError if one is missing, too wide, or
    kept in the field of another: which is written last would differ from switch to switch."""
    places = {}
    taken: dict[tuple[str, str], str] = {}
    for attribute, name in NAMES.items():
        place = aliases.get(name)
        if place is None:
            header_name, field_name = name.split(".")
            header = headers.get(header_name)
            found_field = header.type.field(field_name) if header is not None else None
            place = FieldRef(header, found_field) if header is not None and found_field is not None else None
        if isinstance(place, FieldRef):
            if not place.header.metadata:
                raise ModelError(f"the field {name} must be metadata, and {place.header.name} is a header of packets")
            if (bits := place.field.width_bits) > WIDEST_BITS:
                raise ModelError(f"the field {name} must have at most {WIDEST_BITS} bits (got {bits})")
            if (other := taken.setdefault((place.header.name, place.field.name), name)) != name:
                raise ModelError(f"{name} and {other} must be two fields, and both are {place.field.name}")
            places[attribute] = place
        elif attribute in REQUIRED:
            raise ModelError(f"the field {name} is required by simple_switch, but the program has none")
    return Intrinsics(**places)
