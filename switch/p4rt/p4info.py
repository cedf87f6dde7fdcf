"""P4Info as the server and the controller look things up in it: by id on the wire, by name for people.

Read once for each distinct pipeline and shared; nothing here changes after `P4Info` is built. Names are P4Info's
fully qualified ones, which are also the engine's names.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import Enum
from typing import Any, TypeVar

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from common.records import Frozen
from switch.engine import FRAME_BYTES_MAX
from switch.p4rt.bindings import p4info_pb2
from switch.p4rt.bytestring import decode, encode
from switch.p4rt.errors import choices, invalid, unimplemented
from switch.p4rt.p4data import DigestInfo, digest_info
from switch.p4rt.translation import Translation

# Checked once, before an object is looked up by its id: later, a wrong id would break a request in the middle.
Objects = Mapping[int, Any]
"""The P4Info's messages of one kind, by id."""


def check_ids(message: Any) -> None:
    """Raises P4RuntimeError (INVALID_ARGUMENT) naming the first id, name or alias that contradicts another."""
    tables = _objects("table", message.tables)
    actions = _objects("action", message.actions)
    profiles = _objects("action profile", message.action_profiles)
    counters = _objects("direct counter", message.direct_counters)
    meters = _objects("direct meter", message.direct_meters)
    _objects("counter", message.counters)
    _objects("meter", message.meters)
    _objects("register", message.registers)
    _objects("digest", message.digests)
    for header in _objects("packet header", message.controller_packet_metadata).values():
        _check_unique(f"packet header {header.preamble.name}: metadata id", (item.id for item in header.metadata))
    for action in actions.values():
        _check_unique(f"action {action.preamble.name}: parameter id", (param.id for param in action.params))
    for kind, resources in (("counter", counters), ("meter", meters)):
        for id_, resource in resources.items():
            owner = f"direct {kind} {resource.preamble.name}"
            table = _find(owner, "table", resource.direct_table_id, tables)
            if id_ not in table.direct_resource_ids:
                raise invalid(f"P4Info: {owner}: {_name(table)} does not have it")
    for table in tables.values():
        _check_actions(table, actions)
        _check_unique(f"{_name(table)}: match field id", (item.id for item in table.match_fields))
        _check_implementation(table, profiles)
        _check_direct_resources(table, {**counters, **meters})
    for profile in profiles.values():
        owner = f"action profile {profile.preamble.name}"
        for id_ in profile.table_ids:
            table = _find(owner, "table", id_, tables)
            if table.implementation_id != profile.preamble.id:
                raise invalid(f"P4Info: {owner}: {_name(table)} is not implemented by it")


def _objects(kind: str, items: Iterable[Any]) -> Objects:
    preambles = [item.preamble for item in items]
    _check_unique(f"{kind} id", (preamble.id for preamble in preambles))
    if any(preamble.id == 0 for preamble in preambles):
        raise invalid(f"P4Info: {kind} id must not be 0")
    _check_unique(f"{kind} name", (repr(preamble.name) for preamble in preambles))
    _check_unique(f"{kind} alias", (repr(preamble.alias) for preamble in preambles if preamble.alias))
    return {item.preamble.id: item for item in items}


def _check_unique(what: str, values: Iterable[object]) -> None:
    seen = set()
    for value in values:
        if value in seen:
            raise invalid(f"P4Info: {what} {value} is given twice")
        seen.add(value)


def _name(table: Any) -> str:
    return f"table {table.preamble.name}"


def _find(owner: str, kind: str, id_: int, objects: Objects, kinds: str = "") -> Any:
    declared = objects.get(id_)
    if declared is None:
        known = choices(f"{i} {item.preamble.name}" for i, item in objects.items())
        raise invalid(f"P4Info: {owner}: {kind} id {id_} is not declared; {kinds or kind + 's'}: {known}")
    return declared


def _check_actions(table: Any, actions: Objects) -> None:
    ids = [reference.id for reference in table.action_refs]
    for id_ in ids:
        _find(_name(table), "action", id_, actions)
    _check_unique(f"{_name(table)}: action id", ids)
    for what, id_ in (("constant", table.const_default_action_id), ("initial", table.initial_default_action.action_id)):
        if id_ and id_ not in ids:
            raise invalid(
                f"P4Info: {_name(table)}: the {what} default action's id {id_} must be one of its actions: "
                f"{choices(ids)}"
            )


def _check_implementation(table: Any, profiles: Objects) -> None:
    if not table.implementation_id:
        return
    profile = _find(_name(table), "action profile", table.implementation_id, profiles)
    if table.preamble.id not in profile.table_ids:
        raise invalid(
            f"P4Info: {_name(table)}: is not among the tables of its action profile {profile.preamble.name}: "
            f"{choices(profile.table_ids)}"
        )


def _check_direct_resources(table: Any, resources: Objects) -> None:
    for id_ in table.direct_resource_ids:
        resource = _find(_name(table), "direct resource", id_, resources, "direct counters and meters")
        if resource.direct_table_id != table.preamble.id:
            owner = f"direct resource {resource.preamble.name}"
            raise invalid(f"P4Info: {_name(table)}: {owner} belongs to table id {resource.direct_table_id}")


class MatchKind(Enum):
    EXACT = p4info_pb2.MatchField.EXACT
    LPM = p4info_pb2.MatchField.LPM
    TERNARY = p4info_pb2.MatchField.TERNARY
    RANGE = p4info_pb2.MatchField.RANGE
    OPTIONAL = p4info_pb2.MatchField.OPTIONAL

    @property
    def word(self) -> str:
        return self.name.lower()


PRIORITISED = (MatchKind.TERNARY, MatchKind.RANGE, MatchKind.OPTIONAL)


class FieldInfo(Frozen):
    """A match field, an action parameter or a packet header field: `kind` is None unless it is a match field."""

    id: int
    name: str
    bits: int
    index: int
    kind: MatchKind | None = None
    translation: Translation | None = None  # then `bits` are those of a controller, 0 for names

    @property
    def width(self) -> int:
        """In the data plane."""
        return self.bits if self.translation is None else self.translation.bits

    def number(self, value: bytes, what: str) -> int:
        """The number in a controller's bytes. Raises P4RuntimeError naming `what`."""
        return decode(value, self.bits, what) if self.translation is None else self.translation.number(value, what)

    def value(self, number: int) -> bytes:
        """The bytes for a controller."""
        return encode(number) if self.translation is None else self.translation.value(number)

    @property
    def typed(self) -> str:
        """The type as controllers see it, for messages."""
        return f"bit<{self.bits}>" if self.bits else f"string {self.translation.name}" if self.translation else ""

    @property
    def max(self) -> int:
        return (1 << self.bits) - 1

    def __str__(self) -> str:
        return f"{self.name} ({self.kind.word}, {self.typed})" if self.kind else f"{self.name} ({self.typed})"


class ActionInfo(Frozen):
    """An action as P4Info describes it, with its parameters in order."""

    id: int
    name: str
    alias: str
    params: tuple[FieldInfo, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{p.name}: {p.typed}' for p in self.params)})"


class ProfileInfo(Frozen):
    """An action profile, or with `selector` an action selector."""

    id: int
    name: str
    alias: str
    selector: bool
    size: int  # members; 0: no limit
    max_group_size: int  # of one group, as `sum_of_members` says; 0: no limit
    sum_of_members: bool  # a group's size is its number of members, else the sum of their weights
    max_member_weight: int  # with sum_of_members; 0: no limit
    table_ids: tuple[int, ...]


class Indexed(Frozen):
    """An indirect counter, meter or register array; `bits` is a register's element width."""

    id: int
    name: str
    alias: str
    size: int
    bits: int = 0


class ValueSetInfo(Frozen):
    """A parser value set; `fields` in the order of the key."""

    id: int
    name: str
    fields: tuple[FieldInfo, ...]
    size: int


class TableInfo(Frozen):
    """A table as P4Info describes it; `fields` in the order of its key."""

    id: int
    name: str
    alias: str
    fields: tuple[FieldInfo, ...]
    actions: dict[int, ActionInfo]
    default_only: frozenset[int]
    table_only: frozenset[int]
    size: int  # entries; 0: no limit
    const: bool
    const_default_action: int  # action id; 0: the default action may be changed
    initial_default: tuple[ActionInfo, tuple[int, ...]] | None  # the program's default, where P4Info says it
    profile: ProfileInfo | None
    direct_counter: str | None
    direct_meter: str | None
    needs_priority: bool
    idle_timeout: bool  # the program asks for it
    field_by_id: dict[int, FieldInfo] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"table {self.name}"

    @property
    def default_changeable(self) -> bool:
        return not self.const_default_action and self.profile is None

    def entry_actions(self) -> list[ActionInfo]:
        return [action for id_, action in self.actions.items() if id_ not in self.default_only]

    def default_actions(self) -> list[ActionInfo]:
        return [action for id_, action in self.actions.items() if id_ not in self.table_only]


class PacketHeader(Frozen):
    """A `@controller_header`: its fields follow each other from the most significant bit."""

    name: str
    fields: tuple[FieldInfo, ...]

    @property
    def bits(self) -> int:
        return sum(field.width for field in self.fields)


# Empty objects are the dearest: 350 times their size as bytes, 90 times as text. Programs have some kilobytes.
_BYTES_MAX = 512 << 10
_CHARACTERS_MAX = 2 << 20
Named = TypeVar("Named", TableInfo, ActionInfo, ProfileInfo, Indexed)


T = TypeVar("T", TableInfo, ProfileInfo, Indexed, ValueSetInfo, DigestInfo)


def find(items: Mapping[int, T], id_: int, kind: str) -> T:
    """The object with this id. Raises P4RuntimeError (INVALID_ARGUMENT) naming those of its kind that exist."""
    item = items.get(id_)
    if item is None:
        known = choices(f"{i.id} {i.name}" for i in items.values())
        raise invalid(f"no {kind} with id {id_}; {kind}s: {known}")
    return item


class P4Info:
    """An indexed P4Info message. Raises P4RuntimeError (INVALID_ARGUMENT, UNIMPLEMENTED) for one it cannot carry."""

    def __init__(self, message: Any) -> None:
        check_ids(message)
        self.message = message
        self.name: str = message.pkg_info.name
        self.arch: str = message.pkg_info.arch
        self.translations = {
            name: Translation(name, spec)
            for name, spec in message.type_info.new_types.items()
            if spec.HasField("translated_type")
        }
        self.actions = {item.preamble.id: self._action(item) for item in message.actions}
        self.profiles = {item.preamble.id: _profile(item) for item in message.action_profiles}
        self.counters = {item.preamble.id: _indexed(item) for item in message.counters}
        self.meters = {item.preamble.id: _indexed(item) for item in message.meters}
        self.registers = {item.preamble.id: _indexed(item, _register_bits(item)) for item in message.registers}
        self.value_sets = {item.preamble.id: self._value_set(item) for item in message.value_sets}
        self.digests = {item.preamble.id: digest_info(item, message.type_info) for item in message.digests}
        self.direct_counters = {item.preamble.id: item.preamble.name for item in message.direct_counters}
        self.direct_meters = {item.preamble.id: item.preamble.name for item in message.direct_meters}
        self.tables = {item.preamble.id: self._table(item) for item in message.tables}
        headers = {item.preamble.name: self._packet_header(item) for item in message.controller_packet_metadata}
        self.packet_in = headers.get("packet_in")
        self.packet_out = headers.get("packet_out")
        self._by_name: dict[str, dict[str, Any]] = {}

    def _table(self, item: Any) -> TableInfo:
        name = item.preamble.name
        fields = tuple(
            self._match_field(f"table {name}", index, entry) for index, entry in enumerate(item.match_fields)
        )
        references = {reference.id: reference for reference in item.action_refs}
        resources = item.direct_resource_ids
        return TableInfo(
            id=item.preamble.id,
            name=name,
            alias=item.preamble.alias,
            fields=fields,
            actions={id_: self.actions[id_] for id_ in references},
            default_only=_scoped(references, p4info_pb2.ActionRef.DEFAULT_ONLY),
            table_only=_scoped(references, p4info_pb2.ActionRef.TABLE_ONLY),
            size=item.size,
            const=item.is_const_table,
            const_default_action=item.const_default_action_id,
            initial_default=self._initial_default(item),
            profile=self.profiles[item.implementation_id] if item.implementation_id else None,
            direct_counter=next((self.direct_counters[i] for i in resources if i in self.direct_counters), None),
            direct_meter=next((self.direct_meters[i] for i in resources if i in self.direct_meters), None),
            needs_priority=any(entry.kind in PRIORITISED for entry in fields),
            idle_timeout=item.idle_timeout_behavior != p4info_pb2.Table.NO_TIMEOUT,
            field_by_id={entry.id: entry for entry in fields},
        )

    def _field(self, owner: str, index: int, item: Any, kind: MatchKind | None = None) -> FieldInfo:
        translation = self.translations.get(item.type_name.name)
        if item.bitwidth < 0:
            raise invalid(f"P4Info: {owner}: {item.name} must have a positive bit width (got {item.bitwidth})")
        if not item.bitwidth and (translation is None or not translation.strings):
            raise unimplemented(f"P4Info: {owner}: {item.name} must have a bit width or a type translated to string")
        if not item.bitwidth and kind not in (None, MatchKind.EXACT, MatchKind.OPTIONAL):
            raise invalid(f"P4Info: {owner}: {item.name} is a string, which must be matched exact or optional")
        return FieldInfo(item.id, item.name, item.bitwidth, index, kind, translation)

    def _match_field(self, owner: str, index: int, item: Any) -> FieldInfo:
        try:
            kind = MatchKind(item.match_type)
        except ValueError:
            raise unimplemented(
                f"P4Info: {owner}: field {item.name}: match kind is not supported; "
                f"supported: {choices(kind.word for kind in MatchKind)}"
            ) from None
        return self._field(owner, index, item, kind)

    def _action(self, item: Any) -> ActionInfo:
        owner = f"action {item.preamble.name}"
        params = tuple(self._field(owner, index, param) for index, param in enumerate(item.params))
        return ActionInfo(item.preamble.id, item.preamble.name, item.preamble.alias, params)

    def _value_set(self, item: Any) -> ValueSetInfo:
        owner = f"table {item.preamble.name} (a value set)"
        fields = tuple(self._match_field(owner, index, entry) for index, entry in enumerate(item.match))
        return ValueSetInfo(item.preamble.id, item.preamble.name, fields, item.size)

    def _packet_header(self, item: Any) -> PacketHeader:
        name = item.preamble.name
        owner = f"packet header {name}"
        header = PacketHeader(name, tuple(self._field(owner, i, entry) for i, entry in enumerate(item.metadata)))
        bits = sum(entry.bits for entry in header.fields)
        if bits > FRAME_BYTES_MAX * 8:
            size = (bits + 7) // 8
            raise invalid(f"P4Info: {owner}: must have at most {FRAME_BYTES_MAX} bytes (got {size})")
        return header

    def _initial_default(self, item: Any) -> tuple[ActionInfo, tuple[int, ...]] | None:
        call = item.initial_default_action
        action = self.actions.get(call.action_id)
        if action is None:
            return None
        given = {argument.param_id: int.from_bytes(argument.value, "big") for argument in call.arguments}
        return action, tuple(given.get(param.id, 0) for param in action.params)

    # --- names, for people and for the controller -----------------------------------------------------------------

    def _named(self, kind: str, items: dict[int, Named], name: str) -> Named:
        index = self._by_name.get(kind)
        if index is None:
            index = {item.alias: item for item in items.values()}
            index.update({item.name: item for item in items.values()})
            self._by_name[kind] = index
        named: Named | None = index.get(name)
        if named is None:
            raise invalid(f"no {kind} {name!r} in the P4Info; {kind}s: {choices(i.name for i in items.values())}")
        return named

    def table(self, name: str) -> TableInfo:
        """By full name or alias. Raises P4RuntimeError naming the choices; so do the others."""
        return self._named("table", self.tables, name)

    def action(self, name: str) -> ActionInfo:
        return self._named("action", self.actions, name)

    def profile(self, name: str) -> ProfileInfo:
        return self._named("action profile", self.profiles, name)

    def meter(self, name: str) -> Indexed:
        return self._named("meter", self.meters, name)

    def counter(self, name: str) -> Indexed:
        return self._named("counter", self.counters, name)


def parse_p4info(data: bytes) -> P4Info:
    """From the wire format."""
    _checked(len(data), "bytes", _BYTES_MAX)
    try:
        return P4Info(p4info_pb2.P4Info.FromString(data))
    except DecodeError as error:
        raise invalid(f"P4Info: not a valid protobuf message: {error}") from None


def parse_p4info_text(text: str) -> P4Info:
    """From the text format that compilers write (`*.p4info.txtpb`)."""
    _checked(len(text), "characters", _CHARACTERS_MAX)
    try:
        return P4Info(text_format.Parse(text, p4info_pb2.P4Info(), allow_unknown_field=True))
    except text_format.ParseError as error:
        raise invalid(f"P4Info: not valid protobuf text: {error}") from None


def _checked(size: int, unit: str, most: int) -> None:
    if size > most:
        raise invalid(f"P4Info: must have at most {most} {unit} (got {size})")


def _scoped(references: dict[int, Any], scope: int) -> frozenset[int]:
    return frozenset(id_ for id_, reference in references.items() if reference.scope == scope)


def _profile(item: Any) -> ProfileInfo:
    preamble = item.preamble
    return ProfileInfo(
        preamble.id,
        preamble.name,
        preamble.alias,
        item.with_selector,
        item.size,
        item.max_group_size,
        item.WhichOneof("selector_size_semantics") == "sum_of_members",
        item.sum_of_members.max_member_weight,
        tuple(item.table_ids),
    )


def _indexed(item: Any, bits: int = 0) -> Indexed:
    return Indexed(item.preamble.id, item.preamble.name, item.preamble.alias, item.size, bits)


def _register_bits(item: Any) -> int:
    """The element width; 0 for anything but bit<W>, which is then refused when it is read or written."""
    return int(item.type_spec.bitstring.bit.bitwidth)
