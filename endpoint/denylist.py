"""The denylist of a host: each owner denies its paths, and the transport is given all of them together."""

from __future__ import annotations

from collections.abc import Set
from typing import Protocol

Denials = frozenset[tuple[str, int]]
"""(destination host, EV)."""

PROBER, CONTROL, FAULTS = "prober", "control", "faults"
OWNERS = (CONTROL, FAULTS, PROBER)
BY_REQUEST = (CONTROL, FAULTS)
"""Owners whose share a request may replace; the prober keeps its own share."""


class Denier(Protocol):
    """A denylist as one of its owners sees the list."""

    def others(self) -> Denials:
        """The paths that the other owners deny."""

    def deny(self, denied: Set[tuple[str, int]], now_ns: int) -> None:
        """Replace this owner's share by these paths."""


class DenyingTransport(Protocol):
    """The part of a transport that a denylist needs."""

    def set_denied(self, denied: Set[tuple[str, int]], now_ns: int) -> None: ...


class Denylist:
    """A path is denied as long as any owner denies it: no owner can take back another's denial."""

    def __init__(self, transport: DenyingTransport) -> None:
        self._transport = transport
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
        self._transport.set_denied(self.all(), now_ns)

    def denier(self, owner: str) -> Denier:
        """This list as one owner sees it."""
        return _Denier(self, owner)

    def without(self, owner: str) -> Denials:
        """The paths that any other owner denies."""
        return frozenset().union(*(denied for name, denied in self._by_owner.items() if name != owner))


class _Denier:
    def __init__(self, denylist: Denylist, owner: str) -> None:
        self._denylist = denylist
        self._owner = owner

    def others(self) -> Denials:
        return self._denylist.without(self._owner)

    def deny(self, denied: Set[tuple[str, int]], now_ns: int) -> None:
        self._denylist.set(self._owner, denied, now_ns)
