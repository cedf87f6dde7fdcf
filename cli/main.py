"""The `mrclab` command: imports the module of the given word, runs the word, turns errors into one clear line."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from cli.root import NeedsRootError, need_root
from cli.words import WORDS, place

DESCRIPTION = "A laboratory for Multipath Reliable Connection (MRC) over an SRv6, packet-trimming P4 fabric."
EXAMPLES = """examples:
  ./lab run link-flap
  ./lab list
  ./lab trace h0 h5
  ./lab up tiny
  ./lab doctor
  ./lab install
  ./lab test"""


class _Version(argparse.Action):
    """Looked up only when asked for: metadata of packages take a moment to import."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        sys.stdout.write(f"mrclab {version('mrclab')}\n")
        parser.exit()


def parser(word: str | None = None) -> argparse.ArgumentParser:
    """The whole command line, of which only this word can be parsed; the others are named in the help."""
    whole = argparse.ArgumentParser(
        prog="./lab", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    whole.add_argument("--version", action=_Version, nargs=0, help="print the version and leave")
    subparsers = whole.add_subparsers(metavar="COMMAND", required=True, dest="command")
    if word is not None and word in WORDS:
        module, function = place(word)
        getattr(importlib.import_module(module), function)(subparsers)
    else:
        for name, known in WORDS.items():
            subparsers.add_parser(name, help=known.summary)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of the command; 2 when it could not be carried out, 130 for Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["--name"] and len(words) > 2:
        words = [words[2], *words[:2], *words[3:]]
    if not words:
        parser().print_help()
        return 2
    if not words[0].startswith("-") and words[0] not in WORDS:
        from cli.guesses import guess  # knows the fault verbs, which take a moment to import

        meant = guess(words[0], WORDS)
        hint = f"did you mean ./lab {meant}?" if meant else f"valid are {', '.join(WORDS)}"
        sys.stderr.write(f"mrclab: no command {words[0]!r}: {hint}\n")
        return 2
    try:
        namespace = parser(words[0]).parse_args(words)  # imports the word's module: Ctrl-C may come here, too
        reading = namespace.command == "fault" and namespace.verb is None
        if WORDS[namespace.command].root and not reading:
            need_root(WORDS[namespace.command].root)
        return int(namespace.run(namespace))
    except KeyboardInterrupt:
        sys.stderr.write("mrclab: interrupted\n")
        return 130
    except BrokenPipeError:
        # The reader has gone (such as `| head`): nothing is wrong, but the interpreter must not try to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, ValueError, RuntimeError, NeedsRootError) as error:
        sys.stderr.write(f"mrclab: {error}\n")
        return 2
