"""BMv2: when its process counts as serving, and its two queue calls on the wire, laid out by hand from Thrift."""

import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading

import pytest

from tests.helpers.waiting import eventually
from topo.emulation import bmv2_process, doctor
from topo.emulation.bmv2_process import ThriftError, call, connected
from topo.emulation.lab import Lab
from topo.emulation.state import LabError
from topo.planfile import load_plan

# A stand-in with a switch's command line: it serves what it is told to and says in --help what it would take.
STAND_IN = """#!{python}
import socket, sys, time
words = sys.argv[1:]
if "--help" in words:
    print("Options:", {help!r})
    sys.exit(0)
if {dies!r}:
    print("Error while parsing command line arguments")
    sys.exit(1)
grpc = socket.socket(socket.AF_UNIX)
grpc.bind(words[words.index("--grpc-server-addr") + 1].removeprefix("unix:"))
grpc.listen()
if {thrift!r}:
    thrift = socket.create_server(("127.0.0.1", int(words[words.index("--thrift-port") + 1])))
print({says!r}, flush=True)
time.sleep(60)
"""


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Puts a simple_switch_grpc on PATH that was built so."""

    def make(*, takes_thrift_port=True, thrift=True, dies=False, says=""):
        file = tmp_path / bmv2_process.PROGRAM
        shown = "--thrift-port arg" if takes_thrift_port else "--device-id arg"
        file.write_text(STAND_IN.format(python=sys.executable, help=shown, dies=dies, thrift=thrift, says=says))
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    return make


def finding():
    return next(row for row in doctor.examine() if row.name.startswith("BMv2 serves"))


def test_a_build_with_both_servers_serves(build):
    build()
    assert bmv2_process.trial() is None
    assert finding().present


WARNING = "You used the '--thrift-port' command-line option, but this target was compiled without Thrift support."


@pytest.mark.parametrize(
    "built", [{"takes_thrift_port": False, "dies": True}, {"thrift": False, "says": WARNING}, {"thrift": False}]
)
def test_a_build_without_thrift_lacks_it_by_name_also_when_it_takes_the_port_in_silence(build, monkeypatch, built):
    monkeypatch.setattr(bmv2_process, "THRIFT_TIMEOUT_S", 0.5 if built == {"thrift": False} else 60)
    build(**built)
    assert bmv2_process.NO_THRIFT in str(bmv2_process.trial())


def test_a_switch_that_ends_for_another_reason_is_not_blamed_on_thrift(build):
    build(dies=True)
    trouble = str(bmv2_process.trial())
    assert bmv2_process.NO_THRIFT not in trouble
    assert "ended with status 1" in trouble
    assert "Error while parsing command line arguments" in trouble


def test_doctor_says_by_name_that_thrift_is_missing_and_what_to_install(build):
    build(takes_thrift_port=False, dies=True)
    row = finding()
    assert not row.present
    assert "was built without Thrift" in row.cost
    assert "p4lang-bmv2" in row.remedy
    assert "--with-thrift" in row.remedy


@pytest.mark.root
def test_up_says_by_name_that_thrift_is_missing_and_leaves_nothing(build, private_run):
    build(thrift=False, says="this target was compiled without Thrift support.")
    with pytest.raises(LabError, match=r"simple_switch_grpc of p0[ls]\d: .*built without Thrift.*\n.*p4lang-bmv2"):
        Lab.up(load_plan("tiny", {"switch": "bmv2"}))
    assert os.listdir("/run/netns") == []


@pytest.fixture
def temporary(monkeypatch):
    """A folder for temporary files whose path is short enough for that of a socket in it."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield folder


def test_a_switch_on_trial_dies_with_who_tries_it_and_the_next_trial_removes_its_folder(build, tmp_path, temporary):
    build(thrift=False)

    search = ["pgrep", "-f", f"{tmp_path / bmv2_process.PROGRAM} --no-p4"]

    def on_trial():
        return subprocess.run(search, stdout=subprocess.DEVNULL, check=False).returncode == 0

    words = [sys.executable, "-c", "from topo.emulation import bmv2_process; bmv2_process.trial()"]
    with subprocess.Popen(words) as process:
        eventually(on_trial, "the switch starts")
        process.kill()
    eventually(lambda: not on_trial(), "the switch ends")
    assert len(os.listdir(temporary)) == 1
    build()
    assert bmv2_process.trial() is None
    assert os.listdir(temporary) == []


NAME = b"simple_switch:set_egress_priority_queue_rate"
CALL = (
    bytes.fromhex("80010001")
    + len(NAME).to_bytes(4, "big")
    + NAME
    + bytes.fromhex("00000001")
    + bytes.fromhex("08 0001 00000003")  # i32, field 1: port 3
    + bytes.fromhex("08 0002 00000007")
    + bytes.fromhex("0a 0003 0000000000000af0")  # i64, field 3: 2,800 packets a second
    + b"\0"
)


def answered(answer):
    """What a client sends to a server that answers so, and how the call ends."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        received = []

        def serve():
            connection, _ = server.accept()
            with connection:
                received.append(connection.recv(4096))
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with connected(server.getsockname()[1]) as client:
                call(client, "set_egress_priority_queue_rate", (8, 3), (8, 7), (10, 2800))
        finally:
            thread.join()
        return received[0]


def reply(kind, body):
    return b"\x80\x01\x00" + kind + (4).to_bytes(4, "big") + b"name\0\0\0\1" + body


def test_a_call_has_exactly_these_bytes():
    assert answered(reply(b"\x02", b"\x08\0\0" + (0).to_bytes(4, "big") + b"\0")) == CALL


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (reply(b"\x02", b"\x08\0\0\0\0\0\1\0"), r"set_egress_priority_queue_rate\(3, 7, 2800\).* 1"),
        (reply(b"\x03", b"\x0b\0\1"), "refused with an exception"),
        (b"HTTP/1.1 400 Bad Request", "not Thrift"),
        (b"\x80\x01", "closed the connection"),
    ],
)
def test_any_other_answer_is_an_error(answer, complaint):
    with pytest.raises(ThriftError, match=complaint):
        answered(answer)
