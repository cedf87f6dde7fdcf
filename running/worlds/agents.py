"""The agents of a lab: started and reached."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from common.client import ControlClient, ControlError
from common.interpreter import python
from topo import Host
from topo.emulation import Lab, tell_of_dead

READY_S = 120.0  # Python starts in every host at once, which takes long on emulated processors
POLL_S = 0.05


def start_agents(
    lab: Lab,
    transport: str,
    settings: Mapping[str, Any],
    seed: int,
    journal: Callable[[Host], Path],
    *further: str,
    processes: int = 0,
) -> dict[str, ControlClient]:
    """An agent for every host, by name, as soon as it answers. RuntimeError with its last words when one does not.

    Hosts share one process per two processors that this process may use: a packet costs less where caches hold what
    other hosts have just used, and a lab fills half of a machine. `processes` is another number of them. `further`
    words go to each process.
    """

    words = python("-m", "endpoint", "agent", "--transport", transport, "--seed", str(seed), *further)
    for name, value in settings.items():
        words += ["--set", f"{name}={json.dumps(value)}"]
    hosts, started = list(lab.plan.hosts()), {}
    size = -(-len(hosts) // (processes or max(1, len(os.sched_getaffinity(0)) // 2)))
    for own in (hosts[first : first + size] for first in range(0, len(hosts), size)):
        argv = list(words)
        for host in own:
            argv += ["--profile", str(lab.profile(host)), "--netns", lab.name.netns(host)]
            argv += ["--socket", str(lab.agent_socket(host)), "--journal", str(journal(host))]
        started.update(dict.fromkeys(own, lab.start_agents(own, argv)))
    with ExitStack() as stack:
        clients = {host.name: stack.enter_context(connected(lab, host, *own)) for host, own in started.items()}
        stack.pop_all()
    return clients


def connected(lab: Lab, host: Host, process: subprocess.Popen[bytes], log: Path) -> ControlClient:
    """The agent's client as soon as it answers; RuntimeError when it has ended or takes too long."""
    deadline_s, pause = time.monotonic() + READY_S, threading.Event()  # never set: a wait that Ctrl-C ends
    while True:
        try:
            return ControlClient(lab.agent_socket(host))
        except ControlError as error:
            if process.poll() is not None:
                last = log.read_text().strip()[-500:] if log.exists() else "no output"
                raise RuntimeError(f"the agent of {host} ended with {process.returncode}: {last}") from error
            if time.monotonic() > deadline_s:
                raise RuntimeError(f"the agent of {host} did not answer within {READY_S:g} s (see {log})") from error
        pause.wait(POLL_S)


def running_agents(lab: Lab) -> dict[str, ControlClient]:
    """Clients of the agents that run in a lab, by host; none when none does. ControlError when one cannot be reached.

    Agents that were killed are left out, and named on standard error.
    """
    clients: dict[str, ControlClient] = {}
    dead: list[str] = []
    with ExitStack() as stack:
        for host in lab.plan.hosts():
            path = lab.agent_socket(host)
            client = ControlClient.of_living(path)
            if client is not None:
                clients[host.name] = stack.enter_context(client)
            elif path.exists():
                dead.append(host.name)
        stack.pop_all()
    tell_of_dead(dead)
    return clients
