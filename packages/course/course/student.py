"""A student's seeds: from a name or number and the teacher's key, another one for each lab."""

import hashlib
import hmac
import re
from dataclasses import dataclass

OWN_NAME, OWN_KEY = "me", "self-study"
"""Name and key of students without a teacher."""
NAME_LENGTH_MAX = 80
REFUSED = frozenset("\"'`\\$")
"""Characters that shells, programs and web pages take for more than text. A name becomes part of many of them."""
STARTED = re.compile(r"^(?:#|//) Started for ([0-9a-f]{8}):", re.MULTILINE)


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

    def mark(self, lab: int) -> str:
        """The fingerprint of a lab's seed, which a started file carries."""
        return hashlib.sha256(f"mrclab course {self.seed(lab)}".encode()).hexdigest()[:8]

    @property
    def description(self) -> str:
        """Whose questions these are, and whether they count in a class."""
        if self.key != OWN_KEY:
            return f"{self.name!r}, with the course key"
        return f"{self.name!r}, without a course key: they count in no class. In a class: ./lab course join NAME@KEY"

    def other_start(self, lab: int, source: str) -> str:
        """Why a file must not be checked against this student's questions; "" if it may, or does not say who it is."""
        match = STARTED.search(source)
        if match is None or match[1] == self.mark(lab):
            return ""
        keyless = {Student(name).mark(lab) for name in (OWN_NAME, self.name)}
        how = "without the course key" if match[1] in keyless else "under another name or key"
        return (
            f"this file was started {how}, so it has other questions than those of {self.name!r}. Join with"
            f" ./lab course join NAME@KEY, and ./lab start {lab} in an empty folder"
        )


def joined(code: str) -> Student:
    """The student of a code NAME@KEY. ValueError for one without either."""
    name, at, key = code.rpartition("@")
    if not at:
        raise ValueError(f"a code must be NAME@KEY, as the teacher gives it (got {code!r})")
    return Student(name, key)


def started(text: str, suffix: str, mark: str) -> str:
    """A starter with the fingerprint of its seed."""
    sign = "//" if suffix == ".p4" else "#"
    return f"{text.rstrip()}\n\n{sign} Started for {mark}: keep this line, which says whose questions these are.\n"
