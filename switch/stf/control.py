"""The control-plane statements: entries, defaults, members, groups, meters, sessions, groups and ports."""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from p4c.entries import ActionCall, Entry, EntryAction, Exact, GroupRef, Lpm, Match, MemberRef, Range, Ternary
from p4c.model import Action as ModelAction
from p4c.model import Program
from p4c.model.pipelines import Key, Table
from switch.engine import PORT_DEFAULTS, PRIORITIES, Engine, MeterConfig, PortConfig, Replica
from switch.stf.names import by_name, find, find_action, find_key
from switch.stf.statements import Add, Remove, SetDefault, StfAction, StfError, SwitchCommand, time_ns

# Values and matches as they are written: numbers, addresses, prefixes, masks, ranges and `*`.
_BITS_OF_A_DIGIT = {"x": 4, "b": 1, "o": 3}


def number(text: str, width_bits: int) -> int:
    """A decimal, 0x, 0o or 0b number, an IPv6, IPv4 or MAC address, or true and false; it must fit."""
    value = _number(text, width_bits)
    if not 0 <= value < 1 << width_bits:
        raise StfError(f"{text} does not fit {width_bits} bits")
    return value


def _number(text: str, width_bits: int) -> int:
    if text in ("true", "false"):
        return int(text == "true")
    if re.fullmatch(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", text):
        return int(text.replace(":", ""), 16)
    try:
        if ":" in text:
            return int(ipaddress.IPv6Address(text))
        if "." in text:
            return int(ipaddress.IPv4Address(text))
        return int(text, 10) if re.fullmatch(r"\d+", text) else int(text, 0)
    except ValueError:
        raise StfError(f"{text!r} is not a number of {width_bits} bits, or an address") from None


def match(text: str | None, key: Key) -> Match:
    """A match for a field; without text, a match that fits anything."""
    width = key.width_bits
    full = (1 << width) - 1
    if text is None or text in ("*", "_"):
        if key.match == "exact":
            raise StfError(f"the field {key.name} needs a value: its match is exact")
        if key.match == "lpm":
            return Lpm(0, 0)
        return Ternary(0, 0) if key.match == "ternary" else Range(0, full)
    if key.match == "exact":
        return Exact(number(text, width))
    if key.match == "range":
        low, separator, high = re.sub(r"->", "..", text).partition("..")
        return Range(number(low, width), number(high if separator else low, width))
    value, mask = _masked(text, width)
    if key.match == "ternary":
        return Ternary(value & mask, mask)
    length = mask.bit_count()
    if mask != full ^ ((1 << (width - length)) - 1):
        raise StfError(f"the mask of {text} is not a prefix, as the field {key.name} needs")
    return Lpm(value & mask, length)


def _masked(text: str, width: int) -> tuple[int, int]:
    full = (1 << width) - 1
    if "&&&" in text:
        value, _, mask = text.partition("&&&")
        return number(value, width), number(mask, width)
    if "/" in text:
        value, _, length = text.partition("/")
        bits = int(length)
        if not 0 <= bits <= width:
            raise StfError(f"a prefix length is 0 to {width}, not {bits}")
        return number(value, width), full ^ ((1 << (width - bits)) - 1)
    if "*" in text and text[:1] == "0" and text[1:2].lower() in _BITS_OF_A_DIGIT:
        size = _BITS_OF_A_DIGIT[text[1].lower()]
        ones = "0123456789abcdef"[(1 << size) - 1]
        prefix, digits = text[:2], text[2:]
        mask_digits = re.sub(r"[^*]", ones, digits).replace("*", "0")
        return number(prefix + digits.replace("*", "0"), width), number(prefix + mask_digits, width) & full
    return number(text, width), full


class StfControl:
    """Carries out the statements of packet tests that change tables, on one engine with one program."""

    def __init__(self, engine: Engine, program: Program) -> None:
        self.engine = engine
        self.program = program
        self._tables = by_name(program.tables)
        self._labels: dict[str, tuple[str, int]] = {}  # label → table and handle
        self._installed: list[tuple[str, int]] = []
        self._ports: dict[int, PortConfig] = {}
        self._nodes: list[tuple[int, tuple[int, ...]]] = []  # simple_switch_CLI's multicast nodes: rid and ports
        self._groups: dict[int, list[Replica]] = {}

    # --- entries ---

    def apply(self, statement: Add | Remove | SetDefault) -> None:
        match statement:
            case Add():
                self._add(statement)
            case Remove(_, "all"):
                for table, handle in self._installed:
                    self.engine.delete_entry(table, handle)
                self._installed.clear()
                self._labels.clear()
            case Remove(_, label):
                table, handle = self.labelled(label)
                self.engine.delete_entry(table, handle)
                self._installed.remove((table, handle))
                del self._labels[label]
            case SetDefault(_, name, action):
                model = find(self._tables, name, "table")
                self.engine.set_default_action(model.name, _call(find_action(model, action.name), action))

    def labelled(self, label: str) -> tuple[str, int]:
        """The table and handle of an entry added with `= label`."""
        if label not in self._labels:
            raise StfError(f"no entry is labelled {label!r}; there are: {', '.join(self._labels) or 'none'}")
        return self._labels[label]

    def _add(self, add: Add) -> None:
        table = find(self._tables, add.table, "table")
        given: dict[str, str] = {}
        for name, value in add.matches:
            key = find_key(table, name)
            if key.name in given:
                raise StfError(f"the match field {key.name} is given twice")
            given[key.name] = value
        matches = tuple(match(given.get(key.name), key) for key in table.keys)
        looser = table.match in ("ternary", "range")
        priority = (add.priority or 0) if looser else 0
        handle = self.engine.insert_entry(table.name, Entry(matches, self._entry_action(table, add.action), priority))
        self._installed.append((table.name, handle))
        if add.label is not None:
            self._labels[add.label] = (table.name, handle)

    def _entry_action(self, table: Table, action: StfAction) -> EntryAction:
        if table.profile is not None and action.name in ("member", "group"):
            reference = int(_only(action), 0)
            return MemberRef(reference) if action.name == "member" else GroupRef(reference)
        return _call(find_action(table, action.name), action)

    # --- commands ---

    def command(self, command: SwitchCommand, now_ns: int) -> None:
        words: dict[str, Callable[[SwitchCommand, int], None]] = {
            "member": self._member,
            "group": self._group,
            "meter": self._meter,
            "register": self._register,
            "register_write": self._register_write,
            "clone": self._clone,
            "mirroring_add": self._mirroring_add,
            "multicast": self._multicast,
            "mc_mgrp_create": self._mgrp_create,
            "mc_node_create": self._node_create,
            "mc_node_associate": self._node_associate,
            "port": self._port,
            "queue": self._queue,
        }
        words[command.word](command, now_ns)

    def _member(self, command: SwitchCommand, now_ns: int) -> None:
        name, member_id, *call = command.operands
        profile = find(by_name(self.program.profiles), name, "action profile")
        match = re.fullmatch(r"(?P<name>[^\s(]+)\s*\((?P<args>.*)\)", " ".join(call))
        if match is None:
            raise StfError("expected: member PROFILE ID ACTION(PARAMETER:VALUE, …)")
        actions = {a.name: a for t in self.program.tables if t.profile is profile for a in t.actions}
        model = find(actions, match["name"], "action")
        args = [part.strip() for part in match["args"].split(",") if part.strip()]
        pairs = tuple(tuple(a.split(":", 1)) if ":" in a else ("", a) for a in args)
        action = StfAction(model.name, tuple((p[0], p[1]) for p in pairs))
        self.engine.set_member(profile.name, int(member_id, 0), _call(model, action))

    def _group(self, command: SwitchCommand, now_ns: int) -> None:
        name, group_id, members = command.operands
        profile = find(by_name(self.program.profiles), name, "action profile")
        pairs = [(int(m, 0), int(w or "1", 0)) for m, _, w in (part.partition("*") for part in members.split(","))]
        self.engine.set_group(profile.name, int(group_id, 0), pairs)

    def _cell(self, text: str) -> tuple[str, int]:
        match = re.fullmatch(r"(?P<name>[^\s(]+)\((?P<index>\w+)\)", text)
        if match is None:
            raise StfError(f"expected NAME(INDEX), found {text!r}")
        return match["name"], int(match["index"], 0)

    def _meter(self, command: SwitchCommand, now_ns: int) -> None:
        name, index = self._cell(command.operands[0])
        meter = find(by_name(m for m in self.program.meters if not m.direct), name, "meter")
        self.engine.set_meter(meter.name, index, MeterConfig(*(int(n, 0) for n in command.operands[1:])))

    def _register(self, command: SwitchCommand, now_ns: int) -> None:
        name, index = self._cell(command.operands[0])
        register = find(by_name(self.program.registers), name, "register")
        self.engine.write_register(register.name, index, number(command.operands[1], register.width_bits))

    def _register_write(self, command: SwitchCommand, now_ns: int) -> None:
        name, index, value = command.operands
        register = find(by_name(self.program.registers), name, "register")
        self.engine.write_register(register.name, int(index, 0), number(value, register.width_bits))

    def _clone(self, command: SwitchCommand, now_ns: int) -> None:
        session, replicas = command.operands
        truncate = int(command.options.get("truncate", "0"), 0)
        service = int(command.options.get("class", "0"), 0)
        self.engine.set_clone_session(int(session, 0), _replicas(replicas), truncate, service)

    def _mirroring_add(self, command: SwitchCommand, now_ns: int) -> None:
        session, port = command.operands
        self.engine.set_clone_session(int(session, 0), [Replica(int(port, 0), 0)], 0)

    def _multicast(self, command: SwitchCommand, now_ns: int) -> None:
        group, replicas = command.operands
        self.engine.set_multicast_group(int(group, 0), _replicas(replicas))

    def _mgrp_create(self, command: SwitchCommand, now_ns: int) -> None:
        self._groups[int(command.operands[0], 0)] = []
        self.engine.set_multicast_group(int(command.operands[0], 0), [])

    def _node_create(self, command: SwitchCommand, now_ns: int) -> None:
        rid, *ports = (int(n, 0) for n in command.operands)
        self._nodes.append((rid, tuple(sorted(ports))))

    def _node_associate(self, command: SwitchCommand, now_ns: int) -> None:
        group, node = (int(n, 0) for n in command.operands)
        if group not in self._groups or node >= len(self._nodes):
            raise StfError("mc_node_associate needs a group and a node that were created before")
        rid, ports = self._nodes[node]
        self._groups[group] += [Replica(port, rid) for port in ports]
        self.engine.set_multicast_group(group, self._groups[group])

    # --- ports ---

    def _port(self, command: SwitchCommand, now_ns: int) -> None:
        port = int(command.operands[0], 0)
        config = self._ports.get(port, PortConfig())
        for name, text in command.options.items():
            if name not in _PORT_OPTIONS:
                raise StfError(f"a port has no {name!r}; there are: {', '.join(_PORT_OPTIONS)}")
            key, read = _PORT_OPTIONS[name]
            changed: dict[str, Any] = {key: read(text)}
            config = replace(config, **changed)
        self._configure(port, config, now_ns)

    def _queue(self, command: SwitchCommand, now_ns: int) -> None:
        port, priority = (int(n, 0) for n in command.operands)
        config = self._ports.get(port, PortConfig())
        if not 0 <= priority < PRIORITIES:
            raise StfError(f"a priority is 0 to {PRIORITIES - 1}, not {priority}")
        known = ("depth_packets", "depth_bytes", "rate_pps")
        for name in command.options:
            if name not in known:
                raise StfError(f"a queue has no {name!r}; there are: {', '.join(known)}")
        changes = {name: int(text, 0) for name, text in command.options.items()}
        queues = list(config.queues)
        queues[priority] = replace(queues[priority], **changes)
        self._configure(port, replace(config, queues=tuple(queues)), now_ns)

    def _configure(self, port: int, config: PortConfig, now_ns: int) -> None:
        self.engine.configure_port(port, config, now_ns)
        self._ports[port] = config


def _only(action: StfAction) -> str:
    if len(action.args) != 1:
        raise StfError(f"expected {action.name}(ID)")
    return action.args[0][1]


def _call(model: ModelAction, action: StfAction) -> ActionCall:
    values: dict[str, int] = {}
    for i, (name, text) in enumerate(action.args):
        if not name and i < len(model.parameters):
            name = model.parameters[i].name
        parameter = next((p for p in model.parameters if p.name == name), None)
        if parameter is None:
            known = ", ".join(p.name for p in model.parameters) or "none"
            raise StfError(f"action {model.name} has no parameter {name or f'number {i}'}; there are: {known}")
        values[parameter.name] = number(text, parameter.width_bits)
    missing = [p.name for p in model.parameters if p.name not in values]
    if missing:
        raise StfError(f"action {model.name} needs the parameter {missing[0]}")
    return ActionCall(model.name, tuple(values[p.name] for p in model.parameters))


def _replicas(text: str) -> list[Replica]:
    """`PORT[:RID],…`"""
    pairs = (part.partition(":") for part in text.split(","))
    return [Replica(int(port, 0), int(rid or "0", 0)) for port, _, rid in pairs]


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise StfError(f"expected true or false, not {text!r}")
    return text == "true"


def _port_option(key: str) -> tuple[str, tuple[str, Callable[[str], Any]]]:
    """An option's name, the field that it sets, and how to read it. Times are written with their unit, and so without
    it in their names."""
    if key.endswith("_ns"):
        return key.removesuffix("_ns"), (key, time_ns)
    kind = type(PORT_DEFAULTS[key])
    return key, (key, _truth if kind is bool else float if kind is float else lambda text: int(text, 0))


_PORT_OPTIONS = dict(map(_port_option, PORT_DEFAULTS))
