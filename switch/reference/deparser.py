"""Checksums and the deparser (bm_sim/checksums.cpp, deparser.cpp)."""

from __future__ import annotations

from typing import NamedTuple

from p4c.model.externs import Checksum
from switch.reference.calculations import Hasher, hasher, header_bytes
from switch.reference.expressions import Reader, Test, Writer
from switch.reference.packet import Packet
from switch.reference.primitives import compile_primitive
from switch.reference.runtime import Runtime

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
            expected, found = compute(packet) & _M64, read(packet)
            self._runtime.record(
                packet,
                "checksum",
                checksum=checksum.name,
                result="right" if expected == found else f"wrong ({found:#x}, not {expected:#x})",
            )
            good = good and expected == found
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
