"""Names of nodes: hosts `h5`, leaves (T0) `p1l2`, spines (T1) `p1s3`. Indices count from 0."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

SwitchRole = Literal["leaf", "spine"]

_SWITCH_NAME = re.compile(r"p(0|[1-9]\d*)([ls])(0|[1-9]\d*)")
_HOST_NAME = re.compile(r"h(0|[1-9]\d*)")
_LETTER: dict[SwitchRole, str] = {"leaf": "l", "spine": "s"}


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
    """A leaf (T0) or a spine (T1) of one plane."""

    plane: int
    role: SwitchRole
    index: int

    @property
    def name(self) -> str:
        return f"p{self.plane}{_LETTER[self.role]}{self.index}"

    def __str__(self) -> str:
        return self.name


Node = Host | Switch


def leaf(plane: int, index: int) -> Switch:
    return Switch(plane, "leaf", index)


def spine(plane: int, index: int) -> Switch:
    return Switch(plane, "spine", index)


def parse_node(name: str) -> Node:
    """The node of this name, whether or not some plan has it; ValueError when it is no node's name."""
    if match := _HOST_NAME.fullmatch(name):
        return Host(int(match[1]))
    if match := _SWITCH_NAME.fullmatch(name):
        return Switch(int(match[1]), "leaf" if match[2] == "l" else "spine", int(match[3]))
    raise ValueError(f"{name!r} is no node: hosts are h0, h1, …; leaves p0l0, …; spines p0s0, …")
