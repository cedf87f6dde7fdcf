"""Traces: each packet's steps as data, as JSON lines and as text.

A packet has a number; copies (clones, multicast replicas) get new ones, and the step that made them names both. Every
packet's story ends with one of: `transmit`, `drop` (with `reason`), `resubmit`, `recirculate` (which name the packet
that goes on) or `replicated` (a multicast original that lives on in its copies).
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

from common.records import Frozen


class TraceStep(Frozen):
    t_ns: int
    packet: int
    kind: str  # a key of KINDS
    data: dict[str, Any]

    def json(self) -> str:
        return json.dumps({"t_ns": self.t_ns, "packet": self.packet, "kind": self.kind, **self.data})

    def text(self) -> str:
        return f"{self.t_ns:>12} #{self.packet:<4} {KINDS[self.kind](self.data)}"


class Trace:
    """Collects steps; hand it to the engine as `trace`."""

    def __init__(self) -> None:
        self.steps: list[TraceStep] = []

    def record(self, t_ns: int, packet: int, kind: str, **data: Any) -> None:
        self.steps.append(TraceStep(t_ns, packet, kind, data))

    def text(self) -> str:
        return text(self.steps)


def text(steps: Iterable[TraceStep]) -> str:
    return "\n".join(step.text() for step in steps)


def _lookup(data: dict[str, Any]) -> str:
    key = ", ".join(f"{name}={value}" for name, value in data["key"].items())
    where = f"table {data['table']} ({key})"
    if not data["hit"]:
        return f"{where}: miss"
    entry = ", ".join(f"{name}: {match}" for name, match in data["entry"].items())
    chosen = f" -> {data['choice']}" if "choice" in data else ""
    return f"{where}: hit entry {data['handle']} ({entry}){chosen}"


def _action(data: dict[str, Any]) -> str:
    args = ", ".join(f"{name}={value}" for name, value in data["args"].items())
    return f"  action {data['action']}({args})"


def _extract(data: dict[str, Any]) -> str:
    fields = ", ".join(f"{name}={value}" for name, value in data["fields"].items())
    return f"  extract {data['header']} ({data['bytes']} bytes): {fields}"


# How each kind of step reads. The data of a step are the names used here.
KINDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "receive": lambda d: f"received on port {d['port']}, {d['bytes']} bytes",
    "parser_state": lambda d: f"parser state {d['state']}",
    "extract": _extract,
    "parser_set": lambda d: f"  set {d['field']} = {d['value']}",
    "advance": lambda d: f"  advance {d['bytes']} bytes",
    "select": lambda d: f"  select {d['key']} -> {d['next'] or 'accept'}",
    "parser_error": lambda d: f"  parser error {d['error']} in state {d['state']}",
    "checksum": lambda d: f"checksum {d['checksum']}: {d['result']}",
    "pipeline": lambda d: f"{d['pipeline']} pipeline",
    "condition": lambda d: f"condition {d['condition']}{d['source']}: {str(d['result']).lower()}",
    "table": _lookup,
    "action": _action,
    "assign": lambda d: f"    {d['target']} = {d['value']}",
    "primitive": lambda d: f"    {d['text']}",
    "register_read": lambda d: f"    register {d['register']}[{d['index']}] read {d['value']}",
    "register_write": lambda d: f"    register {d['register']}[{d['index']}] = {d['value']}",
    "counter": lambda d: f"    counter {d['counter']}[{d['index']}]: {d['packets']} packets, {d['bytes']} bytes",
    "meter": lambda d: f"    meter {d['meter']}[{d['index']}]: {d['colour']}",
    "hash": lambda d: f"    {d['algorithm']}({d['input']}) = {d['value']}",
    "random": lambda d: f"    random({d['low']}..{d['high']}) = {d['value']}",
    "log": lambda d: f"    log: {d['message']}",
    "assertion": lambda d: f"    assertion failed: {d['failed']}",
    "out_of_range": lambda d: f"    {d['extern']}[{d['index']}] is outside its {d['size']} cells: no effect",
    "digest": lambda d: f"digest {d['digest']}: {d['data']}{'' if d['enabled'] else ', which no controller asked for'}",
    "clone": lambda d: f"clone session {d['session']}: packet #{d['copy']} to port {d['port']}, rid {d['instance']}",
    "clone_unknown": lambda d: f"clone session {d['session']} does not exist: no clone",
    "replica": lambda d: f"multicast group {d['group']}: packet #{d['copy']} to port {d['port']}, rid {d['instance']}",
    "replicated": lambda d: f"multicast group {d['group']}: {d['copies']} copies; the original ends here",
    "resubmit": lambda d: f"resubmitted as packet #{d['copy']}",
    "recirculate": lambda d: f"recirculated as packet #{d['copy']}, {d['bytes']} bytes",
    "enqueue": lambda d: f"enqueued to port {d['port']} priority {d['priority']} behind {d['depth']} packets",
    "dequeue": lambda d: f"dequeued from port {d['port']} priority {d['priority']} leaving {d['depth']} packets",
    "deparse": lambda d: f"deparsed {', '.join(d['headers']) or 'no headers'} + {d['payload']} bytes of payload",
    "transmit": lambda d: f"sent on port {d['port']}, {d['bytes']} bytes, arrives at {d['arrives_ns']}",
    "drop": lambda d: f"DROPPED: {d['reason']}",
}


def show(value: int, width_bits: int = 0) -> str:
    """Small numbers in decimal, others as hex digits of the field's width."""
    if value < 0 or (value < 1000 and width_bits <= 32):
        return str(value)
    return f"0x{value:0{(width_bits + 3) // 4}x}"
