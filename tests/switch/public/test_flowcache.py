"""The exercise flowcache of p4lang/tutorials with its own controller, unmodified: packet-ins, entries, timeouts."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import grpc
import pytest
import scapy
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from p4c import compile_program
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from tests.helpers.p4.stub import P4RuntimeStub
from tests.helpers.p4.wires import Namespace, Wires
from tests.helpers.switch_process import serving
from tests.helpers.waiting import eventually
from tests.switch.public.checkouts import DEVICE_CONFIG, checkout

ROOT = Path(__file__).parents[3]
WAIT_S = 60
ADDRESSES = ("127.0.0.1:50051", "127.0.0.1:50052", "127.0.0.1:50053")  # the controller has them
H1, H2, H1_MAC, H2_MAC = "10.0.1.1", "10.0.2.2", "08:00:00:00:01:11", "08:00:00:00:02:22"
PORTS = range(1, 4)


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Started; the switches must be there already."""
    exercise = checkout("tutorials") / "exercises" / "flowcache" / "solution"
    compiled = compile_program(exercise / "flowcache.p4")
    (tmp_path / "p4info").write_text(compiled.p4info_text)
    (tmp_path / "json").write_text(compiled.json_text)
    (tmp_path / "logs").mkdir()
    (tmp_path / "sitecustomize.py").write_text(DEVICE_CONFIG)
    (tmp_path / "scapy").symlink_to(Path(scapy.__file__).parent)
    words = [str(ROOT / ".venv-shell" / "bin" / "python"), "-u", str(exercise / "mycontroller.py")]
    words += ["--p4info", str(tmp_path / "p4info"), "--bmv2-json", str(tmp_path / "json")]
    places = [str(tmp_path), str(exercise.parents[2] / "utils")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(words, cwd=tmp_path, env=environment, **pipes)  # type: ignore[call-overload]
    yield process
    process.kill()
    process.communicate()


def until(process: subprocess.Popen[str], part: str) -> None:
    """Read what the controller prints up to a line with this part."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if part in line:
            return
    pytest.fail("".join(seen))


def has_clone_session() -> bool:
    request = p4rt.ReadRequest(device_id=2)
    request.entities.add().packet_replication_engine_entry.clone_session_entry.SetInParent()
    with grpc.insecure_channel(ADDRESSES[2]) as channel:
        return any(response.entities for response in P4RuntimeStub(channel).Read(request))


@pytest.fixture
def wires(tmp_path: Path) -> Iterator[Wires]:
    """Three switches; port 2 of s1 is wire 12."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("needs root and iproute2")
    checkout("tutorials")
    with Namespace() as namespace, ExitStack() as stack:
        wires = stack.enter_context(closing(Wires(namespace, [10 * s + p for s in (1, 2, 3) for p in PORTS])))
        netns = f"/proc/{namespace.holder.pid}/ns/net"
        for number, address in enumerate(ADDRESSES):
            folder = tmp_path / f"s{number + 1}"
            folder.mkdir()
            ports = [{"port": p, "interface": f"s{10 * number + 10 + p}", "netns": netns} for p in PORTS]
            device = {"device_id": number, "name": folder.name, "ports": ports, "cpu_port": 510}
            stack.enter_context(serving(folder, [device], address))
        yield wires


@pytest.mark.root
def test_a_flow_is_cached_and_forgotten_by_the_exercises_controller(
    wires: Wires, controller: subprocess.Popen[str]
) -> None:
    sent = Ether(src=H1_MAC, dst=H2_MAC) / IP(src=H1, dst=H2, ttl=64) / UDP(sport=1, dport=2) / bytes(20)

    def arrives(port: int, frame: bytes, at: int) -> bytes:
        wires.send(port, frame)
        ((where, received),) = wires.collect(bool, WAIT_S)
        assert where == at
        return received

    until(controller, "on s3")
    eventually(has_clone_session, "the last switch has its clone session")
    first = arrives(11, bytes(sent), 12)
    assert first == bytes(sent), "the controller has sent the first packet on as it was"
    until(controller, f"For switch s1 flow (SA={H1}, DA={H2}, proto=17) added table entry")
    cached = Ether(arrives(11, bytes(sent), 12))
    right = sent.copy()
    right[IP].ttl, right[IP].tos = 63, 5 << 2
    assert bytes(cached) == bytes(right), "TTL, DSCP and checksum are those of the flow's entry"
    assert arrives(22, bytes(cached), 21) == bytes(cached), "s2 has another entry of its own to ask for"
    until(controller, f"Deleted flow_cache entry on s1. (SA={H1}, DA={H2}, proto=17)")
    assert arrives(11, bytes(sent), 12) == bytes(sent), "it is asked again"
