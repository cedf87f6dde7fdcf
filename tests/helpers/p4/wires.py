"""Veth pairs with their near ends in a network namespace that no one else sees and that ends with this process."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

from topo.emulation.namespace import entered

_SO_RCVBUFFORCE = 33
_PACKET_OUTGOING = 4


class Namespace:
    """Anonymous: it lives as long as a sleeping child, which the kernel ends with us, kill -9 or not."""

    def __init__(self) -> None:
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo ready; exec sleep infinity"]
        # A sanitizer that is preloaded into this process is not for programs of the system.
        self._environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        self.holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self._environment)
        assert self.holder.stdout is not None
        assert self.holder.stdout.readline() == "ready\n"
        self.run("ip", "link", "set", "lo", "up")
        self.run("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")

    def command(self, *words: str) -> list[str]:
        """The command, to be run inside, and to be killed when we die."""
        return ["setpriv", "--pdeathsig", "KILL", "nsenter", f"--net=/proc/{self.holder.pid}/ns/net", *words]

    def run(self, *words: str, text: str | None = None) -> str:
        command = self.command(*words)
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=self._environment)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr or done.stdout}"
        return done.stdout

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """This thread is in the namespace meanwhile; sockets opened there stay there."""
        with entered(Path(f"/proc/{self.holder.pid}/ns/net")):
            yield

    def close(self) -> None:
        self.holder.kill()
        self.holder.wait()
        assert self.holder.stdout is not None
        self.holder.stdout.close()

    def __enter__(self) -> Namespace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Wires:
    """Pairs `s<port>`, for a switch, and `w<port>`, whose packet sockets are ours."""

    def __init__(self, namespace: Namespace, ports: Sequence[int], mtu: int = 9000) -> None:
        self.sockets: dict[int, socket.socket] = {}
        for port in ports:
            near, far = f"s{port}", f"w{port}"
            namespace.run(
                "ip", "link", "add", near, "mtu", str(mtu), "type", "veth", "peer", "name", far, "mtu", str(mtu)
            )
            for name in (near, far):
                namespace.run("ip", "link", "set", name, "up")
            with namespace.inside():
                wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
                wire.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 26)
                wire.bind((far, 0))
                wire.setblocking(False)
            self.sockets[port] = wire

    def send(self, port: int, frame: bytes) -> None:
        self.sockets[port].send(frame)

    def drain(self) -> list[tuple[int, bytes]]:
        """What has arrived, port by port."""
        found = []
        for port, wire in self.sockets.items():
            with contextlib.suppress(BlockingIOError):
                while True:
                    try:
                        frame, address = wire.recvfrom(1 << 16)
                    except OSError as error:
                        if error.errno != errno.ENETDOWN:  # said once, after the link went down
                            raise
                        continue
                    if address[2] != _PACKET_OUTGOING:
                        found.append((port, frame))
        return found

    def collect(self, enough: Callable[[list[tuple[int, bytes]]], bool], timeout_s: float) -> list[tuple[int, bytes]]:
        """Everything that arrives until `enough` or the timeout."""
        until = time.monotonic() + timeout_s
        found: list[tuple[int, bytes]] = []
        while not enough(found) and (left := until - time.monotonic()) > 0:
            select.select(list(self.sockets.values()), [], [], left)
            found += self.drain()
        return found

    def close(self) -> None:
        for wire in self.sockets.values():
            wire.close()
