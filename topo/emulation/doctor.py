"""The prerequisites of a lab: which this machine has, what each missing one costs, and how to install it."""

import ctypes
import errno
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from topo.emulation import bmv2_process, namespace, tc
from topo.emulation.process import abandoned

_SCRATCH_PREFIX = "mrclab-doctor-"
_SCRATCH = f"{_SCRATCH_PREFIX}{os.getpid()}"  # two users may ask at once
SUDO_ADDS = ("/usr/local/sbin", "/usr/sbin", "/sbin")

Need = Literal["needed", "useful"]


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """Something that real links need of this machine, and whether it is here."""

    name: str
    present: bool
    need: Need
    cost: str  # of its absence
    remedy: str
    detail: str = ""  # its version, where it says one


def examine() -> list[Prerequisite]:
    """Everything, in order of importance. The kernel's features are tried in a scratch namespace, which goes again."""
    root = os.geteuid() == 0
    findings = [Prerequisite("root", root, "needed", "no emulated lab; plans, paths and simulation work", "sudo")]
    findings += _userland(versions=True)
    if shutil.which(bmv2_process.PROGRAM):
        findings.append(_bmv2())
    findings += _calls()
    return findings + (_kernel() if root and shutil.which("ip") else [])


def _userland(*, versions: bool) -> list[Prerequisite]:
    """With `versions`, each program that can is asked for its own, which costs a process."""
    ask = "--version" if versions else ""
    mininet = importlib.util.find_spec("mininet") is not None
    compiler = any(shutil.which(name) for name in ("cc", "gcc", "clang"))
    slow = "no native switch; the reference interpreter is slow"
    return [
        _program("ip", "needed", "no emulated lab", "iproute2", "-V" if versions else ""),
        _program("tc", "needed", "no silent loss on host ports and switches not our own", "iproute2"),
        _program("nsenter", "needed", "no processes in hosts", "util-linux"),
        _program("mnexec", "useful", "no Mininet prompt", "mininet"),
        Prerequisite(
            "Python module mininet", mininet, "needed", "no emulated lab", "./lab install, or pip install mininet"
        ),
        Prerequisite("C compiler", compiler, "needed", slow, "apt-get install gcc libc6-dev"),
        _program("ping", "useful", "`h1 ping h5` does not work", "iputils-ping"),
        _program("tcpdump", "useful", "no captures at the prompt", "tcpdump"),
        _program(
            "simple_switch_grpc", "useful", "no switches of kind bmv2", "p4lang-bmv2 (Ubuntu, p4lang's packages)", ask
        ),
        _program("p4c", "useful", "our own compiler is used", "p4lang-p4c (Ubuntu, p4lang's packages)", ask),
    ]


def _program(name: str, need: Need, cost: str, package: str, version: str = "") -> Prerequisite:
    """`version` is the argument that makes it say its version."""
    present = shutil.which(name, path=_search_path()) is not None
    detail = _first_line([name, version]) if present and version else ""
    return Prerequisite(name, present, need, cost, f"apt-get install {package}", detail)


def _search_path() -> str:
    """Debian's users have no sbin in theirs; sudo, by which they start a lab, has."""
    given = os.environ.get("PATH", os.defpath)
    return given if os.geteuid() == 0 else os.pathsep.join([given, *SUDO_ADDS])


def _first_line(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next(iter((done.stdout or done.stderr).strip().splitlines()), "")


def missing_programs() -> list[Prerequisite]:
    """What no `up` can do without, quickly looked for: programs and modules, not the kernel."""
    always = (finding for finding in _userland(versions=False) if finding.name != "C compiler")
    return [finding for finding in always if finding.need == "needed" and not finding.present]


def _bmv2() -> Prerequisite:
    """By starting it: a build without Thrift looks like any other until then."""
    trouble = bmv2_process.trial()
    cost = f"no switches of kind bmv2 ({trouble.splitlines()[0]})" if trouble else "no switches of kind bmv2"
    return Prerequisite("BMv2 serves P4Runtime and Thrift", trouble is None, "useful", cost, bmv2_process.THRIFT_REMEDY)


def _calls() -> list[Prerequisite]:
    """System calls by making them, with arguments that change nothing."""

    def exists(number: int) -> bool:
        return ctypes.CDLL(None, use_errno=True).syscall(number, -1, 0, 0, 0, 0, 0) >= 0 or (
            ctypes.get_errno() != errno.ENOSYS
        )

    return [
        Prerequisite("kernel: epoll_pwait2", exists(441), "needed", "no embedded switches", "Linux 5.11 or newer"),
        Prerequisite("kernel: pidfd_open", exists(434), "needed", "no clean end of processes", "Linux 5.3 or newer"),
    ]


def _kernel() -> list[Prerequisite]:
    """Each feature by using it: a configuration file may lie, a module may load on demand."""
    newer = "a kernel that has it; distributions' own do"
    try:
        for path in abandoned(namespace.NETNS_DIR, _SCRATCH_PREFIX):  # of a doctor that was killed
            namespace.delete(path.name)
        namespace.create([_SCRATCH])
    except (namespace.IpError, OSError) as error:
        # Root without its powers: a container.
        cost = f"no emulated lab ({_last_line(error)})"
        remedy = "a container with --privileged, or with the capabilities that container/README.md lists"
        return [Prerequisite("kernel: network namespaces", False, "needed", cost, remedy)]
    checks: list[tuple[str, Need, str, Callable[[], None]]] = [
        ("kernel: veth", "needed", "no links", _try(
            "link add d0 type veth peer name d1", "link set d0 up", "link set d1 up")),
        ("kernel: IPv6", "needed", "host kernels cannot use the fabric", _try("address add fd00::1/128 dev lo")),
        ("kernel: seg6 encap", "useful", "host kernels cannot be steered along a path", _try(
            "route add fd00::2/128 encap seg6 mode encap.red segs fcbb:bbbb:1000:: dev d0")),
        ("kernel: seg6local next-csid", "useful", "no switches of kind linux", _try(
            "route add fcbb:bbbb:1000::/48 encap seg6local action End flavors next-csid lblen 32 nflen 16 dev d0")),
        ("kernel: seg6local End.X next-csid", "useful", "no kernel's uA to compare ours with (a test)", _try_adjacency),
        ("kernel: clsact with BPF", "needed", "no silent loss on host ports", _try(
            *tc.filter_commands("d0", tc.LOSS_PREF, tc.loss_program(0.5)), tool="tc")),
        ("kernel: macvlan", "useful", "no fault may take carrier from switches of kind bmv2", _try(
            "link add link d0 name d2 type macvlan mode passthru")),
        ("kernel: tbf", "useful", "switches of kind linux are not paced", _try(
            "qdisc add dev d1 root tbf rate 10mbit burst 16kb latency 50ms", tool="tc")),
    ]  # fmt: skip
    findings = [_settings()]
    try:
        for name, need, cost, attempt in checks:
            try:
                attempt()
            except (namespace.IpError, OSError) as error:
                findings.append(Prerequisite(name, False, need, f"{cost} ({_last_line(error)})", newer))
            else:
                findings.append(Prerequisite(name, True, need, cost, newer))
    finally:
        namespace.delete(_SCRATCH)
    return findings


def _settings() -> Prerequisite:
    """Containers have their own network's settings before them, and may not write them."""
    writable = os.access("/proc/sys/net/ipv6/conf/all/addr_gen_mode", os.W_OK)
    remedy = "a kernel with IPv6; in a container --security-opt unmask=/proc/sys, or --privileged"
    return Prerequisite("kernel: /proc/sys/net can be written", writable, "needed", "no emulated lab", remedy)


def _last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1]


def _try(*lines: str, tool: str = "ip") -> Callable[[], None]:
    return lambda: namespace.run_ip(lines, _SCRATCH, tool=tool)


def _try_adjacency() -> None:
    """Linux 6.1 takes this flavor and forgets it, so the route is read again."""
    route = "route add fcbb:bbbb:e000::/48 encap seg6local action End.X nh6 fd00::3 flavors next-csid lblen 32 nflen 16"
    namespace.run_ip([f"{route} dev d0"], _SCRATCH)
    shown = subprocess.run(
        ["ip", "-6", "-n", _SCRATCH, "route", "show", "fcbb:bbbb:e000::/48"],
        capture_output=True, text=True, check=True, timeout=10,
    ).stdout  # fmt: skip
    if "next-csid" not in shown:
        raise OSError("the kernel takes the flavor for End.X and forgets it")
