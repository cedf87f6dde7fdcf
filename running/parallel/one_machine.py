"""The processes of a run on this machine, started without `mpiexec`: none of their sockets has an address.

`mpiexec` listens on TCP on all addresses of the machine, also if it is given an interface, and asks for no secret.
Here every process gets one end of a socket pair. Its questions about the other processes are answered in PMI 1.1, the
protocol by which mpich asks a process manager. The messages of a run go through shared memory.
"""

import contextlib
import ctypes
import os
import secrets
import selectors
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from running.parallel.communicator import PATIENCE_S

NO_NETWORK = {"UCX_TLS": "self,shm"}
"""UCX, which carries mpich's messages, also listens on TCP unless it is limited to shared memory."""
READ_BYTES = 1 << 16
ENDING_S = 2.0
"""Real time for a process to end by itself once it has closed its socket, so that its own status is told."""
_PR_SET_PDEATHSIG = 1
FOLDER = Path("/dev/shm")
PATTERNS = ("mpich_shm_*", "ucx_shm_posix_*")


def remove_leftovers(folder: Path = FOLDER, processes: Path = Path("/proc")) -> list[str]:
    """Remove this user's segments that no living process has open or mapped; returns their names. Processes of mpich
    that are killed leave them, and nothing else would ever remove them.

    The segments are listed before the processes are looked through, and each process's open files before its memory.
    A process that makes a segment opens it, maps it and closes the file, in this order: it is seen at every moment.
    Processes of other users hide what they have mapped, but their segments are theirs and stay.
    """
    segments = [path for pattern in PATTERNS for path in folder.glob(pattern) if _own(path)]
    if not segments:
        return []
    used = set(_used(processes))
    left = [path for path in segments if path.name not in used]
    for path in left:
        with contextlib.suppress(OSError):
            path.unlink()
    return sorted(path.name for path in left)


def _own(path: Path) -> bool:
    """Whether this is a file of this user, and no link to one."""
    with contextlib.suppress(OSError):
        status = path.lstat()
        return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    return False


def _used(processes: Path) -> Iterator[str]:
    """The names of the files that processes have open or mapped, without their folders, which differ in containers."""
    for place in processes.glob("[0-9]*"):
        try:
            for file in (place / "fd").iterdir():
                with contextlib.suppress(FileNotFoundError):
                    yield os.readlink(file).rpartition("/")[2]
            for line in (place / "maps").read_text(errors="replace").splitlines():
                yield line.rpartition("/")[2]
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Have the kernel end this process when the one that started it has gone."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


class OneMachine:
    """The processes of one run. Iterating gives the lines that they print, until all of them have ended."""

    def __init__(self, command: Sequence[str], count: int) -> None:
        """OSError when a process cannot be started; none is left then."""
        remove_leftovers()
        self._manager = ProcessManager(count)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._sockets: dict[int, socket.socket] = {}
        self._first_lost: int | None = None
        self._output, printed = os.pipe()
        try:
            for rank in range(count):
                self._start(command, rank, printed)
        except BaseException:
            self.end()
            raise
        finally:
            os.close(printed)

    def _start(self, command: Sequence[str], rank: int, printed: int) -> None:
        self._sockets[rank], theirs = socket.socketpair()
        place = {"PMI_FD": str(theirs.fileno()), "PMI_RANK": str(rank), "PMI_SIZE": str(self._manager.count)}
        with theirs:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, pass_fds=[theirs.fileno()],
                env={**NO_NETWORK, **os.environ, **place}, start_new_session=True, preexec_fn=end_with_parent,
            )  # fmt: skip
        self._processes.append(process)

    def __iter__(self) -> Iterator[str]:
        text, read = b"", b"more"
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            for rank, ours in self._sockets.items():
                selector.register(ours, selectors.EVENT_READ, rank)
            while read:
                for key, _ in selector.select():
                    if key.data is not None:
                        if not self._serve(key.data):
                            selector.unregister(key.fileobj)
                        continue
                    read = os.read(self._output, READ_BYTES)
                    *lines, text = (text + read).split(b"\n")
                    yield from (line.decode(errors="replace") for line in lines)
        yield text.decode(errors="replace")

    def _serve(self, rank: int) -> bool:
        """Answer a process; whether it may ask again. A process that is lost ends the others, which wait for it."""
        read = b""
        with contextlib.suppress(ConnectionError):
            read = self._sockets[rank].recv(READ_BYTES)
        for to, answer in self._manager.answers(rank, read):
            with contextlib.suppress(ConnectionError):  # its own end comes next
                self._sockets[to].sendall(answer)
        if not read and rank not in self._manager.finished:
            self._first_lost = rank if self._first_lost is None else self._first_lost
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._processes[rank].wait(ENDING_S)
            self._kill()
        return bool(read)

    def failure(self) -> str:
        """Wait for all processes. Returns which one failed first, and how; "" when none did."""
        statuses = [process.wait() for process in self._processes]
        failed = [rank for rank, status in enumerate(statuses) if status]
        if self._first_lost is not None:
            failed.insert(0, self._first_lost)
        if not failed:
            return ""
        status = statuses[failed[0]]
        how = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        return f"process {failed[0] + 1} of {len(statuses)}, {how}"

    def end(self) -> None:
        """End all processes, and close what they were given."""
        self._kill()
        for process in self._processes:
            process.wait(PATIENCE_S)
        for ours in self._sockets.values():
            ours.close()
        os.close(self._output)
        remove_leftovers()

    def _kill(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()


class ProcessManager:
    """PMI 1.1 as mpich's processes speak it: lines of `key=value` words, `cmd` first. Knows no socket."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.finished: set[int] = set()
        """The processes that have said that they need the others no more."""
        # mpich derives the name of its shared memory from this one, so that no two runs may share it.
        self._name = f"kvs_{secrets.token_hex(8)}"
        self._values = {"PMI_process_mapping": f"(vector,(0,1,{count}))"}  # all of them on the first machine
        self._unread = [b""] * count
        self._at_barrier: set[int] = set()

    def answers(self, rank: int, read: bytes) -> list[tuple[int, bytes]]:
        """The answers to these bytes of a process, each with the process that gets it."""
        *lines, self._unread[rank] = (self._unread[rank] + read).split(b"\n")
        replies: list[tuple[int, str]] = []
        for line in lines:
            replies += self._answer(rank, dict(word.partition("=")[::2] for word in line.decode().split()))
        return [(to, text.encode() + b"\n") for to, text in replies]

    def _answer(self, rank: int, words: dict[str, str]) -> list[tuple[int, str]]:
        asked, key = words.get("cmd", ""), words.get("key", "")
        if asked == "barrier_in":
            self._at_barrier.add(rank)
            if len(self._at_barrier) < self.count:
                return []
            self._at_barrier.clear()
            return [(to, "cmd=barrier_out") for to in range(self.count)]
        if asked == "put":
            self._values[key] = words["value"]
        elif asked == "finalize":
            self.finished.add(rank)
        known = key in self._values
        answer = {
            "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
            "get_maxes": "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024",
            "get_appnum": "cmd=appnum appnum=0",
            "get_universe_size": f"cmd=universe_size size={self.count}",
            "get_my_kvsname": f"cmd=my_kvsname kvsname={self._name}",
            "put": "cmd=put_result rc=0 msg=success",
            "get": f"cmd=get_result rc={0 if known else -1} value={self._values[key] if known else 'unknown'}",
            "finalize": "cmd=finalize_ack",
        }
        return [(rank, answer[asked])] if asked in answer else []
