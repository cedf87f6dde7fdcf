"""Frames that leave payload out in a native fabric: their time on the wire, and what reaches the other host."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from p4c.model import Program
from switch.engine import EngineError, PortConfig
from switch.fabric import End, HostFrame, NicPort
from switch.native import binding
from switch.native.fabric import NativeFabric
from switch.packet_log import Fate, in_order
from tests.helpers.engines.life_inputs import PROGRAMS

MICROSECOND = 1000
HEAD = 80
"""Bytes of a counted frame, four of an ICRC among them."""
LENGTH = 1000

MakeFabric = Callable[[Path], NativeFabric]


def counted(length: int = LENGTH, head: int = HEAD) -> bytes:
    """A frame whose IPv6 header says that it has `length` bytes."""
    return bytes([*bytes(12), 0x86, 0xDD, 0x60, 0, 0, 0, *(length - 54).to_bytes(2, "big"), *range(20, head)])


@pytest.fixture(params=["exchange", "buffer"])
def made(
    compiled: Callable[[Path], Program], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MakeFabric]:
    """Hosts 0 and 1 at ports 1 and 2 of a switch with that program; 1 µs of cable, 8 Mb/s."""
    if request.param == "buffer":
        monkeypatch.setattr(binding, "exchange", lambda: None)
    fabrics: list[NativeFabric] = []

    def make(program: Path) -> NativeFabric:
        fabric = NativeFabric([1], 2, 1, counted=True)
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


def everything(fabric: NativeFabric) -> list[HostFrame]:
    """What reaches hosts that send nothing more."""
    until_ns, arrived = 10**9, list[HostFrame]()
    while fabric.reached_ns < until_ns or fabric.next_ns is not None:
        fabric.gather(fabric.run(None, until_ns))
        arrived += fabric.collect(1)
    return arrived


def test_a_counted_frame_takes_the_time_of_its_payload_and_arrives_as_it_was_sent(made: MakeFabric) -> None:
    fabric = made(PROGRAMS / "passthrough.p4")
    fabric.record_packets(0, 10**9)
    fabric.send([HostFrame(0, 0, 0, counted())])
    assert everything(fabric) == [HostFrame((2 * LENGTH + 2) * MICROSECOND, 1, 0, counted())]
    counters = fabric.switch(0).port_counters(2, 0)
    assert (counters.tx_bytes, counters.queue_bytes) == (LENGTH, 0)
    records = in_order(fabric.take_records())
    assert [(one.fate, one.length, one.head) for one in records] == [
        (fate, LENGTH, counted()[:-4]) for fate in (Fate.SENT, Fate.SENT, Fate.RECEIVED)
    ]


def test_a_frame_as_long_as_it_says_or_of_another_type_is_carried_whole(made: MakeFabric) -> None:
    fabric = made(PROGRAMS / "passthrough.p4")
    whole, other = counted(HEAD), counted()[:12] + b"\x08\x00" + counted()[14:]
    fabric.send([HostFrame(0, 0, 0, whole), HostFrame(0, 0, 0, other), HostFrame(0, 0, 0, counted(LENGTH, 57))])
    assert [arrival.frame for arrival in everything(fabric)] == [whole, other, counted(LENGTH, 57)]
    assert fabric.switch(0).port_counters(2, 0).tx_bytes == 2 * HEAD + 57


def test_a_frame_that_says_to_be_longer_than_any_is_refused(made: MakeFabric) -> None:
    fabric = made(PROGRAMS / "passthrough.p4")
    with pytest.raises(EngineError, match="above the longest frame"):
        fabric.send([HostFrame(0, 0, 0, counted(20_000))])


@pytest.mark.parametrize(("size", "kept"), [(40, 40), (HEAD - 4, HEAD - 4), (HEAD, HEAD - 4), (500, HEAD - 4)])
def test_of_a_frame_that_was_cut_the_payload_is_zeros(made: MakeFabric, tmp_path: Path, size: int, kept: int) -> None:
    source = (PROGRAMS / "passthrough.p4").read_text()
    cutting = tmp_path / "cutting.p4"
    ingress = "standard_metadata.egress_spec = 3 - standard_metadata.ingress_port;"
    assert ingress in source
    cutting.write_text(source.replace(ingress, f"{ingress} truncate((bit<32>){size});"))
    fabric = made(cutting)
    fabric.send([HostFrame(0, 0, 0, counted())])
    assert [arrival.frame for arrival in everything(fabric)] == [counted()[:kept] + bytes(size - kept)]


def test_a_program_whose_checksum_covers_payload_ends_the_run_by_name(made: MakeFabric) -> None:
    fabric = made(PROGRAMS / "growing.p4")
    fabric.send([HostFrame(0, 0, 0, counted())])
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
    fabric = made(deep)
    fabric.send([HostFrame(0, 0, 0, counted())])
    if bits == 8 * (HEAD - 4):
        assert [arrival.frame for arrival in everything(fabric)] == [counted()]
    else:
        with pytest.raises(EngineError, match="looks at payload"):
            everything(fabric)
