"""Agents as processes in namespaces; always ended by their parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.rig.namespaces import back_to_back
from benchmarks.rig.profiles import profile as example
from common.client import ControlClient
from topo.emulation.namespace import enter, path_of

ROOT = Path(__file__).parents[2]


class AgentProcess:
    def __init__(self, directory: Path, namespace: str, data: dict[str, Any], *options: str) -> None:
        host = data["host"]
        self.journal = directory / f"{host}.jsonl"
        self.socket = directory / f"{host}.sock"
        profile = directory / f"{host}.json"
        profile.write_text(json.dumps(data))
        words = ["--profile", profile, "--socket", self.socket, "--journal", self.journal, "--exit-with-parent"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "endpoint", "agent", *map(str, words), *options],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            preexec_fn=lambda: enter(path_of(namespace)),
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("ready "):
            raise RuntimeError(f"the agent of {host} did not start: {line!r}, exit status {self.process.wait()}")
        self.client = ControlClient(self.socket)

    def lines(self, kind: str | None = None) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.journal.read_text().splitlines()]
        return [line for line in lines if kind is None or line["kind"] == kind]

    def close(self) -> int:
        self.client.close()
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
        try:
            return self.process.wait(10)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()


@contextmanager
def agents(
    directory: Path, *options: str, planes: int = 4, **changes: Any
) -> Iterator[tuple[Sequence[AgentProcess], list[str]]]:
    """Agents of h0 and h1, back to back without switches, and their namespaces."""
    with back_to_back(planes) as names, ExitStack() as stack:
        started = []
        for host, name in enumerate(names):
            agent = AgentProcess(directory, name, example(host, planes=planes, **changes), *options)
            stack.callback(agent.close)
            started.append(agent)
        yield started, names
