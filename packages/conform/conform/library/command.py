"""`./lab conform library`: a library of `mrc.h` and verbs, held against the rules."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from common.outcome import error_line
from common.scratch import Scratch
from common.terminal.standard_streams import write_error
from conform import rule
from conform.bundle import Bundle
from conform.command import add_choices, add_seeds, closed
from conform.library.again import OUTPUT
from conform.library.cases import Library, LibraryError, judged
from running.sdk import INCLUDE


def register(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = kinds.add_parser("library", help="a library of mrc.h and verbs")
    parser.add_argument("--lib", type=Path, required=True, metavar="PATH", help="the shared library, such as libmrc.so")
    parser.add_argument("--devices", required=True, metavar="NAME[,NAME]", help="one device, or two that are connected")
    parser.add_argument(
        "--include", type=Path, default=INCLUDE, metavar="DIR", help="the folder of mrc.h (default: the lab's)"
    )
    parser.add_argument(
        "--patience", type=int, default=10, metavar="S", help="wait so long for a completion (default: 10)"
    )
    add_choices(parser)
    add_seeds(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    names = options.devices.split(",")
    if len(names) > 2:
        write_error(f"conform library: --devices must name one or two devices (got {len(names)})")
        return 2
    try:
        rules = rule.chosen(rule.load(["library"]), options.group, options.only)
        with Scratch("mrclab-conform-") as folder:
            library = Library(options.lib, [names[0], names[-1]], folder, options.patience, options.include)
            return _try(options, library, rules)
    except (LibraryError, rule.RuleError, OSError) as error:
        write_error(f"conform library: {error_line(error)}")
        return 2


def _try(options: argparse.Namespace, library: Library, rules: list[rule.Rule]) -> int:
    cases = dict.fromkeys(test.partition(":")[2] for one in rules for test in one.tests)
    seeds = range(options.seed, options.seed + options.seeds)
    outputs = {case: [library.output(case, seed) for seed in seeds] for case in cases}
    results = [judged(one, outputs) for one in rules]
    bundle = Bundle("library", sys.argv[1:], {"library": str(options.lib), "seeds": list(seeds)}, results)
    for case, texts in outputs.items():
        for seed, text in zip(seeds, texts, strict=True):
            bundle.contents[OUTPUT.format(case, seed)] = text.encode()
    return closed(bundle, rules, options.output)
