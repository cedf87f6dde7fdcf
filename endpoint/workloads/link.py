"""One rank's link to one peer: queue pairs, memory that the peer writes to, and the place of the peer's memory."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from endpoint.transport import CompletionQueue, MemoryRegion, QPInfo, QueueFull, QueuePair, Transport
from endpoint.workloads.options import WorkloadError

RECEIVES = 128  # posted receives a QP: as many write-with-immediates may arrive between two looks at the completions


class PeerLink:
    """`inbox_bytes` of memory and `qps` queue pairs for one peer, made by `prepare`, joined by `connect`.

    Raises `MemoryError`, or `QueueFull` when the NIC has no more QPs; nothing is kept then.
    """

    def __init__(
        self, transport: Transport, cq: CompletionQueue, peer: str, qps: int, inbox_bytes: int, now_ns: int
    ) -> None:
        self.peer = peer
        self.remote_va = self.remote_rkey = 0
        self._transport = transport
        self.inbox = bytearray(0 if transport.counted else inbox_bytes)
        """The bytes that the peer has written here; no bytes where payload is counted."""
        self._region: MemoryRegion | None = None
        if inbox_bytes:
            counted = transport.counted
            self._region = transport.register_counted(inbox_bytes) if counted else transport.register_memory(self.inbox)
        self.qps: list[QueuePair] = []
        self._infos: list[QPInfo] = []
        try:
            for _ in range(qps):
                self.qps.append(transport.create_qp(cq))
        except QueueFull:
            self.close(now_ns)
            raise

    def offer(self) -> dict[str, Any]:
        """What the peer needs to know; JSON-safe."""
        va, rkey = (self._region.va, self._region.rkey) if self._region else (0, 0)
        return {"qps": [asdict(qp.info()) for qp in self.qps], "va": va, "rkey": rkey, "length": self.inbox_bytes}

    @property
    def inbox_bytes(self) -> int:
        """Bytes of memory that the peer may write to."""
        return self._region.length if self._region else 0

    def take(self, at: int, length: int) -> bool:
        """Whether `length` bytes have arrived from byte `at` of the inbox on, each once since they were last taken.

        For counted payload only; carried payload is compared instead.
        """
        return self._region is not None and self._region.landed.take(at, at + length)

    def take_offer(self, offer: Mapping[str, Any], needed_bytes: int) -> None:
        """Keep the peer's offer for `connect`. Raises WorkloadError when the offer is malformed or too small.

        An offer is JSON from anybody who can reach the control socket, so every part of it is checked.
        """
        try:
            infos = [QPInfo(**info) for info in offer["qps"]]
            va, rkey, length = (
                _integer(key, offer[key], bits) for key, bits in (("va", 64), ("rkey", 32), ("length", 64))
            )
            if va + length > 1 << 64:
                raise ValueError(f"va {va:#x} and length {length} do not fit 64 bits")
            for info in infos:
                self._check(info)
        except (KeyError, TypeError, ValueError) as error:
            raise WorkloadError(f"the offer of {self.peer} is not one that workload.prepare made: {error!r}") from error
        if len(infos) != len(self.qps) or length < needed_bytes:
            raise WorkloadError(
                f"{self.peer} offers {len(infos)} QPs and {length} bytes, but this rank needs "
                f"{len(self.qps)} and {needed_bytes}: both must be prepared with the same options"
            )
        self._infos, self.remote_va, self.remote_rkey = infos, va, rkey

    def _check(self, info: QPInfo) -> None:
        if info.host != self.peer:
            raise ValueError(f"it is of a QP of {info.host!r}")
        _integer("qpn", info.qpn, 24)
        _integer("psn", info.psn, 24)
        _integer("mpr", info.mpr, 8)
        _integer("max_write_imm", info.max_write_imm, 32)
        if info.pmtu is not None:
            _integer("pmtu", info.pmtu, 16)
        if info.dialect is not None and type(info.dialect) is not str:
            raise ValueError(f"dialect is {info.dialect!r}, no text")
        if type(info.trim_nack) is not bool:
            raise ValueError(f"trim_nack is {info.trim_nack!r}, not true or false")

    def connect(self, now_ns: int) -> None:
        """Join the QPs with those of the offer. Raises WorkloadError when the transport refuses what was offered."""
        for qp, info in zip(self.qps, self._infos, strict=True):
            try:
                for wr_id in range(RECEIVES):
                    qp.post_recv(wr_id)
                qp.connect(info, now_ns)
            except (ValueError, QueueFull) as error:
                raise WorkloadError(f"QP to {self.peer}: {error}") from error

    def pairs(self) -> list[tuple[int, int]]:
        """The numbers of the QPs here and of the peer's QPs that they are joined with."""
        return [(qp.qpn, info.qpn) for qp, info in zip(self.qps, self._infos, strict=False)]

    def close(self, now_ns: int) -> None:
        """Destroy the QPs and give the memory back."""
        for qp in self.qps:
            self._transport.destroy_qp(qp, now_ns)
        if self._region:
            self._transport.deregister_memory(self._region)


def _integer(name: str, value: Any, bits: int) -> int:
    if type(value) is not int or not 0 <= value < 1 << bits:
        raise ValueError(f"{name} is {value!r}, no integer of {bits} bits")
    return value
