"""The driver between two namespaces: real frames, real link changes, and a host stack that is left alone."""

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from benchmarks.rig.namespaces import back_to_back, ip
from benchmarks.rig.profiles import profile as example
from endpoint import profile
from endpoint.packet_sockets.driver import Driver
from endpoint.packet_sockets.loop import Loop
from endpoint.packet_sockets.stackguard import StackGuard
from tests.helpers.waiting import eventually, ran
from topo.emulation.namespace import entered

pytestmark = pytest.mark.root

DATA_PORT, PROBE_PORT = 4791, 4793


def frame(host: int, plane: int, payload: bytes, udp_port: int = DATA_PORT) -> bytes:
    """Ethernet, IPv6 in IPv6 to the peer's uSID, UDP: headers enough for the filters."""
    ethernet = bytes([2, 0, 0, 0, 1 - host, plane, 2, 0, 0, 0, host, plane, 0x86, 0xDD])
    udp = (1).to_bytes(2, "big") + udp_port.to_bytes(2, "big") + (8 + len(payload)).to_bytes(2, "big") + bytes(2)
    address = bytes.fromhex("fd000001000000000000000000000001")
    inner = b"\x60\0\0\0" + (8 + len(payload)).to_bytes(2, "big") + bytes([17, 64]) + address * 2 + udp + payload
    outer = b"\x60\0\0\0" + len(inner).to_bytes(2, "big") + bytes([41, 64]) + address
    return ethernet + outer + bytes.fromhex("fcbbbbbb3001") + bytes(10) + inner


class Recorder:
    """A device that sends what it is given and remembers what it gets."""

    def __init__(self) -> None:
        self.outgoing: list[tuple[int, bytes]] = []
        self.received: list[tuple[int, bytes]] = []
        self.probes: list[tuple[int, bytes]] = []
        self.links: list[tuple[int, bool]] = []
        self.timer_ns: int | None = None
        self.fired_ns: int | None = None
        self.turns = 0
        self.late: list[tuple[int, int]] = []

    def receive(self, port: int, frames: Sequence[memoryview], now_ns: int) -> None:
        self.received += [(port, bytes(one)) for one in frames]

    def receive_probes(self, port: int, frames: Sequence[bytes], now_ns: int) -> None:
        self.probes += [(port, one) for one in frames]

    def port_changed(self, port: int, up: bool, now_ns: int) -> None:
        self.links.append((port, up))

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        self.late.append((late_ns, now_ns))

    def handle_timer(self, now_ns: int) -> None:
        self.fired_ns, self.timer_ns = now_ns, None

    def next_timer_ns(self) -> int | None:
        return self.timer_ns

    def packets_to_send(self, now_ns: int, limit: int) -> list[tuple[int, bytes]]:
        self.turns += 1
        batch, self.outgoing = self.outgoing[:limit], self.outgoing[limit:]
        return batch


class Running:
    """A driver in a thread; `call` runs something in its loop."""

    def __init__(self, namespace: str, host: int, **options: Any) -> None:
        nic = profile.parse(example(host))
        self.device = Recorder()
        self.loop = Loop()
        with entered(namespace):
            self.driver = Driver(
                self.loop, nic.ports, nic.mtu, data_udp_ports=[DATA_PORT], probe_udp_ports=[PROBE_PORT], **options
            )
        self._read, self._write = os.pipe()
        self._calls: list[Callable[[], None]] = []
        self.driver.add_reader(self._read, self._called)
        self.driver.serve(self.device)
        self._thread = threading.Thread(target=self.loop.run)
        self._thread.start()

    def call(self, what: Callable[[], None]) -> None:
        self._calls.append(what)
        os.write(self._write, b"x")

    def _called(self) -> None:
        os.read(self._read, 1)
        self._calls.pop(0)()

    def send(self, frames: list[tuple[int, bytes]]) -> None:
        self.call(lambda: self.device.outgoing.extend(frames))

    def close(self) -> None:
        self.call(self.loop.stop)
        self._thread.join(10)
        self.driver.close()
        self.loop.close()
        os.close(self._read)
        os.close(self._write)


@pytest.fixture(scope="module")
def namespaces() -> Iterator[list[str]]:
    with back_to_back() as names:
        yield names


@pytest.fixture
def pair(namespaces: list[str]) -> Iterator[tuple[Running, Running]]:
    with ExitStack() as stack:
        nics = []
        for host, name in enumerate(namespaces):
            nics.append(Running(name, host))
            stack.callback(nics[-1].close)
        for nic in nics:
            eventually(lambda nic=nic: len(nic.device.links) == 4, "the first link states")
        yield nics[0], nics[1]


def test_frames_of_every_size_cross_every_plane_whole_and_in_order(pair):
    left, right = pair
    sizes = [0, 1, 26, 1000, 4096, 4236]
    sent = [(plane + 1, frame(0, plane, os.urandom(size))) for size in sizes * 50 for plane in range(4)]
    left.send(sent)
    eventually(lambda: len(right.device.received) == len(sent), "frames are missing")
    for number in range(1, 5):
        assert [one for port, one in right.device.received if port == number] == [
            one for port, one in sent if port == number
        ]
    assert left.device.received == []  # neither an answer nor what it sent itself
    counts = right.driver.counts()
    assert sum(count.rx_packets for count in counts.values()) == len(sent)
    assert sum(count.rx_bytes for count in counts.values()) == sum(len(one) for _, one in sent)
    assert all(count.drop_socket == 0 for count in counts.values())


def test_probes_come_up_apart_from_data_and_other_traffic_does_not(pair):
    left, right = pair
    left.send([(1, frame(0, 0, b"other", 9)), (1, frame(0, 0, b"probe", PROBE_PORT)), (1, frame(0, 0, b"data"))])
    eventually(lambda: bool(right.device.probes and right.device.received), "a frame is missing")
    assert [one[-5:] for _, one in right.device.probes] == [b"probe"]
    assert [one[-4:] for _, one in right.device.received] == [b"data"]


def test_an_idle_driver_waits_and_a_deadline_is_kept(pair):
    left, _ = pair
    due: list[int] = []

    def arm() -> None:
        left.device.timer_ns = time.monotonic_ns() + 300_000_000
        due.append(left.device.timer_ns)
        left.device.turns = 0

    left.call(arm)
    eventually(lambda: left.device.fired_ns is not None, "the timer")
    assert left.device.fired_ns >= due[0]
    assert left.device.turns < 50  # 0.3 s of busy polling would be tens of thousands


def test_links_going_down_and_up_are_told_and_do_not_keep_the_loop_awake(pair, namespaces):
    left, right = pair
    assert sorted(left.device.links) == [(n, True) for n in range(1, 5)]
    left.device.links.clear()
    ip("-n", namespaces[0], "link", "set", "h0-p2", "down")
    eventually(lambda: left.device.links == [(3, False)] and (3, False) in right.device.links, "both ends see it")
    right.send([(3, frame(1, 2, b"lost"))])
    left.send([(3, frame(0, 2, b"refused")), (4, frame(0, 3, b"passes"))])
    eventually(lambda: [one[-6:] for _, one in right.device.received] == [b"passes"], "the other plane works")
    assert left.driver.counts()[3].tx_refused == 1
    turns = left.device.turns
    threading.Event().wait(0.2)
    assert left.device.turns - turns < 50
    ip("-n", namespaces[0], "link", "set", "h0-p2", "up")
    eventually(lambda: left.device.links[-1] == (3, True) and right.device.links[-1] == (3, True), "up again")
    left.send([(3, frame(0, 2, b"again"))])
    eventually(lambda: right.device.received[-1][1][-5:] == b"again", "the plane carries frames again")


def test_frames_that_find_the_ring_full_are_counted(namespaces):
    with ExitStack() as stack:
        left = Running(namespaces[0], 0)
        stack.callback(left.close)
        right = Running(namespaces[1], 1, ring_bytes=1)  # one block: some 58 frames
        stack.callback(right.close)
        asleep, wake = threading.Event(), threading.Event()

        def sleep() -> None:
            asleep.set()
            wake.wait(10)

        right.call(sleep)
        assert asleep.wait(10)
        left.send([(1, frame(0, 0, bytes(4096)))] * 500)
        eventually(lambda: left.driver.counts()[1].tx_packets == 500, "sent")
        wake.set()
        eventually(
            lambda: len(right.device.received) + right.driver.counts()[1].drop_socket == 500, "each is kept or counted"
        )
        assert right.driver.counts()[1].drop_socket > 400


def test_the_guard_hides_mrc_from_the_stack_while_ping_tcp_and_the_driver_go_on(namespaces):
    def icmp_errors() -> int:
        with entered(namespaces[1]), open("/proc/thread-self/net/snmp6") as file:
            rows = dict(line.split() for line in file)
        return int(rows["Icmp6OutDestUnreachs"])

    def plain(payload: bytes) -> bytes:  # to the host's own address: the stack would answer port unreachable
        udp = b"\0\1" + DATA_PORT.to_bytes(2, "big") + (8 + len(payload)).to_bytes(2, "big")
        source, target = (socket.inet_pton(socket.AF_INET6, f"fd00:1::{host}") for host in (1, 2))
        length = (8 + len(payload)).to_bytes(2, "big")
        checksum = ones_complement(source + target + length.rjust(4, b"\0") + b"\0\0\0\x11" + udp + payload)
        header = b"\x60\0\0\0" + length + bytes([17, 64]) + source + target
        return bytes([2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0x86, 0xDD]) + header + udp + checksum + payload

    with ExitStack() as stack:
        left, right = Running(namespaces[0], 0), Running(namespaces[1], 1)
        stack.callback(left.close)
        stack.callback(right.close)
        before = icmp_errors()

        def answered() -> bool:
            left.send([(1, plain(b"without the guard"))])  # again and again: the kernel limits the rate of its errors
            threading.Event().wait(0.1)
            return icmp_errors() > before

        eventually(answered, "the stack answers: the test can fail")
        with entered(namespaces[1]):
            guard = stack.enter_context(StackGuard([f"h1-p{plane}" for plane in range(4)], [DATA_PORT]))
        before = icmp_errors()
        left.send([(1, plain(b"guarded"))] * 20)

        def guarded() -> int:
            return sum(one.endswith(b"guarded") for _, one in right.device.received)

        eventually(lambda: guarded() == 20, "the driver still gets them")
        assert pong(namespaces[0], "fd00:1::2")
        assert tcp_echo(namespaces) == b"hello"
        assert icmp_errors() == before
        with entered(namespaces[1]):
            guard.remove()
            shown = subprocess.run(["tc", "qdisc", "show"], check=True, capture_output=True, text=True).stdout
        assert "clsact" not in shown


def test_a_guard_leaves_another_ones_clsact_in_place(namespaces):
    with entered(namespaces[1]):
        subprocess.run(["tc", "qdisc", "add", "dev", "h1-p3", "clsact"], check=True)
        with StackGuard(["h1-p3"], [DATA_PORT]):
            pass
        shown = ran(["tc", "qdisc", "show", "dev", "h1-p3"]).stdout
        subprocess.run(["tc", "qdisc", "del", "dev", "h1-p3", "clsact"], check=True)
    assert "clsact" in shown


def test_a_missing_interface_is_named(namespaces):
    data = example(0)
    data["ports"][1]["interface"] = "nowhere0"
    nic = profile.parse(data)
    with entered(namespaces[0]), pytest.raises(OSError, match="cannot open interface nowhere0 of port 2"):
        Driver(Loop(), nic.ports, nic.mtu, data_udp_ports=[DATA_PORT], probe_udp_ports=[PROBE_PORT])


def pong(namespace: str, address: str) -> bool:
    """ICMPv6 echo through the host's own stack; the kernel fills in the checksum."""
    with entered(namespace):
        icmp = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    with icmp:
        icmp.settimeout(10)
        icmp.sendto(b"\x80\0\0\0\0\1\0\1ping", (address, 0))
        while (answer := icmp.recv(2048))[0] != 0x81:
            pass  # neighbour discovery and our own request are heard too
        return answer[8:] == b"ping"


def tcp_echo(namespaces: list[str]) -> bytes:
    with entered(namespaces[1]):
        server = socket.create_server(("fd00:1::2", 0), family=socket.AF_INET6)
    with entered(namespaces[0]):
        client = socket.socket(socket.AF_INET6)
    with server, client:
        client.settimeout(10)
        client.connect(server.getsockname())
        accepted, _ = server.accept()
        with accepted:
            client.sendall(b"hello")
            return accepted.recv(5)


def ones_complement(data: bytes) -> bytes:
    data += b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(data[place : place + 2], "big") for place in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return (~total & 0xFFFF).to_bytes(2, "big")


def test_a_loop_that_slept_through_a_deadline_tells_the_device_by_how_much(pair):
    left, _ = pair
    due: list[int] = []

    def oversleep() -> None:
        left.device.timer_ns = time.monotonic_ns() + 20_000_000
        due.append(left.device.timer_ns)

    left.call(oversleep)
    left.call(lambda: time.sleep(0.1))  # the host does not run
    eventually(lambda: left.device.fired_ns is not None, "the timer")
    ((late_ns, now_ns),) = left.device.late
    assert late_ns == now_ns - due[0]
    assert late_ns > 50_000_000
    assert left.driver.late_ns == late_ns


def test_a_device_that_works_past_its_deadline_is_not_told_that_the_host_was_late(pair):
    left, _ = pair
    usual = left.device.packets_to_send
    waited: list[int] = []

    def work(now_ns: int, limit: int) -> list[tuple[int, bytes]]:
        setattr(left.device, "packets_to_send", usual)  # noqa: B010
        left.device.timer_ns = now_ns + 10_000_000
        began_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        while time.thread_time_ns() - cpu_ns < 100_000_000:
            pass
        waited.append(time.monotonic_ns() - began_ns - (time.thread_time_ns() - cpu_ns))
        return []

    left.call(lambda: setattr(left.device, "packets_to_send", work))
    eventually(lambda: left.device.fired_ns is not None, "the timer")
    assert sum(late_ns for late_ns, _ in left.device.late) <= waited[0] + 10_000_000


def test_a_loop_that_let_frames_lie_tells_the_device_for_how_long(pair):
    left, right = pair
    asleep, wake = threading.Event(), threading.Event()

    def stand_still() -> None:
        asleep.set()
        wake.wait(10)

    right.call(stand_still)
    assert asleep.wait(10)
    began_ns = time.monotonic_ns()
    left.send([(1, frame(0, 0, b"early"))])
    eventually(lambda: left.driver.counts()[1].tx_packets == 1, "the frame leaves")
    left_ns = time.monotonic_ns()
    threading.Event().wait(0.1)
    wake_ns = time.monotonic_ns()
    wake.set()
    eventually(lambda: bool(right.device.received), "the frame is missing")
    ((late_ns, now_ns),) = right.device.late
    assert wake_ns - left_ns <= late_ns <= now_ns - began_ns


@pytest.mark.parametrize("step_s", [30, -30])
def test_a_wall_clock_that_is_set_while_the_loop_sleeps_makes_it_no_later(pair, monkeypatch, step_s):
    """The kernel stamps a frame before the step, and the loop wakes after it."""
    left, right = pair
    began_ns, true = time.monotonic_ns(), time.time_ns
    right.call(lambda: monkeypatch.setattr(time, "time_ns", lambda: true() + step_s * 1_000_000_000))
    eventually(lambda: time.monotonic_ns() - began_ns > 200_000_000, "a sleep that could hide a stall")
    left.send([(1, frame(0, 0, b"usual"))])
    eventually(lambda: bool(right.device.received), "the frame is missing")
    assert sum(late_ns for late_ns, _ in right.device.late) < 100_000_000
