"""Programs of a scenario: ordinary processes in the hosts, which use MRC through the door (docs/door.md)."""

from __future__ import annotations

import sys

from common.interpreter import python
from common.journal import Journal
from running.directory import RunDirectory
from running.worlds.world import Process, World
from scenarios.scenario import Program

_LOOK_NS = 50_000_000


class Programs:
    """One program on all its ranks. What it writes into its journal is read with the run's."""

    def __init__(self, program: Program, world: World, directory: RunDirectory) -> None:
        self.program = program
        self._world = world
        self._directory = directory
        self._ranks = list(program.ranks) if program.ranks is not None else list(world.clients)
        self._processes: dict[str, Process] = {}

    def start(self) -> None:
        """A process in each host."""
        for rank, host in enumerate(self._ranks):
            words = {
                "host": host,
                "rank": rank,
                "ranks": ",".join(self._ranks),
                "journal": self._directory.journal(f"{self.program.name}-{host}"),
                "folder": self._directory.path / self.program.name,
            }
            argv = [word.format(**words) for word in self.program.argv]
            if argv[0] == "python":
                # A module is the lab's or an installed one; a file may import what lies beside it.
                argv = python(*argv[1:]) if argv[1:2] == ["-m"] else [sys.executable, *argv[1:]]
            self._processes[host] = self._world.spawn(host, argv, f"{host}-{self.program.name}")

    def end(self, seconds: float, journal: Journal) -> None:
        """Let `seconds` of the world's time pass until all have ended, and end those that have not; journal every one
        that failed."""
        world = self._world
        deadline_ns = world.now_ns() + round(seconds * 1e9)
        while self._running() and world.now_ns() < deadline_ns:
            world.wait_until(min(world.now_ns() + _LOOK_NS, deadline_ns))
        late = self._running()
        for host, process in self._processes.items():
            if host in late:
                process.terminate()
                why = f"was still running {seconds:g} s after the last phase"
            elif status := process.poll():
                why = f"ended with status {status}"
            else:
                continue
            journal.write("error", message=f"program {self.program.name} on {host} {why}", fatal=False)

    def _running(self) -> list[str]:
        return [host for host, process in self._processes.items() if process.poll() is None]
