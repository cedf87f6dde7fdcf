"""Packets of several links in one pcapng stream: an interface a link, frames as they come.

tcpdump reads each link, in the namespace where it ends; its output (pcap with nanoseconds) is merged here.
The format is draft-ietf-opsawg-pcapng: a section header, an interface description a link, an enhanced packet a frame.
"""

import os
import selectors
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

__all__ = [
    "COMMENT", "ETHERNET", "FLAGS", "INTERFACE", "NAME", "PACKET", "block", "interface", "option", "packet", "section",
]  # fmt: skip

PCAP_HEADER, PCAP_RECORD = struct.Struct("<IHHiIII"), struct.Struct("<IIII")
PCAP_MICROSECONDS, PCAP_NANOSECONDS = 0xA1B2C3D4, 0xA1B23C4D
SNAPLEN = 1 << 18  # tcpdump's own
SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
BYTE_ORDER = 0x1A2B3C4D
NAME, RESOLUTION = 2, 9
COMMENT, FLAGS = 1, 2
ETHERNET = 1
READ_BYTES = 1 << 16


class CaptureError(RuntimeError):
    """tcpdump could not listen, or wrote what is no pcap; the message has its last words."""


def block(kind: int, body: bytes) -> bytes:
    """A pcapng block: its length stands before and behind the body, which is padded to 32 bits."""
    body += bytes(-len(body) % 4)
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def option(code: int, value: bytes) -> bytes:
    """An option, padded to 32 bits; four zeros end a list of them."""
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def section() -> bytes:
    """The beginning of a stream, of unknown length."""
    return block(SECTION, struct.pack("<IHHq", BYTE_ORDER, 1, 0, -1))


def interface(name: str, link: int = ETHERNET) -> bytes:
    """An interface of this link type whose times are nanoseconds."""
    options = option(NAME, name.encode()) + option(RESOLUTION, bytes([9])) + bytes(4)
    return block(INTERFACE, struct.pack("<HHI", link, 0, 0) + options)


def packet(number: int, t_ns: int, frame: bytes, length: int, options: bytes = b"") -> bytes:
    """A frame of interface `number`; `length` is what it had on the wire. `options` end with four zeros."""
    head = struct.pack("<IIIII", number, t_ns >> 32, t_ns & 0xFFFFFFFF, len(frame), length)
    return block(PACKET, head + frame + (bytes(-len(frame) % 4) + options if options else b""))


def record(t_ns: int, frame: bytes, length: int) -> bytes:
    """A frame in a pcap, whose head is `PCAP_HEAD`; all programs that read pcap know microseconds."""
    return PCAP_RECORD.pack(t_ns // 10**9, t_ns % 10**9 // 1000, len(frame), length) + frame


PCAP_HEAD = PCAP_HEADER.pack(PCAP_MICROSECONDS, 2, 4, 0, 0, SNAPLEN, ETHERNET)


@dataclass(slots=True)
class PcapReader:
    """Takes a pcap apart as it comes, in pieces of any size."""

    _data: bytearray = field(default_factory=bytearray)
    _begun: bool = False

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes, int]]:
        """(time in nanoseconds, frame, its length on the wire) of every record that is whole now."""
        self._data += data
        if not self._begun:
            if len(self._data) < PCAP_HEADER.size:
                return
            if PCAP_HEADER.unpack_from(self._data)[0] != PCAP_NANOSECONDS:
                raise CaptureError("tcpdump wrote no pcap with nanoseconds")
            del self._data[: PCAP_HEADER.size]
            self._begun = True
        while len(self._data) >= PCAP_RECORD.size:
            seconds, nanoseconds, kept, length = PCAP_RECORD.unpack_from(self._data)
            end = PCAP_RECORD.size + kept
            if len(self._data) < end:
                return
            frame = bytes(self._data[PCAP_RECORD.size : end])
            del self._data[:end]
            yield seconds * 10**9 + nanoseconds, frame, length


def merged(
    commands: Mapping[str, Sequence[str]],
    write: Callable[[bytes], object],
    *,
    count: int | None = None,
    seconds: float | None = None,
    listening: Callable[[], object] = lambda: None,
    pcap: bool = False,
) -> int:
    """Write one pcapng of all links until `count` packets, `seconds` or Ctrl-C; the number of packets.

    With `pcap`, the stream is a pcap, of a single link. `commands` are tcpdump's words by the link's name; they write
    pcap with nanoseconds to stdout. `listening` is called once, when all of them do. CaptureError when one of them
    ends by itself.
    """
    write(PCAP_HEAD if pcap else section() + b"".join(interface(name) for name in commands))
    processes = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for words in commands.values()]
    try:
        for process in processes:
            assert process.stderr is not None
            wait_until_listening(process.stderr)
        listening()
        return copy(processes, write, count, seconds, pcap)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.communicate()


def wait_until_listening(said: IO[bytes]) -> None:
    """Returns when tcpdump says that it listens. CaptureError with what it said instead."""
    words = []
    for line in said:
        words.append(line.decode(errors="replace").strip())
        if "listening on" in words[-1]:
            return
    raise CaptureError(f"tcpdump: {'; '.join(words) or 'ended without a word'}")


def copy(
    processes: Sequence[subprocess.Popen[bytes]],
    write: Callable[[bytes], object],
    count: int | None,
    seconds: float | None,
    pcap: bool,
) -> int:
    """Frames from all processes as they come."""
    copied, deadline_s = 0, None if seconds is None else time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for number, process in enumerate(processes):
            assert process.stdout is not None
            selector.register(process.stdout, selectors.EVENT_READ, (number, PcapReader()))
        while selector.get_map():
            left_s = None if deadline_s is None else deadline_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                return copied
            for key, _ in selector.select(left_s):
                number, reader = key.data
                data = os.read(key.fd, READ_BYTES)
                if not data:
                    selector.unregister(key.fileobj)
                for t_ns, frame, length in reader.feed(data):
                    write(record(t_ns, frame, length) if pcap else packet(number, t_ns, frame, length))
                    copied += 1
                    if copied == count:
                        return copied
    return copied
