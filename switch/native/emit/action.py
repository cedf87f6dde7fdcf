"""Actions: one C function each, its primitives in order."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from p4c.model import Action, Primitive, Program, UnsupportedError
from p4c.model.expressions import Const
from switch.native.emit.expression import ExpressionEmitter
from switch.native.emit.layout import identifier
from switch.native.emit.primitives import PRIMITIVES
from switch.native.emit.statement import SCOPE, StatementEmitter


def action_name(program: Program, action: Action) -> str:
    return f"action_{action_number(program, action)}_{identifier(action.name)}"


def action_number(program: Program, action: Action) -> int:
    """What entries refer to: the action's place in the program."""
    return _numbers(program)[id(action)]


@lru_cache(maxsize=4)
def _numbers(program: Program) -> Mapping[int, int]:
    return {id(action): number for number, action in enumerate(program.actions)}


class ActionEmitter(StatementEmitter):
    """One C function for each action."""

    def functions(self) -> list[str]:
        lines: list[str] = []
        for action in self.program.actions:
            lines += [f"static void {action_name(self.program, action)}({SCOPE}, const u64 *args)", "{"]
            lines += self.body(action.primitives, action)
            lines += ["}", ""]
        return lines

    def body(self, primitives: tuple[Primitive, ...], action: Action | None) -> list[str]:
        targets = {
            a.value
            for q in primitives
            if q.op in ("_jump", "_jump_if_zero")
            for a in q.args[-1:]
            if isinstance(a, Const)
        }
        lines = ["    (void)d; (void)p; (void)h; (void)now_ns;" + (" (void)args;" if action else "")]
        for place, primitive in enumerate(primitives):
            if place in targets:
                lines.append(f"jump_{place}:;")
            lines += [f"    {line}" for line in self.primitive(primitive, action)]
        lines += [f"jump_{target}:;" for target in sorted(targets) if target >= len(primitives)]
        return lines

    def primitive(self, primitive: Primitive, action: Action | None) -> list[str]:
        emitter = PRIMITIVES.get(primitive.op)
        if emitter is None:
            raise UnsupportedError(f"primitive {primitive.op}: the native engine does not have it")
        return emitter(self, ExpressionEmitter(self.layout, action), *primitive.args)
