"""GOAL, the group operation assembly language (Hoefler, Siebert, Lumsdaine 2009), in the text form of LogGOPSim.

    num_ranks 2
    rank 0 {
    l1: calc 1000 cpu 0
    l2: send 65536b to 1 tag 7
    l2 requires l1
    }

One operation or dependency per line. Labels are a rank's own and are defined before they are used. `calc` counts
nanoseconds. `nic` is read and has no effect: a NIC of the lab has all ports of its host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from schedules import operation
from schedules.builder import BYTES_MAX, NS_MAX, RANKS_MAX, Builder
from schedules.errors import at
from schedules.lines import whole_number
from schedules.schedule import Schedule

TAG_MAX = (1 << 62) - 1
"""Generators of ATLAHS write tags of 11 digits."""
PROCESSORS_MAX = 255
OPERATION = re.compile(
    r"(?:(?P<label>[A-Za-z]\w*)\s*:\s*)?"
    r"(?:(?P<calc>calc)\s+(?P<ns>-?\d+)|"
    r"(?P<verb>send|recv)\s+(?P<bytes>-?\d+)b\s+(?P<to>to|from)\s+(?P<peer>-?\d+)(?:\s+tag\s+(?P<tag>-?\d+))?)"
    r"(?:\s+cpu\s+(?P<cpu>\d+))?(?:\s+nic\s+(?P<nic>\d+))?",
    re.ASCII,
)
DEPENDENCY = re.compile(r"(?P<after>[A-Za-z]\w*)\s+(?P<how>i?requires)\s+(?P<before>[A-Za-z]\w*)", re.ASCII)
RANK = re.compile(r"rank\s+(?P<rank>\d+)\s*\{", re.ASCII)
RANKS = re.compile(r"num_ranks\s+(?P<ranks>\d+)", re.ASCII)
FORMS = (
    "'[LABEL:] calc NS [cpu N]', '[LABEL:] send BYTESb to RANK [tag T] [cpu N] [nic N]', '[LABEL:] recv BYTESb from"
    " RANK …', 'LABEL requires LABEL' or 'LABEL irequires LABEL'"
)


class GoalReader:
    """Reads one file line by line."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._builder = Builder(source)
        self._ranks = 0
        self._rank: int | None = None
        self._opened = 0
        self._seen: set[int] = set()
        self._labels: dict[str, int] = {}

    def read(self, lines: Iterable[str]) -> Schedule:
        """The schedule of a whole file. ScheduleError names the line, the rule and the choices."""
        number = 0
        for number, line in statements(lines):
            try:
                self._take(line, number)
            except ValueError as error:
                raise at(self._source, number, str(error)) from None
        if not self._ranks:
            raise at(self._source, number, "the file must begin with 'num_ranks N', and is empty")
        if self._rank is not None:
            raise at(self._source, self._opened, f"rank {self._rank} must end with '}}' alone in a line")
        return self._builder.finish(self._ranks)

    def _take(self, line: str, number: int) -> None:
        if not self._ranks:
            match = RANKS.fullmatch(line)
            if match is None:
                raise ValueError(f"the file must begin with 'num_ranks N' (got {quoted(line)})")
            self._ranks = whole_number(match["ranks"], "num_ranks", 1, RANKS_MAX)
        elif self._rank is None:
            self._open(line, number)
        elif line == "}":
            self._rank = None
            self._labels.clear()
        elif match := OPERATION.fullmatch(line):
            self._operation(match, number)
        elif match := DEPENDENCY.fullmatch(line):
            self._dependency(match)
        else:
            raise ValueError(f"an operation must be {FORMS} (got {quoted(line)})")

    def _open(self, line: str, number: int) -> None:
        match = RANK.fullmatch(line)
        if match is None:
            raise ValueError(f"a rank must begin with 'rank N {{' (got {quoted(line)})")
        rank = whole_number(match["rank"], "the rank", 0, self._ranks - 1)
        if rank in self._seen:
            raise ValueError(f"each rank must have one block, and rank {rank} has a second one here")
        self._seen.add(rank)
        self._rank, self._opened = rank, number

    def _operation(self, match: re.Match[str], number: int) -> None:
        rank, builder = self._rank, self._builder
        assert rank is not None
        processor = whole_number(match["cpu"], "cpu", 0, PROCESSORS_MAX) if match["cpu"] else 0
        if match["calc"]:
            ns = whole_number(match["ns"], "calc", 0, NS_MAX)
            made = builder.add(operation.CALC, rank, ns, number, processor=processor)
        else:
            verb, peer_text, tag_text = match["verb"], match["peer"], match["tag"] or "0"
            if match["to"] != ("to" if verb == "send" else "from"):
                raise ValueError(f"send goes 'to' a rank and recv comes 'from' one (got {verb} … {match['to']})")
            if "-1" in (peer_text, tag_text):
                raise ValueError("a recv must name its rank and tag: -1, for any, is not supported")
            peer = whole_number(peer_text, "the rank", 0, self._ranks - 1)
            if peer == rank:
                raise ValueError(f"a rank must send to another one (rank {rank} names itself)")
            kind = operation.SEND if verb == "send" else operation.RECV
            size = whole_number(match["bytes"], verb, 0, BYTES_MAX)
            tag = whole_number(tag_text, "tag", 0, TAG_MAX)
            made = builder.add(kind, rank, size, number, peer=peer, tag=tag, processor=processor)
        label = match["label"]
        if label is not None and self._labels.setdefault(label, made) != made:
            raise ValueError(f"a label must be defined once in a rank, and {label} is defined again")

    def _dependency(self, match: re.Match[str]) -> None:
        after, before = (self._labels.get(match[name]) for name in ("after", "before"))
        if after is None or before is None:
            missing = match["after"] if after is None else match["before"]
            raise ValueError(f"a label must be defined above its use in its rank, and {missing} is not")
        if match["how"] == "requires":
            self._builder.require(after, before)
        else:
            self._builder.require_start(after, before)


def statements(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The lines that say something, with their numbers from 1, without comments and spaces around them."""
    inside = False
    for number, line in enumerate(lines, 1):
        text = line
        if inside or "/" in text:
            text, inside = uncommented(line, inside)
        if text := text.strip():
            yield number, text


def uncommented(line: str, inside: bool) -> tuple[str, bool]:
    """A line without // and /* */ comments, and whether a comment goes on behind it."""
    kept = ""
    while line:
        if inside:
            _, end, line = line.partition("*/")
            inside = not end
            continue
        places = [place for mark in ("//", "/*") if (place := line.find(mark)) >= 0]
        if not places:
            return kept + line, False
        first = min(places)
        kept += line[:first] + " "
        inside = line.startswith("/*", first)
        line = line[first + 2 :] if inside else ""
    return kept, inside


def quoted(line: str) -> str:
    """A line for an error, cut where it is long."""
    return repr(line if len(line) <= 60 else line[:57] + "...")
