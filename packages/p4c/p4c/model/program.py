"""A whole program, as an engine runs it."""

from collections.abc import Mapping

from common.records import Frozen
from p4c.model.actions import Action
from p4c.model.expressions import FieldRef, ValidBit
from p4c.model.externs import Calculation, Checksum, Counter, FieldList, LearnList, Meter
from p4c.model.headers import Header, HeaderType, Stack, Union, UnionStack
from p4c.model.intrinsics import Intrinsics
from p4c.model.parsers import Deparser, Parser
from p4c.model.pipelines import ActionProfile, Pipeline, Table
from p4c.model.registers import Register

# The core library's errors; a program that does not list one gets it appended, as simple_switch does.
CORE_ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)


class ValueSet(Frozen, eq=False):
    """A parser value set: keys that the control plane gives. `width_bits`: of all parts of a key."""

    name: str
    width_bits: int
    size: int


class Program(Frozen, eq=False):
    """Immutable; every reference is resolved. Tuples are in the order of the JSON, and `index` is the place in them.

    `digest` (SHA-256, hex, of the JSON without source positions and names of files) names a loaded program in caches.
    """

    name: str
    digest: str  # empty before the program has been JSON
    compiler: str
    header_types: tuple[HeaderType, ...]
    headers: tuple[Header, ...]
    stacks: tuple[Stack, ...]
    unions: tuple[Union, ...]
    union_stacks: tuple[UnionStack, ...]
    intrinsics: Intrinsics
    aliases: Mapping[str, FieldRef | ValidBit]  # field_aliases: the names that simple_switch uses
    errors: Mapping[str, int]
    enums: Mapping[str, Mapping[str, int]]
    parser: Parser
    deparser: Deparser
    ingress: Pipeline
    egress: Pipeline
    actions: tuple[Action, ...]
    calculations: tuple[Calculation, ...]
    checksums: tuple[Checksum, ...]
    counters: tuple[Counter, ...]
    meters: tuple[Meter, ...]
    registers: tuple[Register, ...]
    profiles: tuple[ActionProfile, ...]
    field_lists: Mapping[int, FieldList]
    learn_lists: tuple[LearnList, ...] = ()
    value_sets: tuple[ValueSet, ...] = ()

    @property
    def tables(self) -> tuple[Table, ...]:
        """Of both pipelines, by index."""
        return tuple(sorted((*self.ingress.tables, *self.egress.tables), key=lambda t: t.index))

    def table(self, name: str) -> Table | None:
        return next((t for t in self.tables if t.name == name), None)

    def header(self, name: str) -> Header | None:
        return next((h for h in self.headers if h.name == name), None)

    def error_name(self, value: int) -> str:
        return next((n for n, v in self.errors.items() if v == value), str(value))
