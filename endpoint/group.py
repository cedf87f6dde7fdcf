"""One workload on many hosts: the exchange of their agents' offers, a common start, and the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from common.client import ControlError, ControlTimeoutError

START_AHEAD_NS = 50_000_000
HOSTS_TOLD_MAX = 4
"""Of those with one complaint: a fabric may have thousands."""


class AgentClient(Protocol):
    """`common.client.ControlClient`, or anything that carries the operations to a host."""

    def send(self, op: str, **arguments: Any) -> int: ...
    def result(self, ident: int, timeout_s: float | None = None) -> Any: ...


def call(client: AgentClient, op: str, **arguments: Any) -> Any:
    """One operation and its result."""
    return client.result(client.send(op, **arguments))


class WorkloadGroup:
    """Prepares and connects the workload `name` on all `ranks` when it is made; removes it again if that fails.

    `clock` is the agents' clock in nanoseconds: CLOCK_MONOTONIC, or a world's virtual time.
    """

    def __init__(
        self,
        clients: Mapping[str, AgentClient],
        *,
        name: str,
        kind: str,
        ranks: Sequence[str],
        options: Mapping[str, Any] | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        missing = [host for host in ranks if host not in clients]
        if missing:
            raise ControlError(f"no agent for {', '.join(missing)}; there are agents for {', '.join(sorted(clients))}")
        self.name = name
        self._clock = clock
        self.ranks = list(ranks)
        self._clients = {host: clients[host] for host in ranks}
        prepare = {"name": name, "kind": kind, "ranks": self.ranks, "options": dict(options or {})}
        try:
            prepared = self._all("workload.prepare", dict.fromkeys(ranks, prepare))
            connect = {
                host: {
                    "name": name,
                    "offers": {peer: prepared[peer]["offers"][host] for peer in prepared[host]["offers"]},
                }
                for host in ranks
            }
            self._all("workload.connect", connect)
        except ControlError:
            self._remove_quietly()
            raise

    @classmethod
    def join(
        cls,
        clients: Mapping[str, AgentClient],
        *,
        name: str,
        ranks: Sequence[str],
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> WorkloadGroup:
        """A workload that another process has prepared on these ranks."""
        group = cls.__new__(cls)
        group.name, group.ranks, group._clock = name, list(ranks), clock
        group._clients = {host: clients[host] for host in ranks}
        return group

    def start(self, at_ns: int | None = None) -> int:
        """Start on every host at `at_ns` of the clock, which all hosts share, or shortly; return the time."""
        when_ns = self._clock() + START_AHEAD_NS if at_ns is None else at_ns
        self._all("workload.start", {host: {"name": self.name, "at_ns": when_ns} for host in self.ranks})
        return when_ns

    def stop(self) -> None:
        """Ask every rank to finish."""
        self._all("workload.stop", {host: {"name": self.name} for host in self.ranks})

    def wait(self, timeout_s: float) -> dict[str, dict[str, Any]]:
        """Every rank's status once all are over, or as it is after `timeout_s`: a rank whose peer's QP has died, for
        example, may wait for ever. Raises ControlError when an agent is gone."""
        deadline_ns = self._clock() + round(timeout_s * 1e9)
        idents = {host: self._clients[host].send("workload.wait", name=self.name) for host in self.ranks}
        statuses = {}
        for host, ident in idents.items():
            client = self._clients[host]
            try:
                statuses[host] = client.result(ident, max(0.001, (deadline_ns - self._clock()) / 1e9))
            except ControlTimeoutError:
                statuses[host] = client.result(client.send("workload.status", name=self.name))
        return statuses

    def status(self) -> dict[str, dict[str, Any]]:
        """Every rank's status as it is."""
        return self._all("workload.status", {host: {"name": self.name} for host in self.ranks})

    def remove(self) -> dict[str, dict[str, Any]]:
        """Destroy the QPs and memory on every host, in any state; return the last statuses."""
        return self._all("workload.remove", {host: {"name": self.name} for host in self.ranks})

    def _all(self, op: str, arguments: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """The operation on all hosts at the same time. Raises ControlError with the complaints, each with its hosts."""
        idents = {host: self._clients[host].send(op, **arguments[host]) for host in self.ranks}
        results: dict[str, Any] = {}
        complaints: dict[str, list[str]] = {}
        for host, ident in idents.items():
            try:
                results[host] = self._clients[host].result(ident)
            except ControlError as error:
                complaints.setdefault(str(error), []).append(host)
        if complaints:
            raise ControlError("; ".join(f"{some(hosts)}: {words}" for words, hosts in complaints.items()))
        return results

    def _remove_quietly(self) -> None:
        for client in self._clients.values():
            try:
                client.result(client.send("workload.remove", name=self.name))
            except ControlError:
                continue  # this host never had the workload


def some(hosts: Sequence[str]) -> str:
    """The first hosts by name, and how many more there are: "h0, h1", "h0, h1, h2, h3 and 8188 more"."""
    more = len(hosts) - HOSTS_TOLD_MAX
    return ", ".join(hosts[:HOSTS_TOLD_MAX]) + (f" and {more} more" if more > 0 else "")
