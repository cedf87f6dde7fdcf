"""Programs of p4-learning, p4-utils and int-p4 forward packets with the entries of their own simple_switch_CLI files.

What is expected follows from each exercise's page: an IPv4 router's packet, an MPLS label (RFC 3032), INT's headers.
"""

from collections.abc import Iterator

import pytest
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from common.records import Frozen
from p4c import compile_program
from p4c.model import Program, load_program
from switch.stf import parse, run
from switch.stf.programs import ENGINES, make_engine
from tests.switch.public.checkouts import checkout

LEARNING = "p4-learning/exercises"
A, B, ROUTER, ALL = "00:00:0a:00:00:01", "00:00:0a:00:00:02", "00:00:00:01:01:00", "ff:ff:ff:ff:ff:ff"


class Case(Frozen):
    """A folder with a program and its entries, a packet into port 1, and what leaves."""

    folder: str
    program: str
    commands: str
    sent: Packet
    left: tuple[tuple[int, Packet], ...]


def ip(to: str, ttl: int = 64) -> Packet:
    return IP(src="10.0.1.1", dst=to, ttl=ttl) / UDP(sport=1, dport=2) / b"payload"


def routed(folder: str, program: str, commands: str, to: str, port: int, mac: str) -> Case:
    left = Ether(src=ROUTER, dst=mac) / ip(to, 63)
    return Case(folder, program, commands, Ether(src=A, dst=ROUTER) / ip(to), ((port, left),))


def switched(folder: str, program: str, commands: str, to: str, *ports: int) -> Case:
    frame = Ether(src=A, dst=to) / ip("10.0.0.2")
    return Case(folder, program, commands, frame, tuple((port, frame) for port in ports))


FLOODING = f"{LEARNING}/03-L2_Flooding/thrift/solution"
CASES = {
    "reflector": Case(
        f"{LEARNING}/01-Reflector/solution", "reflector.p4", "", Ether(src=A, dst=B) / ip("10.0.0.2"),
        ((1, Ether(src=B, dst=A) / ip("10.0.0.2")),),
    ),
    "repeater": switched(f"{LEARNING}/02-Repeater/thrift/solution", "repeater_with_table.p4", "s1-commands.txt", B, 2),
    "known": switched(
        f"{LEARNING}/03-L2_Basic_forwarding/thrift/solution", "p4src/l2_basic_forwarding.p4", "s1-commands.txt", B, 2
    ),
    "flooded": switched(FLOODING, "p4src/l2_flooding_other_ports.p4", "s1-commands-other-ports.txt", ALL, 2, 3, 4),
    "all ports": switched(FLOODING, "p4src/l2_flooding_all_ports.p4", "s1-commands-all-ports.txt", ALL, 1, 2, 3, 4),
    "label": Case(
        f"{LEARNING}/04-MPLS/thrift/mpls_basics/solution", "basics.p4", "sx-commands/s1-commands.txt",
        Ether(src=A, dst=ROUTER) / ip("10.7.2.2"),
        ((2, Ether(src=ROUTER, dst="00:00:00:02:01:00") / MPLS(label=2, s=0, ttl=254) / ip("10.7.2.2")),),
    ),
    "ecmp": routed(
        f"{LEARNING}/05-ECMP/solution", "p4src/ecmp.p4", "sw-commands/s1-commands.txt",
        "10.0.1.1", 1, "00:00:0a:00:01:01",
    ),
    "hitters": routed(
        f"{LEARNING}/06-Heavy_Hitter_Detector/solution", "heavy_hitter.p4", "s1-commands.txt",
        "10.0.2.2", 2, "00:00:00:02:01:00",
    ),
    "sketch": switched(f"{LEARNING}/07-Count-Min-Sketch/solution", "p4src/cm-sketch.p4", "s1-commands.txt", B, 2),
    "p4-utils": routed(
        "p4-utils/examples/switches", "forwarding.p4", "s1-commands.txt", "10.0.3.7", 3, "00:00:00:03:01:00"
    ),
}  # fmt: skip


def statements(text: str, program: Program) -> Iterator[str]:
    """simple_switch_CLI's commands as those of packet tests, which have the names of keys and parameters."""
    for line in text.splitlines():
        command, *words = line.split() or [""]
        if command not in ("table_add", "table_set_default"):
            yield "" if command.startswith("/") else line
            continue
        table = next(t for t in program.tables if t.name.split(".")[-1] == words[0])
        action = next(a for a in table.actions if a.name.split(".")[-1] == words[1])
        keys, values = words[2:], words[2:]
        if command == "table_add":
            keys, values = words[2 : words.index("=>")], words[words.index("=>") + 1 :]
        given = ", ".join(f"{p.name}:{v}" for p, v in zip(action.parameters, values, strict=False))
        if command == "table_set_default":
            yield f"setdefault {table.name} {action.name}({given})"
            continue
        priority = "".join(values[len(action.parameters) :])
        matches = " ".join(f"{key.name}:{value}" for key, value in zip(table.keys, keys, strict=True))
        yield f"add {table.name} {priority} {matches} {action.name}({given})"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CASES)
def test_a_program_forwards_with_its_own_entries(name: str, engine: str) -> None:
    case = CASES[name]
    repository, _, place = case.folder.partition("/")
    folder = checkout(repository) / place
    program = load_program(compile_program(folder / case.program).json_text.encode())
    commands = (folder / case.commands).read_text() if case.commands else ""
    packets = [f"packet 1 {bytes(case.sent).hex()}", *(f"expect {p} {bytes(out).hex()}$" for p, out in case.left)]
    text = "\n".join([*statements(commands, program), *packets, "no_packet"])
    assert run(make_engine(engine), program, parse(text)) == [], text


@pytest.mark.parametrize("engine", ENGINES)
def test_int_data_is_added_by_the_first_switch_and_removed_by_the_last(engine: str) -> None:
    folder = checkout("int-p4") / "int.p4app"
    program = load_program(compile_program(folder / "p4src" / "int.p4").json_text.encode())
    first, last = made = make_engine(engine), make_engine(engine)
    for number, switch in enumerate(made, 1):
        commands = (folder / f"commands{number}.txt").read_text()
        assert run(switch, program, parse("\n".join(statements(commands, program)))) == []
    frame = bytes(Ether(src=A, dst="00:00:00:00:02:02") / ip("10.0.2.2"))
    first.receive(1, frame, 1)
    (marked,) = first.advance(1)
    assert marked.port == 2
    assert marked.frame[15] >> 2 == 0x17, "the DSCP that says INT"
    last.receive(2, marked.frame, 1)
    sent = {out.port: out.frame for out in last.advance(1)}
    assert sent.pop(1) == frame
    assert list(sent) == [3], "a report to the collector"
