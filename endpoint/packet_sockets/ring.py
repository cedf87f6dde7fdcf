"""A packet socket on one port: frames arrive in a memory-mapped ring (TPACKET_V2) and leave by plain `send`.

Measured (4.2 KB frames over veth): a frame costs about half as much CPU from the ring
as from `recv`. The kernel also offers a transmit ring, and it is cheaper still, but wrong here: veth
orphans the buffer at once, so the kernel reports a slot free while the frame, whose pages are that slot's, still waits
in the receiver's socket. Reusing the slot would change a packet in flight. A block ring (TPACKET_V3) hands over
frames only when a block is full or a timer of milliseconds expires.
"""

import contextlib
import mmap
import os
import socket
import struct
from typing import cast

from common.linux import bpf

try:
    from endpoint.packet_sockets.native import ring_native as native
except ImportError:  # where the sources run
    native = None  # type: ignore[assignment]

# linux/if_packet.h, linux/if_ether.h and asm-generic/socket.h; the socket module does not name them.
SOL_PACKET = 263
PACKET_RX_RING = 5
PACKET_STATISTICS = 6
PACKET_VERSION = 10
PACKET_IGNORE_OUTGOING = 23
TPACKET_V2 = 1
TP_STATUS_USER = 1
ETH_P_ALL = 3
SO_ATTACH_FILTER = 26
SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33

# struct tpacket2_hdr in 32-bit words: status, wire length, captured length, then mac and net offsets of 16 bits, and
# when the frame arrived by CLOCK_REALTIME, in seconds and nanoseconds.
_STATUS, _SNAPLEN, _SECONDS, _NANOSECONDS = 0, 2, 4, 5
# The frame starts at TPACKET_ALIGN(header 32 + sockaddr_ll 20 + 16 for the link layer), less its 14 bytes of Ethernet.
_FRAME_OFFSET = 66
_ETHERNET_BYTES = 14
_BLOCK_BYTES = 1 << 18


class FrameRing:
    """The receive ring of a packet socket in `data`, and sending by the socket; in C where the endpoint is compiled."""

    def __init__(self, descriptor: int, data: memoryview, block_bytes: int, blocks: int, slot_bytes: int) -> None:
        self._descriptor = descriptor
        self._bytes = data
        self._words = data.cast("I")
        per_block = block_bytes // slot_bytes
        self._slots = [
            block * block_bytes + index * slot_bytes for block in range(blocks) for index in range(per_block)
        ]
        self._room = slot_bytes - _FRAME_OFFSET
        self._next = 0
        self._held: list[int] = []
        self._tx_packets = self._tx_bytes = self._tx_refused = self._rx_packets = self._rx_bytes = 0

    def receive(self, limit: int) -> list[memoryview]:
        """Up to `limit` frames in order of arrival, as views into the ring: valid until `release`."""
        words, slots, data, position = self._words, self._slots, self._bytes, self._next
        frames: list[memoryview] = []
        held, room = self._held, self._room
        limit = min(limit, len(slots) - len(held))  # a slot that is held looks full, and is not another frame
        while len(frames) < limit:
            slot = slots[position]
            word = slot >> 2
            if not words[word + _STATUS] & TP_STATUS_USER:
                break
            start = slot + _FRAME_OFFSET
            frames.append(data[start : start + min(words[word + _SNAPLEN], room)])
            held.append(word)
            position += 1
            if position == len(slots):
                position = 0
        self._next = position
        self._rx_packets += len(frames)
        self._rx_bytes += sum(map(len, frames))
        return frames

    def release(self) -> None:
        """Give the slots of the frames received since the last release back to the kernel."""
        words = self._words
        for word in self._held:
            words[word + _STATUS] = 0
        self._held.clear()

    def oldest_ns(self) -> int | None:
        """When the frame that `receive` would give first has arrived, by CLOCK_REALTIME; None if there is none."""
        words, word = self._words, self._slots[self._next] >> 2
        if len(self._held) == len(self._slots) or not words[word + _STATUS] & TP_STATUS_USER:
            return None
        return words[word + _SECONDS] * 1_000_000_000 + words[word + _NANOSECONDS]

    def send(self, frame: bytes) -> None:
        """One Ethernet frame, now or never: counted as refused when the port will not take it."""
        try:
            os.write(self._descriptor, frame)
        except OSError:
            self._tx_refused += 1
        else:
            self._tx_packets += 1
            self._tx_bytes += len(frame)

    def counts(self) -> tuple[int, int, int, int, int]:
        """Frames and bytes sent, frames refused, frames and bytes received."""
        return self._tx_packets, self._tx_bytes, self._tx_refused, self._rx_packets, self._rx_bytes

    def close(self) -> None:
        self._words.release()


RING: type[FrameRing] = FrameRing if native is None else cast("type[FrameRing]", native.FrameRing)


class PacketSocket:
    """AF_PACKET on `interface` with a receive ring for frames of up to `mtu` + 14 bytes that pass `program`.

    Bound to all protocols, because only such sockets are served before the traffic-control ingress hook, where
    `endpoint.packet_sockets.stackguard` drops these frames for all other sockets. Frames that we send do not come back.
    """

    def __init__(self, interface: str, program: bpf.Program, mtu: int, ring_bytes: int) -> None:
        slot_bytes = _aligned(_FRAME_OFFSET + _ETHERNET_BYTES + mtu, 16)
        block_bytes = _aligned(max(_BLOCK_BYTES, slot_bytes), mmap.PAGESIZE)
        blocks = max(1, ring_bytes // block_bytes)
        self._socket = _open(program)
        self._socket.setblocking(False)
        try:
            self._socket.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
            request = struct.pack("IIII", block_bytes, blocks, slot_bytes, blocks * (block_bytes // slot_bytes))
            self._socket.setsockopt(SOL_PACKET, PACKET_RX_RING, request)
            self._map = mmap.mmap(self._socket.fileno(), blocks * block_bytes)
            self._socket.bind((interface, ETH_P_ALL))
        except OSError:
            self._socket.close()
            raise
        self._bytes = memoryview(self._map)
        self.ring = RING(self._socket.fileno(), self._bytes, block_bytes, blocks, slot_bytes)

    def fileno(self) -> int:
        return self._socket.fileno()

    def drops(self) -> int:
        """Frames that found the ring full since the last call."""
        _packets, drops = struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        return int(drops)

    def clear_error(self) -> int:
        """Take the error that a port leaves when it goes down, and that keeps the socket readable (errno, or 0)."""
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def close(self) -> None:
        self.ring.close()
        with contextlib.suppress(BufferError):  # a view of a frame still exists; the map goes with the last view
            self._bytes.release()
            self._map.close()
        self._socket.close()


class ProbeSocket:
    """AF_PACKET for the path prober's few frames, apart from the data so that data never pays for looking."""

    def __init__(self, interface: str, program: bpf.Program) -> None:
        self._socket = _open(program)
        try:
            self._socket.bind((interface, ETH_P_ALL))
        except OSError:
            self._socket.close()
            raise

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self, limit: int) -> list[bytes]:
        """Up to `limit` frames in order of arrival; an error of a port that went down is taken and dropped."""
        frames: list[bytes] = []
        try:
            while len(frames) < limit:
                frames.append(self._socket.recv(2048, socket.MSG_DONTWAIT))
        except OSError:  # nothing more; or ENETDOWN, which reading has cleared
            pass
        return frames

    def close(self) -> None:
        self._socket.close()


def _open(program: bpf.Program) -> socket.socket:
    """An unbound packet socket with the filter in place before the first frame can arrive."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
    try:
        with bpf.attachable(program) as argument:
            opened.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, argument)
        opened.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        opened.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 16 << 20)
    except OSError:
        opened.close()
        raise
    return opened


def _aligned(value: int, unit: int) -> int:
    return -(-value // unit) * unit
