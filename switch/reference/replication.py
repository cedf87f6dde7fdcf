"""Multicast groups and clone sessions, as the control plane set them."""

from __future__ import annotations

from collections.abc import Sequence

from common.records import Frozen
from switch import rules
from switch.engine import Replica


class CloneSession(Frozen):
    replicas: tuple[Replica, ...]
    truncate_bytes: int  # 0: whole
    class_of_service: int = 0


class Replication:
    def __init__(self) -> None:
        self.groups: dict[int, tuple[Replica, ...]] = {}
        self.sessions: dict[int, CloneSession] = {}

    def set_group(self, group_id: int, replicas: Sequence[Replica]) -> None:
        rules.check_multicast_group(group_id)
        self.groups[group_id] = tuple(replicas)

    def delete_group(self, group_id: int) -> None:
        rules.check_known(self.groups, "multicast group", group_id)
        del self.groups[group_id]

    def set_session(
        self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int, class_of_service: int
    ) -> None:
        rules.check_clone_session(session_id, truncate_bytes, class_of_service)
        self.sessions[session_id] = CloneSession(tuple(replicas), truncate_bytes, class_of_service)

    def delete_session(self, session_id: int) -> None:
        rules.check_known(self.sessions, "clone session", session_id)
        del self.sessions[session_id]
