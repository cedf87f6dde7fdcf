"""Libvirt for one test: its daemon if none runs, a network without a way out, a pool, and a list of all that is there.

Everything has a name of its own that begins with `mrclab-vm`, so that what a killed test left behind is found and
removed by the next.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

URI = "qemu:///system"
NAME = "mrclab-vm"
GATEWAY = (
    "192.168.231.1"  # this machine, as the guests see it; a range that neither libvirt nor Vagrant takes by itself
)
PROXY_PORT = 3128
MIRRORS = ("deb.debian.org", "security.debian.org", "pypi.org", "files.pythonhosted.org")
START_TIMEOUT_S = 30
_NETWORK = f"""<network ipv6="no"><name>{NAME}</name><bridge name="{NAME}" stp="off"/>
<ip address="{GATEWAY}" netmask="255.255.255.0"><dhcp><range start="192.168.231.10" end="192.168.231.200"/></dhcp></ip>
</network>"""

Inventory = dict[str, list[str]]


def virsh(*words: str, check: bool = True) -> str:
    done = subprocess.run(["virsh", "-q", "-c", URI, *words], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0 or not check, f"virsh {' '.join(words)}: {done.stderr}"
    return done.stdout


def _names(*words: str) -> list[str]:
    return sorted(filter(None, (line.strip() for line in virsh(*words).splitlines())))


def inventory() -> Inventory:
    """Names of all domains, networks, pools and volumes."""
    pools = _names("pool-list", "--all", "--name")
    found = {"domains": _names("list", "--all", "--name"), "networks": _names("net-list", "--all", "--name")}
    volumes = {f"volumes of {pool}": _names("vol-list", pool) for pool in _names("pool-list", "--name")}
    return {**found, "pools": pools, **volumes}


def _answers() -> bool:
    done = subprocess.run(["virsh", "-q", "-c", URI, "version"], capture_output=True, check=False, timeout=60)
    return done.returncode == 0


def _wait(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {START_TIMEOUT_S} s"
        time.sleep(0.1)


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def daemon(folder: Path) -> Iterator[None]:
    """The machine's own libvirtd, or one that ends with the test."""
    started: list[Path] = []
    try:
        if not _answers():
            for program in ("virtlogd", "libvirtd"):
                pid_file = folder / f"{program}.pid"
                subprocess.run([program, "--daemon", "--pid-file", str(pid_file)], check=True, timeout=60)
                started.append(pid_file)
            _wait("libvirtd", _answers)
        yield
    finally:
        for pid_file in reversed(started):
            _end(int(pid_file.read_text()))


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)
    _wait(f"end of process {pid}", lambda: not Path(f"/proc/{pid}").exists())


def remove_leftovers() -> None:
    """What a test left that was killed: domains first, for they hold the rest."""
    for name in _names("list", "--all", "--name"):
        if name.startswith(NAME):
            virsh("destroy", name, check=False)
            virsh("undefine", name, "--nvram", check=False)
    _remove_network()
    if NAME in _names("pool-list", "--all", "--name"):
        _remove_pool()


@contextmanager
def network(folder: Path) -> Iterator[str]:
    """A network whose guests reach this machine and nothing else. Yields the address of a proxy to the mirrors."""
    with ExitStack() as undo:
        definition = folder / "network.xml"
        definition.write_text(_NETWORK)
        # `vagrant destroy` stops the network, and takes away a definition that it must find.
        virsh("net-define", str(definition))
        undo.callback(_remove_network)
        virsh("net-start", NAME)
        log = folder / "proxy.log"
        settings = folder / "proxy.conf"
        (folder / "proxy.filter").write_text("".join(f"^{host.replace('.', '[.]')}$\n" for host in MIRRORS))
        upstream = os.environ.get("http_proxy", "").removeprefix("http://").rstrip("/")
        settings.write_text(
            f"Port {PROXY_PORT}\nListen {GATEWAY}\nAllow 192.168.231.0/24\nTimeout 600\nConnectPort 443\n"
            f'LogFile "{log}"\n'
            f'Filter "{folder / "proxy.filter"}"\nFilterExtended On\nFilterDefaultDeny Yes\n'
            + (f"Upstream http {upstream}\n" if upstream else "")
        )
        proxy = subprocess.Popen(["tinyproxy", "-d", "-c", str(settings)], stdout=subprocess.DEVNULL)
        undo.callback(proxy.wait)
        undo.callback(proxy.terminate)
        _wait("tinyproxy", lambda: _listens(GATEWAY, PROXY_PORT))
        yield f"http://{GATEWAY}:{PROXY_PORT}"


def _remove_network() -> None:
    """As far as it is there."""
    if NAME in _names("net-list", "--name"):
        virsh("net-destroy", NAME)
    if NAME in _names("net-list", "--all", "--name"):
        virsh("net-undefine", NAME)


@contextmanager
def pool(folder: Path) -> Iterator[str]:
    """A pool of disk images, gone with all its volumes at the end."""
    target = folder / "pool"
    target.mkdir()
    virsh("pool-create-as", NAME, "dir", "--target", str(target))
    try:
        yield NAME
    finally:
        _remove_pool()
        shutil.rmtree(target)


def _remove_pool() -> None:
    for line in _names("vol-list", NAME):
        virsh("vol-delete", line.split()[0], "--pool", NAME)
    virsh("pool-destroy", NAME)
