"""`python -m switch compile`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from common import files, plain_file
from common.terminal.printable import printable
from common.terminal.standard_streams import write_error, write_out
from p4c.frontend.diagnostics import CompileError


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `compile` to the command line."""
    parser = subparsers.add_parser(
        "compile",
        help="compile a P4 program",
        description="Compile a P4_16 program for v1model to BMv2 JSON and P4Info text: "
        "DIR/NAME.json and DIR/NAME.p4info.txtpb.",
    )
    add_arguments(parser)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the compiler takes to a command line."""
    parser.add_argument("program", type=Path, help="the P4 source file")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="where to write (default: here)")
    parser.add_argument("-I", "--include", type=Path, action="append", default=[], metavar="DIR", help="look here too")
    parser.add_argument("-D", "--define", action="append", default=[], metavar="NAME[=VALUE]", help="define a macro")
    parser.add_argument("--Werror", action="store_true", help="refuse a program with warnings")
    parser.add_argument("--no-cache", action="store_true", help="compile even if the result is known")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compile as asked. Returns 0, or 1 after printing what is wrong with the program. OSError, ValueError."""
    if why := _unreadable(args.program):
        raise ValueError(f"the program must be a P4 source file (got {printable(str(args.program))}: {why})")
    definitions = dict(d.partition("=")[::2] if "=" in d else (d, "1") for d in args.define)
    try:
        from p4c.frontend.compiler import compile_program

        compiled = compile_program(
            args.program, include_paths=args.include, definitions=definitions, use_cache=not args.no_cache
        )
    except CompileError as error:
        write_out(f"{error}\n", sys.stderr)
        count = sum(1 for d in error.diagnostics if d.severity == "error")
        write_error(f"{count} error{'s' if count != 1 else ''}: nothing was written")
        return 1
    if compiled.warnings:
        write_out(f"{compiled.warnings}\n", sys.stderr)
        if args.Werror:
            write_error("warnings are errors here (--Werror): nothing was written")
            return 1
    directory = args.output or Path()
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"-o must be a folder (got the file {printable(str(directory))})")
    files.make_folder(directory)
    for suffix, text in ((".json", compiled.json_text), (".p4info.txtpb", compiled.p4info_text)):
        target = directory / (args.program.stem + suffix)
        files.write(target, text)  # all or nothing: a switch may be reading the file that was there
        print(printable(str(target)))
    return 0


def _unreadable(program: Path) -> str:
    """Why a program cannot be read; "" if it can."""
    try:
        if program.is_dir():
            return "a directory"
        return "" if os.access(program.resolve(strict=True), os.R_OK) else "permission denied"
    except OSError as error:
        return plain_file.why(error)
