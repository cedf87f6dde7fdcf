"""A student's seeds: from a name or number and the teacher's key, another one for each lab."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

OWN_KEY = "self-study"
"""The key of students without a teacher."""
NAME_LENGTH_MAX = 80
REFUSED = frozenset("\"'`\\$")
"""Characters that shells, programs and web pages take for more than text. A name becomes part of many of them."""


@dataclass(frozen=True, slots=True)
class Student:
    """`name` as the teacher's list has it; upper and lower case are one, and blanks around it are ignored."""

    name: str
    key: str = OWN_KEY

    def __post_init__(self) -> None:
        name = self.name
        if not 0 < len(name.strip()) <= NAME_LENGTH_MAX or not name.isprintable() or REFUSED.intersection(name):
            raise ValueError(
                f"a student's name must have 1 to {NAME_LENGTH_MAX} printable characters, none of them a quote, a"
                f" backslash, a backtick or $ (got {name[:90]!r})"
            )
        if not self.key:
            raise ValueError("the course key must not be empty; the teacher chooses it")

    def seed(self, lab: int, purpose: str = "") -> int:
        """The seed of one lab: HMAC-SHA-256 of lab and name under the key, 48 bits."""
        text = f"{lab}:{self.name.strip().casefold()}:{purpose}"
        digest = hmac.new(self.key.encode(), text.encode(), hashlib.sha256).digest()
        return int.from_bytes(digest[:6], "big")
