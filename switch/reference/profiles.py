"""Action profiles and selectors: members, groups, and the choice of a member by hash."""

from collections.abc import Sequence

from p4c.entries import ActionCall, GroupRef, MemberRef
from p4c.model.pipelines import ActionProfile
from switch import rules
from switch.reference.calculations import Hasher, hasher
from switch.reference.packet import Packet
from switch.reference.runtime import Runtime


class ProfileSelection:
    def __init__(self, profile: ActionProfile, select: Hasher | None) -> None:
        self.profile = profile
        self.select = select
        self.members: dict[int, ActionCall] = {}
        self.groups: dict[int, list[int]] = {}  # group → member ids, each as often as its weight


class Profiles:
    def __init__(self, runtime: Runtime) -> None:
        layout = runtime.layout
        self._states = {
            p.name: ProfileSelection(p, None if p.selector is None else hasher(p.selector, layout))
            for p in runtime.program.profiles
        }

    def state(self, name: str) -> ProfileSelection:
        return rules.find(self._states, name, "action profile")

    def set_group(self, name: str, group_id: int, members: Sequence[tuple[int, int]]) -> None:
        state = self.state(name)
        rules.check_group(state.profile, state.members, members)
        state.groups[group_id] = [member for member, weight in members for _ in range(weight)]

    def delete_group(self, name: str, group_id: int) -> None:
        state = self.state(name)
        rules.check_known(state.groups, f"group of action profile {name}", group_id)
        del state.groups[group_id]

    def delete_member(self, name: str, member_id: int) -> None:
        state = self.state(name)
        rules.check_known(state.members, f"member of action profile {name}", member_id)
        del state.members[member_id]

    def choose(self, name: str, action: MemberRef | GroupRef, packet: Packet) -> ActionCall | None:
        state = self._states[name]
        if isinstance(action, MemberRef):
            return state.members.get(action.member_id)
        members = state.groups.get(action.group_id)
        if not members or state.select is None:
            return None
        return state.members.get(members[state.select(packet) % len(members)])
