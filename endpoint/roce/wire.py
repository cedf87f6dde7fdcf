"""RoCEv2 RC on the wire: the opcodes of RDMA writes, acknowledgement and congestion notification.

`BTH | [RETH] | [ImmDt] | data | pad | ICRC`, RETH in the first packet of a message only; BTH, RETH and AETH have the
layouts of `endpoint.nic.wire` (InfiniBand Architecture, volume 1, chapter 9; annex A17).
"""

from enum import IntEnum


class Opcode(IntEnum):
    """BTH opcodes of reliable connections, and of a congestion notification packet."""

    WRITE_FIRST = 0x06
    WRITE_MIDDLE = 0x07
    WRITE_LAST = 0x08
    WRITE_LAST_IMM = 0x09
    WRITE_ONLY = 0x0A
    WRITE_ONLY_IMM = 0x0B
    ACKNOWLEDGE = 0x11
    CNP = 0x81


WRITES = frozenset(opcode for opcode in Opcode if opcode <= Opcode.WRITE_ONLY_IMM)
FIRSTS = frozenset({Opcode.WRITE_FIRST, Opcode.WRITE_ONLY, Opcode.WRITE_ONLY_IMM})
LASTS = frozenset({Opcode.WRITE_LAST, Opcode.WRITE_LAST_IMM, Opcode.WRITE_ONLY, Opcode.WRITE_ONLY_IMM})
IMMEDIATES = frozenset({Opcode.WRITE_LAST_IMM, Opcode.WRITE_ONLY_IMM})

ACK_REQUEST = 0x80

SYNDROME_ACK = 0x1F
SYNDROME_NAK_SEQUENCE = 0x60
SYNDROME_NAK_INVALID = 0x61
SYNDROME_NAK_ACCESS = 0x62
SYNDROME_NAK_OPERATIONAL = 0x63

CNP_PAYLOAD = bytes(16)
"""A congestion notification packet carries 16 reserved bytes behind its BTH (annex A17)."""
