"""Events at a device, in order: frames on its interfaces and lines of text, as one pcapng file.

Lines of text, such as requests to a device and waits that ended, are packets of a separate interface (link type
147, for private use). So the order of frames and lines is that of the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cli.capturing import COMMENT, ETHERNET, FLAGS, INTERFACE, NAME, PACKET, interface, option, packet, section

INWARD, OUTWARD = 1, 2
PRIVATE = 147
TEXT = "text"
"""The name of the interface whose packets are lines of text."""


class CaptureError(ValueError):
    """The bytes are no capture of this package."""


@dataclass(frozen=True, slots=True)
class Event:
    """A frame on an interface, or a line of text (`place` is TEXT)."""

    t_ns: int
    place: str
    data: bytes
    inward: bool
    """Towards the device; of a line of text: said by the tester."""
    note: str = ""


def packed(events: Iterable[Event], interfaces: Sequence[str]) -> bytes:
    """The file; `interfaces` are the names of those that carry frames."""
    numbers = {name: number for number, name in enumerate((*interfaces, TEXT))}
    parts = [section(), *(interface(name, PRIVATE if name == TEXT else ETHERNET) for name in numbers)]
    for event in events:
        options = option(COMMENT, event.note.encode()) if event.note else b""
        options += option(FLAGS, struct.pack("<I", INWARD if event.inward else OUTWARD)) + bytes(4)
        parts.append(packet(numbers[event.place], event.t_ns, event.data, len(event.data), options))
    return b"".join(parts)


def unpacked(data: bytes) -> list[Event]:
    """The events of a file of `packed`. Raises `CaptureError`."""
    try:
        return list(_events(data))
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise CaptureError(f"no capture of a conformance run: {error}") from None


def _events(data: bytes) -> Iterable[Event]:
    names: list[str] = []
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if length < 12 or at + length > len(data):
            raise CaptureError(f"a block of {length} bytes at byte {at}")
        body = data[at + 8 : at + length - 4]
        if kind == INTERFACE:
            names.append(dict(_options(body, 8))[NAME].decode())
        elif kind == PACKET:
            number, high, low, kept, _ = struct.unpack_from("<IIIII", body)
            options = dict(_options(body, 20 + kept + -kept % 4))
            flags = struct.unpack("<I", options[FLAGS])[0] if FLAGS in options else OUTWARD
            note = options.get(COMMENT, b"").decode()
            yield Event(high << 32 | low, names[number], body[20 : 20 + kept], flags & 3 == INWARD, note)
        at += length


def _options(body: bytes, at: int) -> Iterable[tuple[int, bytes]]:
    while at + 4 <= len(body):
        code, size = struct.unpack_from("<HH", body, at)
        if code == 0:
            return
        yield code, body[at + 4 : at + 4 + size]
        at += 4 + size + -size % 4
