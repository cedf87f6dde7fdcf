"""Network namespaces by name: inspect, delete; entering them is `common/linux/netns.py`.

Entering is per thread, so everything here restores the caller's namespace before it returns.
"""

import array
import ctypes
import errno
import fcntl
import os
import socket
import struct
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from common.linux.netns import NETNS_DIR as NETNS_DIR
from common.linux.netns import enter as enter
from common.linux.netns import entered as entered
from common.linux.netns import path_of as path_of

__all__ = [
    "NETNS_DIR", "Tap", "delete", "enter", "entered", "exists", "listens", "offloads_off", "path_of", "pids", "run_ip",
]  # fmt: skip

_MNT_DETACH = 2
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCGIFMTU, _SIOCETHTOOL = 0x8913, 0x8914, 0x8921, 0x8946
_IFF_UP, _IFF_RUNNING = 0x1, 0x40
_ETH_P_ALL, _PACKET_OUTGOING = 3, 4  # linux/if_ether.h, linux/if_packet.h
_TCP_LISTEN = "0A"  # include/net/tcp_states.h
_ETHTOOL_GLINK = 0x0A
# ethtool's commands to set and to read an offload (linux/ethtool.h).
_OFFLOADS = 0x17, 0x1F, 0x24, 0x2C  # the ETHTOOL_S… of tx checksum, TSO, GSO, GRO

# Descriptors that every command started here inherits. While a lab is being changed its lock is among them, so that
# the lock outlives a killed process until the commands that it had started are over.
inherited: set[int] = set()

_libc = ctypes.CDLL(None, use_errno=True)


def exists(name: str) -> bool:
    """Whether a namespace, or what is left of one, has this name."""
    return path_of(name).exists()


def create(names: Iterable[str]) -> None:
    """Make namespaces, all in one process. Raises IpError."""
    run_ip([f"netns add {name}" for name in names])


def delete(name: str) -> bool:
    """Unmount and unlink, which is all that `ip netns del` does. Devices go with the last reference.

    Also removes the bare file that a process leaves when it dies while creating a namespace. False: there was none.
    """
    path = path_of(name)
    if not path.exists():
        return False
    if _libc.umount2(os.fsencode(path), _MNT_DETACH) != 0 and ctypes.get_errno() not in (errno.EINVAL, errno.ENOENT):
        number = ctypes.get_errno()
        raise OSError(number, f"cannot unmount {path}: {os.strerror(number)}")
    path.unlink(missing_ok=True)
    return True


def listens(name: str) -> bool:
    """Whether a TCP socket in a namespace waits for connections."""
    with entered(name):
        tables = [Path(f"/proc/thread-self/net/{table}").read_text() for table in ("tcp", "tcp6")]
    return any(row.split()[3] == _TCP_LISTEN for table in tables for row in table.splitlines()[1:])


def pids(names: Iterable[str]) -> list[int]:
    """Processes whose main thread is in one of these namespaces."""
    inodes = set()
    for name in names:
        try:
            inodes.add(path_of(name).stat().st_ino)
        except OSError:
            continue
    processes = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if (entry / "ns/net").stat().st_ino in inodes:
                    processes.append(int(entry.name))
            except OSError:
                continue  # it ended meanwhile
    return processes


# --- inside the namespace that this thread is in ---------------------------------------------------------------


def set_sysctls(settings: dict[str, str]) -> None:
    """By name under /proc/sys/net; a name that this kernel lacks is skipped."""
    for name, value in settings.items():
        path = Path("/proc/sys/net") / name
        if path.exists():
            path.write_text(value)


def _control_socket() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def set_up(interfaces: Iterable[str], up: bool = True) -> None:
    """Switch interfaces on; or off, and the far ends lose their carrier."""
    with _control_socket() as sock:
        for name in interfaces:
            flags = _flags(sock, name) & ~_IFF_UP | _IFF_UP * up
            fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sH14x", name.encode(), flags))


def is_up(interface: str) -> bool:
    """Whether an interface is switched on, with or without carrier."""
    with _control_socket() as sock:
        return bool(_flags(sock, interface) & _IFF_UP)


def is_running(interface: str) -> bool:
    """Whether programs see an interface's carrier, which may be a second after it is there."""
    with _control_socket() as sock:
        return bool(_flags(sock, interface) & _IFF_RUNNING)


def carrier(interface: str) -> bool:
    """Whether the interface and its cable are up at this moment; the RUNNING flag may lag by a second."""
    with _control_socket() as sock:
        return bool(_ethtool(sock, interface, _ETHTOOL_GLINK, 0))


def _flags(sock: socket.socket, name: str) -> int:
    answer = fcntl.ioctl(sock, _SIOCGIFFLAGS, struct.pack("16sH14x", name.encode(), 0))
    return int(struct.unpack("16sH14x", answer)[1])


def mtu(interface: str) -> int:
    """An interface's MTU in bytes."""
    with _control_socket() as sock:
        answer = fcntl.ioctl(sock, _SIOCGIFMTU, struct.pack("16si12x", interface.encode(), 0))
    return int(struct.unpack("16si12x", answer)[1])


def offloads_off(interfaces: Iterable[str]) -> None:
    """Have packet sockets see frames as they are on a wire: with whole checksums, none longer than the MTU.

    libpcap, and so BMv2, makes each place in its receive ring 64 KB long while a device may segment for its stack: a
    thirtieth of the packets then fit. Scatter-gather stays on: without it the kernel copies each frame once more.
    """
    with _control_socket() as sock:
        for name in interfaces:
            for command in _OFFLOADS:
                try:
                    _ethtool(sock, name, command, 0)
                except OSError as error:
                    if error.errno != errno.EOPNOTSUPP:  # a device that cannot change this offload, such as a macvlan
                        raise


def _ethtool(sock: socket.socket, interface: str, command: int, value: int) -> int:
    """Hand a struct ethtool_value to SIOCETHTOOL; the value that comes back."""
    block = array.array("B", struct.pack("II", command, value))
    address, _ = block.buffer_info()
    fcntl.ioctl(sock, _SIOCETHTOOL, struct.pack("16sP16x", interface.encode(), address))
    return int(struct.unpack("II", block.tobytes())[1])


class Tap:
    """Every frame that an interface sends or receives, as other packet sockets see them. Needs root."""

    def __init__(self, interface: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.htons(_ETH_P_ALL))
        self._socket.bind((interface, _ETH_P_ALL))

    def frames(self, seconds: float) -> Iterator[tuple[int, bool, bytes]]:
        """(CLOCK_MONOTONIC in ns, whether it leaves, the frame) for as long as `seconds`."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0:
            self._socket.settimeout(left_s)
            try:
                frame, address = self._socket.recvfrom(1 << 16)
            except TimeoutError:
                return
            yield time.monotonic_ns(), address[2] == _PACKET_OUTGOING, frame

    def close(self) -> None:
        self._socket.close()


# --- iproute2 -----------------------------------------------------------------------------------------------------


class IpError(RuntimeError):
    """iproute2 refused a command; the message has the command and its words."""


def run_ip(
    lines: Iterable[str], name: str | None = None, *, force: bool = False, tool: str = "ip", family: str = "-6"
) -> None:
    """A batch of `ip -6` (or `-4`) or `tc` commands in one process, in a namespace if named. `force` goes on after
    failures."""
    batch = list(lines)
    if not batch:
        return
    argv = [
        tool,
        *([family] if tool == "ip" else []),
        *(["-n", name] if name else []),
        *(["-force"] if force else []),
        "-batch",
        "-",
    ]
    text = "\n".join(batch) + "\n"
    done = subprocess.run(argv, input=text, text=True, capture_output=True, check=False, pass_fds=tuple(inherited))
    if done.returncode != 0 and not force:
        raise IpError(_explain(done.stderr, batch, tool, name))


def _explain(stderr: str, batch: list[str], tool: str, name: str | None) -> str:
    words = [line for line in stderr.splitlines() if line and not line.startswith("Command failed")]
    failed = ""
    for line in stderr.splitlines():
        if line.startswith("Command failed -:"):
            number = line.removeprefix("Command failed -:")
            if number.isdecimal() and int(number) <= len(batch):
                failed = batch[int(number) - 1]
    where = f" in namespace {name}" if name else ""
    return f"{tool} {failed or '(batch)'}{where}: {'; '.join(words) or 'failed'}"
