"""Requests that every engine refuses in the same words: those that the program or a switch cannot carry out.

Each function raises EngineError, which names the thing, the rule and the valid choices, before anything has changed.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple
from typing import TypeVar

from p4c.entries import ActionCall, EntryAction, Exact, GroupRef, Lpm, Match, Optional, Range, Ternary
from p4c.model import Action, Program, Register
from p4c.model.pipelines import ActionProfile, Key, Table
from switch.engine import (
    DROP_PORT,
    FRAME_BYTES_MAX,
    GROUP_WEIGHT_MAX,
    PFC_QUANTA_MAX,
    PORT_DEFAULTS,
    PORT_SHARES,
    PRIORITIES,
    EngineError,
    MeterConfig,
    PortConfig,
)

T = TypeVar("T")

# What may be given for a match field of each kind of the JSON; `optional` of P4 is ternary there.
ACCEPTED: dict[str, tuple[type, ...]] = {
    "exact": (Exact,),
    "lpm": (Lpm,),
    "ternary": (Ternary, Optional, Exact, Lpm),
    "range": (Range,),
}
SESSION_MAX = (1 << 15) - 1  # simple_switch keeps 15 bits of the session of clone()

# A canonical match: (value, mask) for exact, lpm and ternary fields, (low, high) for range fields.
Pair = tuple[int, int]


def find(items: Mapping[str, T], name: str, kind: str) -> T:
    """The object of that name."""
    try:
        return items[name]
    except KeyError:
        known = ", ".join(sorted(items)) or "none"
        raise EngineError(f"no {kind} is called {name!r}; there are: {known}") from None


def check_cells(kind: str, name: str, size: int, first: int, count: int = 1) -> None:
    """Refuse cells that an array of `size` has not."""
    for index in (first, first + count - 1):
        if not 0 <= index < size:
            raise EngineError(f"{kind} {name} has {size} cells, from 0; there is no {index}")


def check_known(ids: Collection[int], what: str, number: int) -> None:
    if number not in ids:
        raise EngineError(f"no {what} has id {number}")


# --- tables -----------------------------------------------------------------------------------------------------


def canonical(table: Table, matches: Sequence[Match]) -> tuple[Pair, ...]:
    """A pair for each match field, values masked."""
    if len(matches) != len(table.keys):
        raise EngineError(f"table {table.name}: {len(table.keys)} match fields expected, not {len(matches)}")
    return tuple([_canonical(table, key, match) for key, match in zip(table.keys, matches, strict=True)])


def _canonical(table: Table, key: Key, match: Match) -> Pair:
    where, width = f"table {table.name}, field {key.name}", key.width_bits
    full = (1 << width) - 1
    if not isinstance(match, ACCEPTED[key.match]):
        raise EngineError(f"{where}: the match is {key.match}, not {type(match).__name__}")

    def checked(value: int, what: str) -> int:
        if not 0 <= value <= full:
            raise EngineError(f"{where}: the {what} {value:#x} does not fit {width} bits")
        return value

    match match:
        case Exact(value) | Optional(int(value)):
            return checked(value, "value"), full
        case Lpm(value, length):
            if not 0 <= length <= width:
                raise EngineError(f"{where}: a prefix length is 0 to {width}, not {length}")
            mask = full ^ (full >> length)
            return checked(value, "value") & mask, mask
        case Ternary(value, mask):
            return checked(value, "value") & checked(mask, "mask"), mask
        case Range(low, high):
            if checked(low, "low end") > checked(high, "high end"):
                raise EngineError(f"{where}: the range {low:#x}..{high:#x} is empty")
            return low, high
    return 0, 0  # an optional field that is left out


def check_initial(table: Table) -> None:
    """The entries that the program itself gives the table."""
    actions = {action.name: action for action in table.actions}
    for entry in table.entries:
        canonical(table, entry.matches)
        assert isinstance(entry.action, ActionCall)
        checked_call(f"table {table.name}", actions, entry.action)


def check_default_changeable(table: Table, call: ActionCall | None) -> None:
    if call is not None and table.default is not None and table.default.const:
        raise EngineError(f"table {table.name}: its default action is constant")


def checked_call(where: str, actions: Mapping[str, Action], call: ActionCall) -> Action:
    """The action that is called, one of `actions`, with arguments that fit its parameters."""
    action = actions.get(call.name)
    if action is None:
        known = ", ".join(sorted(actions)) or "none"
        raise EngineError(f"{where}: no action is called {call.name!r}; there are: {known}")
    if len(call.args) != len(action.parameters):
        expected = len(action.parameters)
        raise EngineError(f"{where}: action {action.name}: {expected} arguments expected, not {len(call.args)}")
    for parameter, value in zip(action.parameters, call.args, strict=True):
        if not 0 <= value < 1 << parameter.width_bits:
            given = f"action {action.name}: {value:#x} for {parameter.name}"
            raise EngineError(f"{where}: {given} does not fit {parameter.width_bits} bits")
    return action


def check_kind_of_action(table: Table, action: EntryAction) -> None:
    """A table without a profile takes actions; with a profile members, and groups if it has a selector."""
    if isinstance(action, ActionCall):
        if table.profile is not None:
            raise EngineError(f"table {table.name}: an action profile member or group is expected")
    elif table.profile is None:
        raise EngineError(f"table {table.name}: it has no action profile")
    elif isinstance(action, GroupRef) and not table.profile.has_groups:
        raise EngineError(f"table {table.name}: its action profile has no selector, so no groups")


# --- action profiles --------------------------------------------------------------------------------------------


def profile_actions(tables: Sequence[Table], profile: ActionProfile) -> dict[str, Action]:
    """What a profile's members may do: the actions of the tables that share it."""
    return {action.name: action for table in tables if table.profile is profile for action in table.actions}


def check_group(profile: ActionProfile, known: Collection[int], members: Sequence[tuple[int, int]]) -> None:
    """`members` as (member id, weight); `known` are the members that there are."""
    where = f"action profile {profile.name}"
    if not profile.has_groups:
        raise EngineError(f"{where} has no selector, so no groups")
    for member, weight in members:
        check_known(known, f"member of {where}", member)
        if weight < 1:
            raise EngineError(f"{where}: the weight {weight} of member {member} is not positive")
    total = sum(weight for _, weight in members)
    if total > GROUP_WEIGHT_MAX:
        raise EngineError(f"{where}: the weights of a group add up to {total}; at most {GROUP_WEIGHT_MAX} do")


# --- externs and replication ------------------------------------------------------------------------------------


def check_meter(config: MeterConfig | None) -> None:
    if config is None:
        return
    if min(astuple(config)) < 0:
        raise EngineError("meter rates and bursts cannot be negative")
    if config.cir > config.pir:
        raise EngineError(f"the committed rate {config.cir} exceeds the peak rate {config.pir}")


def check_register(register: Register, value: int) -> None:
    if not 0 <= value < 1 << register.width_bits:
        raise EngineError(f"register {register.name}: {value:#x} does not fit {register.width_bits} bits")


def check_times_out(table: Table) -> None:
    if not table.support_timeout:
        raise EngineError(f"table {table.name}: its entries have no idle timeout: it lacks `support_timeout = true`")


def check_value_set(program: Program, name: str, members: Sequence[tuple[int, ...]]) -> int:
    """The place of a value set in its program, once `members` are found to fit."""
    value_set = find({v.name: v for v in program.value_sets}, name, "value set")
    if len(members) > value_set.size:
        raise EngineError(f"value set {name}: {value_set.size} members at most, not {len(members)}")
    widths = {
        tuple(part.width_bits for part in state.key)
        for state in program.parser.states
        if any(t.value_set == name for t in state.transitions)
    }
    for member in members:
        for parts in widths:
            if len(member) != len(parts) or any(v >> w for v, w in zip(member, parts, strict=True)):
                raise EngineError(f"value set {name}: a member must have values of {parts} bits, unlike {member}")
    return program.value_sets.index(value_set)


def check_multicast_group(group_id: int) -> None:
    if group_id < 1:
        raise EngineError(f"multicast groups are numbered from 1, not {group_id}: 0 means no multicast")


def check_clone_session(session_id: int, truncate_bytes: int, class_of_service: int) -> None:
    if not 0 <= session_id <= SESSION_MAX:
        raise EngineError(f"clone sessions are numbered 0 to {SESSION_MAX}, not {session_id}")
    if truncate_bytes < 0:
        raise EngineError(f"a clone cannot be truncated to {truncate_bytes} bytes")
    if not 0 <= class_of_service < PRIORITIES:
        raise EngineError(f"a class of service is 0 to {PRIORITIES - 1}, not {class_of_service}")


# --- ports and packets ------------------------------------------------------------------------------------------


def check_port(number: int, config: PortConfig) -> None:
    if not 0 <= number < DROP_PORT:
        raise EngineError(f"ports are numbered 0 to {DROP_PORT - 1}, not {number}")
    if len(config.queues) != PRIORITIES:
        raise EngineError(f"port {number}: {PRIORITIES} queues expected, not {len(config.queues)}")
    for name in PORT_SHARES:
        if not 0 <= getattr(config, name) <= 1:
            raise EngineError(f"port {number}: a {name} is a share of 0 to 1, not {getattr(config, name)}")
    numbers = [getattr(config, name) for name in PORT_DEFAULTS if not name.endswith("_seed")]
    if min([*numbers, *(limit for queue in config.queues for limit in queue.limits)]) < 0:
        raise EngineError(f"port {number}: rates, depths and delays cannot be negative")
    if config.pfc_classes:
        _check_pfc(number, config)


def _check_pfc(number: int, config: PortConfig) -> None:
    """The rules of a port with lossless priorities (IEEE 802.1Qbb)."""
    where = f"port {number}: pfc"
    if config.pfc_classes >= 1 << PRIORITIES:
        raise EngineError(f"{where}_classes is a vector of {PRIORITIES} bits, 0 to 255, not {config.pfc_classes}")
    if not config.rate_bps:
        raise EngineError(f"{where}_classes: a pause is counted in bit times, so the port needs a rate_bps")
    if config.pfc_xon_bytes > config.pfc_xoff_bytes:
        raise EngineError(
            f"{where}_xon_bytes must not exceed pfc_xoff_bytes: {config.pfc_xon_bytes} > {config.pfc_xoff_bytes}"
        )
    if not 1 <= config.pfc_quanta <= PFC_QUANTA_MAX:
        raise EngineError(f"{where}_quanta is 1 to {PFC_QUANTA_MAX}, not {config.pfc_quanta}")
    if config.pfc_mac >= 1 << 48:
        raise EngineError(f"{where}_mac has 48 bits, not {config.pfc_mac.bit_length()}")


def check_frame(frame: bytes) -> None:
    if len(frame) > FRAME_BYTES_MAX:
        raise EngineError(f"a frame has at most {FRAME_BYTES_MAX} bytes, not {len(frame)}")
