"""Workloads on a lab that is up: started, looked at and stopped by separate commands.

A workload lives in the agents. One file per workload, beside the lab's record, says what was asked for, so that any
process can find the workload again. `down` ends both.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from common import files
from common.client import ControlClient
from common.terminal.choices import no_such
from endpoint import WorkloadGroup
from endpoint.workloads import KINDS, defaults
from running.transport_choice import transport as transport_of
from running.view import RealLab, RemoteHost, RemoteLab
from running.worlds import start_agents

__all__ = ["OVER", "Traffic", "check", "table", "verified"]

OVER = ("finished", "failed")
END_S = 10.0  # for agents to end
STOP_S = 30.0  # for a workload to end the round that it is in
JOURNAL_BYTES = 1 << 20  # of each of a host's two files: with a sample a second, about ten minutes each


class TrafficError(RuntimeError):
    """Traffic that cannot be; the message names what is wrong and what there is."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A workload as it was asked for. `started_ns` is of CLOCK_MONOTONIC, so that a set clock changes no order."""

    name: str
    kind: str
    ranks: tuple[str, ...]
    options: Mapping[str, Any]
    started_ns: int


class Traffic:
    """The workloads of one lab. Use as a context: connections to agents are closed at its end."""

    def __init__(self, view: RealLab | RemoteLab) -> None:
        self.view = view
        self.folder = view.root / "traffic"
        self.clients: dict[str, ControlClient | RemoteHost] = {}
        self._open = ExitStack()

    def __enter__(self) -> Traffic:
        self._take(self.view.agents())
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _take(self, clients: Mapping[str, ControlClient] | Mapping[str, RemoteHost]) -> None:
        for name, client in clients.items():
            self.clients[name] = client
            self._open.callback(client.close)

    def ensure_agents(self, name: str | None, settings: Mapping[str, Any], seed: int) -> None:
        """Start an agent in every host if there are none. TrafficError when those there are run another transport."""
        if self.clients:
            there = self.clients[next(iter(self.clients))].call("ping")["transport"]
            if settings or (name is not None and transport_of(name).agent != there):
                raise TrafficError(
                    f"agents run already, with transport {there}: `./lab traffic stop all` ends them, and the next"
                    " traffic starts new ones"
                )
            return
        assert isinstance(self.view, RealLab)  # in virtual time every host has an agent
        lab, plan = self.view.lab, self.view.plan
        chosen = transport_of(name or ("roce" if plan.encapsulation == "none" else "mrc"))
        chosen.check_fits(plan)
        journals = lab.site.journals or lab.root / "agents"
        journals.mkdir(exist_ok=True)
        for asked in self.asked():  # of agents that were all killed: no workload outlives them
            self._file(asked.name).unlink(missing_ok=True)
        both = {**chosen.settings, **settings}
        # A lab may stay up for weeks, and /run is memory: two small files per host, and slower samples. `up --journals`
        # keeps whole journals.
        bounded = () if lab.site.journals else ("--journal-bytes", str(JOURNAL_BYTES), "--sample-ms", "1000")
        self._take(start_agents(lab, chosen.agent, both, seed, lambda host: journals / f"{host}.jsonl", *bounded))

    def start(self, name: str, kind: str, ranks: Sequence[str], options: Mapping[str, Any]) -> WorkloadGroup:
        """Prepare, connect and start a workload. ControlError, with what the agents say, when its options cannot be."""
        file = self._file(name)
        self.folder.mkdir(exist_ok=True)
        asked = Asked(name, kind, tuple(ranks), dict(options), time.monotonic_ns())
        try:
            files.write_new(file, json.dumps(asdict(asked)))
        except FileExistsError:
            raise TrafficError(
                f"traffic {name!r} is there already: stop it first, or call it otherwise by --as"
            ) from None
        try:
            group = WorkloadGroup(
                self.clients, name=name, kind=kind, ranks=ranks, options=options, clock=self.view.now_ns
            )
            group.start()
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        return group

    def asked(self) -> list[Asked]:
        """The traffic that was started and not stopped, oldest first."""
        active = [Asked(**json.loads(path.read_text())) for path in sorted(self.folder.glob("*.json"))]
        return sorted(active, key=lambda asked: asked.started_ns)

    def find(self, name: str) -> Asked:
        for asked in self.asked():
            if asked.name == name:
                return asked
        there = ", ".join(asked.name for asked in self.asked()) or "none"
        raise TrafficError(f"no traffic {name!r}; there is: {there}")

    def join(self, asked: Asked) -> WorkloadGroup:
        """The ranks of a workload whose agents live."""
        ranks = [host for host in asked.ranks if host in self.clients]
        return WorkloadGroup.join(self.clients, name=asked.name, ranks=ranks, clock=self.view.now_ns)

    def stop(self, asked: Asked) -> dict[str, dict[str, Any]]:
        """End a workload, also one that another process started; every rank's last status."""
        group = self.join(asked)
        statuses = group.status()
        if any(status["state"] not in OVER for status in statuses.values()):
            group.stop()
            if len(group.ranks) == len(asked.ranks):  # without the peer whose agent was killed, no round ends
                group.wait(STOP_S)
        last = group.remove()
        self._file(asked.name).unlink(missing_ok=True)
        return last

    def end_agents(self) -> int:
        """End the agents of all hosts; how many there were. In virtual time agents last as long as their lab."""
        if not isinstance(self.view, RealLab):
            return 0
        lab = self.view.lab
        for client in self.clients.values():
            client.call("shutdown")
        deadline_s, pause = time.monotonic() + END_S, threading.Event()
        asked = [lab.plan.host(name) for name in self.clients]
        while any(ControlClient.listens(lab.agent_socket(host)) for host in asked):
            if time.monotonic() > deadline_s:
                raise TrafficError(f"agents have not ended within {END_S:g} s of being asked to")
            pause.wait(0.02)
        return len(self.clients)

    def _file(self, name: str) -> Path:
        if not name.replace("-", "").replace("_", "").isalnum():
            raise TrafficError(f"--as must consist of letters, digits, - and _ (got {name!r})")
        return self.folder / f"{name}.json"


def check(kind: str, ranks: Sequence[str], options: Mapping[str, Any]) -> None:
    """TrafficError for a kind or an option that there is not, with those there are."""
    known = defaults()
    if kind not in known:
        raise TrafficError(no_such("workload", kind, known))
    for name in options:
        if name not in known[kind]:
            raise TrafficError(f"{kind} has {no_such('option', name, known[kind])}")
    least, most = KINDS[kind].RANKS_MIN, KINDS[kind].RANKS_MAX
    if not least <= len(ranks) <= most:
        number = str(least) if least == most else f"{least} to {most}"
        raise TrafficError(f"{kind} must be given {number} hosts (got {len(ranks)}), such as h0 h3")
    if len(set(ranks)) != len(ranks):
        raise TrafficError(f"{kind} must be given each host once (got {' '.join(ranks)})")


def table(statuses: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """The rows that perftest or nccl-tests would print, one per rank that has results, the host's name first."""
    rows: list[list[str]] = []
    for host, status in statuses.items():
        own = status["result"]["table"]
        if own["rows"] and not rows:
            rows.append(["host", *own["columns"]])
        rows += [[host, *map(cell, row)] for row in own["rows"]]
    return rows


def cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def verified(statuses: Mapping[str, Mapping[str, Any]]) -> tuple[int, int]:
    """Bytes verified and bytes wrong, of all ranks."""
    results = [status["result"] for status in statuses.values()]
    return sum(r["bytes_verified"] for r in results), sum(r["bytes_wrong"] for r in results)
