"""One loaded program: simple_switch's treatment of a packet in ingress and in egress (simple_switch.cpp).

The machine knows no clock and no queues: the engine gives it the time, and takes what is to be queued or to be
processed again.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from common.records import Frozen
from p4c.model import Program
from p4c.model.expressions import FieldRef
from p4c.model.externs import Checksum, FieldInput, FieldList, LearnList
from p4c.model.intrinsics import NAMES
from switch import rules
from switch.engine import COPIES_MAX, DROP_PORT, FRAME_BYTES_MAX, PASSES_MAX, Digest, Replica
from switch.reference.actions import ActionCompiler
from switch.reference.calculations import Hasher, hasher, header_bytes
from switch.reference.expressions import Reader, Test, Writer
from switch.reference.packet import FieldSlots, Packet
from switch.reference.parser import ParserRunner
from switch.reference.pipeline import PipelineRunner
from switch.reference.primitives import compile_primitive
from switch.reference.profiles import Profiles
from switch.reference.rng import SplitMix64
from switch.reference.runtime import Runtime
from switch.reference.tables import TableState
from switch.reference.trace import Trace

# Checksums and the deparser (bm_sim/checksums.cpp, deparser.cpp).
_M64 = (1 << 64) - 1


class _Compiled(NamedTuple):
    checksum: Checksum
    compute: Hasher
    condition: Test | None
    read: Reader
    write: Writer


class Checksums:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._verified = [self._compiled(c) for c in runtime.program.checksums if c.verify]
        self._updated = [self._compiled(c) for c in runtime.program.checksums if c.update]

    def _compiled(self, checksum: Checksum) -> _Compiled:
        runtime, condition = self._runtime, checksum.condition
        return _Compiled(
            checksum,
            hasher(checksum.calculation, runtime.layout),
            None if condition is None else runtime.expressions.test(condition),
            runtime.expressions.reader(checksum.target),
            runtime.expressions.writer(checksum.target),
        )

    def verify(self, packet: Packet) -> bool:
        """False when one is wrong. One whose header is invalid, or whose condition does not hold, is not looked at."""
        good = True
        for checksum, compute, condition, read, _ in self._verified:
            if not packet.valid[checksum.target.header.index] or (condition is not None and not condition(packet)):
                continue
            expected, carried = compute(packet) & _M64, read(packet)
            self._runtime.record(
                packet,
                "checksum",
                checksum=checksum.name,
                result="right" if expected == carried else f"wrong ({carried:#x}, not {expected:#x})",
            )
            good = good and expected == carried
        return good

    def update(self, packet: Packet) -> None:
        for checksum, compute, condition, _, write in self._updated:
            if condition is not None and not condition(packet):
                continue
            value = compute(packet)
            write(packet, value)
            self._runtime.record(packet, "checksum", checksum=checksum.name, result=f"set to {value:#x}")


class DeparserRunner:
    def __init__(self, runtime: Runtime, checksums: Checksums) -> None:
        self._runtime = runtime
        self._checksums = checksums
        self._order = runtime.program.deparser.order
        self._primitives = [compile_primitive(p, runtime) for p in runtime.program.deparser.primitives]

    def deparse(self, packet: Packet) -> bytes:
        """The whole frame; truncation is not applied yet."""
        self._checksums.update(packet)
        for run in self._primitives:
            run(packet)
        emitted = [h for h in self._order if packet.valid[h.index]]
        names = [h.name for h in emitted]
        self._runtime.record(packet, "deparse", headers=names, payload=len(packet.payload))
        return b"".join([header_bytes(packet, h) for h in emitted]) + packet.payload


# Multicast groups and clone sessions, as the control plane set them.
class CloneSession(Frozen):
    replicas: tuple[Replica, ...]
    truncate_bytes: int  # 0: whole
    class_of_service: int = 0


class Replication:
    def __init__(self) -> None:
        self.groups: dict[int, tuple[Replica, ...]] = {}
        self.sessions: dict[int, CloneSession] = {}

    def set_group(self, group_id: int, replicas: Sequence[Replica]) -> None:
        rules.check_multicast_group(group_id)
        self.groups[group_id] = tuple(replicas)

    def delete_group(self, group_id: int) -> None:
        rules.check_known(self.groups, "multicast group", group_id)
        del self.groups[group_id]

    def set_session(
        self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int, class_of_service: int
    ) -> None:
        rules.check_clone_session(session_id, truncate_bytes, class_of_service)
        self.sessions[session_id] = CloneSession(tuple(replicas), truncate_bytes, class_of_service)

    def delete_session(self, session_id: int) -> None:
        rules.check_known(self.sessions, "clone session", session_id)
        del self.sessions[session_id]


# standard_metadata.instance_type
NORMAL, INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, REPLICATED, RESUBMITTED = 0, 1, 2, 4, 5, 6


class Outlets(Frozen):
    """The engine, as the machine hands packets to it."""

    enqueue: Callable[[Packet, int], None]  # packet, port
    again: Callable[[Packet], None]  # resubmitted or recirculated: another ingress pass
    spent: Callable[[Packet, str], None]  # beyond PASSES_MAX or COPIES_MAX, or grown too long: the reason for its drop
    new_id: Callable[[], int]
    dropped: Callable[[Packet, int | None], None]  # by the program; in egress, at this port
    digest: Callable[[Digest], None]


class Machine:
    def __init__(self, program: Program, rng: SplitMix64, trace: Trace | None, outlets: Outlets) -> None:
        self.program = program
        self.runtime = Runtime(program, rng, trace)
        self.layout: FieldSlots = self.runtime.layout
        self.profiles = Profiles(self.runtime)
        self.tables = {t.name: TableState(t, self.runtime, self.profiles) for t in program.tables}
        self.replication = Replication()
        self.digests: set[str] = set()  # the names of those that are enabled
        self._outlets = outlets
        actions = ActionCompiler(self.runtime)
        self.parser = ParserRunner(self.runtime)
        self._ingress = PipelineRunner(program.ingress, self.runtime, actions, self.tables)
        self._egress = PipelineRunner(program.egress, self.runtime, actions, self.tables)
        self._checksums = Checksums(self.runtime)
        self._deparser = DeparserRunner(self.runtime, self._checksums)
        names = program.intrinsics
        self._writers: dict[str, Writer] = {
            name: self.runtime.expressions.writer(ref)
            for name in NAMES
            if isinstance(ref := getattr(names, name), FieldRef)
        }

    def table(self, name: str) -> TableState:
        return rules.find(self.tables, name, "table")

    # --- intrinsic metadata ---

    def set(self, packet: Packet, name: str, value: int) -> None:
        """Write intrinsic metadata, if the program has it."""
        write = self._writers.get(name)
        if write is not None:
            write(packet, value)

    def get(self, packet: Packet, name: str) -> int:
        ref = getattr(self.program.intrinsics, name)
        return 0 if ref is None else packet.values[self.layout.slot(ref.header, ref.field)] & ref.field.mask

    # --- ingress ---

    def receive(self, frame: bytes, port: int) -> None:
        """A new packet from the wire."""
        packet = Packet(self.layout, self._outlets.new_id(), frame, port)
        self.set(packet, "ingress_port", port)
        self.set(packet, "packet_length", len(frame))
        self.set(packet, "ingress_global_timestamp", self.runtime.now_ns // 1000)
        self.runtime.record(packet, "receive", port=port, bytes=len(frame))
        self.ingress(packet)

    def ingress(self, packet: Packet) -> None:
        entered_length = packet.length
        error = self.parser.parse(packet)
        self.set(packet, "parser_error", error)
        self.set(packet, "checksum_error", int(not self._checksums.verify(packet)))
        packet.digest = None
        self._ingress.run(packet)
        packet.exited = False
        if packet.digest is not None:
            self._learn(packet, packet.digest)
        if packet.clone is not None:
            self._clone_ingress(packet, entered_length)
        if packet.resubmit is not None:
            preserved = packet.resubmit
            self._restart(packet, packet.data, entered_length, RESUBMITTED, preserved, "resubmit")
            return
        group = self.get(packet, "mcast_grp")
        if group:
            self.set(packet, "instance_type", REPLICATED)
            self._multicast(packet, group)
            return
        port = self.get(packet, "egress_spec")
        if port == DROP_PORT:
            self.runtime.record(
                packet, "drop", reason=f"egress_spec is the drop port {DROP_PORT} at the end of ingress"
            )
            self._outlets.dropped(packet, None)
            return
        self.set(packet, "instance_type", NORMAL)
        self._outlets.enqueue(packet, port)

    def _learn(self, packet: Packet, learned: LearnList) -> None:
        value = 0
        for item, width in zip(learned.items, learned.widths, strict=True):
            if isinstance(item, FieldInput):
                slot = self.layout.slot(item.field.header, item.field.field)
                value = value << width | packet.values[slot] & item.field.field.mask
            else:
                value = value << width | item.value & (1 << width) - 1
        bits = sum(learned.widths)
        data = (value << -bits % 8).to_bytes((bits + 7) // 8, "big")
        enabled = learned.name in self.digests
        self.runtime.record(packet, "digest", digest=learned.name, data=data.hex(), enabled=enabled)
        if enabled:
            self._outlets.digest(Digest(self.program.learn_lists.index(learned) + 1, data))

    def _may_copy(self, packet: Packet) -> bool:
        """May one more copy be made of this packet? Counts it, or the drop."""
        if not packet.family.copies_left:
            reason = f"{COPIES_MAX} copies were made of what came in, the most allowed"
            self._outlets.spent(packet, reason)
            return False
        packet.family.copies_left -= 1
        return True

    def _may_descend(self, packet: Packet) -> bool:
        """May this packet have a descendant, one pass further? Counts it, or the drop."""
        if packet.passes >= PASSES_MAX:
            self._outlets.spent(packet, f"the packet went round {packet.passes} times, the most allowed")
            return False
        return self._may_copy(packet)

    def _descendant(self, packet: Packet, data: bytes) -> Packet:
        """A packet one pass further, with nothing parsed yet."""
        number = self._outlets.new_id()
        return Packet(self.layout, number, data, packet.ingress_port, packet.passes + 1, packet.family)

    def _clone_asked_for(self, packet: Packet) -> tuple[int, CloneSession, FieldList]:
        """Session (without replicas when there is none) and preserved fields; from then on it is not asked for."""
        assert packet.clone is not None
        (session_id, preserved), packet.clone = packet.clone, None
        session = self.replication.sessions.get(session_id)
        if session is None:
            self.runtime.record(packet, "clone_unknown", session=session_id)
            session = CloneSession((), 0)
        return session_id, session, preserved

    def _clone_ingress(self, packet: Packet, entered_length: int) -> None:
        session_id, session, preserved = self._clone_asked_for(packet)
        for replica in session.replicas:
            if not self._may_descend(packet):
                return
            twin = self._descendant(packet, packet.data)
            twin.ingress_length = packet.ingress_length
            twin.length = entered_length
            self._tell_clone(packet, twin, session_id, replica)
            # Parsed again, since the pipeline changed the headers; the parser may look at the port.
            self.set(twin, "ingress_port", packet.ingress_port)
            self.parser.parse(twin)
            self._finish_clone(packet, twin, preserved, INGRESS_CLONE, replica, session)

    def _finish_clone(
        self, packet: Packet, twin: Packet, preserved: FieldList, instance: int, replica: Replica, session: CloneSession
    ) -> None:
        self._keep(packet, twin, preserved)
        self.set(twin, "instance_type", instance)
        self.set(twin, "egress_rid", replica.instance)
        if session.truncate_bytes:
            twin.truncate = session.truncate_bytes
        if session.class_of_service:
            self.set(twin, "priority", session.class_of_service)
        self._outlets.enqueue(twin, replica.port)

    def _tell_clone(self, packet: Packet, twin: Packet, session: int, replica: Replica) -> None:
        self.runtime.record(
            packet, "clone", session=session, copy=twin.id, port=replica.port, instance=replica.instance
        )

    def _keep(self, packet: Packet, twin: Packet, preserved: FieldList) -> None:
        """Reset the twin's metadata, but for the fields of the list."""
        twin.reset_metadata()
        for ref in preserved.fields:
            slot = self.layout.slot(ref.header, ref.field)
            twin.values[slot] = packet.values[slot]

    def _restart(
        self, packet: Packet, data: bytes, length: int, instance: int, preserved: FieldList, kind: str
    ) -> None:
        """Send a packet through ingress again, its metadata reset but for the preserved fields."""
        if not self._may_descend(packet):
            return
        twin = self._descendant(packet, data)
        if kind == "resubmit":
            twin.ingress_length = packet.ingress_length
        twin.length = length
        self._keep(packet, twin, preserved)
        self.set(twin, "instance_type", instance)
        self.set(twin, "packet_length", length)
        self.runtime.record(packet, kind, copy=twin.id, bytes=len(data))
        self._outlets.again(twin)

    def _multicast(self, packet: Packet, group: int) -> None:
        replicas = self.replication.groups.get(group)
        if replicas is None:
            self.runtime.record(packet, "drop", reason=f"multicast group {group} does not exist")
            return
        copies = 0
        for replica in replicas:
            if not self._may_copy(packet):
                break
            copies += 1
            twin = packet.copy(self._outlets.new_id())
            self.set(twin, "egress_rid", replica.instance)
            self.runtime.record(
                packet, "replica", group=group, copy=twin.id, port=replica.port, instance=replica.instance
            )
            self._outlets.enqueue(twin, replica.port)
        self.runtime.record(packet, "replicated", group=group, copies=copies)

    # --- egress ---

    def egress(self, packet: Packet, port: int, priority: int, depth_left: int) -> bytes | None:
        """The frame to send, or None when the packet was dropped or recirculated."""
        now_us = self.runtime.now_ns // 1000
        self.set(packet, "egress_global_timestamp", now_us)
        self.set(packet, "deq_timedelta", now_us - packet.enqueued_ns // 1000)
        self.set(packet, "deq_qdepth", depth_left)
        self.set(packet, "qid", priority)
        self.set(packet, "egress_port", port)
        self.set(packet, "egress_spec", DROP_PORT + 1)  # anything but the drop port
        self.set(packet, "packet_length", packet.length)
        self._egress.run(packet)
        if packet.clone is not None:
            self._clone_egress(packet)
        if self.get(packet, "egress_spec") == DROP_PORT:
            self.runtime.record(packet, "drop", reason=f"egress_spec is the drop port {DROP_PORT} at the end of egress")
            self._outlets.dropped(packet, port)
            return None
        frame = self._deparser.deparse(packet)
        if packet.recirculate is None:
            frame = frame[: packet.truncate]
        if len(frame) > FRAME_BYTES_MAX:
            self._outlets.spent(packet, f"the packet grew to {len(frame)} bytes; a frame has at most {FRAME_BYTES_MAX}")
            return None
        if packet.recirculate is not None:
            preserved = packet.recirculate
            self._restart(packet, frame, len(frame), RECIRCULATED, preserved, "recirculate")
            return None
        return frame

    def _clone_egress(self, packet: Packet) -> None:
        session_id, session, preserved = self._clone_asked_for(packet)
        for replica in session.replicas:
            if not self._may_descend(packet):
                return
            twin = packet.copy(self._outlets.new_id())
            twin.passes = packet.passes + 1
            self._tell_clone(packet, twin, session_id, replica)
            self._finish_clone(packet, twin, preserved, EGRESS_CLONE, replica, session)
