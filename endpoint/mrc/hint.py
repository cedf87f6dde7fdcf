"""QP hints (OCP MRC API, `mrc_qp_hint_attr`): how many queue pairs a program expects to send at the same time.

A lone QP starts at line rate, with 1.5 bandwidth-delay products. Of many that start together each would put as much on
the same line. A hint says how many there are, and each QP that has it starts with its share; later it grows as the
network lets it, so a wrong hint costs some round trips and nothing more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from endpoint.nic.attributes import VerbError
from endpoint.transport import QueueFull

HINTS_MAX = 4096
NUMBER_MAX = (1 << 31) - 1
NAMES = ("num_qps_per_peer", "num_send_peers", "num_remote_recv_peers")


@dataclass(frozen=True, slots=True)
class QpHint:
    """`num_qps_per_peer` QPs with this hint send to the same peer at a time, to `num_send_peers` peers at a time;
    `num_remote_recv_peers` remote QPs send to the same peer meanwhile: the incast that the peer sees."""

    num_qps_per_peer: int = 1
    num_send_peers: int = 1
    num_remote_recv_peers: int = 1

    @property
    def sharers(self) -> int:
        """QPs over the busier of the two lines: this NIC's own, or the peer's."""
        return max(self.num_qps_per_peer * self.num_send_peers, self.num_remote_recv_peers)


class QpHints:
    """The hints of a NIC by their numbers; 0 is none."""

    def __init__(self) -> None:
        self._hints = {0: QpHint()}
        self._next = 1

    def create(self, attributes: Mapping[str, Any]) -> int:
        """The number of a new hint. Raises `VerbError` or `QueueFull`."""
        hint = replace(QpHint(), **_checked(attributes))
        if len(self._hints) > HINTS_MAX:
            raise QueueFull(f"the NIC has {HINTS_MAX} QP hints; destroy one first")
        number = self._next
        self._next += 1
        self._hints[number] = hint
        return number

    def modify(self, number: int, attributes: Mapping[str, Any]) -> None:
        """Replace what is given. Raises `VerbError`."""
        hint = self._own(number)
        self._hints[number] = replace(hint, **_checked(attributes))

    def find(self, number: int) -> QpHint:
        """Raises `VerbError` for a hint that does not exist."""
        hint = self._hints.get(number)
        if hint is None:
            known = ", ".join(map(str, list(self._hints)[:16]))
            raise VerbError(f"there is no QP hint {number}; present: {known} (0: none)")
        return hint

    def destroy(self, number: int) -> None:
        """Raises `VerbError`."""
        self._own(number)
        del self._hints[number]

    def _own(self, number: int) -> QpHint:
        if number == 0:
            raise VerbError("QP hint 0 means no hint; it can be neither modified nor destroyed")
        return self.find(number)


def _checked(attributes: Mapping[str, Any]) -> dict[str, int]:
    for name, value in attributes.items():
        if name not in NAMES:
            raise VerbError(f"a QP hint has no attribute {name!r}; valid: {', '.join(NAMES)}")
        if type(value) is not int or not 1 <= value <= NUMBER_MAX:
            raise VerbError(f"{name} is {value!r}; it must be an integer from 1 to {NUMBER_MAX}")
    return dict(attributes)
