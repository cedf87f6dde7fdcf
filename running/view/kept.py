"""The asking side of `running.view.keeper`: starts the process that keeps a lab, and finds it by the lab's folder."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from common.client import ControlClient, ControlError, ControlForeignError, ControlRefusedError
from common.giving import sudo_caller
from common.interpreter import python
from common.linux.rights import is_our_folder

__all__ = ["SOCKET", "KeeperGoneError", "ask", "folders", "living", "start"]

SOCKET, READY = "lab.sock", "ready"
LONGEST_S = 600.0
"""For an answer: a machine that is busy may need minutes for a command that takes two minutes of lab time."""

END_S = 30.0
"""For a lab that is taken down while it is built."""


class KeeperGoneError(ControlError):
    """The process that kept a lab has ended."""


def start(module: str, folder: Path, asked: Mapping[str, Any]) -> None:
    """Build a lab in a process that stays: `module` is its program, which reads what was asked for. RuntimeError with
    what it said if the lab did not come up."""
    with (folder / "server.log").open("xb") as log:
        process = subprocess.Popen(
            python("-m", module), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps({**asked, "folder": str(folder)}).encode() + b"\n")
        process.stdin.close()
        said = process.stdout.readline().decode().strip()
    except BaseException:  # also a Ctrl-C: no command would find the process
        end(process)
        raise
    finally:
        process.stdout.close()
    if said != READY:
        process.wait()
        raise RuntimeError(f"{said or 'its process ended'} ({folder / 'server.log'})")


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that builds a lab. It takes down what it has built; it is killed only when it does not end, or at a
    second Ctrl-C."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
        process.wait(END_S)
    process.kill()
    process.wait()


def folders(root: Path) -> tuple[list[Path], list[Path]]:
    """The folders in `root` with a socket, the newest last: of this user or root, and of other users."""
    with_socket = [socket.parent for socket in sorted(root.glob(f"*/{SOCKET}"))]
    ours = [folder for folder in with_socket if is_our_folder(folder)]
    return ours, [folder for folder in with_socket if folder not in ours]


def ask(folder: Path, op: str, **arguments: Any) -> Any:
    """One request to the process that keeps the lab of a folder. ControlError with its complaint; KeeperGoneError if it
    has ended: the socket that a killed one leaves is removed."""
    path = folder / SOCKET
    try:
        with ControlClient(path, LONGEST_S) as client:
            return client.call(op, **arguments)
    except ControlForeignError as error:
        caller = sudo_caller()
        if caller is None or caller.user != error.user:
            raise
        raise ControlError(f"{error}: a lab in virtual time needs no root, so run the command without sudo") from None
    except ControlRefusedError:  # also when it was the last answer, such as of an end that could not be written
        raise
    except ControlError as error:
        if ControlClient.listens(path):
            raise
        path.unlink(missing_ok=True)
        raise KeeperGoneError(str(error)) from None


def living(paths: Iterable[Path]) -> list[Path]:
    """Those of these folders whose process lives; sockets of killed ones are removed."""
    alive = []
    for folder in paths:
        if ControlClient.listens(folder / SOCKET):
            alive.append(folder)
        else:
            (folder / SOCKET).unlink(missing_ok=True)
    return alive
