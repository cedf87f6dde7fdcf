"""PTF suites of p4lang/tutorials and p4-guide, unmodified: their programs, their packets, over veth pairs.

`ptf` must be on PATH, in an environment that has p4runtime-shell as well.
"""

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from p4c import compile_program
from tests.helpers.p4.wires import Namespace
from tests.helpers.switch_process import serving
from tests.switch.public.checkouts import DEVICE_CONFIG, checkout

PORTS = range(8)
WAIT_S = 120  # a suite takes 5 to 15 s
SUITES = {
    "tutorials/exercises/basic": ("solution/basic.p4", 6),
    "tutorials/exercises/basic_tunnel": ("solution/basic_tunnel.p4", 7),
    "p4-guide/demo1": ("demo1.p4_16.p4", 3),
    "p4-guide/demo1-bitselect-key": ("demo1.p4_16.p4", 3),
    "p4-guide/demo2": ("demo2.p4_16.p4", 2),
    "p4-guide/demo7": ("demo7.p4", 1),
    "p4-guide/ptf-tests/matchkinds": ("matchkinds.p4", 2),
    "p4-guide/ptf-tests/packetinout": ("packetinout.p4", 3),
    "p4-guide/ptf-tests/registeraccess": ("registeraccess.p4", 2),
}
"""A suite's folder in the checkouts, its program, and how many tests it has.

Two suites of p4-guide are left out. duplicatekeys wants each of two entries with equal keys and different priorities to
win for some packet. One of the two tests of idletimeout compares the text of an error with that of p4lang/PI.
"""


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    """With the pairs veth0 and veth1, veth2 and veth3, and so on, as the suites' own scripts make them."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("needs root and iproute2")
    if not shutil.which("ptf"):
        pytest.skip("needs ptf, of p4lang, on PATH")
    with Namespace() as namespace:
        for port in PORTS:
            near, far = f"veth{2 * port}", f"veth{2 * port + 1}"
            namespace.run("ip", "link", "add", near, "mtu", "9500", "type", "veth", "peer", "name", far, "mtu", "9500")
            for name in (near, far):
                namespace.run("ip", "link", "set", name, "up")
        yield namespace


def output_of(
    namespace: Namespace, folder: Path, program: Path, words: list[str], device_id: int = 0, cpu_port: int = 510
) -> str:
    """The output of a program that drives tests; the switch's first port has the number of the device."""
    compiled = compile_program(program)
    (folder / "p4info").write_text(compiled.p4info_text)
    (folder / "json").write_text(compiled.json_text)
    (folder / "logs").mkdir()
    (folder / "sitecustomize.py").write_text(DEVICE_CONFIG)
    netns = f"/proc/{namespace.holder.pid}/ns/net"
    ports = [{"port": device_id + port, "interface": f"veth{2 * port}", "netns": netns} for port in PORTS]
    device = {"device_id": device_id, "name": "s", "ports": ports, "cpu_port": cpu_port}
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    with serving(folder, [device], f"unix:{folder}/grpc"):
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        with subprocess.Popen(namespace.command(*words), cwd=folder, env=environment, **pipes) as process:
            timer = threading.Timer(WAIT_S, process.kill)
            timer.start()
            printed, _ = process.communicate()
            timer.cancel()
    return str(printed)


@pytest.mark.root
@pytest.mark.parametrize("name", SUITES)
def test_a_ptf_suite_passes_unmodified(name: str, namespace: Namespace, tmp_path: Path) -> None:
    repository, _, place = name.partition("/")
    suite = checkout(repository) / place
    program, count = SUITES[name]
    tests = suite / "ptf" if (suite / "ptf").is_dir() else suite
    words = ["ptf", "--test-dir", str(tests), "--pypath", str(checkout(repository) / "testlib")]
    for port in PORTS:
        words += ["-i", f"{port}@veth{2 * port + 1}"]
    params = f"grpcaddr='unix:{tmp_path}/grpc';p4info='{tmp_path}/p4info';config='{tmp_path}/json'"
    printed = output_of(namespace, tmp_path, suite / program, [*words, "--test-params", params])
    assert re.findall(r"^Ran (\d+) test", printed, re.MULTILINE) == [str(count)], printed
    assert re.search(r"^OK$", printed, re.MULTILINE), printed


@pytest.mark.root
def test_the_ptf_suite_of_ngsdn_passes_by_its_own_runner(namespace: Namespace, tmp_path: Path) -> None:
    """In Python 2; their runner sets the pipeline. Three of eleven tests want a packet-in's port in two bytes, where
    the specification asks for the shortest string.
    """
    folder = checkout("ngsdn-tutorial")
    if subprocess.run(["sh", "-c", "python2 -c 'import ptf'"], capture_output=True, check=False).returncode:
        pytest.skip("needs python2 on PATH, with ptf 0.9.1, scapy and the P4Runtime bindings")
    words = ["python2", str(folder / "ptf/lib/runner.py"), "--p4info", "p4info", "--bmv2-json", "json"]
    words += ["--grpc-addr", f"unix:{tmp_path}/grpc", "--device-id", "1", "--cpu-port", "255"]
    words += ["--ptf-dir", str(folder / "solution/ptf/tests"), "--port-map", str(folder / "ptf/lib/port_map.json")]
    printed = output_of(namespace, tmp_path, folder / "solution/p4src/main.p4", words, 1, 255)
    assert len(re.findall(r"^Ran 1 test", printed, re.MULTILINE)) == 11, printed
    failed = re.search(r"tests failed:\n(.*)", printed)
    assert failed is not None
    assert failed[1].split(", ") == ["PacketInTest", "ArpNdpRequestWithCloneTest", "ArpNdpReplyWithCloneTest"], printed
