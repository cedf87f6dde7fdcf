"""Priority-based flow control of a switch port (IEEE 802.1Qbb), on both engines, worked by hand."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.layers.l2 import Ether

from p4c.model import Program
from switch.engine import Engine, EngineError, PortConfig, Transmitted
from switch.native.engine import NativeEngine
from switch.reference.engine import ReferenceEngine
from tests.helpers.engines.life_inputs import PROGRAMS

US = 1000
RATE = 8_000_000  # a byte a microsecond
QUANTUM_US = 64  # 512 bit times of that
LOSSY = PortConfig(rate_bps=RATE)
# The program forwards everything in priority 0.
LOSSLESS = PortConfig(
    rate_bps=RATE,
    pfc_classes=1,
    pfc_xoff_bytes=250,
    pfc_xon_bytes=100,
    pfc_headroom_bytes=200,
    pfc_quanta=100,
    pfc_watchdog_ns=10_000 * US,
    pfc_mac=0x02_10_00_00_00_01,
)
# As the standards print it: destination, source, EtherType, opcode, vector, eight times, zeros up to 60 bytes.
HEAD = "0180c200000102100000000188080101"
PAUSE = bytes.fromhex(HEAD + "0001" + "0064" + "0000" * 7).ljust(60, b"\0")
RESUME = bytes.fromhex(HEAD + "0001" + "0000" * 8).ljust(60, b"\0")


def pfc(vector: int, *times: int) -> bytes:
    padded = [*times, *[0] * (8 - len(times))]
    return bytes.fromhex(HEAD) + b"".join(n.to_bytes(2, "big") for n in (vector, *padded)) + bytes(26)


@pytest.fixture(params=[ReferenceEngine, NativeEngine])
def engine(request: pytest.FixtureRequest, compiled: Callable[[Path], Program]) -> Iterator[Engine]:
    """Port 1 sends to port 2, and back; 100 bytes take 100 µs."""
    made = request.param(seed=1)
    made.load(compiled(PROGRAMS / "passthrough.p4"))
    for port in (1, 2):
        made.configure_port(port, LOSSLESS, 0)
    yield made
    if isinstance(made, NativeEngine):
        made.close()


def sent(engine: Engine, until_us: float) -> list[tuple[float, int, bytes]]:
    found: list[Transmitted] = engine.advance(round(until_us * US))
    return [(each.t_ns / US, each.port, each.frame) for each in found]


def counts(engine: Engine, port: int, now_us: float, *names: str) -> tuple[Any, ...]:
    counters = engine.port_counters(port, round(now_us * US))
    return tuple(getattr(counters, name) for name in names)


def test_a_port_above_xoff_pauses_its_peer_and_at_xon_lets_it_go_on(engine: Engine) -> None:
    for _ in range(4):
        engine.receive(1, bytes(100), 0)
    # The first leaves at once, three wait: 300 bytes are more than 250. At 200 µs one waits: 100 bytes are xon.
    out = sent(engine, 500)
    assert [(t, frame) for t, port, frame in out if port == 1] == [(60, PAUSE), (260, RESUME)]
    assert [t for t, port, _ in out if port == 2] == [100, 200, 300, 400]
    assert counts(engine, 1, 500, "pause_sent", "resume_sent", "held_bytes_max", "tx_packets") == (1, 1, 300, 0)
    assert counts(engine, 2, 500, "pause_sent", "drop_headroom") == (0, 0)


def test_the_frame_is_what_scapy_takes_for_a_pause_of_that_class(engine: Engine) -> None:
    for _ in range(4):
        engine.receive(1, bytes(100), 0)
    frame = Ether(sent(engine, 60)[0][2])
    pause = frame[MACControlClassBasedFlowControl]
    assert (frame.dst, frame.src, frame.type) == ("01:80:c2:00:00:01", "02:10:00:00:00:01", 0x8808)
    assert (pause.c0_enabled, pause.c0_pause_time, pause.c1_enabled, pause.c7_enabled) == (1, 100, 0, 0)
    made = Ether(dst="01:80:c2:00:00:01", src="02:10:00:00:00:01") / MACControlClassBasedFlowControl(
        c0_enabled=1, c0_pause_time=100
    )
    assert bytes(made).ljust(60, b"\0") == PAUSE


def test_a_pause_is_repeated_at_half_of_its_quanta_while_it_lasts(engine: Engine) -> None:
    engine.receive(2, pfc(1, 300), 0)  # nothing leaves by port 2 for 300 quanta
    for _ in range(3):
        engine.receive(1, bytes(100), 0)
    pauses = [t for t, port, frame in sent(engine, 300 * QUANTUM_US) if port == 1 and frame == PAUSE]
    assert pauses == [60 + 50 * QUANTUM_US * repeat for repeat in range(6)]


@pytest.mark.parametrize(("last", "pauses"), [(50, 0), (51, 1)])
def test_a_port_that_holds_xoff_exactly_pauses_nothing_yet(engine: Engine, last: int, pauses: int) -> None:
    engine.receive(2, pfc(1, 300), 0)
    for size in (100, 100, last):  # xoff is 250 bytes
        engine.receive(1, bytes(size), 0)
    sent(engine, 100)
    assert counts(engine, 1, 100, "pause_sent") == (pauses,)


@pytest.mark.parametrize(("last", "dropped"), [(50, 0), (51, 1)])
def test_xoff_and_headroom_hold_exactly_as_much_as_they_say(engine: Engine, last: int, dropped: int) -> None:
    engine.receive(2, pfc(1, 300), 0)
    for size in (100, 100, 100, 100, last):  # 450 bytes altogether
        engine.receive(1, bytes(size), 0)
    held = 450 - 50 * dropped
    assert counts(engine, 1, 0, "drop_headroom", "held_bytes_max", "drop_queue_full") == (dropped, held, 0)
    assert counts(engine, 2, 0, "queue_packets") == (5 - dropped,)


def test_a_paused_priority_waits_until_its_quanta_are_over_or_it_is_let_go(engine: Engine) -> None:
    engine.receive(2, pfc(1, 3), 0)
    engine.receive(1, bytes(100), 0)
    assert sent(engine, 3 * QUANTUM_US + 99) == []
    assert [t for t, _, _ in sent(engine, 1000)] == [3 * QUANTUM_US + 100]
    engine.receive(2, pfc(1, 65_535), 1000 * US)
    engine.receive(1, bytes(100), 1000 * US)
    engine.receive(2, pfc(1, 0), 1500 * US)
    assert [t for t, _, _ in sent(engine, 2000)] == [1600]
    names = ("pause_received", "resume_received", "paused_ns", "rx_packets", "pause_watchdog")
    assert counts(engine, 2, 2000, *names) == (2, 1, (3 * QUANTUM_US + 500) * US, 0, 0)


def test_a_frame_that_ends_with_its_times_is_heeded(engine: Engine) -> None:
    """14 bytes of Ethernet, opcode, vector and eight times: the padding is not looked at."""
    engine.receive(2, pfc(1, 3)[:34], 0)
    engine.receive(1, bytes(100), 0)
    assert [t for t, _, _ in sent(engine, 1000)] == [3 * QUANTUM_US + 100]


def test_a_packet_on_its_way_out_is_finished(engine: Engine) -> None:
    engine.receive(1, bytes(100), 0)
    engine.receive(1, bytes(100), 0)
    engine.receive(2, pfc(1, 10), 50 * US)
    assert [t for t, _, _ in sent(engine, 5000)] == [100, 50 + 10 * QUANTUM_US + 100]


@pytest.mark.parametrize(
    "frame",
    [
        pfc(0xFE, *[65_535] * 8),  # of other priorities only
        pfc(0x0100, 65_535),  # the reserved half of the vector
        pfc(1, 65_535)[:33],  # one byte of the times is missing
        pfc(1, 65_535)[:14],
        bytes(6) + pfc(1, 65_535)[6:],  # not to the group
        pfc(1, 65_535)[:14] + b"\0\1" + pfc(1, 65_535)[16:],  # a PAUSE of IEEE 802.3x
    ],
)
def test_frames_that_are_forged_or_short_pause_nothing_and_are_counted(engine: Engine, frame: bytes) -> None:
    engine.receive(2, frame, 0)
    engine.receive(1, bytes(100), 0)
    assert [t for t, _, _ in sent(engine, 200)] == [100]
    assert counts(engine, 2, 200, "pause_ignored", "pause_received", "paused_ns", "rx_packets") == (1, 0, 0, 0)


def test_without_flow_control_mac_control_is_a_frame_like_any_other(engine: Engine) -> None:
    for port in (1, 2):
        engine.configure_port(port, LOSSY, 0)
    engine.receive(1, pfc(1, 65_535), 0)
    engine.receive(2, pfc(1, 65_535), 0)
    assert [(t, port) for t, port, _ in sent(engine, 500)] == [(60, 2), (60, 1)]


def test_the_watchdog_counts_a_pause_that_outlasts_it_once(engine: Engine) -> None:
    for repeat in range(6):  # repeated in time: one pause of 18.8 ms and more
        engine.receive(2, pfc(1, 50), repeat * 3000 * US)
        assert counts(engine, 2, repeat * 3000, "pause_watchdog") == (int(repeat * 3000 > 10_000),)
    assert counts(engine, 2, 60_000, "pause_watchdog", "paused_ns") == (1, (15_000 + 50 * QUANTUM_US) * US)
    engine.receive(2, pfc(1, 65_535), 60_000 * US)
    assert counts(engine, 2, 70_000, "pause_watchdog") == (1,)
    assert counts(engine, 2, 70_001, "pause_watchdog") == (2,)


def test_a_pause_that_begins_as_another_ends_is_a_new_one(engine: Engine) -> None:
    quanta = round(6_400 / QUANTUM_US)  # of a watchdog of 10 ms
    for begin_us in (0, 6_400):
        assert quanta * QUANTUM_US == 6_400
        engine.receive(2, pfc(1, quanta), begin_us * US)
        assert counts(engine, 2, begin_us, "pause_watchdog") == (0,)
    assert counts(engine, 2, 20_000, "pause_watchdog", "paused_ns") == (0, 12_800 * US)


def test_a_switch_that_is_stopped_forgets_what_it_held_and_says_nothing(engine: Engine) -> None:
    engine.receive(2, pfc(1, 65_535), 0)
    for _ in range(3):
        engine.receive(1, bytes(100), 0)
    assert [frame for _, _, frame in sent(engine, 60)] == [PAUSE]
    engine.set_running(False, 100 * US)
    engine.set_running(True, 200 * US)
    assert sent(engine, 1_000_000) == []
    engine.receive(1, bytes(100), 1_000_000 * US)
    assert [t for t, _, _ in sent(engine, 1_001_000)] == [1_000_100]


def test_a_port_that_goes_down_forgets_its_pauses_and_frees_its_peers(engine: Engine) -> None:
    engine.receive(2, pfc(1, 65_535), 0)
    for _ in range(3):
        engine.receive(1, bytes(100), 0)
    engine.configure_port(2, replace(LOSSLESS, up=False), 100 * US)
    engine.configure_port(2, LOSSLESS, 200 * US)
    engine.receive(1, bytes(100), 300 * US)
    assert [(t, frame) for t, _, frame in sent(engine, 1000)] == [(60, PAUSE), (160, RESUME), (400, bytes(100))]


def test_a_changed_port_keeps_its_pauses_until_the_priority_is_no_longer_lossless(engine: Engine) -> None:
    engine.receive(2, pfc(1, 65_535), 0)
    engine.receive(1, bytes(100), 0)
    engine.configure_port(2, replace(LOSSLESS, pfc_watchdog_ns=1), 100 * US)
    assert sent(engine, 1000) == []
    engine.configure_port(2, replace(LOSSLESS, pfc_classes=0), 1000 * US)
    assert [(t, port) for t, port, _ in sent(engine, 2000)] == [(1100, 2)]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"pfc_classes": 256}, "pfc_classes is a vector of 8 bits, 0 to 255, not 256"),
        ({"rate_bps": 0}, "the port needs a rate_bps"),
        ({"pfc_xon_bytes": 251}, "pfc_xon_bytes must not exceed pfc_xoff_bytes: 251 > 250"),
        ({"pfc_quanta": 0}, "pfc_quanta is 1 to 65535, not 0"),
        ({"pfc_quanta": 65_536}, "pfc_quanta is 1 to 65535, not 65536"),
        ({"pfc_mac": 1 << 48}, "pfc_mac has 48 bits, not 49"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(engine: Engine, changes: dict[str, int], says: str) -> None:
    with pytest.raises(EngineError, match=says):
        engine.configure_port(1, replace(LOSSLESS, **changes), 0)  # type: ignore[arg-type]
