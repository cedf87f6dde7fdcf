"""The program while it is lowered: finished parts of the model, and what still becomes part of it."""

from dataclasses import field

from common.records import Mutable
from p4c.frontend.check.types import CompositeType
from p4c.frontend.declared import (
    DeclaredAction,
    DeclaredCounter,
    DeclaredDigest,
    DeclaredMeter,
    DeclaredProfile,
    DeclaredRegister,
    DeclaredTable,
    DeclaredValueSet,
)
from p4c.frontend.diagnostics import NOWHERE, SourceSpan
from p4c.frontend.flow import Flow
from p4c.frontend.parse.ast import Annotation
from p4c.model.actions import Action
from p4c.model.expressions import FieldRef, ValidBit
from p4c.model.externs import Calculation, Checksum, FieldList
from p4c.model.headers import Field, Header, HeaderType, Stack, Union, UnionStack
from p4c.model.parsers import KeyPart, Operation, State, Transition


class DraftState(Mutable):
    """A parser state; `ended` once it is known where it goes. `origin` names the program's state that it is part of."""

    name: str
    operations: list[Operation] = field(default_factory=list)
    key: list[KeyPart] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)
    default: str | None = None
    ended: bool = False
    origin: str = ""
    span: SourceSpan = NOWHERE  # of the transition


class DraftPipeline(Mutable):
    name: str
    body: list[Flow]
    tables: list[DeclaredTable] = field(default_factory=list)
    profiles: list[DeclaredProfile] = field(default_factory=list)
    span: SourceSpan = NOWHERE


class Draft(Mutable):
    """All that goes into the model and the P4Info, in the order of declaration."""

    file: str = ""
    header_types: dict[str, HeaderType] = field(default_factory=dict)
    scalars: list[Field] = field(default_factory=list)
    headers: dict[str, Header] = field(default_factory=dict)
    stacks: dict[str, Stack] = field(default_factory=dict)
    unions: dict[str, Union] = field(default_factory=dict)
    union_stacks: dict[str, UnionStack] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    enums: dict[str, dict[str, int]] = field(default_factory=dict)
    aliases: dict[str, FieldRef | ValidBit] = field(default_factory=dict)
    states: tuple[State, ...] = ()
    named: set[int] = field(default_factory=set)  # indices of headers that the program declares, and no call copies
    places: dict[int, SourceSpan] = field(default_factory=dict)  # of operations and keys of states, by identity
    value_sets: list[DeclaredValueSet] = field(default_factory=list)
    pipelines: list[DraftPipeline] = field(default_factory=list)
    deparser: list[Header] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    declared_actions: list[DeclaredAction] = field(default_factory=list)
    called: list[DeclaredAction] = field(default_factory=list)  # called by controls: P4Info names them
    action_names: list[str] = field(default_factory=list)  # in the order of P4Info
    calls_externs: bool = False  # a control calls an extern function
    counters: list[DeclaredCounter] = field(default_factory=list)
    meters: list[DeclaredMeter] = field(default_factory=list)
    registers: list[DeclaredRegister] = field(default_factory=list)
    calculations: list[Calculation] = field(default_factory=list)
    checksums: list[Checksum] = field(default_factory=list)
    field_lists: list[FieldList] = field(default_factory=list)
    digests: list[DeclaredDigest] = field(default_factory=list)
    controller_headers: list[CompositeType] = field(default_factory=list)
    package_annotations: list[Annotation] = field(default_factory=list)
