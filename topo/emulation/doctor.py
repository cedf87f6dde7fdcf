"""What this machine has of what a lab can use, what each absence costs, and how to mend it."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from topo.emulation import namespace, tc

_SCRATCH = "mrclab-doctor"

Need = Literal["needed", "useful"]


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    present: bool
    need: Need
    cost: str  # of its absence
    remedy: str


def examine() -> list[Finding]:
    """Everything, in order of importance. The kernel's features are tried in a scratch namespace, which goes again."""
    root = os.geteuid() == 0
    findings = [Finding("root", root, "needed", "no emulated lab; plans, paths and simulation work", "sudo")]
    findings += [
        _program("ip", "needed", "no emulated lab", "iproute2"),
        _program("tc", "needed", "no loss or blackhole on host ports and switches not our own", "iproute2"),
        _program("nsenter", "needed", "no processes in hosts", "util-linux"),
        _program("mnexec", "useful", "no Mininet prompt", "mininet"),
        _module("mininet", "needed", "no emulated lab", "mininet"),
        _compiler(),
        _program("ping", "useful", "`h1 ping h5` does not work", "iputils-ping"),
        _program("tcpdump", "useful", "no captures at the prompt", "tcpdump"),
        _program("simple_switch_grpc", "useful", "no switches of kind bmv2", "p4lang-bmv2 (Ubuntu, p4lang's packages)"),
        _program("p4c", "useful", "our own compiler is used", "p4lang-p4c (Ubuntu, p4lang's packages)"),
    ]
    return findings + (_kernel() if root and shutil.which("ip") else [])


def _program(name: str, need: Need, cost: str, package: str) -> Finding:
    return Finding(name, shutil.which(name) is not None, need, cost, f"apt-get install {package}")


def _module(name: str, need: Need, cost: str, package: str) -> Finding:
    found = importlib.util.find_spec(name) is not None
    return Finding(f"Python module {name}", found, need, cost, f"pip install {package}")


def _compiler() -> Finding:
    found = any(shutil.which(name) for name in ("cc", "gcc", "clang"))
    return Finding(
        "C compiler",
        found,
        "needed",
        "no native switch; the reference interpreter is slow",
        "apt-get install gcc libc6-dev",
    )


def _kernel() -> list[Finding]:
    """Each feature by using it: a configuration file may lie, a module may load on demand."""
    newer = "a kernel that has it; distributions' own do"
    checks: list[tuple[str, Need, str, Callable[[], None]]] = [
        ("kernel: veth", "needed", "no links", _try_veth),
        ("kernel: IPv6", "needed", "host kernels cannot use the fabric", _try_ip("address add fd00::1/128 dev lo")),
        ("kernel: seg6 encap", "useful", "host kernels cannot be steered along a path", _try_ip(
            "route add fd00::2/128 encap seg6 mode encap.red segs fcbb:bbbb:1000:: dev d0")),
        ("kernel: seg6local next-csid", "useful", "no switches of kind linux", _try_ip(
            "route add fcbb:bbbb:1000::/48 encap seg6local action End flavors next-csid lblen 32 nflen 16 dev d0")),
        ("kernel: clsact with BPF", "needed", "no loss or blackhole on host ports", _try_tc),
        ("kernel: macvlan", "useful", "no link-down on switches of kind bmv2", _try_ip(
            "link add link d0 name d2 type macvlan mode passthru")),
        ("kernel: tbf", "useful", "switches of kind linux are not paced", _try_tbf),
    ]  # fmt: skip
    findings = []
    namespace.delete(_SCRATCH)
    namespace.create([_SCRATCH])
    try:
        for name, need, cost, attempt in checks:
            try:
                attempt()
                present = True
            except (namespace.IpError, OSError):
                present = False
            findings.append(Finding(name, present, need, cost, newer))
    finally:
        namespace.delete(_SCRATCH)
    return findings


def _try_veth() -> None:
    namespace.run_ip(["link add d0 type veth peer name d1", "link set d0 up", "link set d1 up"], _SCRATCH)


def _try_ip(line: str) -> Callable[[], None]:
    return lambda: namespace.run_ip([line], _SCRATCH)


def _try_tc() -> None:
    namespace.run_ip(tc.filter_commands("d0", tc.LOSS_PREF, tc.loss_program(0.5)), _SCRATCH, tool="tc")


def _try_tbf() -> None:
    namespace.run_ip(["qdisc add dev d1 root tbf rate 10mbit burst 16kb latency 50ms"], _SCRATCH, tool="tc")
