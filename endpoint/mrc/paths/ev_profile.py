"""EV profiles (OCP MRC API, `mrc_ctl_ev_profile_attr`): the EVs that queue pairs may use, programmed by a controller.

A profile goes INIT → OFFLINE → ONLINE and back. Its mode says where its EVs come from:

- AUTO: the NIC chooses among all paths to the peer (settings `evs_active` and `evs_backup`). Profile 0 is such a one.
- EXPLICIT: an array of EVs, each with its port. All of them are in rotation.
- GENERATED: fields, from the most significant bit of the EV on. A field's bits outside of `mask` are those of
  `init_val`; the bits in `mask`, taken together from the most significant on, are a number from `min_val` to `max_val`.
  The EVs of all such numbers that name a path are the profile's.

An EV is a name here: the NIC's own profile says which path and which SRv6 address it names.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from endpoint.nic.attributes import BusyError, VerbError
from endpoint.nic.packet import Route
from endpoint.transport import QueueFull

EV_WIDTH_MAX = 32
COUNT_MAX = 4096
"""EVs in one profile."""
PROFILES_MAX = 256
EVENT_GOOD, EVENT_ASSUMED_BAD, STATE_DENIED = 1, 2, 4
"""Bits of `mrc_ctl_ev_state`, those of an event mask first."""
UNPOPULATED = (0, 0)
C = TypeVar("C", bound=Enum)
Entry = tuple[int, int]
"""An EV and its port, from 1."""


class EvMode(Enum):
    """Where the EVs of a profile come from."""

    AUTO = "auto"
    EXPLICIT = "explicit"
    GENERATED = "generated"


class ProfileState(Enum):
    """`mrc_ctl_profile_state`."""

    INIT = "init"
    OFFLINE = "offline"
    ONLINE = "online"


STEPS = {
    ProfileState.INIT: (ProfileState.OFFLINE,),
    ProfileState.OFFLINE: (ProfileState.ONLINE, ProfileState.INIT),
    ProfileState.ONLINE: (ProfileState.OFFLINE,),
}
OFFLINE_ATTRIBUTES = ("ev_mode", "ev_count", "ev_min_active", "ev_event_mask", "replace_ev", "fields")
ATTRIBUTES = ("profile_state", "cur_profile_state", *OFFLINE_ATTRIBUTES, "modify_ev_state")


@dataclass(frozen=True, slots=True)
class EvField:
    """One field of a generated EV, `mrc_ctl_ev_field`."""

    width: int
    init_val: int = 0
    min_val: int = 0
    max_val: int = 0
    mask: int = 0

    def check(self) -> None:
        """Raises `VerbError` for what the API's restrictions rule out."""
        for name in ("width", "init_val", "min_val", "max_val", "mask"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise VerbError(f"an EV field's {name} is {value!r}; it must be a whole number")
        if not 1 <= self.width <= EV_WIDTH_MAX:
            raise VerbError(f"an EV field's width is {self.width}; it must be from 1 to {EV_WIDTH_MAX}")
        for name in ("init_val", "mask"):
            if getattr(self, name) >> self.width:
                raise VerbError(f"an EV field's {name} is {getattr(self, name):#x}; it has more than {self.width} bits")
        most = (1 << self.mask.bit_count()) - 1
        if not self.min_val <= self.max_val <= most:
            raise VerbError(
                f"an EV field's values are {self.min_val} to {self.max_val}; its mask {self.mask:#x} allows 0 to {most}"
            )

    def has(self, value: int) -> bool:
        """Whether the field can have this value."""
        if (value ^ self.init_val) & ~self.mask:
            return False
        number = 0
        for at in reversed(range(self.width)):
            if self.mask >> at & 1:
                number = number << 1 | (value >> at & 1)
        return self.min_val <= number <= self.max_val


@dataclass(slots=True)
class EvProfile:
    """`denied` are EVs that the controller has taken out of this profile."""

    number: int
    state: ProfileState = ProfileState.INIT
    mode: EvMode = EvMode.AUTO
    entries: list[Entry] = field(default_factory=list)
    fields: tuple[EvField, ...] = ()
    min_active: int | None = None
    event_mask: int = EVENT_GOOD | EVENT_ASSUMED_BAD
    denied: frozenset[int] = frozenset()

    def choose(self, routes: list[Route]) -> list[Route]:
        """Those of the paths to a peer that the profile allows."""
        if self.mode is EvMode.AUTO:
            return routes
        allowed = set(self.entries)
        return [route for route in routes if (route.ev, route.port.number) in allowed]

    def floor_share(self, default: float) -> float:
        """The share of the EVs that a loss by chance takes none out of."""
        return default if self.min_active is None or not self.entries else self.min_active / len(self.entries)


class EvProfiles:
    """The EV profiles of a NIC by their ids. `known` finds all (EV, port) of the NIC's own profile."""

    def __init__(self, known: Callable[[], frozenset[Entry]]) -> None:
        self._known = known
        self._profiles = {0: EvProfile(0, ProfileState.ONLINE)}

    def online(self, number: int) -> EvProfile:
        """The profile for a QP. Raises `VerbError` for one that is not ONLINE."""
        profile = self._profiles.get(number)
        if profile is None or profile.state is not ProfileState.ONLINE:
            online = [str(key) for key, entry in sorted(self._profiles.items()) if entry.state is ProfileState.ONLINE]
            state = "INIT" if profile is None else profile.state.name
            raise VerbError(f"EV profile {number} is in {state}; ONLINE are {', '.join(online)}")
        return profile

    def query(self, number: int) -> EvProfile:
        """A profile that was never configured is in INIT."""
        return self._profiles.get(number) or EvProfile(number)

    def entries_of(self, profile: EvProfile) -> frozenset[Entry]:
        """All EVs of a profile with their ports."""
        return self._known() if profile.mode is EvMode.AUTO else frozenset(profile.entries) - {UNPOPULATED}

    def modify(self, number: int, given: Mapping[str, Any], users: list[int]) -> EvProfile:
        """Set attributes and take a step; `users` are the QPs that have the profile. Raises `VerbError`,
        `BusyError` for a step while it has users."""
        for name in given:
            if name not in ATTRIBUTES:
                raise VerbError(f"an EV profile has no attribute {name!r}; valid: {', '.join(ATTRIBUTES)}")
        if type(number) is not int or not 0 <= number < 1 << 64:
            raise VerbError(f"an EV profile's id is {number!r}; it must be an integer of 64 bits")
        old = self.query(number)
        new = EvProfile(
            number, old.state, old.mode, list(old.entries), old.fields, old.min_active, old.event_mask, old.denied
        )
        target = self._target(old, given, users)
        self._set(new, given)
        if target is ProfileState.INIT:
            self._profiles.pop(number, None)
            return EvProfile(number)
        self._check(new, target)
        if number not in self._profiles and len(self._profiles) >= PROFILES_MAX:
            raise QueueFull(f"the NIC has {PROFILES_MAX} EV profiles; bring one back to INIT first")
        new.state = target
        self._profiles[number] = new
        return new

    def _target(self, old: EvProfile, given: Mapping[str, Any], users: list[int]) -> ProfileState:
        """The state that the profile is to go to, or stay in."""
        number, state = old.number, old.state
        believed = _choice(ProfileState, "cur_profile_state", given.get("cur_profile_state", state.value))
        if believed is not state:
            raise VerbError(f"EV profile {number} is in {state.name}, not in {believed.name}")
        target = _choice(ProfileState, "profile_state", given.get("profile_state", state.value))
        if target is state:
            if state is ProfileState.INIT:
                raise VerbError(f"EV profile {number} is in INIT; set its attributes on the way to OFFLINE")
            return state
        if number == 0:
            raise VerbError("EV profile 0 is the NIC's own and stays ONLINE")
        if target not in STEPS[state]:
            valid = ", ".join(step.name for step in STEPS[state])
            raise VerbError(f"EV profile {number} is in {state.name} and cannot go to {target.name}; valid: {valid}")
        if users:
            raise BusyError(f"EV profile {number} is in use by QPs {users[:5]}; destroy them first")
        return target

    def _set(self, profile: EvProfile, given: Mapping[str, Any]) -> None:
        if profile.state is ProfileState.ONLINE:
            fixed = [name for name in OFFLINE_ATTRIBUTES if name in given and name != "ev_event_mask"]
            if fixed:
                raise VerbError(f"EV profile {profile.number} is ONLINE; {', '.join(fixed)} can be set in OFFLINE only")
        if "ev_mode" in given:
            profile.mode = _choice(EvMode, "ev_mode", given["ev_mode"])
            profile.entries, profile.fields = [], ()
        if "ev_count" in given:
            count = _whole("ev_count", given["ev_count"], 1, COUNT_MAX)
            profile.entries = (profile.entries + [UNPOPULATED] * count)[:count]
        if "fields" in given:
            self._generate(profile, [EvField(*row) for row in _rows("fields", given["fields"], 5)])
        if "ev_min_active" in given:
            profile.min_active = _whole("ev_min_active", given["ev_min_active"], 0, COUNT_MAX)
        if "ev_event_mask" in given:
            profile.event_mask = _whole("ev_event_mask", given["ev_event_mask"], 0, EVENT_GOOD | EVENT_ASSUMED_BAD)
        for ev, port, new_ev, new_port in _rows("replace_ev", given.get("replace_ev", ()), 4):
            self._replace(profile, (ev, port), (new_ev, new_port))
        for ev, state in _rows("modify_ev_state", given.get("modify_ev_state", ()), 2):
            self._deny(profile, ev, state)

    def _generate(self, profile: EvProfile, fields: list[EvField]) -> None:
        for ev_field in fields:
            ev_field.check()
        width = sum(ev_field.width for ev_field in fields)
        if profile.mode is not EvMode.GENERATED or not 1 <= width <= EV_WIDTH_MAX:
            raise VerbError(f"fields are for GENERATED profiles, at most {EV_WIDTH_MAX} bits together, not {width}")
        profile.fields = tuple(fields)
        profile.entries = sorted(entry for entry in self._known() if _generated(entry[0], fields, width))

    def _replace(self, profile: EvProfile, old: Entry, new: Entry) -> None:
        if profile.mode is not EvMode.EXPLICIT:
            raise VerbError(
                f"EV profile {profile.number} is {profile.mode.name}; EVs are replaced in EXPLICIT ones only"
            )
        if old not in profile.entries:
            raise VerbError(f"EV profile {profile.number} has no EV {old[0]:#x} on port {old[1]} (0 on port 0: unset)")
        if new in profile.entries:
            raise VerbError(f"EV profile {profile.number} has EV {new[0]:#x} on port {new[1]} already")
        if new not in self._known():
            some = ", ".join(f"{ev:#x} on port {port}" for ev, port in sorted(self._known())[:4])
            raise VerbError(f"EV {new[0]:#x} on port {new[1]} names no path of this NIC; valid: {some}, …")
        profile.entries[profile.entries.index(old)] = new

    def _deny(self, profile: EvProfile, ev: int, state: int) -> None:
        if state not in (EVENT_GOOD, STATE_DENIED):
            raise VerbError(
                f"an EV's state is {state}; a controller sets {EVENT_GOOD} (GOOD) or {STATE_DENIED} (DENIED)"
            )
        if all(ev != other for other, _ in self.entries_of(profile)):
            raise VerbError(f"EV profile {profile.number} has no EV {ev:#x}")
        profile.denied = profile.denied | {ev} if state == STATE_DENIED else profile.denied - {ev}

    def _check(self, profile: EvProfile, target: ProfileState) -> None:
        count = len(profile.entries)
        if profile.min_active is not None and profile.mode is not EvMode.AUTO and profile.min_active > count:
            raise VerbError(f"ev_min_active is {profile.min_active}; the profile has {count} EVs")
        if target is not ProfileState.ONLINE or profile.mode is EvMode.AUTO:
            return
        unset = profile.entries.count(UNPOPULATED)
        if unset or not profile.entries:
            raise VerbError(
                f"EV profile {profile.number} cannot go ONLINE: {unset or 'all'} of its EVs are not there; "
                + ("replace the unset ones first" if profile.mode is EvMode.EXPLICIT else "its fields name no path")
            )


def _generated(ev: int, fields: Iterable[EvField], width: int) -> bool:
    """Whether an EV of `width` bits is one of those that the fields make."""
    if ev >> width:
        return False
    for ev_field in fields:
        width -= ev_field.width
        if not ev_field.has(ev >> width & (1 << ev_field.width) - 1):
            return False
    return True


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise VerbError(f"{name} is {value!r}; it must be an integer from {low} to {high}")
    return value


def _choice(kind: type[C], name: str, value: Any) -> C:
    for member in kind:
        if member.value == value:
            return member
    raise VerbError(f"{name} is {value!r}; valid: {', '.join(str(member.value) for member in kind)}")


def _rows(name: str, value: Any, numbers: int) -> list[list[int]]:
    """A list of rows of so many whole numbers each."""
    rows = list(value) if isinstance(value, list | tuple) else [None]
    for row in rows:
        if not isinstance(row, list | tuple) or len(row) != numbers or any(type(number) is not int for number in row):
            raise VerbError(f"{name} has {row!r}; it must be a list of rows of {numbers} integers")
    return [list(row) for row in rows if row is not None]
