"""Processes of a lab: started with the lab's token in their environment, found and ended by it.

The token is what makes `down` sure: it is in /proc before a process runs its first instruction, survives whoever
started it, and cannot belong to a stranger that got a reused process id.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from common.files import open_growing

__all__ = ["abandoned", "command_line", "find", "go_before_others"]

TOKEN_VARIABLE = "MRCLAB_LAB"
_PROJECT = Path(__file__).resolve().parents[2]  # so that `python -m switch` works from any directory
DEVICE_NICE = -10
"""Hardware waits for no program's turn to end. A processor that a program takes would look like a slow network."""
SIGTERM_GRACE_S = 2.0
_SIGKILL_GRACE_S = 5.0
_POLL_MS = 20


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot (field 22 of /proc/pid/stat); None when it is gone.

    With the pid this names a process for ever. A zombie counts as gone.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def alive(pid: int, ticks: int) -> bool:
    """Whether the process of this id is still the one that started then."""
    return start_ticks(pid) == ticks


def abandoned(folder: Path, prefix: str) -> list[Path]:
    """The entries `PREFIX<process>…` of a folder whose process has ended, killed before it could remove them.

    For network namespaces, whose names lie in /run of this machine and hold no lock; folders are `common/scratch.py`.
    """
    entries = []
    for path in folder.glob(f"{prefix}*"):
        owner = path.name.removeprefix(prefix).partition("-")[0]
        if owner.isdigit() and start_ticks(int(owner)) is None:
            entries.append(path)
    return entries


def command_line(pid: int) -> str:
    """A process's command line, for people to read; empty when the process is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def ancestry(pid: int) -> set[int]:
    """The process, its parent, and so on: a `down` typed inside a node's namespace must not end its own shell."""
    ancestors: set[int] = set()
    while pid > 1 and pid not in ancestors:
        ancestors.add(pid)
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
    return ancestors


def spawn(
    argv: Sequence[str], *, token: str, log: Path, netns: Path | None = None, bound: bool = False, device: bool = False
) -> subprocess.Popen[bytes]:
    """A process in a new session, its output in `log`, in a network namespace if given. `bound`: the kernel sends it
    SIGTERM when this thread ends, however it ends. `device`: it is NICs or switches."""
    python_path = os.pathsep.join(filter(None, [str(_PROJECT), os.environ.get("PYTHONPATH", "")]))
    prefix = ["setpriv", "--pdeathsig", "TERM", "--"] if bound else []
    prefix += ["nsenter", f"--net={netns}"] if netns else []
    log.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(open_growing(log), "ab") as output:
        started = subprocess.Popen(
            [*prefix, *argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": python_path, TOKEN_VARIABLE: token},
        )
    if device:
        go_before_others(started.pid)
    return started


def go_before_others(pid: int) -> None:
    """Give a process, which leads a session, the priority of NICs and switches, where that is allowed."""
    with contextlib.suppress(OSError):  # it has ended; or a container without CAP_SYS_NICE, or without autogroups
        os.setpriority(os.PRIO_PROCESS, pid, DEVICE_NICE)
        Path(f"/proc/{pid}/autogroup").write_text(str(DEVICE_NICE))  # each session is one


def log_tail(log: Path, lines: int = 15) -> str:
    """The end of a log, for an error message: the log itself goes with the lab."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "(no log)"


def find(token: str) -> list[int]:
    """Processes that were started with this token, and their children. None for an empty one."""
    if not token:
        return []
    needle = f"{TOKEN_VARIABLE}={token}".encode()
    processes = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if needle in (entry / "environ").read_bytes().split(b"\0") and start_ticks(int(entry.name)) is not None:
                    processes.append(int(entry.name))
            except OSError:
                continue  # it ended meanwhile
    return processes


def namespaces(pids: Iterable[int]) -> set[int]:
    """Inodes of the network namespaces that these processes are in."""
    inodes = set()
    for pid in pids:
        with contextlib.suppress(OSError):  # it ended meanwhile
            inodes.add(Path(f"/proc/{pid}/ns/net").stat().st_ino)
    return inodes


def end(targets: Iterable[int], grace_s: float = SIGTERM_GRACE_S) -> list[int]:
    """SIGTERM, a moment's grace, SIGKILL. Returns the processes that are still there, held by the kernel.

    Each is held by a pidfd, so that no stranger is signalled when an id is reused in between. A process that has lost
    its memory runs no more instructions and counts as gone, though the kernel may still be closing its sockets.
    """
    fds = {}
    for pid in targets:
        try:
            fds[pid] = os.pidfd_open(pid)
        except OSError:
            continue
    try:
        for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, _SIGKILL_GRACE_S)):
            for fd in fds.values():
                _signal(fd, number)
                if number == signal.SIGTERM:
                    _signal(fd, signal.SIGCONT)
            _wait_gone(fds, patience_s)
            if not fds:
                break
        return sorted(fds)
    finally:
        for fd in fds.values():
            os.close(fd)


def _signal(fd: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(fd, number)


def _wait_gone(fds: dict[int, int], grace_s: float) -> None:
    """A pidfd becomes readable when its process has ended, whether or not its parent has reaped it."""
    poller = select.poll()
    by_fd = {fd: pid for pid, fd in fds.items()}
    for fd in by_fd:
        poller.register(fd, select.POLLIN)
    deadline = time.monotonic() + grace_s
    while fds and time.monotonic() < deadline:
        ended = [fd for fd, _ in poller.poll(_POLL_MS)]
        ended += [fd for pid, fd in fds.items() if fd not in ended and without_memory(pid)]
        for fd in ended:
            poller.unregister(fd)
            os.close(fd)
            del fds[by_fd[fd]]


def without_memory(pid: int) -> bool:
    """Whether the process has ended, or is ending and runs no more instructions."""
    try:
        return Path(f"/proc/{pid}/statm").read_text().startswith("0 ")
    except OSError:
        return True
