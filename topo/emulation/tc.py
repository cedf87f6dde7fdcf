"""Loss on ports that are not our switch's: classic BPF in `tc clsact egress`, which every kernel with clsact has.

Only egress counts: packet sockets see a frame before tc ingress does. A filter's return value is tc's verdict: 4
(stolen) is a silent loss, where 2 (shot) would tell a sender ENOBUFS; -1 lets the packet on to the next filter.
"""

from collections.abc import Iterable

from common.linux.bpf import (
    JUMP_AT_LEAST,
    JUMP_EQUAL,
    LOAD_HALF,
    LOAD_WORD,
    RANDOM,
    RETURN,
    Line,
    assemble,
    tc_bytecode,
)
from topo.emulation.namespace import run_ip

_STEAL = Line(RETURN, 4)
_PASS = Line(RETURN, 0xFFFFFFFF, label="pass")

LOSS_PREF = 10
STOP_PREF = 5
NOISE_PREF = 20


def loss_program(loss: float) -> str:
    """Steals this share of packets, each by its own draw of the kernel's (unseeded) generator."""
    if loss >= 1:
        return tc_bytecode(assemble([_STEAL]))
    draw = [Line(LOAD_WORD, RANDOM), Line(JUMP_AT_LEAST, round(loss * (1 << 32)), true="pass")]
    return tc_bytecode(assemble([*draw, _STEAL, _PASS]))


def multicast_program() -> str:
    """Steals IPv6 multicast frames (MLD reports, router solicitations), told by their MAC."""
    match = [Line(LOAD_HALF, 0), Line(JUMP_EQUAL, 0x3333, false="pass")]
    return tc_bytecode(assemble([*match, _STEAL, _PASS]))


def filter_commands(interface: str, pref: int, program: str | None) -> list[str]:
    """Replaces the egress filter of this preference; None takes it away."""
    if program is None:
        return [f"filter del dev {interface} egress pref {pref}"]
    return [
        f"qdisc replace dev {interface} clsact",
        f"filter replace dev {interface} egress pref {pref} handle 1 protocol all bpf da bytecode '{program}'",
    ]


def set_stopped(netns: str, interfaces: Iterable[str], stopped: bool) -> None:
    """Nothing leaves these ports, or again what left them before."""
    program = loss_program(1.0) if stopped else None
    run_ip([line for name in interfaces for line in filter_commands(name, STOP_PREF, program)], netns, tool="tc")


def set_loss(netns: str, interface: str, loss: float) -> None:
    program = loss_program(loss) if loss > 0 else None
    run_ip(filter_commands(interface, LOSS_PREF, program), netns, tool="tc", force=program is None)
