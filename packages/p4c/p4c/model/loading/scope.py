"""Names and ids declared so far, while a file is read."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from p4c.model.actions import Action
from p4c.model.expressions import FieldRef, ValidBit
from p4c.model.externs import Calculation, Counter, FieldList, LearnList, Meter
from p4c.model.headers import Field, Header, HeaderType, Stack, Union, UnionStack
from p4c.model.loading.cursor import JsonCursor
from p4c.model.pipelines import ActionProfile
from p4c.model.program import ValueSet
from p4c.model.registers import Register

VALID_FIELD = "$valid$"
_CHOICES_SHOWN = 12

T = TypeVar("T")


class LoadScope:
    def __init__(self) -> None:
        self.header_types: dict[str, HeaderType] = {}
        self.headers: dict[str, Header] = {}
        self.headers_by_id: dict[int, Header] = {}
        self.stacks: dict[str, Stack] = {}
        self.unions: dict[str, Union] = {}
        self.unions_by_id: dict[int, Union] = {}
        self.union_stacks: dict[str, UnionStack] = {}
        self.aliases: dict[str, FieldRef | ValidBit] = {}
        self.errors: dict[str, int] = {}
        self.registers: dict[str, Register] = {}
        self.counters: dict[str, Counter] = {}
        self.meters: dict[str, Meter] = {}
        self.calculations: dict[str, Calculation] = {}
        self.field_lists: dict[int, FieldList] = {}
        self.learn_lists: dict[int, LearnList] = {}
        self.actions_by_id: dict[int, Action] = {}
        self.profiles: dict[str, ActionProfile] = {}
        self.value_sets: dict[str, ValueSet] = {}
        self.table_count = 0

    def field(self, at: JsonCursor) -> FieldRef | ValidBit:
        """A field reference: `[header, field]`."""
        header_at, field_at = at.items(2)
        header_name, field_name = header_at.text(), field_at.text()
        alias = self.aliases.get(f"{header_name}.{field_name}")
        if alias is not None:
            return alias
        header = self.headers.get(header_name)
        if header is None:
            at.fail(f"no header is called {header_name!r}; {choices(self.headers)}")
        if field_name == VALID_FIELD:
            packet_header(self.headers, header_at)
            return ValidBit(header)
        return FieldRef(header, field_of(header.type, field_name, at))

    def stored_field(self, at: JsonCursor) -> FieldRef:
        """A field reference that is not the read-only $valid$."""
        place = self.field(at)
        if isinstance(place, ValidBit):
            at.fail(f"{place.header.name}.{VALID_FIELD} is read-only: use add_header or remove_header")
        return place


def field_of(header_type: HeaderType, name: str, at: JsonCursor) -> Field:
    field = header_type.field(name)
    if field is None:
        names = [f.name for f in header_type.fields]
        at.fail(f"header type {header_type.name!r} has no field {name!r}; {choices(names)}")
    return field


def named(table: dict[str, T], at: JsonCursor, what: str) -> T:
    """The entry of `table` that `at` names."""
    name = at.text()
    if name not in table:
        at.fail(f"no {what} is called {name!r}; {choices(table)}")
    return table[name]


def packet_header(table: dict[str, Header], at: JsonCursor) -> Header:
    """The header of a packet that `at` names: metadata is in no packet, and is always valid."""
    header = named(table, at, "header")
    if header.metadata:
        at.fail(f"{header.name} is metadata, which is in no packet")
    return header


def numbered(table: dict[int, T], at: JsonCursor, what: str) -> T:
    """The entry of `table` whose id `at` gives."""
    number = at.integer()
    if number not in table:
        at.fail(f"no {what} has id {number}")
    return table[number]


def declare(table: dict[str, T], at: JsonCursor, what: str, make: Callable[[str], T]) -> T:
    """Enter a new object under its name, which must be new."""
    name = at.get("name").text()
    if name in table:
        at.fail(f"a second {what} is called {name!r}")
    table[name] = make(name)
    return table[name]


def choices(names: Iterable[str]) -> str:
    listed = sorted(names)
    if not listed:
        return "there are none"
    more = f", … ({len(listed)} in all)" if len(listed) > _CHOICES_SHOWN else ""
    return "there are: " + ", ".join(listed[:_CHOICES_SHOWN]) + more
