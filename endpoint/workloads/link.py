"""What one rank has for one peer: queue pairs, memory that the peer writes to, and the peer's memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from endpoint.transport import CompletionQueue, MemoryRegion, QPInfo, QueuePair, Transport
from endpoint.workloads.options import WorkloadError

RECEIVES = 128  # posted receives a QP: the write-with-immediates that may arrive before we look


class Link:
    """`inbox_bytes` of memory and `qps` queue pairs for one peer, made by `prepare`, joined by `connect`."""

    def __init__(self, transport: Transport, cq: CompletionQueue, peer: str, qps: int, inbox_bytes: int) -> None:
        self.peer = peer
        self.remote_va = self.remote_rkey = self.remote_length = 0
        self._transport = transport
        self.inbox = bytearray(inbox_bytes)
        self._region: MemoryRegion | None = transport.register_memory(self.inbox) if inbox_bytes else None
        self.qps: list[QueuePair] = [transport.create_qp(cq) for _ in range(qps)]

    def offer(self) -> dict[str, Any]:
        """What the peer needs to know; JSON-safe."""
        va, rkey = (self._region.va, self._region.rkey) if self._region else (0, 0)
        return {"qps": [asdict(qp.info()) for qp in self.qps], "va": va, "rkey": rkey, "length": len(self.inbox)}

    def connect(self, offer: Mapping[str, Any], needed_bytes: int, now_ns: int) -> None:
        try:
            infos = [QPInfo(**info) for info in offer["qps"]]
            self.remote_va, self.remote_rkey = int(offer["va"]), int(offer["rkey"])
            self.remote_length = int(offer["length"])
        except (KeyError, TypeError, ValueError) as error:
            raise WorkloadError(f"the offer of {self.peer} is not one that workload.prepare made: {error!r}") from error
        if len(infos) != len(self.qps) or self.remote_length < needed_bytes:
            raise WorkloadError(
                f"{self.peer} offers {len(infos)} QPs and {self.remote_length} bytes, but this rank needs "
                f"{len(self.qps)} and {needed_bytes}: both must be prepared with the same options"
            )
        for qp, info in zip(self.qps, infos, strict=True):
            for wr_id in range(RECEIVES):
                qp.post_recv(wr_id)
            qp.connect(info, now_ns)

    def close(self, now_ns: int) -> None:
        for qp in self.qps:
            self._transport.destroy_qp(qp, now_ns)
        if self._region:
            self._transport.deregister_memory(self._region)
