"""Multicast groups and clone sessions, as the control plane set them."""

from __future__ import annotations

from collections.abc import Sequence

from switch.engine import EngineError, Replica
from switch.records import Frozen


class CloneSession(Frozen):
    replicas: tuple[Replica, ...]
    truncate_bytes: int  # 0: whole


class Replication:
    def __init__(self) -> None:
        self.groups: dict[int, tuple[Replica, ...]] = {}
        self.sessions: dict[int, CloneSession] = {}

    def set_group(self, group_id: int, replicas: Sequence[Replica]) -> None:
        if group_id < 1:
            raise EngineError(f"multicast groups are numbered from 1, not {group_id}: 0 means no multicast")
        self.groups[group_id] = tuple(replicas)

    def delete_group(self, group_id: int) -> None:
        if group_id not in self.groups:
            raise EngineError(f"no multicast group has id {group_id}")
        del self.groups[group_id]

    def set_session(self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int) -> None:
        if not 0 <= session_id < 1 << 15:
            raise EngineError(f"clone sessions are numbered 0 to 32767, not {session_id}")
        if truncate_bytes < 0:
            raise EngineError(f"a clone cannot be truncated to {truncate_bytes} bytes")
        self.sessions[session_id] = CloneSession(tuple(replicas), truncate_bytes)

    def delete_session(self, session_id: int) -> None:
        if session_id not in self.sessions:
            raise EngineError(f"no clone session has id {session_id}")
        del self.sessions[session_id]
