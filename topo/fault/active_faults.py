"""The faults in force in one world. The rules are the same in every world, and in a rehearsal on paper."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Protocol

from topo.fault.change import Change, changes
from topo.fault.fault import Fault, make_fault
from topo.fault.verb import VERBS, FaultError
from topo.plan import Plan


class RefusedFaultError(FaultError):
    """A fault that cannot be injected or undone now: it is in force already, or is not, or this world cannot do it."""


class FaultableFabric(Protocol):
    """A world, as far as active faults need one: something that carries changes out."""

    def refusal(self, change: Change) -> str | None:
        """Why this change cannot be carried out here and now; None when it can."""

    def carry_out(self, change: Change) -> None:
        """Make it so."""


class FaultRecord(Protocol):
    """Where the list of faults in force is kept."""

    def locked(self) -> AbstractContextManager[object]:
        """The right to change the list."""

    def read(self) -> list[Fault]:
        """The faults in force, the oldest first."""

    def write(self, faults: Sequence[Fault]) -> None:
        """Replace the list."""

    def tell(self, fault: Fault, state: Literal["begin", "end"]) -> None:
        """A fault is about to come into force, or has ended."""


class MemoryRecord:
    """A list in memory, for one process with one thread."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def locked(self) -> AbstractContextManager[object]:
        return nullcontext()

    def read(self) -> list[Fault]:
        return list(self._faults)

    def write(self, faults: Sequence[Fault]) -> None:
        self._faults = list(faults)

    def tell(self, fault: Fault, state: Literal["begin", "end"]) -> None:
        pass


class ActiveFaults:
    """Injects and undoes faults: checks, then has the fabric carry out what changes."""

    def __init__(self, plan: Plan, fabric: FaultableFabric, record: FaultRecord | None = None) -> None:
        self.plan = plan
        self.record = record or MemoryRecord()
        self._fabric = fabric

    def faults(self) -> list[Fault]:
        """The faults in force, the oldest first."""
        return self.record.read()

    def inject(self, verb: str, target: str, value: float | None = None, seed: int = 0) -> Fault:
        """Put a fault in force.

        FaultError: there is no such fault; RefusedFaultError: not now. Either leaves everything as it was.
        """
        fault = make_fault(self.plan, verb, target, value, seed)
        with self.record.locked():
            before = self.record.read()
            if fault in before:
                raise RefusedFaultError(f"{fault} is in force already; undo it first")
            after = [*before, fault]
            to_do = changes(self.plan, before, after)
            for change in to_do:
                if why := self._fabric.refusal(change):
                    raise RefusedFaultError(f"{fault}: {why}")
            self.record.tell(fault, "begin")
            # On record before it is carried out: a process that dies in between leaves a fault that can be undone.
            self.record.write(after)
            self._carry_out(to_do)
            if not VERBS[verb].lasting:
                self._end(fault, after, before)
        return fault

    def undo(self, fault: Fault) -> None:
        """End a fault; the others stay in force. RefusedFaultError when it is not in force."""
        with self.record.locked():
            before = self.record.read()
            if fault not in before:
                in_force = ", ".join(map(str, before)) or "none"
                raise RefusedFaultError(f"{fault} is not in force; faults in force: {in_force}")
            after = list(before)
            after.remove(fault)
            self._end(fault, before, after)

    def heal(self) -> None:
        """Undo every fault in force, the last one first."""
        for fault in reversed(self.record.read()):
            self.undo(fault)

    def _end(self, fault: Fault, before: Sequence[Fault], after: Sequence[Fault]) -> None:
        self._carry_out(changes(self.plan, before, after))
        self.record.write(after)
        self.record.tell(fault, "end")

    def _carry_out(self, to_do: Sequence[Change]) -> None:
        for change in to_do:
            self._fabric.carry_out(change)
