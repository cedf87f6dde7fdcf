"""The native engine, stepped: tables, queues, time and counters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from p4c.entries import ActionCall, Entry, Exact, Lpm
from p4c.model import Program
from switch.engine import EngineError, PortConfig, QueueConfig
from switch.native.engine import NativeEngine
from tests.helpers.engines.leaf_traffic import (
    OWN_USID,
    action_name,
    install_own_usid,
    install_route,
    ipv6_frame,
    table_name,
    usid_address,
)

FRAME = ipv6_frame(usid_address(OWN_USID, 0x2000, 0x3000), bytes(946))  # 1000 bytes
QUEUES = (QueueConfig(),) * 8


@pytest.fixture
def engine(leaf: Program) -> Iterator[NativeEngine]:
    engine = NativeEngine(seed=1)
    engine.load(leaf)
    for port in (1, 2, 3):
        engine.configure_port(port, PortConfig(), 0)
    install_own_usid(engine)
    install_route(engine)
    yield engine
    engine.close()


def test_a_usid_is_shifted_and_the_hop_limit_falls_by_one(engine: NativeEngine) -> None:
    engine.receive(1, FRAME, 1000)
    (out,) = engine.advance(1000)
    expected = ipv6_frame(usid_address(0x2000, 0x3000), bytes(946), hop_limit=63)
    assert (out.t_ns, out.port) == (1000, 2)
    assert out.frame[14:] == expected[14:]
    assert out.frame[:12] == bytes.fromhex("020000000002020000000001")


def test_a_frame_takes_its_bytes_over_the_rate_plus_the_delay(engine: NativeEngine) -> None:
    engine.configure_port(2, PortConfig(rate_bps=8_000_000, delay_ns=500), 0)
    for _ in range(3):
        engine.receive(1, FRAME, 0)
    assert engine.next_event_ns() == 1_000_000
    assert engine.advance(999_999) == []
    assert [out.t_ns for out in engine.advance(10_000_000)] == [1_000_500, 2_000_500, 3_000_500]
    assert engine.next_event_ns() is None


def test_a_late_caller_does_not_slow_the_port(engine: NativeEngine) -> None:
    engine.configure_port(2, PortConfig(rate_bps=8_000_000), 0)
    for _ in range(4):
        engine.receive(1, FRAME, 0)
    assert [out.t_ns for out in engine.advance(60_000_000_000)] == [1_000_000, 2_000_000, 3_000_000, 4_000_000]


def test_packets_a_second_pace_a_port_whatever_their_size(engine: NativeEngine) -> None:
    engine.configure_port(2, PortConfig(rate_pps=1000), 0)
    engine.receive(1, FRAME, 0)
    engine.receive(1, FRAME[:100], 0)
    assert [out.t_ns for out in engine.advance(10_000_000)] == [1_000_000, 2_000_000]


def test_a_full_queue_drops_and_counts(engine: NativeEngine) -> None:
    queues = (QueueConfig(depth_packets=2), *QUEUES[1:])
    engine.configure_port(2, PortConfig(rate_bps=8_000_000, queues=queues), 0)
    for _ in range(6):
        engine.receive(1, FRAME, 0)
    counters = engine.port_counters(2, 0)
    assert (counters.queue_packets, counters.queue_bytes, counters.drop_queue_full) == (2, 2000, 3)
    assert len(engine.advance(10_000_000)) == 3
    assert engine.port_counters(2, 10_000_000).queue_packets == 0
    assert engine.port_counters(1, 10_000_000).rx_bytes == 6000


def test_a_queue_is_limited_in_bytes_too(engine: NativeEngine) -> None:
    queues = (QueueConfig(depth_bytes=2500), *QUEUES[1:])
    engine.configure_port(2, PortConfig(rate_bps=8_000_000, queues=queues), 0)
    for _ in range(6):
        engine.receive(1, FRAME, 0)
    assert engine.port_counters(2, 0).queue_packets == 2


def test_the_highest_priority_is_served_first(engine: NativeEngine) -> None:
    table = table_name(engine, "dscp_to_class")
    engine.insert_entry(table, Entry((Exact(46),), ActionCall(action_name(engine, table, "set_class"), (5, 7))))
    engine.configure_port(2, PortConfig(rate_bps=8_000_000), 0)
    urgent = ipv6_frame(usid_address(OWN_USID, 0x2000, 0x3000), bytes(946), dscp=46)
    for frame in (FRAME, FRAME, urgent):
        engine.receive(1, frame, 0)
    classes = [out.frame[14:16] for out in engine.advance(10_000_000)]
    assert [bytes(c) for c in classes] == [FRAME[14:16], urgent[14:16], FRAME[14:16]]


def test_a_port_that_goes_down_loses_what_waits_but_not_what_is_on_the_wire(engine: NativeEngine) -> None:
    engine.configure_port(2, PortConfig(rate_bps=8_000_000), 0)
    for _ in range(3):
        engine.receive(1, FRAME, 0)
    engine.configure_port(2, PortConfig(rate_bps=8_000_000, up=False), 10)
    engine.receive(1, FRAME, 20)
    engine.receive(2, FRAME, 20)
    assert len(engine.advance(10_000_000)) == 1
    counters = engine.port_counters(2, 10_000_000)
    assert (counters.drop_port_down, counters.rx_packets, counters.tx_packets) == (4, 0, 1)


def test_loss_is_drawn_from_its_seed(engine: NativeEngine) -> None:
    def survivors(seed: int) -> list[int]:
        engine.configure_port(2, PortConfig(), 0)
        engine.configure_port(2, PortConfig(loss=0.3, loss_seed=seed), 0)
        kept, start = [], engine.port_counters(2, 0).tx_packets
        for number in range(200):
            engine.receive(1, FRAME, start + number)
            kept += [number] * len(engine.advance(start + number))
        return kept

    first = survivors(7)
    assert 100 < len(first) < 180
    assert survivors(7) == first
    assert survivors(8) != first
    counters = engine.port_counters(2, 1000)
    assert counters.tx_packets == 600
    assert counters.drop_loss > 100


def test_a_stopped_device_keeps_its_tables_and_a_reset_one_does_not(engine: NativeEngine) -> None:
    engine.configure_port(2, PortConfig(rate_bps=8_000_000), 0)
    for _ in range(3):
        engine.receive(1, FRAME, 0)
    engine.set_running(False, 0)
    engine.receive(1, FRAME, 10)
    assert len(engine.advance(1_000_000)) == 1  # the one that was being sent
    counters = engine.port_counters(1, 10)
    assert counters.drop_no_program == 1
    assert engine.port_counters(2, 10).drop_wiped == 2
    engine.set_running(True, 2_000_000)
    engine.receive(1, FRAME, 2_000_000)
    assert len(engine.advance(3_000_000)) == 1
    engine.reset()
    engine.receive(1, FRAME, 4_000_000)
    assert engine.advance(9_000_000) == []
    with pytest.raises(EngineError, match="no program"):
        engine.insert_entry("t", Entry((), ActionCall("a")))


def test_a_loaded_program_starts_empty(engine: NativeEngine, leaf: Program) -> None:
    engine.load(leaf)
    engine.receive(1, FRAME, 0)
    assert engine.advance(0) == []
    install_own_usid(engine)
    install_route(engine)
    engine.receive(1, FRAME, 0)
    assert len(engine.advance(0)) == 1


def test_the_program_sends_to_a_port_that_is_not_there(engine: NativeEngine) -> None:
    install_route(engine, out_port=9, next_usid=0x2009)
    engine.receive(1, ipv6_frame(usid_address(0x2009, 1)), 0)
    assert engine.port_counters(1, 0).drop_no_port == 1


def _names(engine: NativeEngine) -> tuple[str, str]:
    table = table_name(engine, "ipv6_route")
    return table, action_name(engine, table, "set_next_hop")


def test_the_longest_prefix_wins_and_deleting_it_uncovers_the_shorter(engine: NativeEngine) -> None:
    table, action = _names(engine)
    install_route(engine, out_port=3, next_usid=0x7777)
    handle = engine.insert_entry(table, Entry((Lpm(usid_address(0x2000, 0x3000), 64),), ActionCall(action, (3,))))
    engine.receive(1, FRAME, 0)
    assert [out.port for out in engine.advance(0)] == [3]
    engine.delete_entry(table, handle)
    engine.receive(1, FRAME, 1)
    assert [out.port for out in engine.advance(1)] == [2]
    with pytest.raises(EngineError, match="no such entry"):
        engine.delete_entry(table, handle)


def test_a_duplicate_is_refused_and_a_modified_entry_acts_anew(engine: NativeEngine) -> None:
    table, action = _names(engine)
    entry = Entry((Lpm(usid_address(0x5000), 48),), ActionCall(action, (2,)))
    handle = engine.insert_entry(table, entry)
    with pytest.raises(EngineError, match="same match"):
        engine.insert_entry(table, entry)
    install_route(engine, out_port=3, next_usid=0x7777)
    engine.modify_entry(table, handle, ActionCall(action, (3,)))
    engine.receive(1, ipv6_frame(usid_address(0x5000, 1)), 0)
    assert [out.port for out in engine.advance(0)] == [3]


def test_unknown_names_are_refused_with_the_valid_choices(engine: NativeEngine) -> None:
    table, _ = _names(engine)
    with pytest.raises(EngineError, match=r"no table is called 'nothing'; there are: .*my_sid"):
        engine.insert_entry("nothing", Entry((), ActionCall("a")))
    with pytest.raises(EngineError, match=r"no action is called 'nothing'; there are: .*set_next_hop"):
        engine.insert_entry(table, Entry((Lpm(0, 0),), ActionCall("nothing")))
    with pytest.raises(EngineError, match="no port 77; configured are"):
        engine.receive(77, FRAME, 0)


def test_many_entries_are_found_deleted_and_reinserted(engine: NativeEngine) -> None:
    table, action = _names(engine)
    handles = {
        number: engine.insert_entry(table, Entry((Lpm(usid_address(0x4000, number), 64),), ActionCall(action, (2,))))
        for number in range(3000)
    }
    for number in range(0, 3000, 2):
        engine.delete_entry(table, handles[number])
    for number in (0, 1, 2998, 2999):
        engine.receive(1, ipv6_frame(usid_address(0x4000, number, 1)), number)
        assert len(engine.advance(number)) == number % 2, number
    for number in range(0, 3000, 2):
        engine.insert_entry(table, Entry((Lpm(usid_address(0x4000, number), 64),), ActionCall(action, (2,))))
    engine.receive(1, ipv6_frame(usid_address(0x4000, 2998, 1)), 5000)
    assert len(engine.advance(5000)) == 1
