"""The declarations of a P4 program as the control plane sees them: with types and annotations, which BMv2's JSON lacks.

Things that the model only gets when all is lowered (tables, direct counters and meters) are only here until then.
"""

from __future__ import annotations

from dataclasses import field

from common.records import Mutable
from p4c.frontend.check.types import Type
from p4c.frontend.diagnostics import NOWHERE, SourceSpan
from p4c.frontend.parse.ast import Annotation
from p4c.model.actions import Action
from p4c.model.expressions import FieldRef, ValidBit
from p4c.model.externs import Counter, LearnList, Meter
from p4c.model.pipelines import ActionProfile, InitialEntry
from p4c.model.registers import Register

DEFAULT_TABLE_SIZE = 1024


class Declared(Mutable, kw_only=True):
    """`name` is the control-plane name."""

    annotations: list[Annotation] = field(default_factory=list)
    span: SourceSpan = NOWHERE


class DeclaredAction(Declared):
    name: str
    parameters: list[tuple[str, Type, list[Annotation]]] = field(default_factory=list)
    action: Action | None = None  # None: only called by a control, in place


class DeclaredKey(Mutable):
    target: FieldRef | ValidBit
    match: str
    name: str
    mask: int | None
    type: Type
    annotations: list[Annotation] = field(default_factory=list)
    all_annotations: list[Annotation] = field(default_factory=list)


class DeclaredTable(Declared):
    name: str
    actions: list[tuple[DeclaredAction, list[Annotation]]]
    default: DeclaredAction
    default_arguments: list[int]
    default_const: bool
    entries_const: bool
    entries: tuple[InitialEntry, ...] | None = None
    size: int = 0  # 0: not given
    profile: DeclaredProfile | None = None
    counter: DeclaredCounter | None = None
    meter: DeclaredMeter | None = None
    support_timeout: bool = False
    all_keys: list[DeclaredKey] = field(default_factory=list)  # selector keys included: they count when ids are given

    @property
    def keys(self) -> list[DeclaredKey]:
        """The keys that are matched: all but the selector's."""
        return [k for k in self.all_keys if k.match != "selector"]


class DeclaredProfile(Declared):
    name: str
    size: int
    algorithm: str | None  # of a selector
    inputs: list[FieldRef] = field(default_factory=list)
    tables: list[DeclaredTable] = field(default_factory=list)
    profile: ActionProfile | None = None


class DeclaredCells(Declared):
    """Counters or meters by index, or direct ones of a table: `size` None."""

    name: str
    unit: str
    size: int | None
    index_type: Type | None = None
    table: DeclaredTable | None = None


class DeclaredCounter(DeclaredCells):
    counter: Counter | None = None


class DeclaredMeter(DeclaredCells):
    result: FieldRef | None = None
    meter: Meter | None = None


class DeclaredRegister(Declared):
    name: str
    type: Type
    index_type: Type | None
    register: Register


class DeclaredDigest(Mutable):
    name: str
    type: Type
    learned: LearnList


class DeclaredValueSet(Mutable):
    name: str
    size: int
    type: Type
    annotations: list[Annotation]
