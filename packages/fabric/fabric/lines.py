"""YAML and JSON with the line of every key and element, built without recursion and within limits.

All scalars are text, as they are written: `22:22` is no number in base 60, and `no` is a name. The parser of YAML
makes events only; no object of the file's choice is ever constructed. An alias costs as much as its value.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fabric.facts import FabricError, Place

VALUES_MAX = 1_000_000
"""Of one file, aliases written out."""
DEPTH_MAX = 40
_TOKEN = re.compile(r'[ \t\r\n]*(?:([{}\[\],:])|("(?:[^"\\\x00-\x1f]|\\.)*")|(-?[0-9][-+.0-9eE]*|true|false|null))')


class Table(dict[str, Any]):
    """A mapping; `lines` has the line of each key."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}
        self.own: set[str] = set()

    def table(self, key: str) -> "Table":
        """The mapping under a key; an empty one where there is none."""
        value = self.get(key)
        return value if isinstance(value, Table) else Table(self.lines.get(key, self.line))

    def text(self, key: str, default: str = "") -> str:
        """The text under a key."""
        value = self.get(key)
        return value if isinstance(value, str) else default


class Row(list[Any]):
    """A sequence; `lines` has the line of each element."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []


def rows(value: Any) -> Iterator[tuple[Any, int]]:
    """The elements of a sequence with their lines; of anything else, none."""
    return zip(value, value.lines, strict=True) if isinstance(value, Row) else iter(())


@dataclass(slots=True)
class Builder:
    """Puts values together, counting what they cost."""

    file: str
    open: list[Table | Row] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    cost: int = 0
    root: Any = None

    def fail(self, line: int, why: str) -> FabricError:
        """An error at a line of this file."""
        return FabricError(f"{Place(self.file, line)}: {why}")

    def begin(self, value: Table | Row, line: int) -> None:
        """Enter a mapping or a sequence."""
        self.put(value, line)
        self.open.append(value)
        self.keys.append(None)
        if len(self.open) > DEPTH_MAX:
            raise self.fail(line, f"nested deeper than {DEPTH_MAX} levels")

    def end(self) -> None:
        """Leave the innermost mapping or sequence."""
        self.open.pop()
        self.keys.pop()

    def put(self, value: Any, line: int, cost: int = 1) -> None:
        """Place a value: at a mapping first as key, then as value."""
        self.cost += cost
        if self.cost > VALUES_MAX:
            raise self.fail(line, f"more than {VALUES_MAX:,} values")
        if not self.open:
            self.root = value
            return
        holder = self.open[-1]
        if isinstance(holder, Row):
            holder.append(value)
            holder.lines.append(line)
        elif (key := self.keys[-1]) is None:
            if not isinstance(value, str):
                raise self.fail(line, "a key must be text")
            if value in holder.own:
                raise self.fail(line, f"key {value[:80]!r} is there twice, first in line {holder.lines[value]}")
            holder.own.add(value)
            self.keys[-1], holder.lines[value] = value, line
        else:
            self.keys[-1] = None
            if key == "<<":
                self._merge(holder, value, line)
            else:
                holder[key] = value

    def _merge(self, holder: Table, value: Any, line: int) -> None:
        """YAML's merge key: what the mapping has itself goes first."""
        for each in value if isinstance(value, Row) else [value]:
            if not isinstance(each, Table):
                raise self.fail(line, "<< must merge mappings")
            self.cost += len(each)
            for key, merged in each.items():
                if key not in holder:
                    holder[key] = merged
                    holder.lines.setdefault(key, each.lines[key])


def yaml_value(text: str, file: str) -> Any:
    """The one document of a YAML file. FabricError names the line."""
    import yaml  # late: most commands need none

    build = Builder(file)
    anchors: dict[str, tuple[Any, int]] = {}
    begun: list[tuple[str | None, int]] = []
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = 0
    try:
        for event in yaml.parse(text, loader):
            line = event.start_mark.line + 1
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise build.fail(line, "a second document; one file is one document")
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                begun.append((event.anchor, build.cost))
                build.begin(Table(line) if isinstance(event, yaml.MappingStartEvent) else Row(line), line)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                value = build.open[-1]
                build.end()
                anchor, before = begun.pop()
                if anchor:
                    anchors[anchor] = value, build.cost - before
            elif isinstance(event, yaml.ScalarEvent):
                null = event.implicit[0] and event.value in ("", "~", "null")
                if event.anchor:
                    anchors[event.anchor] = event.value, 1
                build.put(None if null else event.value, line)
            elif isinstance(event, yaml.AliasEvent):
                if event.anchor not in anchors:
                    raise build.fail(line, f"alias {event.anchor[:80]!r} has no value before it")
                value, cost = anchors[event.anchor]
                build.put(value, line, cost)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise build.fail(mark.line + 1 if mark else 1, f"no YAML: {getattr(error, 'problem', error)}") from None
    return build.root


def json_value(text: str, file: str) -> Any:
    """The value of a JSON file. FabricError names the line."""
    build = Builder(file)
    closers: list[str] = []
    expected = "value"
    line, done, position = 1, 0, 0
    text = text.rstrip().removeprefix("\ufeff")
    while position < len(text):
        match = _TOKEN.match(text, position)
        start = match.start(match.lastindex or 0) if match else position
        line, done = line + text.count("\n", done, start), start
        if match is None:
            raise build.fail(line, "no JSON: a value, a comma or a bracket must be here")
        mark, string, _ = match.groups()
        expected = _json_step(build, closers, expected, mark, string, match[3], line)
        position = match.end()
    if closers or expected != "end":
        raise build.fail(line, "no JSON: the file ends too early")
    return build.root


def _json_step(
    build: Builder,
    closers: list[str],
    expected: str,
    mark: str | None,
    string: str | None,
    other: str | None,
    line: int,
) -> str:
    """Take one token; returns what may follow: value, key, colon, comma or end."""

    def after() -> str:
        return "comma" if closers else "end"

    first = expected.endswith("first")
    wants = expected.removesuffix(" first")
    if mark and mark in "}]" and closers and closers[-1] == mark and (first or wants == "comma"):
        closers.pop()
        build.end()
        return after()
    if mark == "," and wants == "comma":
        return "key" if closers[-1] == "}" else "value"
    if mark == ":" and wants == "colon":
        return "value"
    if string is not None and wants in ("key", "value"):
        try:
            build.put(json.loads(string), line)
        except ValueError as error:
            raise build.fail(line, f"no JSON: {error}") from None
        return "colon" if wants == "key" else after()
    if wants == "value" and mark and mark in "{[":
        closers.append("}" if mark == "{" else "]")
        build.begin(Table(line) if mark == "{" else Row(line), line)
        return "key first" if mark == "{" else "value first"
    if wants == "value" and other is not None:
        build.put(None if other == "null" else other, line)
        return after()
    raise build.fail(line, f"no JSON: {wants} must be here (got {(mark or string or other or '')[:40]!r})")
