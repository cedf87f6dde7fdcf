"""`python -m switch stf` and `python -m switch trace`."""

import argparse
from pathlib import Path
from typing import Any

from common import plain_file
from common.outcome import error_line
from common.terminal.printable import printable, printable_text
from common.terminal.standard_streams import write_error
from p4c.model import ModelError
from switch.engine import DROP_PORT, EngineError, PortConfig
from switch.reference.engine import ReferenceEngine
from switch.reference.trace import Trace
from switch.stf.control import StfControl
from switch.stf.programs import ENGINES, make_engine, read_program
from switch.stf.runner import run
from switch.stf.statements import Add, SetDefault, StfError, SwitchCommand, parse

_STF_BYTES_MAX = 4 << 20
OK, FAILED, BAD_INPUT = 0, 1, 2


def register(subparsers: Any) -> None:
    stf = subparsers.add_parser("stf", help="run packet tests (.stf files) on an engine")
    stf.add_argument("files", nargs="+", type=Path, metavar="FILE.stf")
    stf.add_argument("--program", type=Path, required=True, help="BMv2 JSON, or P4 source")
    stf.add_argument("--engine", choices=ENGINES, default="reference")
    stf.add_argument("--seed", type=int, default=0, help="of the switch's random numbers (default 0)")
    stf.add_argument("--trace", action="store_true", help="show what happened to each packet (reference engine)")
    stf.set_defaults(run=run_stf)
    trace = subparsers.add_parser("trace", help="explain what a program does with one packet")
    trace.add_argument("program", type=Path, help="BMv2 JSON, or P4 source")
    trace.add_argument("--port", type=int, required=True, help="where the packet comes in")
    trace.add_argument("--packet", required=True, metavar="HEX", help="the Ethernet frame")
    trace.add_argument("--entries", type=Path, metavar="FILE.stf", help="entries to install first")
    trace.add_argument("--format", choices=("text", "json"), default="text")
    trace.add_argument("--seed", type=int, default=0)
    trace.set_defaults(run=run_trace)


def run_stf(namespace: argparse.Namespace) -> int:
    status = OK
    try:
        program = read_program(namespace.program)
        for path in namespace.files:
            trace = Trace() if namespace.trace else None
            engine = make_engine(namespace.engine, namespace.seed, trace)
            failures = run(engine, program, parse(_text(path)))
            if trace is not None:
                print(printable_text(trace.text()))
            print(f"{printable(str(path))}: {'failed' if failures else 'passed'}")
            for failure in failures:
                status = FAILED
                write_error(f"{printable(str(path))}: {failure}")
    except (ModelError, StfError, OSError) as error:
        write_error(f"error: {error_line(error)}")
        return BAD_INPUT
    return status


def run_trace(namespace: argparse.Namespace) -> int:
    trace = Trace()
    try:
        program = read_program(namespace.program)
        try:
            frame = bytes.fromhex(namespace.packet)
        except ValueError:
            raise StfError("--packet must be an even number of hexadecimal digits") from None
        engine = ReferenceEngine(seed=namespace.seed, trace=trace)
        engine.load(program)
        for port in range(DROP_PORT):
            engine.configure_port(port, PortConfig(), 0)
        control = StfControl(engine, program)
        for statement in parse(_text(namespace.entries)) if namespace.entries else ():
            if isinstance(statement, Add | SetDefault):
                control.apply(statement)
            elif isinstance(statement, SwitchCommand) and statement.word not in ("wait", "stop", "start"):
                control.command(statement, 0)
        engine.receive(namespace.port, frame, 0)
        while (event_ns := engine.next_event_ns()) is not None:
            engine.advance(event_ns)
    except (ModelError, StfError, EngineError, OSError) as error:
        write_error(f"error: {error_line(error)}")
        return BAD_INPUT
    for step in trace.steps:
        print(step.json() if namespace.format == "json" else printable_text(step.text()))
    return OK


def _text(path: Path) -> str:
    try:
        return plain_file.read_named(path, _STF_BYTES_MAX)
    except OSError as error:
        raise StfError(f"{path}: {plain_file.why(error)}") from error
    except UnicodeDecodeError as error:
        raise StfError(f"{path}: not text: {error}") from error
