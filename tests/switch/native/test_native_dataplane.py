"""The driver thread over real veth pairs, in a network namespace that the test made."""

import contextlib
import gc
import itertools
import os
import resource
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from p4c.model import Program
from switch.config import DeviceConfig, PortSpec, SwitchConfigError
from switch.engine import PortConfig, PortCounters
from switch.native.dataplane import DrivenEngine, NativeDataPlane
from tests.helpers.engines.leaf_traffic import OWN_USID, install_own_usid, install_route, ipv6_frame, usid_address
from tests.helpers.p4.wires import Namespace
from tests.helpers.waiting import eventually

pytestmark = pytest.mark.root
FRAME = ipv6_frame(usid_address(OWN_USID, 0x2000, 0x3000), bytes(946))
ETH_P_ALL = 3
SOL_PACKET, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING, SO_RCVBUFFORCE, TP_STATUS_VLAN_VALID = 263, 8, 23, 33, 0x10
WAIT_S = 5.0
EPOLL_PWAIT2 = "441"  # on every architecture


class Wires:
    """veth pairs from a namespace that holds the hosts' ends to one that holds the switch's ends."""

    def __init__(self, count: int) -> None:
        self.hosts, self.switches = Namespace(), Namespace()
        self.netns = f"/proc/{self.switches.holder.pid}/ns/net"
        for port in range(1, count + 1):
            pair = f"ip link add h{port} mtu 9000 type veth peer s{port} mtu 9000 netns {self.switches.holder.pid}"
            self.hosts.run(*pair.split())
            self.hosts.run("ip", "link", "set", f"h{port}", "up")
            self.switches.run("ip", "link", "set", f"s{port}", "up")

    def open(self, port: int) -> socket.socket:
        """A packet socket at the host's end."""
        with self.hosts.inside():
            host = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            set_option(host, PACKET_IGNORE_OUTGOING)
            host.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
            host.bind((f"h{port}", ETH_P_ALL))
            host.settimeout(WAIT_S)
            return host

    def close(self) -> None:
        self.hosts.close()
        self.switches.close()


@pytest.fixture(scope="module")
def wires() -> Iterator[Wires]:
    if os.geteuid():
        pytest.skip("needs root to make network namespaces")
    wires = Wires(3)
    yield wires
    wires.close()


@pytest.fixture
def plane() -> Iterator[NativeDataPlane]:
    plane = NativeDataPlane()
    yield plane
    plane.close()


@pytest.fixture(scope="module")
def passthrough(compiled: Callable[[Path], Program]) -> Program:
    return compiled(Path(__file__).parent / "programs" / "passthrough.p4")


def device(wires: Wires, device_id: int = 1, ports: tuple[int, ...] = (1, 2), **config: int) -> DeviceConfig:
    specs = tuple(PortSpec(port, f"s{port}", wires.netns, PortConfig(**config)) for port in ports)  # type: ignore[arg-type]
    return DeviceConfig(device_id, f"sw{device_id}", specs)


def start(plane: NativeDataPlane, config: DeviceConfig, program: Program, received: list[bytes] | None = None):
    frames = received if received is not None else []
    engine = plane.create(config, lambda frame, _: frames.append(frame))
    engine.load(program)
    install_own_usid(engine)
    install_route(engine)
    return engine


def test_frames_cross_the_switch_between_interfaces_of_another_namespace(wires, plane, leaf) -> None:
    engine = start(plane, device(wires), leaf)
    with wires.open(1) as source, wires.open(2) as sink:
        for number in range(200):
            source.send(FRAME[:-2] + struct.pack(">H", number))
        got = [sink.recv(65536) for _ in range(200)]
    assert [int.from_bytes(frame[-2:], "big") for frame in got] == list(range(200))
    assert got[0][38:54] == usid_address(0x2000, 0x3000).to_bytes(16, "big")
    counters = engine.port_counters(2, plane.now_ns())
    assert (counters.tx_packets, counters.drop_socket) == (200, 0)


def test_the_rate_of_a_port_holds_in_real_time(wires: Wires, plane: NativeDataPlane, leaf: Program) -> None:
    start(plane, device(wires, rate_bps=8_000_000, delay_ns=1_000_000), leaf)
    with wires.open(1) as source, wires.open(2) as sink:
        begun = time.monotonic_ns()
        for _ in range(50):
            source.send(FRAME)
        for _ in range(50):
            sink.recv(65536)
        took_ns = time.monotonic_ns() - begun
    assert took_ns >= 50 * 1_000_000 + 1_000_000


def test_moderated_turns_take_no_rate_away(wires: Wires, leaf: Program) -> None:
    """A frame takes 1 ms of the port and a turn comes every 20 ms: 100 frames leave in 100 ms, not in 100 turns."""
    with contextlib.closing(NativeDataPlane(turn_ns=20_000_000)) as plane:
        start(plane, device(wires, rate_bps=8_000_000), leaf)
        with wires.open(1) as source, wires.open(2) as sink:
            begun = time.monotonic_ns()
            for _ in range(100):
                source.send(FRAME)
            for _ in range(100):
                sink.recv(65536)
            took_ns = time.monotonic_ns() - begun
    assert 80_000_000 <= took_ns < 1_000_000_000


def test_a_moderated_turn_moves_all_that_is_due_within_a_turn_of_its_time(wires: Wires, leaf: Program) -> None:
    """Frames every 5 ms leave together, once in 40 ms, and none more than a turn early. How late they are is up to the
    machine, but for the median."""
    turn_ns, delay_ns, count = 40_000_000, 130_000_000, 24
    with contextlib.closing(NativeDataPlane(turn_ns=turn_ns)) as plane:
        start(plane, device(wires, delay_ns=delay_ns), leaf)
        sent_ns: list[int] = []
        arrived_ns: list[int] = []
        with wires.open(1) as source, wires.open(2) as sink:
            reader = threading.Thread(
                target=lambda: arrived_ns.extend(time.monotonic_ns() for _ in range(count) if sink.recv(65536))
            )
            reader.start()
            for _ in range(count):
                sent_ns.append(time.monotonic_ns())
                source.send(FRAME)
                time.sleep(0.005)
            reader.join()
    took_ns = sorted(arrived - sent for sent, arrived in zip(sent_ns, arrived_ns, strict=True))
    assert took_ns[0] >= delay_ns - turn_ns
    assert took_ns[count // 2] <= delay_ns + turn_ns
    groups = 1 + sum(later - earlier > turn_ns // 20 for earlier, later in itertools.pairwise(arrived_ns))
    assert groups <= count // 2


def test_how_late_a_frame_left_is_told_once(wires: Wires, plane: NativeDataPlane, leaf: Program) -> None:
    engine = start(plane, device(wires, delay_ns=20_000_000), leaf)
    plane.lateness()
    with wires.open(1) as source, wires.open(2) as sink:
        source.send(FRAME)
        eventually(lambda: engine.port_counters(1, plane.now_ns()).rx_packets == 1, "waited in vain", WAIT_S)
        driver = engine.driver
        driver.c.driver_enter(driver.handle)  # nothing moves while the gate is held
        time.sleep(0.1)
        driver.c.driver_leave(driver.handle, None)
        sink.recv(65536)
    found = plane.lateness()
    ((due_ns, done_ns),) = [span for span in found.spans if span[1] - span[0] > 40_000_000]
    assert 60_000_000 < done_ns - due_ns < 10**9
    assert found.sum_ns >= done_ns - due_ns
    again = plane.lateness()
    assert (again.spans, again.sum_ns) == ((), found.sum_ns)


@pytest.mark.parametrize(("end", "delay_ns", "counted_min"), [("near", 2_000_000_000, 20), ("far", 200_000_000, 0)])
def test_frames_that_were_propagating_when_the_cable_was_pulled_died_of_the_port(
    wires: Wires, plane: NativeDataPlane, leaf: Program, end: str, delay_ns: int, counted_min: int
) -> None:
    """The switch is told first, as the lab does. At the near end the kernel refuses frames with ENETDOWN, at the far
    end with ENOBUFS, until within a second it notices that there is no carrier: from then on it swallows them."""
    specs = (PortSpec(1, "s1", wires.netns), PortSpec(3, "s3", wires.netns, PortConfig(delay_ns=delay_ns)))
    engine = plane.create(DeviceConfig(1, "sw1", specs), lambda *_: None)
    engine.load(leaf)
    install_own_usid(engine)
    install_route(engine, out_port=3)
    namespace, interface = (wires.switches, "s3") if end == "near" else (wires.hosts, "h3")

    def counted() -> PortCounters:
        return engine.port_counters(3, plane.now_ns())

    try:
        with wires.open(1) as source:
            for _ in range(20):
                source.send(FRAME)
            eventually(lambda: counted().tx_packets == 20, "waited in vain", WAIT_S)
            engine.configure_port(3, PortConfig(up=False, delay_ns=delay_ns), plane.now_ns())
            namespace.run("ip", "link", "set", interface, "down")
            eventually(lambda: engine.next_event_ns() is None, "waited in vain", WAIT_S)
        assert counted_min <= counted().drop_port_down <= 20
        assert counted().drop_socket == 0
    finally:
        namespace.run("ip", "link", "set", interface, "up")


def test_a_vlan_tag_survives(wires: Wires, plane: NativeDataPlane, passthrough: Program) -> None:
    """The kernel takes 802.1Q tags out of the frames that it hands to packet sockets."""
    plane.create(device(wires), lambda *_: None).load(passthrough)
    tagged = FRAME[:12] + b"\x81\x00\x60\x07" + FRAME[12:]
    service_tagged = FRAME[:12] + b"\x88\xa8\x00\x09" + FRAME[12:]
    with wires.open(1) as source, wires.open(2) as sink:
        set_option(sink, PACKET_AUXDATA)
        for frame in (tagged, service_tagged, FRAME):
            source.send(frame)
        assert [received_frame(sink) for _ in range(3)] == [tagged, service_tagged, FRAME]


def test_a_checksum_that_was_left_to_hardware_is_completed(wires, plane, passthrough) -> None:
    """A host's own UDP leaves a veth with half a checksum."""
    plane.create(device(wires), lambda *_: None).load(passthrough)
    wires.hosts.run("ip", "address", "replace", "192.0.2.1/24", "dev", "h1")
    wires.hosts.run("ip", "neigh", "replace", "192.0.2.9", "lladdr", "02:00:00:00:00:09", "dev", "h1")
    with wires.hosts.inside():
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with wires.open(2) as sink, sender:
        sender.sendto(b"an odd payload", ("192.0.2.9", 4791))
        frame = next(frame for frame in iter(lambda: sink.recv(65536), b"") if frame[23:24] == b"\x11")
    pseudo = frame[26:34] + b"\x00\x11" + frame[38:40]
    assert frame[40:42] != b"\x00\x00"
    assert ones_complement_sum(pseudo + frame[34:]) == 0xFFFF


def test_frames_that_nobody_read_in_time_are_counted(wires, plane, passthrough) -> None:
    engine = plane.create(device(wires), lambda *_: None)
    engine.load(passthrough)
    assert isinstance(engine, DrivenEngine)
    sent = 20_000
    with wires.open(1) as source:
        with engine._gate:  # the driver's thread has to wait
            for _ in range(sent):
                source.send(FRAME)
        eventually(lambda: sum(counts(engine.port_counters(1, 0))) == sent, "waited in vain", WAIT_S)
    received, dropped = counts(engine.port_counters(1, 0))
    assert dropped > 1000
    assert received > 1000


def counts(counters: PortCounters) -> tuple[int, int]:
    return counters.rx_packets, counters.drop_socket


def ones_complement_sum(data: bytes) -> int:
    total: int = sum(struct.unpack(f">{(len(data) + 1) // 2}H", data + bytes(len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def set_option(packet_socket: socket.socket, option: int) -> None:
    packet_socket.setsockopt(SOL_PACKET, option, 1)


def received_frame(sink: socket.socket) -> bytes:
    """The next frame as it was on the wire: with the tag that the kernel hands over beside it (packet(7))."""
    data, ancillary, _, _ = sink.recvmsg(65536, 256)
    for level, kind, aux in ancillary:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, _, _, _, _, tci, tpid = struct.unpack("=IIIHHHH", aux[:20])
            if status & TP_STATUS_VLAN_VALID:
                return data[:12] + struct.pack(">HH", tpid, tci) + data[12:]
    return data


def test_devices_stop_and_crash_without_touching_each_other(wires, plane, leaf) -> None:
    first = start(plane, device(wires, 1, (1, 2)), leaf)
    second = plane.create(DeviceConfig(2, "sw2", (PortSpec(1), PortSpec(2))), lambda *_: None)
    second.load(leaf)
    with wires.open(1) as source, wires.open(2) as sink:
        plane.set_running(2, False)
        second.reset()
        source.send(FRAME)
        assert sink.recv(65536)
        plane.set_running(1, False)
        source.send(FRAME)
        eventually(lambda: first.port_counters(1, plane.now_ns()).drop_no_program == 1, "waited in vain", WAIT_S)
        plane.set_running(1, True)
        source.send(FRAME)
        assert sink.recv(65536)
    assert plane.cpu_ns() > 0


def test_packets_go_in_and_out_by_the_cpu_port(wires: Wires, plane: NativeDataPlane, leaf: Program) -> None:
    received: list[bytes] = []
    config = device(wires)
    engine = start(plane, config, leaf, received)
    install_route(engine, out_port=config.cpu_port, next_usid=0x4444)
    with wires.open(1) as source, wires.open(2) as sink:
        plane.packet_out(1, FRAME)
        assert len(sink.recv(65536)) == len(FRAME)
        source.send(ipv6_frame(usid_address(0x4444, 1), b"to the controller"))
        eventually(lambda: len(received) == 1, "waited in vain", WAIT_S)
    assert received[0].endswith(b"to the controller")


@pytest.mark.parametrize("turn_ns", [0, 2_000_000])
def test_an_idle_driver_sleeps_until_something_comes(wires: Wires, leaf: Program, turn_ns: int) -> None:
    threads = {*os.listdir("/proc/self/task")}
    plane = NativeDataPlane(turn_ns=turn_ns)
    try:
        pythons = {str(thread.native_id) for thread in threading.enumerate()}
        (driver,) = {*os.listdir("/proc/self/task")} - threads - pythons
        start(plane, device(wires, rate_bps=80_000_000, delay_ns=1_000_000), leaf)
        eventually(lambda: waits_without_end(driver), "waited in vain", WAIT_S)
        with wires.open(1) as source, wires.open(2) as sink:
            for _ in range(20):
                source.send(FRAME)
                assert sink.recv(65536)
                eventually(lambda: waits_without_end(driver), "waited in vain", WAIT_S)
    finally:
        plane.close()


def waits_without_end(thread: str) -> bool:
    """Whether a thread of ours is blocked in epoll_pwait2 with a null timeout (proc(5), /proc/pid/task/tid/syscall)."""
    words = Path(f"/proc/self/task/{thread}/syscall").read_text().split()
    return words[0] == EPOLL_PWAIT2 and int(words[4], 16) == 0


@pytest.mark.parametrize(
    ("interface", "netns", "message"),
    [
        ("nowhere0", None, r"device sw9: port 1: interface nowhere0: cannot find the interface: No such device"),
        ("s1", "/run/netns/none", r"interface s1 in the namespace /run/netns/none: cannot open the network namespace"),
    ],
)
def test_a_missing_interface_or_namespace_is_named(wires, plane, interface, netns, message) -> None:
    gc.collect()  # files of earlier tests would be closed in between
    open_before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(SwitchConfigError, match=message):
        plane.create(DeviceConfig(9, "sw9", (PortSpec(1, interface, netns),)), lambda *_: None)
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_a_shortage_of_files_is_named_at_whatever_step_it_comes(wires: Wires, plane: NativeDataPlane) -> None:
    """The socket is opened in the namespace, which takes a descriptor before it."""
    config = device(wires, ports=(1,))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    refusals = []
    try:
        for extra in range(64):
            resource.setrlimit(resource.RLIMIT_NOFILE, (free + extra, hard))
            try:
                plane.create(config, lambda *_: None)
            except SwitchConfigError as error:
                refusals.append(str(error))
            else:
                break
        else:
            pytest.fail(f"refused with {extra} descriptors free: {refusals[-1]}")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    where = f"device sw1: port 1: interface s1 in the namespace {wires.netns}"
    steps = {refusal.removeprefix(f"{where}: cannot ").removesuffix(": Too many open files") for refusal in refusals}
    assert steps == {"open the network namespace"}
