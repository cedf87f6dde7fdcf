"""The cases of `rules.c`: each is a run of the program, whose lines say what it saw of which rule."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from conform.result import CHOICE, FAIL, PASS, UNREACHED, Result
from conform.rule import Rule
from running.sdk import INCLUDE
from switch.native import compiler

SOURCE = Path(__file__).with_name("rules.c")
CASES_S = 20
"""For which a case runs at most, in times of its patience: no case waits more often."""
END, STOPPED, ENDED = "end", "stopped", "ended"


class LibraryError(Exception):
    """The programs cannot be built against the library; the message has the compiler's words."""


class Library:
    """A library with the names of two devices, which may be one. LibraryError."""

    def __init__(
        self, path: Path, devices: Sequence[str], folder: Path, patience_s: int, include: Path = INCLUDE
    ) -> None:
        """The program is built in this folder."""
        self.devices, self._patience_s = devices, patience_s
        self._program = folder / "rules"
        words = [
            *compiler(),
            "-std=gnu11",
            "-D_GNU_SOURCE",
            "-O1",
            "-pthread",
            f"-I{include}",
            "-o",
            str(self._program),
        ]
        more = ["-Wl,--as-needed", "-libverbs"] if shutil.which("ibv_devices") else []
        link = [str(SOURCE), str(path.resolve()), f"-Wl,-rpath,{path.resolve().parent}", *more]
        done = subprocess.run([*words, *link], capture_output=True, text=True, check=False)
        if done.returncode:
            raise LibraryError(f"no program can be linked with {path}:\n{done.stderr[-2000:]}")

    def output(self, case: str, seed: int) -> str:
        """The output of a case; its last line tells how it ended, unless by itself."""
        command = [str(self._program), case, *self.devices, str(seed), str(self._patience_s)]
        limit_s = CASES_S * self._patience_s
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, check=False, timeout=limit_s)
        except subprocess.TimeoutExpired as late:
            return (
                f"{(late.stdout or b'').decode(errors='replace')}\n{ENDED}\tthe case did not end within {limit_s} s\n"
            )
        text = done.stdout.decode(errors="replace")
        if done.returncode < 0:
            text += f"\n{ENDED}\tthe program was ended by signal {-done.returncode}\n"
        return text


def __getattr__(name: str) -> Callable[[Library, int], str]:
    """A case as rules name it."""
    if f"CASE({name})" not in SOURCE.read_text():
        raise AttributeError(name)
    return partial(Library.output, case=name)


def judged(rule: Rule, outputs: Mapping[str, Sequence[str]]) -> Result:
    """The result of a rule in all outputs of its cases: the first failure counts."""
    passed, chosen, why = False, dict[str, None](), "its case said nothing about it"
    for case in (test.partition(":")[2] for test in rule.tests):
        for text in outputs[case]:
            lines = [line.split("\t") for line in text.splitlines()]
            mine = [line for line in lines if line[0] == rule.id and len(line) == 3]
            chosen |= {line[2]: None for line in mine if line[1] == "choice"}
            if failed := [line[2] for line in mine if line[1] == FAIL]:
                return Result(rule.id, FAIL, f"does not hold: {failed[0]}")
            passed |= bool(mine)
            for line in lines if not mine else []:
                if line[0] == ENDED:
                    return Result(rule.id, FAIL, line[-1])
                if line[0] == STOPPED:
                    why = f"the case stopped, because this failed: {line[-1]}"
    if chosen:
        return Result(rule.id, CHOICE, "; ".join(chosen))
    return Result(rule.id, PASS) if passed else Result(rule.id, UNREACHED, why)
