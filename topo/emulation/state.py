"""The record of a running lab, written before anything is made, so that anyone can take the lab down.

It is in the directory of the lab's files, /run/mrclab for the default one (`LabName.root`).

`lab.json` names everything that `up` may create: the namespaces by name. The file is replaced atomically and removed
last. The lab's processes have a token in their environment. All users may read the record, but only root the token, in
the file `token`: with it, a stranger's processes could pass for the lab's.

`lock` is held by the process that changes the lab, for as long as that takes, and by the commands that this process has
started: when the process dies, the lock is free as soon as the last of those commands, which might still make
something, has ended.
"""

import fcntl
import json
import os
import pwd
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from common import files, locks, plain_file, scratch
from common.terminal.printable import printable
from topo.emulation import labname, namespace
from topo.emulation.labname import DEFAULT_LAB, LabName
from topo.emulation.process import alive, command_line, start_ticks
from topo.fault import Fault
from topo.plan import Plan
from topo.planfile import parse_document, plan_document

__all__ = ["LabRunningError", "LabState", "read_faults", "read_record", "records", "running_plan", "user"]

ROOT = DEFAULT_LAB.root  # of the default lab

LOCK_S = 120.0
"""For a command that changes the lab, or what a killed one has left; `down` of a large lab takes a minute."""

Phase = Literal["starting", "running"]


class LabError(RuntimeError):
    """The lab cannot do this now; the message says why and what can be done."""


class NoLabError(LabError):
    """No lab is running."""


class LabRunningError(LabError):
    """A lab is running already."""


@dataclass(slots=True)
class LabState:
    """`lab.json`, and the token."""

    token: str  # empty for users who may not read it
    phase: Phase
    plan: Plan
    namespaces: list[str]
    pid: int  # of the process that brought it up
    start_ticks: int
    command: str
    started_realtime_ns: int
    name: str = labname.DEFAULT
    owner: str = ""  # the user who brought it up: under sudo, the one who called sudo
    run: str = ""  # the scenario for which a run has brought it up
    details: dict[str, Any] = field(default_factory=dict)  # of the switch kinds: addresses of their sockets
    sealed: bool = False  # its faults are hidden: only the process that brought it up looks at it
    started_boot_ns: int = 0  # by CLOCK_BOOTTIME, which is never set

    @property
    def starter_alive(self) -> bool:
        """Whether the process that brought the lab up still runs; another process with its id does not count."""
        return alive(self.pid, self.start_ticks)

    @property
    def abandoned(self) -> bool:
        """Whether this lab is nobody's: half up, or of a run, and who began it has died. Any other lab outlives the
        command that brought it up."""
        return (self.phase != "running" or bool(self.run)) and not self.starter_alive

    def describe(self) -> str:
        by = f"process {self.pid} ({self.command}" + (")" if self.starter_alive else ", which has ended since)")
        whose = f", for user {self.owner}" if self.owner else ""
        minutes = self.age_s / 60
        return f"plan {self.plan.name!r} is {self.phase}{whose}, brought up {minutes:.1f} minutes ago by {by}"

    @property
    def age_s(self) -> float:
        """Seconds since it began to come up."""
        return (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self.started_boot_ns) / 1e9


def new_record(plan: Plan, token: str, name: LabName | None = None, run: str = "", *, sealed: bool = False) -> LabState:
    """A record of what is about to be made, by this process."""
    name = name or labname.chosen()
    pid, now_ns, boot_ns = os.getpid(), time.time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    names = [name.netns(node) for node in plan.nodes()]
    start = start_ticks(pid) or 0
    words, run = printable(command_line(pid)), printable(run)
    return LabState(
        token, "starting", plan, names, pid, start, words, now_ns, name.text, user(), run, {}, sealed, boot_ns
    )


def user() -> str:
    """Who this is: under sudo, the user who called sudo."""
    if os.geteuid() == 0 and (caller := os.environ.get("SUDO_USER")):
        return printable(caller)
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def read_record(root: Path | None = None) -> LabState | None:
    """The lab on record, by default the chosen one; None when there is none. LabError when it cannot be read."""
    root = root or labname.chosen().root
    try:
        document = json.loads((root / "lab.json").read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise LabError(f"{root / 'lab.json'} cannot be read: {plain_file.text_fault(error)}") from None
    try:
        document["plan"] = parse_document(document["plan"])
        return LabState(**{"token": _read_token(root), **document})
    except (ValueError, KeyError, TypeError) as error:
        raise LabError(f"the lab is of another version of this program ({error}); `down` removes it") from None


def records() -> dict[LabName, LabState | LabError]:
    """The labs on record on this machine, by name; for a record that cannot be read, why."""
    labs: dict[LabName, LabState | LabError] = {}
    for name in labname.named():
        try:
            record = read_record(name.root)
        except LabError as error:
            labs[name] = error
        else:
            if record is not None:
                labs[name] = record
    return labs


def none_running(name: LabName) -> str:
    """That the lab of this name is not there, which others are, and what can be done."""
    others = ", ".join(other.text for other in records() if other != name)
    which = "no lab is running" if name == DEFAULT_LAB else f"no lab of the name {name} is running"
    return f"{which}: ./lab up{name.option()} starts one" + (f"; running are: {others} (--name)" if others else "")


def running_plan() -> Plan | None:
    """The plan of the chosen lab; None when there is no default lab. NoLabError when there is none of a given name."""
    record = read_record()
    if record is None and (name := labname.chosen()) != DEFAULT_LAB:
        raise NoLabError(none_running(name))
    return None if record is None else record.plan


def _read_token(root: Path) -> str:
    """The token; empty where there is none, and for other users."""
    with suppress(FileNotFoundError, PermissionError):
        return (root / "token").read_text()
    return ""


@dataclass(frozen=True, slots=True)
class Remains:
    """The part of a record that `down` needs. Older versions of this program have the token in `lab.json`."""

    token: str
    namespaces: tuple[str, ...]
    switch_pid: int | None


def read_remains(root: Path) -> Remains | None:
    """From `lab.json`, whatever else is in it. LabError when not even this can be read."""
    path = root / "lab.json"
    try:
        document = json.loads(path.read_text())
        details = document.get("details") or {}
        switch_pid = (details.get("embedded") or {}).get("pid")
        token = str(document.get("token") or _read_token(root))
        return Remains(token, tuple(map(str, document["namespaces"])), switch_pid)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise LabError(
            f"{path} is not this program's ({type(error).__name__}: {plain_file.text_fault(error)}): end what it names"
            " by hand, then remove it"
        ) from None


def write_record(record: LabState, root: Path) -> None:
    """Replace `lab.json` whole."""
    document = {name: getattr(record, name) for name in record.__slots__ if name != "token"}
    files.write(root / "token", record.token, 0o600)
    document["plan"] = plan_document(record.plan)
    files.write_json(root / "lab.json", document)


def read_faults(root: Path | None = None) -> list[Fault]:
    """The faults in force on a lab, by default the chosen one, the oldest first."""
    root = root or labname.chosen().root
    try:
        return [Fault(**item) for item in json.loads((root / "faults.json").read_text())]
    except FileNotFoundError:
        return []


def write_faults(faults: list[Fault], root: Path) -> None:
    """Replace the list of faults in force whole."""
    files.write_json(root / "faults.json", [asdict(fault) for fault in faults])


def remove(root: Path, *, keep_lock: bool = False) -> None:
    """Remove the lab's directory: the record after all other files, then token, lock and the directory itself."""
    if not root.exists():
        return
    for entry in root.iterdir():
        if entry.name not in ("lab.json", "token", "lock"):
            scratch.remove_tree(entry)
    for name in ("lab.json", "token"):
        (root / name).unlink(missing_ok=True)
    if keep_lock:
        return
    (root / "lock").unlink(missing_ok=True)
    with suppress(OSError):  # not empty: someone is waiting for a new lock in it
        root.rmdir()


@contextmanager
def faults_locked(root: Path) -> Iterator[None]:
    """The right to change `faults.json`, among processes; waits for it. NoLabError when the lab has gone."""
    try:
        fd = locks.opened(root / "faults.lock")
    except FileNotFoundError:
        raise NoLabError("the lab was taken down") from None
    try:
        _wait(fd, "the lock of the lab's faults")
        yield
    finally:
        os.close(fd)


@contextmanager
def locked(root: Path | None = None, *, wait: bool = False) -> Iterator[None]:
    """The right to change a lab, by default the chosen one.

    LabError naming the holder when another process has it and `wait` is false, or has it for too long.

    The holder (`down`) may remove the lock file. A process that then gets the lock of the removed file starts again.
    """
    root = root or labname.chosen().root
    while True:
        root.mkdir(mode=0o755, parents=True, exist_ok=True)
        try:
            fd = locks.opened(root / "lock")
        except FileNotFoundError:
            continue  # a `down` removed the directory in between
        try:
            _take(fd, wait=wait)
            if not _in_place(fd, root):
                continue
            with suppress(OSError):  # a full disk: others wait without knowing for whom
                os.ftruncate(fd, 0)
                os.pwrite(fd, f"{os.getpid()} {start_ticks(os.getpid())}\n".encode(), 0)
            namespace.inherited.add(fd)
            try:
                yield
            finally:
                namespace.inherited.discard(fd)
                # A holder that has removed the lock has removed all, and another may have the folder by now.
                if _in_place(fd, root) and not (root / "lab.json").exists():
                    remove(root)
            return
        finally:
            os.close(fd)


def _in_place(fd: int, root: Path) -> bool:
    """Whether an open lock file is the one at its path. Only the holder removes it."""
    try:
        return os.stat(root / "lock").st_ino == os.fstat(fd).st_ino
    except FileNotFoundError:
        return False


def _take(fd: int, *, wait: bool) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        words = os.pread(fd, 64, 0).decode(errors="replace").split()
        if not wait and len(words) == 2 and all(map(str.isdecimal, words)):
            pid, ticks = map(int, words)
            if alive(pid, ticks):
                what = f"process {pid} ({command_line(pid)})"
                raise LabError(f"the lab is being changed by {what}; try again when it is done") from None
        _wait(fd, "the lock of the lab")


def _wait(fd: int, what: str) -> None:
    """Take a lock. LabError names the process that does not give it up."""
    try:
        locks.take(fd, what, LOCK_S)
    except locks.LockedError as error:
        raise LabError(str(error)) from None
