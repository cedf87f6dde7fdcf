"""A packet inside the switch, and the layout of its header vector.

Every field of every header has one slot in `values`, whether its header is valid or not: reading a field of an
invalid header gives the last value (zero at first), as in simple_switch.
"""

from __future__ import annotations

from p4c.model import Field, Header, Program
from p4c.model.externs import FieldList, LearnList
from switch.engine import COPIES_MAX

UNTRUNCATED = 1 << 62


class Family:
    """The state that all descendants of one received packet share."""

    __slots__ = ("copies_left",)

    def __init__(self) -> None:
        self.copies_left = COPIES_MAX


class FieldSlots:
    """The slots of a program's header fields in a packet's `values`."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.bases: list[int] = []  # by header index: the slot of its first field
        size = 0
        for header in program.headers:
            self.bases.append(size)
            size += len(header.type.fields)
        self.size = size
        self.fixed_bytes = [h.type.width_bits // 8 for h in program.headers]
        self.metadata = [h.index for h in program.headers if h.metadata]
        self.siblings: dict[int, tuple[int, ...]] = {}  # of a union's member: the others
        for union in program.unions:
            for header in union.headers:
                self.siblings[header.index] = tuple(h.index for h in union.headers if h is not header)

    def slot(self, header: Header, field: Field) -> int:
        return self.bases[header.index] + field.index

    def slots(self, header: int) -> range:
        start = self.bases[header]
        return range(start, start + len(self.program.headers[header].type.fields))


class Packet:
    """Bytes and header vector, and what simple_switch keeps in a packet's registers."""

    def __init__(
        self,
        layout: FieldSlots,
        packet_id: int,
        data: bytes,
        ingress_port: int,
        passes: int = 0,
        family: Family | None = None,
    ) -> None:
        self.layout = layout
        self.id = packet_id
        self.data = data  # as it entered ingress
        self.payload = data  # what the parser left
        self.ingress_port = ingress_port  # where it first came in
        self.ingress_length = len(data)
        self.length = len(data)  # simple_switch's packet-length register: follows add_header and remove_header
        self.passes = passes
        self.family = family or Family()
        self.truncate = UNTRUNCATED
        self.values = [0] * layout.size
        self.valid = [h.metadata for h in layout.program.headers]
        self.varbits: dict[int, int] = {}  # header index → bits of its varbit field
        self.nexts = [0] * len(layout.program.stacks)
        self.union_nexts = [0] * len(layout.program.union_stacks)
        self.args: tuple[int, ...] = ()  # of the action that runs
        self.exited = False
        self.clone: tuple[int, FieldList] | None = None  # session and preserved fields
        self.resubmit: FieldList | None = None
        self.recirculate: FieldList | None = None
        self.digest: LearnList | None = None
        self.enqueued_ns = 0
        self.queue_bytes = 0
        self.queue_depth = 0  # packets that were in its queue before it
        self.priority = 0
        self.charged = False  # to the port by which it came (pfc.py)

    def copy(self, packet_id: int) -> Packet:
        """With the header vector, without truncation or requests (clone_with_phv of bm_sim)."""
        twin = Packet(self.layout, packet_id, self.data, self.ingress_port, self.passes, self.family)
        twin.payload = self.payload
        twin.ingress_length = self.ingress_length
        twin.length = self.length
        twin.values = self.values.copy()
        twin.valid = self.valid.copy()
        twin.varbits = self.varbits.copy()
        twin.nexts = self.nexts.copy()
        twin.union_nexts = self.union_nexts.copy()
        return twin

    def header_bytes(self, header: int) -> int:
        return self.layout.fixed_bytes[header] + self.varbits.get(header, 0) // 8

    def set_valid(self, header: int) -> None:
        self.valid[header] = True
        for sibling in self.layout.siblings.get(header, ()):
            self.valid[sibling] = False

    def set_invalid(self, header: int) -> None:
        self.valid[header] = False

    def clear_fields(self, header: int) -> None:
        for slot in self.layout.slots(header):
            self.values[slot] = 0
        self.varbits.pop(header, None)

    def reset_metadata(self) -> None:
        for header in self.layout.metadata:
            self.clear_fields(header)

    def swap_headers(self, a: int, b: int) -> None:
        values, valid, varbits = self.values, self.valid, self.varbits
        for i, j in zip(self.layout.slots(a), self.layout.slots(b), strict=True):
            values[i], values[j] = values[j], values[i]
        valid[a], valid[b] = valid[b], valid[a]
        wide_a, wide_b = varbits.pop(a, 0), varbits.pop(b, 0)
        if wide_b:
            varbits[a] = wide_b
        if wide_a:
            varbits[b] = wide_a
