"""The processes of one command, one per host: started together, their output joined, ended together."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["RankProcess", "run"]

END_S = 5.0
"""Real time that processes get to end after SIGTERM."""
LINE_BYTES_MAX = 1 << 16
"""A longer line is printed in parts, so that a program without line ends costs no memory."""


@dataclass(frozen=True, slots=True)
class RankProcess:
    """A process to start: `prefix` puts it into its host, `environment` is added to this process's."""

    name: str
    prefix: Sequence[str]
    environment: Mapping[str, str]


class _Line:
    """The output of a process, cut into lines."""

    def __init__(self, name: str, write: Callable[[bytes], None]) -> None:
        self._head = f"{name}: ".encode()
        self._write = write
        self._rest = b""

    def take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._write(self._head + line + b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            self.end()

    def end(self) -> None:
        if self._rest:
            self._write(self._head + self._rest + b"\n")
        self._rest = b""


def run(ranks: Sequence[RankProcess], command: Sequence[str], write: Callable[[bytes], None]) -> int:
    """Run the command as every rank, and hand each line of output to `write` with the rank's name in front.

    When a rank fails, the others are ended, and a last line says which rank it was and how it ended. The worst exit
    status: the largest, where a signal counts 128 more than its number; ranks that were ended here do not count.
    OSError if the command cannot be started.
    """
    processes: dict[int, subprocess.Popen[bytes]] = {}
    failed = None
    with selectors.DefaultSelector() as selector:
        try:
            for rank in ranks:
                process = _start(rank, command)
                assert process.stdout is not None
                os.set_blocking(process.stdout.fileno(), False)
                processes[process.pid] = process
                selector.register(process.stdout, selectors.EVENT_READ, (process, _Line(rank.name, write)))
            failed = _join(selector)
        finally:
            _end(list(processes.values()))
            for key in list(selector.get_map().values()):
                _drain(key)
                key.fileobj.close()  # type: ignore[union-attr]
    if failed is None:
        return 0
    number, status = list(processes).index(failed.pid), int(failed.returncode)
    how = f"ended with status {status}"
    if status < 0:
        how = f"was killed by signal {-status} ({signal.strsignal(-status)})"
    others = "; the other ranks were ended" if len(ranks) > 1 else ""
    write(f"{ranks[number].name}: rank {number} {how}{others}\n".encode())
    return 128 - status if status < 0 else status


def _start(rank: RankProcess, command: Sequence[str]) -> subprocess.Popen[bytes]:
    # The kernel ends the process with this one, however this one ends.
    return subprocess.Popen(
        [*rank.prefix, "setpriv", "--pdeathsig", "KILL", "--", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **rank.environment},
        start_new_session=True,
    )


def _join(selector: selectors.BaseSelector) -> subprocess.Popen[bytes] | None:
    """Until all have ended, or one has failed: that one."""
    living = {key.data[0].pid: key.data[0] for key in selector.get_map().values()}
    while living:
        for key, _ in selector.select(0.05):
            if not _drain(key):
                selector.unregister(key.fileobj)
                key.fileobj.close()  # type: ignore[union-attr]
        for process in list(living.values()):
            if (status := process.poll()) is not None:
                del living[process.pid]
                if status:
                    return process  # type: ignore[no-any-return]
    return None


def _drain(key: selectors.SelectorKey) -> bool:
    """Take what has been printed; False after its end."""
    _, line = key.data
    while True:
        try:
            data = os.read(key.fd, 1 << 16)
        except BlockingIOError:
            return True
        if not data:
            line.end()
            return False
        line.take(data)


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """SIGTERM to the group of each that still runs, a moment's grace, SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline_s = time.monotonic() + END_S
        for process in processes:
            if process.poll() is None:
                _signal(process, number)
        for process in processes:
            try:
                process.wait(max(0.0, deadline_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                continue


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
