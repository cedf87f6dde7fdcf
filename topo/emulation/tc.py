"""Loss on transmit sides that are not our switch's: classic BPF in `tc clsact egress`, to be had wherever clsact is.

Only egress counts: packet sockets see a frame before tc ingress does. A filter's return value is tc's verdict: 4
(stolen) is a silent loss, where 2 (shot) would tell a sender ENOBUFS; -1 lets the packet on to the next filter.
"""

from __future__ import annotations

from topo.emulation.namespace import run_ip

_LOAD_HALF, _LOAD_WORD, _RETURN = 40, 32, 6
_JUMP_EQUAL, _JUMP_GREATER_EQUAL = 21, 53
_RANDOM = 0xFFFFF038  # SKF_AD_OFF + SKF_AD_RANDOM: classic BPF's random load
_STOLEN, _UNSPEC = 4, 0xFFFFFFFF

LOSS_PREF = 10
STOP_PREF = 5
NOISE_PREF = 20


def _program(*instructions: tuple[int, int, int, int]) -> str:
    return ",".join([str(len(instructions)), *(" ".join(map(str, i)) for i in instructions)])


def loss_program(loss: float) -> str:
    """Steals this share of packets, each by its own draw of the kernel's (unseeded) generator."""
    if loss >= 1:
        return _program((_RETURN, 0, 0, _STOLEN))
    return _program(
        (_LOAD_WORD, 0, 0, _RANDOM),
        (_JUMP_GREATER_EQUAL, 1, 0, round(loss * (1 << 32))),
        (_RETURN, 0, 0, _STOLEN),
        (_RETURN, 0, 0, _UNSPEC),
    )


def multicast_program() -> str:
    """Steals IPv6 multicast frames (MLD reports, router solicitations), told by their MAC."""
    return _program(
        (_LOAD_HALF, 0, 0, 0),
        (_JUMP_EQUAL, 0, 1, 0x3333),
        (_RETURN, 0, 0, _STOLEN),
        (_RETURN, 0, 0, _UNSPEC),
    )


def filter_commands(interface: str, pref: int, program: str | None) -> list[str]:
    """Replaces the egress filter of this preference; None takes it away."""
    if program is None:
        return [f"filter del dev {interface} egress pref {pref}"]
    return [
        f"qdisc replace dev {interface} clsact",
        f"filter replace dev {interface} egress pref {pref} handle 1 protocol all bpf da bytecode '{program}'",
    ]


def set_loss(netns: str, interface: str, loss: float) -> None:
    program = loss_program(loss) if loss > 0 else None
    run_ip(filter_commands(interface, LOSS_PREF, program), netns, tool="tc", force=program is None)
