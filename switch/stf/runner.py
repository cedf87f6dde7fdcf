"""Runs the statements of an `.stf` file against an engine, in virtual time, and says what was not as expected."""

import operator
import re
from collections import defaultdict
from collections.abc import Iterable

from common.records import Frozen
from p4c.model import Program
from switch.engine import CPU_PORT_DEFAULT, Engine, EngineError, PortConfig, PortCounters, Transmitted
from switch.stf.control import StfControl
from switch.stf.names import by_name, find
from switch.stf.statements import (
    Add,
    Expect,
    NoPacket,
    Remove,
    SetDefault,
    StateCheck,
    Statement,
    StfError,
    StfPacket,
    SwitchCommand,
    time_ns,
)

PORTS = (*range(64), CPU_PORT_DEFAULT)  # configured before the first statement, up and without limits
EVENTS_MAX = 100_000  # after the last packet: a program that recirculates for ever must not hold the test

_RELATIONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Failure(Frozen):
    """What a packet test expected and did not get."""

    line: int  # 0: of the file as a whole
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


def run(engine: Engine, program: Program, statements: Iterable[Statement]) -> list[Failure]:
    """Load the program and run the statements; an empty list is success. Raises StfError for what cannot be run."""
    engine.load(program)
    runner = _Runner(engine, program)
    for statement in statements:
        try:
            runner.step(statement)
        except (StfError, EngineError) as error:
            raise StfError(f"line {statement.line}: {error}") from error
    runner.settle(0)
    return runner.failures


class _Runner:
    def __init__(self, engine: Engine, program: Program) -> None:
        self.engine = engine
        self.program = program
        self.control = StfControl(engine, program)
        self.now_ns = 0
        self.failures: list[Failure] = []
        self._expected: dict[int, list[Expect]] = defaultdict(list)
        self._received: dict[int, list[Transmitted]] = defaultdict(list)
        for port in PORTS:
            engine.configure_port(port, PortConfig(), 0)

    def step(self, statement: Statement) -> None:
        match statement:
            case StfPacket(_, port, data):
                self.engine.receive(port, data, self.now_ns)
            case Expect(_, port):
                self._expected[port].append(statement)
            case NoPacket(line):
                self.settle(line)
            case StateCheck():
                self._check(statement)
            case Add() | Remove() | SetDefault():
                self._collect(self.now_ns)  # a live switch may still have packets inside
                self.control.apply(statement)
            case SwitchCommand():
                self._command(statement)

    def _command(self, command: SwitchCommand) -> None:
        if command.word == "wait":
            # p4c's bare `wait` waits for the tables to settle; ours settle at once.
            self.now_ns += time_ns(command.operands[0]) if command.operands else 0
            self._collect(self.now_ns)
        elif command.word in ("stop", "start"):
            self.engine.set_running(command.word == "start", self.now_ns)
        else:
            self._collect(self.now_ns)
            self.control.command(command, self.now_ns)

    # --- packets ---

    def _collect(self, until_ns: int) -> None:
        for sent in self.engine.advance(until_ns):
            self._received[sent.port].append(sent)

    def settle(self, line: int) -> None:
        """Let everything come out that can, then compare it with what was expected so far."""
        self._collect(self.now_ns)
        for _ in range(EVENTS_MAX):
            event_ns = self.engine.next_event_ns()
            if event_ns is None:
                break
            self.now_ns = max(self.now_ns, event_ns)
            self._collect(self.now_ns)
        else:
            self.failures.append(Failure(line, f"packets still move after {EVENTS_MAX} events"))
        for port in sorted({*self._expected, *self._received}):
            self._compare(line, port, self._expected[port], self._received[port])
        self._expected.clear()
        self._received.clear()

    def _compare(self, line: int, port: int, expected: list[Expect], received: list[Transmitted]) -> None:
        for i, expect in enumerate(expected):
            if i >= len(received):
                self.failures.append(Failure(expect.line, f"expected a packet on port {port}, none came"))
                continue
            problem = _difference(expect, received[i])
            if problem is not None:
                self.failures.append(Failure(expect.line, f"port {port}: {problem}"))
        for extra in received[len(expected) :]:
            self.failures.append(
                Failure(line, f"unexpected packet on port {port} at {extra.t_ns} ns: {extra.frame.hex()}")
            )

    # --- checks ---

    def _check(self, check: StateCheck) -> None:
        self._collect(self.now_ns)
        name, index = check.name, check.index
        if check.what == "check_register":
            register = find(by_name(self.program.registers), name, "register")
            reading, shown = self.engine.read_register(register.name, index), f"{name}({index})"
        elif check.what == "check_port":
            known = list(PortCounters._fields)
            if check.attribute not in known:
                raise StfError(f"a port has no counter {check.attribute!r}; there are: {', '.join(known)}")
            reading = getattr(self.engine.port_counters(index, self.now_ns), check.attribute)
            shown = f"port {index} {check.attribute}"
        else:
            if check.attribute not in ("packets", "bytes"):
                raise StfError(f"a counter counts packets and bytes, not {check.attribute}")
            if check.what == "check_counter":
                counter = find(by_name(c for c in self.program.counters if not c.direct), name, "counter")
                value = self.engine.read_counter(counter.name, index)
            else:
                label = re.search(r"\((.*)\)$", name)
                assert label is not None
                value = self.engine.read_direct_counter(*self.control.labelled(label[1]))
            reading, shown = getattr(value, check.attribute), f"{name}({index}) {check.attribute}"
        if not _RELATIONS[check.relation](reading, check.value):
            message = f"{shown} is {reading}, expected {check.relation} {check.value}"
            self.failures.append(Failure(check.line, message))


def _difference(expect: Expect, sent: Transmitted) -> str | None:
    frame = sent.frame.hex()
    if expect.t_ns is not None and sent.t_ns != expect.t_ns:
        return f"arrived at {sent.t_ns} ns, expected at {expect.t_ns} ns"
    if expect.pattern is None:
        return None
    pattern = expect.pattern
    if len(frame) < len(pattern) or (expect.exact and len(frame) != len(pattern)):
        least = "" if expect.exact else "at least "
        lengths = f"{len(frame) / 2:g} bytes came, expected {least}{len(pattern) / 2:g}"
        return f"{lengths}\n  expected {pattern}\n  received {frame}"
    wrong = [i for i, (p, f) in enumerate(zip(pattern, frame, strict=False)) if p not in ("*", f)]
    if wrong:
        marks = "".join("^" if i in set(wrong) else " " for i in range(len(pattern)))
        return f"differs at byte {wrong[0] // 2}\n  expected {pattern}\n  received {frame}\n           {marks.rstrip()}"
    return None
