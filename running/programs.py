"""Programs of a scenario: ordinary processes in the hosts, which use MRC over uverbs (docs/uverbs.md)."""

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from common import plain_file
from common.interpreter import python
from common.journal import Journal
from running import sdk
from running.directory import RunDirectory
from running.worlds.world import Process, World
from scenarios import Program

SERVER = "{server}"
OUTPUT_BYTES_MAX = 16_384
"""Of a command's output, so much of its end goes into the journal; all of it is in the run's `logs/`."""
_PLACES = re.compile(r"\{(host|rank|ranks|journal|folder|server)\}")
_LOOK_NS = 50_000_000
_LISTEN_S = 15.0  # of the run's time, for rank 0 to listen
_GRACE_S = 5.0  # of the run's time, for the others to end when one process has failed


class Programs:
    """One program on all its ranks. Its journal is read with the run's.

    `journal` gets what becomes of it: for a command of the user's, every start and end.
    """

    def __init__(self, program: Program, world: World, directory: RunDirectory, journal: Journal) -> None:
        self.program = program
        self._world = world
        self._directory = directory
        self._journal = journal
        self._ranks = list(program.ranks) if program.ranks is not None else list(world.clients)
        self._processes: dict[str, Process] = {}
        self._ended: set[str] = set()
        self._failed_ns: int | None = None
        self._verbs = program.command and sdk.uses_verbs(sdk.found_command(program.argv[0]))

    def start(self) -> None:
        """A process in each host; with {server}, the first one before all others."""
        waits = self.program.command and any(SERVER in word for word in self.program.argv)
        if self.program.command:
            (self._directory.path / self.program.name).mkdir()
        for rank, host in enumerate(self._ranks):
            if rank == 1 and waits:
                self._until_first_listens()
            words = self._words(rank, host)
            if self.program.command:
                self._journal.write("command", state="start", host=host, rank=rank, words=shlex.join(words))
                words = [*self._environment(), *words]
            self._processes[host] = self._world.spawn(host, words, f"{host}-{self.program.name}")

    def over(self) -> bool:
        """Whether the program has been started and runs nowhere any more. Ends the others when one has failed."""
        self._look()
        return len(self._processes) == len(self._ranks) and not self._running()

    def end(self, seconds: float) -> None:
        """Let `seconds` of the world's time pass until all have ended, and end those that have not; journal every one
        that failed."""
        world = self._world
        deadline_ns = world.now_ns() + round(seconds * 1e9)
        while not self.over() and world.now_ns() < deadline_ns:
            world.wait_until(min(world.now_ns() + _LOOK_NS, deadline_ns))
        for host in self._running():
            self._processes[host].terminate()
            self._told(host, None, f"was still running {seconds:g} s after the last phase")
        if self.program.command:
            return
        for host, process in self._processes.items():
            if host not in self._ended and (status := process.poll()):
                self._told(host, status, f"ended with status {status}")

    # --- processes ---------------------------------------------------------------------------------------------------

    def _running(self) -> list[str]:
        ended = self._ended
        return [host for host, process in self._processes.items() if host not in ended and process.poll() is None]

    def _look(self) -> None:
        """Journal the ends of a command's processes; end the others when one has failed a while ago."""
        if not self.program.command:
            return
        for host, process in self._processes.items():
            if host not in self._ended and (status := process.poll()) is not None:
                self._told(host, status, "")
                if status and self._failed_ns is None:
                    self._failed_ns = self._world.now_ns()
        if self._failed_ns is not None and self._world.now_ns() - self._failed_ns > _GRACE_S * 1e9:
            for host in self._running():
                self._processes[host].terminate()
                self._told(host, None, "ended by the run, because another process had failed")

    def _told(self, host: str, status: int | None, why: str) -> None:
        self._ended.add(host)
        if not self.program.command:
            message = f"program {self.program.name} on {host} {why}"
            self._journal.write("error", message=message, fatal=False)
            return
        rank = self._ranks.index(host)
        fields: dict[str, Any] = {"status": status, "cause": why, "output": self._output(host)}
        self._journal.write("command", state="stop", host=host, rank=rank, **fields)

    def _until_first_listens(self) -> None:
        world, first = self._world, self._ranks[0]
        deadline_ns = world.now_ns() + round(_LISTEN_S * 1e9)
        while self._processes[first].poll() is None and not world.listens(first):
            if world.now_ns() >= deadline_ns:
                message = f"the program on {first} listens on no TCP port after {_LISTEN_S:g} s: starting the others"
                self._journal.write("error", message=message, fatal=False)
                return
            world.wait_until(world.now_ns() + _LOOK_NS)

    # --- words -------------------------------------------------------------------------------------------------------

    def _words(self, rank: int, host: str) -> list[str]:
        program = self.program
        known = {
            "host": host,
            "rank": rank,
            "ranks": ",".join(self._ranks),
            "journal": self._directory.journal(f"{program.name}-{host}"),
            "folder": self._directory.path / program.name,
        }
        argv = list(program.argv)
        if program.command:
            if rank and any(SERVER in word for word in argv):
                known["server"] = self._reach(host, self._ranks[0])
            kept = [word for word in argv[1:] if rank or SERVER not in word]
            argv = [argv[0], *(self._reach(host, word) if word in self._world.clients else word for word in kept)]
        argv = [filled(word, known) for word in argv]
        if argv[0] == "python":
            # A module is the lab's or an installed one; a file may import what lies beside it.
            argv = python(*argv[1:]) if argv[1:2] == ["-m"] else [sys.executable, *argv[1:]]
        return argv

    def _reach(self, host: str, other: str) -> str:
        return self._world.reach(host, other, front_end=self._verbs)

    def _environment(self) -> list[str]:
        """The words that give a command its environment: the lab's own programs on PATH, and libmrc."""
        settings = {"PATH": sdk.search_path(), **(sdk.environment(sdk.library()) if self._verbs else {})}
        return ["env", *(f"{name}={value}" for name, value in settings.items())]

    def _output(self, host: str) -> str:
        """The end of what a process has printed."""
        try:
            with plain_file.open_plain(self._directory.log(f"{host}-{self.program.name}")) as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - OUTPUT_BYTES_MAX))
                text = file.read(OUTPUT_BYTES_MAX).decode(errors="replace")
        except OSError:
            return ""
        return text if size <= OUTPUT_BYTES_MAX else "…" + text.partition("\n")[2]


def filled(word: str, known: Mapping[str, Any]) -> str:
    """A word with its places filled in; other braces stay."""
    return _PLACES.sub(lambda match: str(known.get(match[1], match[0])), word)


def check_command(words: Sequence[str], *, emulated: bool) -> None:
    """Refuse a command that cannot be started, and build libmrc for one that needs it. ValueError, BuildError."""
    if not words:
        raise ValueError("--program must be a command, such as 'ib_write_bw -D 20 {server}' (got nothing)")
    if SERVER in words[0]:
        raise ValueError(f"--program: {SERVER} must come behind the command (got {words[0]!r})")
    executable = sys.executable if words[0] == "python" else sdk.found_command(words[0])
    if executable is None:
        raise ValueError(f"--program must name a command that there is (got {words[0]!r}: not a file, nor on PATH)")
    verbs = sdk.uses_verbs(executable)
    if not emulated:
        tcp = "programs that meet by TCP run on real links only; in virtual time there is no TCP between hosts"
        if any(SERVER in word for word in words):
            raise ValueError(f"--program with {SERVER}: {tcp} (docs/uverbs.md)")
        if verbs and (calls := sdk.connections_of(executable)):
            raise ValueError(f"--program: {words[0]} imports {' and '.join(calls)}: {tcp} (docs/libmrc.md)")
    if verbs:
        sdk.library()
