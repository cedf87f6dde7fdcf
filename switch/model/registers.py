"""Register arrays: the state that a program itself reads and writes, in expressions too."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Register:
    """`size` cells of `width_bits` each."""

    name: str
    index: int
    size: int
    width_bits: int
