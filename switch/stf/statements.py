"""The statements of an `.stf` file, one a line, and how a line is taken apart."""

import re
from collections.abc import Callable
from dataclasses import field

from common.records import Frozen


class StfError(ValueError):
    """A line that is not a statement, or names what the program does not have."""


class StfAction(Frozen):
    """`name(parameter:value, …)`; values without a parameter name are taken in order."""

    name: str
    args: tuple[tuple[str, str], ...]


class Add(Frozen):
    """The statement `add`: an entry of a table."""

    line: int
    table: str
    priority: int | None
    matches: tuple[tuple[str, str], ...]
    action: StfAction
    label: str | None  # `= label`, for remove


class Remove(Frozen):
    line: int
    label: str  # or `all`


class SetDefault(Frozen):
    line: int
    table: str
    action: StfAction


class StfPacket(Frozen):
    line: int
    port: int
    data: bytes


class Expect(Frozen):
    """No pattern: any packet. A pattern is hex digits and `*`; `exact` bounds its length as well."""

    line: int
    port: int
    pattern: str | None
    exact: bool
    t_ns: int | None  # when it arrives


class NoPacket(Frozen):
    line: int


class StateCheck(Frozen):
    """`check_counter`, `check_register` or `check_port`."""

    line: int
    what: str
    name: str
    index: int
    attribute: str
    relation: str
    value: int


class SwitchCommand(Frozen):
    """A statement of a word and its operands: member, group, meter, clone, multicast, port, queue, wait, …"""

    line: int
    word: str
    operands: tuple[str, ...]
    options: dict[str, str] = field(default_factory=dict)


Statement = Add | Remove | SetDefault | StfPacket | Expect | NoPacket | StateCheck | SwitchCommand

# Words with operands only, and how many they take (at least, at most).
COMMANDS: dict[str, tuple[int, int]] = {
    "member": (3, 99),
    "group": (3, 3),
    "meter": (5, 5),
    "register": (2, 2),
    "clone": (2, 2),
    "multicast": (2, 2),
    "port": (1, 1),
    "queue": (2, 2),
    "wait": (0, 1),
    "stop": (0, 0),
    "start": (0, 0),
    # simple_switch_CLI's, which p4c's own tests use
    "mirroring_add": (2, 2),
    "mc_mgrp_create": (1, 1),
    "mc_node_create": (2, 99),
    "mc_node_associate": (2, 2),
    "register_write": (3, 3),
}
_TIMES = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_CALL = re.compile(r"[^\s()]+\((?P<args>[^()]*)\)\s*(?:=\s*(?P<label>\$?\w+))?$")
_CELL = re.compile(r"(?P<name>[^\s(]+)\s*\((?P<index>\w+)\)(?:\s+(?P<rest>.*))?$")
_RELATION = re.compile(r"(?:(?P<attribute>\w+)\s*)?(?P<relation>==|!=|<=|>=|<|>)\s*(?P<value>\w+)$")
_NAME = r'(?:"[^"]+"|\S+)'
TIME_NS_MAX = 1 << 62  # so that a sum of two is one of 64 bits


def parse(text: str) -> list[Statement]:
    """Every statement of the file. Raises StfError with the line number."""
    statements = []
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.split("#", 1)[0].strip()
        if bare:
            try:
                statements.append(_statement(number, bare))
            except ValueError as error:
                raise StfError(f"line {number}: {error}") from error
    return statements


def _statement(line: int, text: str) -> Statement:
    word, _, rest = text.partition(" ")
    word, rest = word.lower(), rest.strip()
    parser = _PARSERS.get(word)
    if parser is not None:
        return parser(line, rest)
    if word.startswith("check_"):
        return _check(line, word, rest)
    if word not in COMMANDS:
        known = ", ".join(sorted([*_PARSERS, *_CHECKS, *COMMANDS]))
        raise StfError(f"unknown word {word!r}; there are: {known}")
    operands = [part for part in rest.split() if not re.match(r"^\w+=", part)]
    options = dict(part.split("=", 1) for part in rest.split() if re.match(r"^\w+=", part))
    low, high = COMMANDS[word]
    if not low <= len(operands) <= high:
        raise StfError(f"{word} takes {low if low == high else f'{low} or more'} operands, not {len(operands)}")
    return SwitchCommand(line, word, tuple(operands), options)


def _add(line: int, rest: str) -> Add:
    match = re.match(rf"(?P<table>{_NAME})(?:\s+(?P<priority>\d+)(?=\s))?\s+(?P<rest>.*)$", rest)
    if match is None:
        raise StfError("expected: add TABLE [PRIORITY] FIELD:VALUE … ACTION(PARAMETER:VALUE, …)")
    # The action is the last item with parentheses; the items before it are the matches.
    before, call, label = _split_call(match["rest"])
    matches = []
    for part in before.split():
        name, colon, value = part.partition(":")
        if not colon or not name or not value:
            raise StfError(f"a match is FIELD:VALUE, not {part!r}")
        matches.append((_unquoted(name), value))
    priority = None if match["priority"] is None else int(match["priority"])
    return Add(line, _unquoted(match["table"]), priority, tuple(matches), call, label)


def _split_call(text: str) -> tuple[str, StfAction, str | None]:
    # The last word before the last parenthesis. An expression that finds both takes the square of the line's length.
    head, _, tail = text.strip().rpartition("(")
    *_, name = head.split() or [""]
    call = _CALL.match(f"{name}({tail}")
    if call is None:
        raise StfError("an action is NAME(PARAMETER:VALUE, …)")
    before = head.rstrip().removesuffix(name)
    return before, StfAction(_unquoted(name), _arguments(call["args"])), call["label"]


def _arguments(text: str) -> tuple[tuple[str, str], ...]:
    """Pairs (parameter or empty, value). An address such as fcbb:: contains colons, so a parameter name is only
    what looks like an identifier with a letter outside a to f, or is followed by `=`."""
    pairs = []
    for part in text.split(","):
        if part.strip():
            match = re.match(r"\s*(?P<name>[A-Za-z_]\w*)\s*[:=]\s*(?P<value>\S+)\s*$", part)
            pairs.append((match["name"], match["value"]) if match is not None else ("", part.strip()))
    return tuple(pairs)


def _unquoted(name: str) -> str:
    return name.strip('"')


def _remove(line: int, rest: str) -> Remove:
    if len(rest.split()) != 1:
        raise StfError("expected: remove LABEL, or remove all")
    return Remove(line, rest)


def _setdefault(line: int, rest: str) -> SetDefault:
    before, action, _ = _split_call(rest)
    if len(before.split()) != 1:
        raise StfError("expected: setdefault TABLE ACTION(PARAMETER:VALUE, …)")
    return SetDefault(line, _unquoted(before.strip()), action)


def _packet(line: int, rest: str) -> StfPacket:
    port, *data = rest.split()
    try:
        return StfPacket(line, int(port), bytes.fromhex("".join(data)))
    except ValueError as error:
        raise StfError(f"a packet is PORT and an even number of hex digits: {error}") from error


def _expect(line: int, rest: str) -> Expect:
    rest, at, when = rest.partition(" at ")
    port, *parts = rest.split()
    pattern = "".join(parts)
    exact = pattern.endswith("$")
    pattern = pattern.removesuffix("$").lower()
    if not re.fullmatch(r"[0-9a-f*]*", pattern):
        raise StfError("an expected packet is PORT and hex digits or '*', with '$' at the end for the exact length")
    return Expect(line, int(port), pattern or None, exact, time_ns(when) if at else None)


def _no_packet(line: int, rest: str) -> NoPacket:
    if rest:
        raise StfError("no_packet takes no operands")
    return NoPacket(line)


_CHECKS = ("check_counter", "check_direct_counter", "check_register", "check_port")


def _check(line: int, word: str, rest: str) -> StateCheck:
    if word not in _CHECKS:
        raise StfError(f"unknown word {word!r}; there are: {', '.join(_CHECKS)}")
    if word == "check_port":
        match = re.match(r"(?P<index>\w+)\s+(?P<rest>.*)$", rest)
        name = ""
    else:
        match = _CELL.match(rest)
        name = "" if match is None else _unquoted(match["name"])
    relation = _RELATION.match(match["rest"].strip()) if match is not None and match["rest"] else None
    if match is None or relation is None:
        form = "PORT COUNTER == N" if word == "check_port" else "NAME(INDEX) [packets|bytes] == N"
        raise StfError(f"expected: {word} {form}")
    attribute = relation["attribute"] or "packets"
    index = 0 if word == "check_direct_counter" else int(match["index"], 0)
    label = match["index"] if word == "check_direct_counter" else ""
    value = int(relation["value"], 0)
    return StateCheck(line, word, name + (f"({label})" if label else ""), index, attribute, relation["relation"], value)


def time_ns(text: str) -> int:
    """`10us`, `1.5ms`, `300ns`, `2s` or a number of nanoseconds."""
    match = re.fullmatch(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>ns|us|ms|s)?\s*", text)
    if match is None:
        raise StfError(f"a time is a number and ns, us, ms or s, not {text!r}")
    if (ns := float(match["number"]) * _TIMES[match["unit"] or "ns"]) > TIME_NS_MAX:
        raise StfError(f"a time must be at most {TIME_NS_MAX} ns (got {text.strip():.40})")
    return round(ns)


_PARSERS: dict[str, Callable[[int, str], Statement]] = {
    "add": _add,
    "remove": _remove,
    "setdefault": _setdefault,
    "packet": _packet,
    "expect": _expect,
    "no_packet": _no_packet,
}
