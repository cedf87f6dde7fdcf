"""An unmodified p4runtime-shell against `python -m switch serve` with a program that has one of everything."""

import os
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from controller.cli import shell_python
from p4c.frontend import compile_program
from tests.helpers.p4.wires import Namespace, Wires
from tests.helpers.switch_process import serving
from tests.helpers.waiting import ran

try:
    shell_python()
except ValueError as error:
    pytest.skip(str(error), allow_module_level=True)
PROGRAM = Path(__file__).parent / "everything.p4"
DEVICE = {"device_id": 7, "name": "everything"}
WAIT_S = 30


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory):
    directory = tmp_path_factory.mktemp("everything")
    compiled = compile_program(PROGRAM)
    (directory / "p4info.txtpb").write_text(compiled.p4info_text)
    (directory / "program.json").write_text(compiled.json_text)
    return directory


def shell(grpc, artefacts, script, *, load=True):
    """Lines that the script printed with GOT in front."""
    words = ["--grpc-addr", grpc, "--device-id", "7", "--election-id", "0,1"]
    if load:
        words += ["--config", f"{artefacts / 'p4info.txtpb'},{artefacts / 'program.json'}"]
    command = [shell_python(), "-P", "-m", "p4runtime_sh", *words]
    result = ran(command, WAIT_S, input=script + "\nexit\n", env={**os.environ, "TERM": "dumb"})
    assert result.returncode == 0, result.stderr
    plain = [line.rsplit("GOT ", 1)[1] for line in result.stdout.splitlines() if "GOT " in line]
    return plain, result.stdout + result.stderr


@pytest.fixture(scope="module")
def grpc_address(artefacts, tmp_path_factory):
    ports = [{"port": port} for port in (1, 2, 3)]
    with serving(tmp_path_factory.mktemp("serving"), [{**DEVICE, "ports": ports}]) as words:
        yield words["grpc"]


def test_errors_are_shown_with_the_servers_words(grpc_address, artefacts):
    _, output = shell(
        grpc_address,
        artefacts,
        """
te = table_entry["I.hosts"](action="drop")
te.match["dst"] = "1"
te.insert()
te.insert()
""",
    )
    assert "ALREADY_EXISTS, 'table I.hosts: there is an entry with dst=0x1 already'" in output


def test_a_packet_out_to_the_cpu_port_comes_back_as_a_packet_in(grpc_address, artefacts):
    got, output = shell(
        grpc_address,
        artefacts,
        """
p = packet_out()
p.payload = bytes.fromhex("0506") + bytes(14)
p.metadata["egress_port"] = "510"
p.metadata["pad"] = "0"
p.send()
show = lambda m: print("GOT", len(m.packet.payload), [(x.metadata_id, x.value.hex()) for x in m.packet.metadata])
packet_in.sniff(show, timeout=3)
""",
    )
    # The frame as sent: the program adds no packet_in header here, so its first two bytes are taken for one.
    assert got == ["14 [(1, '0a'), (2, '06')]"], output


def test_a_shell_without_a_config_takes_the_pipeline_from_the_switch(grpc_address, artefacts):
    shell(grpc_address, artefacts, "")
    got, output = shell(grpc_address, artefacts, 'print("GOT", len(list(tables)))', load=False)
    assert got == ["6"], output


# --- with packets -----------------------------------------------------------------------------------------------------


@pytest.fixture
def namespace():
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("needs root and iproute2")
    with Namespace() as made:
        yield made


def sniffed(grpc, send):
    """What the shell prints of the packets that the switch hands to it after `send`."""
    words = [str(shell_python()), "-P", "-m", "p4runtime_sh", "--grpc-addr", grpc, "--device-id", "7"]
    process = subprocess.Popen(
        [*words, "--election-id", "0,1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write('print("REA" + "DY")\n')
    process.stdin.flush()
    while "READY" not in (line := process.stdout.readline()):
        assert line, "the shell ended early"
    send()
    show = "lambda m: print('GO' + 'T', len(m.packet.payload), [x.value.hex() for x in m.packet.metadata])"
    return process.communicate(f"packet_in.sniff({show}, timeout=3)\nexit\n", timeout=WAIT_S)[0]


@pytest.mark.root
def test_what_the_shell_programs_happens_to_packets_and_what_happens_can_be_read(namespace, artefacts, tmp_path):
    netns = f"/proc/{namespace.holder.pid}/ns/net"
    ports = [{"port": port, "interface": f"s{port}", "netns": netns} for port in (1, 2)]

    def frame(destination, type_, source=2):
        return destination.to_bytes(6, "big") + source.to_bytes(6, "big") + type_.to_bytes(2, "big") + bytes(46)

    with closing(Wires(namespace, (1, 2))) as wires, serving(tmp_path, [{**DEVICE, "ports": ports}]) as words:
        shell(
            words["grpc"],
            artefacts,
            """
te = table_entry["I.hosts"](action="count_and_forward")
te.match["dst"] = "1"
te.action["port"] = "2"
te.insert()
te = table_entry["I.ecmp"]()
te.match["type"] = "0x86dd"
a = Action("forward")
a["port"] = "2"
te.oneshot.add(a, weight=1)
te.insert()
te = table_entry["I.acl"](action="deny")
te.match["type"] = "0x2000..0x2fff"
te.match["src"] = "0x2&&&0xff"
te.match["port"] = "1"
te.priority = 1
te.insert()
te = table_entry["I.routes"](action="flood")
te.match["src"] = "0x0a0000000000/8"
te.action["group"] = "9"
te.insert()
mc = multicast_group_entry(9); mc.add(2, 1); mc.insert()
""",
        )
        known, denied, spread, flooded, unknown = (
            frame(1, 0x1000), frame(1, 0x2345), frame(3, 0x86DD), frame(3, 0x1234, 0x0A0000000001), frame(3, 0x1234),
        )  # fmt: skip
        for sent in (known, denied, spread, unknown, known, flooded):
            wires.send(1, sent)
        found = wires.collect(lambda got: len(got) >= 4, 5)
        assert found == [(2, known), (2, spread), (2, known), (2, flooded)]
        got, output = shell(
            words["grpc"],
            artefacts,
            """
te = table_entry["I.hosts"]
te.match["dst"] = "1"
te.counter_data
te.read(lambda e: print("GOT", e.counter_data.packet_count, e.counter_data.byte_count))
counter_entry["I.seen"](index=1).read(lambda c: print("GOT", c.packet_count))
""",
            load=False,
        )
        assert got == ["3 180", "6"], output
        output = sniffed(words["grpc"], lambda: wires.send(1, frame(9, 0x88B5)))
        assert "GOT 60 ['01', '09']" in output
