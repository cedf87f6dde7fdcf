"""The denylist of a host: each owner denies its paths, and the transport is given all of them together."""

from collections.abc import Callable, Set

Denials = frozenset[tuple[str, int]]
"""(destination host, EV)."""

PROBER, CONTROL, FAULTS = "prober", "control", "faults"
OWNERS = (CONTROL, FAULTS, PROBER)
BY_REQUEST = (CONTROL, FAULTS)
"""Owners whose share a request may replace; the prober keeps its own share."""


class Denylist:
    """A path is denied as long as any owner denies it: no owner can take back another's denial.

    `set_denied` is the transport's (`endpoint.transport.Transport.set_denied`).
    """

    def __init__(self, set_denied: Callable[[Denials, int], None]) -> None:
        self._set_denied = set_denied
        self._by_owner: dict[str, Denials] = {}

    def all(self) -> Denials:
        """The paths that any owner denies."""
        return frozenset().union(*self._by_owner.values())

    def of(self, owner: str) -> Denials:
        """The paths that this owner denies."""
        return self._by_owner.get(owner, frozenset())

    def set(self, owner: str, denied: Set[tuple[str, int]], now_ns: int) -> None:
        """Replace this owner's share."""
        self._by_owner[owner] = frozenset(denied)
        self._set_denied(self.all(), now_ns)

    def without(self, owner: str) -> Denials:
        """The paths that any other owner denies."""
        return frozenset().union(*(denied for name, denied in self._by_owner.items() if name != owner))
