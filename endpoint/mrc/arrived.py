"""Records that a receiver hands on: one of a packet and one of a SACK, filled in place for every frame."""

from endpoint.nic.port import Port


class Arrived:
    """A write, a trimmed write or a probe that came by `port`; the payload without pad is the `size` bytes of the frame
    from `start` on."""

    def __init__(self, port: Port) -> None:
        self.port = port
        self.ev = self.opcode = self.psn = 0
        self.mark = 0
        """The `PathMark` to answer with."""
        self.stamp = 0
        """The timestamp to echo."""
        self.flags = 0
        """Those of the BTH, and SOLICITED."""
        self.va = self.rkey = self.length = self.immediate = self.start = self.size = 0


class Sack:
    """A selective acknowledgement: bit i of `bitmap` says that PSN `cack` + `offset` + i has arrived."""

    def __init__(self, cack: int = 0, offset: int = 0, bitmap: int = 0) -> None:
        self.cack = cack
        self.offset = offset
        self.bitmap = bitmap
        self.ev = self.mark = 0
        self.probe_response = False
        self.answer = 0
        """The offset of the causing PSN from `cack`, or the id of the probe, as a signed number."""
        self.penalty = 0
        self.mpr = 0
        """The PSNs that the peer grants from the cumulative one on, in units of 128; 0: no dynamic MPR."""
