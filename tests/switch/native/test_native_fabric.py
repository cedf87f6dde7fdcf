"""The native fabric against one instant after the other: the same frames at the same times, whatever happens."""

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from p4c.frontend import compile_program
from p4c.model import Program, load
from switch.engine import Engine, EngineError, PortConfig, QueueConfig
from switch.fabric import End, HostFrame, NicPort
from switch.native import binding
from switch.native.engine import NativeEngine
from switch.native.fabric import NativeFabric
from switch.packet_log import NO_PORT, Fate, NodeKind as NodeKind, PacketRecord, in_order
from switch.reference.engine import ReferenceEngine
from tests.helpers.engines.fabric_life import FabricLife, Kind
from tests.helpers.engines.life_inputs import PROGRAMS, fabric_frames, populate_entries

PLAYED = Path(__file__).parents[1] / "frontend" / "programs"
MICROSECOND = 1000
MakeFabric = Callable[..., NativeFabric]


@pytest.fixture(scope="module")
def kinds(leaf: Program, spine: Program, compiled: Callable[[Path], Program]) -> list[Kind]:
    kinds = [Kind(program, fabric_frames(), populate_entries) for program in (leaf, spine)] * 3
    kinds += [Kind(program) for program in (leaf, spine)]
    sources = [PROGRAMS / "copies.p4", *(PLAYED / f"{name}.p4" for name in ("flow_cache", "match_kinds", "nested"))]
    kinds += [Kind(compiled(source)) for source in sources]
    grow = [bytes([rounds, grows, 0, 0]) + bytes(60) for rounds in range(3) for grows in range(2)]
    return kinds + [Kind(compiled(PROGRAMS / f"{name}.p4"), grow) for name in ("growing", "passthrough")]


def native(seed: int) -> Engine:
    return NativeEngine(seed=seed)


def reference(seed: int) -> Engine:
    return ReferenceEngine(seed=seed)


@pytest.mark.parametrize("block", range(4))
def test_random_fabrics_agree_with_one_instant_after_the_other(block: int, kinds: list[Kind]) -> None:
    assert sum(FabricLife(seed, kinds, native).live() for seed in range(block * 25, block * 25 + 25)) > 300


def test_packet_logs_of_random_fabrics_are_the_same_and_show_every_fate(kinds: list[Kind]) -> None:
    """`FabricLife` compares the logs of both sides; here they are shown to be about something."""
    fates: Counter[Fate] = Counter()
    for seed in range(3000, 3020):
        life = FabricLife(seed, kinds, native)
        life.live()
        fates += life.fates
    assert set(fates) == set(Fate)


def test_random_fabrics_agree_where_the_runtime_has_no_exchange(kinds, monkeypatch) -> None:
    monkeypatch.setattr(binding, "exchange", lambda: None)
    assert sum(FabricLife(seed, kinds, native).live() for seed in range(4000, 4010)) > 30


class WithoutDelay(FabricLife):
    bytes_min = 1


def test_random_fabrics_with_cables_of_no_delay_agree(kinds: list[Kind]) -> None:
    near = [kind._replace(delays_ns=(0, 0, 0, 1)) for kind in kinds if kind.populate]
    assert sum(WithoutDelay(seed, near, native).live() for seed in range(2000, 2025)) > 100


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_thousands_of_random_fabrics_agree_with_one_instant_after_the_other(block: int, kinds: list[Kind]) -> None:
    assert sum(FabricLife(10_000 * block + seed, kinds, native).live() for seed in range(100)) > 1000


@pytest.mark.slow
def test_random_fabrics_agree_with_the_interpreter(kinds: list[Kind]) -> None:
    assert sum(FabricLife(seed, kinds, reference).live() for seed in range(1000, 1012)) > 30


def test_a_packet_log_of_no_more_than_a_window_says_when_a_frame_left_and_arrives(fabric: NativeFabric) -> None:
    fabric.record_packets(5 * MICROSECOND, 21 * MICROSECOND)
    fabric.send([HostFrame(0, 0, 0, bytes(10)), HostFrame(0, 0, 0, bytes(range(20)))])
    everything(fabric)
    first, second = in_order(fabric.take_records())
    assert first == PacketRecord(
        t_ns=10 * MICROSECOND, arrives_ns=31 * MICROSECOND, queued_ns=0, node=0, port=0, port_in=NO_PORT, length=20,
        length_in=20, kind=NodeKind.HOST, head=bytes(range(20)), depth=0, priority=0, fate=Fate.SENT,
    )  # fmt: skip
    assert second == PacketRecord(
        t_ns=11 * MICROSECOND, arrives_ns=22 * MICROSECOND, queued_ns=11 * MICROSECOND, node=0, port=2, port_in=1,
        length=10, length_in=10, kind=NodeKind.SWITCH, head=bytes(10), depth=0, priority=0, fate=Fate.SENT,
    )  # fmt: skip
    assert fabric.take_records() == []


# --- one switch, by hand -------------------------------------------------------------------------------------------


@pytest.fixture(params=["exchange", "buffer"])
def made(
    compiled: Callable[[Path], Program], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MakeFabric]:
    """Hosts 0 and 1 at ports 1 and 2 of a switch with that program; 1 µs of cable, a byte a microsecond."""
    if request.param == "buffer":
        monkeypatch.setattr(binding, "exchange", lambda: None)
    elif binding.exchange() is None:
        pytest.skip("the runtime was built without Python's headers")
    fabrics: list[NativeFabric] = []

    def make(program: Path, counted: bool = False) -> NativeFabric:
        fabric = NativeFabric([1], hosts=2, host_ports=1, counted=counted)
        fabrics.append(fabric)
        fabric.switch(0).load(compiled(program))
        for host in (0, 1):
            fabric.connect(End("host", host, 0), End("switch", 0, host + 1))
            fabric.configure_nic_port(host, 0, NicPort(rate_bps=8_000_000, delay_ns=MICROSECOND))
            fabric.switch(0).configure_port(host + 1, PortConfig(rate_bps=8_000_000, delay_ns=MICROSECOND), 0)
        return fabric

    yield make
    for fabric in fabrics:
        fabric.close()


@pytest.fixture
def fabric(made: MakeFabric) -> NativeFabric:
    return made(PROGRAMS / "passthrough.p4")


def collected(fabric: NativeFabric, before_ns: int) -> list[HostFrame]:
    return sorted(arrival for host in fabric.gather(before_ns) for arrival in fabric.collect(host))


def everything(fabric: NativeFabric, until_ns: int = 10**9) -> list[HostFrame]:
    """What hosts get that send nothing more."""
    arrived = []
    while fabric.reached_ns < until_ns or (fabric.next_ns or until_ns) < until_ns:
        arrived += collected(fabric, min(fabric.run(None, until_ns), until_ns))
    return arrived


def test_a_frame_takes_its_bytes_over_the_rate_and_the_delay_of_both_cables(fabric: NativeFabric) -> None:
    fabric.send([HostFrame(0, 0, 0, bytes(10)), HostFrame(0, 0, 0, bytes(range(20)))])
    assert everything(fabric) == [
        HostFrame(22 * MICROSECOND, 1, 0, bytes(10)),
        HostFrame(52 * MICROSECOND, 1, 0, bytes(range(20))),  # 10 + 20 on the first cable, 20 on the second
    ]
    assert fabric.hops == 2


def test_a_host_frame_gets_room_for_large_headers(fabric: NativeFabric, tmp_path: Path) -> None:
    """The pool gave memory to the frame before it knew the program; a sanitizer sees a read beyond its end."""
    fields = "".join(f"bit<128> f{number}; " for number in range(150))
    headers = f"header large_t {{ {fields}}}\nstruct headers_t {{ large_t large; }}"
    source = tmp_path / "large.p4"
    source.write_text((PROGRAMS / "passthrough.p4").read_text().replace("struct headers_t { }", headers))
    fabric.switch(0).load(load(compile_program(source).json))
    fabric.send([HostFrame(0, 0, 0, bytes(range(60)))])
    assert everything(fabric) == [HostFrame(122 * MICROSECOND, 1, 0, bytes(range(60)))]


def test_what_surrounds_a_frame_takes_time_and_counts_nowhere(fabric: NativeFabric) -> None:
    fabric.configure_nic_port(0, 0, NicPort(rate_bps=8_000_000, delay_ns=MICROSECOND, overhead_bytes=24))
    fabric.switch(0).configure_port(2, PortConfig(rate_bps=8_000_000, delay_ns=MICROSECOND, overhead_bytes=24), 0)
    fabric.send([HostFrame(0, 0, 0, bytes(10)), HostFrame(0, 0, 0, bytes(10))])
    assert [arrival.t_ns for arrival in everything(fabric)] == [(34 + 1 + 34 + 1) * 1000, (68 + 1 + 34 + 1) * 1000]
    assert fabric.switch(0).port_counters(2, 0).tx_bytes == 20
    with pytest.raises(EngineError, match="cannot be negative"):
        fabric.configure_nic_port(0, 0, NicPort(rate_bps=8, overhead_bytes=-1))


def test_the_fabric_stops_where_a_host_may_answer(fabric: NativeFabric) -> None:
    fabric.send([HostFrame(0, 0, 0, bytes(10)), HostFrame(0, 0, 0, bytes(10))])
    horizon_ns = fabric.run(None, 10**9)
    first_ns = 22 * MICROSECOND
    assert fabric.reached_ns == first_ns + MICROSECOND  # an answer at once would reach the switch then
    assert horizon_ns == first_ns + 2 * MICROSECOND
    assert [arrival.t_ns for arrival in collected(fabric, horizon_ns)] == [first_ns]
    fabric.send([HostFrame(first_ns, 1, 0, b"answer")])
    assert [arrival.frame for arrival in everything(fabric)] == [bytes(10), b"answer"]
    with pytest.raises(EngineError, match="6 bytes by port 0 of host 0 at 0 ns: its time is one that the fabric"):
        fabric.send([HostFrame(0, 0, 0, b"before")])


def test_a_port_that_is_down_loses_what_comes_and_what_goes(fabric: NativeFabric) -> None:
    fabric.send([HostFrame(0, 0, 0, bytes(10))])
    fabric.configure_nic_port(1, 0, NicPort(up=False))
    fabric.send([HostFrame(0, 1, 0, bytes(10))])
    fabric.run(None, 10**9)
    assert fabric.next_ns == 22 * MICROSECOND
    assert everything(fabric) == []
    assert fabric.next_ns is None


def test_a_switch_that_is_wiped_keeps_what_is_on_its_cables(fabric: NativeFabric) -> None:
    fabric.send([HostFrame(0, 0, 0, bytes(10)), HostFrame(0, 0, 0, bytes(10))])
    fabric.run(None, 20_500)
    assert fabric.reached_ns == 20_500
    fabric.switch(0).reset()
    assert [arrival.t_ns for arrival in everything(fabric)] == [22 * MICROSECOND]
    assert fabric.switch(0).port_counters(1, 0).drop_no_program == 1


def test_calls_that_cannot_be_are_refused_by_name(fabric: NativeFabric) -> None:
    switch = fabric.switch(0)
    assert not hasattr(switch, "receive")  # its frames come by cables
    assert not hasattr(switch, "advance")  # its clock is the fabric's
    too_long = [HostFrame(0, 0, 0, bytes(16385))]
    no_port = [HostFrame(0, 0, 0, b"taken"), HostFrame(0, 0, 3, bytes(100))]
    many = [HostFrame(0, 0, 0, b"taken, too"), HostFrame(0, 0, 0, bytes(70000)), HostFrame(0, 0, 0, b"not taken")]
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: switch.set_running(False, 5), "5 ns is ahead of the fabric"),
        (lambda: switch.configure_port(1, PortConfig(), 0), "a cable of a fabric takes time"),
        (lambda: fabric.connect(End("host", 0, 0), End("switch", 0, 9)), "one of the ports has a cable already"),
        (lambda: fabric.connect(End("host", 2, 0), End("switch", 0, 9)), "no such port"),
        (lambda: fabric.connect(End("switch", 1, 0), End("switch", 0, 9)), "no such port"),
        (lambda: fabric.configure_nic_port(0, 1, NicPort()), "no such port"),
        (lambda: fabric.configure_nic_port(0, 0, NicPort(delay_ns=0)), "a cable of a fabric takes time"),
        (lambda: fabric.configure_nic_port(0, 0, NicPort(loss=1.5)), "a loss is a share"),
        (lambda: fabric.send(no_port), "100 bytes by port 3 of host 0"),
        (lambda: fabric.send(too_long), "16385 bytes by port 0 of host 0 at 0 ns: its length"),
        (lambda: fabric.send(many), "70000 bytes"),
        (lambda: fabric.send([HostFrame(-1, 0, 0, b"")]), "a frame of 0 bytes by port 0 of host"),
        (lambda: fabric.send([HostFrame(1 << 64, 0, 0, b"")]), "a frame of 0 bytes by port 0 of host"),
        (lambda: fabric.send([HostFrame(0, 1 << 32, 0, b"")]), "a frame of 0 bytes by port 0 of host"),
        (lambda: fabric.send([HostFrame(0, 0, 1 << 16, b"")]), "a frame of 0 bytes by port 65536 of host 0"),
    ]
    for call, said in calls:
        with pytest.raises(EngineError, match=said):
            call()
    assert [arrival.frame for arrival in everything(fabric)] == [b"taken", b"taken, too"]


def test_a_closed_fabric_and_its_switches_say_so(fabric: NativeFabric) -> None:
    switch = fabric.switch(0)
    fabric.close()
    for call in (lambda: fabric.run(None, 1), lambda: fabric.send([]), lambda: switch.reset()):
        with pytest.raises(EngineError, match="closed"):
            call()


def test_a_switch_that_is_closed_alone_loses_what_reaches_it(fabric: NativeFabric) -> None:
    fabric.send([HostFrame(0, 0, 0, bytes(10))])
    fabric.switch(0).close()
    fabric.run(None, 10**9)
    assert fabric.next_ns is None


def test_simultaneous_frames_of_different_ports_take_turns_in_being_first(compiled: Callable[[Path], Program]) -> None:
    """Four hosts send to a fifth at the same instants: two of four frames find room, and they are nobody's always."""
    fabric = NativeFabric([1], hosts=5, host_ports=1)
    switch = fabric.switch(0)
    switch.load(compiled(PROGRAMS / "copies.p4"))
    queues = (QueueConfig(depth_packets=1), *[QueueConfig()] * 7)
    for host, port in enumerate((0, 1, 2, 510, 3)):
        fabric.connect(End("host", host, 0), End("switch", 0, port))
        fabric.configure_nic_port(host, 0, NicPort(delay_ns=MICROSECOND))
        switch.configure_port(port, PortConfig(rate_bps=8_000_000, delay_ns=1, queues=queues), 0)
    rounds, to_port_3 = 400, bytes([0, 3, 0, 0, 0])
    for number in range(rounds):
        fabric.send([HostFrame(number * 10**6, host, 0, to_port_3 + bytes([host])) for host in range(4)])
    through = Counter(arrival.frame[-1] for arrival in everything(fabric))
    assert sum(through.values()) == 2 * rounds
    assert all(0.4 * rounds < through[host] < 0.6 * rounds for host in range(4))
    fabric.close()


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 40])
def test_bytes_that_are_no_records_are_refused(length: int, fabric: NativeFabric) -> None:
    error = ctypes.c_int()
    assert fabric._c.fabric_send(fabric.address, b"\xff" * length, length, error) == 0
    assert error.value == (0 if length == 0 else -1)


# --- frames that leave payload out --------------------------------------------------------------------------------

HEAD = 80
"""Bytes of a counted frame, four of an ICRC among them."""
LENGTH = 1000


def a_counted(length: int = LENGTH, head: int = HEAD) -> bytes:
    """A frame whose IPv6 header says that it has `length` bytes."""
    return bytes([*bytes(12), 0x86, 0xDD, 0x60, 0, 0, 0, *(length - 54).to_bytes(2, "big"), *range(20, head)])


def test_a_counted_frame_takes_the_time_of_its_payload_and_arrives_as_it_was_sent(made: MakeFabric) -> None:
    fabric = made(PROGRAMS / "passthrough.p4", counted=True)
    fabric.record_packets(0, 10**9)
    fabric.send([HostFrame(0, 0, 0, a_counted())])
    assert everything(fabric) == [HostFrame((2 * LENGTH + 2) * MICROSECOND, 1, 0, a_counted())]
    counters = fabric.switch(0).port_counters(2, 0)
    assert (counters.tx_bytes, counters.queue_bytes) == (LENGTH, 0)
    records = in_order(fabric.take_records())
    assert [(one.fate, one.length, one.head) for one in records] == [
        (fate, LENGTH, a_counted()[:-4]) for fate in (Fate.SENT, Fate.SENT, Fate.RECEIVED)
    ]


def test_a_frame_as_long_as_it_says_or_of_another_type_is_carried_whole(made: MakeFabric) -> None:
    fabric = made(PROGRAMS / "passthrough.p4", counted=True)
    whole, other = a_counted(HEAD), a_counted()[:12] + b"\x08\x00" + a_counted()[14:]
    fabric.send([HostFrame(0, 0, 0, whole), HostFrame(0, 0, 0, other), HostFrame(0, 0, 0, a_counted(LENGTH, 57))])
    assert [arrival.frame for arrival in everything(fabric)] == [whole, other, a_counted(LENGTH, 57)]
    assert fabric.switch(0).port_counters(2, 0).tx_bytes == 2 * HEAD + 57


def test_a_frame_that_says_to_be_longer_than_any_is_refused(made: MakeFabric) -> None:
    fabric = made(PROGRAMS / "passthrough.p4", counted=True)
    with pytest.raises(EngineError, match="above the longest frame"):
        fabric.send([HostFrame(0, 0, 0, a_counted(20_000))])


@pytest.mark.parametrize(("size", "kept"), [(40, 40), (HEAD - 4, HEAD - 4), (HEAD, HEAD - 4), (500, HEAD - 4)])
def test_of_a_frame_that_was_cut_the_payload_is_zeros(made: MakeFabric, tmp_path: Path, size: int, kept: int) -> None:
    source = (PROGRAMS / "passthrough.p4").read_text()
    cutting = tmp_path / "cutting.p4"
    ingress = "standard_metadata.egress_spec = 3 - standard_metadata.ingress_port;"
    assert ingress in source
    cutting.write_text(source.replace(ingress, f"{ingress} truncate((bit<32>){size});"))
    fabric = made(cutting, counted=True)
    fabric.send([HostFrame(0, 0, 0, a_counted())])
    assert [arrival.frame for arrival in everything(fabric)] == [a_counted()[:kept] + bytes(size - kept)]


def test_a_program_whose_checksum_covers_payload_ends_the_run_by_name(made: MakeFabric) -> None:
    fabric = made(PROGRAMS / "growing.p4", counted=True)
    fabric.send([HostFrame(0, 0, 0, a_counted())])
    with pytest.raises(EngineError, match="looks at payload, which this run only counts: choose --payload real"):
        everything(fabric)


@pytest.mark.parametrize("bits", [8 * (HEAD - 4), 8 * (HEAD - 3)])
def test_a_program_that_parses_payload_ends_the_run_by_name(made: MakeFabric, tmp_path: Path, bits: int) -> None:
    source = (PROGRAMS / "passthrough.p4").read_text()
    deep = tmp_path / "deep.p4"
    deep.write_text(
        source.replace("struct headers_t { }", f"header all_t {{ bit<{bits}> all; }} struct headers_t {{ all_t all; }}")
        .replace("transition accept;", "packet.extract(hdr.all); transition accept;")
        .replace("in headers_t hdr) { apply { }", "in headers_t hdr) { apply { packet.emit(hdr.all); }")
    )
    fabric = made(deep, counted=True)
    fabric.send([HostFrame(0, 0, 0, a_counted())])
    if bits == 8 * (HEAD - 4):
        assert [arrival.frame for arrival in everything(fabric)] == [a_counted()]
    else:
        with pytest.raises(EngineError, match="looks at payload"):
            everything(fabric)
