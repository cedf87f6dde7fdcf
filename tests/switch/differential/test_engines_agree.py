"""Both engines get the same program, entries, settings, packets of any length and times: they must do the same."""

import random
from typing import Any

import pytest

from p4c.entries import ActionCall, Entry, Exact, GroupRef, Lpm, MemberRef, Optional, Range, Ternary
from switch.engine import CPU_PORT_DEFAULT, FRAME_BYTES_MAX, EngineError, MeterConfig, PortConfig, QueueConfig, Replica
from switch.native.engine import NativeEngine
from switch.reference import ReferenceEngine
from tests.helpers.engines.random_inputs import PORTS
from tests.helpers.engines.scenario import PROGRAMS, Scenario

SEEDS = range(6)
STEPS = 120


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_random_packets_entries_and_times_give_the_same(name, seed, compiled) -> None:
    Scenario(compiled(name), seed).run(STEPS)


AROUND_HEADERS = [length + by for length in (14, 54, 62, 128) for by in (-1, 0, 1)]
LENGTHS = [0, 1, 2, 3, 5, *AROUND_HEADERS, 1500, 9216, FRAME_BYTES_MAX - 1, FRAME_BYTES_MAX]
IPV6 = bytes.fromhex("020000000001 020000000002 86dd 6a")


def frames(length: int, rng: random.Random) -> list[bytes]:
    """Nothing, ones, anything, and the beginning of what the programs of p4/ take."""
    return [bytes(length), b"\xff" * length, rng.randbytes(length), (IPV6 + rng.randbytes(length))[:length]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_frames_of_every_critical_length_on_every_port(name: str, compiled) -> None:
    scenario = Scenario(compiled(name), seed=1)
    scenario.set_up()
    pair, rng = scenario.pair, random.Random(1)
    sent = 0
    for port in (*PORTS, CPU_PORT_DEFAULT):
        pair("configure_port", port, PortConfig(), scenario.now_ns)
    for length in LENGTHS:
        for port in (*PORTS, CPU_PORT_DEFAULT):
            for frame in frames(length, rng):
                pair("receive", port, frame, scenario.now_ns)
                sent += 1
        scenario.now_ns += 1_000_000
        pair("advance", scenario.now_ns)
    scenario.settle()
    received = [pair("port_counters", port, scenario.now_ns).rx_packets for port in (*PORTS, CPU_PORT_DEFAULT)]
    assert sum(received) == sent


CALL = ActionCall("In.metered", (7,))
DROP = ActionCall("In.drop")
EXACT = (Exact(1), Exact(1))
INSERTED: list[tuple[str, Entry, str]] = [
    ("In.nothing", Entry((), CALL), r"no table is called 'In.nothing'; there are: .*In.exact_table"),
    ("In.exact_table", Entry((Exact(1 << 32), Exact(1)), CALL), r"does not fit 32 bits"),
    ("In.exact_table", Entry((Exact(1),), CALL), r"2 match fields expected, not 1"),
    ("In.exact_table", Entry((Exact(1), Range(0, 1)), CALL), r"the match is exact, not Range"),
    ("In.exact_table", Entry(EXACT, MemberRef(1)), r"it has no action profile"),
    ("In.exact_table", Entry(EXACT, DROP), r"no action is called 'In.drop'; there are: In.me"),
    ("In.exact_table", Entry(EXACT, ActionCall("In.metered")), r"1 arguments expected, not 0"),
    ("In.exact_table", Entry(EXACT, ActionCall("In.metered", (1 << 16,))), r"0x10000 for value does not fit 16"),
    ("In.lpm_table", Entry((Lpm(1, 33), Exact(1)), ActionCall("NoAction")), r"a prefix length is 0 to 32, not 33"),
    ("In.ternary_table", Entry((Ternary(0, 1 << 40), Ternary(0, 0), Exact(1)), DROP, 1), r"mask 0x1.* not fit 32 bits"),
    ("In.ternary_table", Entry((Optional(1 << 40), Ternary(0, 0), Exact(1)), DROP, 1), r"value 0x1.* not fit 32"),
    ("In.selector_table", Entry((Exact(1),), CALL), r"an action profile member or group is expected"),
    ("In.profile_table", Entry((Exact(1),), GroupRef(1)), r"its action profile has no selector, so no groups"),
]
REQUESTS: list[tuple[str, tuple[Any, ...], str]] = [
    *(("insert_entry", (table, entry), says) for table, entry, says in INSERTED),
    ("set_meter", ("In.none", 0, None), r"no meter is called 'In.none'; there are: In.byte_meter"),
    ("set_meter", ("In.packet_meter", 0, MeterConfig(2, 1, 1, 1)), r"committed rate 2 exceeds the peak rate 1"),
    ("set_meter", ("In.packet_meter", 0, MeterConfig(-1, 1, 1, 1)), r"rates and bursts cannot be negative"),
    ("read_register", ("x", 0), r"no register is called 'x'; there are: In.sums"),
    ("write_register", ("In.none", 0, 0), r"no register is called 'In.none'; there are: In.sums"),
    ("write_register", ("In.sums", 0, 1 << 200), r"0x10+ does not fit 20 bits"),
    ("read_counter", ("In.none", 0), r"no counter is called 'In.none'; there are: In.seen"),
    ("read_packet_counts", ("In.none", 0, 1), r"no counter is called 'In.none'; there are: In.seen"),
    ("read_packet_counts", ("In.seen", 1, 1 << 20), r"counter In.seen has \d+ cells, from 0; there is no 1048576"),
    ("read_counter", ("In.seen", -1), r"counter In.seen has \d+ cells, from 0; there is no -1"),
    ("set_member", ("In.none", 1, CALL), r"no action profile is called 'In.none'; there are: none"),
    ("delete_multicast_group", (9,), r"no multicast group has id 9"),
    ("set_multicast_group", (0, [Replica(1, 0)]), r"0 means no multicast"),
    ("delete_clone_session", (9,), r"no clone session has id 9"),
    ("set_clone_session", (1 << 15, [], 0), r"clone sessions are numbered 0 to 32767"),
    ("set_clone_session", (1, (), -1), r"cannot be truncated to -1 bytes"),
    ("set_clone_session", (1, (), 0, 8), r"a class of service is 0 to 7, not 8"),
    ("configure_port", (511, PortConfig(), 0), r"ports are numbered 0 to 510, not 511"),
    ("configure_port", (1, PortConfig(loss=1.5), 0), r"a loss is a share of 0 to 1, not 1.5"),
    ("configure_port", (1, PortConfig(rate_bps=-1), 0), r"cannot be negative"),
    ("configure_port", (1, PortConfig(delay_ns=-1), 0), r"cannot be negative"),
    ("configure_port", (1, PortConfig(queues=(QueueConfig(),)), 0), r"8 queues expected, not 1"),
    ("configure_port", (1, PortConfig(queues=(QueueConfig(rate_pps=-1),) * 8), 0), r"depths and delays cannot be neg"),
    ("receive", (1, bytes(16385), 0), r"at most 16384 bytes"),
]


@pytest.mark.parametrize(("operation", "arguments", "says"), REQUESTS)
def test_a_request_that_cannot_be_is_refused_in_the_same_words(operation, arguments, says, compiled) -> None:
    program = compiled("matching.p4" if operation == "insert_entry" else "stateful.p4")
    words = []
    for engine in (ReferenceEngine(), NativeEngine()):
        engine.load(program)
        engine.configure_port(1, PortConfig(), 0)
        with pytest.raises(EngineError, match=says) as refused:
            getattr(engine, operation)(*arguments)
        words.append(str(refused.value))
    assert words[0] == words[1]
