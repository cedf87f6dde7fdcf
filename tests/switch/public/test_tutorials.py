"""The thirteen exercises of p4lang/tutorials with their own topologies, controllers and senders, unmodified.

Each solution runs by the exercise's own `make run`, with Mininet. Two scripts named simple_switch_grpc and p4c-bm2-ss
start our switch and our compiler. Expected is what the exercise's README promises.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.switch.public.checkouts import DEVICE_CONFIG, checkout

ROOT = Path(__file__).parents[3]
WAIT_S = 300  # an exercise takes 10 to 40 s on a quiet machine

SWITCH = f"""#!{sys.executable} -E
import json, os, re, sys
from pathlib import Path
words = " ".join(sys.argv)
links = json.loads(next(Path().rglob("topology.json")).read_text())["links"]
rates = {{end.replace("-p", "-eth"): int(link[3] * 1e6) for link in links if len(link) > 3 for end in link[:2]}}
number, address = re.search(r"--device-id (\\d+)", words)[1], re.search(r"--grpc-server-addr (\\S+)", words)[1]
found = re.findall(r"(\\d+)@(\\S+)", words)
ports = [{{"port": int(port), "interface": name, "rate_bps": rates.get(name, 0)}} for port, name in found]
device = {{"device_id": int(number), "name": "s" + number, "ports": ports, "cpu_port": 510}}
file = "logs/config-" + number
with open(file, "w") as out:
    json.dump({{"grpc": address, "control": "127.0.0.1:0", "devices": [device]}}, out)
os.environ["PYTHONPATH"] = os.environ["OURS"]
os.execv(sys.executable, [sys.executable, "-P", "-m", "switch", "serve", "--config", file])
"""
COMPILER = f"""#!{sys.executable} -E
import os, sys
sys.path[:0] = os.environ["OURS"].split(":")
from pathlib import Path
from p4c import compile_program
made = compile_program(Path(sys.argv[-1]))
Path(sys.argv[sys.argv.index("--p4runtime-files") + 1]).write_text(made.p4info_text)
Path(sys.argv[sys.argv.index("-o") + 1]).write_text(made.json_text)
"""
OFFLOADS = f"""#!{sys.executable} -E
import os, sys
sys.path[:0] = os.environ["OURS"].split(":")
from topo.emulation.namespace import offloads_off
offloads_off(["eth0"])
"""
SCRIPTS = {
    "offloads-off": OFFLOADS,  # what the hosts of an exercise do with /sbin/ethtool, where there is one
    "simple_switch_grpc": SWITCH,
    "p4c-bm2-ss": COMPILER,
    "sudo": '#!/bin/sh\nexec env "$@"\n',
    "python3": f'#!/bin/sh\nexec {ROOT}/.venv-shell/bin/python -u "$@"\n',
    "await": '#!/bin/sh\nfor i in $(seq 300); do grep -q "$1" "$2" && exec sleep 0.5; sleep 0.2; done; exit 1\n',
}
MODULES = ("mininet", "psutil", "scapy")  # of this environment, beside those of .venv-shell


def heard(host: str, *senders: str, last: str = "got a packet") -> list[str]:
    """Commands that show what the receiver of a host heard from these senders."""
    started = [f"{host} ./receive.py > {host}.log 2>&1 &", f"sh await sniffing {host}.log"]
    return [*started, *senders, f"sh await '{last}' {host}.log", f"sh cat {host}.log"]


def controlled(last: str, *typed: str) -> list[str]:
    """Commands while the exercise's controller runs, whose output is shown at the end."""
    return ["sh ./mycontroller.py > c.log 2>&1 &", *typed, f"sh await '{last}' c.log", "sh cat c.log"]


COOL = "'P4 is cool'"
BOUND = r"sh -c 'for i in $(seq 300); do grep -q :1389 /proc/net/udp && exit; sleep 0.2; done'"  # port 5001
CONGESTED = ("h22 iperf -s -u > /dev/null &", f"h22 {BOUND}", "h11 iperf -c 10.0.2.22 -t 600 -u > /dev/null &")
SENDING = (*CONGESTED, f"h1 ./send.py 10.0.2.2 {COOL} 600 > /dev/null &")  # until the end of the test
EXERCISES: dict[str, tuple[Sequence[str], str]] = {
    "basic": (
        ["pingall", *heard("h2", f"h1 ./send.py 10.0.2.2 {COOL}")],
        r"Results: 0% dropped \(12/12 .*dst += 10\.0\.2\.2.*load += .*P4 is cool",
    ),
    "basic_tunnel": (
        heard("h2", f"h1 ./send.py 10.0.3.3 {COOL} --dst_id 2"),
        r"got a packet.*MyTunnel.*dst_id += 2.*dst += 10\.0\.3\.3.*load += .*P4 is cool",
    ),
    "calc": ([r"h1 printf '1+1\n7^5\nquit\n' | python3 calc.py"], r"> 1\+1\s+2\s.*> 7\^5\s+2\s"),
    "ecn": (heard("h2", *SENDING, last="0x3"), "got a packet.*tos += 0x3"),
    "firewall": (
        [
            *(f"{host} iperf -s > /dev/null &" for host in ("h1", "h2", "h3")),
            *(f"h1 iperf -c {host} -t 1; echo status $?" for host in ("h2", "h3")),
            "h3 timeout 5 iperf -c h1 -t 1; echo status $?",
        ],
        "bits/sec.*status 0.*bits/sec.*status 0.*status 124",
    ),
    # The controller sends the first packet of each flow on with the gateway's MAC address: its host drops it.
    "flowcache": (
        controlled("Deleted flow_cache entry on s1", "sh await 'on s3' c.log", "h1 ping -c 3 h2"),
        r"icmp_seq=3 ttl=62.*For switch s1 flow \(SA=10\.0\.1\.1, DA=10\.0\.2\.2, proto=1\) added table entry",
    ),
    "link_monitor": (
        heard(
            "h1", "h1 ./send.py > /dev/null &", "h4 iperf -s > /dev/null &", "h1 iperf -c h4 -t 1", last="1 - Port 4"
        ),
        "bits/sec.*Switch 1 - Port 4: ",
    ),
    "load_balance": (
        ["h3 ./receive.py > h3.log 2>&1 &", *heard("h2", *12 * (f"h1 ./send.py 10.0.0.1 {COOL}",)), "sh cat h3.log"],
        r"got a packet.*dst += 10\.0\.2\.2.*got a packet.*dst += 10\.0\.3\.3",
    ),
    "mri": (
        heard("h2", *SENDING, last="qdepth *= [1-9]"),
        r"count += 2.*swid += 2\W+qdepth += 0\W.*swid += 1\W+qdepth += [1-9]",
    ),
    "multicast": (["h1 ping -c 2 h2", "h3 ping -c 2 h2"], " 0% packet loss.* 0% packet loss"),
    "p4runtime": (
        controlled("200: 5 packets", "sh await egressTunnelCounter c.log", "h1 ping -c 5 h2", "sh sleep 3"),
        " 0% packet loss.*s1 .*ingress.* 100: 5 packets .490 bytes.*s1 .*egress.* 200: 5 packets .510 bytes",
    ),
    "qos": (
        heard("h2", *(f"h1 ./send.py --p={p} --des=10.0.2.2 --m={COOL} --dur=1" for p in ("UDP", "TCP")), last="0xb1"),
        "got a packet.*tos += 0xb9.*got a packet.*tos += 0xb1",
    ),
    "source_routing": (heard("h2", r"h1 printf '2 3 2 2 1\nq\n' | ./send.py 10.0.2.2"), "got a packet.*ttl += 59"),
}
"""Lines to type at Mininet's prompt, and patterns of the output."""


@pytest.mark.root
@pytest.mark.parametrize("name", EXERCISES)
def test_an_exercise_does_what_its_page_promises(name: str, tmp_path: Path) -> None:
    if os.geteuid() != 0 or not all(shutil.which(word) for word in ("ip", "make", "mnexec")):
        pytest.skip("needs root, iproute2, make and Mininet")
    tutorials = checkout("tutorials")
    place = tmp_path / "exercises" / name
    shutil.copytree(tutorials / "exercises" / name, place)
    shutil.copytree(place / "solution", place, dirs_exist_ok=True)
    (tmp_path / "utils").symlink_to(tutorials / "utils")
    typed, expected = EXERCISES[name]
    printed = typed_at_the_prompt(typed, place, environment(tmp_path))
    assert re.search(expected, printed, re.DOTALL), printed


def environment(folder: Path) -> dict[str, str]:
    """With the scripts of this test on PATH, and the modules that Mininet's script and scapy's need."""
    for name, text in SCRIPTS.items():
        script = folder / "bin" / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(text)
        script.chmod(0o755)
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(DEVICE_CONFIG)
    for module in MODULES:
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        (site / module).symlink_to(Path(spec.origin).parent)
    ours = os.pathsep.join(path for path in sys.path if path)
    words = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "PYTHONPATH": f"{site}:{folder}/utils", "OURS": ours}
    return {**os.environ, **words, "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


def typed_at_the_prompt(lines: Sequence[str], folder: Path, environment: dict[str, str]) -> str:
    """The output of `make run` and Mininet, whose namespaces end with them, and with these tests."""
    alone = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    words = [*alone, "sh", "-c", "ip link set lo up; exec make run"]
    text = "\n".join(["py [host.cmd('offloads-off') for host in net.hosts]", *lines, "exit", ""])
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(
        words, cwd=folder, env=environment, input=text, text=True, timeout=WAIT_S, check=False, **pipes
    )  # type: ignore[call-overload]
    return str(done.stdout)
