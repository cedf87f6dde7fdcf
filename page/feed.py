"""One stream of a run's journal lines, from its files as they are or as they grow; every viewer reads the same list."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import plain_file
from judging.journal import checked

BATCH_LINES = 1000
LIVE_LINES_MAX = 100_000
"""Of a lab that is up: an hour and more of eight hosts, below 200 MB here and in a browser."""
COUNTS = (b"sample", b"sampled", b"cpu", b"hiccup", b"packet")
"""Kinds whose lines come at an interval or per packet."""
PACKETS = "packets.jsonl"
SAMPLE = 8
"""Of a packet log every so manieth packet is shown; a window of two seconds of plan lab has 100,000 lines."""

DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Errors that a line of a damaged file may raise. One bad line is left out; the rest of the file still counts."""


def parsed(text: str | bytes) -> Any:
    """JSON as a browser reads it: NaN and Infinity, which Python would take, make a line unreadable there."""
    return plain_file.parse_json(text, parse_constant=_refuse)


def for_browsers(lines: bytes) -> bool:
    """Whether a browser reads what Python has read as JSON: not where one of these may be a constant or an encoding."""
    return lines.isascii() and not any(word in lines for word in (b"NaN", b"Infinity", b"\0"))


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


class Feed:
    """The lines of a run in the order in which they were found; a viewer resumes by their number.

    What is there at the first look is in order of time. The folder stays open, so that a process which has given up
    its rights goes on reading.
    """

    def __init__(self, run: Path | None, also: Path | None = None, lines_max: int = 0) -> None:
        """None: a plan, of which nothing is journalled. `also` is a folder with further journals of the same time.

        `lines_max` bounds a feed that may go on for weeks: beyond, the oldest lines go and a new epoch begins, so that
        browsers begin anew with what is left. FileNotFoundError when the folder is no run.
        """
        self._lines_max = lines_max
        self.epoch = secrets.token_hex(4)
        """A server that was started again reads in another order: numbers of one epoch say nothing in another."""
        self.lines: list[bytes] = []
        self.told = run is None
        """Whether all that will ever come has been read."""
        self._offsets: dict[tuple[int, str], tuple[int, int, int]] = {}
        """By folder and file name: the file's inode, and up to where it was read, in bytes and lines."""
        self._folder = -1 if run is None else plain_file.open_folder(plain_file.followed(run))
        self._also = -1 if also is None else plain_file.open_folder(also)
        self._marked: set[int] = set()
        self._journals = -1
        self._whole = False
        if run is not None:
            plain_file.check_folder(run / "journal")  # its error has the whole path
            try:
                self._journals = plain_file.open_folder("journal", self._folder)
            except FileNotFoundError:
                self._whole = True
            if self._whole and not os.path.lexists(run / "journal.jsonl"):
                raise FileNotFoundError(f"{run} is not a run: it has neither journal/*.jsonl nor journal.jsonl")

    def over(self) -> bool:
        """Whether nothing can come any more: a run is judged when it has ended."""
        if self._folder < 0:
            return True
        try:
            os.stat("verdict.json", dir_fd=self._folder)
        except FileNotFoundError:
            return False
        return True

    def poll(self) -> int:
        """Read what was written since the last look; returns how many lines there are now."""
        if self._folder < 0:
            return 0
        lines: list[tuple[int, bytes]] = []
        if self._whole:
            lines += self._read("journal.jsonl", self._folder)
        for place in (self._journals, self._also):
            names = os.listdir(place) if place >= 0 else []
            for name in sorted(name for name in names if name.endswith(".jsonl")):
                lines += self._read(name, place)
        with contextlib.suppress(FileNotFoundError):
            lines += self._packets()
        lines.sort(key=lambda item: item[0])
        self.lines += [line for _, line in lines]
        if self._lines_max and len(self.lines) > self._lines_max:
            self._forget()
        return len(self.lines)

    def _forget(self) -> None:
        """Keep half of the lines that a feed may have: before all others those that tell of states, not of counts."""
        room = self._lines_max // 2
        counts = [b'"kind":"%s"' % kind for kind in COUNTS]
        states = {number for number, line in enumerate(self.lines) if not any(kind in line for kind in counts)}
        kept = set(sorted(states)[-room:])
        rest = [number for number in range(len(self.lines)) if number not in states]
        kept |= set(rest[len(rest) - (room - len(kept)) :])
        self.lines = [line for number, line in enumerate(self.lines) if number in kept]
        self.epoch = secrets.token_hex(4)

    def _packets(self) -> list[tuple[int, bytes]]:
        """Lines of the packet log, as journal lines of kind `packet`: of a sample of all packets, and of every packet
        that was trimmed or did not arrive, from that place on (there `trimmed` is true of what is left of a packet)."""
        packets = []
        for part in self._new(PACKETS, self._folder):
            try:
                packet = self._packet(parsed(part))
            except DAMAGED:
                continue  # such as a line that a full disk has cut
            if packet is not None:
                packets.append(packet)
        return packets

    def _packet(self, line: Any) -> tuple[int, bytes] | None:
        number = line.get("packet")
        if number is None:
            return None  # the first line, and the last
        cut = 0 < line["bytes"] < (line["bytes_in"] or 0)
        if cut or line["fate"] not in ("sent", "received"):
            self._marked.add(number)
        if number % SAMPLE and number not in self._marked:
            return None
        told = {"kind": "packet", **line, "trimmed": number in self._marked}
        return int(line["t_ns"]), json.dumps(told, separators=(",", ":")).encode()

    def _new(self, name: str, place: int) -> Iterator[bytes]:
        """Whole lines that were written to a file since the last look, one at a time: packet logs may be large."""
        with plain_file.open_plain(name, place) as file:
            inode = os.fstat(file.fileno()).st_ino
            known, at, count = self._offsets.get((place, name), (inode, 0, 0))
            if known != inode:  # a journal of two files has turned over: read on where the old one is now
                with contextlib.suppress(OSError), plain_file.open_plain(f"{name}.1", place) as old:
                    if os.fstat(old.fileno()).st_ino == known:
                        old.seek(at)
                        yield from (line.rstrip(b"\n") for line in plain_file.lines(old, f"{name}.1", count))
                at = count = 0
            file.seek(at)
            for line in plain_file.lines(file, name, count):
                if not line.endswith(b"\n"):
                    break  # the last line may still be on its way
                at += len(line)
                count += 1
                yield line[:-1]
            self._offsets[place, name] = (inode, at, count)

    def _read(self, name: str, place: int) -> list[tuple[int, bytes]]:
        lines = []
        for part in self._new(name, place):
            try:
                lines.append((int(checked(parsed(part.decode()))["t_ns"]), part))
            except DAMAGED:
                continue  # judging reports a bad line
        return lines

    def batch(self, start: int) -> bytes:
        """At most BATCH_LINES lines from number `start` on, as one JSON list."""
        lines = b",".join(self.lines[start : start + BATCH_LINES])
        return b"[" + lines.replace(b"\r", b" ") + b"]"  # a carriage return, white space in JSON, would end the event

    def resumed(self, last_id: str) -> int | None:
        """The number of the line after the one with this id (`EPOCH-NUMBER`); None when it is none of this epoch's."""
        epoch, _, number = last_id.partition("-")
        if epoch != self.epoch or not number.isascii() or not number.isdecimal() or len(number) > 12:
            return None
        return min(int(number), len(self.lines))

    def close(self) -> None:
        for descriptor in (self._folder, self._journals, self._also):
            if descriptor >= 0:
                os.close(descriptor)
        self._folder = self._journals = self._also = -1
