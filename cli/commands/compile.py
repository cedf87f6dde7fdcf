"""`mrclab compile`: the endpoint compiled, for faster virtual time and agents."""

from __future__ import annotations

import argparse
import json
import sys
import time

from cli.command_table import add


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add(subparsers, "compile", compile_command, __file__)
    parser.add_argument("--status", action="store_true", help="only say which form the next process will use")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def compile_command(arguments: argparse.Namespace) -> int:
    from endpoint import compiled

    if arguments.status:
        form = compiled.FORM
        if arguments.format == "json":
            print(json.dumps(form._asdict()))
        else:
            print(f"the endpoint runs {'compiled' if form.compiled else 'interpreted'}: {form.why}")
        return 0
    from common.compiled.build import build
    from common.terminal.console import LastingConsole

    started_s = time.monotonic()
    console = LastingConsole(stderr=True)
    with console.status("compiling") as status:

        def tell(what: str) -> None:
            status.update(what)
            if not sys.stderr.isatty():
                sys.stderr.write(f"mrclab: {what}\n")

        made = build(compiled.UNIT, tell)
    if arguments.format == "json":
        print(json.dumps({"folder": made.folder, "compilers": made.compilers}))
    else:
        print(f"the endpoint is compiled ({made.compilers}) after {time.monotonic() - started_s:.1f} s")
    return 0
