"""The compiled endpoint for commands that are long: they have it made first, or say that they do not.

A process has imported the endpoint in one form. After a build its command line starts again, in the other form.
"""

import argparse
import os
import sys
from typing import NoReturn

from common.outcome import error_line
from common.terminal.standard_streams import write_error

WORTH_S = 20.0
"""Of interpreted runs, by the estimate: less is over before a build is. A build is made once for each state of the
sources. One that is made quickly takes ten seconds, and halves the time of every later run in virtual time. A run on
real links takes as long, but can have faster links."""
LONG_S = 200.0
"""Of interpreted runs: more is worth a full build, which takes a minute and halves that time once more. Also of a
command whose many runs are not estimated."""
AGAIN = "MRCLAB_STARTED_AGAIN"
"""Set by a command line for the process that takes its place."""


class StartAgainError(BaseException):
    """Unwinds a command that has had the endpoint compiled: `cli.main` starts its words again."""


def want_compiled(
    arguments: argparse.Namespace, seconds: float, *, told: bool = True, quick: bool | None = None
) -> None:
    """Have the endpoint compiled for a command that would run for `seconds` interpreted; `quick` says whether a quick
    build will do, otherwise the seconds do.

    To be called before the command has made anything. Returns at once where the endpoint runs compiled. Where it is to
    run interpreted, this is said in one line on standard error with the reason; without `told` only for a command that
    is worth a build. Raises StartAgainError after a build.
    """
    from endpoint import compiled

    tried = os.environ.pop(AGAIN, None) is not None
    quick = seconds < LONG_S if quick is None else quick
    if compiled.FORM.compiled and (quick or not compiled.FORM.quick):
        return
    why = _refusal(arguments, seconds, tried)
    if why is None:
        why = _built(quick)
    if not compiled.FORM.compiled and (told or seconds >= WORTH_S):
        write_error(f"mrclab: the endpoint runs interpreted, at a third of its speed: {why}")


def _refusal(arguments: argparse.Namespace, seconds: float, tried: bool) -> str | None:
    """Why nothing is to be compiled; None where a build is due."""
    from common.compiled.finder import SWITCH, switch
    from endpoint import compiled

    if switch() == "off" or tried:
        return compiled.FORM.why
    if seconds < WORTH_S:
        return f"so short a command is not worth a build (./lab compile makes one, {SWITCH}=off forbids it)"
    if not getattr(arguments, "whole", False):
        return f"{compiled.FORM.why}, and a command within another makes none"
    return None


def _built(quick: bool) -> str:
    """Make a build and start again; why there is none, where it fails."""
    from common.compiled.build import ExtensionBuildError, build
    from endpoint import compiled

    try:
        build(compiled.UNIT, say, quick=quick)
    except (ExtensionBuildError, OSError) as error:
        return error_line(error).replace("\n", " · ")
    raise StartAgainError


def say(what: str) -> None:
    """A line of a build's progress."""
    length = "ten seconds" if what.endswith("quickly") else "half a minute"
    hint = f", once, about {length}; MRCLAB_COMPILED=off does without" if what.startswith("compiling") else ""
    write_error(f"mrclab: {what}{hint}")


def start_again() -> NoReturn:
    """This process's own command line from its beginning, in this process."""
    sys.stdout.flush()
    os.execve(sys.executable, sys.orig_argv, {**os.environ, AGAIN: "1"})
