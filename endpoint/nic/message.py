"""A posted write on its way: a range of local memory, a range of remote memory, and a run of PSNs."""

from endpoint.region import MemoryRegion


class Message:
    """`index` counts the writes of the QP from 0, `imm_index` those with immediate; the wire has them modulo 2^16."""

    def __init__(
        self,
        wr_id: int,
        region: MemoryRegion,
        offset: int,
        length: int,
        remote_va: int,
        rkey: int,
        immediate: int | None,
        pmtu: int,
    ) -> None:
        self.wr_id = wr_id
        self.region = region
        self.counted = region.buffer is None
        """Whether frames leave its payload out."""
        self.offset = offset
        self.length = length
        self.remote_va = remote_va
        self.rkey = rkey
        self.immediate = immediate
        self.index = 0
        self.imm_index = 0
        self.first_psn = 0
        self.last_psn = -1
        """-1 until the first packet is to be sent."""
        self.signaled = True
        """Whether success is told of."""
        self.solicited = False
        """Whether the peer's completion is to be solicited."""
        self.unacked = -(-length // pmtu) or 1
        """Packets that the peer has not acknowledged, of a write of no bytes one; 0 once all have been placed."""
