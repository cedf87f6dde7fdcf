"""Action profiles and selectors: members, groups, and the choice of a member by hash."""

from __future__ import annotations

from collections.abc import Sequence

from switch.engine import GROUP_WEIGHT_MAX, EngineError
from switch.entries import ActionCall, GroupRef, MemberRef
from switch.model.pipelines import ActionProfile
from switch.reference.calculations import Hasher, hasher
from switch.reference.packet import Packet
from switch.reference.runtime import Runtime


class ProfileState:
    def __init__(self, profile: ActionProfile, select: Hasher | None) -> None:
        self.profile = profile
        self.select = select
        self.members: dict[int, ActionCall] = {}
        self.groups: dict[int, list[int]] = {}  # group → member ids, each as often as its weight


class Profiles:
    def __init__(self, runtime: Runtime) -> None:
        layout = runtime.layout
        self._states = {
            p.name: ProfileState(p, None if p.selector is None else hasher(p.selector, layout))
            for p in runtime.program.profiles
        }

    def state(self, name: str) -> ProfileState:
        if name not in self._states:
            known = ", ".join(sorted(self._states)) or "none"
            raise EngineError(f"no action profile is called {name!r}; there are: {known}")
        return self._states[name]

    def set_group(self, name: str, group_id: int, members: Sequence[tuple[int, int]]) -> None:
        state = self.state(name)
        if state.select is None:
            raise EngineError(f"action profile {name} has no selector, so no groups")
        for member, weight in members:
            if member not in state.members:
                raise EngineError(f"action profile {name}: no member has id {member}")
            if weight < 1:
                raise EngineError(f"action profile {name}: the weight {weight} of member {member} is not positive")
        total = sum(weight for _, weight in members)
        if total > GROUP_WEIGHT_MAX:
            raise EngineError(
                f"action profile {name}: the weights of a group add up to {total}; at most {GROUP_WEIGHT_MAX} do"
            )
        state.groups[group_id] = [member for member, weight in members for _ in range(weight)]

    def delete_group(self, name: str, group_id: int) -> None:
        state = self.state(name)
        if group_id not in state.groups:
            raise EngineError(f"action profile {name}: no group has id {group_id}")
        del state.groups[group_id]

    def delete_member(self, name: str, member_id: int) -> None:
        state = self.state(name)
        if member_id not in state.members:
            raise EngineError(f"action profile {name}: no member has id {member_id}")
        del state.members[member_id]

    def choose(self, name: str, action: MemberRef | GroupRef, packet: Packet) -> ActionCall | None:
        state = self._states[name]
        if isinstance(action, MemberRef):
            return state.members.get(action.member_id)
        members = state.groups.get(action.group_id)
        if not members or state.select is None:
            return None
        return state.members.get(members[state.select(packet) % len(members)])
