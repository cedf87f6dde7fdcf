"""Connection matrices of htsim (`.cm`), read.

    Nodes 4
    Connections 2
    Triggers 1
    0->1 id 1 start 0 size 2000000 send_done_trigger 1
    2->3 id 2 trigger 1 size 2000000
    trigger id 1 oneshot

Starts are picoseconds. A connection sets a trigger off when its sender has all acknowledgements (`send_done_trigger`)
or its receiver all bytes (`recv_done_trigger`). In the simulator a trigger reaches another node at once; here it is a
message of 8 bytes, because a host knows nothing but what arrives. `prio` and `msg` are read and have no effect.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

from schedules import operation
from schedules.builder import BYTES_MAX, NS_MAX, RANKS_MAX, Builder
from schedules.errors import at
from schedules.goal import quoted
from schedules.lines import whole_number
from schedules.schedule import Schedule

SIGNAL_BYTES = 8
SIGNALS = 1 << 31
"""The tag of the first message that carries a trigger; below are those of connections."""
PS_PER_NS = 1000
ID_MAX = (1 << 32) - 1
HEADERS = {"Nodes": RANKS_MAX, "Connections": 1 << 31, "Triggers": 1 << 31, "Failures": 1 << 31}
ATTRIBUTES = ("id", "start", "trigger", "size", "send_done_trigger", "recv_done_trigger", "prio", "msg")
KINDS = ("oneshot", "multishot", "barrier")
ENDS = re.compile(r"(\d+)->(\d+)", re.ASCII)


@dataclass(slots=True)
class Trigger:
    """A trigger as the file tells it. `fired_by` and `starts` are operations."""

    line: int = 0
    kind: str = ""
    count: int = 0
    used_line: int = 0
    fired_by: array[int] = field(default_factory=lambda: array("I"))
    starts: array[int] = field(default_factory=lambda: array("I"))


class MatrixReader:
    """Reads one file line by line."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._builder = Builder(source)
        self._headers: dict[str, int] = {}
        self._connections = self._signals = 0
        self._triggers: dict[int, Trigger] = {}
        self._in_body = False

    def read(self, lines: Iterable[str]) -> Schedule:
        """The schedule of a whole file. ScheduleError names the line, the rule and the choices."""
        number = 0
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            try:
                self._take(words, number)
            except ValueError as error:
                raise at(self._source, number, str(error)) from None
        self._check_counts(number)
        for ident, trigger in sorted(self._triggers.items()):
            self._bind(ident, trigger)
        return self._builder.finish(self._headers["Nodes"])

    def _take(self, words: list[str], number: int) -> None:
        first = words[0]
        if "->" in first:
            self._in_body = True
            self._connection(words, number)
        elif first == "trigger":
            self._in_body = True
            self._trigger(words, number)
        elif first == "failure":
            raise ValueError("a failure is no part of a workload here: leave the line out, and add a fault by --fault")
        elif first in HEADERS and not self._in_body:
            if len(words) != 2:
                raise ValueError(f"a header must be '{first} N' (got {quoted(' '.join(words))})")
            if first in self._headers:
                raise ValueError(f"a header must come once, and {first} comes again")
            self._headers[first] = whole_number(words[1], first, 1 if first == "Nodes" else 0, HEADERS[first])
        else:
            forms = f"'SRC->DST …', 'trigger …' or, above these, {', '.join(HEADERS)}"
            raise ValueError(f"a line must be {forms} (got {quoted(' '.join(words))})")

    def _connection(self, words: list[str], number: int) -> None:
        nodes, builder = self._headers.get("Nodes"), self._builder
        if nodes is None:
            raise ValueError("'Nodes N' must come above the first connection")
        match = ENDS.fullmatch(words[0])
        if match is None:
            raise ValueError(f"a connection must begin with SRC->DST (got {quoted(words[0])})")
        source, target = (whole_number(text, "a node", 0, nodes - 1) for text in match.groups())
        if source == target:
            raise ValueError(f"a connection must have two ends (node {source} sends to itself)")
        given = attributes(words[1:])
        if "size" not in given:
            raise ValueError("a connection must have a size")
        if ("start" in given) == ("trigger" in given):
            raise ValueError("a connection must have either start or trigger")
        if given["size"] == "0":
            raise ValueError("size 0 is a flow without end in htsim, and the lab has none: give a size in bytes")
        size = whole_number(given["size"], "size", 1, BYTES_MAX)
        if "id" in given:
            whole_number(given["id"], "id", 1, ID_MAX)
        send = builder.add(operation.SEND, source, size, number, peer=target, tag=self._connections)
        receive = builder.add(operation.RECV, target, size, number, peer=source, tag=self._connections)
        self._connections += 1
        if "trigger" in given:
            self._named(given["trigger"], number).starts.append(send)
        elif start_ns := nanoseconds(given["start"]):
            builder.require(send, builder.add(operation.WAIT, source, start_ns, 0))
        for name, done in (("send_done_trigger", send), ("recv_done_trigger", receive)):
            if name in given:
                self._named(given[name], number).fired_by.append(done)

    def _trigger(self, words: list[str], number: int) -> None:
        ident, kind, count = "", "", 0
        rest = iter(words[1:])
        for word in rest:
            if word == "id":
                ident = next(rest, "")
            elif word in KINDS and not kind:
                kind = word
            elif word == "count":
                count = whole_number(next(rest, ""), "count", 1, ID_MAX)
            else:
                raise ValueError(f"a trigger must have id N, one of {', '.join(KINDS)}, and count N (got {word!r})")
        if not ident or not kind:
            raise ValueError(f"a trigger must have an id and one of {', '.join(KINDS)}")
        if (kind == "barrier") != bool(count):
            raise ValueError("a barrier must have a count, and no other trigger has one")
        trigger = self._named(ident, number)
        if trigger.line:
            raise ValueError(f"a trigger must be declared once, and {ident} is declared in line {trigger.line} already")
        trigger.line, trigger.kind, trigger.count = number, kind, count

    def _named(self, text: str, number: int) -> Trigger:
        trigger = self._triggers.setdefault(whole_number(text, "a trigger's id", 1, ID_MAX), Trigger())
        trigger.used_line = trigger.used_line or number
        return trigger

    def _check_counts(self, last: int) -> None:
        if "Nodes" not in self._headers:
            raise at(self._source, last, "the file must have 'Nodes N'")
        declared = sum(1 for trigger in self._triggers.values() if trigger.line)
        for name, actual in (("Connections", self._connections), ("Triggers", declared), ("Failures", 0)):
            if self._headers.get(name, 0) != actual:
                stated = self._headers.get(name, 0)
                raise at(
                    self._source, last, f"'{name} N' must be the number of them: it says {stated}, and {actual} follow"
                )

    # --- triggers --------------------------------------------------------------------------------------------------

    def _bind(self, ident: int, trigger: Trigger) -> None:
        """Turns a trigger into dependencies and, where it goes from one node to another, into messages."""
        fired, started = len(trigger.fired_by), len(trigger.starts)
        if not trigger.line:
            raise at(
                self._source, trigger.used_line, f"trigger {ident} must be declared by a line 'trigger id {ident} …'"
            )
        if not started:
            return
        rule = {
            "oneshot": (fired == 1, "a oneshot trigger must be set off by one connection"),
            "barrier": (fired == trigger.count, f"a barrier of {trigger.count} must be set off by as many connections"),
            "multishot": (fired >= started, f"a multishot trigger must be set off as often as it starts ({started})"),
        }
        holds, what = rule[trigger.kind]
        if not holds:
            raise at(self._source, trigger.line, f"{what} (trigger {ident} is set off by {fired})")
        home = self._builder.rank_of(trigger.starts[0])
        kind = operation.TURN if trigger.kind == "multishot" else operation.CALC
        if fired == 1 and kind == operation.CALC and self._builder.rank_of(trigger.fired_by[0]) == home:
            middle = trigger.fired_by[0]
        else:
            middle = self._builder.add(kind, home, 0, 0)
            for before in trigger.fired_by:
                self._link(before, middle)
        for send in trigger.starts:
            self._link(middle, send)

    def _link(self, before: int, after: int) -> None:
        """Have `after` follow `before`, wherever both are."""
        source, target = self._builder.rank_of(before), self._builder.rank_of(after)
        if source == target:
            self._builder.require(after, before)
            return
        out, arrival = self._signal(source, target)
        self._builder.require(out, before)
        self._builder.require(after, arrival)

    def _signal(self, source: int, target: int) -> tuple[int, int]:
        """A message that carries a trigger: its send and its receive."""
        tag = SIGNALS + self._signals
        self._signals += 1
        out = self._builder.add(operation.SEND, source, SIGNAL_BYTES, 0, peer=target, tag=tag)
        return out, self._builder.add(operation.RECV, target, SIGNAL_BYTES, 0, peer=source, tag=tag)


def attributes(words: list[str]) -> dict[str, str]:
    """The attributes of a connection. `msg` may stand without a number."""
    given: dict[str, str] = {}
    place = 0
    while place < len(words):
        name = words[place]
        if name not in ATTRIBUTES:
            raise ValueError(f"an attribute of a connection must be one of {', '.join(ATTRIBUTES)} (got {name!r})")
        if name in given:
            raise ValueError(f"an attribute must be given once, and {name} is given twice")
        value = words[place + 1] if place + 1 < len(words) else ""
        bare = name == "msg" and not value.isdigit()
        if not bare and not value:
            raise ValueError(f"{name} must have a value")
        given[name] = "" if bare else value
        place += 1 if bare else 2
    return given


def nanoseconds(text: str) -> int:
    """A start, in picoseconds, in whole nanoseconds."""
    try:
        ps = float(text)
    except ValueError:
        ps = -1.0
    if not 0 <= ps < NS_MAX:
        raise ValueError(f"start must be a number of picoseconds, 0 or more (got {text!r})")
    return round(ps / PS_PER_NS)
