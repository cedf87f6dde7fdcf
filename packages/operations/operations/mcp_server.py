"""Incidents and rehearsals as tools of the Model Context Protocol, for agents that are tried on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any

from anyio import from_thread
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from cli import workers_for
from common.outcome import error_line
from common.terminal.standard_streams import write_error
from operations.incident.client import ask, newest, start
from operations.incident.kind import NONE, check_level, kinds_of
from operations.incident.words import HELP
from operations.rehearsal.change import parsed
from operations.rehearsal.rehearse import RehearsedRun, done, rehearsed, spec
from operations.rehearsal.report import document, finished
from running.estimate import estimate
from studies.farm import Pool

Answer = dict[str, Any]
SEEDS_MAX = 100
INSTRUCTIONS = """
A laboratory for a multi-plane network of AI clusters, in virtual time. `start` builds a network under load in which
something is wrong, or nothing. Its time stands still between calls; each call costs lab time. Look with the tools, then
call `answer` with every fault that you are sure of, or `abstain`. Components are switches (p0s1), hosts (h3), NIC ports
(h3.p1), cables (p0l0-p0s1) and directions of cables (p0l0>p0s1). `net` is the score, from -1 to 1: each fault that is
named rightly adds its share, each wrong name takes one away, and abstaining gives 0. `rehearse` says whether a training
job would notice a planned change.
"""


@dataclass
class Fault:
    """A component and a kind of fault, as `kinds` lists them."""

    component: str
    kind: str


class Tools:
    """The tools: each public method is one, with its docstring, or else the tool's line in the help of `incident`."""

    def __init__(self, runs: Path, seeds: Callable[[], int]) -> None:
        self._runs = runs
        self._seeds = seeds

    def start(self, level: int = 1) -> Answer:
        """Build the lab of a new incident, of level 1 to 5. Its tickets are known to be harmless."""
        check_level(level)
        return self._ask("status", start(self._runs, self._seeds(), level).path)

    def kinds(self) -> list[Answer]:
        """The kinds of faults that this incident may have, each with its sort of component."""
        level = int(self._ask("status")["level"])
        return [{"kind": kind.name, "component": kind.component, "meaning": kind.meaning} for kind in kinds_of(level)]

    def inspect(self, node: str = "") -> Answer:
        return self._look("inspect", node=node)

    def counters(self, target: str = "", watch: float = 0.0) -> Answer:
        return self._look("counters", target=target, watch=watch)

    def prober(self, every: bool = False) -> Answer:
        return self._look("prober", all=every)

    def paths(self, source: str, destination: str) -> Answer:
        return self._look("paths", source=source, destination=destination)

    def trace(self, source: str, destination: str, ev: str = "") -> Answer:
        return self._look("trace", source=source, destination=destination, ev=ev)

    def tables(self, node: str, table: str = "") -> Answer:
        return self._look("tables", node=node, table=table)

    def log(self, node: str, count: int = 20) -> Answer:
        return self._look("log", node=node, count=count)

    def capture(self, link: str, seconds: float = 0.01, count: int = 200) -> Answer:
        return self._look("capture", link=link, seconds=seconds, count=count)

    def wait(self, seconds: float) -> Answer:
        return self._look("wait", seconds=seconds)

    def answer(self, faults: list[Fault], because: str = "") -> Answer:
        """End the incident with an answer: every fault. An empty list says that nothing is wrong."""
        named = [word for fault in faults for word in (fault.component, fault.kind)]
        return self._ask("answer", named=named or [NONE], because=because)

    def abstain(self) -> Answer:
        """End the incident without an answer, for a score of 0."""
        return self._ask("end")

    def rehearse(self, change: str, context: Context[Any], seeds: int = 10) -> Answer:
        """Make a planned change on many seeds, seconds each. `change` is the text of a change file, in TOML.

        For example: name = "a leaf", plan = "tiny", seconds = 5, and a table [[step]] with do = "replace",
        target = "p0l0", at_s = 2 and for_s = 1. A wrong key is answered with the valid ones.
        """
        if not 1 <= seeds <= SEEDS_MAX:
            raise ValueError(f"seeds must be between 1 and {SEEDS_MAX} (got {seeds})")
        planned = parsed(change, Path("change"))
        runs = count(1)

        def tell(rehearsed_run: RehearsedRun) -> None:
            from_thread.run(context.report_progress, next(runs), seeds)

        memory = estimate(spec(planned, 1, planned.flaps)).memory_bytes
        with Pool(workers_for(None, memory, write_error), done) as engine:
            made = [rehearsed(planned, range(1, seeds + 1), 0, tell, None, engine)]
        return document(made, finished(made, self._runs))

    def _look(self, tool: str, **arguments: Any) -> Answer:
        return self._ask("do", tool=tool, arguments=arguments, words="")

    def _ask(self, op: str, folder: Path | None = None, **arguments: Any) -> Answer:
        return ask(folder or newest(self._runs), op, **arguments)


def server(runs: Path, seeds: Callable[[], int]) -> MCPServer[Any]:
    """The server: incidents and rehearsals are kept in `runs`, and `seeds` gives each incident its seed."""
    made: MCPServer[Any] = MCPServer("mrclab", instructions=INSTRUCTIONS.strip(), log_level="WARNING")
    tools = Tools(runs, seeds)
    for name in vars(Tools):
        if not name.startswith("_"):
            made.add_tool(_complaining(getattr(tools, name)), description=HELP.get(name))
    return made


def _complaining(tool: Callable[..., Any]) -> Callable[..., Any]:
    """The tool, whose refusals reach the agent in words; other errors would be told without any."""

    @wraps(tool)
    def call(**given: Any) -> Any:
        try:
            return tool(**given)
        except (OSError, RuntimeError, ValueError) as error:
            raise ToolError(error_line(error)) from error

    return call
