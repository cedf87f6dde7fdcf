"""Compiles a student's control into the lab's program, and runs packets through it in the reference interpreter.

A P4 program is data for the compiler and the interpreter, so it runs in the worker, not in a box: it can compute and
forward, and no more. It has no directives: the text of an included file could show in an error, and a macro could
change the lab's part of the program.
"""

import io
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType

from common import files
from common.quoting import command
from course.box.box import BoxError
from course.exercise import StudentWork, typed
from p4c import STANDARD_INCLUDE, CompileError, Diagnostics, compile_program, tokenize
from p4c.model import ModelError, Program, load
from switch import EngineError, PortConfig, Transmitted
from switch.reference import ReferenceEngine
from switch.stf import Add, StfControl, StfError, parse

FOLDER = Path(__file__).parent
PARTS = FOLDER.parents[3] / "p4" / "parts"
SHARED = frozenset({*PARTS.glob("*.p4"), STANDARD_INCLUDE / "core.p4", STANDARD_INCLUDE / "v1model.p4"})
"""The files that a lab's program includes beside the student's."""
COMPILE_S = 20
PORTS = range(1, 9)
EVENTS_MAX = 20_000
SOURCE_BYTES_MAX = 32 << 10


@contextmanager
def within(seconds: int, what: str) -> Iterator[None]:
    """BoxError when the work takes longer."""

    def late(number: int, frame: FrameType | None) -> None:
        raise BoxError(f"{what} took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def controls(work: StudentWork) -> str:
    """The student's text with the line ends that the compiler reads. BoxError for a directive, which the compiler's own
    lexer finds."""
    text = io.StringIO(work.source, newline=None).read()
    tokens = tokenize(text, work.path.name, Diagnostics())
    begins = True
    for sign, word in pairwise(tokens):
        if begins and sign.text == "#":
            name = "" if word.kind == "newline" else word.text
            place = f"{work.path.name}:{sign.span.line}"
            raise BoxError(f"{place}: #{name} can't be used in a lab: the file holds controls only")
        begins = sign.kind == "newline"
    return text


def assembled(work: StudentWork, around: str) -> tuple[Path, Path]:
    """The whole program as a file, the lab's part, and the student's file, which it includes."""
    if len(work.source) > SOURCE_BYTES_MAX:
        raise BoxError(f"{work.path.name} must have at most {SOURCE_BYTES_MAX} bytes (got {len(work.source)})")
    text = controls(work)
    work.folder.mkdir(parents=True, exist_ok=True)
    student = work.folder / work.path.name
    files.write(student, text)
    path = work.folder / "program.p4"
    files.write(path, (FOLDER / around).read_text().replace("@PARTS@", str(PARTS)).replace("@STUDENT@", str(student)))
    return path, student


def compiled(work: StudentWork, around: str) -> Program:
    """The program, compiled once per check. BoxError with the compiler's message and the student's line."""

    def make() -> Program | str:
        try:
            with within(COMPILE_S, "compiling"):
                path, student = assembled(work, around)
                made = compile_program(path, includable=SHARED | {student})
                if made.warnings:
                    raise BoxError(f"{made.warnings}\nwarnings are errors in a lab")
                return load(made.json)
        except (BoxError, CompileError, ModelError, RecursionError) as error:
            return str(error).replace(f"{work.folder}/", "")

    program = work.once("program", make)
    if isinstance(program, str):
        raise BoxError(program)
    return program


class Bench:
    """One switch with the student's program, from its first packet on."""

    def __init__(self, work: StudentWork, around: str, entries: str, rate_bps: int = 0) -> None:
        self.engine = ReferenceEngine(seed=1)
        program = compiled(work, around)
        self.now_ns = 0
        try:
            self.engine.load(program)
            for port in PORTS:
                self.engine.configure_port(port, PortConfig(rate_bps=rate_bps) if rate_bps else PortConfig(), 0)
            control = StfControl(self.engine, program)
            for statement in parse(entries):
                if isinstance(statement, Add):
                    control.apply(statement)
        except (StfError, EngineError, ModelError) as error:
            raise BoxError(f"{work.path.name}: the lab's entries don't fit: {error}") from error

    def send(self, port: int, frame: bytes) -> None:
        """A frame arrives now."""
        self.engine.receive(port, frame, self.now_ns)

    def out(self) -> list[Transmitted]:
        """Everything that leaves, until nothing moves."""
        with within(COMPILE_S, "running the program"):
            transmitted = list(self.engine.advance(self.now_ns))
            for _ in range(EVENTS_MAX):
                event_ns = self.engine.next_event_ns()
                if event_ns is None:
                    return transmitted
                self.now_ns = max(self.now_ns, event_ns)
                transmitted += self.engine.advance(self.now_ns)
        raise BoxError("packets still move after 20,000 events: does the program send them round for ever?")


def trace_look(work: StudentWork, entries: str, port: int, frame: bytes) -> tuple[str, ...]:
    """Write the entries; the command that shows each step of the packet."""
    path = work.folder / "entries.stf"
    files.write(path, entries + "\n")
    words = (typed(work.folder / "program.p4"), "--entries", typed(path), "--port", port, "--packet", frame.hex())
    return (command("switch", "trace", *words),)
