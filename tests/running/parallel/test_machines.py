"""`./lab run --processes` over several machines: ranks in network namespaces, with only a network between them."""

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.rig.namespaces import ip, namespaces
from tests.helpers.mpi_run import needs_mpi, words
from tests.helpers.ranks_in_memory import contents

ROOT = Path(__file__).parents[3]
BRIDGE = "br0"
LAUNCH = """\
#!/bin/sh
# As mpiexec calls ssh: [OPTION...] ADDRESS COMMAND...
while [ "${1#-}" != "$1" ]; do shift; done
address=$1; shift
case $address in
%s
esac
"""


def network(names: list[str]) -> list[str]:
    """A bridge in the first namespace, and the others plugged in; their addresses, which the first can reach, too."""
    ip("-n", names[0], "link", "add", BRIDGE, "type", "bridge")
    ip("-n", names[0], "addr", "add", "10.99.0.1/24", "dev", BRIDGE)
    ip("-n", names[0], "link", "set", BRIDGE, "up")
    addresses = []
    for number, name in enumerate(names[1:], 2):
        port = f"port{number}"
        ip("link", "add", port, "netns", names[0], "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("-n", names[0], "link", "set", port, "master", BRIDGE, "up")
        addresses.append(f"10.99.0.{number}")
        ip("-n", name, "addr", "add", f"{addresses[-1]}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            ip("-n", name, "link", "set", link, "up")
    return addresses


def received_bytes(name: str) -> int:
    """What has come over the link of a namespace."""
    command = ["ip", "netns", "exec", name, "cat", "/sys/class/net/eth0/statistics/rx_bytes"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@needs_mpi
@pytest.mark.root
@pytest.mark.slow
def test_ranks_on_two_machines_write_what_one_process_writes(tmp_path: Path) -> None:
    alone = [*words(tmp_path / "one"), "--processes", "1"]
    subprocess.run(alone, cwd=ROOT, capture_output=True, check=True, timeout=120)
    with namespaces(3) as names:
        addresses = network(names)
        (tmp_path / "hosts").write_text("\n".join(addresses) + "\n")
        cases = zip(addresses, names[1:], strict=True)
        launch = tmp_path / "launch"
        launch.write_text(LAUNCH % "\n".join(f'{at}) exec ip netns exec {name} sh -c "$*";;' for at, name in cases))
        launch.chmod(0o755)
        environment = {
            **os.environ, "HYDRA_HOST_FILE": str(tmp_path / "hosts"), "HYDRA_LAUNCHER_EXEC": str(launch),
            "HYDRA_LAUNCHER": "ssh", "HYDRA_IFACE": BRIDGE, "UCX_TLS": "tcp,self",
        }  # fmt: skip  # UCX would find that both are on one machine, and share memory
        command = ["ip", "netns", "exec", names[0], *words(tmp_path / "two"), "--processes", "2"]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert min(received_bytes(name) for name in names[1:]) > 1_000_000
    one, two = (tmp_path / count / "latest" for count in ("one", "two"))
    assert contents(one) == contents(two)
    assert (one / "verdict.json").read_bytes() == (two / "verdict.json").read_bytes()
