"""The asking side: starts the process that keeps an incident, and finds it again by its folder."""

from __future__ import annotations

import json
import secrets
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from common.client import ControlClient, ControlError, ControlForeignError, ControlGoneError, ControlRefusedError
from common.giving import sudo_caller
from common.interpreter import python
from common.linux.rights import is_our_folder
from operations.incident.draw import draw
from operations.incident.server import READY, SOCKET
from operations.incident.session import SCENARIO, World
from running import RunDirectory
from topo.emulation import LabError, state

TICKETS = 1_000_000
LONGEST_S = 600.0
"""For an answer: a machine that is busy may need minutes for a command that takes two minutes of lab time."""

END_S = 30.0
"""For a lab that is taken down while it is built."""


class NoIncidentError(RuntimeError):
    """No incident is under way."""


def start(root: Path, seed: int, level: int, world: World = "simulated") -> RunDirectory:
    """Build the lab of an incident, in a process that stays. ValueError for a seed, level or folder that cannot be."""
    draw(seed, level)
    # The folder's number is not the seed, which would give everything away.
    directory = RunDirectory.create(root.resolve(), SCENARIO, secrets.randbelow(TICKETS))
    with (directory.path / "server.log").open("xb") as log:
        process = subprocess.Popen(
            python("-m", "operations.incident.server"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        asked = {"seed": seed, "level": level, "folder": str(directory.path), "world": world}
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.close()
        said = process.stdout.readline().decode().strip()
    except BaseException:  # also a Ctrl-C: no command would find the process
        end(process)
        raise
    finally:
        process.stdout.close()
    if said != READY:
        process.wait()
        raise RuntimeError(
            f"the incident did not begin: {said or 'its process ended'} ({directory.path / 'server.log'})"
        )
    return directory


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that builds a lab. It takes down what it has built; it is killed only when it does not end, or at a
    second Ctrl-C."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
        process.wait(END_S)
    process.kill()
    process.wait()


def newest(root: Path) -> Path:
    """The folder of the newest incident under way that is this user's, or root's. NoIncidentError when there is none.

    Folders of other users in `root` are passed over.
    """
    folders = [socket.parent for socket in sorted((root / SCENARIO).glob(f"*/{SOCKET}"))]
    ours = [folder for folder in folders if is_our_folder(folder)]
    if not ours:
        others = f" (passed over, because other users own them: {', '.join(map(str, folders))})" if folders else ""
        raise NoIncidentError(f"no incident is under way in {root}{others}: ./lab incident starts one")
    return ours[-1]


def namespace_of(node: str, answered: str) -> str:
    """The network namespace that the other side named, if it is the one of this node in a running incident's lab.

    The asking process may be root and enters it, so the records of labs decide, not the answer. ValueError otherwise.
    """
    for name, record in state.records().items():
        if isinstance(record, LabError) or record.run != SCENARIO or answered not in record.namespaces:
            continue
        if name.netns(record.plan.node(node)) == answered:
            return answered
    raise ValueError(f"the incident must name the network namespace of {node} in its lab (it named {answered!r})")


def ask(folder: Path, op: str, **arguments: Any) -> dict[str, Any]:
    """One request to the process of an incident. ControlError with its complaint; NoIncidentError if it has ended."""
    path = folder / SOCKET
    try:
        with ControlClient(path, LONGEST_S) as client:
            found = client.call(op, **arguments)
    except ControlForeignError as error:
        caller = sudo_caller()
        if caller is None or caller.user != error.user:
            raise
        raise ControlError(
            f"{error}: an incident in virtual time needs no root, so run the command without sudo"
        ) from None
    except ControlRefusedError:  # also when it was the last answer, such as of an end that could not be written
        raise
    except ControlError as error:
        if listens(path):
            raise
        path.unlink(missing_ok=True)
        raise NoIncidentError(
            f"the incident in {folder} is over, or its process was killed ({error}): ./lab incident starts another one"
        ) from None
    assert isinstance(found, dict)
    return found


def listens(path: Path) -> bool:
    """Whether a process listens on a socket, ours or another user's."""
    try:
        ControlClient(path).close()
    except ControlGoneError:
        return False
    except ControlError:
        return True
    return True
