"""Names of nodes: hosts `h5`, leaves (T0) `p1l2`, spines (T1) `p1s3`, cores (T2) `p1c0`. Indices count from 0."""

import re
from dataclasses import dataclass
from typing import Literal

SwitchRole = Literal["leaf", "spine", "core"]
ROLES: tuple[SwitchRole, ...] = ("leaf", "spine", "core")
"""From the lowest tier of switches to the highest."""
PLURALS: dict[SwitchRole, str] = {"leaf": "leaves", "spine": "spines", "core": "cores"}

SwitchProgram = Literal["leaf", "spine"]
"""The P4 programs: `leaf.p4` for switches with hosts, `spine.p4` for all others."""

_SWITCH_NAME = re.compile(r"p(0|[1-9]\d*)([lsc])(0|[1-9]\d*)", re.ASCII)
_HOST_NAME = re.compile(r"h(0|[1-9]\d*)", re.ASCII)
_LETTER: dict[SwitchRole, str] = {"leaf": "l", "spine": "s", "core": "c"}
_ROLE: dict[str, SwitchRole] = {letter: role for role, letter in _LETTER.items()}
_TIER: dict[SwitchRole, int] = {role: tier for tier, role in enumerate(ROLES, 1)}


@dataclass(frozen=True, slots=True, order=True)
class Host:
    """A host and its one NIC, which has a port in every plane."""

    index: int

    @property
    def name(self) -> str:
        return f"h{self.index}"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, order=True)
class Switch:
    """A leaf (T0), a spine (T1) or a core (T2) of one plane."""

    plane: int
    role: SwitchRole
    index: int

    @property
    def name(self) -> str:
        return f"p{self.plane}{_LETTER[self.role]}{self.index}"

    @property
    def program(self) -> SwitchProgram:
        """The P4 program that it runs."""
        return "leaf" if self.role == "leaf" else "spine"

    def __str__(self) -> str:
        return self.name


Node = Host | Switch


def leaf(plane: int, index: int) -> Switch:
    """The leaf of a plane; both count from 0."""
    return Switch(plane, "leaf", index)


def spine(plane: int, index: int) -> Switch:
    """The spine of a plane; both count from 0."""
    return Switch(plane, "spine", index)


def core(plane: int, index: int) -> Switch:
    return Switch(plane, "core", index)


def tier(node: Node) -> int:
    """0 for a host, 1 for a leaf, 2 for a spine, 3 for a core."""
    return 0 if isinstance(node, Host) else _TIER[node.role]


def is_node_name(text: str) -> bool:
    """Whether `parse_node` reads this text."""
    return bool(_HOST_NAME.fullmatch(text) or _SWITCH_NAME.fullmatch(text))


def parse_node(name: str) -> Node:
    """The node of this name, whether or not some plan has it; ValueError when it is no node's name."""
    if match := _HOST_NAME.fullmatch(name):
        return Host(int(match[1]))
    if match := _SWITCH_NAME.fullmatch(name):
        return Switch(int(match[1]), _ROLE[match[2]], int(match[3]))
    raise ValueError(f"{name!r} is no node: hosts are h0, h1, …; leaves p0l0, …; spines p0s0, …; cores p0c0, …")
