"""The argument parser of `./lab` and of each command: an error comes from the command, and names the nearest option."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from common.terminal.printable import printable

OPTION = re.compile(r"--?[A-Za-z]")
CHOICE = re.compile("invalid choice: '(.*?)' ")


class CommandParser(argparse.ArgumentParser):
    """Options are given in full, also to subcommands: an abbreviation would change its meaning with the next option.

    argparse hands unknown words of a subcommand up to the whole command line, whose usage names no option of the
    subcommand. Here each parser rejects its own.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"allow_abbrev": False, **options})
        self._given: list[str] = []
        self._negative_number_matcher = re.compile(r"-\.?\d")  # also -5ms is a value: no option begins so

    def parse_known_args(  # type: ignore[override]  # argparse's own has two overloads
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self._given = list(args or ())
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(self._unknown_option(unknown) or f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, []

    def error(self, message: str) -> NoReturn:
        """Exit with status 2. A misspelled option is named rather than the argument that is wrong because of it."""
        if message.startswith("the following arguments are required"):
            message = self._unknown_option(self._given) or message
        elif (choice := CHOICE.search(message)) and choice[1] in self._given:
            message = self._unknown_option(self._given[: self._given.index(choice[1])]) or message
        super().error(printable(message))

    def _unknown_option(self, words: Sequence[str]) -> str:
        """The complaint about the first word that looks like an option and is none of this parser; "" without one."""
        for word in words:
            option = word.split("=")[0]
            if word == "--":
                return ""
            if OPTION.match(option) and option not in self._option_string_actions:
                from cli.suggestions import nearest_option  # knows the fault verbs, which take a moment to import

                meant = nearest_option(option, self._option_string_actions)
                return f"no option {option}" + (f": did you mean {meant}?" if meant else "")
        return ""
